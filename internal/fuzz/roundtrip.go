package fuzz

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
)

// Options of a run.
type Options struct {
	Definition *apiextensionsv1.CustomResourceDefinition
	Samples    map[string][]map[string]any // by version
	Namespace  string                      // of the objects, or empty
	Count      int                         // objects to make of each served version
	Seed       uint64                      // of the first object; the others have the next ones
	// Convert converts objects as a ConversionReview has them, all of one version, to another. It fails as a whole.
	Convert func(ctx context.Context, objects []map[string]any, version string) ([]map[string]any, error)
	// Accept returns why the API server, with its admission webhooks, does not take object, or nil. The second error ends the run.
	Accept func(ctx context.Context, object map[string]any) (refusal, err error)
	// Lost lists the fields of want that are not the same in got.
	Lost func(want, got map[string]any) []Loss
}

// Loss is a field that is not what it was.
type Loss struct {
	Path string // as in spec.ports[0].name
	Text string // what it was and is
}

// Failure is something that does not survive, with the least object that shows it.
type Failure struct {
	Version string // in which the object was created
	Through string // the version in which it was read and written back unchanged; Version itself if it was only read again
	Field   string // path of the field in the schema, or empty if the conversion failed
	Text    string // what became of the field of Object, or why the conversion failed
	Refused bool   // the conversion failed
	Seed    uint64
	Count   int            // objects that failed alike
	Object  map[string]any // the least object
}

// Kind is what failures have in common that are alike.
type Kind struct {
	Version, Through, Field string
	Refused                 bool
}

// Kind returns that of f.
func (f Failure) Kind() Kind { return Kind{f.Version, f.Through, f.Field, f.Refused} }

// Result is what a run showed.
type Result struct {
	Failures   []Failure
	Kinds      map[Kind]bool // of all failures, also of those that are too many to be told
	Made       int           // valid objects
	Impossible int           // seeds for which no valid object was found
	Refused    int           // valid objects that admission refused
	Refusal    string        // of the first of them
}

// UnreachableError is returned by Convert where there is nobody who converts: it ends the run, and is no object's fault.
type UnreachableError struct{ Err error }

func (e UnreachableError) Error() string { return e.Err.Error() }

// shrunk bounds how many failures of two versions are shrunk and told.
const shrunk = 6

// run is a run under way.
type run struct {
	Options
	schemas map[string]*Schema
	storage string
	told    map[string]bool // version and field that were told to be lost when only read again
	kinds   map[Kind]bool   // of failures until now
}

// Run makes objects of each served version, and asks what of them is lost on the way through each other served version.
func Run(ctx context.Context, o Options) (*Result, error) {
	r := &run{Options: o, schemas: map[string]*Schema{}, told: map[string]bool{}, kinds: map[Kind]bool{}}
	var served []string
	for _, v := range o.Definition.Spec.Versions {
		s, err := NewSchema(o.Definition, v.Name, o.Samples[v.Name]...)
		if err != nil {
			return nil, err
		}
		r.schemas[v.Name] = s
		if v.Served {
			served = append(served, v.Name)
		}
		if v.Storage {
			r.storage = v.Name
		}
	}
	result := &Result{Kinds: r.kinds}
	if len(served) == 1 && served[0] == r.storage {
		return result, nil // nothing is converted
	}
	made := map[string]map[uint64]map[string]any{}
	for _, version := range served {
		var err error
		if made[version], err = r.objects(ctx, version, result); err != nil {
			return result, err
		}
	}
	for _, p := range pairs(served, r.storage) {
		failures, err := r.pair(ctx, p[0], p[1], made[p[0]])
		result.Failures = append(result.Failures, failures...)
		if err != nil {
			return result, err
		}
	}
	return result, nil
}

// pairs lists what versions to create in and to read through: each version that is converted when it is stored alone first.
func pairs(served []string, storage string) [][2]string {
	var alone, others [][2]string
	for _, version := range served {
		if version != storage {
			alone = append(alone, [2]string{version, version})
		}
		for _, through := range served {
			if version != through {
				others = append(others, [2]string{version, through})
			}
		}
	}
	return append(alone, others...)
}

// objects makes the objects of version that are accepted, by their seeds.
func (r *run) objects(ctx context.Context, version string, result *Result) (map[uint64]map[string]any, error) {
	objects := map[uint64]map[string]any{}
	for i := range uint64(r.Count) {
		object := r.schemas[version].Object(r.Seed + i)
		if object == nil {
			result.Impossible++
			continue
		}
		if r.Namespace != "" {
			object["metadata"].(map[string]any)["namespace"] = r.Namespace
		}
		result.Made++
		refusal, err := r.Accept(ctx, object)
		if err != nil {
			return nil, err
		}
		if refusal != nil {
			result.Refused++
			result.Refusal = cmp.Or(result.Refusal, refusal.Error())
			continue
		}
		objects[r.Seed+i] = object
	}
	return objects, nil
}

