package cli

import (
	"math"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/walk"
)

func TestRoomForClusters(t *testing.T) {
	for _, c := range []struct {
		cores  int
		memory uint64
		want   int
	}{{1, 8 << 30, 1}, {2, 24 << 30, 1}, {3, 24 << 30, 1}, {4, 24 << 30, 2}, {16, 7 << 30, 3}, {16, 0, 1}, {64, math.MaxUint64, 32}} {
		if got := clustersFor(c.cores, c.memory); got != c.want {
			t.Errorf("%d cores and %d bytes: %d clusters, want %d", c.cores, c.memory, got, c.want)
		}
	}
}

func TestAvailableMemory(t *testing.T) {
	if got := availableIn([]byte("MemTotal:       24689248 kB\nMemAvailable:   2048 kB\nBuffers: 1 kB\n")); got != 2<<20 {
		t.Errorf("%d bytes", got)
	}
	for _, c := range []struct {
		most, used string
		want       uint64
	}{{"", "", math.MaxUint64}, {"max\n", "100\n", math.MaxUint64}, {"1000\n", "400\n", 600}, {"1000\n", "2000\n", 0}} {
		if got := leftOf([]byte(c.most), []byte(c.used)); got != c.want {
			t.Errorf("of %q used %q: %d", c.most, c.used, got)
		}
	}
}

// By itself no chain of hops is split; who asks for a number of clusters gets it.
func TestPartsOfPlan(t *testing.T) {
	plan := graph.Plan{Hops: []graph.Edge{{From: "1", To: "2"}, {From: "2", To: "3"}, {From: "1", To: "3"}}}
	for _, c := range []struct{ parallel, clusters, want int }{{0, 1, 1}, {0, 8, 2}, {1, 8, 1}, {2, 1, 2}, {3, 1, 3}, {9, 1, 3}} {
		test := &upgradeTest{parallel: c.parallel}
		if got := len(test.parts(plan, c.clusters)); got != c.want {
			t.Errorf("--parallel %d with room for %d: %d parts, want %d", c.parallel, c.clusters, got, c.want)
		}
	}
}

// What one part has walked is there also when another could not begin; without any there is no report.
func TestMergeParts(t *testing.T) {
	plan := graph.Plan{Hops: []graph.Edge{{Package: "tea", From: "1", To: "2"}, {Package: "tea", From: "3", To: "4"}}}
	test := &upgradeTest{parallel: 2}
	parts := test.parts(plan, 1)
	walked := walk.NotWalked(parts[0], 1)
	walked.Hops[0].Result = report.Passed
	r, err := test.mergeParts(parts, []*report.Report{walked, nil})
	if err != nil {
		t.Fatal(err)
	}
	var results []string
	for _, h := range r.Hops {
		results = append(results, h.From+" "+string(h.Result))
	}
	if got := strings.Join(results, ", "); got != "1 passed, 3 skipped" {
		t.Errorf("got %s", got)
	}
	if r, err := test.mergeParts(parts, []*report.Report{nil, nil}); r != nil || err != nil {
		t.Errorf("without any: %+v, %v", r, err)
	}
}

// Parts take as long as the one that takes longest: they are walked at the same time.
func TestMergedPartsTakeAsLongAsTheLongest(t *testing.T) {
	test := &upgradeTest{parallel: 2}
	parts := test.parts(graph.Plan{Hops: []graph.Edge{{Package: "tea", From: "1", To: "2"}, {Package: "tea", From: "3", To: "4"}}}, 1)
	reports := []*report.Report{walk.NotWalked(parts[0], 1), walk.NotWalked(parts[1], 1)}
	reports[0].Seconds, reports[1].Seconds = 70, 40
	if r, err := test.mergeParts(parts, reports); err != nil || r.Seconds != 70 {
		t.Errorf("got %+v, %v, want 70 s", r, err)
	}
}
