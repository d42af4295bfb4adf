package walk

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/managerlog"
	"github.com/olmkit/olmkit/internal/observe"
)

// admission is what became of requests about a kind under a release.
type admission struct {
	like     *observe.Object // that was to be copied or changed
	requests []request       // that a webhook or a policy refused
	taken    []request       // that nobody refused, of usual ones and those for none
}

// asking are the requests about a kind that are to be made under a release.
type asking struct {
	like    *observe.Object
	again   []request // that were refused under the release before
	taken   []request // usual ones, and those for none, that were taken then
	guarded bool      // whether somebody who validates is still asked about them
	first   []request // that are made for the first time
}

const (
	// askedAtOnce is how many requests are under way.
	askedAtOnce = 8
	// askLimit is how long requests about a kind may take: a webhook may be slow.
	askLimit = 20 * time.Second
	// surelyPause is after what time a request is made once more.
	surelyPause = time.Second
)

// askings are the requests that r is to be held to, those first that the release called from refused.
func (w *walk) askings(ctx context.Context, from string, r *lifecycle.Release) ([]asking, error) {
	if w.options.Restore != nil || !w.OperatorRuns(r) || w.SimulatedAmong(r.AdmissionImages()) != "" {
		return nil, nil
	}
	var list []asking
	guards, err := w.Guards(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(w.admitted[from])) {
		before := w.admitted[from][name]
		a := asking{like: before.like}
		d := r.CRD(a.like.CRD)
		if from == r.Name || d == nil || !w.IsServed(d.Name, a.like.Version) || a.like.Gone {
			continue
		}
		schema := definition.Schema(d, a.like.Version)
		isUnknown := func(r request) bool { return !knows(schema, r.path) }
		a.again = slices.DeleteFunc(slices.Clone(before.requests), isUnknown)
		if guards.AreAsked(a.like.Resource) || !reflect.DeepEqual(schema, definition.Schema(w.releases[from].CRD(d.Name), a.like.Version)) {
			a.taken = slices.DeleteFunc(slices.Clone(before.taken), isUnknown)
		}
		if len(a.again)+len(a.taken) == 0 {
			continue
		}
		a.guarded = guards.Validate(a.like.Resource)
		list = append(list, a)
	}
	if w.admitted[r.Name] != nil || w.after[r.Name] == nil { // nothing is compared with the last
		return list, nil
	}
	w.admitted[r.Name] = map[string]admission{}
	chosen, err := w.toCopy(ctx, from, r)
	if err != nil {
		return nil, err
	}
	for _, like := range chosen {
		first := unusual(definition.Schema(r.CRD(like.CRD), like.Version), like.Author)
		var others []asking
		if guards.AreAsked(like.Resource) {
			others = w.askOthers(r, like, first)
		} else { // the next release's may be
			first = slices.DeleteFunc(first, func(r request) bool { return !r.Usual })
		}
		list = append(append(list, asking{like: like, first: first}), others...)
	}
	return list, nil
}

// askOthers are the requests for none of what samples of like's kind ask for some of and like, about which first are made, does not, each once.
func (w *walk) askOthers(r *lifecycle.Release, like *observe.Object, first []request) (list []asking) {
	known := slices.Clone(first)
	for _, other := range w.Untouched() {
		if other.CRD != like.CRD || other == like || !w.IsServed(other.CRD, other.Version) {
			continue
		}
		if more := forNone(definition.Schema(r.CRD(other.CRD), other.Version), other.Author, known); len(more) > 0 {
			known, list = append(known, more...), append(list, asking{like: other, first: more})
		}
	}
	return list
}

// judgeAdmission tells what webhooks and policies of the release called from refuse that nobody refuses under r, and what usual things those of r
// refuse that nobody did under that. No request is kept: each is a dry run, so it can go on while something else is judged.
func (w *walk) judgeAdmission(ctx context.Context, from string, r *lifecycle.Release, list []asking) (findings []finding.Finding, err error) {
	for _, a := range list {
		limited, cancel := context.WithTimeout(ctx, askLimit)
		now := w.surely(limited, a.like, judge.Taken, w.ask(limited, a.like, a.again))
		findings = append(findings, judge.Admitted(from, r.Name, a.like.String(), a.guarded, askedOf(a.again), askedOf(now))...)
		now = w.surely(limited, a.like, judge.RefusedByGuard, w.ask(limited, a.like, a.taken))
		findings = append(findings, judge.Narrowed(from, r.Name, a.like.String(), askedOf(a.taken), askedOf(now))...)
		findings = append(findings, judge.Replaced(from, r.Name, a.like.String(), askedOf(a.taken), askedOf(now))...)
		first := w.ask(limited, a.like, a.first)
		cancel()
		if a.first != nil {
			w.admitted[r.Name][a.like.String()] = admission{
				like:     a.like,
				requests: slices.DeleteFunc(slices.Clone(first), func(r request) bool { return r.Verdict != judge.RefusedByGuard }),
				taken:    slices.DeleteFunc(slices.Clone(first), func(r request) bool { return !r.Usual && r.value != int64(0) || r.Verdict != judge.Taken }),
			}
		}
	}
	return findings, ctx.Err()
}

func askedOf(requests []request) []judge.Asked {
	var asked []judge.Asked
	for _, r := range requests {
		asked = append(asked, r.Asked)
	}
	return asked
}

// knows reports whether schema has the field at path.
func knows(schema *apiextensionsv1.JSONSchemaProps, path []string) bool {
	for _, k := range path {
		if schema == nil {
			return false
		}
		p, has := schema.Properties[k]
		if !has {
			return false
		}
		schema = &p
	}
	return true
}

