package walk

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// unique is a text in the spec of a new object which no other one may have there, and the one that the sample has.
type unique struct{ text, of string }

var (
	// identifying matches fields that say what something outside of the object is called, of which there may be one alone.
	identifying = observe.Compiled(`(?i)(name|host|domain|target|path|topic|bucket|database|db|user|login|prefix|id|key|alias|subject|queue|address|slug|realm|tenant|role|stream|channel|vhost|destination|output)s?$`)
	// elsewhereNamed matches those that name what is there already.
	elsewhereNamed = observe.Compiled(`(?i)class|account|image|secret|config|ref|namespace|volume|claim|node|scheduler|priority|registry|repository|issuer|key(name)?$`)
	// plainText matches texts of which another one means much the same.
	plainText = observe.Compiled(`^[A-Za-z][A-Za-z0-9._/-]*$`)
)

// uniquesOf are the paths of the fields of a sample, which r's definition has, of which no two objects may have the same text.
func (w *walk) uniquesOf(r *lifecycle.Release, like *observe.Object) (paths []string) {
	w.visitTexts(r, like, func(path, text string) {
		_, err := netip.ParseAddr(text)
		if field := lastOf(path); err != nil && identifying().MatchString(field) && !elsewhereNamed().MatchString(field) {
			paths = append(paths, path)
		}
	})
	return paths
}

// visitTexts calls found for the paths of those fields of the spec of a sample, which r's definition has, whose text may be another one.
func (w *walk) visitTexts(r *lifecycle.Release, like *observe.Object, found func(path, text string)) {
	spec, _ := like.Author["spec"].(map[string]any)
	visitFields(definition.Schema(r.CRD(like.CRD), like.Version), []string{"spec"}, spec, func(path []string, value any, s apiextensionsv1.JSONSchemaProps) {
		text, _ := value.(string)
		if plainText().MatchString(text) && len(s.Enum) == 0 && !w.isNamed(like, path, text) {
			found(strings.Join(path, "."), text)
		}
	})
}

// namesMade are the paths of the fields of the spec of objects of a sample, which r's definition has, whose text is the name of something that r's operator made: another object that says the
// same would get what is the sample's. Who has it may change from one moment to the next.
func (w *walk) namesMade(ctx context.Context, r *lifecycle.Release, objects []*observe.Object) (paths []string, err error) {
	made := map[string]bool{}
	for _, o := range objects {
		names, err := w.NamesMade(ctx, o)
		if err != nil {
			return nil, err
		}
		maps.Copy(made, names)
	}
	w.visitTexts(r, objects[0], func(path, text string) {
		if made[text] {
			paths = append(paths, path)
		}
	})
	return paths, nil
}

// isNamed reports whether text, at path of a sample, is the name of another object, or is at the same place of one.
func (w *walk) isNamed(like *observe.Object, path []string, text string) bool {
	return slices.ContainsFunc(w.Objects, func(o *observe.Object) bool {
		same, _, _ := unstructured.NestedString(o.Author, path...)
		return o.Sample != like.Sample && (o.Name == text || o.CRD == like.CRD && same == text)
	}) || slices.ContainsFunc(w.options.Samples, func(s *unstructured.Unstructured) bool {
		return s.GetName() == text && (s.GetKind() != like.Kind || text != like.Sample)
	})
}

// numbered matches by what the names of new objects differ from release to release.
var numbered = observe.Compiled(`-(?:new|own|(alt))[0-9]+`)

// unnumbered is what the object called name, and under each release that of another number, is known by.
func unnumbered(name string) string {
	return numbered().ReplaceAllString(name, "-$1")
}

// uniqueText is text as only the object that is known by key has it: whatever it means, letters and digits before its first dot are allowed in it.
func uniqueText(text, key string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(key))
	name, rest, _ := strings.Cut(text, ".")
	return name + "x" + strconv.FormatUint(uint64(sum.Sum32())%(36*36*36*36), 36) + text[len(text)-len(rest)-min(1, len(text)-len(name)):]
}

// uniqueAt is text, at path of the spec of objects like one, as only the object called key has it. What is called so may be left of an object of an earlier release.
func (w *walk) uniqueAt(like *observe.Object, path, text string, key client.ObjectKey) string {
	if w.makes[ofVersion(like)+" "+path] {
		return uniqueText(text, key.String())
	}
	return uniqueText(text, unnumbered(key.String()))
}

// withUniques returns object, which is to be a copy of like called key, with other texts where no two objects may have the same.
func (w *walk) withUniques(object *unstructured.Unstructured, like *observe.Object, key client.ObjectKey) (*unstructured.Unstructured, []unique) {
	var others []unique
	for _, path := range w.uniques[ofVersion(like)] {
		fields := strings.Split(path, ".")
		was, _, _ := unstructured.NestedString(like.Author, fields...)
		is, _, _ := unstructured.NestedString(object.Object, fields...)
		if was == "" || is != was {
			continue
		}
		if len(others) == 0 {
			object = object.DeepCopy()
		}
		other := unique{w.uniqueAt(like, path, was, key), was}
		_ = unstructured.SetNestedField(object.Object, other.text, fields...) // it was there
		others = append(others, other)
	}
	return object, others
}

