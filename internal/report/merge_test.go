package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/finding"
)

// whole is a report of a walk in one piece, and its shards.
func whole() (*Report, []*Report) {
	hop := func(from, to string, result Result) Hop {
		return Hop{Package: "p", Channel: "c", From: from, To: to, Edge: "replaces", Effective: true, Result: result, Seconds: 1}
	}
	static := finding.Finding{Code: "GRA001", Severity: finding.Info, Message: "static"}
	left := finding.Finding{Code: "U501", Severity: finding.Warning, Message: "left behind"}
	install := func(name string) Installation {
		return Installation{Package: "p", Channel: "c", Name: name, Result: Passed}
	}
	one, two, three, out := hop("1", "2", Passed), hop("2", "3", Failed), hop("3", "4", Passed), hop("0", "1", "")
	unwalked := func(h Hop) Hop { h.Result, h.Seconds = "", 0; return h }
	cluster := func(more ...string) *Cluster {
		return &Cluster{Kind: "embedded", Kubernetes: "v1", OLM: "v0", Limitations: append([]string{"a"}, more...)}
	}
	all := &Report{
		APIVersion: APIVersion, Kind: KindUpgrade, Result: Failed, Findings: []finding.Finding{left, static},
		Installations: []Installation{install("1"), install("2")},
		Hops:          []Hop{one, two, three}, LeftOut: []Hop{out}, LeftOutCount: 1, Cluster: cluster("b"), Seconds: 3,
	}
	part := func(i int, seconds float64, c *Cluster, findings []finding.Finding, result Result, hops, leftOut []Hop) *Report {
		r := &Report{
			APIVersion: APIVersion, Kind: KindUpgrade, Result: result, Findings: findings,
			Hops: hops, LeftOut: leftOut, Cluster: c, Shard: &Shard{i, 3}, Seconds: seconds,
		}
		if len(hops) > 0 {
			r.Installations = []Installation{install(hops[0].From)}
		}
		return r
	}
	return all, []*Report{
		part(0, 1, cluster(), []finding.Finding{static}, Passed, []Hop{one}, []Hop{out, unwalked(two), unwalked(three)}),
		part(1, 2, cluster("b"), []finding.Finding{left, static}, Failed, []Hop{two, three}, []Hop{out, unwalked(one)}),
		part(2, 0, nil, []finding.Finding{static}, Passed, nil, []Hop{out, unwalked(one), unwalked(two), unwalked(three)}),
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	want, shards := whole()
	for _, order := range [][]int{{0, 1, 2}, {2, 0, 1}} {
		got, err := Merge([]*Report{shards[order[0]], shards[order[1]], shards[order[2]]})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("shards in the order %v (-whole +merged):\n%s", order, diff)
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func([]*Report) []*Report
		want   string
	}{
		"nothing":          {func([]*Report) []*Report { return nil }, "no report"},
		"a missing shard":  {func(s []*Report) []*Report { return []*Report{s[0], s[2]} }, "shard 1 of 3 is missing"},
		"the last missing": {func(s []*Report) []*Report { return s[:2] }, "shard 2 of 3 is missing"},
		"one twice":        {func(s []*Report) []*Report { return []*Report{s[0], s[0], s[1], s[2]} }, "shard 0 of 3 is there twice"},
		"the last twice":   {func(s []*Report) []*Report { return append(s, s[2]) }, "shard 2 of 3 is there twice"},
		"a whole walk":     {func(s []*Report) []*Report { s[1].Shard = nil; return s }, "report 2 is of a whole walk"},
		"another number":   {func(s []*Report) []*Report { s[1].Shard = &Shard{1, 4}; return s }, "one of 4 shards"},
		"another kind":     {func(s []*Report) []*Report { s[1].Kind = KindPlan; return s }, `kind "UpgradePlan"`},
		"another cluster":  {func(s []*Report) []*Report { s[1].Cluster.Kubernetes = "v2"; return s }, "Kubernetes v2"},
		"another plan":     {func(s []*Report) []*Report { s[1].LeftOut = nil; return s }, "another plan"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, shards := whole()
			if _, err := Merge(test.change(shards)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
		})
	}
}
