package fault

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

func TestFaultsAreSound(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Faults(v0) {
		switch {
		case seen[f.Name]:
			t.Errorf("there are two faults %s", f.Name)
		case f.Doc == "", f.inject == nil, f.Expect == "" || f.Expect == Broken:
			t.Errorf("fault %s is not whole", f.Name)
		}
		seen[f.Name] = true
		if _, err := ParseInjections(v0, f.Name+"@"+f.Phase); err != nil {
			t.Error(err)
		}
		for _, harm := range f.Harms {
			if code.Finding(harm, "", "").Severity == finding.Error {
				t.Errorf("fault %s explains the error %s", f.Name, harm)
			}
		}
	}
	// Each phase but the first is a milestone of a hop that goes well.
	at := time.Unix(100, 0)
	var names []string
	for _, m := range observe.Milestones(v0.Milestones("a", "b"), wholeHop(at), at) {
		names = append(names, slug(m.Name))
	}
	if diff := cmp.Diff(Phases(v0)[1:], names[:len(names)-1]); diff != "" {
		t.Errorf("phases and milestones differ: %s", diff)
	}
}

// wholeHop is what happens in a hop from a to b.
func wholeHop(at time.Time) []lifecycle.Event {
	list := []lifecycle.Event{
		{Kind: "CatalogSource", State: observe.StateReady},
		{Kind: "InstallPlan", For: "b", State: "Installing"},
		{Kind: "ClusterServiceVersion", Name: "b", State: ""},
		{Kind: observe.KindCRD, State: "written"},
		{Kind: "InstallPlan", For: "b", State: "Complete"},
		{Kind: "ClusterServiceVersion", Name: "b", State: "InstallReady"},
		{Kind: "ClusterServiceVersion", Name: "b", State: "Installing"},
		{Kind: "ClusterServiceVersion", Name: "b", State: "Succeeded"},
		{Kind: "ClusterServiceVersion", Name: "a", State: observe.StateGone},
		{Kind: observe.KindWalk, State: observe.StateStable},
	}
	for i := range list {
		list[i].At = at.Add(time.Duration(i) * time.Second)
	}
	return list
}

func TestParseInjections(t *testing.T) {
	for _, test := range []struct{ in, want, err string }{
		{"kill-operator", "kill-operator@installing", ""},
		{"kill-operator@crds-written", "kill-operator@crds-written", ""},
		{"kill-operator@crds-written, catalog-down", "kill-operator@crds-written catalog-down@catalog-noticed", ""},
		{"hostile@before", "hostile@before", ""},
		{"hostile@installing", "", "the fault hostile is injected at before only, not at installing"},
		{"kill-everybody", "", `there is no fault "kill-everybody"; there are kill-operator, forbidden`},
		{"kill-operator@lunch", "", `there is no phase "lunch"; there are before, catalog-noticed`},
		{"", "", `there is no fault ""`},
	} {
		list, err := ParseInjections(v0, test.in)
		var got []string
		for _, i := range list {
			got = append(got, i.String())
		}
		if strings.Join(got, " ") != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: %q, %v; want %q, %q", test.in, got, err, test.want, test.err)
		}
	}
}
