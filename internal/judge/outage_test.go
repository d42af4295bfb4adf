package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

var zero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return zero.Add(time.Duration(seconds * float64(time.Second))) }

// tries lays out attempts of 0.1 s, one after another: '.' succeeds, 'x' fails, '?' answers wrongly.
func tries(pattern string) []observe.Attempt {
	var list []observe.Attempt
	for i, c := range pattern {
		a := observe.Attempt{Start: at(float64(i) / 10), End: at(float64(i+1) / 10), CRD: "things.example.com", Version: "v1", Operation: observe.Read, Object: "Thing/a"}
		switch c {
		case 'x':
			a.Err = "refused"
		case '?':
			a.Wrong = "spec.size was 3 and is gone"
		}
		list = append(list, a)
	}
	return list
}

func TestOutages(t *testing.T) {
	always := func(time.Time) bool { return true }
	until := func(s float64) func(time.Time) bool { return func(t time.Time) bool { return t.Before(at(s)) } }
	from := func(s float64) func(time.Time) bool { return func(t time.Time) bool { return !t.Before(at(s)) } }
	o := func(start, end float64, errors int, open bool) outage {
		return outage{CRD: "things.example.com", Version: "v1", Operation: observe.Read, Start: at(start), End: at(end), Errors: errors, First: "refused", Last: "refused", Object: "Thing/a", Open: open}
	}
	for _, test := range []struct {
		name   string
		tries  string
		served func(time.Time) bool
		want   []outage
	}{
		{"none", ".....", always, nil},
		{"no attempts", "", always, nil},
		{"from the last success to the end of the first success after", "..xx..", always, []outage{o(0.2, 0.5, 2, false)}},
		{"two", ".x.xx.", always, []outage{o(0.1, 0.3, 1, false), o(0.3, 0.6, 2, false)}},
		{"does not end", "..xx", always, []outage{o(0.2, 0.4, 2, true)}},
		{"never worked", "xxx", always, []outage{o(0, 0.3, 3, true)}},
		{"a version that is taken away is not missed", "..xxx", until(0.2), nil},
		{"an outage ends with its version", ".xxxx", until(0.3), []outage{o(0.1, 0.3, 2, false)}},
		{"a new version is missed from when it is served", "xxxx.", from(0.2), []outage{o(0.2, 0.5, 2, false)}},
		{"a wrong answer is an answer", ".??.", always, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := outages(tries(test.tries), test.served)
			for i := range got {
				if since := got[i].Failed.Sub(got[i].Start); since != 100*time.Millisecond {
					t.Errorf("the first failure was told %s after the start", since)
				}
				got[i].Failed = time.Time{}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWindows(t *testing.T) {
	w := func(start, end float64, count int, open bool) window {
		return window{CRD: "things.example.com", Version: "v1", Operation: observe.Read, Start: at(start), End: at(end), Count: count, First: "spec.size was 3 and is gone", Open: open}
	}
	for _, test := range []struct {
		name, tries string
		want        []window
	}{
		{"none", "..x.", nil},
		{"ends with the first right answer", ".??.", []window{w(0.1, 0.4, 2, false)}},
		{"a refusal says nothing", ".?x?.", []window{w(0.1, 0.5, 2, false)}},
		{"does not end", ".??", []window{w(0.1, 0.3, 2, true)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, windows(tries(test.tries))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What stays wrong is told of the object, not also of the moment in which two versions answered.
func TestStillWrong(t *testing.T) {
	wrong := code.Finding(code.ServedWrong, "CustomResourceDefinition/pots", "for 0.5s a read through v1 answered with what nobody wrote (1 times): spec.port was 1 and is gone")
	lost := code.Finding(code.FieldLost, "Pot/n/a", "read as v1 (stored as v2): spec.port was 1 and is gone; spec.size was 2 and is 3")
	other := code.Finding(code.FieldLost, "Pot/n/a", "read as v1 (stored as v2): spec.size was 2 and is 3")
	for name, c := range map[string]struct{ findings, want []finding.Finding }{
		"over again":   {[]finding.Finding{wrong}, []finding.Finding{wrong}},
		"stays":        {[]finding.Finding{wrong, lost}, []finding.Finding{lost}},
		"other things": {[]finding.Finding{wrong, other}, []finding.Finding{wrong, other}},
	} {
		if diff := cmp.Diff(c.want, StillWrong(c.findings)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestMerge(t *testing.T) {
	o := func(version, operation string, start, end float64) outage {
		return outage{CRD: "c", Version: version, Operation: operation, Start: at(start), End: at(end), Errors: 1, First: "refused"}
	}
	got := merge([]outage{o("v1", observe.Read, 2, 4), o("v1", observe.Read, 1, 3), o("v1", observe.Write, 1, 3), o("v2", observe.Read, 1, 3), o("v1", observe.Read, 6, 7)})
	united := o("v1", observe.Read, 1, 4)
	united.Errors = 2
	want := []outage{united, o("v1", observe.Write, 1, 3), o("v2", observe.Read, 1, 3), o("v1", observe.Read, 6, 7)}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b outage) bool {
		return a.Version+a.Operation+a.Start.String() < b.Version+b.Operation+b.Start.String()
	})); diff != "" {
		t.Error(diff)
	}
}

func TestSeriesKeepsObjectsApart(t *testing.T) {
	attempts := []observe.Attempt{
		{Object: "b", Start: at(1)}, {Object: "a", Start: at(3)}, {Object: "a", Start: at(2)}, {Object: "a", Version: "v2", Start: at(0)},
	}
	var got []string
	for _, list := range series(attempts) {
		s := list[0].Version + list[0].Object
		for _, a := range list {
			s += a.Start.Format(" 05")
		}
		got = append(got, s)
	}
	if diff := cmp.Diff([]string{"a 02 03", "b 01", "v2a 00"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestServedAt(t *testing.T) {
	timeline := []lifecycle.Event{
		{At: at(10), Kind: observe.KindCRD, Name: "c", CRD: &lifecycle.Definition{Served: []string{"v1", "v2"}}},
		{At: at(15), Kind: observe.KindCRD, Name: "other", CRD: &lifecycle.Definition{Served: []string{"v1"}}},
		{At: at(20), Kind: observe.KindCRD, Name: "c", CRD: &lifecycle.Definition{Served: []string{"v2"}}},
	}
	v1 := servedAt(timeline, "c", "v1", []string{"v1"})
	v2 := servedAt(timeline, "c", "v2", []string{"v1"})
	for _, test := range []struct {
		second float64
		v1, v2 bool
	}{{0, true, false}, {10.2, true, false}, {10.6, true, true}, {19.4, true, true}, {19.6, false, true}, {30, false, true}} {
		if got := v1(at(test.second)); got != test.v1 {
			t.Errorf("v1 served at %g: %t", test.second, got)
		}
		if got := v2(at(test.second)); got != test.v2 {
			t.Errorf("v2 served at %g: %t", test.second, got)
		}
	}
}

func TestFairDropsWhatTheMachineIsToBlameFor(t *testing.T) {
	try := func(operation, err string, start, end float64) observe.Attempt {
		return observe.Attempt{Operation: operation, Err: err, Start: at(start), End: at(end)}
	}
	got, slow := DropStalled([]observe.Attempt{
		try(observe.Control, "", 0, 0.1),
		try(observe.Read, "refused", 0, 0.1),
		try(observe.Control, "", 1, 1.1),
		try(observe.Read, "deadline", 0.2, 2.2),
		try(observe.Control, "", 2, 2.1),
		try(observe.Control, "", 3, 4.5),
		try(observe.Read, "deadline", 3.2, 5.2),
		try(observe.Read, "refused", 3.2, 3.3),
		try(observe.Read, "", 3.2, 5.2),
		try(observe.Control, "", 5, 5.1),
		try(observe.Read, "refused", 9, 9.1),
		try(observe.Read, "deadline", 5.5, 12.5),
		try(observe.Control, "", 12.6, 12.7), // seven seconds in which nobody ran
	})
	want := []observe.Attempt{
		try(observe.Read, "refused", 0, 0.1), try(observe.Read, "deadline", 0.2, 2.2), try(observe.Read, "refused", 3.2, 3.3), try(observe.Read, "", 3.2, 5.2),
		try(observe.Read, "refused", 9, 9.1),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if total := Lasting(slow); total != 9100*time.Millisecond {
		t.Errorf("slow for %s", total)
	}
}

// What answers at last, but late, is the machine's doing only if a plain read was slow then, too.
func TestLateAnswers(t *testing.T) {
	for _, test := range []struct {
		name    string
		control float64
		want    string
	}{
		{"the machine is quick", 0.01, "it took 5.0s, and a read that needs no webhook 10ms"},
		{"the machine is slow", 0.3, ""},
	} {
		late := observe.Attempt{Operation: observe.Write, Start: at(0), End: at(5), Late: true}
		attempts := []observe.Attempt{late}
		for i := range 20 {
			start := float64(i) * 0.4
			attempts = append(attempts, observe.Attempt{Operation: observe.Control, Start: at(start), End: at(start + test.control)})
		}
		got, _ := DropStalled(attempts)
		if len(got) != 1 || got[0].Err != test.want {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

// What began with a deadline while the whole cluster was slow is put down to nothing else.
func TestSlowedOutage(t *testing.T) {
	slow := []observe.Attempt{{Operation: observe.Control, Start: at(3), End: at(4.5)}}
	const late = "context deadline exceeded"
	for _, test := range []struct {
		name string
		o    outage
		want bool
	}{
		{"at that time", outage{First: late, Start: at(4), End: at(6)}, true},
		{"shortly after", outage{First: late, Start: at(6), End: at(8)}, true},
		{"much later", outage{First: late, Start: at(7), End: at(9)}, false},
		{"another error", outage{First: "x509: unknown authority", Start: at(4), End: at(6)}, false},
		{"it stays", outage{First: late, Start: at(4), End: at(6), Open: true}, false},
	} {
		if got := slowed(test.o, slow); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
	o := outage{CRD: "c", Version: "v1", Operation: observe.Read, First: late, Start: at(4), End: at(6), Slow: true}
	bare := &lifecycle.Definition{Generation: 2, Served: []string{"v1"}, Conversion: "n/s/convert"}
	got := outageFindings([]outage{o}, map[string]*lifecycle.Definition{"c": {Generation: 1, Served: []string{"v1"}, Conversion: "n/s/convert", CA: "x"}},
		[]lifecycle.Event{{At: at(3.9), Kind: observe.KindCRD, Name: "c", CRD: bare}}, true)
	if len(got) != 1 || got[0].Severity != finding.Info || strings.Contains(got[0].Cause, "CA") || got[0].Fix != "give the walk more of the machine" {
		t.Errorf("%+v", got)
	}
}

// The cause says of the CRD what the API server's own words do.
func TestCauseFollowsTheError(t *testing.T) {
	whole := &lifecycle.Definition{Generation: 1, Conversion: "ns/hook/convert", CA: "abcd"}
	timeline := []lifecycle.Event{
		{At: at(4.8), Kind: observe.KindCRD, Name: "c", CRD: &lifecycle.Definition{Generation: 2, Conversion: "system/hook/convert"}},
		{At: at(4.9), Kind: observe.KindPod, Name: "p", State: observe.StateGone},
	}
	const wrote = "OLM's catalog operator wrote the bundle's CRD, "
	for first, want := range map[string]string{
		"x509: certificate signed by unknown authority":                                                         wrote + "whose conversion webhook (system/hook/convert) has no CA",
		`conversion webhook for x failed: Post "https://hook.system.svc:443/convert": service "hook" not found`: wrote + "whose conversion webhook (system/hook/convert) is at a Service that does not exist",
		"context deadline exceeded":                                  wrote + "upon which the API server starts serving the kind anew",
		"conversion webhook for x failed: context deadline exceeded": wrote + "with the conversion webhook system/hook/convert",
		"dial tcp 10.0.0.1:443: connect: connection refused":         "pod p was gone",
		`no endpoints available for service "hook"`:                  "pod p was gone",
	} {
		if got := cause(timeline, whole, outage{CRD: "c", Operation: observe.Read, Start: at(5), End: at(8), First: first}); got != want {
			t.Errorf("%s: %s", first, got)
		}
	}
}

// A pod of another deployment is not to blame for a webhook that does not answer, if it is known which deployment serves it.
func TestCauseIsBehindTheWebhook(t *testing.T) {
	pod := func(name string) lifecycle.Event {
		return lifecycle.Event{At: at(5), Kind: observe.KindPod, Name: name + "-5d8f7c9b6d-abcde", State: observe.StateGone}
	}
	for name, test := range map[string]struct {
		timeline []lifecycle.Event
		want     string
	}{
		"its own":   {[]lifecycle.Event{pod("op-webhook"), pod("op")}, "pod op-webhook-5d8f7c9b6d-abcde was gone"},
		"not known": {[]lifecycle.Event{pod("op")}, "pod op-5d8f7c9b6d-abcde was gone"},
	} {
		o := outage{CRD: "c", Operation: observe.Write, Start: at(5), End: at(8)}
		o.First = `failed calling webhook "v": failed to call webhook: Post "https://op-webhook-service.ns.svc:443/v": connect: connection refused`
		if got := cause(test.timeline, nil, o); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestOutageFix(t *testing.T) {
	none := &lifecycle.Definition{Served: []string{"v1"}, Storage: "v1", Conversion: observe.ConversionNone}
	hooked := &lifecycle.Definition{Served: []string{"v1"}, Storage: "v1", Conversion: "n/s/convert", CA: "x"}
	brings := func(storage string) []lifecycle.Event {
		return []lifecycle.Event{{At: at(5), Kind: observe.KindCRD, Name: "c", CRD: &lifecycle.Definition{Served: []string{"v1", "v2"}, Storage: storage, Conversion: "n/s/convert"}}}
	}
	const (
		noHook   = `conversion webhook for example.com/v1, Kind=Thing failed: Post "https://s.n.svc:443/convert": service "s" not found`
		open     = "open "
		admitted = `Internal error occurred: failed calling webhook "v.example.com": failed to call webhook: Post "https://s.n.svc:443/v": `
	)
	for _, test := range []struct {
		name, first string
		before      *lifecycle.Definition
		timeline    []lifecycle.Event
		want        string
	}{
		{"conversion is new, and so is the storage version", noHook, none, brings("v2"), "keep v1 the storage version in the release that brings conversion"},
		{"conversion is new alone", noHook, none, brings("v1"), "put the webhook's service and CA back"},
		{"conversion was there", noHook, hooked, brings("v2"), "put the webhook's service and CA back"},
		{"admission, no trust", admitted + "x509: unknown authority", hooked, nil, "read its certificate again"},
		{"admission, no Service", admitted + `service "s" not found`, hooked, nil, "keep the name of the Deployment"},
		{"admission, nobody there", admitted + `no endpoints available for service "s"`, hooked, nil, "serve on for some seconds"},
		{"admission, nothing there", admitted + "the server could not find the requested resource", hooked, nil, "let the version before already serve the webhook's path"},
		{"admission, nothing there for good", open + admitted + "the server could not find the requested resource", hooked, nil, "register the webhook in the manager of the new release"},
		{"nothing known", "timeout", hooked, nil, "otherwise"},
	} {
		first, stays := strings.CutPrefix(test.first, open)
		o := outage{CRD: "c", Version: "v1", Operation: observe.Write, First: first, Open: stays}
		got := outageFix(o, test.before, test.timeline, "otherwise")
		if !strings.Contains(got, test.want) || outageCode(o) == code.AdmissionOutage && strings.Contains(got, "storage") {
			t.Errorf("%s: %s", test.name, got)
		}
	}
}

func TestCause(t *testing.T) {
	none := &lifecycle.Definition{Generation: 1, Conversion: observe.ConversionNone}
	bare := &lifecycle.Definition{Generation: 2, Conversion: "system/hook/convert"}
	whole := &lifecycle.Definition{Generation: 3, Conversion: "ns/hook/convert", CA: "abcd"}
	other := &lifecycle.Definition{Generation: 4, Conversion: observe.ConversionNone}
	const (
		lost   = "OLM's catalog operator wrote the bundle's CRD, whose conversion webhook (system/hook/convert) has no CA"
		healed = "it ended when the CRD got its webhook's service (ns/hook/convert) and CA"
	)
	wrote := func(s float64, d *lifecycle.Definition) lifecycle.Event {
		return lifecycle.Event{At: at(s), Kind: observe.KindCRD, Name: "c", State: "written", CRD: d}
	}
	pod := func(s float64, state string) lifecycle.Event {
		return lifecycle.Event{At: at(s), Kind: observe.KindPod, Name: "p", State: state}
	}
	for _, test := range []struct {
		name     string
		timeline []lifecycle.Event
		open     bool
		want     string
	}{
		{"nothing known", nil, false, ""},
		{"the CRD lost its CA and got it back", []lifecycle.Event{wrote(4.9, bare), wrote(8, whole)}, false, lost + "; " + healed},
		{"what came last before the end counts", []lifecycle.Event{wrote(4.9, bare), wrote(6, whole), pod(7.8, observe.StateReady)}, false, lost + "; it ended when pod p became ready"},
		{"the newest change before the start counts", []lifecycle.Event{pod(3.5, observe.StateGone), wrote(4.9, bare)}, false, lost},
		{"a pod that is only made does no harm", []lifecycle.Event{pod(5, observe.StateCreated), pod(7.9, observe.StateReady)}, false, "it ended when pod p became ready"},
		{"a changed CRD is likelier to blame than a pod", []lifecycle.Event{wrote(4.8, bare), pod(5, observe.StateGone)}, false, lost},
		{"the pod was away", []lifecycle.Event{pod(5, observe.StateUnready), pod(7.9, observe.StateReady)}, false, "pod p was not ready; it ended when pod p became ready"},
		{"it has not ended", []lifecycle.Event{wrote(4.9, bare), pod(7.9, observe.StateReady)}, true, lost},
		{"too long ago", []lifecycle.Event{wrote(2, bare)}, false, ""},
		{"the kind is served anew", []lifecycle.Event{wrote(5, other)}, false, "OLM's catalog operator wrote the bundle's CRD, upon which the API server starts serving the kind anew"},
		{"a status change is no cause", []lifecycle.Event{wrote(5, none)}, false, ""},
		{"another CRD", []lifecycle.Event{{At: at(5), Kind: observe.KindCRD, Name: "d", CRD: bare}}, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := cause(test.timeline, none, outage{CRD: "c", Start: at(5), End: at(8), First: "x509: unknown authority", Open: test.open})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
