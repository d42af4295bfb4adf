package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Operand is something that an operator made for an object of ours, directly or for another operand.
type Operand struct {
	Kind, Namespace, Name string
	UID                   types.UID
	Within                types.UID // its namespace's, where that may come and go with the object
	ResourceVersion       string
	Of                    string         // the object that it was made for
	Direct                bool           // it belongs to that object or to a custom resource below, not to another operand
	Disowned              bool           // it did, and nobody took its place
	Unowned               bool           // it belongs to nobody, and has the object's name in its own
	Images                []string       // of a pod's containers
	Unready               string         // how it does not do what it is for, "" if it does
	Running               int64          // how many pods of it are ready
	Refused               string         // why the cluster never runs a pod, "" if it does
	Crowded               string         // why a pod does not fit beside another one on the only node, "" if it does
	Restarts              int32          // of a pod's containers
	Claims                []string       // PersistentVolumeClaims that a pod mounts
	OfPod                 bool           // it belongs to a pod, as the claim of an ephemeral volume
	Content               map[string]any // all but metadata and status; of a namespace also its labels and annotations
	Marks                 map[string]any // what of its metadata tells that somebody wrote it

	Addresses map[string][]string // that a Secret says, by path: its Content does not
}

// String names the operand as findings do.
func (o Operand) String() string { return o.Kind + "/" + o.Namespace + "/" + o.Name }

// Transient reports whether o comes and goes with another operand, which Kubernetes' own controllers make it from.
func (o Operand) Transient() bool { return o.Kind == "Pod" || o.Kind == "ReplicaSet" || o.OfPod }

// Template returns what a workload makes pods from, and whether it is one.
func (o Operand) Template() (template corev1.PodTemplateSpec, is bool) {
	path := []string{"spec", "template"}
	if o.Kind == "CronJob" {
		path = []string{"spec", "jobTemplate", "spec", "template"}
	}
	content, has, _ := unstructured.NestedMap(o.Content, path...)
	return template, has && runtime.DefaultUnstructuredConverter.FromUnstructured(content, &template) == nil
}

// operandKinds are the kinds that operators make for their users, namespaces before what is in them.
var operandKinds = []struct {
	schema.GroupVersionResource
	Kind string
}{
	{schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, KindNamespace},
	{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, KindSecret},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "Deployment"},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, "StatefulSet"},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}, "DaemonSet"},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, "ReplicaSet"},
	{schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}, "CronJob"},
	{schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, "Job"},
	{schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}, "PodDisruptionBudget"},
	{schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}, "Ingress"},
	{schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}, "NetworkPolicy"},
	{schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}, "HorizontalPodAutoscaler"},
	{schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}, "Role"},
	{schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}, "RoleBinding"},
	{schema.GroupVersionResource{Version: "v1", Resource: "services"}, "Service"},
	{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap"},
	{schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "ServiceAccount"},
	{schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}, "ResourceQuota"},
	{schema.GroupVersionResource{Version: "v1", Resource: "limitranges"}, "LimitRange"},
	{schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, KindClaim},
	{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "Pod"},
}

// OperandResource returns how the API server calls kind, which is one of operandKinds.
func OperandResource(kind string) schema.GroupVersionResource {
	for _, k := range operandKinds {
		if k.Kind == kind {
			return k.GroupVersionResource
		}
	}
	return schema.GroupVersionResource{}
}

// IsOperand reports whether what resource has is found among operands.
func IsOperand(resource schema.GroupResource) bool {
	for _, k := range operandKinds {
		if k.GroupResource() == resource {
			return true
		}
	}
	return false
}

// owned is an object that belongs to others by owner references. One without a kind is no operand, but a custom resource.
type owned struct {
	Operand
	owners []types.UID
	named  string // the object whose name it has in its own, "" if it has owners
}

// Operands lists what belongs to the walk's objects by owner references, by name: directly, or to what belongs to them, and what did
// and belongs to nobody any more.
func (c *Cluster) Operands(ctx context.Context) (map[string]Operand, error) {
	return c.operands(ctx, nil)
}

// RecentOperands is Operands for those who look many times: what watches have not told yet is missing.
func (c *Cluster) RecentOperands(ctx context.Context) (map[string]Operand, error) {
	return c.operands(ctx, c.Watcher.recent)
}

