package judge

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/observe"
)

// EffectLimit is how long an operator has to show all that it does about a change.
const EffectLimit = 30 * time.Second

// Effect is what an operator did when the walk changed an object.
type Effect struct {
	Change    string              // the path of the field that was changed
	Status    bool                // the object's status changed
	Tells     []string            // the fields of the status that are others, but for times
	Grows     bool                // it only says more than before, or that a condition is met by now: that may come without the change
	Workloads map[string][]string // the fields of workloads that changed, by the workload's name
	Scaled    int64               // by how many replicas one of these is larger
	Counts    map[string]int64    // by how much each number of the status is larger, by path
}

// WorkloadKinds are the operands that run something.
var WorkloadKinds = []string{"Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job"}

// ReplicasField is the field that operators set by what an object counts.
const ReplicasField = "spec.replicas"

// EffectOf is what is seen of the object called name between before and now, after its field change was changed.
func EffectOf(name, change string, before, now observe.Seen) Effect {
	e := Effect{Change: change, Workloads: map[string][]string{}, Counts: map[string]int64{}}
	e.Status = !reflect.DeepEqual(withoutTimes(before.Snapshot[name]), withoutTimes(now.Snapshot[name]))
	e.Grows = e.Status && !saysElse(before.Snapshot[name], now.Snapshot[name])
	for operand, fields := range before.Changes(now.Snapshot) {
		kind, _, _ := strings.Cut(operand, "/")
		if before.Of[operand] != name || !slices.Contains(WorkloadKinds, kind) {
			continue
		}
		scaled := Scaled(now.Operands[operand], now.Operands) // by Kubernetes, whatever the operator does
		fields = slices.DeleteFunc(fields, func(f string) bool { return strings.HasPrefix(f, "metadata.") || scaled && f == ReplicasField })
		if len(fields) > 0 {
			e.Workloads[operand] = fields
		}
		if slices.Contains(fields, ReplicasField) {
			e.Scaled = replicasOf(now.Snapshot[operand]) - replicasOf(before.Snapshot[operand])
		}
	}
	was, _ := before.Snapshot[name]["status"].(map[string]any)
	is, _ := now.Snapshot[name]["status"].(map[string]any)
	addCounts(e.Counts, "status", was, is)
	e.Tells = compare.OtherFields(withoutTimes(was), withoutTimes(is))
	return e
}

// replicasOf is how many pods a workload that says content asks for by a number.
func replicasOf(content map[string]any) int64 {
	n, _, _ := unstructured.NestedInt64(content, "spec", "replicas")
	return n
}

// addCounts notes by how much each number of is is larger than in was, which has it, too.
func addCounts(counts map[string]int64, path string, was, is map[string]any) {
	for name, value := range is {
		switch value := value.(type) {
		case map[string]any:
			inner, _ := was[name].(map[string]any)
			addCounts(counts, path+"."+name, inner, value)
		case int64:
			if before, known := was[name].(int64); known {
				counts[path+"."+name] = value - before
			}
		}
	}
}

// withoutTimes is value with every time in it the same: when an operator wrote says nothing of what it did.
func withoutTimes(value any) any {
	switch v := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(v))
		for k, member := range v {
			kept[k] = withoutTimes(member)
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i, item := range v {
			kept[i] = withoutTimes(item)
		}
		return kept
	case string:
		if _, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return time.Time{}
		}
	}
	return value
}

// saysElse reports whether something that was before is another now, but for times, and for conditions that are met by now.
func saysElse(before, now any) bool {
	switch was := before.(type) {
	case map[string]any:
		is, _ := now.(map[string]any)
		if was["type"] != nil && was["status"] != "True" && is["status"] == "True" {
			return false
		}
		for k, member := range was {
			if saysElse(member, is[k]) {
				return true
			}
		}
		return false
	case []any:
		is, _ := now.([]any)
		if conditions := byType(was); conditions != nil && byType(is) != nil {
			return saysElse(conditions, byType(is))
		}
	}
	return !reflect.DeepEqual(withoutTimes(before), withoutTimes(now))
}

