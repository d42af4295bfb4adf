package upgrade

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/finding"
)

// operand is something that an operator made for an object of ours, directly or for another operand.
type operand struct {
	Kind, Namespace, Name string
	UID                   types.UID
	Of                    string         // the object that it was made for
	Direct                bool           // it belongs to that object, not to another operand
	Images                []string       // of a pod's containers
	Unready               string         // how it does not do what it is for, "" if it does
	Refused               string         // why the cluster never runs a pod, "" if it does
	Restarts              int32          // of a pod's containers
	Claims                []string       // PersistentVolumeClaims that a pod mounts
	OfPod                 bool           // it belongs to a pod, as the claim of an ephemeral volume
	Content               map[string]any // all but metadata and status
	Marks                 map[string]any // what of its metadata tells that somebody wrote it
}

// String names the operand as findings do.
func (o operand) String() string { return o.Kind + "/" + o.Namespace + "/" + o.Name }

// transient reports whether o comes and goes with another operand, which Kubernetes' own controllers make it from.
func (o operand) transient() bool { return o.Kind == "Pod" || o.Kind == "ReplicaSet" || o.OfPod }

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
	{schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, "Job"},
	{schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}, "PodDisruptionBudget"},
	{schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}, "Ingress"},
	{schema.GroupVersionResource{Version: "v1", Resource: "services"}, "Service"},
	{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap"},
	{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "Secret"},
	{schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "ServiceAccount"},
	{schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, kindClaim},
	{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "Pod"},
}

// operandResource returns how the API server calls kind, which is one of operandKinds.
func operandResource(kind string) schema.GroupVersionResource {
	for _, k := range operandKinds {
		if k.Kind == kind {
			return k.GroupVersionResource
		}
	}
	return schema.GroupVersionResource{}
}

// operands lists what belongs to the walk's objects by owner references, by name.
func (w *walk) operands(ctx context.Context) (map[string]operand, error) {
	type owned struct {
		operand
		owners []types.UID
	}
	served, err := w.servedServices(ctx)
	if err != nil {
		return nil, err
	}
	var all []owned
	claims := map[string]operand{}
	for _, kind := range operandKinds {
		list, err := w.dynamic.Resource(kind.GroupVersionResource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.Resource, err)
		}
		for _, m := range list.Items {
			o := owned{operand: operand{
				Kind: kind.Kind, Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID(),
				Unready: unready(kind.Kind, &m, served), Content: content(m.Object), Marks: marks(&m),
			}}
			hideSecrets(kind.Kind, o.Content)
			for _, r := range m.GetOwnerReferences() {
				o.owners = append(o.owners, r.UID)
				o.OfPod = o.OfPod || r.Kind == "Pod"
			}
			if kind.Kind == kindClaim {
				claims[o.String()] = o.operand
			}
			if len(o.owners) > 0 && m.GetDeletionTimestamp() == nil {
				all = append(all, o)
			}
		}
	}
	ours := map[types.UID]string{}
	for _, o := range w.objects {
		ours[o.UID] = o.String()
	}
	objects := maps.Clone(ours)
	found := map[string]operand{}
	for grown := true; grown; {
		grown = false
		for _, o := range all {
			i := slices.IndexFunc(o.owners, func(u types.UID) bool { return ours[u] != "" })
			if i >= 0 && ours[o.UID] == "" {
				o.Of = ours[o.owners[i]]
				o.Direct = slices.ContainsFunc(o.owners, func(u types.UID) bool { return objects[u] != "" })
				ours[o.UID], grown = o.Of, true
				found[o.String()] = o.operand
			}
		}
	}
	if err := w.completePods(ctx, found); err != nil {
		return nil, err
	}
	addClaims(found, claims)
	return found, nil
}

// addClaims adds to found those of claims that pods among found mount: a StatefulSet's claims have no owner.
func addClaims(found, claims map[string]operand) {
	for _, pod := range slices.Sorted(maps.Keys(found)) {
		for _, name := range found[pod].Claims {
			claim, there := claims[name]
			if _, known := found[name]; there && !known {
				claim.Of = found[pod].Of
				found[name] = claim
			}
		}
	}
}

