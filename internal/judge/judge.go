// Package judge turns what was observed of a hop into findings. Its functions are pure: they ask no cluster, and no clock.
package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/fault"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/report"
)

// Attempts turns what the observers met into outages and findings.
//
// converter names the image behind the conversion webhook of a definition whose pods were simulated, "" for none.
func Attempts(attempts, slow []observe.Attempt, timeline []lifecycle.Event, before map[string]*lifecycle.Definition, converter func(crd string) string, done bool, faults []*fault.Result) ([]report.Outage, []finding.Finding) {
	var all []outage
	var wrong []window
	unprovable := map[string]string{}
	for _, list := range series(attempts) {
		a := list[0]
		by := converter(a.CRD)
		var initial []string
		if d := before[a.CRD]; d != nil {
			initial = d.Served
		}
		found := outages(list, servedAt(timeline, a.CRD, a.Version, initial))
		if len(found) > 0 && by != "" {
			unprovable[a.CRD] = by
			continue
		}
		all = append(all, found...)
		wrong = append(wrong, windows(list)...)
	}
	var findings []finding.Finding
	for _, crd := range slices.Sorted(maps.Keys(unprovable)) {
		findings = append(findings, code.Finding(code.NotProvable, "CustomResourceDefinition/"+crd,
			"whether its objects stay readable and writable is not proved: its conversion webhook runs in a simulated pod (%s)", unprovable[crd]))
	}
	merged := merge(all)
	var told []report.Outage
	for i, o := range merged {
		merged[i].Slow = slowed(o, slow)
		merged[i].By = blame(faults, merged[i])
		outage := report.Outage{
			CRD: o.CRD, Version: o.Version, Operation: o.Operation, Seconds: observe.Seconds(o.End.Sub(o.Start)), Errors: o.Errors, First: o.First,
			Start: o.Start.UTC(), Cause: cause(timeline, before[o.CRD], merged[i]),
		}
		if by := merged[i].By; by != nil {
			outage.Fault = by.String()
		}
		told = append(told, outage)
	}
	findings = append(findings, outageFindings(merged, before, timeline, done)...)
	for _, x := range wrong {
		if x.Open && done {
			continue // what is still wrong after the upgrade is judged object by object
		}
		f := code.Finding(code.ServedWrong, "CustomResourceDefinition/"+x.CRD, "for %.1fs a %s through %s answered with what nobody wrote (%d times): %s",
			x.End.Sub(x.Start).Seconds(), x.Operation, x.Version, x.Count, x.First)
		f.Cause = cause(timeline, before[x.CRD], outage{CRD: x.CRD, Version: x.Version, Start: x.Start, End: x.End})
		findings = append(findings, f)
	}
	return told, findings
}

// StillWrong leaves out of findings what was served wrong for a time and is told of an object that is wrong in the same way for good: then the new version
// answered beside the old one for a moment.
func StillWrong(findings []finding.Finding) []finding.Finding {
	return slices.DeleteFunc(findings, func(f finding.Finding) bool {
		_, said, _ := strings.Cut(f.Message, " times): ")
		return f.Code == code.ServedWrong && slices.ContainsFunc(findings, func(g finding.Finding) bool {
			return g.Code == code.FieldLost && strings.Contains(g.Message, said)
		})
	})
}

// Collapse makes one finding of those that say the same of several objects of one kind, and of those that have one cause.
func Collapse(findings []finding.Finding) []finding.Finding {
	return onePerCause(gather(findings, func(f finding.Finding) string {
		return strings.Join([]string{f.Code, string(f.Severity), kindOf(f), withoutName(f), f.Cause}, "\n")
	}))
}

// withoutName is what a finding says, with … for the namespace and name of its object, with which what is made for the object is called as well.
func withoutName(f finding.Finding) string {
	if _, name, _ := strings.Cut(f.Subject.Object, "/"); strings.Contains(name, "/") {
		return strings.ReplaceAll(f.Message, name, "…")
	}
	return f.Message
}

