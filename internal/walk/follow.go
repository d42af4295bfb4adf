package walk

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// following is what of what was made for a new object is written when a field of the object is changed.
type following struct {
	field string              // that was changed last
	seen  map[string]string   // how often each operand was written before
	moves map[string][]string // the kinds that were written, by field

	before, there map[string]observe.Operand // what there was before the change, and when it had been followed; nil if it was not
	traces        map[string][]string        // what was another then, by field
	stays         map[string][]string        // what was not as before when it had been changed back, by field

	entry    [2]string // that the change takes out of a map; none if it takes out none
	retained []string  // the ConfigMaps that go on saying it; nil if that is not known

	asked string              // what the field that is changed asked for before, "" if that is no text, number or choice
	keeps map[string][]string // what still said that when the change was followed, of what was another then under the release before, by field

	wanted  string              // the number that the change asks for, "" if it asks for none
	honours map[string][]string // what says it when the change was followed, by field

	was judge.New // what the operator did under the release before

	shed map[string][]string // what went when a field was changed, named as in judge.New.Remakes, by field

	said  map[string]any      // what the status said before the change
	tells map[string][]string // the fields of the status that said something else when a field was changed, by field
	says  []string            // the fields that the status has

	entries map[string]string   // what is made for others said of the copy before the change
	relays  map[string][]string // what of that said something else when a field was changed, by field
	saying  []string            // what of that ever said something

	told   []string            // what is made for others and said something of the copy before; nil if the change does not have it name another
	clings map[string][]string // what of that goes on saying so when the copy names another, by field

	templates, revisions string          // what pods were made from, and which of that those ran that there were, before
	rolls                map[string]bool // whether pods were replaced when what they are made from changed, by field
}

// begin forgets what followed earlier; was is what the operator did under the release before.
func (f *following) begin(was judge.New) {
	f.was, f.rolls, f.saying = was, map[string]bool{}, nil
	for _, noted := range []*map[string][]string{&f.moves, &f.traces, &f.stays, &f.keeps, &f.shed, &f.tells, &f.clings, &f.relays, &f.honours} {
		*noted = map[string][]string{}
	}
}

// noteIn notes in is what followed the changes of a copy.
func (f *following) noteIn(is *judge.New) {
	is.Sheds, is.Stays, is.Tells, is.States, is.Moves, is.Traces, is.Rolls, is.Keeps, is.Clings = f.shed, f.stays, f.tells, f.says, f.moves, f.traces, f.rolls, f.keeps, f.clings
	is.Relays, is.Saying, is.Honours = f.relays, f.saying, f.honours
}

// noteMoves notes which kinds the change before was followed by, which surely says something did, now that all is at rest, and that field is to be
// changed next.
func (w *walk) noteMoves(ctx context.Context, o *newObject, field string, surely bool) error {
	f, view := &o.following, w.viewOf(o.Object)
	followed, look := f.field != "" && surely, view.ConfirmedOperands
	if followed {
		look = func(ctx context.Context) (map[string]observe.Operand, error) {
			return w.awaitBack(ctx, o, f.field, f.before, f.there)
		}
	}
	operands, err := look(ctx)
	if err != nil {
		return err
	}
	says, err := w.statusOf(ctx, o.Object)
	if err != nil {
		return err
	}
	now := writes(without(operands, o.needs))
	if followed {
		f.moves[f.field] = moved(f.seen, now)
		f.traces[f.field] = union(o.trace(f.before, f.there), o.trace(f.there, operands))
		f.tells[f.field] = f.surelyTells(says)
	}
	if err := w.noteEntries(ctx, o); err != nil {
		return err
	}
	f.field, f.seen, f.before, f.there, f.said, f.says = field, now, operands, nil, says, slices.Sorted(maps.Keys(says))
	f.templates, f.revisions = templatesOf(operands), revisionsOf(operands)
	if f.told = nil; strings.HasSuffix(field, judge.Another) {
		f.told, err = w.tellingOf(ctx, o)
	}
	return err
}

