package judge

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// Dealt is what an operator did for an object.
type Dealt struct {
	Made  bool     // something belongs to the object
	Kinds []string // of these, what clients use and what runs, sorted
	Ready int      // how many workloads that were made for it are ready
	Well  bool     // its status tells its generation, and no bad health
	// Refused tells that the API server does not take it at all.
	Refused bool
	Alike   bool // Well, and no worse by its own words than the sample
	// Unwell says why it is not Alike.
	Unwell string
	// Told are the kinds of what is made for others that say something of the object, sorted.
	Told []string
}

// DealtWith is what is seen of the object called name among operands; well is what its status tells.
func DealtWith(name string, operands map[string]observe.Operand, well bool) Dealt {
	d := Dealt{Well: well}
	for _, o := range operands {
		if o.Of != name {
			continue
		}
		d.Made = d.Made || o.Direct
		if o.Direct && slices.Contains(usedKinds, o.Kind) && !slices.Contains(d.Kinds, o.Kind) {
			d.Kinds = append(d.Kinds, o.Kind)
		}
		if o.Unready == "" && o.Kind != "Job" && slices.Contains(WorkloadKinds, o.Kind) {
			d.Ready++
		}
	}
	slices.Sort(d.Kinds)
	return d
}

// usedKinds are those of which an operator makes some for each object that it makes them for at all.
var usedKinds = []string{
	"Deployment", "StatefulSet", "DaemonSet", "CronJob", observe.KindService, "Ingress", "PodDisruptionBudget", "NetworkPolicy", "HorizontalPodAutoscaler",
}

// Replicated are the workloads that go on running, of which the status tells how many pods are ready.
var Replicated = []string{"Deployment", "StatefulSet", "DaemonSet"}

// patience is how long what a quick operator did is waited for at least: so long one takes to be started again and to be elected.
const patience = 15 * time.Second

// Patience is how long the operator of the next release has to do what that of which was tells did: many times as long.
func (was New) Patience() time.Duration {
	if was.Slowest == 0 {
		return EffectLimit
	}
	return min(max(20*was.Slowest, patience), EffectLimit).Round(time.Second)
}

// What is slow for a new object: so long it takes mostly, and so many times as long as it did.
const (
	slow      = 3 * time.Second
	slowTimes = 10
)

// slower tells that the operator takes much longer than before for whatever happens to an object: a busy machine is not that slow most of the time.
func slower(from, to string, was, is New) []finding.Finding {
	if was.Usually == 0 || is.Usually < max(slow, slowTimes*was.Usually) {
		return nil
	}
	f := doesLess("do not wait in a reconcile, but return and ask for another one (RequeueAfter); and have more than one worker (MaxConcurrentReconciles)", is.Sample,
		"%s mostly takes %s for a change of a new object like it; %s took %s", to, is.Usually.Round(100*time.Millisecond), from, was.Usually.Round(10*time.Millisecond))
	f.Severity = finding.Warning
	return []finding.Finding{f}
}

// Left is something that stayed when the object that it was made for was deleted.
type Left struct{ Kind, Name string }

// Distant is something that an operator made for an object outside of what Kubernetes deletes with it: of the cluster's scope, in another namespace, or of a
// kind that is no operand. Gone tells that it went when the object was deleted; of what is Shared with others, what it says of the object. Beside tells that it says
// something of the sample as well.
type Distant struct {
	Kind, Name           string
	Gone, Shared, Beside bool
}

