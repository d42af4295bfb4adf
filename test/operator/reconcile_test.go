//go:build linux

package operator_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	fieldOwner      = "memcached-operator"
	ownerAnnotation = "cache.example.com/memcached"
	finalizer       = "finalizer.cache.example.com"
	defaultImage    = "docker.io/library/memcached:1.6.39"
)

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s", path, diff)
	}
}

// create makes a Memcached of this spec.
func create(t *testing.T, ns, name string, spec v1.MemcachedSpec) *v1.Memcached {
	t.Helper()
	m := &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: spec}
	must(t, admin.Create(t.Context(), m))
	t.Cleanup(func() {
		// Nobody waits for the operator's goodbye, which may not be there any more.
		err := admin.Delete(context.Background(), m, client.Preconditions{UID: &m.UID})
		if err == nil {
			err = admin.Patch(context.Background(), m.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !meta.IsNoMatchError(err) {
			t.Error(err)
		}
	})
	return m
}

// edit changes an object, again if somebody else was faster.
func edit[O client.Object](t *testing.T, object O, change func(O)) {
	t.Helper()
	eventually(t, "edit "+object.GetName(), func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return admin.Update(t.Context(), object, client.FieldOwner("vandal"))
	})
}

// operandOf is what a Memcached owns, by kind.
func operandOf(t *testing.T, m *v1.Memcached) map[string]client.Object {
	t.Helper()
	parts := map[string]client.Object{}
	eventually(t, "the operand of "+m.Name+" is there", func() error {
		for kind, list := range map[string]client.ObjectList{
			"Deployment": &appsv1.DeploymentList{}, "Service": &corev1.ServiceList{},
			"PodDisruptionBudget": &policyv1.PodDisruptionBudgetList{}, "NetworkPolicy": &networkingv1.NetworkPolicyList{},
		} {
			if err := admin.List(t.Context(), list, client.InNamespace(m.Namespace)); err != nil {
				return err
			}
			delete(parts, kind)
			if err := meta.EachListItem(list, func(o runtime.Object) error {
				object := o.(client.Object)
				if owner := metav1.GetControllerOf(object); owner != nil && owner.UID == m.UID {
					if parts[kind] != nil {
						return fmt.Errorf("two %ss of one Memcached", kind)
					}
					parts[kind] = object
				}
				return nil
			}); err != nil {
				return err
			}
			if wanted := kind != "PodDisruptionBudget" || m.Spec.Replicas > 1; wanted != (parts[kind] != nil) {
				return fmt.Errorf("a %s should be there: %t", kind, wanted)
			}
		}
		return nil
	})
	return parts
}

// happened counts the events about a Memcached by their reasons. Each is of another revision of the object, so none
// is a series.
func happened(t *testing.T, m *v1.Memcached) map[string]int {
	t.Helper()
	var list eventsv1.EventList
	must(t, admin.List(context.Background(), &list, client.InNamespace(m.Namespace)))
	counts := map[string]int{}
	for _, e := range list.Items {
		if e.Regarding.UID != m.UID || e.ReportingController != "memcached-operator" {
			continue
		}
		counts[e.Type+" "+e.Reason]++
		if e.Series != nil {
			t.Errorf("told %d times: %+v", e.Series.Count, e)
		}
	}
	return counts
}

// everything is a spec that says all that there is to say.
func everything() v1.MemcachedSpec {
	quantity := func(s string) *resource.Quantity { return ptr.To(resource.MustParse(s)) }
	return v1.MemcachedSpec{
		Replicas: 2,
		Image:    &v1.Image{Repository: "registry.example.com:5000/team/memcached", Tag: "1.6", PullPolicy: corev1.PullIfNotPresent},
		Service:  v1.Service{Port: 11300},
		Cache:    v1.Cache{MemoryMegabytes: 100, MaxConnections: 50, ExtraArgs: []string{"-v"}},
		Resources: &v1.Resources{
			Requests: v1.ResourceList{CPU: quantity("20m"), Memory: quantity("150Mi")},
			Limits:   v1.ResourceList{CPU: quantity("1"), Memory: quantity("200Mi")},
		},
	}
}

