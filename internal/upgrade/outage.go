package upgrade

import (
	"slices"
	"time"
)

// attempt is one try of an observer to read or write one object in one version.
type attempt struct {
	Start, End time.Time
	CRD        string
	Version    string
	Operation  string // read or write
	Object     string
	Err        string // the error's text; "" for success
	Wrong      string // it succeeded, and this was not as written
}

// The operations of observers.
const (
	read  = "read"
	write = "write"
)

// slowThreshold is how long the control's answer may take before the cluster itself counts as too slow to judge by.
const slowThreshold = time.Second

// dropStalled drops the attempts that ran out of time while the control did too, or nearly, or was not even made because the
// machine stood still: they say something about the machine and nothing about the upgrade. It drops the control's attempts
// as well, and returns those during which the cluster was that slow.
func dropStalled(attempts []attempt) (kept, slow []attempt) {
	var last time.Time
	for _, a := range attempts {
		if a.Operation != control {
			continue
		}
		if !last.IsZero() && a.Start.Sub(last) >= pace+slowThreshold {
			a.Start = last
		}
		last = a.End
		if a.Err != "" || a.End.Sub(a.Start) >= slowThreshold {
			slow = append(slow, a)
		}
	}
	for _, a := range attempts {
		outOfTime := a.Err != "" && a.End.Sub(a.Start) >= slowThreshold
		if a.Operation == control || outOfTime && slices.ContainsFunc(slow, func(s attempt) bool {
			return !s.End.Before(a.Start) && !a.End.Before(s.Start)
		}) {
			continue
		}
		kept = append(kept, a)
	}
	return kept, slow
}

// lasting returns how long attempts took in all.
func lasting(attempts []attempt) time.Duration {
	var total time.Duration
	for _, a := range attempts {
		total += a.End.Sub(a.Start)
	}
	return total
}

// slowed reports whether o is but the slowness of the cluster: all its errors say that the time was up, and the control was
// slow then, too, or shortly before or after.
func slowed(o outage, slow []attempt) bool {
	return !o.Open && outOfTime(o.First) && slices.ContainsFunc(slow, func(s attempt) bool {
		return !s.End.Before(o.Start.Add(-lookBack)) && !s.Start.After(o.End.Add(lookBack))
	})
}

// outage is a stretch of time in which every attempt of one operation on one version failed.
type outage struct {
	CRD, Version, Operation string
	Start, End              time.Time // of the last success before, or the first failure if there is none; the first success after
	Errors                  int
	First                   string       // the first error's text that says more than that the time was up, if there is one
	Failed                  time.Time    // when it was told
	Open                    bool         // it had not ended with the last attempt
	By                      *faultResult // the fault that is to blame, if one is
	Slow                    bool         // it is but the slowness of the cluster
}

// outages finds the outages in attempts of one CRD, version and operation, which must be in the order of their starts.
// Failures at times when the version was not served are no outage; served says so.
func outages(attempts []attempt, served func(time.Time) bool) []outage {
	var found []outage
	var open *outage
	var success time.Time
	for _, a := range attempts {
		switch {
		case a.Err == "":
			if open != nil {
				open.End, open.Open = a.End, false
				found = append(found, *open)
				open = nil
			}
			success = a.End
		case !served(a.Start):
			// Nobody can expect an answer; what was open before ended with the version.
			if open != nil {
				open.End, open.Open = a.Start, false
				found = append(found, *open)
				open = nil
			}
			success = time.Time{}
		case open == nil:
			open = &outage{CRD: a.CRD, Version: a.Version, Operation: a.Operation, Start: success, End: a.End, Failed: a.End, Errors: 1, First: a.Err, Open: true}
			if success.IsZero() {
				open.Start = a.Start
			}
		default:
			open.Errors++
			open.End = a.End
			open.tells(a.Err, a.End)
		}
	}
	if open != nil {
		found = append(found, *open)
	}
	return found
}

