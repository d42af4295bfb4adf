package walk

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// word is a change of a text or a list of an object that shows by itself in what is made for it: another text, or an item less.
type word struct {
	path        []string
	there, back any
	text, item  any // what is to be found then, nil for none, or not to be found any more
}

func (c word) String() string { return strings.Join(c.path, ".") }

// images and hosts are names of fields that name an image or a host.
var images, hosts = []string{"image", "tag"}, []string{"host", "hostname", "domain", "fqdn"}

// names reports whether the field that is changed is called as one of fields.
func (c word) names(fields []string) bool {
	return slices.Contains(fields, strings.ToLower(c.path[len(c.path)-1]))
}

// goesOut reports whether others than the operator act on the change: nodes pull images, and somebody may ask for an address or a certificate of a host.
func (c word) goesOut() bool { return c.names(images) || c.names(hosts) }

// ofKind are those of operands that are of a kind.
func ofKind(operands map[string]observe.Operand, kind string) map[string]observe.Operand {
	operands = maps.Clone(operands)
	maps.DeleteFunc(operands, func(_ string, made observe.Operand) bool { return made.Kind != kind })
	return operands
}

// shows reports whether the change is seen in what was made for the object.
func (c word) shows(operands map[string]observe.Operand) bool {
	if c.text != nil {
		return judge.Mentioned(operands, c.text)
	}
	return !judge.Mentioned(operands, c.item)
}

// words lists changes of texts and lists of an object that nobody uses, which are found in what was made for it: another tag of an image, another
// minute of a schedule, another host, a larger amount of what is not stored, one item less of a list.
func words(schema *apiextensionsv1.JSONSchemaProps, object map[string]any, found map[string]judge.Carriage) []word {
	var list []word
	spec, _ := object["spec"].(map[string]any)
	visitFields(schema, []string{"spec"}, spec, func(path []string, value any, s apiextensionsv1.JSONSchemaProps) {
		if !found[strings.Join(path, ".")].Found() || len(s.Enum) > 0 {
			return
		}
		switch value := value.(type) {
		case string:
			if other := otherWord(path[len(path)-1], value); other != value && !ofStorage(path, value) {
				list = append(list, word{path: path, there: other, back: value, text: other})
			}
		case []any:
			if n := len(value); n > 0 {
				list = append(list, word{path: path, there: value[:n-1], back: value, item: value[n-1]})
			}
		}
	})
	return list
}

// ofStorage reports whether the field at path, which says value, is how much is stored: that may grow, and never shrinks again.
func ofStorage(path []string, value string) bool {
	return amount().MatchString(value) && slices.ContainsFunc(path, func(name string) bool {
		return stored.MatchString(name) || counts.MatchString(name) || strings.EqualFold(name, "capacity")
	})
}

// unsetImage is the change of spec.image of which object says nothing, to another tag of the image that operands run, if it is one.
func unsetImage(schema *apiextensionsv1.JSONSchemaProps, object map[string]any, operands map[string]observe.Operand) []word {
	images := map[string]bool{}
	for _, made := range operands {
		template, _ := made.Template()
		for _, c := range template.Spec.Containers {
			images[c.Image] = true
		}
	}
	path := []string{"spec", "image"}
	_, set, _ := unstructured.NestedFieldNoCopy(object, path...)
	if len(images) != 1 || set || schema == nil || schema.Properties["spec"].Properties["image"].Type != "string" {
		return nil
	}
	image := slices.Collect(maps.Keys(images))[0]
	other := otherWord("image", image)
	if other == image {
		return nil
	}
	return []word{{path: path, there: other, text: other}}
}

// withoutPulls are steps without those that may change the image of a pod: what the field of object says is a part of one of operands' images. A node
// would try to pull the other one, while others' images wait for that; where images are simulated, none is left out.
func (w *walk) withoutPulls(steps []step, object map[string]any, operands map[string]observe.Operand) []step {
	if w.Provider.Describe().Simulates {
		return steps
	}
	images := map[string]bool{}
	for _, made := range operands {
		template, _ := made.Template()
		for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
			for _, part := range imageParts(c.Image) {
				images[part] = true
			}
		}
	}
	return slices.DeleteFunc(steps, func(s step) bool {
		value, _, _ := unstructured.NestedFieldNoCopy(object, strings.Split(judge.OfField(s.Path), ".")...)
		return saysOneOf(images, value)
	})
}