// pair sends objects of version through another version and back, and shrinks what fails.
func (r *run) pair(ctx context.Context, version, through string, objects map[uint64]map[string]any) ([]Failure, error) {
	seeds := slices.Sorted(maps.Keys(objects))
	var list []map[string]any
	for _, seed := range seeds {
		list = append(list, objects[seed])
	}
	trips, err := r.trips(ctx, list, through)
	if err != nil {
		return nil, err
	}
	var failures []Failure
	for i, trip := range trips {
		for _, l := range trip {
			if r.told[version+" "+l.field] || r.told[strings.Replace(l.field, ": ", " ", 1)] {
				continue
			}
			at := slices.IndexFunc(failures, func(f Failure) bool { return f.Field == l.field && f.Refused == l.refused })
			if at >= 0 {
				failures[at].Count++
				continue
			}
			failures = append(failures, Failure{Version: version, Through: through, Field: l.field, Text: l.Text, Refused: l.refused, Seed: seeds[i], Count: 1, Object: list[i]})
		}
	}
	for _, f := range failures {
		r.kinds[f.Kind()] = true
	}
	slices.SortStableFunc(failures, func(a, b Failure) int { return cmp.Compare(b.Count, a.Count) })
	failures = failures[:min(len(failures), shrunk)]
	for i := range failures {
		if err := r.shrink(ctx, &failures[i]); err != nil {
			return failures, err
		}
	}
	if version == through {
		for _, f := range failures {
			r.told[version+" "+f.Field] = true
		}
	}
	return failures, nil
}

// shrink makes f's object the least that fails in the same way.
func (r *run) shrink(ctx context.Context, f *Failure) error {
	least, err := r.schemas[f.Version].Shrink(f.Object, func(objects []map[string]any) ([]bool, error) {
		failed := make([]bool, len(objects))
		trips, err := r.trips(ctx, objects, f.Through)
		if err != nil {
			return nil, err
		}
		for i, trip := range trips {
			if !slices.ContainsFunc(trip, f.isLike) {
				continue
			}
			refusal, err := r.Accept(ctx, objects[i])
			if err != nil {
				return nil, err
			}
			failed[i] = refusal == nil
		}
		return failed, nil
	})
	if err != nil {
		return err
	}
	f.Object = least
	trips, err := r.trips(ctx, []map[string]any{least}, f.Through)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(trips[0], f.isLike); i >= 0 {
		f.Text = trips[0][i].Text
	}
	return nil
}

func (f *Failure) isLike(l loss) bool { return l.field == f.Field && l.refused == f.Refused }

// loss is a Loss with its field in the schema, or a conversion that failed.
type loss struct {
	Loss
	field   string
	refused bool
}

// step is an object on its way; lost is what it has lost, and if that is a conversion that failed, the way ends.
type step struct {
	object map[string]any
	lost   []loss
}

// trips writes each object, reads it through another version, writes it back, and reads it in both again. It returns what was lost.
func (r *run) trips(ctx context.Context, objects []map[string]any, through string) ([][]loss, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	version := versionOf(objects[0])
	written := make([]*step, len(objects))
	for i, o := range objects {
		written[i] = &step{object: r.schemas[version].Read(withMetadata(o))}
	}
	stored, err := r.store(ctx, written)
	if err != nil {
		return nil, err
	}
	read, err := r.view(ctx, stored, through)
	if err != nil {
		return nil, err
	}
	again := read
	if version != through {
		if stored, err = r.store(ctx, r.defaulted(read, through)); err != nil {
			return nil, err
		}
		if again, err = r.view(ctx, stored, through); err != nil {
			return nil, err
		}
		r.compare(read, again, through, "read as "+through+" and written back, ")
	}
	back := again
	if version != through {
		if back, err = r.view(ctx, stored, version); err != nil {
			return nil, err
		}
	}
	r.compare(written, back, version, "")
	all := make([][]loss, len(objects))
	for i := range objects {
		for _, s := range []*step{written[i], read[i], again[i], back[i]} {
			for _, l := range s.lost {
				if !slices.Contains(all[i], l) {
					all[i] = append(all[i], l)
				}
			}
		}
	}
	return all, nil
}

// compare notes in after what was before and is lost.
func (r *run) compare(before, after []*step, version, prefix string) {
	for i, b := range before {
		if a := after[i]; a.object != nil && b.object != nil {
			for _, l := range r.Lost(b.object, a.object) {
				l.Text = prefix + l.Text
				field := r.schemas[version].fieldOf(b.object, l.Path)
				if prefix != "" {
					field = version + ": " + field
				}
				a.lost = append(a.lost, loss{Loss: l, field: field})
			}
		}
	}
}

