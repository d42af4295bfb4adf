package walk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// populate makes objects of every version of every kind that r serves, unless they are there from earlier in the walk:
// those of the samples as they are, one derived from them for each version without a sample, and for each version a twin
// for the observers to write.
func (w *walk) populate(ctx context.Context, r *lifecycle.Release) ([]finding.Finding, error) {
	var findings []finding.Finding
	for _, d := range r.CRDs {
		if by := w.SimulatedConverter(r, d.Name); by != "" {
			findings = append(findings, code.Finding(code.NotProvable, "CustomResourceDefinition/"+d.Name,
				"nothing is proved of the objects of %s: its conversion webhook runs in a simulated pod (%s)", d.Spec.Names.Kind, by))
			continue
		}
		if w.options.Restore != nil {
			found, err := w.restoreKind(ctx, r, d)
			findings = append(findings, found...)
			if err == nil {
				err = w.choose(ctx, d)
			}
			if err != nil {
				return findings, err
			}
			continue
		}
		found, err := w.populateKind(ctx, r, d)
		findings = append(findings, found...)
		if err != nil {
			return findings, err
		}
	}
	return findings, nil
}

func (w *walk) populateKind(ctx context.Context, r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition) ([]finding.Finding, error) {
	var findings []finding.Finding
	var missing []string
	for _, version := range definition.ServedVersions(d) {
		if w.has(d.Name, version) {
			continue
		}
		samples := w.samples(r, d, version)
		if len(samples) == 0 {
			missing = append(missing, version)
			continue
		}
		for i, sample := range samples {
			found, err := w.make(ctx, r, d, version, sample, i)
			findings = append(findings, found...)
			if err != nil {
				return findings, err
			}
		}
	}
	for _, version := range missing {
		i := slices.IndexFunc(w.Objects, func(o *observe.Object) bool { return o.CRD == d.Name })
		if i < 0 {
			if len(missing) == len(definition.ServedVersions(d)) {
				findings = append(findings, code.Finding(code.SampleMissing, "CustomResourceDefinition/"+d.Name,
					"%s has no sample in any served version, so nothing is proved of its objects", d.Spec.Names.Kind))
			}
			return findings, nil
		}
		var view *unstructured.Unstructured
		err := observe.Retry(ctx, observe.Refused, func() (err error) {
			view, err = w.Objects[i].At(w.Dynamic, version).Get(ctx, w.Objects[i].Name, metav1.GetOptions{})
			return err
		})
		if err != nil {
			if ctx.Err() != nil {
				return findings, ctx.Err()
			}
			findings = append(findings, code.Finding(code.Unreadable, w.Objects[i].String(),
				"before the upgrade, on %s, it cannot be read as %s: %v", r.Name, version, err))
			continue
		}
		derived := &unstructured.Unstructured{Object: compare.Content(view.Object)}
		derived.SetAPIVersion(d.Spec.Group + "/" + version)
		derived.SetKind(d.Spec.Names.Kind)
		derived.SetName(w.Objects[i].Sample)
		derived.SetNamespace(w.Objects[i].Namespace)
		found, err := w.make(ctx, r, d, version, derived, 0)
		findings = append(findings, found...)
		if err != nil {
			return findings, err
		}
	}
	return findings, nil
}

func (w *walk) has(crd, version string) bool {
	return slices.ContainsFunc(w.Objects, func(o *observe.Object) bool { return o.CRD == crd && o.Version == version })
}

// samples returns the user's samples of the kind and version, or else the bundle's.
func (w *walk) samples(r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition, version string) []*unstructured.Unstructured {
	ofKind := func(list []*unstructured.Unstructured) []*unstructured.Unstructured {
		var found []*unstructured.Unstructured
		for _, s := range list {
			if s.GroupVersionKind() == (schema.GroupVersionKind{Group: d.Spec.Group, Version: version, Kind: d.Spec.Names.Kind}) {
				found = append(found, s)
			}
		}
		return found
	}
	if own := ofKind(w.options.Samples); len(own) > 0 {
		return own
	}
	return ofKind(r.Examples)
}

