package walk

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// bystanders are objects that are not the operator's and that admission webhooks of some release may be asked about, which are never kept, by what they are: the user's samples, pods of them, and a pod
// with the labels that a webhook selects.
func (w *walk) bystanders() map[string]*unstructured.Unstructured {
	all := map[string]*unstructured.Unstructured{}
	for _, s := range w.options.Samples {
		if w.owned(s) || observe.OperandResource(s.GetKind()).Resource == "" {
			continue
		}
		o := s.DeepCopy()
		o.SetName(shortened(s.GetName()) + "-olmkit")
		what := s.GetKind() + "/" + s.GetName()
		all[what] = o
		if template, is := (observe.Operand{Kind: s.GetKind(), Content: s.Object}).Template(); is {
			all["Pod of "+what] = podOf(o.GetNamespace(), o.GetName(), template)
		}
	}
	for _, r := range w.releases {
		for _, d := range r.CSV.Spec.WebhookDefinitions {
			if asksAboutPods(d) {
				template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}}}}
				template.Labels = selectedBy(d.ObjectSelector)
				all[strings.TrimSpace("Pod "+labels.Set(template.Labels).String())] = podOf("", foreignName, template)
			}
		}
	}
	return all
}

// owned reports whether a sample is of a kind of the package's.
func (w *walk) owned(s *unstructured.Unstructured) bool {
	kind := s.GroupVersionKind()
	return slices.ContainsFunc(slices.Collect(maps.Values(w.releases)), func(r *lifecycle.Release) bool { return r.Owns(kind.Group, kind.Kind) })
}

// asksAboutPods reports whether the API server asks a webhook about each pod that is created.
func asksAboutPods(d v1alpha1.WebhookDescription) bool {
	return d.Type != v1alpha1.ConversionWebhook && slices.ContainsFunc(d.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(r.APIGroups, "") && (slices.Contains(r.Resources, "pods") || slices.Contains(r.Resources, "*"))
	})
}

// selectedBy are labels that selector, which may be nil, selects, as far as it says which.
func selectedBy(selector *metav1.LabelSelector) map[string]string {
	if selector == nil {
		return nil
	}
	set := maps.Clone(selector.MatchLabels)
	for _, e := range selector.MatchExpressions {
		switch {
		case e.Operator == metav1.LabelSelectorOpIn && len(e.Values) > 0:
			set = labels.Merge(set, labels.Set{e.Key: e.Values[0]})
		case e.Operator == metav1.LabelSelectorOpExists:
			set = labels.Merge(set, labels.Set{e.Key: "true"})
		}
	}
	return set
}

// podOf is a pod that is made from a template.
func podOf(namespace, name string, template corev1.PodTemplateSpec) *unstructured.Unstructured {
	pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: observe.KindPod}, ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = namespace, name
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
	if err != nil {
		panic("walk: " + err.Error()) // all pods can be
	}
	return &unstructured.Unstructured{Object: object}
}

// projected is the volume by which a pod's ServiceAccount has its token: each pod's is called otherwise.
var projected = observe.Compiled(`kube-api-access-[a-z0-9]+`)

// sameName is text with the same name for that volume.
func sameName(text string) string { return projected().ReplaceAllString(text, "kube-api-access") }

// tryCreate asks the API server what it would make of an object in a namespace, and returns that by path, or who refuses it. It returns nothing where something else is wrong.
func (w *walk) tryCreate(ctx context.Context, o *unstructured.Unstructured, namespace string) (values map[string]string, refused string, err error) {
	o = o.DeepCopy()
	if o.GetKind() != observe.KindNamespace {
		o.SetNamespace(namespace)
	}
	if err := w.Client.Create(ctx, o, client.DryRunAll); err != nil {
		if ctx.Err() == nil && observe.Denied(err) {
			refused = err.Error()
		}
		return nil, refused, ctx.Err()
	}
	values = map[string]string{}
	for path, value := range valuesByName(saidIn(o)) {
		values[sameName(path)] = sameName(value)
	}
	return values, "", nil
}