// tellingOf names what is made for others and says something of o, sorted.
func (w *walk) tellingOf(ctx context.Context, o *newObject) ([]string, error) {
	others, err := w.madeForOthers(ctx, o)
	telling := []string{}
	for _, made := range others {
		if o.isIn(made) {
			telling = append(telling, made.Kind+" "+unnumbered(made.Name))
		}
	}
	slices.Sort(telling)
	return telling, err
}

// isIn reports whether what was made for another object says something of o.
func (o *newObject) isIn(made observe.Operand) bool { return saysAny(made, o.meant) }

// saysAny reports whether a value of made, or its path, is a text that fits.
func saysAny(made observe.Operand, fits func(text string) bool) bool {
	for path, value := range compare.Values(made.Content) {
		if fits(path) || fits(value) {
			return true
		}
	}
	return false
}

// awaitUntold notes what goes on telling of a copy that names another now. What was done under the release before is waited for.
func (w *walk) awaitUntold(ctx context.Context, o *newObject, field string, was judge.New) error {
	f, limit := &o.following, boldLimit
	if len(f.told) == 0 {
		return nil
	}
	if clings, known := was.Clings[field]; known && len(clings) == 0 {
		limit = judge.EffectLimit
	}
	return lookUntil(ctx, limit, quickPause, func() (bool, error) {
		now, err := w.tellingOf(ctx, o)
		f.clings[field] = slices.DeleteFunc(slices.Clone(f.told), func(name string) bool { return !slices.Contains(now, name) })
		return len(f.clings[field]) == 0, err
	})
}

// surelyTells are the fields of the status that said something else when the field before was changed, and that say in says what they did before that again, or that did so
// under the release before: others may have come to say something else by chance.
func (f *following) surelyTells(says map[string]any) []string {
	differ := judge.ToldOf(f.said, says)
	return slices.DeleteFunc(slices.Clone(f.tells[f.field]), func(name string) bool {
		return slices.Contains(differ, name) && !slices.Contains(f.was.Tells[f.field], name)
	})
}

// awaitBack notes what of that which was made for a copy is not as before, although a field that was changed has been changed back: it is as it was there, once the change
// had been followed. What was as before under the release before is waited for. It returns what there is then.
func (w *walk) awaitBack(ctx context.Context, o *newObject, field string, before, there map[string]observe.Operand) (now map[string]observe.Operand, err error) {
	view, f := w.viewOf(o.Object), &o.following
	limit := time.Duration(0)
	was, known := f.was.StaysAfter(field)
	if known {
		limit = judge.EffectLimit
	}
	err = lookUntil(ctx, limit, lookPause, func() (bool, error) {
		now, err = view.RecentOperands(ctx)
		f.stays[field] = o.notBack(before, there, now)
		return hasAll(was, f.stays[field]), err
	})
	return now, err
}

// noted matches fields that tell when something was written, or that the cluster chooses.
var noted = regexp.MustCompile(`\bannotations\b|[nN]odePort|\bclusterIPs?\b`)