// make creates the i-th sample of a kind and version, and for the first one its twin that observers write, in each namespace that
// the operator serves.
func (w *walk) make(ctx context.Context, r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition, version string, sample *unstructured.Unstructured, i int) ([]finding.Finding, error) {
	alone := w.alone[d.Name]
	if alone && len(w.ofKind(d.Name)) > 0 {
		return nil, nil
	}
	suffixes := []string{""}
	if i == 0 && !alone {
		suffixes = append(suffixes, "-w")
	}
	namespaces := []string{""}
	if d.Spec.Scope == apiextensionsv1.NamespaceScoped {
		namespaces = w.ObjectNamespaces(sample.GetNamespace())
	}
	if alone {
		namespaces = namespaces[:1]
	}
	var findings []finding.Finding
	for n, suffix := range suffixes {
		for _, namespace := range namespaces {
			o := &observe.Object{
				CRD: d.Name, Resource: schema.GroupResource{Group: d.Spec.Group, Resource: d.Spec.Names.Plural},
				Kind: d.Spec.Names.Kind, Version: version, Namespace: namespace, Sample: sample.GetName(), Written: n > 0,
			}
			found, err := w.makeNamed(ctx, r, d, sample, o, suffix, i)
			if beside := n > 0 || namespace != namespaces[0]; err == nil && o.UID == "" && beside {
				found, err = w.makeOther(ctx, r, d, sample, o, found)
			}
			only := w.judgeOnly(o, found)
			again := n > 0 || namespace != namespaces[0] // what is wrong with a sample is said once
			findings = append(findings, slices.DeleteFunc(found, func(f finding.Finding) bool {
				return again && (f.Code == code.SampleUnknown || f.Code == code.LostAtOnce)
			})...)
			if err != nil || o.UID == "" && !only {
				return findings, err
			}
		}
	}
	return findings, nil
}

// makeNamed creates o, the i-th sample of its version or, with a suffix, its twin. The first of a sample is called as that, if nothing has
// the name: other samples may refer to it. The name of any other tells its version. Among what is somebody else's, the sample's name is
// taken only if the API server refuses the other, since a definition may allow one name only.
func (w *walk) makeNamed(ctx context.Context, r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition, sample *unstructured.Unstructured, o *observe.Object, suffix string, i int) ([]finding.Finding, error) {
	number := ""
	if i > 0 {
		number = "-" + strconv.Itoa(i+1)
	}
	names := []string{shortened(o.Sample) + "-" + o.Version + number + suffix}
	if suffix == "" {
		o.Name = o.Sample
		err := observe.Retry(ctx, final, func() error {
			_, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
			return err
		})
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !apierrors.IsNotFound(err): // it is taken
		case w.Provider.Disposable() || o.Namespace == observe.SamplesNamespace:
			names = slices.Insert(names, 0, o.Sample)
		default:
			names = append(names, o.Sample)
		}
	}
	var findings []finding.Finding
	for _, o.Name = range names {
		found, err := w.makeObject(ctx, r, d, sample, o)
		if err != nil || o.UID != "" {
			return found, err
		}
		if findings == nil {
			findings = found
		}
	}
	return findings, nil
}

// judgeOnly reports whether the API server refused o because it takes only one object of the kind: it took the sample, and refuses its
// twin. That is no fault of the sample, and found says so.
func (w *walk) judgeOnly(o *observe.Object, found []finding.Finding) bool {
	refused := slices.IndexFunc(found, func(f finding.Finding) bool { return f.Code == code.SampleRefused })
	one := slices.IndexFunc(w.Objects, func(other *observe.Object) bool {
		twin := o.Written && other.Version == o.Version && other.Sample == o.Sample
		return other.CRD == o.CRD && other.Namespace == o.Namespace && (other.Only || twin)
	})
	if refused < 0 || one < 0 {
		return false
	}
	f := &found[refused]
	w.Objects[one].Only, f.Severity = true, finding.Info
	f.Message = fmt.Sprintf("no other object may be made beside %s, so what takes two is not verified: %s", w.Objects[one], f.Message)
	return true
}