// imageParts are the words by which an object may name an image: all of it, its repository, with and without the registry, its name, tag and digest.
func imageParts(image string) []string {
	repository, tag, digest := judge.SplitImage(image)
	tagged, _, _ := strings.Cut(image, "@")
	_, path, _ := strings.Cut(repository, "/")
	parts := []string{image, tagged, repository, path, repository[strings.LastIndex(repository, "/")+1:], tag, strings.TrimPrefix(tag, "v"), "v" + tag, digest}
	return slices.DeleteFunc(parts, func(part string) bool { return part == "" || part == "v" })
}

// saysOneOf reports whether value is one of words, or has such a one in it.
func saysOneOf(words map[string]bool, value any) bool {
	switch value := value.(type) {
	case string:
		return words[value]
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(value)), func(inner any) bool { return saysOneOf(words, inner) })
	case []any:
		return slices.ContainsFunc(value, func(inner any) bool { return saysOneOf(words, inner) })
	}
	return false
}

// scheduled matches the names of fields that may say a schedule.
var scheduled = observe.Compiled(`(?i)schedule$|cron`)

// everyMinute matches a schedule of cron's; the minute comes first.
var everyMinute = observe.Compiled(`^[0-9*,/-]+( \S+){4}$`)

// otherSchedule is a schedule of cron's at another minute, or the same of what is none.
func otherSchedule(value string) string {
	_, rest, _ := strings.Cut(value, " ")
	for _, minute := range []string{"7", "8"} {
		if other := minute + " " + rest; everyMinute().MatchString(value) && other != value {
			return other
		}
	}
	return value
}

// amount matches a number with a unit: of bytes, of processors, or of time.
var amount = observe.Compiled(`^([1-9][0-9]{0,8})([kKmMgGtT]i?[bB]?|[hsd]|[num]s)$`)

// otherAmount is an amount that is a little larger, or the same of what is none.
func otherAmount(value string) string {
	parts := amount().FindStringSubmatch(value)
	if parts == nil {
		return value
	}
	n, _ := strconv.Atoi(parts[1]) // digits alone
	return strconv.Itoa(n+1) + parts[2]
}

// otherWord is another value of a field called name, or the same where no other one is known.
func otherWord(name, value string) string {
	if slices.Contains(hosts, strings.ToLower(name)) {
		if other := "olmkit-" + value; strings.Contains(value, ".") && net.ParseIP(value) == nil && len(validation.IsDNS1123Subdomain(other)) == 0 {
			return other
		}
		return value
	}
	switch strings.ToLower(name) {
	case "image", "tag":
		tagged := name == "tag" || strings.Contains(value[strings.LastIndex(value, "/")+1:], ":")
		if strings.Contains(value, "@") || strings.Contains(value, "://") {
			return value
		}
		if tagged {
			return value + "-olmkit"
		}
		return value + ":olmkit"
	}
	if scheduled().MatchString(name) {
		return otherSchedule(value)
	}
	return otherAmount(value)
}

// wordsOf lists the changes of texts and lists of a copy, for which operands were made, that the API server takes all at the same time, by patch, which
// patches as a dry run. An image that nobody has is one of them only where it is simulated: a node would try to pull it, others' images would wait for
// that, and a StatefulSet does not come back from it by itself (kubernetes/kubernetes#67250).
func (w *walk) wordsOf(schema *apiextensionsv1.JSONSchemaProps, now *unstructured.Unstructured, operands map[string]observe.Operand, found map[string]judge.Carriage, patch func([]word) error) []word {
	simulates := w.Provider.Describe().Simulates
	changes := slices.DeleteFunc(words(schema, now.Object, found), func(c word) bool {
		unrouted := c.names(hosts) && !judge.Mentioned(ofKind(operands, "Ingress"), c.back) // it may have to be there to be reached
		return c.goesOut() && !simulates || unrouted || patch([]word{c}) != nil
	})
	if simulates {
		if more := slices.Concat(changes, unsetImage(schema, now.Object, operands)); patch(more) == nil {
			return more
		}
	}
	if len(changes) > 0 && patch(changes) != nil {
		return nil
	}
	return changes
}