// hideSecrets replaces in place what a Secret holds by digests: reports tell what changed.
func hideSecrets(kind string, content map[string]any) {
	if kind != "Secret" {
		return
	}
	for _, field := range []string{"data", "stringData"} {
		if data, ok := content[field].(map[string]any); ok {
			hidden := map[string]any{}
			for k, v := range data {
				hidden[k] = fmt.Sprintf("(hidden) sha256:%.8x", sha256.Sum256(fmt.Append(nil, v)))
			}
			content[field] = hidden
		}
	}
}

// servedServices names the Services, as namespace/name, that have an endpoint which takes requests.
func (w *walk) servedServices(ctx context.Context) (map[string]bool, error) {
	var slices discoveryv1.EndpointSliceList
	if err := w.watcher.List(ctx, &slices); err != nil {
		return nil, fmt.Errorf("list EndpointSlices: %w", err)
	}
	served := map[string]bool{}
	for i := range slices.Items {
		s := &slices.Items[i]
		if serves(s) {
			served[s.Namespace+"/"+s.Labels[discoveryv1.LabelServiceName]] = true
		}
	}
	return served, nil
}

// completePods adds what only pods have to those among found.
func (w *walk) completePods(ctx context.Context, found map[string]operand) error {
	var pods corev1.PodList
	if err := w.client.List(ctx, &pods); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for _, p := range pods.Items {
		name := "Pod/" + p.Namespace + "/" + p.Name
		if o, ok := found[name]; ok {
			for _, c := range p.Spec.Containers {
				o.Images = append(o.Images, c.Image)
			}
			for _, s := range p.Status.ContainerStatuses {
				o.Restarts += s.RestartCount
				if waiting := s.State.Waiting; waiting != nil && waiting.Reason == cluster.PodRefused {
					o.Refused = waiting.Reason + ": " + waiting.Message
				}
			}
			for _, v := range p.Spec.Volumes {
				if v.PersistentVolumeClaim != nil {
					o.Claims = append(o.Claims, kindClaim+"/"+p.Namespace+"/"+v.PersistentVolumeClaim.ClaimName)
				}
			}
			found[name] = o
		}
	}
	return nil
}

// judgeEndpoints asks whether the Services among operands had an endpoint that takes requests all through timeline.
func judgeEndpoints(timeline []event, operands map[string]operand) []finding.Finding {
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		o := operands[name]
		if o.Kind != kindService {
			continue
		}
		var down, total time.Duration
		var since time.Time
		for _, e := range timeline {
			switch {
			case e.Kind != kindService || e.Name != o.Namespace+"/"+o.Name:
			case e.State != stateReady && since.IsZero():
				since = e.At
			case e.State == stateReady && !since.IsZero():
				down, since = e.At.Sub(since), time.Time{}
				total += down
			}
		}
		if since.IsZero() && total > 0 { // one that still has none is judged as an operand's health
			findings = append(findings, find(codeOperandOutage, name, "it had no ready endpoint for %.1fs during the upgrade", total.Seconds()))
		}
	}
	return findings
}

// explainEndpoints says of Services that lost their endpoints what else was found of a workload of the same object: one that
// the API server refused to change, that was made anew or is less ready than before. What mends that mends the Service.
func explainEndpoints(findings []finding.Finding, operands map[string]operand) []finding.Finding {
	for i, f := range findings {
		service, known := operands[f.Subject.Object]
		if f.Code != codeOperandOutage || !known {
			continue
		}
		for _, g := range findings {
			refused := strings.HasPrefix(g.Code, refusalFamily)
			if !refused && g.Code != codeOperandReplaced && g.Code != codeOperandWorse {
				continue
			}
			if o := workloadOf(service.Of, g.Subject.Object, operands); o != nil {
				findings[i].Cause, findings[i].Fix = fmt.Sprintf("%s, which was made for the same object: %s (%s)", o, g.Message, g.Code), g.Fix
				break
			}
		}
	}
	return findings
}

// refusalFamily is how the codes of what the API server refused begin; their findings name an object by its resource.
const refusalFamily = "U21"

