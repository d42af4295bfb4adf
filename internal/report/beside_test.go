package report

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
)

// twoVersions are reports of a walk under OLM v0 and one under OLM v1, which differ in whatever can differ.
func twoVersions() []*Report {
	hop := func(from, to string, result Result) Hop {
		return Hop{Package: "p", Channel: "c", From: from, To: to, Edge: "replaces", Effective: true, Result: result, Seconds: 2.5}
	}
	v0 := &Report{
		APIVersion: APIVersion, Kind: KindUpgrade, Result: Passed, Seconds: 10, Cluster: &Cluster{Kind: "embedded", Kubernetes: "v1.36.3", OLM: "0.46.0"},
		Installations: []Installation{{Package: "p", Channel: "c", Name: "p.v1", Result: Passed}},
		Hops:          []Hop{hop("p.v1", "p.v2", Passed), hop("p.v2", "p.v3", Passed)},
		Findings:      []finding.Finding{{Code: "GRA010", Severity: finding.Warning, Subject: finding.Subject{Package: "p"}, Message: "unused"}},
	}
	v0.Hops[1].Outages = []Outage{{Version: "v1", Operation: "write", Seconds: 1.25, Errors: 3}}
	v1 := &Report{
		APIVersion: APIVersion, Kind: KindUpgrade, Result: Failed, Seconds: 5, Cluster: &Cluster{Kind: "embedded", Kubernetes: "v1.36.3", OLM: "v1.10.0"},
		Installations: []Installation{{Package: "p", Channel: "c", Name: "p.v1", Result: Passed}},
		Hops:          []Hop{hop("p.v1", "p.v2", Passed), hop("p.v2", "p.v3", Failed), hop("p.v1", "p.v3", Passed)},
	}
	v1.Hops[1].Findings = []finding.Finding{{Code: "U102", Severity: finding.Error, Message: "maximum decreased"}}
	v1.Hops[1].Rollback = &Rollback{To: "p.v2", Result: Passed}
	return []*Report{v0, v1}
}

func twoGraphs() []graph.Drawing {
	return []graph.Drawing{{
		Package: "p", Channel: "c", OLM: graph.OLMBoth, Head: "p.v3",
		Entries: []graph.Entry{{Name: "p.v1"}, {Name: "p.v2"}, {Name: "p.v3"}},
		Edges: []graph.Arrow{
			{From: "p.v1", To: "p.v2", Edge: "replaces", Effective: true, Next: true, V1: &graph.V1Arrow{Edge: "replaces", Next: true}},
			{From: "p.v2", To: "p.v3", Edge: "replaces", Effective: true, Next: true, V1: &graph.V1Arrow{Edge: "replaces", Next: true}},
			{From: "p.v1", To: "p.v3", Edge: "skips", Effective: true, V1: &graph.V1Arrow{Edge: "skips"}},
		},
	}}
}

func besideEachOther() *Report {
	return Beside([]Walk{{OLM: "v0"}, {OLM: "v1"}}, twoVersions(), twoGraphs())
}