// New is what an operator did for an object that was created while it ran, and for the sample that it is a copy of.
type New struct {
	Sample         string // as findings name it
	Of             string // the name in its manifest, which samples of several versions may have
	Copy, Original Dealt
	// Variant is what the copy asks for that its sample does not, in the words of a finding; none if it is one.
	Variant string
	// Paused is what came of a variant that was deleted while it was paused, and Deserted of one that was deleted after what it names.
	Paused, Deserted Deletion
	// Bereft tells, by the words of its status that said plainly that the variant is well, whether they say something else once what it names is gone; nil if that is not known.
	Bereft map[string]bool
	// Repeats tells, by what says the same as a Secret that was made for the copy, whether it says something else once that is made anew; nil if that is not known.
	Repeats map[string]bool
	// Unlike are the fields of what was made for a variant that are not what they are for the copy, and what was made for it alone, named as in Remakes.
	Unlike []string
	// Follows tells, by field of the copy, how often anything that was made for it followed: when the field was changed, and when
	// it was changed back.
	Follows map[string]int
	// Slowest and Usually are how long it took at most and mostly until the operator did something about what happened to the copy, 0 if it did nothing.
	Slowest, Usually time.Duration
	// Sheds is what was made for the copy and went when a field was changed, named as in Remakes, by the field.
	Sheds map[string][]string
	// Tells are the fields of the copy's status that said something else when a field was changed, by that, and States those that it has; see ToldOf.
	Tells  map[string][]string
	States []string
	// Deprecated are the fields that are, as the schema says.
	Deprecated map[string]bool
	// Traces are the fields of what was made for the copy that were others when a field was changed, by that.
	Traces map[string][]string
	// Keeps are those of the fields that were others under the release before that said still what was asked for when a change was followed, by the field that was changed.
	Keeps map[string][]string
	// Honours is where what is made for the copy says a number that a field was changed to, by field, named as in Remakes, with the path, and what is made for others, as in Relays.
	Honours map[string][]string
	// Relays is what is made for others and says something else of the copy when a field of that is changed, by field, and Saying what of that ever said something; the kinds with
	// their names.
	Relays map[string][]string
	Saying []string
	// Clings is what is made for others and goes on telling of the copy when that names another instead, by the field that was changed; the kinds with their names.
	Clings map[string][]string
	// AtNone says why the copy was not well by its own words when it asked for none, "" if it was; nil if that is not known.
	AtNone *string
	// Longest is how long the name of an object like the copy may be, as what was made for it under the first release that was tried says; 0 if nothing says its name.
	Longest int
	// Fixed is what was made for a variant says in fields which nobody can change, named as in Remakes, with the path.
	Fixed map[string]string
	// Makes is what was made for the copy before anything was tried, named as in Remakes.
	Makes []string
	// Stays are the fields of what was made for the copy that were not as before when a field that was surely followed had been changed and changed back, by that.
	Stays map[string][]string
	// Along is what was made for the samples and is deleted when the copy is; nil if that is not known.
	Along []string
	// Takes are the Secrets and ConfigMaps of the user's that what belongs to the copy are, since it owns them; nil if that is not known.
	Takes []string
	// Retains are the ConfigMaps that go on saying an entry that was taken out of a map, by the field of that.
	Retains map[string][]string
	// Moves are the kinds that followed, by field, and Programs what workloads run, by kind, with … for the name of the copy.
	Moves    map[string][]string
	Programs map[string]string
	// Rolls tells, by field, whether pods were replaced when a change of it changed what they are made from.
	Rolls map[string]bool
	// Remakes tells whether the operator made again what somebody deleted of what it had made for the copy: by kind and, where that is another
	// than the copy's, name, with … for the name of the copy.
	Remakes map[string]bool
	// Carried tells how what the copy asks for is found in what was made for it.
	Carried map[string]Carriage
	// Unsteady are what was made for the copy and said the same things in different orders, named as in Remakes, and whether that replaces pods; nil if that
	// is not known.
	Unsteady map[string]bool
	// Behind are the fields of what was made for the sample that are not what they are for the copy, which has the same spec, and what was made for the copy
	// alone, named as in Remakes; nil if that is not known.
	Behind []string
	// Beside is what was made for the sample and not for the copy, which has others of the kind, named as in Remakes; nil if that is not known.
	Beside []string
	// OwnedTwice is what was made for the sample of which one manager still owns what another one applies, named as in Remakes; nil if that is
	// not known.
	OwnedTwice []string
	// TakenOut is what stayed of what was made for the sample, named as in Remakes, and not of what was made for the copy, when something was taken out of both specs, by field.
	TakenOut map[string][]string
	// Recounts tells of each count in the statuses of samples of the kind how often it followed copies of all kinds: Surely when they were created and deleted.
	Recounts map[string]int
	// Says are the fields that the statuses of the copy and of the sample have, by path.
	Says, SampleSays map[string]bool
	// Finalizers are those of the copy, and Events the reasons that Events of it have, sorted, but for warnings.
	Finalizers, Events []string
	// Readiness is what the status said of the copy while none of its pods ran, and once they did.
	Readiness Readiness
	// Anywhere is what the operator did for another object in a namespace that is newer than the operator's pod; nil if that is not known.
	Anywhere *Dealt
	// Far is what it did there for one that says the namespace of what it names, where the sample says none; nil if that is not known.
	Far *Dealt
	// Goes tells whether that object goes when its namespace is deleted, and Held the finalizers by which it stays; nil if that is not known.
	Goes *bool
	Held []string
	// Strips tells that the operator removed the finalizer of somebody else from it.
	Strips bool
	// Long are the kinds of which the operator made nothing for one of two other objects there, with long names that differ at their ends alone; nil if that is not known.
	Long []string
	// Retries tells of a kind that could not be made for that object at first, since the namespace had no room for one, whether it was made once there was.
	Retries map[string]bool
	// Additions tells of what others set of what was made there, where the operator says nothing of it, whether it stayed: by what that is.
	Additions map[string]bool
	// Again is what the operator did for another object of the copy's name, once the copy was gone; nil if that is not known. Late is what that needs and
	// what was created after it. Fresh tells, by name and key, whether its Secrets say something else than those of the copy. TakesBack tells, by field of
	// its status that says that it is well, whether that says something else once its pods are gone, and Down what came of it when it was deleted then.
	Again     *Dealt
	Late      []string
	Fresh     map[string]bool
	TakesBack map[string]bool
	Down      Deletion
	// Spread is what the operator made for the copy, which is in no namespace, in one that is newer than the operator's pod; nil if that is not known.
	Spread *Spread
	// Acted are the values that the specs of the user's workloads that the copy names have since it is there, and had not before, by their name and the path.
	Acted map[string]string
	// Returned tells of the fields of the user's workloads that the copy names, and that were others while it was there, whether they were as before once it was gone.
	Returned map[string]bool
	// Pauses tells what came of a change of the copy while it was paused, by the field that pauses it and the one that was changed.
	Pauses map[Paused]Pause
	// Blocks tells that what is made for the copy blocks the copy's deletion by an owner reference, and MayBlock that the operator may set such a one on
	// clusters that ask for a right to do so.
	Blocks, MayBlock bool
	// Secrets are those of the copy, by name, with … for that of the copy, and keys: what they say is not known.
	Secrets []string
	// Kept are the claims of the copy that stay when it is deleted; Cleared tells that others do not.
	Kept    []observe.Operand
	Cleared bool
	// Partings are the resources of which something was made when the copy was deleted, and Lasting those of which it was made for the copy and outlasts
	// it, sorted. Parted tells that they are known.
	Partings, Lasting []string
	Parted            bool
	// Reverts tells whether it changed back what somebody changed of that, as Remakes does.
	Reverts map[string]bool
	// Marks and Labels tell, as Remakes does, whether an annotation and a label that somebody else put on what was made for the copy stayed there.
	Marks, Labels map[string]bool
	// Written are the fields of the copy's spec that neither its author nor a default set, by path; nil if that is not known.
	Written []string
	// Picks are the objects whose pods the Services, budgets and policies that were made for the copy select besides its own, by what selects them.
	Picks map[string][]string

	// Leads is, for each place where what was made for the copy, or its status, says an address in the cluster, that address if there is no Service at it, else "".
	Leads map[string]string
	// Unowned are what was made for the copy, belongs to nobody and stayed when the copy was deleted; named as what was made for
	// the sample.
	Unowned []Left
	// Contest is what became of an object that says the same as another where no two may; nil if that is not known.
	Contest *Contest
	// Removed are the kinds of what belonged to nobody, was deleted before the copy was, and not made again: whether it would have stayed, nobody knows.
	Removed []string
	// Mounts are the kinds of what is made for the copy that have a volume of it, by what the copy needs, as Follows has that.
	Mounts map[string][]string
	// Strays is what is made for objects of one namespace and says something of one of another; nil if that is not known.
	Strays []string
	// Elsewhere is what was made for the copy at a distance, named as if for the sample; nil if that is not known.
	Elsewhere []Distant
}

