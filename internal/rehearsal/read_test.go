package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// tea has three bundles in a chain, with what OLM installs of them.
const tea = `{"schema":"olm.package","name":"tea","defaultChannel":"stable"}
{"schema":"olm.channel","package":"tea","name":"stable","entries":[{"name":"tea.v1"},{"name":"tea.v2","replaces":"tea.v1"},{"name":"tea.v3","replaces":"tea.v2"}]}
{"schema":"olm.bundle","package":"tea","name":"tea.v1","image":"example.com/tea:v1","properties":[{"type":"olm.package","value":{"packageName":"tea","version":"1.0.0"}},{"type":"olm.bundle.object","value":{"data":"e30="}}]}
{"schema":"olm.bundle","package":"tea","name":"tea.v2","image":"example.com/tea:v2","properties":[{"type":"olm.package","value":{"packageName":"tea","version":"2.0.0"}},{"type":"olm.bundle.object","value":{"data":"e30="}}]}
{"schema":"olm.bundle","package":"tea","name":"tea.v3","image":"example.com/tea:v3","properties":[{"type":"olm.package","value":{"packageName":"tea","version":"3.0.0"}},{"type":"olm.bundle.object","value":{"data":"e30="}}]}
`

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// live is an API server that answers what the documented rights allow, and nothing else.
type live struct {
	t      *testing.T
	served []string // namespaces, by the OperatorGroup
	pots   []*unstructured.Unstructured
	stored []string // versions of Pots; v1alpha1 and v1 unless it says others
	asked  []string
}

func (l *live) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch o := into.(type) {
	case *v1alpha1.CatalogSource:
		o.Namespace, o.Name = key.Namespace, key.Name
	case *apiextensionsv1.CustomResourceDefinition:
		o.Name = key.Name
		o.UID = "a"
		o.Spec.Group, o.Spec.Scope, o.Spec.Names.Kind, o.Spec.Names.ListKind, o.Spec.Names.Plural = "example.com", "Namespaced", "Pot", "PotList", "pots"
		o.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true}, {Name: "v1", Served: true, Storage: true}}
		o.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: []byte("ca")}}}
		o.Status.StoredVersions = []string{"v1alpha1", "v1"}
		if len(l.stored) > 0 {
			o.Status.StoredVersions = l.stored
			o.Spec.Versions = nil
			for _, v := range l.stored {
				o.Spec.Versions = append(o.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: v, Served: v != "v0", Storage: v == "v1"})
			}
		}
	default:
		l.t.Errorf("it gets a %T", into)
		return errors.New("forbidden")
	}
	l.asked = append(l.asked, fmt.Sprintf("get %T", into))
	return nil
}

func (l *live) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	var asked client.ListOptions
	asked.ApplyOptions(options)
	at := metav1.ObjectMeta{Namespace: "n", Name: "tea"}
	switch o := into.(type) {
	case *v1alpha1.SubscriptionList:
		s := v1alpha1.Subscription{ObjectMeta: at, Spec: &v1alpha1.SubscriptionSpec{Package: "tea", Channel: "stable", CatalogSource: "c", CatalogSourceNamespace: "olm"}}
		s.Status.InstalledCSV, s.Status.CurrentCSV = "tea.v1", "tea.v1"
		o.Items = append(o.Items, s)
	case *v1alpha1.ClusterServiceVersionList:
		v := v1alpha1.ClusterServiceVersion{ObjectMeta: at}
		v.Name, v.CreationTimestamp = "tea.v1", metav1.NewTime(noon)
		v.Annotations = map[string]string{"operatorframework.io/properties": `{"properties":[{"type":"olm.package","value":{"packageName":"tea","version":"1.0.0"}}]}`}
		v.Spec.Version = version.OperatorVersion{Version: semver.MustParse("1.0.0")}
		v.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: "pots.example.com", Kind: "Pot", Version: "v1"}}
		v.Status.Phase = v1alpha1.CSVPhaseSucceeded
		o.Items = append(o.Items, v)
	case *operatorsv1.OperatorGroupList:
		g := operatorsv1.OperatorGroup{ObjectMeta: at}
		g.Status.Namespaces = l.served
		o.Items = append(o.Items, g)
	case *unstructured.UnstructuredList:
		l.list(o, &asked)
	default:
		l.t.Errorf("it lists %T", into)
		return errors.New("forbidden")
	}
	l.asked = append(l.asked, fmt.Sprintf("list %s %T", asked.Namespace, into))
	return nil
}

