package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// FieldFindings compares what o says in version of d now with what its author wrote and with what it said before.
func FieldFindings(o *observe.Object, d *apiextensionsv1.CustomResourceDefinition, version string, now *unstructured.Unstructured, storedAs string) []finding.Finding {
	var findings []finding.Finding
	where := ""
	if storedAs != "" {
		where = fmt.Sprintf(" (stored as %s)", storedAs)
	}
	var authored compare.Diffs
	if version == o.Version {
		lost, rewritten := lostTags(o, now)
		authored = append(compare.Lost(compare.Content(o.Author), compare.Content(now.Object)), lost...)
		if first := o.First[version]; first != nil { // what an operator made of it before any upgrade is no loss
			known := compare.Lost(compare.Content(o.Author), compare.Content(first.Object))
			authored = slices.DeleteFunc(authored, known.Has)
		}
		if len(authored) > 0 {
			findings = append(findings, WithFields(code.Finding(code.FieldLost, o.String(), "read as %s%s: %s", version, where, authored), authored))
		}
		if len(rewritten) > 0 {
			findings = append(findings, WithFields(code.Finding(code.DefaultChanged, o.String(), "read as %s%s, compared with what was restored: %s", version, where, rewritten), rewritten))
		}
	}
	before := o.Views[version]
	if before == nil {
		return findings
	}
	changed := slices.DeleteFunc(compare.Lost(compare.Content(before.Object), compare.Content(now.Object)), authored.Has)
	if len(changed) == 0 {
		return findings
	}
	f := code.Finding(code.DefaultChanged, o.String(), "read as %s%s, compared with before: %s", version, where, changed)
	switch {
	case version != o.Version && slices.ContainsFunc(changed, func(d compare.Difference) bool { return d.Gone }):
		f = code.Finding(code.FieldLost, o.String(), "written as %s, read as %s%s, compared with before: %s", o.Version, version, where, changed)
	case (version != o.Version || version != storedAs) && definition.ConvertsByWebhook(d):
		// What is not a default of the version is the same where defaults are left out.
		bare := compare.Lost(compare.Content(before.Object), definition.Undefaulted(d, version, now.Object))
		if slices.ContainsFunc(changed, bare.Has) {
			f.Cause = "the values are no defaults of " + version + ", so they come of conversion"
			f.Fix = "convert what was stored before to what it was read as before: what a version cannot say has to survive, for example in an annotation"
		}
	}
	if o.Restored || f.Code == code.DefaultChanged { // of restored objects there may be many, which are summed up by their fields
		f = WithFields(f, changed)
	}
	return append(findings, f)
}

// NewDefaults tells what the API server set by itself when o was created and does not set in made, which the release called to has of the
// same manifest. What the author wrote is not its matter.
func NewDefaults(o *observe.Object, to string, made map[string]any) []finding.Finding {
	authored := compare.Lost(o.Author, made)
	unset := slices.DeleteFunc(compare.Differences(o.Created, made), func(d compare.Difference) bool {
		return !d.Gone || !strings.HasPrefix(d.Path+".", "spec.") || authored.Has(d)
	})
	if len(unset) == 0 {
		return nil
	}
	f := code.Finding(code.DefaultChanged, o.String(), "%s leaves empty in a new object what was set before: %s", to, unset)
	f.Cause = "neither a default of the schema nor a mutating webhook sets it anymore"
	return []finding.Finding{WithFields(f, unset)}
}

var (
	// passing are fields of a status that are empty when all is well, by a word of their name.
	passing = observe.Compiled(`(^|[a-z])(?i:errors?|failed|failures?|messages?|reasons?|warnings?|pending|progress|current|last|time|date)([A-Z]|$)`)
	// fieldName is how a field of a type in Go is called; what has another name is the key of a map, as the name of a pod.
	fieldName = observe.Compiled(`^[a-z][A-Za-z0-9]*$`)
)

// StatusGone tells the fields of o's status before the hop, and the conditions, that it has none of in now. Other lists are told elsewhere. Where no webhook converts, who writes an
// object through a version drops of its status what that has no field for: the walk does so as well.
func StatusGone(o *observe.Object, now *unstructured.Unstructured, converted bool) []finding.Finding {
	before := o.Views[o.Version]
	if before == nil {
		return nil
	}
	status := func(view *unstructured.Unstructured) map[string]any {
		fields, _ := view.Object["status"].(map[string]any)
		return map[string]any{"status": fields}
	}
	views := slices.Collect(maps.Values(o.Views))
	pruned := func(names []string) bool {
		return !converted && slices.ContainsFunc(views, func(view *unstructured.Unstructured) bool {
			_, has, _ := unstructured.NestedFieldNoCopy(view.Object, names...)
			return !has
		})
	}
	gone := slices.DeleteFunc(compare.Differences(status(before), status(now)), func(d compare.Difference) bool {
		_, isList := d.Was.([]any)
		names := strings.Split(d.Path, ".")
		isKey := slices.ContainsFunc(names, func(name string) bool { return !fieldName().MatchString(name) })
		return !d.Gone || isList || isKey || pruned(names) || passing().MatchString(names[len(names)-1])
	})
	names := gone.Fields()
	for _, t := range observe.ConditionsGone(before, now) {
		names = append(names, "condition "+t)
	}
	if len(names) == 0 {
		return nil
	}
	return []finding.Finding{code.Finding(code.StatusGone, o.String(), "its status says nothing any more of %s", strings.Join(names, ", "))}
}

