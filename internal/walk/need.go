package walk

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// need is a copy of what a new object names as the sample names the original: of a Secret, a ConfigMap or a workload of the user's, or of another sample.
type need struct {
	*unstructured.Unstructured
	of   string          // the name of the original
	like *observe.Object // the original, if it is a sample of the operator's, of which the copy is created after what names it
}

// original names the original as findings do.
func (n need) original() string { return n.GetKind() + " " + n.of }

// is reports whether made is n, and no copy of it that an operator made elsewhere.
func (n need) is(made observe.Operand) bool {
	return made.Kind == n.GetKind() && made.Name == n.GetName() && made.Namespace == n.GetNamespace()
}

// telling matches keys of a spec below which objects are named that hold settings.
var telling = observe.Compiled(`(?i)secret|config|ref|auth|cred|pass|cert|tls|key|from|env|source|template|settings`)

// settingKinds are the kinds that hold them.
var settingKinds = []string{"Secret", "ConfigMap"}

// needed are the Secrets and ConfigMaps, and on a cluster that goes with the walk the targets, among the user's samples that an object of a namespace names, in the namespaces where they are.
func (w *walk) needed(object map[string]any, namespace string) []*unstructured.Unstructured {
	var needed []*unstructured.Unstructured
	for _, s := range w.options.Samples {
		kind := s.GroupVersionKind()
		holds, runs := kind.Group == "" && slices.Contains(settingKinds, kind.Kind), kind.Group == "apps" && slices.Contains(targetKinds, kind.Kind)
		if !holds && (!runs || !w.Provider.Disposable()) || !names(object["spec"], kind.Kind, s.GetName()) {
			continue
		}
		for _, at := range w.ObjectNamespaces(s.GetNamespace()) {
			if namespace == "" || at == namespace {
				there := s.DeepCopy()
				there.SetNamespace(at)
				needed = append(needed, there)
			}
		}
	}
	return needed
}

// namesakes are copies of what an object of a namespace needs, under other names, which are not created yet.
func (w *walk) namesakes(object *unstructured.Unstructured, namespace string) (needs []need) {
	w.copied++
	for _, made := range w.needed(object.Object, namespace) {
		n := need{Unstructured: made, of: made.GetName()}
		made.SetName(fmt.Sprintf("%s-new%d", shortened(made.GetName()), w.copied))
		needs = append(needs, n)
	}
	return needs
}

// namesakesIn are namesakes for a copy of object in another namespace; "" if objects of its kind have none, which name what is anywhere.
func (w *walk) namesakesIn(object *unstructured.Unstructured, namespace, other string) []need {
	needs := w.namesakes(object, namespace)
	for _, n := range needs {
		if other != "" {
			n.SetNamespace(other)
		}
	}
	return needs
}

// naming returns a copy of object that names needs instead of the originals.
func naming(object *unstructured.Unstructured, needs []need) *unstructured.Unstructured {
	object = object.DeepCopy()
	for _, n := range needs {
		rename(object.Object["spec"], n.GetKind(), n.of, n.GetName(), false)
	}
	return object
}

// createNeeds creates needs, and reports whether the API server takes all of them. If not, none of them stays.
func (w *walk) createNeeds(ctx context.Context, needs []need) (bool, error) {
	for _, n := range needs {
		if err := observe.Retry(ctx, observe.Refused, func() error { return w.applyExtra(ctx, n.Unstructured) }); err != nil {
			return false, errors.Join(ctx.Err(), w.deleteNeeds(ctx, needs))
		}
	}
	return true, nil
}

// tells reports whether an object of a kind may be named below a key of a spec: what holds settings, and other kinds also below such as databaseName for a Database.
func tells(kind, key string) bool {
	if telling().MatchString(key) || slices.Contains(settingKinds, kind) {
		return telling().MatchString(key)
	}
	kind, key = strings.ToLower(kind), strings.ToLower(key)
	stem := strings.TrimSuffix(key, "name")
	return strings.Contains(key, kind) || len(stem) > 2 && strings.Contains(kind, stem)
}

// names reports whether a spec says name, of an object of a kind, where rename would rename it.
func names(spec any, kind, name string) bool {
	return !reflect.DeepEqual(rename(runtime.DeepCopyJSONValue(spec), kind, name, name+"-other", false), spec)
}

// rename has value name to, of an object of a kind, instead of from wherever it says that below a key that tells so, as told says of value itself, or beside such a kind.
func rename(value any, kind, from, to string, told bool) any {
	switch v := value.(type) {
	case string:
		if told && v == from {
			return to
		}
	case map[string]any:
		said, _ := v["kind"].(string)
		told = told || said == kind
		for k, inner := range v {
			v[k] = rename(inner, kind, from, to, told || tells(kind, k))
		}
	case []any:
		for i, inner := range v {
			v[i] = rename(inner, kind, from, to, told)
		}
	}
	return value
}