// tells notes an error that was told at a time, if it says more than what was told first.
func (o *outage) tells(what string, at time.Time) {
	if outOfTime(o.First) && !outOfTime(what) {
		o.First, o.Failed = what, at
	}
}

// merge unites outages of one CRD, version and operation that overlap, of whatever objects, and sorts by start.
func merge(list []outage) []outage {
	slices.SortStableFunc(list, func(a, b outage) int { return a.Start.Compare(b.Start) })
	var merged []outage
next:
	for _, o := range list {
		for i := range merged {
			m := &merged[i]
			if m.CRD == o.CRD && m.Version == o.Version && m.Operation == o.Operation && !o.Start.After(m.End) {
				m.End = latest(m.End, o.End)
				m.Errors += o.Errors
				m.tells(o.First, o.Failed)
				m.Open = m.Open || o.Open
				continue next
			}
		}
		merged = append(merged, o)
	}
	return merged
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// window is a stretch of time in which reads or writes came back with other content than was written.
type window struct {
	CRD, Version, Operation string
	Start, End              time.Time
	Count                   int
	First                   string
	Open                    bool // it had not ended with the last attempt
}

// windows finds the stretches of wrong answers in attempts of one CRD, version and operation, in the order of their
// starts; each ends with the first right answer.
func windows(attempts []attempt) []window {
	var found []window
	var open *window
	for _, a := range attempts {
		switch {
		case a.Err != "":
		case a.Wrong == "" && open != nil:
			open.End, open.Open = a.End, false
			found = append(found, *open)
			open = nil
		case a.Wrong != "" && open == nil:
			open = &window{CRD: a.CRD, Version: a.Version, Operation: a.Operation, Start: a.Start, End: a.End, Count: 1, First: a.Wrong, Open: true}
		case a.Wrong != "":
			open.Count++
			open.End = a.End
		}
	}
	if open != nil {
		found = append(found, *open)
	}
	return found
}

// series splits attempts by CRD, version, operation and object, in a fixed order, each in the order of its starts. Objects
// are kept apart because one that is stored in the version asked for is read without conversion, while others fail.
func series(attempts []attempt) [][]attempt {
	sorted := slices.Clone(attempts)
	slices.SortStableFunc(sorted, func(a, b attempt) int {
		if c := a.order(b); c != 0 {
			return c
		}
		return a.Start.Compare(b.Start)
	})
	var list [][]attempt
	for start := 0; start < len(sorted); {
		end := start + 1
		for end < len(sorted) && sorted[start].order(sorted[end]) == 0 {
			end++
		}
		list = append(list, sorted[start:end])
		start = end
	}
	return list
}

func (a attempt) order(b attempt) int {
	return slices.Compare([]string{a.CRD, a.Version, a.Operation, a.Object}, []string{b.CRD, b.Version, b.Operation, b.Object})
}

// servedAt tells from timeline when crd served version. initial are the versions served before the timeline begins. A
// watch tells of a change somewhat after the API server acts on it, so a version that is taken away counts as not served
// from watchSkew before the event, and one that is added only from watchSkew after it.
func servedAt(timeline []event, crd, version string, initial []string) func(time.Time) bool {
	type change struct {
		at     time.Time
		served bool
	}
	now := slices.Contains(initial, version)
	changes := []change{{served: now}}
	for _, e := range timeline {
		if e.Kind != kindCRD || e.Name != crd {
			continue
		}
		is := e.CRD != nil && slices.Contains(e.CRD.Served, version)
		if is == now {
			continue
		}
		at := e.At.Add(watchSkew)
		if !is {
			at = e.At.Add(-watchSkew)
		}
		changes = append(changes, change{at, is})
		now = is
	}
	return func(t time.Time) bool {
		is := false
		for _, c := range changes {
			if t.Before(c.at) {
				break
			}
			is = c.served
		}
		return is
	}
}