// workloadOf returns the operand with pods that was made for the object called of and that subject names, or nil.
func workloadOf(of, subject string, operands map[string]operand) *operand {
	for _, o := range operands {
		name := "/" + o.Namespace + "/" + o.Name
		runs := slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "Pod"}, o.Kind)
		if runs && o.Of == of && strings.HasSuffix(subject, name) && strings.HasPrefix(strings.ToLower(subject), strings.ToLower(o.Kind)) {
			return &o
		}
	}
	return nil
}

// judgeDropped tells the definitions of from that to does not own any more and that are still there.
func judgeDropped(from, to *release, there map[string]*definition) []finding.Finding {
	var findings []finding.Finding
	for _, d := range from.CRDs {
		if to.CRD(d.Name) == nil && there[d.Name] != nil {
			findings = append(findings, find(codeDefinitionDropped, "CustomResourceDefinition/"+d.Name,
				"%s owned it and %s does not: OLM leaves it, with its objects, to nobody", from.Name, to.Name))
		}
	}
	return findings
}

// judgeOperands compares the operands before and after a hop. That ReplicaSets and pods come and go follows from what
// changed in their owners.
func judgeOperands(before, after map[string]operand) []finding.Finding {
	var findings []finding.Finding
	var rolled []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		is, there := after[name]
		switch {
		case was.Kind == kindClaim && !was.transient() && (!there || is.volume() != was.volume()): // judgeClaims tells
		case idle(was, after): // judgeHealth tells
		case was.Kind == "Pod" && is.UID != was.UID:
			rolled = append(rolled, was.Namespace+"/"+was.Name)
		case was.transient() && is.UID != was.UID:
		case !there && was.Kind == kindService:
			findings = append(findings, find(codePortGone, name, "it was deleted during the upgrade, and its clients find nothing under its name"))
		case !there:
			findings = append(findings, find(codeOperandReplaced, name, "it was deleted during the upgrade"))
		case is.UID != was.UID:
			findings = append(findings, find(codeOperandReplaced, name, "it was deleted and made anew during the upgrade: its UID is another"))
		case is.Restarts > was.Restarts:
			findings = append(findings, find(codeOperandRestarted, name, "its containers were restarted %d times during the upgrade", is.Restarts-was.Restarts))
		case !was.transient():
			places := lost(was.Content, is.Content)
			if changed := credentialsChanged(was, is); len(changed) > 0 {
				findings = append(findings, find(codeCredentials, name, "%s changed although nobody changed the object it was made for", strings.Join(changed, ", ")))
				places = slices.DeleteFunc(places, func(d difference) bool { return slices.Contains(changed, d.Path) })
			}
			if gone := portsGone(was, is); len(gone) > 0 {
				findings = append(findings, find(codePortGone, name, "clients that the old version served fail: %s", strings.Join(gone, "; ")))
				places = slices.DeleteFunc(places, func(d difference) bool { return strings.HasPrefix(d.Path, "spec.ports") || d.Path == "spec.type" })
			}
			if len(places) > 0 {
				findings = append(findings, find(codeOperandChanged, name, "the new version changed it although nobody changed the object it was made for: %s", places))
			}
		}
	}
	if len(rolled) > 0 {
		findings = append(findings, find(codeOperandRolled, "", "the upgrade replaced %d pods that were made for objects: %s", len(rolled), strings.Join(rolled, ", ")))
	}
	return findings
}

// portsGone says what of a Service was offered to clients before, and is not any more.
func portsGone(before, after operand) []string {
	var was, is corev1.Service
	if before.Kind != kindService || runtime.DefaultUnstructuredConverter.FromUnstructured(before.Content, &was) != nil ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(after.Content, &is) != nil {
		return nil
	}
	var gone []string
	for _, p := range was.Spec.Ports {
		if !slices.ContainsFunc(is.Spec.Ports, func(q corev1.ServicePort) bool { return q.Port == p.Port && q.Protocol == p.Protocol }) {
			gone = append(gone, fmt.Sprintf("port %d/%s is gone", p.Port, p.Protocol))
		}
	}
	outside := []corev1.ServiceType{corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer}
	if slices.Contains(outside, was.Spec.Type) && !slices.Contains(outside, is.Spec.Type) {
		gone = append(gone, fmt.Sprintf("type was %s and is %s", was.Spec.Type, is.Spec.Type))
	}
	return gone
}