// changeNeeds changes what a copy needs, one after the other, and notes in is how often anything that was made for it follows each, as
// changeNew does for its fields. What pods mount reaches them without the operator, but many do not look at it again. What somebody deleted is not needed any more.
func (w *walk) changeNeeds(ctx context.Context, o *newObject, operands map[string]observe.Operand, was judge.New, is *judge.New) error {
	is.Mounts = map[string][]string{}
	for _, n := range o.needs {
		now := n.DeepCopy()
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(n), now)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s %s/%s, a copy of the sample: %w", n.GetKind(), n.GetNamespace(), n.GetName(), err)
		}
		is.Mounts[n.original()] = mounting(operands, n.GetName())
		other := otherText
		if len(is.Mounts[n.original()]) > 0 {
			other = otherFile
		}
		there, back := otherData(now, other)
		if there == nil {
			continue
		}
		patch := func(data []byte) error {
			return w.Client.Patch(ctx, n.DeepCopy(), client.RawPatch(types.MergePatchType, data))
		}
		times, err := w.thereAndBack(ctx, o, n.original(), was, is.Follows, func() error { return patch(there) }, func() error { return patch(back) })
		if err != nil {
			return err
		}
		is.Follows[n.original()] = max(is.Follows[n.original()], times)
	}
	return nil
}

// mounting are the kinds of those of operands that have a volume of what is called name, sorted.
func mounting(operands map[string]observe.Operand, name string) (kinds []string) {
	for _, made := range operands {
		if judge.Mounts(made.Content, name) {
			kinds = append(kinds, made.Kind)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// without are those operands that are no needs, of which an operator may have become an owner.
func without(operands map[string]observe.Operand, needs []need) map[string]observe.Operand {
	if len(needs) == 0 {
		return operands
	}
	rest := maps.Clone(operands)
	maps.DeleteFunc(rest, func(_ string, made observe.Operand) bool {
		return slices.ContainsFunc(needs, func(n need) bool { return n.is(made) })
	})
	return rest
}

// takes names those of a copy's needs, among operands, that belong to it, which are the user's.
func (o *newObject) takes(operands map[string]observe.Operand) []string {
	if len(o.needs) == 0 {
		return nil
	}
	taken := []string{}
	for _, n := range o.needs {
		for _, made := range operands {
			if n.is(made) && made.Of == o.String() && made.Direct {
				taken = append(taken, n.original())
			}
		}
	}
	return taken
}

// deleteNeeds deletes what was copied for a copy.
func (w *walk) deleteNeeds(ctx context.Context, needs []need) error {
	var errs []error
	for _, n := range needs {
		if err := w.Client.Delete(ctx, n.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete the copy of %s: %w", n.original(), err))
		}
	}
	return errors.Join(errs...)
}

// otherData returns merge patches that change all that a Secret or a ConfigMap says to what other returns, and change it back; nil if there is nothing to change.
func otherData(object *unstructured.Unstructured, other func(text string) string) (there, back []byte) {
	was, _, _ := unstructured.NestedStringMap(object.Object, "data")
	is := map[string]string{}
	for k, v := range was {
		text, encode := v, func(text string) string { return text }
		if object.GetKind() == "Secret" {
			plain, err := base64.StdEncoding.DecodeString(v)
			if err != nil || !utf8.Valid(plain) {
				continue
			}
			text, encode = string(plain), func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
		}
		if changed := other(text); changed != text {
			is[k] = encode(changed)
		}
	}
	if len(is) == 0 {
		return nil, nil
	}
	patch := func(data map[string]string) []byte {
		text, _ := json.Marshal(map[string]any{"data": data}) // strings always can be written
		return text
	}
	return patch(is), patch(was)
}

// structured matches a line of which another one would be none: JSON, an address, a choice.
var structured = observe.Compiled(`^[\[{]|://|^(true|false)$`)

// otherFile is another text for who reads it as a file, as pods do: it ends with one more empty line, and means the same.
func otherFile(text string) string { return text + "\n" }

// otherText is another text that means much the same: of several lines with an empty one among them. It is the same text where no other one
// is known.
func otherText(text string) string {
	line := strings.TrimRight(text, "\n")
	number, err := strconv.ParseInt(line, 10, 32)
	switch {
	case err == nil:
		return strings.Replace(text, line, strconv.FormatInt(number+1, 10), 1)
	case strings.Contains(text, "-----BEGIN"):
		return text
	case strings.Contains(line, "\n"):
		return strings.Replace(text, "\n", "\n\n", 1)
	case line == "" || structured().MatchString(line):
		return text
	}
	return line + "0" + text[len(line):]
}