// StatusStays tells that o's status in now stays behind its generation, and did not before the hop: who waits until a change is dealt with waits
// without end.
func StatusStays(o *observe.Object, now *unstructured.Unstructured) []finding.Finding {
	before := o.Views[o.Version]
	if before == nil || !observe.UpToDate(before) || observe.StaleBy(now) == "" {
		return nil
	}
	f := code.Finding(code.StatusStale, o.String(), "after changes of it %s; before the upgrade the status told the newest", observe.StaleBy(now))
	f.Severity = finding.Error
	return []finding.Finding{f}
}

// Said are the fields of a status, by path, whose absence says something: neither lists nor what is empty when all is well.
func Said(object *unstructured.Unstructured) map[string]bool {
	fields, _ := object.Object["status"].(map[string]any)
	said := map[string]bool{}
	eachField("status", fields, func(path, name string, value any) {
		_, list := value.([]any)
		if !list && fieldName().MatchString(name) && !passing().MatchString(name) {
			said[path] = true
		}
	})
	return said
}

// eachField calls see for each of fields, which are at path, that is no map, and for those below the others.
func eachField(path string, fields map[string]any, see func(path, name string, value any)) {
	for name, value := range fields {
		at := path + "." + name
		if inner, below := value.(map[string]any); below {
			eachField(at, inner, see)
			continue
		}
		see(at, name, value)
	}
}

// lostTags compares the labels and annotations of o with those that its author gave it. Those of a restored object may be the
// operator's: which of them have another value now is told apart from which are lost.
func lostTags(o *observe.Object, now *unstructured.Unstructured) (lost, rewritten compare.Diffs) {
	lost = compare.Lost(tags(o.Author), tags(now.Object))
	if !o.Restored {
		return lost, nil
	}
	for _, d := range lost {
		if !d.Gone {
			rewritten = append(rewritten, d)
		}
	}
	return slices.DeleteFunc(lost, func(d compare.Difference) bool { return !d.Gone }), rewritten
}

// tags is the part of an object's metadata that is its author's. Of an object that an annotation holds, as conversions keep what
// a version has no field for, only what its users say in it counts.
func tags(object map[string]any) map[string]any {
	m, _ := object["metadata"].(map[string]any)
	annotations, _ := m["annotations"].(map[string]any)
	kept := map[string]any{}
	for key, value := range annotations {
		kept[key] = value
		var held map[string]any
		if text, ok := value.(string); ok && strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &held) == nil {
			kept[key] = compare.Content(held)
		}
	}
	return map[string]any{"metadata": map[string]any{"labels": m["labels"], "annotations": kept}}
}

// WriteFindings asks whether the last write of an observer that was acknowledged is still there.
func WriteFindings(o *observe.Object, now map[string]*unstructured.Unstructured) []finding.Finding {
	acked := o.Acked.Load()
	for _, view := range now {
		counter, err := strconv.ParseInt(view.GetAnnotations()[observe.Writes], 10, 64)
		if _, late := o.Late.Load(counter); acked > 0 && (err != nil || counter < acked && !late) {
			return []finding.Finding{code.Finding(code.WriteLost, o.String(),
				"write number %d through %s was acknowledged, but the object has number %d", acked, o.Version, counter)}
		}
	}
	return nil
}

// Versions compares what d served before with what it serves now, and says what its objects are stored as.
func Versions(before, now *apiextensionsv1.CustomResourceDefinition, stored []string) []finding.Finding {
	var findings []finding.Finding
	for _, version := range definition.ServedVersions(before) {
		if !slices.Contains(definition.ServedVersions(now), version) {
			f := code.Finding(code.VersionGone, "CustomResourceDefinition/"+now.Name, "%s is not served as %s any more", now.Spec.Names.Kind, version)
			for _, v := range before.Spec.Versions {
				if v.Name == version && v.Deprecated {
					f.Severity, f.Cause, f.Fix = finding.Info, "it was deprecated in the release before", ""
				}
			}
			findings = append(findings, f)
		}
	}
	others := slices.DeleteFunc(slices.Clone(stored), func(v string) bool { return v == definition.StorageVersion(now) })
	if len(others) > 0 {
		findings = append(findings, code.Finding(code.StoredVersions, "CustomResourceDefinition/"+now.Name,
			"status.storedVersions is %s, stored now as %s: no later release may drop %s before the objects are migrated",
			strings.Join(stored, ", "), definition.StorageVersion(now), strings.Join(others, ", ")))
	}
	return findings
}

// Returned compares what o says in each version now with what it said before the hop, and asks whether its last write
// that was acknowledged is there.
func Returned(o *observe.Object, now map[string]*unstructured.Unstructured) []finding.Finding {
	var changed []string
	for _, version := range slices.Sorted(maps.Keys(now)) {
		was, is := o.Views[version], now[version]
		if is.GetUID() != o.UID {
			return []finding.Finding{code.Finding(code.LostInRollback, o.String(), "it was deleted and made anew: its UID is another")}
		}
		if places := append(compare.Lost(compare.Content(was.Object), compare.Content(is.Object)), compare.Lost(tags(o.Author), tags(is.Object))...); len(places) > 0 {
			changed = append(changed, "as "+version+" "+places.String())
		}
	}
	if len(changed) > 0 {
		return []finding.Finding{code.Finding(code.LostInRollback, o.String(), "compared with before the upgrade: %s", strings.Join(changed, "; "))}
	}
	var findings []finding.Finding
	if o.Written {
		for _, f := range WriteFindings(o, now) {
			findings = append(findings, code.Finding(code.LostInRollback, o.String(), "%s", f.Message))
		}
	}
	return findings
}