// shortened is the start of an object's name, to which something can be added.
func shortened(name string) string {
	const longest = 40
	if len(name) <= longest {
		return name
	}
	return strings.TrimRight(name[:longest], "-.")
}

// Add makes objects of sample and notes what they say before the hop.
func (w *walk) Add(ctx context.Context, r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition, version string, sample *unstructured.Unstructured) (made []*observe.Object, refused string, err error) {
	known := len(w.Objects)
	found, err := w.make(ctx, r, d, version, sample, 0)
	if made = slices.Clone(w.Objects[known:]); err != nil {
		return made, "", err
	}
	if len(made) > 0 {
		_, err = w.record(ctx, r)
	}
	return made, refusedOf(found), err
}

// refusedOf says why the API server did not take a sample, as found has it; "" if it did.
func refusedOf(found []finding.Finding) (refused string) {
	for _, f := range found {
		if f.Code == code.SampleRefused {
			refused = f.Message
		}
	}
	return refused
}

// Forget takes objects out of the walk.
func (w *walk) Forget(objects []*observe.Object) {
	w.Objects = slices.DeleteFunc(w.Objects, func(o *observe.Object) bool { return slices.Contains(objects, o) })
}

// makeObject creates o of the sample, and returns what is wrong with the sample. It leaves o.UID empty if it is refused.
func (w *walk) makeObject(ctx context.Context, r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition, sample *unstructured.Unstructured, o *observe.Object) ([]finding.Finding, error) {
	if o.Namespace != "" {
		if err := w.Manager.EnsureNamespace(ctx, o.Namespace); err != nil {
			return nil, err
		}
	}
	manifest := &unstructured.Unstructured{Object: compare.Content(sample.Object)}
	manifest.SetAPIVersion(d.Spec.Group + "/" + o.Version)
	manifest.SetKind(o.Kind)
	manifest.SetName(o.Name)
	manifest.SetNamespace(o.Namespace)
	manifest.SetLabels(sample.GetLabels())
	manifest.SetAnnotations(sample.GetAnnotations())
	w.label(manifest)
	var findings []finding.Finding
	known, unknown := definition.Prune(definition.Structural(d, o.Version), manifest.Object)
	if len(unknown) > 0 {
		findings = append(findings, code.Finding(code.SampleUnknown, o.String(), "the sample of version %s has fields that the schema of %s does not have: %s",
			o.Version, r.Name, strings.Join(unknown, ", ")))
	}
	o.Author = manifest.DeepCopy().Object
	made, err := w.create(ctx, o, manifest)
	if ctx.Err() != nil {
		return findings, ctx.Err()
	}
	if err != nil {
		return append(findings, w.refusal(r, o, err)), nil
	}
	o.UID, o.Since = made.GetUID(), made.GetCreationTimestamp().Time
	w.Objects = append(w.Objects, o)
	w.noteAsked(d, o.Version, manifest.Object)
	if places := compare.Lost(known, compare.Content(made.Object)); len(places) > 0 {
		if lost := places.WithoutRewritten(); len(lost) > 0 {
			findings = append(findings, code.Finding(code.LostAtOnce, o.String(), "written as %s on %s, it comes back changed: %s", o.Version, r.Name, lost))
		}
		// Said once; from here on what counts is what came back.
		known = compare.Content(made.Object)
	}
	for _, k := range []string{"apiVersion", "kind", "metadata"} {
		known[k] = o.Author[k]
	}
	o.Author = known
	return findings, nil
}

func (w *walk) create(ctx context.Context, o *observe.Object, manifest *unstructured.Unstructured) (made *unstructured.Unstructured, err error) {
	err = observe.Retry(ctx, observe.Refused, func() (err error) {
		made, err = o.At(w.Dynamic, o.Version).Create(ctx, manifest, metav1.CreateOptions{FieldManager: "olmkit"})
		if apierrors.IsAlreadyExists(err) {
			// An earlier try timed out and yet got through.
			made, err = o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
		}
		return err
	})
	return made, err
}