// ConfirmedOperands is Operands for those who ask what is made directly for the walk's objects, and is quicker: a list has the API server wait until its cache
// has caught up, for up to 100 ms (k8s.io/apiserver v0.36.3 pkg/storage/cacher/progress), but one object is read from etcd at once.
func (c *Cluster) ConfirmedOperands(ctx context.Context) (map[string]Operand, error) {
	operands, err := c.RecentOperands(ctx)
	if err != nil {
		return nil, err
	}
	var reading errgroup.Group
	reading.SetLimit(mostLists)
	for _, o := range operands {
		if !o.Direct || o.Transient() {
			continue
		}
		reading.Go(func() error {
			now, err := c.Dynamic.Resource(OperandResource(o.Kind)).Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
			if err == nil && !o.is(now) {
				err = errors.New("it is another by now")
			}
			return err
		})
	}
	if reading.Wait() != nil {
		return c.Operands(ctx)
	}
	return operands, nil
}

// is reports whether nobody has written now since o was read, but for its status.
func (o Operand) is(now *unstructured.Unstructured) bool {
	generation, _ := o.Marks["generation"].(int64)
	return now.GetUID() == o.UID && now.GetGeneration() == generation && (generation > 0 || now.GetResourceVersion() == o.ResourceVersion)
}

func (c *Cluster) operands(ctx context.Context, known *recent) (map[string]Operand, error) {
	served, err := c.servedServices(ctx)
	if err != nil {
		return nil, err
	}
	all := c.between(ctx, known)
	claims := map[string]Operand{}
	named := c.namedAfter()
	lists, err := c.listOperands(ctx, known, c.namespaces())
	if err != nil {
		return nil, err
	}
	within := map[string]types.UID{}
	for i, kind := range operandKinds {
		for _, m := range lists[i] {
			o := owned{Operand: Operand{
				Kind: kind.Kind, Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion(),
				Unready: unready(kind.Kind, &m, served), Running: running(&m), Content: compare.Content(m.Object), Marks: marks(&m),
			}}
			if kind.Kind == KindNamespace {
				within[o.Name] = o.UID
				o.Content["metadata"] = spoken(&m)
			}
			o.Within = within[o.Namespace]
			if kind.Kind == KindSecret {
				o.Addresses = c.Watcher.secrets.hide(o.Content)
			}
			if kind.Kind == "Pod" {
				if err := o.readPod(&m); err != nil {
					return nil, err
				}
			}
			o.owners = ownersOf(&m)
			o.OfPod = slices.ContainsFunc(m.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.Kind == "Pod" })
			if kind.Kind == KindClaim {
				claims[o.String()] = o.Operand
			}
			o.named = named.of(kind.Kind, &m)
			if _, known := c.Made[o.String()]; (known || o.named != "" || len(o.owners) > 0) && m.GetDeletionTimestamp() == nil {
				all = append(all, o)
			}
		}
	}
	found := belonging(c.Objects, c.Made, all)
	addClaims(found, claims)
	return c.HideSecrets(found), nil
}

// NamesMade are the names of what there is, of kinds that operators make, which belongs to o by an owner reference or, in o's namespace or anywhere if o has none, came
// after o and belongs to nobody. What the walk applied for its user is not made.
func (c *Cluster) NamesMade(ctx context.Context, o *Object) (map[string]bool, error) {
	lists, err := c.listOperands(ctx, c.Watcher.recent, []string{o.Namespace})
	made := map[string]bool{}
	for _, m := range slices.Concat(lists...) {
		owners := ownersOf(&m)
		later := !o.Since.IsZero() && len(owners) == 0 && !m.GetCreationTimestamp().Time.Before(o.Since)
		if (slices.Contains(owners, o.UID) || later) && !Applied(&m) {
			made[m.GetName()] = true
		}
	}
	return made, err
}

// spoken is what of a namespace's metadata has a meaning to others: who may run what in it, and on which nodes.
func spoken(namespace *unstructured.Unstructured) map[string]any {
	marks := map[string]any{}
	for _, field := range []string{"labels", "annotations"} {
		if says, has, _ := unstructured.NestedMap(namespace.Object, "metadata", field); has {
			delete(says, corev1.LabelMetadataName)
			marks[field] = says
		}
	}
	return marks
}