// notBack lists which fields of what was made directly for a copy say in now what they said there, and something else before, named as in judge.New.Remakes, sorted; of Secrets,
// the credentials that say something else in now than before. What is as it was at first has only come back late, claims do not shrink, and what scales pods sets their number.
// Whether something is there at all is another matter: some is made anew under another name.
func (o *newObject) notBack(before, there, now map[string]observe.Operand) []string {
	scaled := slices.ContainsFunc(slices.Collect(maps.Values(now)), func(made observe.Operand) bool { return made.Kind == "HorizontalPodAutoscaler" })
	list := []string{}
	for name, made := range without(before, o.needs) {
		after, stays := now[name]
		if !stays || !made.Direct || made.Transient() || made.Kind == observe.KindClaim {
			continue
		}
		is := valuesByName(after.Content)
		fields := otherPaths(valuesByName(made.Content), is)
		if len(fields) == 0 {
			continue
		}
		meanwhile, first := valuesByName(there[name].Content), valuesByName(o.first[name].Content)
		for _, field := range fields {
			same := meanwhile[field] == is[field]
			if made.Kind == "Secret" {
				same = isCredential(made.Content, field)
			}
			if same && is[field] != first[field] && !noted.MatchString(field) && (!scaled || field != judge.ReplicasField) {
				list = append(list, o.called(made)+" "+o.plain(field))
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// isCredential reports whether a field of a Secret's content is a password or the like. What is there beside a certificate ends with that.
func isCredential(content map[string]any, field string) bool {
	data, _, _ := unstructured.NestedMap(content, "data")
	return !isCertified(data) && observe.IsCredential(field)
}

// isCertified reports whether data of a Secret have a certificate.
func isCertified[T any](data map[string]T) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(data)), func(key string) bool {
		return strings.HasSuffix(key, ".crt") || strings.HasSuffix(key, ".pem")
	})
}

// noteLast is noteMoves for the last change of a field, if nothing was changed since. It is followed by a rollout that nobody has to wait for.
func (w *walk) noteLast(ctx context.Context, o *newObject, follows map[string]int) error {
	if o.following.field == "" || follows[o.following.field] < judge.Surely {
		return nil
	}
	if err := w.awaitStill(ctx, false, o); err != nil {
		return err
	}
	return w.noteMoves(ctx, o, "", true)
}

// awaitMoves waits until all of kinds of which there are some have followed the change of a field, though not for ever: some operators do one
// thing at a time.
func (w *walk) awaitMoves(ctx context.Context, o *newObject, kinds []string) error {
	there := moved(nil, o.following.seen)
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return !slices.Contains(there, kind) })
	if len(kinds) == 0 {
		return nil
	}
	view := w.viewOf(o.Object)
	return lookUntil(ctx, judge.EffectLimit, quickPause, func() (bool, error) {
		operands, err := view.RecentOperands(ctx)
		have := moved(o.following.seen, writes(without(operands, o.needs)))
		return !slices.ContainsFunc(kinds, func(kind string) bool { return !slices.Contains(have, kind) }), err
	})
}

// writeLimit is how long it takes at most from what is written first about a change until what pods are made from is.
const writeLimit = 500 * time.Millisecond

// awaitRoll waits, if a change of field changes what pods are made from, until others are made, and notes whether they are: a workload that does not
// replace its pods leaves everything as it was. If they were under the release before, that is waited for long; if it is not known of that, it tells
// nothing if it does not come.
func (w *walk) awaitRoll(ctx context.Context, o *newObject, field string, was judge.New) error {
	did := was.Rolls[field]
	if was.Follows[field] == judge.Surely && !did {
		return nil
	}
	view, began, f := w.viewOf(o.Object), time.Now(), &o.following
	limit, written := boldLimit, writeLimit
	if did {
		limit, written = judge.EffectLimit, boldLimit
	}
	return lookUntil(ctx, limit, quickPause, func() (bool, error) {
		operands, err := view.RecentOperands(ctx)
		if err != nil {
			return false, err
		}
		if templatesOf(operands) == f.templates {
			return time.Since(began) > written, nil
		}
		rolled := revisionsOf(operands) != f.revisions
		if rolled || did {
			f.rolls[field] = rolled
		}
		return rolled, nil
	})
}

// templatesOf is what the workloads among operands make pods from.
func templatesOf(operands map[string]observe.Operand) string {
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		made := operands[name]
		if template, has, _ := unstructured.NestedMap(made.Content, "spec", "template"); has && made.Direct && slices.Contains(judge.Replicated, made.Kind) {
			fmt.Fprintln(&all, name, template)
		}
	}
	return all.String()
}

// revisionLabels tell what of a workload's a pod is made from (Deployment, and StatefulSet or DaemonSet).
var revisionLabels = []string{"pod-template-hash", "controller-revision-hash"}