// refusal is the finding that o could not be made.
func (w *walk) refusal(r *lifecycle.Release, o *observe.Object, err error) finding.Finding {
	if strings.Contains(err.Error(), "failed calling webhook") {
		if by := w.SimulatedAmong(r.AdmissionImages()); by != "" {
			return code.Finding(code.NotProvable, o.String(),
				"it cannot be created, so nothing is proved of it: the admission webhook of %s runs in a simulated pod (%s)", r.Name, by)
		}
	}
	return code.Finding(code.SampleRefused, o.String(), "the sample is refused when written as %s on %s: %v", o.Version, r.Name, err)
}

// record notes what every object says in each version that r serves, so that the same can be asked after the hop.
func (w *walk) record(ctx context.Context, r *lifecycle.Release) ([]finding.Finding, error) {
	findings, err := findEach(ctx, w.Objects, func(ctx context.Context, o *observe.Object) ([]finding.Finding, error) {
		return w.recordObject(ctx, o, r)
	})
	if err != nil {
		return findings, err
	}
	rest, err := w.recordRest(ctx, r)
	return append(findings, rest...), err
}

func (w *walk) recordObject(ctx context.Context, o *observe.Object, r *lifecycle.Release) (findings []finding.Finding, err error) {
	o.Views = map[string]*unstructured.Unstructured{}
	d := r.CRD(o.CRD)
	if d == nil {
		return nil, nil
	}
	for _, version := range definition.ServedVersions(d) {
		var view *unstructured.Unstructured
		err := observe.Retry(ctx, observe.Refused, func() (err error) {
			view, err = o.At(w.Dynamic, version).Get(ctx, o.Name, metav1.GetOptions{})
			return err
		})
		if ctx.Err() != nil {
			return findings, ctx.Err()
		}
		if err != nil {
			findings = append(findings, code.Finding(code.Unreadable, o.String(), "before the upgrade, on %s, it cannot be read as %s: %v", r.Name, version, err))
			continue
		}
		o.See(version, view)
	}
	return findings, nil
}

// RawStore is a cluster that can tell what its API server has stored.
type RawStore interface {
	// Stored returns the JSON of the custom resource as etcd holds it, or nil where there is none.
	Stored(ctx context.Context, group, plural, namespace, name string) ([]byte, error)
}

// judgeObjects asks for every object, in each version that r serves now, whether it is still what its author wrote and
// what it said before the hop; then it writes each back through every version and asks again.
func (w *walk) judgeObjects(ctx context.Context, r *lifecycle.Release) ([]finding.Finding, error) {
	findings, err := findEach(ctx, w.Objects, func(ctx context.Context, o *observe.Object) ([]finding.Finding, error) {
		d := r.CRD(o.CRD)
		if d == nil || w.SimulatedConverter(r, o.CRD) != "" {
			return nil, nil
		}
		return w.judgeObject(ctx, o, d, r)
	})
	if err != nil || w.options.Restore == nil {
		return findings, err
	}
	rest, err := w.judgeRest(ctx, r)
	return judge.Summarize(append(findings, rest...)), err
}

