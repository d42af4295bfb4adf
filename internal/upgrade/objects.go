package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/finding"
)

// object is a custom resource that the walk made and that must survive it.
type object struct {
	CRD       string
	Resource  schema.GroupResource
	Kind      string
	Version   string // through which it was written
	Namespace string
	Name      string
	Sample    string         // name of the sample that it was made of
	Written   bool           // observers write it all the time; the others stay as they were first stored
	Author    map[string]any // the manifest, as written
	Restored  bool           // of another cluster: its user has it there
	compared  bool           // what was restored was compared with what it says on the first release
	UID       types.UID

	Views map[string]*unstructured.Unstructured // by served version: what it said before the hop
	acked atomic.Int64                          // number of the last write that the API server acknowledged
	late  sync.Map                              // numbers of writes that nobody knows the end of: the API server may carry them out after others
}

// writes is the annotation that counts an observer's writes.
const writes = "olmkit.dev/writes"

// String names the object as findings do.
func (o *object) String() string {
	return o.Kind + "/" + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

// at returns the client for the object's kind in version.
func (o *object) at(resources dynamic.Interface, version string) dynamic.ResourceInterface {
	r := resources.Resource(o.Resource.WithVersion(version))
	if o.Namespace == "" {
		return r
	}
	return r.Namespace(o.Namespace)
}

// retryTimeout is how long the walk retries what should work at once on a settled cluster before it takes the answer for
// final: an API server needs a moment to serve a changed CRD, and to dial a new webhook endpoint.
const retryTimeout = 10 * time.Second

// retry calls do every 200 ms until it succeeds, fails with an error that final says will not change, or retryTimeout is
// exhausted, and returns its last error.
func retry(ctx context.Context, final func(error) bool, do func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, retryTimeout, true, func(context.Context) (bool, error) {
		if last = do(); last != nil && final(last) {
			return false, last
		}
		return last == nil, nil
	})
	if err != nil && last != nil && ctx.Err() == nil {
		return last
	}
	return err
}