// list answers with one Pot a page.
func (l *live) list(into *unstructured.UnstructuredList, asked *client.ListOptions) {
	kind := into.GroupVersionKind()
	if kind.Kind != "PotList" || kind.Group != "example.com" {
		l.t.Errorf("it lists %s", kind)
	}
	i := len(asked.Continue)
	o := l.pots[i].DeepCopy()
	o.SetAPIVersion("example.com/" + kind.Version)
	into.Items = append(into.Items, *o)
	if i < len(l.pots)-1 {
		into.SetContinue(strings.Repeat("x", i+1))
	}
}

// pot is a Pot that was last written then.
func pot(name string, written time.Time) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}, "status": map[string]any{"full": true}}}
	o.SetKind("Pot")
	o.SetNamespace("kitchen")
	o.SetName(name)
	o.SetUID(types.UID(name))
	o.SetGeneration(3)
	o.SetFinalizers([]string{"example.com/empty"})
	o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Cook"}})
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: written}}})
	return o
}

func read(t *testing.T, l *live, change func(*Options)) (*Snapshot, error) {
	t.Helper()
	options := Options{
		Package: "tea",
		Catalog: func(context.Context, *v1alpha1.CatalogSource) (*catalog.Catalog, error) {
			return catalog.Parse("tea.json", []byte(tea)), nil
		},
		Pull: func(context.Context, []*catalog.Bundle) error { return nil },
	}
	if change != nil {
		change(&options)
	}
	return Read(t.Context(), l, options)
}

// TestRead: a snapshot has the way that OLM takes, and all objects, each in the version in which it may be stored; it asks for the
// documented kinds alone, and a file of it says the same.
func TestRead(t *testing.T) {
	l := &live{t: t, served: []string{""}, pots: []*unstructured.Unstructured{pot("new", noon.Add(time.Hour)), pot("old", noon.Add(-time.Hour))}}
	s, err := read(t, l, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.Installed); got != "{tea stable tea.v1 n AllNamespaces [] olm/c}" || !slices.Equal(s.Way, []string{"tea.v2", "tea.v3"}) {
		t.Errorf("it has %s, and the way %s", got, s.Way)
	}
	var objects []string
	for _, o := range s.Objects {
		objects = append(objects, o.GetAPIVersion()+" "+o.GetName())
		m := o.Object["metadata"].(map[string]any)
		if len(m) != 3 || o.Object["status"] == nil || len(o.GetFinalizers()) != 1 {
			t.Errorf("it keeps of an object %v", o.Object)
		}
	}
	if got := strings.Join(objects, ", "); got != "example.com/v1alpha1 old, example.com/v1 new" {
		t.Errorf("its objects are %s", got)
	}
	d := s.Definitions[0]
	if d.UID != "" || len(d.Status.StoredVersions) != 2 || d.Spec.Conversion.Webhook.ClientConfig.CABundle != nil {
		t.Errorf("the definition is %+v", d)
	}
	if got := strings.Join(s.Notes, "\n"); !strings.Contains(got, "1 Pot objects are restored as stored in v1alpha1") || !strings.Contains(got, "without their owners") {
		t.Errorf("notes: %s", got)
	}
	data, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	p, plan, err := again.Plan("file")
	if err != nil || len(plan.Hops) != 2 || plan.First() != "tea.v1" || len(p.Bundles) != 3 || len(again.Restore().Objects) != 2 {
		t.Errorf("of the file: %v, %+v", err, plan)
	}
}

// TestReadStored: objects are restored in all versions that status.storedVersions names and that are served; those that were written
// longest ago in the oldest.
func TestReadStored(t *testing.T) {
	for name, test := range map[string]struct {
		stored string
		ages   []int // in hours before the operator came; less than 0 is after
		want   string
		note   string
	}{
		"one version":                 {"v1", []int{3, 2}, "v1 [3 2]", ""},
		"two":                         {"v1alpha1 v1", []int{-1, 5, 4}, "v1alpha1 [5 4] v1 [-1]", "2 Pot objects are restored as stored in v1alpha1, and 1 in v1: "},
		"none was written since":      {"v1alpha1 v1", []int{3, 4, 5}, "v1alpha1 [4 5] v1 [3]", "and 1 in v1: "},
		"all were written since":      {"v1alpha1 v1", []int{-1, -3, -2}, "v1alpha1 [-1] v1 [-3 -2]", "1 Pot objects are restored as stored in v1alpha1, and 2 in v1: "},
		"three":                       {"v1alpha1 v1beta1 v1", []int{2, -1, 4, 3, 5}, "v1alpha1 [4 5] v1beta1 [2 3] v1 [-1]", "2 Pot objects are restored as stored in v1alpha1, 2 Pot objects are restored as stored in v1beta1, and 1 in v1: "},
		"three, one in the oldest":    {"v1alpha1 v1beta1 v1", []int{-2, -1, 4}, "v1alpha1 [4] v1beta1 [-1] v1 [-2]", ""},
		"three, with too few objects": {"v1alpha1 v1beta1 v1", []int{4, 3}, "v1alpha1 [4] v1beta1 [3]", ""},
		"one object, written since":   {"v1alpha1 v1", []int{-1}, "v1 [-1]", ""},
		"one object, not written":     {"v1alpha1 v1", []int{1}, "v1alpha1 [1]", ""},
		"one that is not served":      {"v0 v1alpha1 v1", []int{2, 1, -1}, "v1alpha1 [2 1] v1 [-1]", "may be stored in v0, which is not served"},
	} {
		l := &live{t: t, served: []string{""}, stored: strings.Fields(test.stored)}
		for _, age := range test.ages {
			l.pots = append(l.pots, pot(fmt.Sprint(age), noon.Add(-time.Duration(age)*time.Hour)))
		}
		for range 2 {
			s, err := read(t, l, nil)
			if err != nil {
				t.Fatal(err)
			}
			in := map[string][]string{}
			for _, o := range s.Objects {
				version := o.GroupVersionKind().Version
				in[version] = append(in[version], o.GetName())
			}
			var got []string
			for _, version := range l.stored {
				if len(in[version]) > 0 {
					got = append(got, version, fmt.Sprint(in[version]))
				}
			}
			if strings.Join(got, " ") != test.want || len(s.Objects) != len(test.ages) || !strings.Contains(strings.Join(s.Notes, "\n"), test.note) {
				t.Errorf("%s: %s, want %s; notes: %s", name, got, test.want, s.Notes)
			}
		}
	}
}