// changeWords changes the texts and lists of a copy, for which operands were made, all at the same time, and changes them back; each shows by itself.
// It notes in is how often each does.
func (w *walk) changeWords(ctx context.Context, r *lifecycle.Release, o *newObject, operands map[string]observe.Operand, was judge.New, is *judge.New) error {
	resource := o.At(w.Dynamic, o.Version)
	now, err := resource.Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return ctx.Err() // its operator may delete what it does not want
	}
	patch := func(changes []word, value func(word) any, dryRun ...string) error {
		return patchWords(ctx, resource, o.Name, changes, value, dryRun...)
	}
	there, back := func(c word) any { return c.there }, func(c word) any { return c.back }
	changes := w.wordsOf(definition.Schema(r.CRD(o.CRD), o.Version), now, operands, is.Carried, func(changes []word) error { return patch(changes, there, metav1.DryRunAll) })
	if len(changes) == 0 {
		return ctx.Err()
	}
	if err := w.awaitIdle(ctx, o); err != nil {
		return err
	}
	if err := w.noteMoves(ctx, o, "", is.Follows[o.following.field] == judge.Surely); err != nil {
		return err
	}
	var changed map[string]observe.Operand
	try := func(changes []word) error {
		for _, c := range changes {
			is.Follows[c.String()] = 0
		}
		for times, value := range []func(word) any{there, back} {
			if patch(changes, value) != nil {
				return ctx.Err()
			}
			if err := w.awaitWords(ctx, o, changes, times == 0, was, is); err != nil {
				return err
			}
			if times == 0 && changed == nil {
				view := w.viewOf(o.Object)
				if changed, err = view.RecentOperands(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := try(changes); err != nil {
		return err
	}
	for _, c := range changes { // one may have kept another from being followed
		if path := c.String(); len(changes) > 1 && was.Follows[path] == judge.Surely && is.Follows[path] == 0 {
			if err := errors.Join(w.awaitIdle(ctx, o), try([]word{c})); err != nil {
				return err
			}
		}
	}
	return w.noteWords(ctx, o, changes, changed, is)
}

// noteWords notes what of that which was made for a copy is as it was when its texts were changed, although those of changes that surely were followed have been changed back.
func (w *walk) noteWords(ctx context.Context, o *newObject, changes []word, changed map[string]observe.Operand, is *judge.New) error {
	var paths []string
	for _, c := range changes {
		if path := c.String(); is.Follows[path] == judge.Surely {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	if err := w.awaitStill(ctx, false, o); err != nil {
		return err
	}
	_, err := w.awaitBack(ctx, o, strings.Join(paths, judge.And), o.following.before, changed)
	return err
}

// awaitWords waits until changes show, or do not any more, and counts in is which do. Those that did surely under the release before are waited for
// longer.
func (w *walk) awaitWords(ctx context.Context, o *newObject, changes []word, show bool, was judge.New, is *judge.New) error {
	view, began, did := w.viewOf(o.Object), time.Now(), map[string]bool{}
	err := lookUntil(ctx, judge.EffectLimit, lookPause, func() (bool, error) {
		operands, err := view.RecentOperands(ctx)
		awaited := false
		for _, c := range changes {
			if path := c.String(); !did[path] {
				did[path] = c.shows(without(operands, o.needs)) == show
				awaited = awaited || !did[path] && (was.Follows[path] == judge.Surely || time.Since(began) < boldLimit)
			}
		}
		return !awaited, err
	})
	for path := range did {
		if did[path] && (show || is.Follows[path] > 0) { // what never showed need not go
			is.Follows[path]++
		}
	}
	return err
}

// patchWords patches the object called name so that it says value of each of changes.
func patchWords(ctx context.Context, resource dynamic.ResourceInterface, name string, changes []word, value func(word) any, dryRun ...string) error {
	object := map[string]any{}
	for _, c := range changes {
		if err := unstructured.SetNestedField(object, value(c), c.path...); err != nil {
			return err
		}
	}
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return mergePatch(ctx, resource, name, data, dryRun...)
}