// defaulted are objects as they are written through version.
func (r *run) defaulted(list []*step, version string) []*step {
	var out []*step
	for _, s := range list {
		next := &step{lost: s.lost}
		if s.object != nil {
			next.object = r.schemas[version].Read(s.object)
		}
		out = append(out, next)
	}
	return out
}

// store converts objects, as they were written, to what etcd holds of them.
func (r *run) store(ctx context.Context, list []*step) ([]*step, error) {
	return r.convert(ctx, list, r.storage)
}

// view converts objects, as etcd holds them, to what is read as version. The API server sets the defaults of the stored version, and
// of no other (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting).
func (r *run) view(ctx context.Context, list []*step, version string) ([]*step, error) {
	return r.convert(ctx, r.defaulted(list, r.storage), version)
}

// convert converts what of list is still on its way to version. Where all at once fails, each is tried by itself.
func (r *run) convert(ctx context.Context, list []*step, version string) ([]*step, error) {
	out := make([]*step, len(list))
	var on []int
	var objects []map[string]any
	for i, s := range list {
		out[i] = &step{object: s.object, lost: s.lost}
		if s.object != nil && versionOf(s.object) != version {
			on, objects = append(on, i), append(objects, s.object)
		}
	}
	if len(objects) == 0 {
		return out, nil
	}
	converted, err := r.Convert(ctx, objects, version)
	if ended := ends(ctx, err); ended != nil {
		return nil, ended
	}
	for n, i := range on {
		one, failed := map[string]any(nil), err
		switch {
		case err == nil:
			one = converted[n]
		case len(objects) == 1:
		default:
			var alone []map[string]any
			if alone, failed = r.Convert(ctx, objects[n:n+1], version); failed == nil {
				one = alone[0]
			}
			if ended := ends(ctx, failed); ended != nil {
				return nil, ended
			}
		}
		if failed != nil {
			what := fmt.Sprintf("from %s to %s: %v", versionOf(objects[n]), version, failed)
			out[i] = &step{lost: append(slices.Clone(out[i].lost), loss{Loss: Loss{Text: what}, refused: true})}
			continue
		}
		out[i].object = r.received(objects[n], one, version)
	}
	return out, nil
}

// ends returns what ends the run, of an error of Convert.
func ends(ctx context.Context, err error) error {
	var unreachable UnreachableError
	if errors.As(err, &unreachable) {
		return unreachable
	}
	return ctx.Err()
}

// received is what the API server takes of an object that was converted: of its metadata labels and annotations alone, and no fields
// that the schema does not know (apiextensions-apiserver v0.36.3, pkg/apiserver/conversion/webhook_converter.go, restoreObjectMeta).
func (r *run) received(before, converted map[string]any, version string) map[string]any {
	o := runtime.DeepCopyJSON(converted)
	metadata := runtime.DeepCopyJSON(before["metadata"].(map[string]any))
	said, _ := o["metadata"].(map[string]any)
	for _, key := range []string{"labels", "annotations"} {
		delete(metadata, key)
		if value := said[key]; value != nil {
			metadata[key] = value
		}
	}
	o["metadata"] = metadata
	pruning.Prune(o, r.schemas[version].structural, true)
	return o
}

// None converts objects as the API server does without a webhook.
func None(group string) func(context.Context, []map[string]any, string) ([]map[string]any, error) {
	return func(_ context.Context, objects []map[string]any, version string) ([]map[string]any, error) {
		var converted []map[string]any
		for _, o := range objects {
			c := runtime.DeepCopyJSON(o)
			c["apiVersion"] = group + "/" + version
			converted = append(converted, c)
		}
		return converted, nil
	}
}

// withMetadata returns a copy of object with the metadata that the API server sets before it converts.
func withMetadata(object map[string]any) map[string]any {
	o := runtime.DeepCopyJSON(object)
	metadata := o["metadata"].(map[string]any)
	metadata["uid"] = "00000000-0000-4000-8000-000000000000"
	metadata["creationTimestamp"] = "2024-01-01T00:00:00Z"
	metadata["generation"] = int64(1)
	return o
}

func versionOf(object map[string]any) string {
	apiVersion, _ := object["apiVersion"].(string)
	_, version, _ := strings.Cut(apiVersion, "/")
	return version
}

// fieldOf returns the path of a field of object as the schema has it: spec.ports[].name.
func (s *Schema) fieldOf(object map[string]any, path string) string {
	told := ""
	at := s.structural
	for _, step := range locate(object, path) {
		name, isKey := step.(string)
		var next *structuralschema.Structural
		if at != nil {
			if property, known := at.Properties[name]; isKey && known {
				told, at = join(told, name), &property
				continue
			}
			if next = at.Items; isKey && at.AdditionalProperties != nil {
				next = at.AdditionalProperties.Structural
			}
		}
		told, at = told+"[]", next
	}
	return told
}