// Paused are the paths of a field that pauses an object and of one that is changed meanwhile.
type Paused struct{ By, Changed string }

// Pause is what comes of a change of an object that is paused.
type Pause int

// What may come of it.
const (
	Unknown    Pause = iota // nobody can tell
	Ignored                 // it is followed all the same
	Held                    // it is followed once the object is not paused any more
	StaysStill              // it is not followed then either
)

// Settled reports whether as many workloads are ready for the copy as for the sample: until then, reconciles are under way.
func (n New) Settled() bool { return n.Copy.Ready >= n.Original.Ready }

// Usable reports whether the copy has what the sample has, whatever its status says in words: it can be tried.
func (n New) Usable() bool {
	n.Copy.Alike = n.Copy.Alike || n.Copy.Well
	return len(n.Lacks()) == 0
}

// notWell says in a finding that an object is not well by its own words.
const notWell = "its status does not say that it is well"

// Lacks says what was not done for the copy and was done for the sample, in the words of a finding.
func (n New) Lacks() []string {
	var missing []string
	for _, aspect := range []struct {
		sample, copied bool
		words          string
	}{
		{n.Original.Made, n.Copy.Made, "nothing is made that belongs to it"},
		{n.Original.Ready > 0, n.Copy.Ready > 0, "nothing runs for it"},
		{n.Original.Well, n.Copy.Alike, notWell},
	} {
		if aspect.sample && !aspect.copied {
			missing = append(missing, aspect.words)
		}
	}
	return missing
}

// LacksOf are those of Lacks that the copy of was did not lack, whatever its sample got.
func (n New) LacksOf(was New) []string {
	was.Original = Dealt{Made: true, Ready: 1, Well: true, Alike: true}
	return without(n.Lacks(), was.Lacks())
}

// Clears reports whether it is known that nothing of kind that belongs to nobody stayed when the copy was deleted.
func (n New) Clears(kind string) bool {
	return n.Sample != "" && !n.mayLeave(kind)
}

// mayLeave reports whether something of kind that belongs to nobody stayed when the copy was deleted, or might have.
func (n New) mayLeave(kind string) bool { return n.Leaves(kind) || slices.Contains(n.Removed, kind) }

// Leaves reports whether something of kind that belongs to nobody stayed when the copy was deleted.
func (n New) Leaves(kind string) bool {
	return slices.ContainsFunc(n.Unowned, func(left Left) bool { return left.Kind == kind })
}

// LacksKinds are the kinds of which the operator of the release before made something for its copy, and this one did for the sample and not
// for the copy. A workload of another kind will do: what there was for the sample may have stayed.
func (n New) LacksKinds(was New) []string {
	instead := slices.ContainsFunc(n.Copy.Kinds, func(kind string) bool {
		return slices.Contains(WorkloadKinds, kind) && !slices.Contains(n.Original.Kinds, kind)
	})
	return slices.DeleteFunc(slices.Clone(was.Copy.Kinds), func(kind string) bool {
		return !slices.Contains(n.Original.Kinds, kind) || slices.Contains(n.Copy.Kinds, kind) || instead && slices.Contains(WorkloadKinds, kind)
	})
}

// doesLess is the finding that an operator does less for object, with what to do about it.
func doesLess(fix, object, format string, args ...any) finding.Finding {
	f := code.Finding(code.DoesLess, object, format, args...)
	f.Fix = fix
	return f
}

// noneOf says that none of kinds is made, in the words of a finding; "" for no kinds.
func noneOf(kinds []string) string {
	if len(kinds) == 0 {
		return ""
	}
	return "no " + strings.Join(kinds, " and no ") + " is made for it"
}

// staysBehind are the kinds that followed field in was, that there are still, and that do not follow now, nor any kind in their place: as pods
// that are not told that their settings are others. What runs another program than before may see to it itself.
func (n New) staysBehind(was New, field string) []string {
	isNew := func(kind string) bool { return !slices.Contains(was.Moves[field], kind) }
	if slices.ContainsFunc(n.Moves[field], isNew) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(was.Moves[field]), func(kind string) bool {
		there := slices.Contains(n.Copy.Kinds, kind) || slices.Contains(governing, kind) && slices.ContainsFunc(n.Makes, func(name string) bool { return isOfKind(name, kind) })
		return slices.Contains(n.Moves[field], kind) || !there || n.Programs[kind] != was.Programs[kind]
	})
}

// governing are the kinds that say who may do what, and how much there may be: nothing else can say it in their place.
var governing = []string{"Role", "RoleBinding", "ResourceQuota", "LimitRange"}

// RemakesKind reports whether the operator made something of kind again.
func (n New) RemakesKind(kind string) bool { return n.deleted(kind, true) }

// Removes reports whether somebody deleted something of kind that was made for the copy, and it was not made again.
func (n New) Removes(kind string) bool { return n.deleted(kind, false) }

// deleted reports whether somebody deleted something of kind that was made for the copy, and it was made again, or was not.
func (n New) deleted(kind string, again bool) bool {
	return len(namesOf(n.Remakes, func(name string) bool { return n.Remakes[name] == again && isOfKind(name, kind) })) > 0
}

