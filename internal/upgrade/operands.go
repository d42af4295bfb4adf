package upgrade

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmkit/olmkit/internal/finding"
)

// operand is something that an operator made for an object of ours, directly or for another operand.
type operand struct {
	Kind, Namespace, Name string
	UID                   types.UID
	Restarts              int32 // of a pod's containers
}

// String names the operand as findings do.
func (o operand) String() string { return o.Kind + "/" + o.Namespace + "/" + o.Name }

// operandKinds are the kinds that operators make for their users.
var operandKinds = []struct {
	schema.GroupVersionResource
	Kind string
}{
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "Deployment"},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, "StatefulSet"},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}, "DaemonSet"},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, "ReplicaSet"},
	{schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}, "CronJob"},
	{schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}, "PodDisruptionBudget"},
	{schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}, "Ingress"},
	{schema.GroupVersionResource{Version: "v1", Resource: "services"}, "Service"},
	{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap"},
	{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "Secret"},
	{schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "ServiceAccount"},
	{schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, "PersistentVolumeClaim"},
	{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "Pod"},
}

// operands lists what belongs to the walk's objects by owner references, by name.
func (w *walk) operands(ctx context.Context) (map[string]operand, error) {
	type owned struct {
		operand
		owners []types.UID
	}
	var all []owned
	for _, kind := range operandKinds {
		list, err := w.metadata.Resource(kind.GroupVersionResource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Resource, err)
		}
		for _, m := range list.Items {
			o := owned{operand: operand{Kind: kind.Kind, Namespace: m.Namespace, Name: m.Name, UID: m.UID}}
			for _, r := range m.OwnerReferences {
				o.owners = append(o.owners, r.UID)
			}
			if len(o.owners) > 0 && m.DeletionTimestamp == nil {
				all = append(all, o)
			}
		}
	}
	ours := map[types.UID]bool{}
	for _, o := range w.objects {
		ours[o.UID] = true
	}
	found := map[string]operand{}
	for grown := true; grown; {
		grown = false
		for _, o := range all {
			if !ours[o.UID] && slices.ContainsFunc(o.owners, func(u types.UID) bool { return ours[u] }) {
				ours[o.UID], grown = true, true
				found[o.String()] = o.operand
			}
		}
	}
	return found, w.countRestarts(ctx, found)
}

func (w *walk) countRestarts(ctx context.Context, found map[string]operand) error {
	var pods corev1.PodList
	if err := w.olm.List(ctx, &pods); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for _, p := range pods.Items {
		name := "Pod/" + p.Namespace + "/" + p.Name
		if o, ok := found[name]; ok {
			for _, s := range p.Status.ContainerStatuses {
				o.Restarts += s.RestartCount
			}
			found[name] = o
		}
	}
	return nil
}

// judgeOperands compares the operands before and after a hop. ReplicaSets and pods come and go with their owners; that they
// did is only worth knowing.
func judgeOperands(before, after map[string]operand) []finding.Finding {
	var findings []finding.Finding
	rolled := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		is, there := after[name]
		transient := was.Kind == "Pod" || was.Kind == "ReplicaSet"
		switch {
		case transient && !there:
			rolled[was.Kind]++
		case !there:
			findings = append(findings, find(codeOperandReplaced, name, "it was deleted during the upgrade"))
		case is.UID != was.UID && !transient:
			findings = append(findings, find(codeOperandReplaced, name, "it was deleted and made anew during the upgrade: its UID is another"))
		case is.UID != was.UID:
			rolled[was.Kind]++
		case is.Restarts > was.Restarts:
			f := find(codeOperandRolled, name, "its containers were restarted %d times during the upgrade", is.Restarts-was.Restarts)
			f.Severity = finding.Warning
			findings = append(findings, f)
		}
	}
	if len(rolled) > 0 {
		var parts []string
		for _, kind := range slices.Sorted(maps.Keys(rolled)) {
			parts = append(parts, fmt.Sprintf("%d of kind %s", rolled[kind], kind))
		}
		findings = append(findings, find(codeOperandRolled, "", "the upgrade rolled operands: %s were replaced", strings.Join(parts, ", ")))
	}
	return findings
}