func (w *walk) judgeObject(ctx context.Context, o *observe.Object, d *apiextensionsv1.CustomResourceDefinition, r *lifecycle.Release) ([]finding.Finding, error) {
	var findings []finding.Finding
	raw, found, err := w.judgeStored(ctx, o, schemasOf(d))
	findings = append(findings, found...)
	if err != nil {
		return findings, err
	}
	now, found, err := w.views(ctx, o, d, r)
	findings = append(findings, found...)
	if err != nil || len(now) == 0 {
		return findings, err
	}
	for _, version := range definition.ServedVersions(d) {
		view := now[version]
		if view == nil {
			continue
		}
		if ended := deletedFinding(o, view); ended != nil {
			return append(findings, *ended), nil
		}
		findings = append(findings, judge.FieldFindings(o, d, version, view, raw)...)
	}
	if o.Written {
		findings = append(findings, judge.WriteFindings(o, now)...)
	}
	for _, version := range definition.ServedVersions(d) {
		if now[version] == nil || o.Restored && !w.lastHop {
			continue // what is stored in an older version has to stay so until the last hop
		}
		found, err := w.roundTrip(ctx, o, d, version, now)
		findings = append(findings, found...)
		if err != nil || len(found) > 0 {
			return findings, err
		}
	}
	return findings, nil
}

// deletedFinding tells that somebody deleted o, of which view is what is there now, or returns nil.
func deletedFinding(o *observe.Object, view *unstructured.Unstructured) *finding.Finding {
	var f finding.Finding
	switch {
	case view.GetUID() != o.UID:
		f = code.Finding(code.ObjectGone, o.String(), "it was deleted and made anew during the upgrade: its UID is another")
	case view.GetDeletionTimestamp() != nil:
		o.Gone = true
		f = code.Finding(code.ObjectGone, o.String(), "somebody deleted it during the upgrade, and only finalizers keep it: %s", strings.Join(view.GetFinalizers(), ", "))
	default:
		return nil
	}
	return &f
}

// judgeAllStored looks at what etcd holds of each object, by the definitions that are in force now.
func (w *walk) judgeAllStored(ctx context.Context) ([]finding.Finding, error) {
	var findings []finding.Finding
	for _, o := range w.Objects {
		var d apiextensionsv1.CustomResourceDefinition
		if err := w.Client.Get(ctx, client.ObjectKey{Name: o.CRD}, &d); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return findings, fmt.Errorf("read CustomResourceDefinition %s: %w", o.CRD, err)
		}
		_, found, err := w.judgeStored(ctx, o, schemasOf(&d))
		findings = append(findings, found...)
		if err != nil {
			return findings, err
		}
	}
	return findings, nil
}

// schemasOf returns the schemas of d's versions, each read once.
func schemasOf(d *apiextensionsv1.CustomResourceDefinition) func(version string) *structural.Structural {
	var mu sync.Mutex
	read := map[string]*structural.Structural{}
	return func(version string) *structural.Structural {
		mu.Lock()
		defer mu.Unlock()
		if _, known := read[version]; !known {
			read[version] = definition.Structural(d, version)
		}
		return read[version]
	}
}

// judgeStored looks at what etcd holds of o, if the cluster can tell, and returns the version in which it is stored: "" if nobody
// knows, or it is gone.
func (w *walk) judgeStored(ctx context.Context, o *observe.Object, schema func(version string) *structural.Structural) (string, []finding.Finding, error) {
	store, ok := w.Provider.(RawStore)
	if !ok {
		return "", nil, nil
	}
	data, err := store.Stored(ctx, o.Resource.Group, o.Resource.Resource, o.Namespace, o.Name)
	if err != nil {
		return "", nil, fmt.Errorf("read %s from etcd: %w", o, err)
	}
	if data == nil {
		return "", nil, nil
	}
	stored := &unstructured.Unstructured{}
	if err := stored.UnmarshalJSON(data); err != nil {
		return "", nil, fmt.Errorf("read %s from etcd: %w", o, err)
	}
	version := stored.GroupVersionKind().Version
	_, unknown := definition.Prune(schema(version), stored.Object)
	if len(unknown) == 0 {
		return version, nil, nil
	}
	return version, []finding.Finding{code.Finding(code.Unconverted, o.String(),
		"it is stored as %s with fields that %s does not have: %s", version, version, strings.Join(unknown, ", "))}, nil
}