// isOfKind reports whether what is named as in Remakes is of kind.
func isOfKind(name, kind string) bool {
	of, _, _ := strings.Cut(name, " ")
	return of == kind
}

// others says in a finding which kinds do what one does not, if any do.
func others(kinds []string) string {
	if len(kinds) == 0 {
		return ""
	}
	return "; " + strings.Join(kinds, ", ") + " does"
}

// Silent are the fields of the status that the copy had in was and that now the sample alone has, where they may be left from the old version. Those
// that are deprecated do not count.
func (n New) Silent(was New) []string {
	return namesOf(was.Says, func(path string) bool {
		return was.Says[path] && n.Says != nil && !n.Says[path] && n.SampleSays[path] && !n.Deprecated[path]
	})
}

// lessOf are the findings, each of some of fields in a list, for those that are in use and for those that are deprecated, which is a warning.
func lessOf(fields []string, isDeprecated func(field string) bool, say func(fields string) finding.Finding) (findings []finding.Finding) {
	deprecated := slices.DeleteFunc(slices.Clone(fields), func(field string) bool { return !isDeprecated(field) })
	if used := slices.DeleteFunc(slices.Clone(fields), isDeprecated); len(used) > 0 {
		findings = append(findings, say(strings.Join(used, ", ")))
	}
	if len(deprecated) > 0 {
		f := say(strings.Join(deprecated, ", "))
		f.Severity = finding.Warning
		findings = append(findings, f)
	}
	return findings
}

// Unsaved are the resources of which something that outlasts an object was made in was when it was deleted, if nothing of them is made any more, nor
// anything in their place.
func (n New) Unsaved(was New) []string {
	instead := len(n.Lasting) > 0 || slices.ContainsFunc(was.Lasting, func(resource string) bool { return slices.Contains(n.Partings, resource) })
	if !n.Parted || instead || n.Copy.Ready == 0 && was.Copy.Ready > 0 { // of what does not run there is nothing to save
		return nil
	}
	return was.Lasting
}

// What follows the path of a field that is left out, of a count that is 0 or 1, of a list that has an item less, and of what then names another object.
const (
	LeftOut = " (leaving that out)"
	None    = " (to 0)"
	One     = " (to 1)"
	Fewer   = " (without the last)"
	Another = " (to name another)"
)

// What Follows has for changes of what an object names, the name of that before it and the path of its field or the kind of what was made for that after it, of a label, which
// comes after it, and of another object beside it.
const (
	OfOther = "'s spec."
	MadeFor = "'s own "
	OfLabel = "label "
	Both    = ", which two objects name"
)

// OfField is the path of a field, without what follows it.
func OfField(path string) string {
	path, _, _ = strings.Cut(path, " ")
	return path
}

// NewObjects tells what the operator of the release called to did not do for a new object, and that of from did.
func NewObjects(from, to string, was, is New) []finding.Finding {
	findings := ownerless(from, to, was, is)
	kinds, missing := is.LacksKinds(was), is.LacksOf(was)
	if silent := is.Silent(was); len(silent) > 0 {
		missing = append(missing, "its status says nothing of "+strings.Join(silent, ", "))
	}
	if len(kinds) > 0 && is.Copy.Made {
		missing = append(missing, noneOf(kinds))
	}
	told := slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Severity == finding.Error })
	if !told && len(missing) > 0 {
		f := code.Finding(code.NewIgnored, is.Sample, "%s does less for a new object like it: within %s %s; with %s it was as for this one",
			to, HealthLimit, strings.Join(missing, ", "), from)
		if slices.Contains(missing, notWell) {
			f.Cause = is.Copy.Unwell
		}
		findings = append(findings, f)
	}
	isDeprecated := func(field string) bool {
		return is.Deprecated[field] || field != OfField(field) && len(was.Sheds[field]) == 0 && strings.HasSuffix(field, LeftOut)
	}
	findings = slices.Concat(findings, ignored(from, to, was, is, isDeprecated), halfway(from, to, was, is))
	for _, field := range namesOf(is.Moves, func(field string) bool { return len(was.Moves[field]) > 0 }) {
		unshed := func(kind string) bool { // told by itself
			return slices.ContainsFunc(was.Sheds[field], func(name string) bool { return isOfKind(name, kind) })
		}
		if kinds := slices.DeleteFunc(is.staysBehind(was, field), unshed); len(kinds) > 0 {
			f := doesLess("update what exists of each kind, not only what is missing", is.Sample, "%s does less for a new object like it than %s: its %s does not follow a change of its %s, not within %s%s",
				to, from, strings.Join(kinds, " and "), field, EffectLimit, others(is.Moves[field]))
			if slices.ContainsFunc(is.Moves[field], func(kind string) bool { return slices.Contains(Replicated, kind) }) { // others may have been replaced needlessly
				f.Severity = finding.Warning
			}
			findings = append(findings, f)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(is.Retains)) {
		before, known := was.Retains[field]
		if left := without(is.Retains[field], before); known && was.Of == is.Of && len(left) > 0 {
			findings = append(findings, doesLess("write all of a ConfigMap's data anew in each reconcile, rather than add to what it says", is.Sample, "%s does less for a new object like it than %s: its %s goes on saying what is taken out of its %s", to, from, strings.Join(left, " and "), field))
		}
	}
	findings = slices.Concat(findings, kept(from, to, was, is), unshed(from, to, was, is), untold(from, to, was, is), clinging(from, to, was, is), unrelayed(from, to, was, is), dishonoured(from, to, was, is))
	unrolled := namesOf(is.Rolls, func(field string) bool { return was.Rolls[field] && !is.Rolls[field] && is.Copy.Ready > 0 })
	if len(unrolled) > 0 {
		findings = append(findings, doesLess("have the workload replace its pods: no partition and no OnDelete that stays, and a sum of what pods read in an annotation of their template", is.Sample, "%s does less for a new object like it than %s: a change of its %s changes what its pods are made from, and none is replaced within %s",
			to, from, strings.Join(unrolled, ", "), EffectLimit))
	}
	newSecret := slices.ContainsFunc(is.Secrets, func(s string) bool { return !slices.Contains(was.Secrets, s) })
	if unheeded := NotCarried(was.Carried, is.Carried); !newSecret {
		findings = append(findings, lessOf(unheeded, isDeprecated, func(fields string) finding.Finding {
			return doesLess(handOn, is.Sample, "%s does less for a new object like it than %s: what its %s asks for is not in what is made for it", to, from, fields)
		})...)
	}
	return slices.Concat(findings, forsaken(from, to, was, is), slower(from, to, was, is), recounts(from, to, was, is))
}