// ask makes requests about copies of like, or about like, and returns them with what becomes of them. Where not even a mere copy is taken, before
// and afterwards, no creation tells anything.
func (w *walk) ask(ctx context.Context, like *observe.Object, requests []request) []request {
	requests = slices.Clone(requests)
	plain := request{}
	if len(requests) > 0 {
		w.askOne(ctx, like, &plain)
	}
	if plain.Verdict == judge.Unanswered {
		return forget(requests, func(request) bool { return true })
	}
	created := plain.Verdict == judge.Taken
	var group errgroup.Group
	group.SetLimit(askedAtOnce)
	for i := range requests {
		if r := &requests[i]; r.Update || created {
			group.Go(func() error { w.askOne(ctx, like, r); return nil })
		}
	}
	_ = group.Wait()
	w.askOne(ctx, like, &plain)
	created = created && plain.Verdict == judge.Taken
	return forget(requests, func(r request) bool { return !r.Update && !created })
}

// forget notes that those of requests that are unwanted were not answered.
func forget(requests []request, unwanted func(request) bool) []request {
	for i := range requests {
		if unwanted(requests[i]) {
			requests[i].Verdict = judge.Unanswered
		}
	}
	return requests
}

// surely makes those of requests once more of which verdict is told, one at a time after a moment: what a webhook is too slow to refuse, or does not know to
// refuse yet, is taken by chance, and what it cannot look up yet is refused.
func (w *walk) surely(ctx context.Context, like *observe.Object, verdict judge.Verdict, requests []request) []request {
	isTold := func(r request) bool { return r.Verdict == verdict }
	if !slices.ContainsFunc(requests, isTold) {
		return requests
	}
	select {
	case <-ctx.Done():
	case <-time.After(surelyPause):
	}
	for i := range requests {
		r := &requests[i]
		if isTold(*r) {
			w.askOne(ctx, like, r)
		}
	}
	return requests
}

// askOne makes a request, as a dry run, and notes what becomes of it.
func (w *walk) askOne(ctx context.Context, like *observe.Object, r *request) {
	resource := like.At(w.Dynamic, like.Version)
	var err error
	var got *unstructured.Unstructured
	if r.Update {
		got, err = mergePatched(ctx, resource, like.Name, patchOf(r.path, r.value), metav1.DryRunAll)
	} else {
		o := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(like.Author)}
		o.SetAPIVersion(like.Resource.Group + "/" + like.Version)
		o.SetKind(like.Kind)
		o.SetNamespace(like.Namespace)
		o.SetName(shortened(like.Name) + "-asked")
		if r.set(o.Object) != nil {
			r.Verdict = judge.Unanswered
			return
		}
		got, err = resource.Create(ctx, o, metav1.CreateOptions{FieldManager: "olmkit", DryRun: []string{metav1.DryRunAll}})
	}
	r.Verdict, r.Guard, r.Said = verdictOf(err), "", ""
	switch {
	case err != nil:
		r.Said = managerlog.Cut(err.Error(), mostSaid)
		r.Guard = observe.Denial().FindString(r.Said)
	default:
		r.note(got.Object)
	}
}

// note notes what became of what the request asks for in object, which the API server took: a webhook may say something else there.
func (r *request) note(object map[string]any) {
	if len(r.path) == 0 {
		return
	}
	is, _, err := unstructured.NestedFieldNoCopy(object, r.path...)
	switch {
	case err != nil:
		r.Verdict = judge.Unanswered
	case reflect.DeepEqual(is, r.value):
	case is == nil || r.value == nil: // it is unknown, or has a default
		r.Verdict = judge.Unanswered
	default:
		r.Verdict, r.Said = judge.Overridden, requestOf(r.path, is).Value
	}
}

// set puts the request's value into object.
func (r request) set(object map[string]any) error {
	switch {
	case len(r.path) == 0:
		return nil
	case r.value == nil:
		unstructured.RemoveNestedField(object, r.path...)
		return nil
	}
	return unstructured.SetNestedField(object, runtime.DeepCopyJSONValue(r.value), r.path...)
}

// mostSaid is how many bytes are kept of what a webhook says.
const mostSaid = 600

// unread matches what a webhook says of an object that it cannot decode: who refuses that has no rule about it (k8s.io/apimachinery v0.36.3,
// pkg/api/resource/quantity.go, and Go's encoding/json and time).
var unread = observe.Compiled(`quantities must match the regular expression|unable to parse quantity|cannot unmarshal|time: (invalid|unknown|missing)|parsing time|strict decoding error`)

// verdictOf is what the answer to a request comes to. The words are the API server's (apiserver v0.36.3, pkg/admission/plugin/webhook/errors
// and pkg/admission/plugin/policy/validating).
func verdictOf(err error) judge.Verdict {
	switch {
	case err == nil:
		return judge.Taken
	case codeOf(err) >= http.StatusInternalServerError: // also of a webhook that panics
		return judge.Unanswered
	case codeOf(err) == http.StatusBadRequest && unread().MatchString(err.Error()):
		return judge.RefusedByRules
	case observe.Denial().MatchString(err.Error()):
		return judge.RefusedByGuard
	case observe.Refused(err):
		return judge.RefusedByRules
	}
	return judge.Unanswered
}

// codeOf is the HTTP status code of err, 0 where it has none.
func codeOf(err error) int32 {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}