// outageFindings judges outages: what OLM makes and unmakes is a warning with what shortens it, what stays an error. All
// outages of one kind of object and one operation are one finding, for they have one cause. done says that the upgrade
// itself came to its end.
func outageFindings(list []outage, before map[string]*lifecycle.Definition, timeline []lifecycle.Event, done bool) []finding.Finding {
	type key struct {
		code, crd   string
		isNew, slow bool
		by          *fault.Result
	}
	groups := map[key][]outage{}
	var order []key
	for _, o := range list {
		k := key{code: outageCode(o), crd: o.CRD, by: o.By, slow: o.Slow}
		d := before[o.CRD]
		k.isNew = d != nil && !slices.Contains(d.Served, o.Version)
		if o.Open {
			k.code, k.by = code.OutageStays, nil
			// After a hop that failed anyway nobody misses a version that only the new release brings.
			k.isNew = k.isNew && !done
		}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], o)
	}
	var findings []finding.Finding
	for _, k := range order {
		group := groups[k]
		longest := slices.MaxFunc(group, func(a, b outage) int { return cmp.Compare(a.End.Sub(a.Start), b.End.Sub(b.Start)) })
		f := code.Finding(k.code, "CustomResourceDefinition/"+k.crd, "%s; the longest began with: %s", lengths(group), longest.First)
		f.Cause = cause(timeline, before[k.crd], longest)
		if longest.Open && longest.Last != longest.First {
			f.Message += fmt.Sprintf("; the last, of %s: %s", longest.Object, longest.Last)
			longest.First = longest.Last // what began it may be over
		}
		f.Fix = outageFix(longest, before[k.crd], timeline, f.Fix)
		if k.slow {
			f.Severity, f.Fix = finding.Info, "give the walk more of the machine"
		}
		if k.isNew {
			f.Severity, f.Fix = finding.Info, ""
			f.Message += "; the version is new, so nobody used it yet"
		}
		if k.by != nil {
			f = attributeToFault(f, k.by)
		}
		findings = append(findings, f)
	}
	return findings
}

// outageCode tells what did not work. The API server says of admission webhooks that it was "calling" them
// (k8s.io/apiserver v0.36.3 pkg/util/webhook/error.go), and of conversion it speaks otherwise.
func outageCode(o outage) string {
	switch {
	case o.Operation == observe.Write && strings.Contains(o.First, "failed calling webhook"):
		return code.AdmissionOutage
	case o.Operation == observe.Write:
		return code.WriteOutage
	}
	return code.ReadOutage
}

