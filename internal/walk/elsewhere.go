package walk

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// distant is what an operator made for a copy, and what the garbage collector does not delete with it: of the cluster's scope, in another namespace, of
// a kind that is no operand, or without an owner. What is shared was there before, and says something of the copy; beside that, of its sample.
type distant struct {
	observe.Creation
	made           *unstructured.Unstructured
	shared, beside bool
}

// findElsewhere notes in copies, which are about to be deleted, what r's operator made for each of them elsewhere since began. Nothing is known without
// an audit log, or on a cluster that stays.
func (w *walk) findElsewhere(ctx context.Context, r *lifecycle.Release, copies []*newObject, began time.Time) error {
	log, mine, err := w.auditOf(ctx, r, began)
	if err != nil || mine == nil || !w.Provider.Disposable() {
		return err
	}
	for _, c := range observe.Written(log, mine) {
		if !slices.ContainsFunc(copies, func(o *newObject) bool { return o.elsewhere(c) }) {
			continue
		}
		made, err := w.distantNow(ctx, c)
		if err != nil {
			return err
		}
		if made == nil {
			continue
		}
		text := textOf(made)
		for _, o := range copies {
			before := made.GetCreationTimestamp().Time.Before(o.Since)
			if o.elsewhere(c) && o.meant(text) && (before || w.outlasts(made)) {
				shared := before || !strings.Contains(made.GetName(), o.Name) && o.saysOfSample(text)
				o.distant = append(o.distant, distant{c, made, shared, o.besideSample(text)})
			}
		}
	}
	for _, o := range copies {
		o.searched = true
	}
	return nil
}

// outlasts reports whether Kubernetes does not delete made with a copy: it belongs to nobody, or to samples alone, as where objects of two kinds have something for each pair of them.
func (w *walk) outlasts(made *unstructured.Unstructured) bool {
	return !slices.ContainsFunc(made.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return !slices.ContainsFunc(w.Objects, func(o *observe.Object) bool { return o.UID == owner.UID })
	})
}

// others are resources that controllers of the cluster delete, or that name whom they are for.
var others = []string{"leases", "persistentvolumes", "persistentvolumeclaims", "certificatesigningrequests"}

// elsewhere reports whether c is neither known as an operand of a copy nor of its kind, and may be about the copy.
func (o *newObject) elsewhere(c observe.Creation) bool {
	is := func(made observe.Operand) bool {
		return madeAs(made, c) && made.Namespace == c.Namespace && made.Kind != observe.KindNamespace
	}
	known := slices.ContainsFunc(slices.Collect(maps.Values(o.had)), is) || slices.ContainsFunc(o.unowned, is)
	return !known && c.GroupResource() != o.Resource && !slices.Contains(others, c.Resource)
}

// textOf is all that an object says.
func textOf(o *unstructured.Unstructured) string {
	text, err := json.Marshal(o.Object)
	if err != nil { // it was read from JSON
		return ""
	}
	return string(text)
}

// meant reports whether text, of something that belongs to nobody, says that it is there for a copy.
func (o *newObject) meant(text string) bool {
	return strings.Contains(text, o.Name) || strings.Contains(text, string(o.UID)) ||
		slices.ContainsFunc(o.uniques, func(u unique) bool { return strings.Contains(text, u.text) })
}

// saysOfSample reports whether text, which says something of a copy, says something of its sample, too.
func (o *newObject) saysOfSample(text string) bool {
	return strings.Contains(strings.ReplaceAll(text, o.Name, ""), o.like.Name)
}

// nameLike matches what may be a name of its own in a text.
var nameLike = regexp.MustCompile(`[A-Za-z0-9.-]+`)

// besideSample reports whether text names the sample of a copy as it names the copy: not as a part of an address, which the spec of both may have.
func (o *newObject) besideSample(text string) bool {
	words := nameLike.FindAllString(text, -1)
	return slices.ContainsFunc(words, func(word string) bool {
		return strings.Contains(word, o.Name) && slices.Contains(words, strings.ReplaceAll(word, o.Name, o.like.Name))
	})
}

// timesNamed is how often text says name: that alone, not as a part of another or of an address.
func timesNamed(text, name string) (times int) {
	for _, word := range nameLike.FindAllString(text, -1) {
		if word == name {
			times++
		}
	}
	return times
}

// mostElsewhere is how much of what was made elsewhere for a copy is deleted at most.
const mostElsewhere = 3