// revisionsOf are the revisions of their workloads that the pods among operands are made from.
func revisionsOf(operands map[string]observe.Operand) string {
	revisions := map[string]bool{}
	for _, made := range operands {
		labels, _ := made.Marks["labels"].(map[string]any)
		for _, label := range revisionLabels {
			if revision, is := labels[label].(string); is && made.Kind == observe.KindPod {
				revisions[revision] = true
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(revisions)), " ")
}

// writes tells by name what changes whenever somebody writes what was made directly for an object: its generation or, where it has none, what it says,
// or its version where that is not known. An autoscaler writes the number of replicas when it sees fit, which tells nothing of the operator.
func writes(operands map[string]observe.Operand) map[string]string {
	all := map[string]string{}
	for name, made := range operands {
		generation, _ := made.Marks["generation"].(int64)
		switch {
		case !made.Direct || made.Transient():
		case judge.Scaled(made, operands):
			values := compare.Values(made.Content)
			delete(values, judge.ReplicasField)
			all[name] = fmt.Sprint(made.UID, values)
		case generation > 0:
			all[name] = fmt.Sprint(made.UID, generation)
		case made.Kind == "Secret":
			all[name] = fmt.Sprint(made.UID, made.ResourceVersion)
		case made.Kind != observe.KindClaim: // which is bound
			all[name] = fmt.Sprint(made.UID, made.Content)
		}
	}
	return all
}

// awaitShed names what was made for a copy before a change of field, and goes when that is followed. What went under the release before is waited for; where nobody knows, it is
// looked at when the operator has come to its end: some delete what they make anew.
func (w *walk) awaitShed(ctx context.Context, o *newObject, before map[string]observe.Operand, field string, was judge.New) (shed []string, err error) {
	there, limit := namesIn(o, before), boldLimit
	went := slices.DeleteFunc(slices.Clone(was.Sheds[field]), func(name string) bool { return !slices.Contains(there, name) })
	if len(went) > 0 {
		limit = was.Patience()
	}
	var since calm
	began, view := time.Now(), w.viewOf(o.Object)
	err = lookUntil(ctx, limit, quickPause, func() (bool, error) {
		now, err := view.RecentOperands(ctx)
		if err != nil {
			return false, err
		}
		shed = o.shed(before, now)
		since.goesOn(field, w.usageNow(ctx))
		switch {
		case len(went) > 0:
			return hasAll(shed, went), nil
		case o.quick():
			return since.silent(quietFor), nil
		}
		return len(shed) == 0 || time.Since(began) > writeLimit, nil
	})
	return shed, err
}

// awaitTold names the fields of the status, without what is in them, that say something else than before the change of field that is followed. Those that did under the release before
// are waited for.
func (w *walk) awaitTold(ctx context.Context, o *newObject, field string, was judge.New) (told []string, err error) {
	limit := time.Duration(0)
	if len(was.Tells[field]) > 0 {
		limit = was.Patience()
	}
	return told, lookUntil(ctx, limit, quickPause, func() (bool, error) {
		now, err := w.statusOf(ctx, o.Object)
		told = judge.ToldOf(o.following.said, now)
		return hasAll(told, was.Tells[field]), err
	})
}

// statusOf is what the status of an object says, nothing if it cannot be read: its operator may delete what it does not want.
func (w *walk) statusOf(ctx context.Context, o *observe.Object) (map[string]any, error) {
	now, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return nil, ctx.Err()
	}
	status, _, _ := unstructured.NestedMap(now.Object, "status")
	return status, nil
}

// shed names what of that which was made directly for a copy is gone, sorted.
func (o *newObject) shed(before, now map[string]observe.Operand) []string {
	gone := maps.Clone(without(before, o.needs))
	maps.DeleteFunc(gone, func(name string, _ observe.Operand) bool { _, stays := now[name]; return stays })
	return namesIn(o, gone)
}