// The worse result is that of both, and each upgrade stands once, with what became of it under each version.
func TestBeside(t *testing.T) {
	r := besideEachOther()
	if r.Result != Failed || len(r.Hops) != 5 || r.Seconds != 15 || len(r.Walks) != 2 || r.Findings[0].Subject.OLM != "v0" {
		t.Errorf("%+v", r)
	}
	want := []Compared{
		{Package: "p", Channel: "c", From: "p.v1", To: "p.v2", Sides: []Side{
			{OLM: "v0", Takes: graph.Always, Edge: "replaces", Result: Passed, Seconds: 2.5}, {OLM: "v1", Takes: graph.Always, Edge: "replaces", Result: Passed, Seconds: 2.5}}},
		{Package: "p", Channel: "c", From: "p.v2", To: "p.v3", Sides: []Side{
			{OLM: "v0", Takes: graph.Always, Edge: "replaces", Result: Passed, Seconds: 2.5, Write: 1.25},
			{OLM: "v1", Takes: graph.Always, Edge: "replaces", Result: Failed, Seconds: 2.5, Rollback: Passed, Codes: []string{"U102"}}}},
		{Package: "p", Channel: "c", From: "p.v1", To: "p.v3", Sides: []Side{
			{OLM: "v0", Takes: graph.Possible}, {OLM: "v1", Takes: graph.Possible, Edge: "replaces", Result: Passed, Seconds: 2.5}}},
	}
	if diff := cmp.Diff(want, r.compared(), cmpopts.IgnoreUnexported(Side{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"1 upgrade had an outage only under OLM v0", "1 upgrade failed only under OLM v1", "1 upgrade users take only under OLM v1, by pinning the version",
	}, differences(r)); diff != "" {
		t.Error(diff)
	}
}

// Every rendering tells the two apart, and what is kept as JSON is shown the same again.
func TestBesideRendered(t *testing.T) {
	var kept bytes.Buffer
	if err := JSON(&kept, besideEachOther()); err != nil {
		t.Fatal(err)
	}
	again := &Report{}
	if err := json.Unmarshal(kept.Bytes(), again); err != nil {
		t.Fatal(err)
	}
	for format, words := range map[string][]string{
		"text": {"package p, channel c, OLM v0\n  ✓ install p.v1 passed\n  ✓ p.v1 → p.v2", "package p, channel c, OLM v1\n", "p.v1 → p.v2: both passed, 2.5s",
			"OLM v0: passed, 2.5s, no write for 1.2s", "OLM v1: failed, 2.5s, rollback passed, U102", "OLM v0: not taken while there is something newer, not planned",
			"Kubernetes v1.36.3, OLM 0.46.0", "Kubernetes v1.36.3, OLM v1.10.0", "failed: OLM v0 and OLM v1, 2 installations, 5 hops", "first failure: OLM v1, channel c, p.v2 → p.v3"},
		"json":     {`"olm": "v1"`, `"compared": [`, `"takes": "possible"`, `"writeOutage": 1.25`},
		"junit":    {`name="hops, OLM v0"`, `name="hops, OLM v1"`, `classname="p/c, OLM v1"`},
		"sarif":    {"OLM v1/p/c/p.v2/p.v3"},
		"markdown": {"| upgrade | OLM v0 | OLM v1 |", "❌ failed, 2.5s, rollback passed, U102", "replaces, OLM v1", "1 upgrade failed only under OLM v1"},
		"html":     {"OLM v0</th><th scope=\"col\">OLM v1", `href="#hop-p.v2-p.v3-v1">2.5s, rollback passed, U102`, "OLM v1 takes them to", `id="hop-p.v2-p.v3-v0"`, "if pinned"},
	} {
		for name, r := range map[string]*Report{"made": besideEachOther(), "kept": again} {
			var b bytes.Buffer
			if err := Write(&b, format, r, false); err != nil {
				t.Fatal(err)
			}
			for _, word := range words {
				if !strings.Contains(b.String(), word) {
					t.Errorf("%s, %s: no %q in\n%s", format, name, word, b.String())
				}
			}
		}
	}
}

// An upgrade that one version refuses is told as refused, also in a plan, which nobody walked.
func TestBesideRefused(t *testing.T) {
	reports := twoVersions()
	for _, r := range reports {
		r.Kind = KindPlan
		for i := range r.Hops {
			r.Hops[i].Result, r.Hops[i].Seconds = "", 0
		}
	}
	graphs := twoGraphs()
	graphs[0].Edges[2].Effective = false
	r := Beside([]Walk{{OLM: "v0"}, {OLM: "v1"}}, reports, graphs)
	var says []string
	for _, s := range r.compared()[2].Sides {
		says = append(says, s.says())
	}
	if !slices.Equal(says, []string{"refused", "taken if pinned"}) {
		t.Error(says)
	}
	if got := differences(r); !slices.Contains(got, "1 upgrade refused only under OLM v0") {
		t.Error(got)
	}
}

// TestBesideKubernetes compares versions of Kubernetes: each hop says on which it ran, and nothing that ran on one counts for another.
func TestBesideKubernetes(t *testing.T) {
	walks := []Walk{{OLM: "v0", Kubernetes: "v1.33.13"}, {OLM: "v0", Kubernetes: "v1.36.3"}}
	reports := twoVersions()
	r := Beside(walks, reports, nil)
	rows := r.compared()
	for _, row := range rows {
		if len(row.Sides) != 2 || row.Sides[0].Kubernetes != "v1.33.13" || row.Sides[1].Kubernetes != "v1.36.3" {
			t.Errorf("%s to %s: %+v", row.From, row.To, row.Sides)
		}
	}
	if len(rows) == 0 {
		t.Error("nothing stands side by side")
	}
	var text bytes.Buffer
	if err := Text(&text, r, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"channel c, OLM v0, Kubernetes v1.33.13", "    OLM v0, Kubernetes v1.36.3: failed, 2.5s", "failed only under OLM v0, Kubernetes v1.36.3",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}