// otherTexts lists changes of a copy to other texts where no two objects may have the same.
func (w *walk) otherTexts(o *newObject, object map[string]any) (steps []step) {
	for _, path := range w.uniques[ofVersion(o.like)] {
		fields := strings.Split(path, ".")
		if text, _, _ := unstructured.NestedString(object, fields...); text != "" {
			steps = append(steps, stepOf(fields, w.uniqueAt(o.like, path, text, client.ObjectKey{Namespace: o.Namespace, Name: o.Name + " changed"}), text))
		}
	}
	return steps
}

// ofVersion is what is noted of samples like one is known by: those of another version have other fields.
func ofVersion(like *observe.Object) string { return like.CRD + "/" + like.Version }

// copyUnique is copyNamed for a sample of which the API server refuses copies, or for which less is done than for the sample, with other texts where no two objects may have the same. It
// returns nil where there are none, or where the API server refuses that as well.
func (w *walk) copyUnique(ctx context.Context, from string, r *lifecycle.Release, like *observe.Object) (o *newObject, err error) {
	if _, compared := w.created[from][like.CRD]; compared || w.uniques[ofVersion(like)] != nil || !w.notesUniques(r, like) {
		return nil, nil
	}
	if o, err = w.copyNamed(ctx, r, like, fmt.Sprintf("%s-own%d", shortened(like.Name), len(w.created)+1)); o == nil {
		delete(w.uniques, ofVersion(like))
	}
	return o, err
}

// makeUnique has those of copies that get less than their samples, or say of themselves that they are worse, of which nothing was known before, replaced by others that differ where no two
// objects may be the same, if these are better off, and notes that in created.
func (w *walk) makeUnique(ctx context.Context, from string, r *lifecycle.Release, copies []*newObject, created map[string]judge.New) error {
	for i, first := range copies {
		if _, compared := w.created[from][first.CRD]; compared {
			continue
		}
		good := judge.New.Usable
		if good(created[first.CRD]) {
			alike, err := w.becomesAlike(ctx, first, created)
			if err != nil {
				return err
			}
			if alike {
				continue
			}
			good = isAlike
		}
		other, err := w.copyUnique(ctx, from, r, first.like)
		if err != nil {
			return err
		}
		if other == nil {
			continue
		}
		worse, kept := first, other
		err = w.awaitGood(ctx, other, newLimit, created, good)
		if !good(created[other.CRD]) {
			worse, kept = other, first
			delete(w.uniques, ofVersion(first.like))
		}
		copies[i] = kept
		if _, failed := w.removeCopies(ctx, []*newObject{worse}); err != nil || failed != nil {
			return errors.Join(err, failed)
		}
		if _, err := w.seeNew(ctx, []*newObject{kept}, created); err != nil {
			return err
		}
	}
	return nil
}

// isAlike reports whether a copy can be used, and is no worse than its sample by its own words.
func isAlike(n judge.New) bool { return n.Usable() && n.Copy.Alike }

// becomesAlike waits a moment until a copy is no worse by its own words than its sample, and reports whether it is. There may be words that do not tell whether it can be used.
func (w *walk) becomesAlike(ctx context.Context, o *newObject, created map[string]judge.New) (bool, error) {
	err := lookUntil(ctx, boldLimit, lookPause, func() (bool, error) {
		if created[o.CRD].Copy.Alike {
			return true, nil
		}
		_, err := w.seeNew(ctx, []*newObject{o}, created)
		return false, err
	})
	return created[o.CRD].Copy.Alike, err
}

// awaitGood notes in seen what is done for a copy, until that is good and all that comes at once is there, but not for longer than limit.
func (w *walk) awaitGood(ctx context.Context, o *newObject, limit time.Duration, seen map[string]judge.New, good func(judge.New) bool) error {
	return lookUntil(ctx, limit, lookPause, func() (bool, error) {
		_, err := w.seeNew(ctx, []*newObject{o}, seen)
		return good(seen[o.key()]) && seen[o.key()].Settled(), err
	})
}

// makeOther creates o, which the API server refused beside others of its sample, with other texts where no two objects may have the same. found is what is known of the refusal, which stays
// where that is refused as well.
func (w *walk) makeOther(ctx context.Context, r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition, sample *unstructured.Unstructured, o *observe.Object, found []finding.Finding) ([]finding.Finding, error) {
	like := &observe.Object{CRD: o.CRD, Kind: o.Kind, Version: o.Version, Sample: o.Sample, Author: sample.Object}
	known := w.uniques[ofVersion(o)] != nil
	if !w.notesUniques(r, like) {
		return found, nil
	}
	other, _ := w.withUniques(sample, like, client.ObjectKey{Namespace: o.Namespace, Name: o.Name})
	again, err := w.makeObject(ctx, r, d, other, o)
	if o.UID != "" || err != nil {
		return again, err
	}
	if !known {
		delete(w.uniques, ofVersion(o))
	}
	return found, nil
}