// The manager's own list says which fields it manages. Each is changed in all the ways that the API server lets it be,
// and must become again what it was.
func TestDriftIsRepaired(t *testing.T) {
	share(t)
	ns := namespace(t)
	start(t, nil, "WATCH_NAMESPACE="+ns)
	m := create(t, ns, "m", everything())
	available(t, ns, m.Name)
	// A field of somebody else's, by which the pods need not follow each change. It must outlive them all.
	edit(t, operandOf(t, m)["Deployment"].(*appsv1.Deployment), func(d *appsv1.Deployment) { d.Spec.Paused = true })

	var outcome strings.Builder
	for _, kind := range []string{"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"} {
		typed := operandOf(t, m)[kind]
		gvk, err := admin.GroupVersionKindFor(typed)
		must(t, err)
		asItWas := &unstructured.Unstructured{}
		asItWas.SetGroupVersionKind(gvk)
		must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(typed), asItWas))
		for _, path := range managed(t, asItWas) {
			result := "is repaired"
			if !vandalize(t, asItWas, path) {
				result = "can't be changed"
			}
			fmt.Fprintf(&outcome, "%s %s %s\n", kind, strings.ReplaceAll(path.String(), string(m.UID), "UID"), result)
		}
	}
	golden(t, "drift.txt", outcome.String())

	var d appsv1.Deployment
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(operandOf(t, m)["Deployment"]), &d))
	if !d.Spec.Paused {
		t.Error("the operator unpaused the Deployment")
	}
}

// managed is the paths that the operator owns by server-side apply, sorted: fields, and whole items of lists.
func managed(t *testing.T, object *unstructured.Unstructured) []fieldpath.Path {
	t.Helper()
	var paths []fieldpath.Path
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != fieldOwner {
			continue
		}
		if entry.Operation != metav1.ManagedFieldsOperationApply {
			t.Errorf("%s: the operator did %s, not apply", object.GetKind(), entry.Operation)
		}
		var set fieldpath.Set
		must(t, set.FromJSON(entry.FieldsV1.GetRawReader()))
		set.Iterate(func(p fieldpath.Path) { paths = append(paths, p.Copy()) })
	}
	if len(paths) == 0 {
		t.Errorf("the operator owns nothing of %s", object.GetKind())
	}
	slices.SortFunc(paths, func(a, b fieldpath.Path) int { return strings.Compare(a.String(), b.String()) })
	return paths
}

// at returns the value at a path, and functions that replace and remove it. It is nil if there is none.
func at(t *testing.T, object *unstructured.Unstructured, path fieldpath.Path) (found any, set func(any), drop func()) {
	t.Helper()
	found = object.Object
	for _, element := range path {
		parent, put := found, set
		switch {
		case element.FieldName != nil:
			fields, ok := parent.(map[string]any)
			if !ok {
				return nil, nil, nil
			}
			key := *element.FieldName
			found = fields[key]
			set, drop = func(v any) { fields[key] = v }, func() { delete(fields, key) }
		case element.Key != nil:
			items, ok := parent.([]any)
			if !ok {
				return nil, nil, nil
			}
			index := slices.IndexFunc(items, func(item any) bool {
				fields, ok := item.(map[string]any)
				return ok && !slices.ContainsFunc(*element.Key, func(k value.Field) bool { return fmt.Sprint(fields[k.Name]) != fmt.Sprint(k.Value.Unstructured()) })
			})
			if index < 0 {
				return nil, nil, nil
			}
			found = items[index]
			set, drop = func(v any) { items[index] = v }, func() { put(slices.Delete(slices.Clone(items), index, index+1)) }
		default:
			t.Fatalf("a path of an unknown kind: %s", path)
		}
		if found == nil {
			return nil, set, drop
		}
	}
	return found, set, drop
}

// others is values that differ from v, some of which an API server may take in its place.
func others(v any) []any {
	switch v := v.(type) {
	case string:
		return []any{"1" + v, v + "1", "UDP", "Always", "Recreate", "DoNotSchedule", "Unconfined", "IfHealthyBudget"}
	case int64:
		return []any{v + 1, v - 1}
	case bool:
		return []any{!v}
	case []any:
		return []any{append(slices.Clone(v), "-vv"), append(slices.Clone(v), "CHOWN"), v[:len(v)-1], []any{}}
	case map[string]any:
		var out []any
		for _, key := range slices.Sorted(maps.Keys(v)) {
			without := maps.Clone(v)
			delete(without, key)
			out = append(out, without)
		}
		return append(out, map[string]any{})
	}
	return nil
}

