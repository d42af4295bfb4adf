package walk

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// nodeLabels are the labels of the cluster's nodes, by the node and the label.
func (w *walk) nodeLabels(ctx context.Context) (map[string]string, error) {
	var nodes corev1.NodeList
	if err := w.Client.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	labels := map[string]string{}
	for _, n := range nodes.Items {
		for label, value := range n.Labels {
			labels[n.Name+" "+label] = value
		}
	}
	return labels, nil
}

// judgeNodes tells which labels of nodes are others than under the release called from. On a cluster that stays others may label them.
func (w *walk) judgeNodes(ctx context.Context, from string, r *lifecycle.Release) ([]finding.Finding, error) {
	if !w.Provider.Disposable() {
		return nil, nil
	}
	now, err := w.nodeLabels(ctx)
	if err != nil {
		return nil, err
	}
	was := w.labelled[from]
	w.labelled[r.Name] = now
	return judge.NodeLabels(from, r.Name, w.labelled[""], was, now), nil
}