// byType are the items of a list of conditions by what they are about; nil if it is another list.
func byType(list []any) map[string]any {
	conditions := map[string]any{}
	for _, item := range list {
		condition, _ := item.(map[string]any)
		about, is := condition["type"].(string)
		if !is {
			return nil
		}
		conditions[about] = condition
	}
	return conditions
}

// Any reports whether anything came of the change: who writes the same again at each look does not have to.
func (e Effect) Any() bool { return e.Status || len(e.Workloads) > 0 }

// Lacks says what of e, which an earlier release did, is not seen of now, in the words of a finding; nil if nothing. there
// are the operands that there are now. Other fields than the number of replicas are as good as each other: how a release
// writes a template is its own matter.
func (e Effect) Lacks(now Effect, there map[string]observe.Operand) []string {
	if e.Change != now.Change || !OfSpec(e.Change) {
		return nil
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(e.Workloads)) {
		counts := slices.Contains(e.Workloads[name], ReplicasField)
		follows := func(workload string) bool {
			fields := now.Workloads[workload]
			return len(fields) > 0 && (!counts || slices.Contains(fields, ReplicasField))
		}
		_, stays := there[name]
		instead := insteadOf(name, follows, e, now, !stays)
		switch {
		case follows(name), instead != "" && !stays:
		case instead != "":
			missing = append(missing, fmt.Sprintf("it does not change %s any more, and leaves it behind: %s changes in its place", name, instead))
		default:
			missing = append(missing, fmt.Sprintf("it does not change %s of %s any more", strings.Join(e.Workloads[name], ", "), name))
		}
	}
	if e.Status && !e.Grows && !now.Status {
		missing = append(missing, "it does not change the object's status any more"+inBrackets(firstOf(e.Tells)))
	} else if silent := e.uncounted(now, there); len(silent) > 0 {
		missing = append(missing, fmt.Sprintf("it does not change %s of the object any more", strings.Join(silent, ", ")))
	}
	return missing
}

// inBrackets is text in brackets after a space, "" for none.
func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// uncounted are the numbers of the status that grew with the replicas in e, and now stay as they were although replicas change, and are there.
func (e Effect) uncounted(now Effect, there map[string]observe.Operand) []string {
	if e.Scaled == 0 || now.Scaled == 0 {
		return nil
	}
	for name := range now.Workloads {
		if there[name].Unready != "" {
			return nil // the status may be right
		}
	}
	return namesOf(e.Counts, func(path string) bool {
		by, told := now.Counts[path]
		return e.Counts[path] == e.Scaled && told && by == 0
	})
}

// OfSpec reports whether field is one that users ask for something by.
func OfSpec(field string) bool { return strings.HasPrefix(field, "spec.") }

// insteadOf names the workload that follows now and that e does not know, or "": of name's kind, or of any where name is gone.
func insteadOf(name string, follows func(string) bool, e, now Effect, gone bool) string {
	kind, _, _ := strings.Cut(name, "/")
	for _, other := range slices.Sorted(maps.Keys(now.Workloads)) {
		if e.Workloads[other] == nil && (gone || strings.HasPrefix(other, kind+"/")) && follows(other) {
			return other
		}
	}
	return ""
}

// With is e and what other saw besides.
func (e Effect) With(other Effect) Effect {
	if e.Change != other.Change {
		return other
	}
	e.Grows = (e.Grows || !e.Status) && (other.Grows || !other.Status)
	e.Status = e.Status || other.Status
	e.Workloads = maps.Clone(e.Workloads)
	maps.Copy(e.Workloads, other.Workloads)
	e.Scaled = cmp.Or(e.Scaled, other.Scaled)
	counts := map[string]int64{}
	maps.Copy(counts, other.Counts)
	for path, by := range e.Counts {
		counts[path] = cmp.Or(counts[path], by)
	}
	e.Counts = counts
	return e
}
