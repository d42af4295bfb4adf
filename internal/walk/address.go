package walk

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// services are all Services that there are, named as operands.
func (w *walk) services(ctx context.Context) (map[string]observe.Operand, error) {
	list, err := w.Dynamic.Resource(observe.OperandResource(observe.KindService)).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	all := map[string]observe.Operand{}
	for _, s := range list.Items {
		service := observe.Operand{Kind: observe.KindService, Namespace: s.GetNamespace(), Name: s.GetName(), Content: compare.Content(s.Object)}
		all[service.String()] = service
	}
	return all, nil
}

// leadsOf tells whether the addresses lead to Services that are said by operands, which were made for a copy, and by its status.
func (w *walk) leadsOf(ctx context.Context, o *newObject, operands map[string]observe.Operand) (map[string]string, error) {
	services, err := w.services(ctx)
	if err != nil {
		return nil, err
	}
	says, err := w.statusOf(ctx, o.Object)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for place, address := range judge.Leads(operands, services, o.Namespace, says, o.called) {
		all[o.plain(place)] = o.with(address, o.like.Name)
	}
	return all, nil
}