func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// populate makes objects of every version of every kind that r serves, unless they are there from earlier in the walk:
// those of the samples as they are, one derived from them for each version without a sample, and for each version a twin
// for the observers to write.
func (w *walk) populate(ctx context.Context, r *release) ([]finding.Finding, error) {
	var findings []finding.Finding
	for _, d := range r.CRDs {
		if by := w.simulatedConverter(r, d.Name); by != "" {
			findings = append(findings, find(codeNotProvable, "CustomResourceDefinition/"+d.Name,
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

func (w *walk) populateKind(ctx context.Context, r *release, d *apiextensionsv1.CustomResourceDefinition) ([]finding.Finding, error) {
	var findings []finding.Finding
	var missing []string
	for _, version := range served(d) {
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
		i := slices.IndexFunc(w.objects, func(o *object) bool { return o.CRD == d.Name })
		if i < 0 {
			if len(missing) == len(served(d)) {
				findings = append(findings, find(codeSampleMissing, "CustomResourceDefinition/"+d.Name,
					"%s has no sample in any served version, so nothing is proved of its objects", d.Spec.Names.Kind))
			}
			return findings, nil
		}
		var view *unstructured.Unstructured
		err := retry(ctx, refused, func() (err error) {
			view, err = w.objects[i].at(w.dynamic, version).Get(ctx, w.objects[i].Name, metav1.GetOptions{})
			return err
		})
		if err != nil {
			if ctx.Err() != nil {
				return findings, ctx.Err()
			}
			findings = append(findings, find(codeUnreadable, w.objects[i].String(),
				"before the upgrade, on %s, it cannot be read as %s: %v", r.Name, version, err))
			continue
		}
		derived := &unstructured.Unstructured{Object: content(view.Object)}
		derived.SetAPIVersion(d.Spec.Group + "/" + version)
		derived.SetKind(d.Spec.Names.Kind)
		derived.SetName(w.objects[i].Sample)
		derived.SetNamespace(w.objects[i].Namespace)
		found, err := w.make(ctx, r, d, version, derived, 0)
		findings = append(findings, found...)
		if err != nil {
			return findings, err
		}
	}
	return findings, nil
}

func (w *walk) has(crd, version string) bool {
	return slices.ContainsFunc(w.objects, func(o *object) bool { return o.CRD == crd && o.Version == version })
}

// samples returns the user's samples of the kind and version, or else the bundle's.
func (w *walk) samples(r *release, d *apiextensionsv1.CustomResourceDefinition, version string) []*unstructured.Unstructured {
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
func (w *walk) make(ctx context.Context, r *release, d *apiextensionsv1.CustomResourceDefinition, version string, sample *unstructured.Unstructured, i int) ([]finding.Finding, error) {
	name := sample.GetName()
	if len(name) > 40 {
		name = name[:40]
	}
	name += "-" + version
	if i > 0 {
		name += "-" + strconv.Itoa(i+1)
	}
	names := []string{name}
	if i == 0 {
		names = append(names, name+"-w")
	}
	namespaces := []string{""}
	if d.Spec.Scope == apiextensionsv1.NamespaceScoped {
		namespaces = w.objectNamespaces(sample.GetNamespace())
	}
	var findings []finding.Finding
	for n, name := range names {
		for _, namespace := range namespaces {
			o := &object{
				CRD: d.Name, Resource: schema.GroupResource{Group: d.Spec.Group, Resource: d.Spec.Names.Plural},
				Kind: d.Spec.Names.Kind, Version: version, Namespace: namespace, Name: name, Sample: sample.GetName(), Written: n > 0,
			}
			found, err := w.makeObject(ctx, r, d, sample, o)
			again := n > 0 || namespace != namespaces[0] // what is wrong with a sample is said once
			findings = append(findings, slices.DeleteFunc(found, func(f finding.Finding) bool {
				return again && (f.Code == codeSampleUnknown || f.Code == codeLostAtOnce)
			})...)
			if err != nil || o.UID == "" {
				return findings, err
			}
		}
	}
	return findings, nil
}

// makeObject creates o of the sample, and returns what is wrong with the sample. It leaves o.UID empty if it is refused.
func (w *walk) makeObject(ctx context.Context, r *release, d *apiextensionsv1.CustomResourceDefinition, sample *unstructured.Unstructured, o *object) ([]finding.Finding, error) {
	if o.Namespace != "" {
		if err := w.manager.EnsureNamespace(ctx, o.Namespace); err != nil {
			return nil, err
		}
	}
	manifest := &unstructured.Unstructured{Object: content(sample.Object)}
	manifest.SetAPIVersion(d.Spec.Group + "/" + o.Version)
	manifest.SetKind(o.Kind)
	manifest.SetName(o.Name)
	manifest.SetNamespace(o.Namespace)
	manifest.SetLabels(sample.GetLabels())
	manifest.SetAnnotations(sample.GetAnnotations())
	w.label(manifest)
	var findings []finding.Finding
	if fields := unknown(d, o.Version, manifest.Object); len(fields) > 0 {
		findings = append(findings, find(codeSampleUnknown, o.String(), "the sample of version %s has fields that the schema of %s does not have: %s",
			o.Version, r.Name, strings.Join(fields, ", ")))
	}
	o.Author = manifest.DeepCopy().Object
	made, err := w.create(ctx, o, manifest)
	if ctx.Err() != nil {
		return findings, ctx.Err()
	}
	if err != nil {
		return append(findings, w.refusal(r, o, err)), nil
	}
	o.UID = made.GetUID()
	w.objects = append(w.objects, o)
	known := prune(d, o.Version, o.Author)
	if places := lost(known, content(made.Object)); len(places) > 0 {
		findings = append(findings, find(codeLostAtOnce, o.String(), "written as %s on %s, it comes back changed: %s", o.Version, r.Name, places))
		// Said once; from here on what counts is what came back.
		known = content(made.Object)
	}
	for _, k := range []string{"apiVersion", "kind", "metadata"} {
		known[k] = o.Author[k]
	}
	o.Author = known
	return findings, nil
}

func (w *walk) create(ctx context.Context, o *object, manifest *unstructured.Unstructured) (made *unstructured.Unstructured, err error) {
	err = retry(ctx, refused, func() (err error) {
		made, err = o.at(w.dynamic, o.Version).Create(ctx, manifest, metav1.CreateOptions{FieldManager: "olmkit"})
		if apierrors.IsAlreadyExists(err) {
			// An earlier try timed out and yet got through.
			made, err = o.at(w.dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
		}
		return err
	})
	return made, err
}

// refusal is the finding that o could not be made.
func (w *walk) refusal(r *release, o *object, err error) finding.Finding {
	if strings.Contains(err.Error(), "failed calling webhook") {
		if by := w.simulatedAmong(r.AdmissionImages()); by != "" {
			return find(codeNotProvable, o.String(),
				"it cannot be created, so nothing is proved of it: the admission webhook of %s runs in a simulated pod (%s)", r.Name, by)
		}
	}
	return find(codeSampleRefused, o.String(), "the sample is refused when written as %s on %s: %v", o.Version, r.Name, err)
}

// simulatedConverter returns the image behind r's conversion webhook of crd whose pods were simulated, or "".
func (w *walk) simulatedConverter(r *release, crd string) string {
	return w.simulatedAmong(r.ConversionImages(crd))
}

// simulatedAmong returns the first of images whose pods were simulated, or "".
func (w *walk) simulatedAmong(images []string) string {
	for _, image := range images {
		if slices.Contains(w.simulated, image) {
			return image
		}
	}
	return ""
}

// record notes what every object says in each version that r serves, so that the same can be asked after the hop.
func (w *walk) record(ctx context.Context, r *release) ([]finding.Finding, error) {
	var findings []finding.Finding
	for _, o := range w.objects {
		o.Views = map[string]*unstructured.Unstructured{}
		d := r.CRD(o.CRD)
		if d == nil {
			continue
		}
		for _, version := range served(d) {
			var view *unstructured.Unstructured
			err := retry(ctx, refused, func() (err error) {
				view, err = o.at(w.dynamic, version).Get(ctx, o.Name, metav1.GetOptions{})
				return err
			})
			if ctx.Err() != nil {
				return findings, ctx.Err()
			}
			if err != nil {
				findings = append(findings, find(codeUnreadable, o.String(), "before the upgrade, on %s, it cannot be read as %s: %v", r.Name, version, err))
				continue
			}
			o.Views[version] = view
		}
	}
	rest, err := w.recordRest(ctx, r)
	return append(findings, rest...), err
}

// RawStore is a cluster that can tell what its API server has stored.
type RawStore interface {
	// Stored returns the JSON of the custom resource as etcd holds it.
	Stored(ctx context.Context, group, plural, namespace, name string) ([]byte, error)
}

// judgeObjects asks for every object, in each version that r serves now, whether it is still what its author wrote and
// what it said before the hop; then it writes each back through every version and asks again.
func (w *walk) judgeObjects(ctx context.Context, r *release) ([]finding.Finding, error) {
	var findings []finding.Finding
	for _, o := range w.objects {
		d := r.CRD(o.CRD)
		if d == nil || w.simulatedConverter(r, o.CRD) != "" {
			continue
		}
		found, err := w.judgeObject(ctx, o, d, r)
		findings = append(findings, found...)
		if err != nil {
			return findings, err
		}
	}
	if w.options.Restore == nil {
		return findings, nil
	}
	rest, err := w.judgeRest(ctx, r)
	return summarize(append(findings, rest...)), err
}

func (w *walk) judgeObject(ctx context.Context, o *object, d *apiextensionsv1.CustomResourceDefinition, r *release) ([]finding.Finding, error) {
	var findings []finding.Finding
	raw, found, err := w.judgeStored(ctx, o, d)
	findings = append(findings, found...)
	if err != nil {
		return findings, err
	}
	now, found, err := w.views(ctx, o, d, r)
	findings = append(findings, found...)
	if err != nil || len(now) == 0 {
		return findings, err
	}
	for _, version := range served(d) {
		view := now[version]
		if view == nil {
			continue
		}
		if view.GetUID() != o.UID {
			return append(findings, find(codeObjectGone, o.String(), "it was deleted and made anew during the upgrade: its UID is another")), nil
		}
		findings = append(findings, fieldFindings(o, d, version, view, raw)...)
	}
	if o.Written {
		findings = append(findings, writeFindings(o, now)...)
	}
	for _, version := range served(d) {
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

// judgeAllStored looks at what etcd holds of each object, by the definitions that are in force now.
func (w *walk) judgeAllStored(ctx context.Context) ([]finding.Finding, error) {
	var findings []finding.Finding
	for _, o := range w.objects {
		var d apiextensionsv1.CustomResourceDefinition
		if err := w.client.Get(ctx, client.ObjectKey{Name: o.CRD}, &d); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return findings, fmt.Errorf("read CustomResourceDefinition %s: %w", o.CRD, err)
		}
		_, found, err := w.judgeStored(ctx, o, &d)
		findings = append(findings, found...)
		if err != nil {
			return findings, err
		}
	}
	return findings, nil
}

// judgeStored looks at what etcd holds of o, if the cluster can tell.
func (w *walk) judgeStored(ctx context.Context, o *object, d *apiextensionsv1.CustomResourceDefinition) (string, []finding.Finding, error) {
	store, ok := w.cluster.(RawStore)
	if !ok {
		return "", nil, nil
	}
	data, err := store.Stored(ctx, o.Resource.Group, o.Resource.Resource, o.Namespace, o.Name)
	if err != nil {
		return "", nil, fmt.Errorf("read %s from etcd: %w", o, err)
	}
	stored := &unstructured.Unstructured{}
	if err := stored.UnmarshalJSON(data); err != nil {
		return "", nil, fmt.Errorf("read %s from etcd: %w", o, err)
	}
	version := stored.GroupVersionKind().Version
	fields := unknown(d, version, stored.Object)
	if len(fields) == 0 {
		return version, nil, nil
	}
	return version, []finding.Finding{find(codeUnconverted, o.String(),
		"it is stored as %s with fields that %s does not have: %s", version, version, strings.Join(fields, ", "))}, nil
}

// views reads o in each version that d serves.
func (w *walk) views(ctx context.Context, o *object, d *apiextensionsv1.CustomResourceDefinition, r *release) (map[string]*unstructured.Unstructured, []finding.Finding, error) {
	var findings []finding.Finding
	now := map[string]*unstructured.Unstructured{}
	for _, version := range served(d) {
		err := retry(ctx, apierrors.IsNotFound, func() error {
			view, err := o.at(w.dynamic, version).Get(ctx, o.Name, metav1.GetOptions{})
			if err == nil {
				now[version] = view
			}
			return err
		})
		switch {
		case ctx.Err() != nil:
			return nil, findings, ctx.Err()
		case apierrors.IsNotFound(err):
			return nil, append(findings, find(codeObjectGone, o.String(), "it is gone after the upgrade to %s: %v", r.Name, err)), nil
		case err != nil:
			findings = append(findings, find(codeUnreadable, o.String(), "after the upgrade to %s it cannot be read as %s: %v", r.Name, version, err))
		}
	}
	return now, findings, nil
}

// fieldFindings compares what o says in version of d now with what its author wrote and with what it said before.
func fieldFindings(o *object, d *apiextensionsv1.CustomResourceDefinition, version string, now *unstructured.Unstructured, storedAs string) []finding.Finding {
	var findings []finding.Finding
	where := ""
	if storedAs != "" {
		where = fmt.Sprintf(" (stored as %s)", storedAs)
	}
	var authored diffs
	if version == o.Version {
		authored = append(lost(content(o.Author), content(now.Object)), lost(tags(o.Author), tags(now.Object))...)
		if len(authored) > 0 {
			findings = append(findings, withFields(find(codeFieldLost, o.String(), "read as %s%s: %s", version, where, authored), authored))
		}
	}
	before := o.Views[version]
	if before == nil {
		return findings
	}
	changed := slices.DeleteFunc(lost(content(before.Object), content(now.Object)), authored.has)
	if len(changed) == 0 {
		return findings
	}
	f := find(codeDefaultChanged, o.String(), "read as %s%s, compared with before: %s", version, where, changed)
	switch {
	case version != o.Version && slices.ContainsFunc(changed, func(d difference) bool { return d.Gone }):
		f = find(codeFieldLost, o.String(), "written as %s, read as %s%s, compared with before: %s", o.Version, version, where, changed)
	case (version != o.Version || version != storedAs) && convertsByWebhook(d):
		// What is not a default of the version is the same where defaults are left out.
		bare := lost(content(before.Object), undefaulted(d, version, now.Object))
		if slices.ContainsFunc(changed, bare.has) {
			f.Cause = "the values are no defaults of " + version + ", so they come of conversion"
			f.Fix = "convert what was stored before to what it was read as before: what a version cannot say has to survive, for example in an annotation"
		}
	}
	return append(findings, f)
}

// convertsByWebhook reports whether a webhook converts the objects of d.
func convertsByWebhook(d *apiextensionsv1.CustomResourceDefinition) bool {
	return d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// tags is the part of an object's metadata that is its author's.
func tags(object map[string]any) map[string]any {
	m, _ := object["metadata"].(map[string]any)
	return map[string]any{"metadata": map[string]any{"labels": m["labels"], "annotations": m["annotations"]}}
}

// writeFindings asks whether the last write of an observer that was acknowledged is still there.
func writeFindings(o *object, now map[string]*unstructured.Unstructured) []finding.Finding {
	acked := o.acked.Load()
	for _, view := range now {
		counter, err := strconv.ParseInt(view.GetAnnotations()[writes], 10, 64)
		if _, late := o.late.Load(counter); acked > 0 && (err != nil || counter < acked && !late) {
			return []finding.Finding{find(codeWriteLost, o.String(),
				"write number %d through %s was acknowledged, but the object has number %d", acked, o.Version, counter)}
		}
	}
	return nil
}

// roundTrip writes o back through version as it reads there, and compares what it says in every version before and after.
func (w *walk) roundTrip(ctx context.Context, o *object, d *apiextensionsv1.CustomResourceDefinition, version string, before map[string]*unstructured.Unstructured) ([]finding.Finding, error) {
	err := retry(ctx, refused, func() error {
		view, err := o.at(w.dynamic, version).Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = o.at(w.dynamic, version).Update(ctx, view, metav1.UpdateOptions{FieldManager: "olmkit"})
		return err
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return []finding.Finding{find(codeRoundTrip, o.String(), "read as %s and written back unchanged, it is refused: %v", version, err)}, nil
	}
	for _, v := range served(d) {
		if before[v] == nil {
			continue
		}
		after, err := o.at(w.dynamic, v).Get(ctx, o.Name, metav1.GetOptions{})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return []finding.Finding{find(codeUnreadable, o.String(), "after it was written back through %s it cannot be read as %s: %v", version, v, err)}, nil
		}
		places := lost(content(before[v].Object), content(after.Object))
		if len(places) > 0 {
			f := find(codeRoundTrip, o.String(), "read as %s and written back unchanged, it then says as %s: %s", version, v, places)
			return []finding.Finding{withFields(f, places)}, nil
		}
	}
	return nil, nil
}

// judgeManifests asks, without storing anything, whether r still takes the manifests that users wrote for its served
// versions.
func (w *walk) judgeManifests(ctx context.Context, r *release) ([]finding.Finding, error) {
	var findings []finding.Finding
	for _, o := range w.objects {
		d := r.CRD(o.CRD)
		if o.Written || d == nil || !slices.Contains(served(d), o.Version) || w.simulatedConverter(r, o.CRD) != "" {
			continue
		}
		manifest := (&unstructured.Unstructured{Object: o.Author}).DeepCopy()
		manifest.SetName(o.Name + "-again")
		var made *unstructured.Unstructured
		err := retry(ctx, refused, func() (err error) {
			made, err = o.at(w.dynamic, o.Version).Create(ctx, manifest, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
		if ctx.Err() != nil {
			return findings, ctx.Err()
		}
		if err != nil {
			f := w.refusal(r, o, err)
			if f.Code == codeSampleRefused {
				f = find(codeManifestRefused, o.String(), "the manifest that an older version took is refused by %s as %s: %v", r.Name, o.Version, err)
			}
			findings = append(findings, f)
			continue
		}
		if places := lost(content(o.Author), content(made.Object)); len(places) > 0 {
			f := find(codeManifestRefused, o.String(), "the manifest loses fields when applied as %s on %s: %s", o.Version, r.Name, places)
			findings = append(findings, withFields(f, places))
		}
	}
	return findings, nil
}

// judgeVersions compares what d served before with what it serves now, and says what its objects are stored as.
func judgeVersions(before, now *apiextensionsv1.CustomResourceDefinition, stored []string) []finding.Finding {
	var findings []finding.Finding
	for _, version := range served(before) {
		if !slices.Contains(served(now), version) {
			f := find(codeVersionGone, "CustomResourceDefinition/"+now.Name, "%s is not served as %s any more", now.Spec.Names.Kind, version)
			for _, v := range before.Spec.Versions {
				if v.Name == version && v.Deprecated {
					f.Severity, f.Cause, f.Fix = finding.Info, "it was deprecated in the release before", ""
				}
			}
			findings = append(findings, f)
		}
	}
	others := slices.DeleteFunc(slices.Clone(stored), func(v string) bool { return v == storage(now) })
	if len(others) > 0 {
		findings = append(findings, find(codeStoredVersions, "CustomResourceDefinition/"+now.Name,
			"status.storedVersions is %s, stored now as %s: no later release may drop %s before the objects are migrated",
			strings.Join(stored, ", "), storage(now), strings.Join(others, ", ")))
	}
	return findings
}

// remove deletes the walk's objects while the operator can still serve their finalizers, and waits until they are gone.
// It reports those that stay.
func (w *walk) remove(ctx context.Context, limit time.Duration) ([]*object, error) {
	definitions := w.watcher.definitions()
	left := w.objects
	w.objects = nil
	deadline := time.Now().Add(limit)
	for {
		var stay []*object
		for _, o := range left {
			d := definitions[o.CRD]
			if d == nil {
				continue
			}
			err := o.at(w.dynamic, d.Storage).Delete(ctx, o.Name, metav1.DeleteOptions{})
			if !apierrors.IsNotFound(err) {
				stay = append(stay, o)
			}
		}
		left = stay
		if len(left) == 0 || time.Now().After(deadline) {
			return left, ctx.Err()
		}
		select {
		case <-ctx.Done():
			return left, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// writePatch is the harmless write with number n.
func writePatch(n int64) []byte {
	return fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, writes, n)
}