// vandalize changes what is at path, in the first way that the API server takes, and waits until it is as it was and the
// operator's again. It returns false if no change is taken.
func vandalize(t *testing.T, asItWas *unstructured.Unstructured, path fieldpath.Path) bool {
	t.Helper()
	was, _, _ := at(t, asItWas, path)
	if was == nil {
		t.Errorf("there is nothing at %s", path)
	}
	// try takes a change to the API server, and reports whether it made the difference that was meant.
	try := func(change func(*unstructured.Unstructured)) (took bool) {
		eventually(t, "change "+path.String(), func() error {
			live := asItWas.DeepCopy()
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(asItWas), live); err != nil {
				return err
			}
			change(live)
			err := admin.Update(t.Context(), live, client.FieldOwner("vandal"))
			if apierrors.IsConflict(err) {
				return err
			}
			now, _, _ := at(t, live, path)
			took = err == nil && !equality.Semantic.DeepEqual(now, was)
			return nil
		})
		return took
	}
	var changes []func(*unstructured.Unstructured)
	for _, other := range others(was) {
		changes = append(changes, func(o *unstructured.Unstructured) {
			if _, set, _ := at(t, o, path); set != nil {
				set(other)
			}
		}, func(o *unstructured.Unstructured) { // the same without what goes along with it
			last := path[len(path)-1].FieldName
			if _, set, _ := at(t, o, path[:len(path)-1]); set != nil && last != nil {
				set(map[string]any{*last: other})
			}
		})
	}
	changes = append(changes, func(o *unstructured.Unstructured) {
		if _, _, drop := at(t, o, path); drop != nil {
			drop()
		}
	})
	if !slices.ContainsFunc(changes, try) {
		return false
	}
	live := asItWas.DeepCopy()
	eventually(t, path.String()+" is repaired", func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(asItWas), live); err != nil {
			return err
		}
		if now, _, _ := at(t, live, path); !equality.Semantic.DeepEqual(now, was) {
			return fmt.Errorf("it is %v, not %v", now, was)
		}
		if !slices.ContainsFunc(managed(t, live), path.Equals) {
			return errors.New("the operator does not own it")
		}
		return nil
	})
	// What the change left besides is the vandal's own, and he takes it away again.
	eventually(t, "tidy up after "+path.String(), func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(asItWas), live); err != nil {
			return err
		}
		for _, field := range []string{"spec"} {
			live.Object[field] = runtime.DeepCopyJSONValue(asItWas.Object[field])
		}
		live.SetLabels(asItWas.GetLabels())
		return admin.Update(t.Context(), live, client.FieldOwner("vandal"))
	})
	return true
}

func TestForeignFieldsAreLeftAlone(t *testing.T) {
	share(t)
	ns := namespace(t)
	start(t, nil, "WATCH_NAMESPACE="+ns)
	m := create(t, ns, "m", v1.MemcachedSpec{})
	available(t, ns, m.Name)
	parts := operandOf(t, m)
	for _, part := range parts {
		edit(t, part, func(o client.Object) {
			o.SetAnnotations(labels.Merge(o.GetAnnotations(), labels.Set{"example.com/theirs": "yes"}))
			o.SetLabels(labels.Merge(o.GetLabels(), labels.Set{"example.com/theirs": "yes"}))
		})
	}
	edit(t, parts["Deployment"].(*appsv1.Deployment), func(d *appsv1.Deployment) {
		d.Spec.MinReadySeconds = 1
		d.Spec.Template.Annotations["example.com/restarted"] = "once"
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "example.com/sidecar:1"})
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "THEIRS", Value: "yes"}}
	})
	edit(t, parts["Service"].(*corev1.Service), func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "exporter", Port: 9150})
		s.Spec.PublishNotReadyAddresses = true
	})
	// Both the operator's writes and its reads of what others wrote come after this.
	edit(t, m, func(m *v1.Memcached) { m.Spec.Replicas, m.Spec.Service.Port = 3, 11300 })
	available(t, ns, m.Name)
	parts = operandOf(t, m)
	for kind, part := range parts {
		if part.GetLabels()["example.com/theirs"] != "yes" || part.GetAnnotations()["example.com/theirs"] != "yes" {
			t.Errorf("%s lost what others wrote", kind)
		}
	}
	d, s := parts["Deployment"].(*appsv1.Deployment), parts["Service"].(*corev1.Service)
	if d.Spec.MinReadySeconds != 1 || d.Spec.Template.Annotations["example.com/restarted"] != "once" || len(d.Spec.Template.Spec.Containers) != 2 || len(d.Spec.Template.Spec.Containers[0].Env) != 1 || *d.Spec.Replicas != 3 {
		t.Errorf("the Deployment became %+v", d.Spec)
	}
	if len(s.Spec.Ports) != 2 || !s.Spec.PublishNotReadyAddresses || s.Spec.Ports[0].Port != 11300 && s.Spec.Ports[1].Port != 11300 {
		t.Errorf("the Service became %+v", s.Spec)
	}
}