// namespaces are those in which operands can be: what belongs to an object with a namespace is in the same.
func (c *Cluster) namespaces() []string {
	all := map[string]bool{}
	for _, o := range c.Objects {
		all[o.Namespace] = true
	}
	if all[metav1.NamespaceAll] {
		return []string{metav1.NamespaceAll}
	}
	return slices.Sorted(maps.Keys(all))
}

// mostLists is how many kinds are listed side by side: one after the other, their round trips would be most of a look.
const mostLists = 8

// listOperands lists each of operandKinds in namespaces, unless it is known. Nobody may change what it returns.
func (c *Cluster) listOperands(ctx context.Context, known *recent, namespaces []string) ([][]unstructured.Unstructured, error) {
	lists := make([][]unstructured.Unstructured, len(operandKinds))
	var listing errgroup.Group
	listing.SetLimit(mostLists)
	for i, kind := range operandKinds {
		if kind.Kind == KindNamespace && !slices.Contains(namespaces, metav1.NamespaceAll) { // what is in one cannot own one
			continue
		}
		listing.Go(func() (err error) {
			if lists[i], err = c.listIn(ctx, known, kind.GroupVersionResource, namespaces); err != nil {
				return fmt.Errorf("list %s: %w", kind.Resource, err)
			}
			return nil
		})
	}
	return lists, listing.Wait()
}

// listIn lists a resource in namespaces, unless it is known. Nobody may change what it returns.
func (c *Cluster) listIn(ctx context.Context, known *recent, resource schema.GroupVersionResource, namespaces []string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, namespace := range namespaces {
		items, err := known.list(place{resource, namespace}, func() (*unstructured.UnstructuredList, error) {
			return c.Dynamic.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		})
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	return all, nil
}

// belonging returns those of all that belong to objects, directly or to what belongs to them, by name, those that did before and belong
// to nobody now, and those that are named after an object and belong to nobody.
func belonging(objects []*Object, before map[string]Operand, all []owned) map[string]Operand {
	ours, custom, names := map[types.UID]string{}, map[types.UID]bool{}, map[string]bool{}
	for _, o := range objects {
		ours[o.UID], custom[o.UID], names[o.String()] = o.String(), true, true
	}
	found := map[string]Operand{}
	grow := func() {
		for grown := true; grown; {
			grown = false
			for _, o := range all {
				i := slices.IndexFunc(o.owners, func(u types.UID) bool { return ours[u] != "" })
				if i < 0 || ours[o.UID] != "" {
					continue
				}
				ours[o.UID], grown = ours[o.owners[i]], true
				if o.Kind == "" {
					custom[o.UID] = true
					continue
				}
				o.Of, o.Direct = ours[o.UID], slices.ContainsFunc(o.owners, func(u types.UID) bool { return custom[u] })
				found[o.String()] = o.Operand
			}
		}
	}
	grow()
	for _, o := range all {
		if was := before[o.String()]; names[was.Of] && was.Direct && was.UID == o.UID && ours[o.UID] == "" && len(o.owners) == 0 {
			o.Of, o.Direct, o.Disowned, o.Unowned = was.Of, true, !was.Unowned, was.Unowned
			ours[o.UID], found[o.String()] = was.Of, o.Operand
		}
	}
	for _, o := range all {
		if names[o.named] && ours[o.UID] == "" {
			o.Of, o.Direct, o.Unowned = o.named, true, true
			ours[o.UID], found[o.String()] = o.named, o.Operand
		}
	}
	grow()
	return found
}

// unownedKinds are the kinds that some operators make without owner references, and by which users are served. Of others, what runs in
// pods makes some as well.
var unownedKinds = []string{
	KindNamespace, "Deployment", "StatefulSet", "DaemonSet", "CronJob", "Service", "Ingress", "PodDisruptionBudget", "NetworkPolicy", "HorizontalPodAutoscaler",
}

// names are the walk's objects after which operands can be named.
type names struct {
	objects  map[string][]*Object // by namespace/name
	operator string               // the namespace where what has such a name may be the operator's
	others   bool                 // objects without a namespace can have operands in any: nobody else is on the cluster
}

func (c *Cluster) namedAfter() names {
	all := names{map[string][]*Object{}, c.Place.Namespace, c.Provider != nil && c.Provider.Disposable()}
	for _, o := range slices.Concat(c.Others, c.Objects) {
		if key := o.Namespace + "/" + o.Name; !o.Since.IsZero() && !slices.Contains(all.objects[key], o) {
			all.objects[key] = append(all.objects[key], o)
		}
	}
	return all
}

// of returns the object with the longest name that m of a kind, which has no owner, has in its own between hyphens, or "" if there is none
// or several. What was there before the object, or what the walk applied for its user, is not made for it.
func (n names) of(kind string, m *unstructured.Unstructured) string {
	if !slices.Contains(unownedKinds, kind) || m.GetNamespace() == n.operator || len(m.GetOwnerReferences()) > 0 {
		return ""
	}
	if Applied(m) {
		return ""
	}
	namespaces := []string{m.GetNamespace()}
	if n.others {
		namespaces = append(namespaces, "")
	}
	parts := strings.Split(m.GetName(), "-")
	for size := len(parts); size > 0; size-- {
		for i := 0; i+size <= len(parts); i++ {
			name := strings.Join(parts[i:i+size], "-")
			for _, namespace := range namespaces {
				older := slices.DeleteFunc(slices.Clone(n.objects[namespace+"/"+name]), func(o *Object) bool { return m.GetCreationTimestamp().Time.Before(o.Since) })
				switch len(older) {
				case 0:
				case 1:
					return older[0].String()
				default:
					return ""
				}
			}
		}
	}
	return ""
}

// Applied reports whether the walk applied m for its user.
func Applied(m *unstructured.Unstructured) bool {
	return slices.ContainsFunc(m.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == "olmkit" && f.Operation == metav1.ManagedFieldsOperationApply
	})
}