// namesIn names those of operands that were made directly for a copy and stay until somebody deletes them, sorted. A Job under a name of its own may be one of many that come and go.
func namesIn(o *newObject, operands map[string]observe.Operand) []string {
	names := []string{}
	for _, made := range operands {
		if made.Direct && !made.Transient() && (made.Kind != "Job" || !generated.MatchString(made.Name)) {
			names = append(names, o.called(made))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// noteThere notes what there is once a change of field has been followed, what goes on saying what that took out of a map, and what goes on saying what the field
// asked for. If nothing did under the release before, that is waited for.
func (w *walk) noteThere(ctx context.Context, o *newObject, field string, was judge.New) (err error) {
	view, f := w.viewOf(o.Object), &o.following
	limit := time.Duration(0)
	before, known := was.Retains[field]
	switch {
	case known && f.entry[0] != "":
		limit = judge.EffectLimit
	case len(was.Traces[field]) > 0 || len(was.Honours[field]) > 0:
		limit = was.Patience()
	}
	return lookUntil(ctx, limit, quickPause, func() (bool, error) {
		if f.there, err = view.ConfirmedOperands(ctx); err != nil {
			return true, err
		}
		f.keeps[field] = o.keeps(was.Traces[field])
		if f.honours[field], err = w.honoursNow(ctx, o); err != nil {
			return true, err
		}
		if f.entry[0] != "" {
			f.retained = o.retains(f.entry)
		}
		return len(f.keeps[field]) == 0 && hasAll(f.honours[field], was.Honours[field]) && hasAll(before, f.retained), nil
	})
}

// keeps lists which of traces say there still what the field that is changed asked for before.
func (o *newObject) keeps(traces []string) (kept []string) {
	f := &o.following
	if f.asked == "" || len(traces) == 0 {
		return nil
	}
	for name, made := range without(f.before, o.needs) {
		if !made.Direct || made.Transient() {
			continue
		}
		now := valuesByName(f.there[name].Content)
		for path, value := range valuesByName(made.Content) {
			if now[path] != value || !asksFor(value, f.asked) {
				continue
			}
			if trace := o.called(made) + " " + o.plain(path); slices.Contains(traces, trace) {
				kept = append(kept, trace)
			}
		}
	}
	slices.Sort(kept)
	return slices.Compact(kept)
}

// honoursNow lists where what was made for a copy, and for others, says the number that the change under way asks for, now that it is followed.
func (w *walk) honoursNow(ctx context.Context, o *newObject) ([]string, error) {
	f := &o.following
	if f.wanted == "" {
		return nil, nil
	}
	entries, err := w.entriesOf(ctx, o)
	return union(o.honours(f.before, f.there, f.wanted), honoured(f.entries, entries, f.wanted)), err
}

// honours lists where what was made for a copy says in there, in other lines than before, the number that a change asks for, named as in judge.New.Remakes, sorted.
func (o *newObject) honours(before, there map[string]observe.Operand, wanted string) (traces []string) {
	if wanted == "" {
		return nil
	}
	for name, made := range without(there, o.needs) {
		if !made.Direct || made.Transient() {
			continue
		}
		was := valuesByName(before[name].Content)
		for path, value := range valuesByName(made.Content) {
			if !noted.MatchString(path) && comesToSay(was[path], value, wanted) {
				traces = append(traces, o.called(made)+" "+o.plain(path))
			}
		}
	}
	slices.Sort(traces)
	return slices.Compact(traces)
}

// comesToSay reports whether a line of after that before does not have says a number.
func comesToSay(before, after, number string) bool {
	old := strings.Split(before, "\n")
	return slices.ContainsFunc(strings.Split(after, "\n"), func(line string) bool { return !slices.Contains(old, line) && saysNumber(line, number) })
}

// saysNumber reports whether text has a number in it, with a unit or none, and not as a part of a word or of a longer number.
func saysNumber(text, number string) bool {
	isPart := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.' }
	for at := 0; ; at++ {
		i := strings.Index(text[at:], number)
		if i < 0 {
			return false
		}
		at += i
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		rest := text[at+len(number):]
		unit := rest[:len(rest)-len(strings.TrimLeftFunc(rest, unicode.IsLetter))]
		after, _ := utf8.DecodeRuneInString(rest[len(unit):])
		if !isPart(before) && before != '-' && len(unit) <= longestUnit && !isPart(after) {
			return true
		}
	}
}

// longestUnit is how many letters a unit has at most, as MiB.
const longestUnit = 3

// wanted is the number that a step asks for, "" if it asks for none.
func (s step) wanted() string {
	there := map[string]any{}
	if json.Unmarshal(s.There, &there) != nil {
		return ""
	}
	value, _, _ := unstructured.NestedFieldNoCopy(there, strings.Split(judge.OfField(s.Path), ".")...)
	if number, is := value.(float64); is {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return ""
}

// asksFor reports whether a value of what was made for an object is what a field of the object asks for, or has it in it, where that is no chance.
func asksFor(value, asked string) bool {
	return value == asked || len(asked) > 2 && strings.Contains(value, asked)
}

// askedIn is what object asks for by the field that a step changes: a text, a number, a choice, or the entry that is taken out of a map; "" for anything else.
func (s step) askedIn(object map[string]any) string {
	value, _, _ := unstructured.NestedFieldNoCopy(object, strings.Split(judge.OfField(s.Path), ".")...)
	switch value := value.(type) {
	case string, int64, bool:
		return fmt.Sprint(value)
	}
	return s.Entry[1]
}

// retains names the ConfigMaps that were made for a copy, as each copy's are named, that go on saying an entry that was taken out of a map of its spec, now that this is followed.
func (o *newObject) retains(entry [2]string) []string {
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(o.following.there)) {
		made := o.following.there[name]
		if made.Kind == "ConfigMap" && made.Direct && says(made, entry) && says(o.following.before[name], entry) {
			names = append(names, o.called(made))
		}
	}
	return names
}

// says reports whether a ConfigMap has an entry of a map, or a line that says both its key and its value.
func says(configMap observe.Operand, entry [2]string) bool {
	data, _, _ := unstructured.NestedStringMap(configMap.Content, "data")
	for key, text := range data {
		if key == entry[0] && text == entry[1] {
			return true
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, entry[0]) && strings.Contains(line, entry[1]) {
				return true
			}
		}
	}
	return false
}

// moved are the kinds of what was written or deleted between before and after, sorted; of all that there is, if before is nil.
func moved(before, after map[string]string) []string {
	names := before
	if before == nil {
		names = after
	}
	var kinds []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		kind, _, _ := strings.Cut(name, "/")
		if before[name] != after[name] && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// programsOf are the programs that the workloads among operands, which were made for a copy, run, by kind, with the same word for the name of each copy.
func programsOf(o *newObject, operands map[string]observe.Operand) map[string]string {
	var names []string
	for _, n := range o.needs {
		names = append(names, n.GetName(), n.of)
	}
	programs := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		made := operands[name]
		template, has := made.Template()
		if !has || !made.Direct {
			continue
		}
		for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
			programs[made.Kind] += o.plain(strings.NewReplacer(names...).Replace(fmt.Sprintf("%s %q %q\n", c.Image, c.Command, c.Args)))
		}
	}
	return programs
}

// secretsOf are the Secrets among operands, which were made for a copy, by name and keys, with the same word for the name of each copy.
func secretsOf(o *newObject, operands map[string]observe.Operand) []string {
	var secrets []string
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		made := operands[name]
		if data, _, _ := unstructured.NestedMap(made.Content, "data"); made.Kind == "Secret" {
			secrets = append(secrets, fmt.Sprintf("%s: %s", o.plain(made.Name), strings.Join(slices.Sorted(maps.Keys(data)), ", ")))
		}
	}
	return secrets
}

// summed is a sum of what a key of a Secret says.
type summed struct {
	of  types.UID
	sum any
}

// sumsOf are the sums of what the Secrets among operands, which were made for a copy, say, by name and key, with the same word for the name of each copy.
func sumsOf(o *newObject, operands map[string]observe.Operand) map[string]summed {
	sums := map[string]summed{}
	for _, made := range operands {
		data, _, _ := unstructured.NestedMap(made.Content, "data")
		for key, sum := range data {
			if made.Kind == "Secret" && made.Of == o.String() {
				sums[o.plain(made.Name)+" "+key] = summed{made.UID, sum}
			}
		}
	}
	return sums
}

// apartFrom tells of each that other Secrets of the same names have, too, whether they say something else.
func apartFrom(sums, others map[string]summed) map[string]bool {
	differ := map[string]bool{}
	for name, is := range sums {
		if other, there := others[name]; there && other.of != is.of {
			differ[name] = other.sum != is.sum
		}
	}
	return differ
}