// ignored tells what nothing follows any more.
func ignored(from, to string, was, is New, isDeprecated func(field string) bool) []finding.Finding {
	fields := namesOf(is.Follows, func(field string) bool {
		return was.Follows[field] == Surely && is.Follows[field] == 0 && (OfField(field) == field || was.Of == is.Of) && !is.mayReread(was, field)
	})
	return lessOf(fields, isDeprecated, func(fields string) finding.Finding {
		fix := "reconcile each change of the spec, and update what exists, not only what is missing"
		if strings.Contains(fields, OfOther) || strings.Contains(fields, MadeFor) || strings.HasPrefix(fields, OfLabel) {
			fix = "watch the objects of other kinds that an object names or selects, map each to those that do (handler.EnqueueRequestsFromMapFunc), and read the selector in each reconcile"
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(is.Mounts)), func(need string) bool { return strings.Contains(fields, need) }) {
			fix = "watch the Secrets and ConfigMaps that an object names, map each to those that do (handler.EnqueueRequestsFromMapFunc), and have a sum of what pods read in an annotation of their template"
		}
		return doesLess(fix, is.Sample, "%s does less for a new object like it than %s: within %s nothing that is made for it follows a change of its %s", to, from, was.Patience(), fields)
	})
}

// mayReread reports whether what the object needs is mounted by workloads that run another program than in was, which may look for changes of it itself.
func (n New) mayReread(was New, need string) bool {
	return slices.ContainsFunc(n.Mounts[need], func(kind string) bool { return n.Programs[kind] != was.Programs[kind] })
}

// halfway tells what follows a change and not that it is taken back.
func halfway(from, to string, was, is New) []finding.Finding {
	fields := namesOf(is.Follows, func(field string) bool {
		return was.Follows[field] == Surely && is.Follows[field] == 1 && was.Of == is.Of
	})
	if len(fields) == 0 {
		return nil
	}
	f := doesLess("reconcile each change of the spec, also of what it asks less of than before", is.Sample,
		"%s does less for a new object like it than %s: what follows a change of its %s does not follow when that is taken back, within %s", to, from, strings.Join(fields, ", "), was.Patience())
	if len(is.Makes) > 0 { // the API server may not take some of it back, as a strategy; the rest is looked at by itself
		f.Severity = finding.Warning
	}
	return []finding.Finding{f}
}

// followsAs returns a function that reports whether a change of a field of copies of one sample was surely followed in was, and is followed now.
func (n New) followsAs(was New) func(field string) bool {
	return func(field string) bool { return was.Follows[field] == Surely && n.Follows[field] > 0 && was.Of == n.Of }
}

// kept tells what goes on saying what a field asked for before a change that is followed elsewhere. Kinds that do not follow at all are told by themselves.
func kept(from, to string, was, is New) (findings []finding.Finding) {
	for _, field := range namesOf(is.Keeps, is.followsAs(was)) {
		whole := is.staysWhole(was, field) // told by itself
		stale := slices.DeleteFunc(slices.Clone(is.Keeps[field]), func(trace string) bool {
			return slices.ContainsFunc(is.staysBehind(was, field), func(kind string) bool { return isOfKind(trace, kind) }) ||
				slices.ContainsFunc(whole, func(name string) bool { return strings.HasPrefix(trace, name+" ") })
		})
		if len(stale) == 0 {
			continue
		}
		f := doesLess("write every place that says what the spec asks for in each reconcile", is.Sample, "%s does less for a new object like it than %s: after a change of its %s, what it asked for before stays in %s, not only for %s",
			to, from, field, firstOf(stale), was.Patience())
		if is.Deprecated[field] {
			f.Severity = finding.Warning
		}
		findings = append(findings, f)
	}
	return findings
}

// staysWhole names what went in was when field was changed, and does not now, though it is made as well.
func (n New) staysWhole(was New, field string) []string {
	return slices.DeleteFunc(slices.Clone(was.Sheds[field]), func(name string) bool {
		return slices.Contains(n.Sheds[field], name) || !slices.Contains(n.Makes, name)
	})
}

// unshed tells what the operator still makes for an object, and does not delete any more when a field of the object asks for it no longer.
func unshed(from, to string, was, is New) (findings []finding.Finding) {
	for _, field := range namesOf(is.Sheds, func(field string) bool { return is.Follows[field] > 0 && was.Of == is.Of }) {
		if stays := is.staysWhole(was, field); len(stays) > 0 {
			findings = append(findings, doesLess("delete what the spec asks for no longer, also of what earlier reconciles made", is.Sample, "%s does less for a new object like it than %s: its %s stays after a change of its %s, not only for %s",
				to, from, strings.Join(stays, " and "), field, was.Patience()))
		}
	}
	return findings
}

