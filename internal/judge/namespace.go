package judge

import (
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
)

// DoesAnywhere reports whether as much was done for an object in a new namespace: something is made, or, where nothing is, its status tells that it is well.
func (n New) DoesAnywhere() bool {
	return n.Anywhere != nil && (n.Anywhere.Made || !n.Copy.Made && n.Anywhere.Well)
}

// DoesFar reports whether as much was done for an object that names one in another namespace as for one that names one in its own: what runs is made, its status is no worse, and what
// is made for the other says something of it if it does so there.
func (n New) DoesFar() bool {
	return n.Far != nil && n.Far.Alike && (n.Far.Made || !n.Copy.Made) && len(without(n.Copy.Kinds, n.Far.Kinds)) == 0 && len(n.untoldFar()) == 0
}

// untoldFar are the kinds that say something of an object that names one in its own namespace, and nothing of one that names one in another.
func (n New) untoldFar() []string {
	if n.Anywhere == nil {
		return nil
	}
	return without(n.Anywhere.Told, n.Far.Told)
}

// ToldLater reports whether something of what is made for others may say something of the object yet, as it did under the release before.
func (n New) ToldLater(was New) bool {
	return was.Anywhere != nil && n.Anywhere != nil && len(without(was.Anywhere.Told, n.Anywhere.Told)) > 0
}

// LongNames are the lengths of long names, of which the first that the API server takes is tried. The first is the longest that a StatefulSet can have: its pods have a label with a sum of
// eleven characters more, of 63. Definitions that let names be less long leave room for what their operators add.
var LongNames = []int{52, 45, 40, 36, 32}

// GoesAnywhere reports whether it was seen that an object goes with its namespace.
func (n New) GoesAnywhere() bool { return n.Goes != nil && *n.Goes }

// inNamespace tells what is not done for objects in a namespace that is newer than the operator's pod, and was with from.
func inNamespace(from, to string, was, is New) []finding.Finding {
	var findings []finding.Finding
	if was.Of == is.Of && was.DoesAnywhere() && is.Anywhere != nil && !is.DoesAnywhere() {
		findings = append(findings, code.Finding(code.NewIgnored, is.Sample, "%s does nothing for an object like it in a namespace that is newer than the operator's pod, not within %s; %s did", to, EffectLimit, from))
	}
	if was.Of == is.Of && was.DoesFar() && is.DoesAnywhere() && is.Far != nil && !is.DoesFar() {
		f := code.Finding(code.NewIgnored, is.Sample, "%s does less for an object like it that says the namespace of what it names, another than its own, not within %s; %s did as much as where both are in one", to, EffectLimit, from)
		if untold := is.untoldFar(); len(untold) > 0 {
			f.Cause = "no " + strings.Join(untold, " and no ") + " of what it names says anything of it"
		}
		if is.Far.Unwell != "" {
			f.Cause = is.Far.Unwell
		}
		f.Fix = "look for what an object names in the namespace that it says, and in its own where it says none, also in what maps one to the other"
		findings = append(findings, f)
	}
	if was.Strays != nil && len(was.Strays) == 0 && len(is.Strays) > 0 {
		f := code.Finding(code.OperandChanged, is.Sample, "%s has what is made for objects of one namespace say something of one like it of another, which nothing did with %s: %s", to, from, strings.Join(is.Strays, "; "))
		f.Severity = finding.Error
		f.Fix = "list what an object selects in the object's own namespace (client.InNamespace), and compare what names it by namespace and name"
		findings = append(findings, f)
	}
	if was.GoesAnywhere() && is.Goes != nil && !*is.Goes {
		findings = append(findings, code.Finding(code.Uninstall, is.Sample, "an object like it that is deleted with its namespace stays for %s, and the namespace with it: %s does not remove %s; with %s it went",
			GoLimit, to, strings.Join(is.Held, ", "), from))
	}
	if was.Goes != nil && !was.Strips && is.Strips {
		f := code.Finding(code.OperandChanged, is.Sample, "%s removes finalizers of others from a deleted object like it: who guards objects by one, as a backup, finds them gone; %s removed its own alone", to, from)
		f.Severity = finding.Error
		findings = append(findings, f)
	}
	if given := namesOf(is.Retries, func(kind string) bool { return was.Retries[kind] && !is.Retries[kind] }); len(given) > 0 {
		findings = append(findings, doesLess("return the error from Reconcile, so that the request is tried again with a back-off, until it can be done; wait for nothing in a worker", is.Sample,
			"%s does not try again: a new object like it, in a namespace whose quota was used up, has no %s %s after there is room; with %s it had", to, strings.Join(given, " and no "), EffectLimit, from))
	}
	lack := slices.DeleteFunc(without(is.Long, was.Long), func(kind string) bool { return was.Anywhere == nil || !slices.Contains(was.Anywhere.Kinds, kind) })
	if was.Of == is.Of && was.Long != nil && len(lack) > 0 {
		findings = append(findings, code.Finding(code.NewIgnored, is.Sample, "%s does not make for each of two new objects with names of up to %d characters, which differ in the last one alone, its own %s; %s did", to, LongNames[0], strings.Join(lack, " and "), from))
	}
	return findings
}