// betweenLimit bounds how long a kind is waited for: without its conversion webhook the API server takes half a minute for each object.
const betweenLimit = 5 * time.Second

// between are custom resources of the package that belong to others, as operators make them to divide their work: what hangs below
// them belongs to the object above. While a kind cannot be read, as without its conversion webhook, those that were read last count.
func (c *Cluster) between(ctx context.Context, known *recent) []owned {
	if len(c.CRDs) < 2 { // there is nothing to divide it among
		return nil
	}
	definitions := c.Watcher.Definitions()
	var all []owned
	for _, name := range c.CRDs {
		resource, group, _ := strings.Cut(name, ".")
		if d := definitions[name]; d != nil {
			limited, cancel := context.WithTimeout(ctx, betweenLimit)
			items, err := c.listIn(limited, known, schema.GroupVersionResource{Group: group, Version: d.Storage, Resource: resource}, []string{metav1.NamespaceAll})
			cancel()
			if err == nil {
				c.Watcher.between.Store(name, ownedAmong(items))
			}
		}
		if known, read := c.Watcher.between.Load(name); read {
			all = append(all, known.([]owned)...)
		}
	}
	return all
}

// ownedAmong returns which of the objects belong to others.
func ownedAmong(objects []unstructured.Unstructured) []owned {
	var all []owned
	for _, o := range objects {
		if owners := ownersOf(&o); len(owners) > 0 {
			all = append(all, owned{Operand: Operand{UID: o.GetUID()}, owners: owners})
		}
	}
	return all
}

func ownersOf(o *unstructured.Unstructured) []types.UID {
	var owners []types.UID
	for _, r := range o.GetOwnerReferences() {
		owners = append(owners, r.UID)
	}
	return owners
}