// takeElsewhere deletes what was made elsewhere for copies and belongs to nobody, and notes in created whether it is made again, as takeFromNew does. What is not is put back.
func (w *walk) takeElsewhere(ctx context.Context, copies []*newObject, before, created map[string]judge.New) error {
	for _, o := range copies {
		if !o.tried {
			continue
		}
		is, was, tried := created[o.CRD], before[o.CRD], 0
		for i := range o.distant {
			d := &o.distant[i]
			kind := d.made.GetKind()
			if tried == mostElsewhere || d.shared || len(d.made.GetOwnerReferences()) > 0 || kind != observe.KindSecret && !slices.Contains(remade, kind) {
				continue
			}
			tried++
			key := kind + " " + strings.TrimPrefix(o.plain(client.ObjectKeyFromObject(d.made).String()), "/")
			limit, times := trials(boldLimit, was.Remakes[key], false, was)
			for range times {
				remade, err := w.takeDistant(ctx, o, d, limit)
				if err != nil {
					return err
				}
				if is.Remakes[key] = remade; !remade {
					break
				}
			}
		}
	}
	return nil
}

// takeDistant deletes what was made elsewhere for a copy, and reports whether it is made again within limit, which d is then. If not, it is put back.
func (w *walk) takeDistant(ctx context.Context, o *newObject, d *distant, limit time.Duration) (remade bool, err error) {
	if err := w.awaitIdle(ctx, o); err != nil {
		return false, err
	}
	if err := w.deleteDistant(ctx, *d); err != nil {
		return false, err
	}
	anew, err := seeAnew(ctx, d.made.GetUID(), limit, func() (*unstructured.Unstructured, error) { return w.distantNow(ctx, d.Creation) })
	if anew != nil {
		d.made = anew
	}
	if err != nil || anew != nil {
		return anew != nil, err
	}
	made, err := w.putBack(ctx, d.GroupVersionResource, d.made)
	if made != nil {
		d.made = made
	}
	return false, err
}

// distantNow reads what was created, or returns nil where there is none, or where it is about to go.
func (w *walk) distantNow(ctx context.Context, c observe.Creation) (*unstructured.Unstructured, error) {
	now, err := w.Dynamic.Resource(c.GroupVersionResource).Namespace(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if err == nil && now.GetDeletionTimestamp() == nil {
		return now, nil
	}
	return nil, ctx.Err() // who may not read it, or gets no answer, knows nothing of it
}

// seeElsewhere returns which of what was made elsewhere for a copy, which is gone since began, went with it, and deletes the rest. What stayed under the release before,
// as was says, or was not known is not waited for as long.
func (w *walk) seeElsewhere(ctx context.Context, o *newObject, began time.Time, was judge.New) ([]judge.Distant, error) {
	if !o.searched {
		return nil, nil
	}
	seen := []judge.Distant{}
	for _, d := range o.distant {
		named := judge.Distant{Kind: d.made.GetKind(), Shared: d.shared, Beside: d.beside, Name: o.named(client.ObjectKeyFromObject(d.made).String())}
		named.Name = strings.TrimPrefix(strings.ReplaceAll(named.Name, string(o.UID), "…"), "/")
		limit := judge.EffectLimit
		if was.Elsewhere == nil || slices.ContainsFunc(was.Elsewhere, func(other judge.Distant) bool {
			return other.Kind == named.Kind && other.Shared == d.shared && !other.Gone
		}) {
			limit = downLimit
		}
		err := lookUntil(ctx, limit-time.Since(began), lookPause, func() (bool, error) {
			now, err := w.distantNow(ctx, d.Creation)
			named.Gone = now == nil || now.GetUID() != d.made.GetUID() || d.shared && !o.meant(textOf(now))
			return named.Gone, err
		})
		switch {
		case err == nil && !named.Gone:
			err = w.deleteDistant(ctx, d)
		case err == nil:
			w.noteCleared(d, o)
		}
		if err != nil {
			return nil, err
		}
		seen = append(seen, named)
	}
	slices.SortFunc(seen, func(a, b judge.Distant) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return seen, nil
}

// deleteDistant deletes what was made elsewhere. What is shared and what may not be deleted stay.
func (w *walk) deleteDistant(ctx context.Context, d distant) error {
	if d.shared {
		return nil
	}
	options := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground), Preconditions: metav1.NewUIDPreconditions(string(d.made.GetUID()))}
	_ = w.Dynamic.Resource(d.GroupVersionResource).Namespace(d.Namespace).Delete(ctx, d.Name, options)
	return ctx.Err()
}