// views reads o in each version that d serves.
func (w *walk) views(ctx context.Context, o *observe.Object, d *apiextensionsv1.CustomResourceDefinition, r *lifecycle.Release) (map[string]*unstructured.Unstructured, []finding.Finding, error) {
	var findings []finding.Finding
	now := map[string]*unstructured.Unstructured{}
	for _, version := range definition.ServedVersions(d) {
		err := observe.Retry(ctx, apierrors.IsNotFound, func() error {
			view, err := o.At(w.Dynamic, version).Get(ctx, o.Name, metav1.GetOptions{})
			if err == nil {
				now[version] = view
			}
			return err
		})
		switch {
		case ctx.Err() != nil:
			return nil, findings, ctx.Err()
		case apierrors.IsNotFound(err):
			o.Gone = true
			return nil, append(findings, code.Finding(code.ObjectGone, o.String(), "it is gone after the upgrade to %s: %v", r.Name, err)), nil
		case err != nil:
			findings = append(findings, code.Finding(code.Unreadable, o.String(), "after the upgrade to %s it cannot be read as %s: %v", r.Name, version, err))
		}
	}
	return now, findings, nil
}

// roundTrip writes o back through version as it reads there, and compares what it says in every version before and after.
func (w *walk) roundTrip(ctx context.Context, o *observe.Object, d *apiextensionsv1.CustomResourceDefinition, version string, before map[string]*unstructured.Unstructured) ([]finding.Finding, error) {
	err := w.retry(ctx, observe.Refused, func() error {
		view, err := o.At(w.Dynamic, version).Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = o.At(w.Dynamic, version).Update(ctx, view, metav1.UpdateOptions{FieldManager: "olmkit"})
		return err
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return []finding.Finding{code.Finding(code.RoundTrip, o.String(), "read as %s and written back unchanged, it is refused: %v", version, err)}, nil
	}
	for _, v := range definition.ServedVersions(d) {
		if before[v] == nil {
			continue
		}
		var after *unstructured.Unstructured
		err := observe.Retry(ctx, final, func() (err error) {
			after, err = o.At(w.Dynamic, v).Get(ctx, o.Name, metav1.GetOptions{})
			return err
		})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return []finding.Finding{code.Finding(code.Unreadable, o.String(), "after it was written back through %s it cannot be read as %s: %v", version, v, err)}, nil
		}
		places := compare.Lost(compare.Content(before[v].Object), compare.Content(after.Object))
		if len(places) > 0 {
			f := code.Finding(code.RoundTrip, o.String(), "read as %s and written back unchanged, it then says as %s: %s", version, v, places)
			return []finding.Finding{judge.WithFields(f, places)}, nil
		}
	}
	return nil, nil
}

// judgeManifests asks, without storing anything, whether r still takes the manifests that users wrote for its served
// versions.
func (w *walk) judgeManifests(ctx context.Context, r *lifecycle.Release) ([]finding.Finding, error) {
	return findEach(ctx, w.Untouched(), func(ctx context.Context, o *observe.Object) ([]finding.Finding, error) {
		d := r.CRD(o.CRD)
		if d == nil || !slices.Contains(definition.ServedVersions(d), o.Version) || w.SimulatedConverter(r, o.CRD) != "" {
			return nil, nil
		}
		return w.judgeManifest(ctx, o, r)
	})
}

func (w *walk) judgeManifest(ctx context.Context, o *observe.Object, r *lifecycle.Release) ([]finding.Finding, error) {
	made, err := w.again(ctx, o)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		f := w.refusal(r, o, err)
		if f.Code == code.SampleRefused {
			f = code.Finding(code.ManifestRefused, o.String(), "the manifest that an older version took is refused by %s as %s: %v", r.Name, o.Version, err)
		}
		return []finding.Finding{f}, nil
	}
	var findings []finding.Finding
	content := compare.Content(made.Object)
	if places := compare.Lost(compare.Content(o.Author), content); len(places) > 0 {
		f := code.Finding(code.ManifestRefused, o.String(), "the manifest loses fields when applied as %s on %s: %s", o.Version, r.Name, places)
		findings = append(findings, judge.WithFields(f, places))
	}
	findings = append(findings, judge.NewDefaults(o, r.Name, content)...)
	o.Created = content
	return findings, nil
}

