package conversion

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationPrefix begins the names of the annotations in which an object carries what the version it is shown in
// cannot say; the rest of the name is the version that said it.
const AnnotationPrefix = "conversion.cache.example.com/"

// maxPieces bounds the work that an annotation can cause when it has to be weighed piece by piece. An object that
// passed its schema has far fewer.
const maxPieces = 256

// contents is what of an object is converted: pointers to its spec and its status.
type contents struct {
	Spec   any `json:"spec"`
	Status any `json:"status"`
}

// version is how to get at the parts of an object of one API version.
type version[T any] struct {
	name     string
	meta     func(*T) *metav1.ObjectMeta
	contents func(*T) contents
}

// convert writes src, an object of one version, into dst, an object of a neighbouring one. forward and backward
// translate what both versions can say. The type of dst is left alone; its metadata, spec and status are overwritten.
func convert[S, D any](from version[S], to version[D], src *S, dst *D, forward func(*S, *D), backward func(*D, *S)) error {
	meta := to.meta(dst)
	from.meta(src).DeepCopyInto(meta)
	annotation := meta.Annotations[AnnotationPrefix+to.name]
	delete(meta.Annotations, AnnotationPrefix+to.name)
	delete(meta.Annotations, AnnotationPrefix+from.name)

	forward(src, dst)
	if annotation != "" {
		if err := restore(to, from, dst, src, annotation, backward); err != nil {
			return fmt.Errorf("converting %s/%s from %s to %s: %w", meta.Namespace, meta.Name, from.name, to.name, err)
		}
	}

	var back S
	backward(dst, &back)
	if said, unsaid := from.contents(src), from.contents(&back); !equality.Semantic.DeepEqual(said, unsaid) {
		lost, err := lostFields(unsaid, said)
		if err != nil {
			return fmt.Errorf("converting %s/%s from %s to %s: %w", meta.Namespace, meta.Name, from.name, to.name, err)
		}
		if lost != "" {
			metav1.SetMetaDataAnnotation(meta, AnnotationPrefix+from.name, lost)
		}
	}
	if len(meta.Annotations) == 0 {
		meta.Annotations = nil
	}
	return nil
}

// lostFields is the JSON merge patch (RFC 7386) that leads from what survives a translation to what was said, or the
// empty string if nothing is lost.
func lostFields(survives, said contents) (string, error) {
	a, err := document(survives)
	if err != nil {
		return "", err
	}
	b, err := document(said)
	if err != nil {
		return "", err
	}
	patch := difference(a, b)
	if len(patch) == 0 {
		return "", nil
	}
	out, err := json.Marshal(patch)
	return string(out), err
}

// restore applies to object, translated from source, the fields in an annotation, as far as the object looks the same
// to the source's version with them as without, or just as the source does: what would show there was edited there
// since. An annotation that cannot be read is ignored, because an error here would make every list that holds the object
// fail.
func restore[T, O any](of version[T], other version[O], object *T, source *O, annotation string, backward func(*T, *O)) error {
	patch, err := parse([]byte(annotation))
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	shown := func(t *T) (map[string]any, error) {
		var o O
		backward(t, &o)
		return document(other.contents(&o))
	}
	view, err := shown(object)
	if err != nil {
		return err
	}
	said, err := document(other.contents(source))
	if err != nil {
		return err
	}
	// accept applies a patch to the object and reports whether it did.
	accept := func(patch map[string]any) (bool, error) {
		current, err := document(of.contents(object))
		if err != nil {
			return false, err
		}
		patched, err := json.Marshal(apply(current, patch))
		if err != nil {
			return false, err
		}
		var candidate T
		into := of.contents(&candidate)
		if json.Unmarshal(patched, &into) != nil {
			return false, nil //nolint:nilerr // such a patch is none of ours either
		}
		seen, err := shown(&candidate)
		if err != nil || !reflect.DeepEqual(seen, view) && !reflect.DeepEqual(seen, said) {
			return false, err
		}
		*of.meta(&candidate) = *of.meta(object)
		setContents(of, object, &candidate)
		return true, nil
	}
	if all, err := accept(patch); all || err != nil {
		return err
	}
	for i, piece := range pieces(patch) {
		if i == maxPieces {
			break
		}
		if _, err := accept(piece); err != nil {
			return err
		}
	}
	return nil
}

// setContents makes the spec and status of object those of other.
func setContents[T any](v version[T], object, other *T) {
	to, from := v.contents(object), v.contents(other)
	reflect.ValueOf(to.Spec).Elem().Set(reflect.ValueOf(from.Spec).Elem())
	reflect.ValueOf(to.Status).Elem().Set(reflect.ValueOf(from.Status).Elem())
}

// document is the JSON form of an object's contents.
func document(c contents) (map[string]any, error) {
	out, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return parse(out)
}

// parse decodes a JSON object and leaves its numbers as they are written.
func parse(in []byte) (map[string]any, error) {
	var out map[string]any
	decoder := json.NewDecoder(bytes.NewReader(in))
	decoder.UseNumber()
	if err := decoder.Decode(&out); err != nil {
		return nil, err
	}
	return out, nil
}

// difference is the merge patch from a to b.
func difference(a, b map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range a {
		if _, ok := b[key]; !ok {
			patch[key] = nil
		}
	}
	for key, now := range b {
		before, ok := a[key]
		if ok && reflect.DeepEqual(before, now) {
			continue
		}
		from, isObject := before.(map[string]any)
		to, staysObject := now.(map[string]any)
		if isObject && staysObject {
			patch[key] = difference(from, to)
			continue
		}
		patch[key] = now
	}
	return patch
}

// apply is a merge patch applied to a document; the document may be changed.
func apply(document, patch map[string]any) map[string]any {
	if document == nil {
		document = map[string]any{}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(document, key)
		case map[string]any:
			inner, _ := document[key].(map[string]any)
			document[key] = apply(inner, value)
		default:
			document[key] = value
		}
	}
	return document
}

// pieces takes a merge patch apart into patches of one value each, in the order of their paths.
func pieces(patch map[string]any) []map[string]any {
	var out []map[string]any
	for _, key := range slices.Sorted(maps.Keys(patch)) {
		inner, ok := patch[key].(map[string]any)
		if !ok || len(inner) == 0 {
			out = append(out, map[string]any{key: patch[key]})
			continue
		}
		for _, piece := range pieces(inner) {
			out = append(out, map[string]any{key: piece})
		}
	}
	return out
}