// clinging tells what goes on telling of an object that names another one instead, and did not with from.
func clinging(from, to string, was, is New) (findings []finding.Finding) {
	for _, field := range namesOf(is.Clings, is.followsAs(was)) {
		before, known := was.Clings[field]
		if stays := without(is.Clings[field], before); known && len(stays) > 0 {
			findings = append(findings, doesLess("reconcile what an object named before, too: an update event has the old object beside the new one", is.Sample, "%s does less for a new object like it than %s: after a change of its %s, %s of what it named before goes on telling of it, not only for %s",
				to, from, field, strings.Join(stays, " and "), EffectLimit))
		}
	}
	return findings
}

// dishonoured tells where what is made for an object says something else than a number that a field of it asks for. What runs another program may be told in another way.
func dishonoured(from, to string, was, is New) (findings []finding.Finding) {
	for _, field := range namesOf(is.Honours, is.followsAs(was)) {
		other := slices.DeleteFunc(without(was.Honours[field], is.Honours[field]), func(trace string) bool {
			kind, _, _ := strings.Cut(trace, " ")
			return !slices.Contains(is.Traces[field], trace) && !slices.Contains(is.Relays[field], trace) || is.Programs[kind] != was.Programs[kind]
		})
		if len(other) > 0 {
			findings = append(findings, doesLess(handOn, is.Sample, "%s does less for a new object like it than %s: what its %s asks for is not said in %s, which follows it and says something else, not within %s",
				to, from, field, firstOf(other), was.Patience()))
		}
	}
	return findings
}

// unrelayed tells of which changes that are followed what is made for others says nothing any more, though it says something of the object.
func unrelayed(from, to string, was, is New) (findings []finding.Finding) {
	for _, field := range namesOf(is.Relays, is.followsAs(was)) {
		stale := slices.DeleteFunc(without(was.Relays[field], is.Relays[field]), func(name string) bool { return !slices.Contains(is.Saying, name) })
		if len(stale) > 0 {
			findings = append(findings, doesLess("watch the objects that others name or select, map each to those (handler.EnqueueRequestsFromMapFunc), and read in each reconcile what they say", is.Sample,
				"%s does less for a new object like it than %s: after a change of its %s, what is made for others and tells of it says the same as before, not only for %s: %s", to, from, field, was.Patience(), strings.Join(stale, " and ")))
		}
	}
	return findings
}

// ofPods matches fields of a status that tell of pods, and follow these, or of when something was looked at.
var ofPods = regexp.MustCompile(`(?i)ready|available|replicas|nodes|pods|members|phase|state|status|condition|generation|revision|hash|last|time|update|message|reason|progress|healthy?$`)

// ToldOf are the fields of a status that say something else in after than in before, or nothing any more, sorted, without what is in them, but for those that tell of pods.
func ToldOf(before, after map[string]any) []string {
	both := map[string]any{}
	maps.Copy(both, before)
	maps.Copy(both, after)
	return append([]string{}, namesOf(both, func(field string) bool {
		return !ofPods.MatchString(field) && !reflect.DeepEqual(withoutTimes(before[field]), withoutTimes(after[field]))
	})...)
}

// untold tells of which changes that are followed the status says nothing any more, where it has the field still.
func untold(from, to string, was, is New) (findings []finding.Finding) {
	for _, field := range namesOf(is.Tells, is.followsAs(was)) {
		stale := slices.DeleteFunc(without(was.Tells[field], is.Tells[field]), func(name string) bool { return !slices.Contains(is.States, name) })
		if len(stale) > 0 {
			f := code.Finding(code.StatusStale, is.Sample, "%s does not tell of a change of %s in status.%s of a new object like it, not within %s, though it follows it; %s did",
				to, field, strings.Join(stale, " and status."), was.Patience(), from)
			f.Severity = finding.Error
			findings = append(findings, f)
		}
	}
	return findings
}

// ownerless tells what is made for a new object, belongs to nobody and stays when that is deleted, and was not with from.
func ownerless(from, to string, was, is New) []finding.Finding {
	manner := slices.ContainsFunc(was.Unowned, func(o Left) bool { return slices.Contains(WorkloadKinds, o.Kind) })
	var unowned []string
	for _, o := range is.Unowned {
		if !was.mayLeave(o.Kind) {
			unowned = append(unowned, o.Kind+" "+o.Name)
		}
	}
	if len(unowned) == 0 || manner {
		return nil
	}
	f := code.Finding(code.NewUnowned, is.Sample, "%s makes %s for a new object like it without an owner reference, and it stayed when the object was deleted; with %s it did not",
		to, strings.Join(unowned, ", "), from)
	if len(is.Kept) > 0 && !slices.ContainsFunc(unowned, func(name string) bool { return !strings.HasPrefix(name, "Secret ") }) { // which the data that are kept may need
		f.Severity = finding.Warning
	}
	return []finding.Finding{f}
}