// TestReadModes: what the operator serves is as the OperatorGroup says.
func TestReadModes(t *testing.T) {
	for served, want := range map[string]Installed{
		"":    {Mode: lifecycle.AllNamespaces},
		"n":   {Mode: lifecycle.OwnNamespace},
		"m":   {Mode: lifecycle.SingleNamespace, Targets: []string{"m"}},
		"m n": {Mode: lifecycle.MultiNamespace, Targets: []string{"m", "n"}},
	} {
		s, err := read(t, &live{t: t, served: strings.Split(served, " "), pots: []*unstructured.Unstructured{pot("a", noon)}}, nil)
		if err != nil || s.Installed.Mode != want.Mode || !slices.Equal(s.Installed.Targets, want.Targets) {
			t.Errorf("%q: %v, %+v", served, err, s.Installed)
		}
	}
}

// TestReadOptions: the way ends where it is to, and what is not there is told with what to do.
func TestReadOptions(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		way    string
		err    string
	}{
		"to a version":    {change: func(o *Options) { o.To = "2.0.0" }, way: "tea.v2"},
		"to a bundle":     {change: func(o *Options) { o.To = "tea.v3" }, way: "tea.v2 tea.v3"},
		"to nothing":      {change: func(o *Options) { o.To = "4" }, err: "OLM does not come there from tea.v1"},
		"another package": {change: func(o *Options) { o.Package = "pot" }, err: "no Subscription to package pot"},
		"another place":   {change: func(o *Options) { o.Namespace = "m" }, err: "no Subscription to package tea"},
		"another channel": {change: func(o *Options) { o.Channel = "fast" }, err: "package tea has no channel fast"},
		"no catalog": {change: func(o *Options) {
			o.Catalog = func(context.Context, *v1alpha1.CatalogSource) (*catalog.Catalog, error) {
				return nil, errors.New("it is gone")
			}
		}, err: "it is gone"},
		"a catalog without what is installed": {change: func(o *Options) {
			o.Catalog = func(context.Context, *v1alpha1.CatalogSource) (*catalog.Catalog, error) {
				return catalog.Parse("tea.json", []byte(strings.ReplaceAll(tea, `"name":"tea.v1"`, `"name":"tea.v1a"`))), nil
			}
		}, err: "does not have tea.v1, which is installed"},
	} {
		s, err := read(t, &live{t: t, served: []string{""}, pots: []*unstructured.Unstructured{pot("a", noon)}}, test.change)
		switch {
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%s: %v", name, err)
		case test.err == "" && (err != nil || strings.Join(s.Way, " ") != test.way):
			t.Errorf("%s: %v, %+v", name, err, s)
		}
	}
}

// TestParse: what is no snapshot is refused.
func TestParse(t *testing.T) {
	null := func(field string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"installed":{"package":"p","bundle":"b"},"catalog":[{}],%q:[null]}`, APIVersion, Kind, field)
	}
	for _, data := range []string{"", "{}", `{"apiVersion":"olmkit/v1","kind":"Upgrade"}`, `{"apiVersion":"olmkit/v1","kind":"RehearsalSnapshot"}`, null("definitions"), null("objects")} {
		if _, err := Parse([]byte(data)); err == nil {
			t.Errorf("%q is taken for a snapshot", data)
		}
	}
}