// again asks what the API server would make of o's manifest, and stores nothing: as another object, or as o itself where it takes no other.
func (w *walk) again(ctx context.Context, o *observe.Object) (made *unstructured.Unstructured, err error) {
	resource, dryRun := o.At(w.Dynamic, o.Version), []string{metav1.DryRunAll}
	manifest := (&unstructured.Unstructured{Object: o.Author}).DeepCopy()
	manifest.SetName(shortened(o.Name) + "-again")
	err = w.retry(ctx, observe.Refused, func() (err error) {
		if !o.Only {
			made, err = resource.Create(ctx, manifest, metav1.CreateOptions{DryRun: dryRun})
			return err
		}
		now, err := resource.Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.Object["spec"] = manifest.Object["spec"]
		made, err = resource.Update(ctx, now, metav1.UpdateOptions{DryRun: dryRun})
		return err
	})
	return made, err
}

// rollLimit is how long pods of the operator are waited for that are replaced once more, when all seemed to be done: OLM installs a release again to give it other certificates.
const rollLimit = time.Minute

// retry is observe.Retry for what the operator's webhooks have to answer, and waits while its pods are replaced.
func (w *walk) retry(ctx context.Context, final func(error) bool, do func() error) error {
	err := observe.Retry(ctx, final, do)
	if err == nil || final(err) || w.release == nil {
		return err
	}
	if failed := lookUntil(ctx, rollLimit, lookPause, func() (bool, error) { return w.RolledOut(ctx, w.release) }); failed != nil {
		return err
	}
	failed := lookUntil(ctx, promptly, lookPause, func() (bool, error) { // they may have been replaced just now
		err = do()
		return err == nil || final(err), nil
	})
	return errors.Join(err, failed)
}

// noteDefaults notes what the API server makes of the objects' manifests on the release that is upgraded from, of which it may refuse some.
func (w *walk) noteDefaults(ctx context.Context) error {
	return each(ctx, w.Untouched(), func(ctx context.Context, o *observe.Object) error {
		if o.Created == nil && !o.Restored && w.IsServed(o.CRD, o.Version) {
			if made, err := w.again(ctx, o); err == nil {
				o.Created = compare.Content(made.Object)
			}
		}
		return ctx.Err()
	})
}

// remove deletes the walk's objects while the operator can still serve their finalizers, and waits until they are gone.
// It reports those that stay.
func (w *walk) remove(ctx context.Context, limit time.Duration) ([]*observe.Object, error) {
	all := slices.Concat(w.Objects, w.lingering)
	w.Objects, w.lingering = nil, nil
	return w.removeThese(ctx, all, limit)
}

// deletionLimits is how many times its limit a deletion takes at most while one object after the other goes.
const deletionLimits = 4

// removeThese deletes objects, waits until they are gone, and returns those that stay. Each has limit, since one before it went.
func (w *walk) removeThese(ctx context.Context, left []*observe.Object, limit time.Duration) ([]*observe.Object, error) {
	definitions := w.Watcher.Definitions()
	deadline, latest := time.Now().Add(limit), time.Now().Add(deletionLimits*limit)
	for {
		var stay []*observe.Object
		for _, o := range left {
			d := definitions[o.CRD]
			if d == nil {
				continue
			}
			err := o.At(w.Dynamic, d.Storage).Delete(ctx, o.Name, metav1.DeleteOptions{})
			if !apierrors.IsNotFound(err) {
				stay = append(stay, o)
			}
			o.Undeletable = nil
			if observe.Denied(err) {
				o.Undeletable = err
			}
		}
		if len(stay) < len(left) { // an operator may take one after the other
			if deadline = time.Now().Add(limit); deadline.After(latest) {
				deadline = latest
			}
		}
		left = stay
		if len(left) == 0 || time.Now().After(deadline) {
			return left, ctx.Err()
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return left, err
		}
	}
}