// forsaken tells what the operator does not do any more for a new object that somebody else changes, pauses or deletes.
func forsaken(from, to string, was, is New) []finding.Finding {
	var findings []finding.Finding
	if unsaved := is.Unsaved(was); len(unsaved) > 0 {
		f := doesLess("make on deletion, before the finalizer is removed, what the old version made", is.Sample, "%s does less for a new object like it than %s: when that is deleted, it makes none of the %s that %s made then",
			to, from, strings.Join(unsaved, ", "), from)
		if slices.Equal(unsaved, []string{"jobs.batch"}) && len(is.Finalizers) > 0 && !slices.Equal(was.Finalizers, is.Finalizers) { // which may do itself what a Job did
			f.Severity = finding.Warning
		}
		findings = append(findings, f)
	}
	if was.MayBlock && is.Blocks && !is.MayBlock {
		findings = append(findings, code.Finding(code.Forbidden, is.Sample, "%s makes things for a new object like it that block its deletion (blockOwnerDeletion), and may not update its finalizers any more; %s may. "+
			"Clusters with the admission plugin OwnerReferencesPermissionEnforcement, as OpenShift, refuse them", to, from))
	}
	findings = append(findings, behind(from, to, was, is)...)
	findings = append(findings, notBack(from, to, was, is)...)
	findings = append(findings, taken(from, to, was, is)...)
	findings = append(findings, unsteady(from, to, was, is)...)
	findings = append(findings, unpaused(from, to, was, is)...)
	findings = append(findings, unrepeated(from, to, was, is)...)
	findings = append(findings, contest(from, to, was, is)...)
	findings = slices.Concat(findings, unspread(from, to, was, is), actsOtherwise(from, to, was, is), unreturned(from, to, was, is))
	findings = append(findings, unlooked(from, to, was, is)...)
	if was.AtNone != nil && is.AtNone != nil && *was.AtNone == "" && *is.AtNone != "" {
		f := code.Finding(code.ConditionWorse, is.Sample, "%s says of a new object like it that is asked for none that it is not well, not only for %s; with %s it was well: %s", to, was.Patience(), from, *is.AtNone)
		f.Fix = "compare how many are ready with how many are asked for, of which none may be"
		findings = append(findings, f)
	}
	gone := namesOf(is.Remakes, func(kind string) bool { return was.Remakes[kind] && !is.Remakes[kind] })
	if len(gone) > 0 {
		findings = append(findings, code.Finding(code.DriftStays, is.Sample, "%s does not make %s again that somebody deletes of a new object like it, not within %s; %s did",
			to, strings.Join(gone, " and "), was.Patience(), from))
	}
	stay := namesOf(is.Reverts, func(kind string) bool { return was.Reverts[kind] && !is.Reverts[kind] })
	if len(stay) > 0 {
		findings = append(findings, code.Finding(code.DriftStays, is.Sample, "%s leaves %s of a new object like it as somebody else changes it, for %s; %s changed it back",
			to, strings.Join(stay, " and "), was.Patience(), from))
	}
	written := without(is.Written, was.Written)
	if was.Written != nil && was.Sample == is.Sample && len(written) > 0 {
		f := code.Finding(code.DefaultChanged, is.Sample, "%s writes %s into a new object like it, which its author left out, and %s did not: a later default does not reach it, and tools that apply its manifest may take it out again",
			to, strings.Join(written, ", "), from)
		f.Severity = finding.Warning
		findings = append(findings, f)
	}
	findings = append(findings, claimsOf(from, to, was, is)...)
	findings = append(findings, stripped(from, to, was, is)...)
	findings = append(findings, servicesOf(from, to, was, is)...)
	findings = append(findings, astray(from, to, was, is)...)
	findings = append(findings, along(from, to, was, is)...)
	findings = append(findings, elsewhere(from, to, was, is)...)
	findings = append(findings, again(from, to, was, is)...)
	findings = append(findings, inNamespace(from, to, was, is)...)
	return append(findings, quieter(from, to, was, is)...)
}

// notBack tells what of that which was made for a new object stays as it is after a change of a field, though that has been taken back, and did not with from: what follows
// only one way, or makes a password anew.
func notBack(from, to string, was, is New) (findings []finding.Finding) {
	if was.Of != is.Of {
		return nil
	}
	remade := map[string][]string{} // the fields, by what is made anew
	for _, field := range slices.Sorted(maps.Keys(is.Stays)) {
		before, known := was.StaysAfter(field)
		if !known || is.Deprecated[field] {
			continue
		}
		var left, anew []string
		for _, name := range without(is.Stays[field], before) {
			switch made := name[:strings.LastIndexByte(name, ' ')]; {
			case !slices.Contains(was.Makes, made):
			case strings.HasPrefix(made, "Secret"):
				anew = append(anew, name)
			default:
				left = append(left, name)
			}
		}
		if len(left) > 0 {
			findings = append(findings, doesLess("make each operand anew from the whole spec in each reconcile, also where something is left out or taken back", is.Sample, "%s leaves what it made for a new object like it other than it was, after a change of %s that was taken back: %s; with %s it was as before",
				to, field, firstOf(left), from))
		}
		if len(anew) > 0 {
			remade[firstOf(anew)] = append(remade[firstOf(anew)], field)
		}
	}
	for _, anew := range slices.Sorted(maps.Keys(remade)) {
		findings = append(findings, code.Finding(code.Credentials, is.Sample, "%s makes anew for a new object like it, after a change of %s: %s; with %s it stayed", to, firstOf(remade[anew]), anew, from))
	}
	return findings
}

// And is between the fields that are changed at the same time.
const And = " and "

// StaysAfter is what is known to stay after a change of a field, or, if they were changed one after the other, of those that And joins.
func (n New) StaysAfter(field string) (all []string, known bool) {
	if all, known = n.Stays[field]; known {
		return all, true
	}
	for part := range strings.SplitSeq(field, And) {
		stays, known := n.Stays[part]
		if !known {
			return nil, false
		}
		all = append(all, stays...)
	}
	return all, true
}

// taken tells what of the user's belongs to a new object, and did not with from: it is deleted with the object.
func taken(from, to string, was, is New) []finding.Finding {
	taken := without(is.Takes, was.Takes)
	if was.Takes == nil || was.Of != is.Of || len(taken) == 0 {
		return nil
	}
	return []finding.Finding{code.Finding(code.DataLost, is.Sample, "%s makes a new object like it the owner of the user's %s that it names: Kubernetes deletes that with the object; %s left it to the user",
		to, strings.Join(taken, " and "), from)}
}

// without is list without what others have.
func without(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(others, name) })
}