// saidIn is what the users of o say in it, with its labels and annotations.
func saidIn(o *unstructured.Unstructured) map[string]any {
	said := compare.Content(o.Object)
	for _, marks := range []string{"labels", "annotations"} {
		said[marks], _, _ = unstructured.NestedMap(o.Object, "metadata", marks)
	}
	return said
}

// valuesByName are the values of content by their paths, as compare.Values has them: of things that have names, by these.
func valuesByName(content map[string]any) map[string]string {
	named, _ := byName(content).(map[string]any)
	return compare.Values(named)
}

// byName is value with each list of things that have names as a map by these: where one is added, or another comes first, the others keep their paths.
func byName(value any) any {
	switch v := value.(type) {
	case map[string]any:
		named := map[string]any{}
		for k, inner := range v {
			named[k] = byName(inner)
		}
		return named
	case []any:
		list, by := make([]any, len(v)), map[string]any{}
		for i, item := range v {
			list[i] = byName(item)
			if thing, is := item.(map[string]any); is {
				if name, is := thing["name"].(string); is {
					by[name] = list[i]
				}
			}
		}
		if len(by) == len(v) {
			return by
		}
		return list
	}
	return value
}

// became is what admission made of a bystander, which is values now and would be plain if nobody else were asked.
func became(plain, values map[string]string) (b judge.Bystander) {
	for _, path := range slices.Sorted(slices.Values(otherPaths(plain, values))) {
		if _, says := values[path]; says {
			b.Sets = append(b.Sets, path)
		} else {
			b.Takes = append(b.Takes, path)
		}
	}
	return b
}

// notePlain notes, before any release is installed, what the API server alone makes of bystanders, and the labels of nodes. On a cluster that stays others may be asked.
func (w *walk) notePlain(ctx context.Context) error {
	if w.plain != nil || !w.Provider.Disposable() {
		return nil
	}
	w.plain = map[string]map[string]string{}
	for what, o := range w.bystanders() {
		values, _, err := w.tryCreate(ctx, o, metav1.NamespaceDefault)
		if err != nil {
			return err
		}
		if values != nil {
			w.plain[what] = values
		}
	}
	var err error
	w.labelled[""], err = w.nodeLabels(ctx)
	return err
}

// judgeBystanders tells what r's admission webhooks do not do to bystanders any more and those of the release called from did, which is waited for: the API server asks a new webhook a moment late.
func (w *walk) judgeBystanders(ctx context.Context, from string, r *lifecycle.Release) (findings []finding.Finding, err error) {
	if w.options.Restore != nil || !w.OperatorRuns(r) || w.SimulatedAmong(r.AdmissionImages()) != "" {
		return nil, nil
	}
	was, is := w.bystood[from], map[string]judge.Bystander{}
	all := w.bystanders()
	limit := boldLimit
	if was != nil {
		limit = judge.EffectLimit
	}
	err = lookUntil(ctx, limit, lookPause, func() (bool, error) {
		done := true
		for _, what := range slices.Sorted(maps.Keys(w.plain)) {
			namespaces := w.ObjectNamespaces(all[what].GetNamespace())
			values, refused, err := w.tryCreate(ctx, all[what], namespaces[0])
			if err != nil {
				return false, err
			}
			switch {
			case values != nil:
				is[what] = became(w.plain[what], values)
			case refused != "":
				is[what] = judge.Bystander{Refused: refused}
			default:
				delete(is, what)
			}
			done = done && (was != nil || len(is[what].Sets) > 0)
		}
		findings = judge.Bystanders(from, r.Name, was, is)
		return done && len(findings) == 0, nil
	})
	if err != nil {
		return nil, err
	}
	w.bystood[r.Name] = is
	return findings, nil
}
