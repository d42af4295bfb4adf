package conversion

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
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
	a, err := json.Marshal(survives)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(said)
	if err != nil {
		return "", err
	}
	patch, err := jsonpatch.CreateMergePatch(a, b)
	if err != nil || string(patch) == "{}" {
		return "", err
	}
	return string(patch), nil
}

// restore applies to object, translated from source, the fields in an annotation, as far as the object looks the same
// to the source's version with them as without, or just as the source does: what would show there was edited there
// since. An annotation that cannot be read is ignored, because an error here would make every list that holds the object
// fail.
func restore[T, O any](of version[T], other version[O], object *T, source *O, annotation string, backward func(*T, *O)) error {
	patch := json.RawMessage(annotation)
	if json.Unmarshal(patch, &map[string]any{}) != nil {
		return nil //nolint:nilerr // as said above
	}
	shown := func(t *T) ([]byte, error) {
		var o O
		backward(t, &o)
		return json.Marshal(other.contents(&o))
	}
	view, err := shown(object)
	if err != nil {
		return err
	}
	said, err := json.Marshal(other.contents(source))
	if err != nil {
		return err
	}
	// accept applies a patch to the object and reports whether it did.
	accept := func(patch json.RawMessage) (bool, error) {
		current, err := json.Marshal(of.contents(object))
		if err != nil {
			return false, err
		}
		patched, err := jsonpatch.MergePatch(current, patch)
		if err != nil {
			return false, err
		}
		var candidate T
		into := of.contents(&candidate)
		if json.Unmarshal(patched, &into) != nil {
			return false, nil //nolint:nilerr // such a patch is none of ours either
		}
		seen, err := shown(&candidate)
		if err != nil || !bytes.Equal(seen, view) && !bytes.Equal(seen, said) {
			return false, err
		}
		*of.meta(&candidate) = *of.meta(object)
		setContents(of, object, &candidate)
		return true, nil
	}
	if all, err := accept(patch); all || err != nil {
		return err
	}
	all := pieces(patch)
	for _, piece := range all[:min(len(all), maxPieces)] {
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

// pieces takes a merge patch apart into patches of one value each, in the order of their paths.
func pieces(patch json.RawMessage) []json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(patch, &fields) != nil || len(fields) == 0 {
		return []json.RawMessage{patch}
	}
	var out []json.RawMessage
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		name, _ := json.Marshal(key) // a string always encodes
		for _, piece := range pieces(fields[key]) {
			out = append(out, fmt.Appendf(nil, "{%s:%s}", name, piece))
		}
	}
	return out
}