// along tells what of other objects is deleted with a new object, and was not with from.
func along(from, to string, was, is New) []finding.Finding {
	taken := without(is.Along, was.Along)
	if was.Along == nil || len(taken) == 0 {
		return nil
	}
	which, lost := code.DoesLess, ""
	if slices.ContainsFunc(taken, func(name string) bool { return strings.HasPrefix(name, observe.KindClaim+"/") }) {
		which, lost = code.DataLost, ", with the data, once no pod mounts it"
	}
	f := code.Finding(which, is.Sample, "when a new object is deleted, %s deletes what belongs to this one or to others like it%s: %s; %s left it", to, lost, firstOf(taken), from)
	f.Fix = "delete by the object's own name, or by a selector that names it, never what the labels of all objects pick"
	return []finding.Finding{f}
}

// behind warns that what was made for the sample stays as it is where something else is made for a new object, or may stay later, and did not with from.
func behind(from, to string, was, is New) []finding.Finding {
	var findings []finding.Finding
	left := without(is.Behind, was.Behind)
	if was.Behind != nil && len(left) > 0 {
		findings = append(findings, code.Finding(code.Behind, is.Sample, "%s makes for a new object of the same spec what this one does not get: %s; with %s they were the same", to, firstOf(left), from))
	}
	beside := without(is.Beside, was.Beside)
	if was.Beside != nil && len(beside) > 0 {
		f := code.Finding(code.Behind, is.Sample, "%s makes others for a new object of the same spec, and leaves what %s made of this one beside them: %s", to, from, firstOf(beside))
		if slices.ContainsFunc(beside, func(name string) bool {
			kind, _, _ := strings.Cut(name, " ")
			return slices.Contains(WorkloadKinds, kind)
		}) { // it runs twice
			f.Severity = finding.Error
		}
		findings = append(findings, f)
	}
	if twice := is.OwnedTwiceNow(was); len(twice) > 0 {
		f := code.Finding(code.Behind, is.Sample, "%s applies what %s wrote before under another name (metadata.managedFields), which still owns the same fields of %s: what %s leaves out of them from now on stays there",
			to, from, firstOf(twice), to)
		if stays := namesOf(is.TakenOut, func(path string) bool { return len(is.TakenOut[path]) > 0 }); len(stays) > 0 {
			f.Severity = finding.Error
			f.Cause = "after a change of its " + stays[0] + ", " + strings.Join(is.TakenOut[stays[0]], " and ") + " stays as it was; what was made for a new object follows"
		}
		findings = append(findings, f)
	}
	return findings
}

// OwnedTwiceNow is what was made for the sample of which another manager owns what the operator applies, and did not under the release before.
func (n New) OwnedTwiceNow(was New) []string {
	if was.OwnedTwice == nil {
		return nil
	}
	return without(n.OwnedTwice, was.OwnedTwice)
}

// unsteady tells what is said in another order from one time to the next, and was not with from.
func unsteady(from, to string, was, is New) []finding.Finding {
	names := namesOf(is.Unsteady, func(name string) bool {
		return was.Unsteady != nil && !slices.Contains(slices.Collect(maps.Keys(was.Unsteady)), name)
	})
	if len(names) == 0 {
		return nil
	}
	f := code.Finding(code.Unsteady, is.Sample, "%s writes the %s of a new object like it again with the same words in another order, as who goes through a map in Go does; %s did not",
		to, strings.Join(names, " and "), from)
	if !slices.ContainsFunc(names, func(name string) bool { return is.Unsteady[name] }) {
		f.Severity = finding.Warning
	}
	return []finding.Finding{f}
}

// unpaused tells what became of a pause that from honoured.
func unpaused(from, to string, was, is New) []finding.Finding {
	var findings []finding.Finding
	for p, before := range was.Pauses {
		switch {
		case before != Held:
		case is.Pauses[p] == Ignored:
			findings = append(findings, doesLess("leave what is paused alone", is.Sample, "%s does not leave a new object like it alone while its %s is true: what is made for it follows a change of its %s; with %s it did not",
				to, p.By, p.Changed, from))
		case is.Pauses[p] == StaysStill:
			findings = append(findings, doesLess("reconcile an object when it is paused no more: a predicate that looks at generations alone does not see annotations", is.Sample, "%s does not go on with a new object like it once its %s is not true any more: within %s nothing that is made for it follows a change of its %s; with %s it did",
				to, p.By, EffectLimit, p.Changed, from))
		}
	}
	return findings
}

// quieter warns of finalizers and Events that new objects have no more.
func quieter(from, to string, was, is New) []finding.Finding {
	var findings []finding.Finding
	for _, lost := range []struct {
		was, is []string
		words   string
	}{
		{was.Finalizers, is.Finalizers, "%s puts no finalizer on a new object like it, and %s put %s: what that cleaned up on deletion may stay"},
		{was.Events, is.Events, "%s records no Event about a new object like it, and %s recorded %s"},
	} {
		if is.Says != nil && len(lost.was) > 0 && len(lost.is) == 0 {
			f := doesLess("go on with it, or say in the release notes that it ends", is.Sample, lost.words, to, from, strings.Join(lost.was, ", "))
			f.Severity = finding.Warning
			findings = append(findings, f)
		}
	}
	return findings
}

// namesOf are the keys of m that are wanted, sorted.
func namesOf[V any](m map[string]V, wanted func(string) bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(name string) bool { return !wanted(name) })
}

// Surely is how often an operator follows a field that it knows: there and back. Once may be by chance.
const Surely = 2

// Follow reports whether what somebody makes directly for an object is another after than before.
func Follow(before, after map[string]observe.Operand) bool {
	made := func(operands map[string]observe.Operand) map[string]any {
		contents := map[string]any{}
		for name, o := range operands {
			if o.Direct && !o.Transient() {
				contents[name] = o.Content
			}
		}
		return contents
	}
	return !reflect.DeepEqual(made(before), made(after))
}

// Untold is what of found about a new object no finding about an old one tells already: who ignores changes ignores all of them.
func Untold(findings, found []finding.Finding) []finding.Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f finding.Finding) bool {
		return slices.ContainsFunc(findings, func(told finding.Finding) bool { return told.Code == f.Code })
	})
}