// addClaims adds to found those of claims that pods among found mount: a StatefulSet's claims have no owner.
func addClaims(found, claims map[string]Operand) {
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

// servedServices names the Services, as namespace/name, that have an endpoint which takes requests.
func (c *Cluster) servedServices(ctx context.Context) (map[string]bool, error) {
	var slices discoveryv1.EndpointSliceList
	if err := c.Watcher.List(ctx, &slices); err != nil {
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

// crowded matches what the scheduler says of a pod that would fit on another node than the only one (k8s.io/kubernetes v1.36.3
// pkg/scheduler/framework/plugins, interpodaffinity, nodeports and podtopologyspread).
var crowded = Compiled(`^0/1 nodes are available: .*(anti-affinity|free ports|topology spread constraints[.,])`)

// readPod adds to o what only pods have.
func (o *Operand) readPod(m *unstructured.Unstructured) error {
	var p corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, &p); err != nil {
		return fmt.Errorf("read pod %s/%s: %w", o.Namespace, o.Name, err)
	}
	for _, c := range p.Spec.Containers {
		o.Images = append(o.Images, c.Image)
	}
	for _, s := range p.Status.ContainerStatuses {
		o.Restarts += s.RestartCount
		if waiting := s.State.Waiting; waiting != nil && waiting.Reason == cluster.PodRefused {
			o.Refused = waiting.Reason + ": " + waiting.Message
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && crowded().MatchString(c.Message) {
			o.Crowded = c.Message
		}
	}
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			o.Claims = append(o.Claims, KindClaim+"/"+p.Namespace+"/"+v.PersistentVolumeClaim.ClaimName)
		}
	}
	return nil
}

// KindClaim is the kind of operand that holds data.
const KindClaim = "PersistentVolumeClaim"

// KindNamespace is the kind of what an object of the cluster's scope can have all of its operands in.
const KindNamespace = "Namespace"

// Volume names the PersistentVolume that o, a claim, is bound to, "" for none.
func (o Operand) Volume() string {
	name, _, _ := unstructured.NestedString(o.Content, "spec", "volumeName")
	return name
}

// ClaimsLeft tells which of the claims of before are still there though they are no operands any more: no pod mounts them.
func (c *Cluster) ClaimsLeft(ctx context.Context, before, after map[string]Operand) (map[string]bool, error) {
	left := map[string]bool{}
	for name, was := range before {
		if _, there := after[name]; there || was.Kind != KindClaim {
			continue
		}
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: was.Namespace, Name: was.Name}, &corev1.PersistentVolumeClaim{})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		left[name] = err == nil
	}
	return left, nil
}

// Collect waits until operands, whose objects were deleted, are gone, but no longer than limit. On a cluster that ends with the walk it
// then deletes those that stay: once a CustomResourceDefinition is gone, the garbage collector takes half a minute and longer to look at what
// belonged to an object of it. Claims and what belongs to nobody never go by themselves and are not waited for. What belongs to others as
// well stays, and so do claims that were not made from a StatefulSet's template.
func (c *Cluster) Collect(ctx context.Context, operands map[string]Operand, limit time.Duration) error {
	left := maps.Clone(operands)
	maps.DeleteFunc(left, func(_ string, o Operand) bool { return o.Kind == KindClaim && !fromTemplate(o, operands) })
	err := lifecycle.Poll(ctx, limit, func(ctx context.Context) (bool, error) {
		waits := false
		for name, o := range left {
			m, err := c.Dynamic.Resource(OperandResource(o.Kind)).Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err) || err == nil && (m.GetUID() != o.UID || c.ownedByOthers(m, operands)):
				delete(left, name)
			case err != nil:
				return false, err
			default:
				waits = waits || !o.Disowned && !o.Unowned && o.Kind != KindClaim
			}
		}
		return !waits, nil
	})
	if err != nil && !errors.Is(err, lifecycle.ErrTimeout) {
		return fmt.Errorf("wait for what was made for deleted objects to go: %w", err)
	}
	if !c.Provider.Disposable() {
		return nil
	}
	for name, o := range left {
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(o.UID)), PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
		err := c.Dynamic.Resource(OperandResource(o.Kind)).Namespace(o.Namespace).Delete(ctx, o.Name, options)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete %s, which was made for %s: %w", name, o.Of, err)
		}
	}
	return nil
}

// fromTemplate reports whether a claim is one that a StatefulSet among operands has made: TEMPLATE-STATEFULSET-ORDINAL.
func fromTemplate(claim Operand, operands map[string]Operand) bool {
	stem := strings.TrimRight(claim.Name, "0123456789")
	for _, o := range operands {
		if o.Kind == "StatefulSet" && o.Namespace == claim.Namespace && stem != claim.Name && strings.HasSuffix(stem, "-"+o.Name+"-") {
			return true
		}
	}
	return false
}

// ownedByOthers reports whether m has an owner that is neither one of operands nor of a kind of the package.
func (c *Cluster) ownedByOthers(m *unstructured.Unstructured, operands map[string]Operand) bool {
	return slices.ContainsFunc(m.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		group := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group
		for _, o := range operands {
			if o.UID == owner.UID {
				return false
			}
		}
		return !slices.ContainsFunc(c.CRDs, func(name string) bool {
			_, of, _ := strings.Cut(name, ".")
			return of == group
		})
	})
}