// lengths says for how long which operation failed through which versions.
func lengths(group []outage) string {
	var parts []string
	for _, operation := range []string{observe.Read, observe.Write} {
		byVersion := map[string][]outage{}
		for _, o := range group {
			if o.Operation == operation {
				byVersion[o.Version] = append(byVersion[o.Version], o)
			}
		}
		for _, version := range slices.Sorted(maps.Keys(byVersion)) {
			var total, longest time.Duration
			for _, o := range byVersion[version] {
				total += o.End.Sub(o.Start)
				longest = max(longest, o.End.Sub(o.Start))
			}
			part := fmt.Sprintf("no %s through %s for %.1fs", operation, version, total.Seconds())
			if n := len(byVersion[version]); n > 1 {
				part += fmt.Sprintf(" in all, %d times for up to %.1fs", n, longest.Seconds())
			}
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}

// outageFix says what an author can do about o, by the API server's own words. before is the definition before timeline.
func outageFix(o outage, before *lifecycle.Definition, timeline []lifecycle.Event, otherwise string) string {
	admission := outageCode(o) == code.AdmissionOutage
	switch {
	case !admission && introduces(o, before, timeline):
		return fmt.Sprintf("keep %s the storage version in the release that brings conversion, and change it in the next one: "+
			"until the new webhook answers nothing converts, and only the version that is stored needs no conversion", before.Storage)
	case untrusted(o.First) && admission:
		return "let the manager read its certificate again whenever the mounted Secret changes: OLM renews it, with its CA, when it installs a release"
	case noService(o.First) && admission:
		return "keep the name of the Deployment that serves the webhook: OLM names the Service after it"
	case untrusted(o.First), noService(o.First):
		return "let the running manager watch its own CRD and put the webhook's service and CA back whenever OLM overwrites them, " +
			"which OLM does several times in an upgrade; clients that use the storage version are not hit"
	case strings.Contains(o.First, "is registered for version"):
		return "add a version in one release and make it the storage version in the next: while OLM upgrades, the old manager still converts, " +
			"and does not know the new version"
	case unanswered(o.First):
		return "let the manager serve on for some seconds after it was asked to end, and be ready only once its webhook server listens; run two replicas"
	case unserved(o.First) && o.Open:
		return "register the webhook in the manager of the new release: at the path that the bundle's webhook definition names, it answers that there is nothing"
	case unserved(o.First):
		return "let the version before already serve the webhook's path"
	}
	return otherwise
}

// unserved reports whether a webhook's server answered that it has nothing at the path.
func unserved(said string) bool {
	return strings.Contains(said, "the server could not find the requested resource") || strings.Contains(said, "404")
}

// introduces reports whether o comes of conversion where there was none: the release brings a webhook and stores another
// version at once.
func introduces(o outage, before *lifecycle.Definition, timeline []lifecycle.Event) bool {
	return before != nil && before.Conversion == observe.ConversionNone && strings.Contains(o.First, "conversion webhook") &&
		slices.ContainsFunc(timeline, func(e lifecycle.Event) bool {
			return e.Kind == observe.KindCRD && e.Name == o.CRD && e.CRD != nil && e.CRD.Conversion != observe.ConversionNone && e.CRD.Storage != before.Storage
		})
}

// answerLimit is how soon after it was woken a manager does something, if it had put that off.
const answerLimit = 5 * time.Second

// byThemselves are the kinds of event that a manager does not make.
var byThemselves = []string{observe.KindWalk, observe.KindPod, observe.KindService, observe.KindLease}

// Woken judges whether the installation of to, on which nothing happened for long, went on because the walk woke the manager. What
// happens later comes of itself: a process that is ready at last, for example.
func Woken(m lifecycle.Manager, timeline []lifecycle.Event, to *lifecycle.Release) []finding.Finding {
	woken := func(e lifecycle.Event) bool { return e.Kind == observe.KindWalk && e.State == observe.StateWoken }
	for _, e := range timeline {
		if woken(e) && e.Reason != "" {
			f := code.Finding(code.Woken, m.ObjectOf(to.Name), "%s", e.Reason)
			if waker, is := m.(lifecycle.Waker); is {
				f.Cause, f.Fix = waker.WhyMended(e.Reason)
			}
			return []finding.Finding{f}
		}
	}
	for i, e := range timeline {
		if !woken(e) || i == 0 || i == len(timeline)-1 {
			continue
		}
		if next := timeline[i+1]; !slices.Contains(byThemselves, next.Kind) && next.At.Sub(e.At) <= answerLimit {
			last := timeline[i-1]
			f := code.Finding(code.Woken, m.ObjectOf(to.Name), "for %.0fs after '%s' nothing happened", e.At.Sub(last.At).Seconds(), last)
			f.Cause = fmt.Sprintf("the walk touched the installation's objects, and %.1fs later came '%s'", next.At.Sub(e.At).Seconds(), next)
			return []finding.Finding{f}
		}
	}
	return nil
}

// Exit tells that a container of the operator of the release called to ended, as last says, while the walk changed and created objects.
// known says that the release before did the same; lost is what the log says of a lock that was lost, "" for nothing: who cannot renew
// its lock in time has to end, as on a slow machine.
func Exit(to string, last lifecycle.Event, known bool, lost string) finding.Finding {
	f := code.Finding(code.Exits, "Pod/"+last.Name, "after the upgrade, while objects were changed and created, the operator of %s ended and was started again, %s", to, last.Reason)
	if known || lost != "" {
		f.Severity = finding.Warning
	}
	if lost != "" {
		f.Cause = "it lost its lock: " + strings.TrimSpace(lost)
	}
	return f
}

// Process judges how the operator's own pods went through the hop. pods are those of its namespace, by name.
func Process(m lifecycle.Manager, timeline []lifecycle.Event, pods map[string]observe.OperatorPod, started time.Time, from, to *lifecycle.Release) []finding.Finding {
	var findings []finding.Finding
	counts := observe.Rollouts(timeline, started)
	for _, name := range to.Deployments() {
		if counts[name] > 1 {
			f := code.Finding(code.Rollouts, "Deployment/"+name, "it was rolled out %d times during the upgrade to %s", counts[name], to.Name)
			if _, why := m.Setbacks(timeline, to.Name); len(why) > 0 {
				f.Severity, f.Fix = finding.Info, ""
				f.Cause = "the lifecycle manager installed the new version again by itself, with new certificates if it has webhooks: " + strings.Join(why, "; ")
			}
			findings = append(findings, f)
		}
	}
	deployments := slices.Concat(from.Deployments(), to.Deployments())
	list := slices.DeleteFunc(observe.Restarts(timeline, started), func(e lifecycle.Event) bool {
		return !slices.Contains(deployments, pods[observe.PodOf(e)].Deployment) // what it made in its own namespace
	})
	if len(list) > 0 {
		last := list[len(list)-1]
		f := code.Finding(code.Restarted, "Pod/"+last.Name, "the operator's containers ended and were started again during the upgrade to %s, the last %s", to.Name, last.Reason)
		if len(list) > 1 {
			f.Message += fmt.Sprintf(", and those of %d other pods", len(list)-1)
		}
		findings = append(findings, f)
	}
	if again, why := m.Setbacks(timeline, from.Name); again > 0 {
		f := code.Finding(code.Reinstalls, m.ObjectOf(from.Name), "it was installed again before it was replaced (%d)", again)
		f.Cause = strings.Join(why, "; ")
		findings = append(findings, f)
	}
	return findings
}