// notesUniques reports whether there are fields of which no two objects like one may have the same text, as far as anybody knows, and notes them.
func (w *walk) notesUniques(r *lifecycle.Release, like *observe.Object) bool {
	if w.uniques[ofVersion(like)] == nil {
		if paths := w.uniquesOf(r, like); len(paths) > 0 {
			w.uniques[ofVersion(like)] = paths
		}
	}
	return len(w.uniques[ofVersion(like)]) > 0
}

// separate creates anew, with other texts where no two objects may have the same, those of made that are of the sample of an earlier one, where some of these are well and others are not,
// or where the sample names what the operator makes. If that does not help, it is not done of others.
func (w *walk) separate(ctx context.Context, r *lifecycle.Release, made []*observe.Object) error {
	again, err := w.together(ctx, r, made)
	if err != nil || len(again) == 0 {
		return err
	}
	others, err := w.makeApart(ctx, r, again)
	if err == nil {
		err = w.reconciled(ctx, r, nil)
	}
	for _, o := range others {
		well, failed := w.Well(ctx, o)
		if err = errors.Join(err, failed); !well {
			delete(w.uniques, ofVersion(o))
		}
	}
	return err
}

// apartAfter is how long objects that are not well have to become that, where the operator does nothing any more, before they are taken for others that must not say the same.
const apartAfter = 10 * time.Second

// apart returns a function that tells, whenever it is asked, whether those of made that are not well may be so because others say the same.
func (w *walk) apart(ctx context.Context, r *lifecycle.Release, made []*observe.Object) func() (bool, error) {
	began, silent := time.Now(), w.silence(ctx)
	return func() (bool, error) {
		if !silent() || time.Since(began) < apartAfter {
			return false, nil
		}
		again, err := w.together(ctx, r, made)
		return len(again) > 0, err
	}
}

// together are those of made that are of the sample of an earlier one, where some of these are well and others are not, or where the sample names what the operator makes, and that may say
// something else.
func (w *walk) together(ctx context.Context, r *lifecycle.Release, made []*observe.Object) (again []*observe.Object, err error) {
	for _, first := range made {
		of := slices.DeleteFunc(slices.Clone(made), func(o *observe.Object) bool {
			return o.CRD != first.CRD || o.Sample != first.Sample || o.Version != first.Version
		})
		if of[0] != first || len(of) < 2 {
			continue
		}
		paths, err := w.namesMade(ctx, r, of)
		if err != nil {
			return nil, err
		}
		if len(paths) > 0 {
			w.uniques[ofVersion(first)] = union(w.uniques[ofVersion(first)], paths)
			for _, path := range paths {
				w.makes[ofVersion(first)+" "+path] = true
			}
			again = append(again, of[1:]...)
			continue
		}
		apart, err := w.someWell(ctx, of)
		if err != nil {
			return nil, err
		}
		if apart && w.notesUniques(r, first) {
			again = append(again, of[1:]...)
		}
	}
	return again, nil
}

// someWell reports whether some of objects are well, and as well as the first of them, and others are not.
func (w *walk) someWell(ctx context.Context, objects []*observe.Object) (bool, error) {
	seen := map[bool]bool{}
	for _, o := range objects {
		why, err := w.UnwellAs(ctx, o, objects[0])
		if err != nil {
			return false, err
		}
		seen[why == ""] = true
	}
	return len(seen) > 1, nil
}

// makeApart creates those of again that may be deleted anew, with other texts where no two objects may have the same, and returns them.
func (w *walk) makeApart(ctx context.Context, r *lifecycle.Release, again []*observe.Object) (others []*observe.Object, err error) {
	stay, err := w.removeThese(ctx, again, deletionLimit)
	w.Objects = slices.DeleteFunc(w.Objects, func(o *observe.Object) bool { return slices.Contains(again, o) && !slices.Contains(stay, o) })
	for _, o := range again {
		if err != nil || slices.Contains(stay, o) {
			continue
		}
		other, _ := w.withUniques(&unstructured.Unstructured{Object: o.Author}, o, client.ObjectKey{Namespace: o.Namespace, Name: o.Name})
		apart := &observe.Object{CRD: o.CRD, Resource: o.Resource, Kind: o.Kind, Version: o.Version, Namespace: o.Namespace, Sample: o.Sample, Name: o.Name, Written: o.Written}
		_, err = w.makeObject(ctx, r, r.CRD(o.CRD), other, apart)
		others = append(others, apart)
	}
	return others, err
}