func TestDeletedObjectsComeBack(t *testing.T) {
	share(t)
	ns := namespace(t)
	start(t, nil, "WATCH_NAMESPACE="+ns)
	m := create(t, ns, "m", v1.MemcachedSpec{Replicas: 2})
	available(t, ns, m.Name)
	for kind, part := range operandOf(t, m) {
		must(t, admin.Delete(t.Context(), part))
		eventually(t, "another "+kind, func() error {
			if now := operandOf(t, m)[kind]; now.GetUID() == part.GetUID() || now.GetDeletionTimestamp() != nil {
				return errors.New("there is only the old one")
			}
			return nil
		})
	}
	available(t, ns, m.Name)
	// kubectl scale writes through another door than kubectl edit.
	d := operandOf(t, m)["Deployment"]
	must(t, admin.SubResource("scale").Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`)), client.FieldOwner("kubectl")))
	eventually(t, "the size is as the spec asks", func() error {
		if n := *operandOf(t, m)["Deployment"].(*appsv1.Deployment).Spec.Replicas; n != 2 {
			return fmt.Errorf("it is %d", n)
		}
		return nil
	})
}

func TestNamesDoNotCollide(t *testing.T) {
	share(t)
	ns := namespace(t)
	start(t, nil, "WATCH_NAMESPACE="+ns)
	long := strings.Repeat(strings.Repeat("n", 61)+".", 4)
	names := []string{
		"a.b", "a-b", "a.b.c", "a-b.c", "1", "1.2.3.4", strings.Repeat("m", 53), strings.Repeat("m", 54), strings.Repeat("m", 55),
		long + "aaaaa", long + "aaaab", strings.Repeat("n", 63) + ".a", strings.Repeat("n", 63) + ".b",
	}
	var all []*v1.Memcached
	for _, name := range names {
		all = append(all, create(t, ns, name, v1.MemcachedSpec{Replicas: 2}))
	}
	// What is made for a name that does not fit is itself a name that fits.
	for _, m := range slices.Clone(all) {
		if derived := strings.TrimPrefix(operandOf(t, m)["Service"].GetName(), "memcached-"); derived != m.Name {
			all = append(all, create(t, ns, derived, v1.MemcachedSpec{Replicas: 2}))
		}
	}
	if len(all) < 20 {
		t.Errorf("only %d objects: few names were too long", len(all))
	}
	taken := map[string]string{}
	for _, m := range all {
		m = available(t, ns, m.Name)
		if other := taken[operandOf(t, m)["Service"].GetName()]; other != "" {
			t.Errorf("%s and %s have the same Service", m.Name, other)
		}
		taken[operandOf(t, m)["Service"].GetName()] = m.Name
	}
	for _, m := range all {
		parts := operandOf(t, m)
		for kind, selector := range map[string]labels.Selector{
			"Service":             labels.SelectorFromSet(parts["Service"].(*corev1.Service).Spec.Selector),
			"Deployment":          asSelector(t, parts["Deployment"].(*appsv1.Deployment).Spec.Selector),
			"PodDisruptionBudget": asSelector(t, parts["PodDisruptionBudget"].(*policyv1.PodDisruptionBudget).Spec.Selector),
			"NetworkPolicy":       asSelector(t, &parts["NetworkPolicy"].(*networkingv1.NetworkPolicy).Spec.PodSelector),
		} {
			var pods corev1.PodList
			must(t, admin.List(t.Context(), &pods, client.InNamespace(ns), client.MatchingLabelsSelector{Selector: selector}))
			if len(pods.Items) != 2 || pods.Items[0].Annotations[ownerAnnotation] != m.Name {
				t.Errorf("the %s of %s selects %d pods, the first of %s", kind, m.Name, len(pods.Items), pods.Items[0].Annotations[ownerAnnotation])
			}
		}
		eventually(t, "the event that "+m.Name+" is available", func() error {
			if got := happened(t, m); got["Normal AvailableTrue"] != 1 {
				return fmt.Errorf("the events are %v", got)
			}
			return nil
		})
	}
}

func asSelector(t *testing.T, s *metav1.LabelSelector) labels.Selector {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	must(t, err)
	return selector
}

func TestImages(t *testing.T) {
	share(t)
	ns := namespace(t)
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for i, env := range []struct {
		vars     []string
		fallback string
	}{
		{nil, defaultImage},
		{[]string{"MEMCACHED_IMAGE=tutorial.example.com/memcached:1.4"}, "tutorial.example.com/memcached:1.4"},
		{[]string{"MEMCACHED_IMAGE=tutorial.example.com/memcached:1.4", "RELATED_IMAGE_MEMCACHED=mirror:5000/memcached@" + digest}, "mirror:5000/memcached@" + digest},
	} {
		manager := start(t, nil, append(env.vars, "WATCH_NAMESPACE="+ns)...)
		for name, test := range map[string]struct {
			image *v1.Image
			want  string
		}{
			"none":          {nil, env.fallback},
			"pull-policy":   {&v1.Image{PullPolicy: corev1.PullAlways}, env.fallback},
			"no-tag":        {&v1.Image{Repository: "memcached"}, "memcached"},
			"port-no-tag":   {&v1.Image{Repository: "localhost:5000/memcached"}, "localhost:5000/memcached"},
			"port-tag":      {&v1.Image{Repository: "registry.example.com:5000/a/b/memcached", Tag: "1.6"}, "registry.example.com:5000/a/b/memcached:1.6"},
			"digest":        {&v1.Image{Repository: "memcached", Digest: digest}, "memcached@" + digest},
			"tag-digest":    {&v1.Image{Repository: "r:5000/memcached", Tag: "1.6", Digest: digest}, "r:5000/memcached:1.6@" + digest},
			"whole":         {&v1.Image{Repository: "r:5000/memcached:1.6@" + digest}, "r:5000/memcached:1.6@" + digest},
			"tag-alone":     {&v1.Image{Tag: "1.5"}, cmp.Or(map[int]string{0: "docker.io/library/memcached:1.5", 1: "tutorial.example.com/memcached:1.5", 2: "mirror:5000/memcached:1.5"}[i])},
			"address-ipv4":  {&v1.Image{Repository: "127.0.0.1:5000/memcached", Tag: "latest"}, "127.0.0.1:5000/memcached:latest"},
			"default-named": {&v1.Image{Repository: "docker.io/library/memcached", Tag: "1.6.39"}, defaultImage},
		} {
			name = fmt.Sprintf("%s-%d", name, i)
			create(t, ns, name, v1.MemcachedSpec{Replicas: 1, Image: test.image})
			m := available(t, ns, name)
			if got := operandOf(t, m)["Deployment"].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image; got != test.want {
				t.Errorf("%s: the image is %s, not %s", name, got, test.want)
			}
		}
		// One that relies on the default follows it.
		eventually(t, "the first follows the default image", func() error {
			m := available(t, ns, "none-0")
			if got := operandOf(t, m)["Deployment"].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image; got != env.fallback {
				return fmt.Errorf("its image is %s", got)
			}
			return nil
		})
		manager.stop(t)
	}
}

// condition waits until a Memcached's condition has this status and reason, and returns its message.
func condition(t *testing.T, m *v1.Memcached, kind, want string) string {
	t.Helper()
	var message string
	eventually(t, m.Name+" is "+kind+"="+want, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		is := meta.FindStatusCondition(m.Status.Conditions, kind)
		if is == nil || string(is.Status)+"/"+is.Reason != want || is.ObservedGeneration != m.Generation || m.Status.ObservedGeneration != m.Generation {
			return fmt.Errorf("generation %d, status %+v", m.Generation, m.Status)
		}
		message = is.Message
		return nil
	})
	return message
}

func TestStatusThroughALife(t *testing.T) {
	share(t)
	must(t, world.LoadImage(t.Context(), "example.com/broken:1", "/bin/false"))

	t.Run("nothing is wrong", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		start(t, nil, "WATCH_NAMESPACE="+ns)
		m := create(t, ns, "m", v1.MemcachedSpec{Replicas: 3})
		m = available(t, ns, m.Name)
		var pods corev1.PodList
		must(t, admin.List(t.Context(), &pods, client.InNamespace(ns)))
		want := map[string]v1.Node{}
		for _, pod := range pods.Items {
			want[pod.Name] = v1.Node{Ready: true}
		}
		if diff := gocmp.Diff(want, m.Status.Nodes); diff != "" || len(want) != 3 {
			t.Error(diff)
		}
		edit(t, m, func(m *v1.Memcached) { m.Spec.Replicas = 1 })
		m = available(t, ns, m.Name)
		if len(m.Status.Nodes) != 1 {
			t.Errorf("the nodes are %v", m.Status.Nodes)
		}
		expectEvents(t, m, map[string]int{"Normal ProgressingTrue": 2, "Normal AvailableTrue": 1, "Normal ProgressingFalse": 2})
	})

	t.Run("the servers do not start", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		start(t, nil, "WATCH_NAMESPACE="+ns)
		m := create(t, ns, "m", v1.MemcachedSpec{Image: &v1.Image{Repository: "example.com/broken", Tag: "1"}})
		condition(t, m, v1.ConditionAvailable, "False/NoPodReady")
		condition(t, m, v1.ConditionProgressing, "True/RollingOut")
		condition(t, m, v1.ConditionDegraded, "False/AsExpected")
		edit(t, m, func(m *v1.Memcached) { m.Spec.Image = nil })
		m = available(t, ns, m.Name)
		expectEvents(t, m, map[string]int{"Normal ProgressingTrue": 1, "Normal AvailableTrue": 1, "Normal ProgressingFalse": 1})
		// Servers that are there go on while others do not start.
		edit(t, m, func(m *v1.Memcached) { m.Spec.Image = &v1.Image{Repository: "example.com/broken", Tag: "1"} })
		condition(t, m, v1.ConditionProgressing, "True/RollingOut")
		condition(t, m, v1.ConditionAvailable, "True/AllPodsReady")
	})

	t.Run("a quota", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		start(t, nil, "WATCH_NAMESPACE="+ns)
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}}}
		must(t, admin.Create(t.Context(), quota))
		eventually(t, "the quota is reckoned", func() error {
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(quota), quota); err != nil {
				return err
			}
			if len(quota.Status.Hard) == 0 {
				return errors.New("not yet")
			}
			return nil
		})
		m := create(t, ns, "m", v1.MemcachedSpec{Replicas: 2})
		if message := condition(t, m, v1.ConditionDegraded, "True/DeploymentFailing"); !strings.Contains(message, "exceeded quota") {
			t.Errorf("says %s", message)
		}
		condition(t, m, v1.ConditionAvailable, "True/SomePodsReady")
		must(t, admin.Delete(t.Context(), quota))
		m = available(t, ns, m.Name)
		expectEvents(t, m, map[string]int{"Normal ProgressingTrue": 1, "Normal AvailableTrue": 1, "Normal ProgressingFalse": 1, "Warning DegradedTrue": 1, "Normal DegradedFalse": 1})
	})

	t.Run("a name that is taken", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		start(t, nil, "WATCH_NAMESPACE="+ns)
		theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "memcached-m"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
		must(t, admin.Create(t.Context(), theirs))
		m := create(t, ns, "m", v1.MemcachedSpec{Replicas: 1})
		if message := condition(t, m, v1.ConditionDegraded, "True/NameTaken"); !strings.Contains(message, "Service "+ns+"/memcached-m exists and belongs to another owner") {
			t.Errorf("says %s", message)
		}
		condition(t, m, v1.ConditionAvailable, "True/AllPodsReady")
		must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs))
		if len(theirs.OwnerReferences) != 0 || len(theirs.Labels) != 0 {
			t.Errorf("it became %+v", theirs)
		}
		must(t, admin.Delete(t.Context(), theirs))
		// The operator looks again by itself, once a minute; a changed label has it look now.
		edit(t, m, func(m *v1.Memcached) { m.Labels = map[string]string{"look": "again"} })
		m = available(t, ns, m.Name)
		expectEvents(t, m, map[string]int{"Normal ProgressingTrue": 1, "Normal AvailableTrue": 1, "Normal ProgressingFalse": 1, "Warning DegradedTrue": 1, "Normal DegradedFalse": 1})
	})

	t.Run("a spec that admission did not see", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		start(t, nil, "WATCH_NAMESPACE="+ns)
		m := create(t, ns, "m", v1.MemcachedSpec{Replicas: 1})
		m = available(t, ns, m.Name)
		edit(t, m, func(m *v1.Memcached) { m.Spec.Cache.ExtraArgs = []string{"-p1"} })
		if message := condition(t, m, v1.ConditionDegraded, "True/InvalidSpec"); !strings.Contains(message, "spec.cache.extraArgs[0]: Forbidden: the operator sets -p itself") {
			t.Errorf("says %s", message)
		}
		condition(t, m, v1.ConditionAvailable, "True/AllPodsReady")
		edit(t, m, func(m *v1.Memcached) { m.Spec.Cache.ExtraArgs = nil })
		m = available(t, ns, m.Name)
		expectEvents(t, m, map[string]int{"Normal ProgressingTrue": 2, "Normal AvailableTrue": 1, "Normal ProgressingFalse": 2, "Warning DegradedTrue": 1, "Normal DegradedFalse": 1})
	})
}

// expectEvents waits until there have been as many events about m, by type and reason, as wanted. A rollout that is over
// before anybody looked is none: of those there may be fewer.
func expectEvents(t *testing.T, m *v1.Memcached, want map[string]int) {
	t.Helper()
	const begins, ends = "Normal ProgressingTrue", "Normal ProgressingFalse"
	eventually(t, "the events about "+m.Name, func() error {
		got := happened(t, m)
		if got[begins] != got[ends] || got[begins] > want[begins] {
			return fmt.Errorf("%d rollouts begin, %d end, of %d", got[begins], got[ends], want[begins])
		}
		got[begins], got[ends] = want[begins], want[ends]
		if diff := gocmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// A status that answers a generation never says that it is rolled out before its Deployment is.
func TestStatusIsNeverAhead(t *testing.T) {
	share(t)
	ns := namespace(t)
	start(t, nil, "WATCH_NAMESPACE="+ns)
	m := create(t, ns, "m", v1.MemcachedSpec{Replicas: 1})
	m = available(t, ns, m.Name)
	deployment := operandOf(t, m)["Deployment"].GetName()
	statuses, err := admin.Watch(t.Context(), &v1.MemcachedList{}, client.InNamespace(ns))
	must(t, err)
	defer statuses.Stop()
	rollouts, err := admin.Watch(t.Context(), &appsv1.DeploymentList{}, client.InNamespace(ns))
	must(t, err)
	defer rollouts.Stop()
	const changes = 10
	for i := range changes {
		edit(t, m, func(m *v1.Memcached) {
			m.Spec.Image = &v1.Image{Repository: "example.com/memcached", Tag: strconv.Itoa(i)}
		})
		m = available(t, ns, m.Name)
		tag := "example.com/memcached:" + strconv.Itoa(i)
		claimed := until(t, statuses, func(o runtime.Object) bool {
			s := o.(*v1.Memcached)
			return s.Status.ObservedGeneration == m.Generation && meta.IsStatusConditionFalse(s.Status.Conditions, v1.ConditionProgressing)
		})
		done := until(t, rollouts, func(o runtime.Object) bool {
			d := o.(*appsv1.Deployment)
			return d.Name == deployment && d.Spec.Template.Spec.Containers[0].Image == tag && d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 1 && d.Status.Replicas == 1 && d.Status.AvailableReplicas == 1
		})
		if claimed < done {
			t.Errorf("change %d: rolled out, says the status of revision %d; the Deployment was so in %d", i, claimed, done)
		}
	}
	expectEvents(t, m, map[string]int{"Normal ProgressingTrue": 1 + changes, "Normal AvailableTrue": 1, "Normal ProgressingFalse": 1 + changes})
}

// until reads events until one is of an object for which is holds, and returns its revision.
func until(t *testing.T, events watch.Interface, is func(runtime.Object) bool) uint64 {
	t.Helper()
	for e := range events.ResultChan() {
		if e.Type != watch.Error && is(e.Object) {
			return revision(t, e.Object.(client.Object))
		}
	}
	t.Fatal("the watch ended")
	return 0
}

// revision is the count of all writes to the cluster up to this one of the object.
func revision(t *testing.T, object client.Object) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	must(t, err)
	return n
}

// revisions is the resource version of everything that the operator writes in a namespace.
func revisions(t *testing.T, ns string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, list := range []client.ObjectList{
		&v1.MemcachedList{}, &appsv1.DeploymentList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}, &eventsv1.EventList{},
	} {
		must(t, admin.List(t.Context(), list, client.InNamespace(ns)))
		must(t, meta.EachListItem(list, func(o runtime.Object) error {
			object := o.(client.Object)
			if e, ok := o.(*eventsv1.Event); ok && e.ReportingController != "memcached-operator" {
				return nil
			}
			out[fmt.Sprintf("%T %s", object, object.GetName())] = object.GetResourceVersion()
			return nil
		}))
	}
	return out
}

// settled waits until the counters of the Deployments and budgets, which are not the operator's, have come to rest.
func settledIn(t *testing.T, ns string) map[string]string {
	t.Helper()
	before := revisions(t, ns)
	calm := 0
	eventually(t, "nothing changes", func() error {
		now := revisions(t, ns)
		if calm++; !maps.Equal(before, now) {
			before, calm = now, 0
		}
		if calm < 10 {
			return errors.New(gocmp.Diff(before, now))
		}
		return nil
	})
	return before
}

// reconciled counts the reconciliations of a Memcached in the log of a manager that was started with --zap-log-level=5.
func reconciled(p *process, ns, name string) int {
	n := 0
	for _, e := range p.entries() {
		if e["msg"] == "Reconcile successful" && e["namespace"] == ns && e["name"] == name {
			n++
		}
	}
	return n
}

func TestNoOpWritesNothing(t *testing.T) {
	share(t)
	ns := namespace(t)
	manager := start(t, []string{"--zap-log-level=5"}, "WATCH_NAMESPACE="+ns)
	names := []string{"m", "everything", "dots.in.it"}
	for _, name := range names {
		spec := v1.MemcachedSpec{Replicas: 1}
		if name == "everything" {
			spec = everything()
		}
		create(t, ns, name, spec)
		available(t, ns, name)
	}
	before := settledIn(t, ns)

	t.Run("after a change that means nothing", func(t *testing.T) {
		counts := map[string]int{}
		for _, name := range names {
			counts[name] = reconciled(manager, ns, name)
			m := available(t, ns, name)
			edit(t, m, func(m *v1.Memcached) { m.Labels = map[string]string{"example.com/touched": "yes"} })
			before[fmt.Sprintf("%T %s", m, m.Name)] = m.ResourceVersion
		}
		for _, name := range names {
			eventually(t, name+" is reconciled", func() error {
				if reconciled(manager, ns, name) <= counts[name] {
					return errors.New("not yet")
				}
				return nil
			})
		}
		if diff := gocmp.Diff(before, settledIn(t, ns)); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("after a restart", func(t *testing.T) {
		manager.stop(t)
		again := start(t, []string{"--zap-log-level=5"}, "WATCH_NAMESPACE="+ns)
		for _, name := range names {
			eventually(t, name+" is reconciled", func() error {
				if reconciled(again, ns, name) == 0 {
					return errors.New("not yet")
				}
				return nil
			})
		}
		if diff := gocmp.Diff(before, settledIn(t, ns)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOwnedObjectsAreCollected(t *testing.T) {
	share(t)
	ns := namespace(t)
	manager := start(t, nil, "WATCH_NAMESPACE="+ns)
	m := create(t, ns, "m", v1.MemcachedSpec{Replicas: 2})
	m = available(t, ns, m.Name)
	for kind, part := range operandOf(t, m) {
		owners := part.GetOwnerReferences()
		want := []metav1.OwnerReference{{APIVersion: v1.GroupVersion.String(), Kind: "Memcached", Name: m.Name, UID: m.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}
		if diff := gocmp.Diff(want, owners); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
	manager.kill()
	edit(t, m, func(m *v1.Memcached) { m.Finalizers = nil })
	must(t, admin.Delete(t.Context(), m))
	gone(t, ns)
}

// gone waits until there is nothing of any Memcached in a namespace.
func gone(t *testing.T, ns string) {
	t.Helper()
	eventually(t, "nothing is left", func() error {
		for _, list := range []client.ObjectList{&v1.MemcachedList{}, &corev1.ServiceList{}, &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}, &corev1.PodList{}} {
			if err := admin.List(t.Context(), list, client.InNamespace(ns)); err != nil {
				return err
			}
			if n := meta.LenList(list); n > 0 {
				return fmt.Errorf("%d in %T", n, list)
			}
		}
		return nil
	})
}
