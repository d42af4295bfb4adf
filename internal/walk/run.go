package walk

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// judgeRuns tells for which samples r's operator no longer makes Jobs from time to time as that of the release called from did. They were not touched since began.
func (w *walk) judgeRuns(ctx context.Context, from string, r *lifecycle.Release, began time.Time) (findings []finding.Finding, err error) {
	runs, was, looked := map[string]judge.Runs{}, w.runs[from], time.Now()
	err = lookUntil(ctx, mostLate, lookPause, func() (bool, error) {
		operands, err := w.RecentOperands(ctx)
		if err != nil {
			return false, err
		}
		awaited := false
		for _, o := range w.Objects {
			if runs[o.String()], err = w.runsOf(ctx, o, operands, began); err != nil {
				return false, err
			}
			before := was[o.String()] // in which some may have been gone for a moment
			awaited = awaited || runs[o.String()].IsLate(before) && time.Since(looked) <= before.Late()
		}
		return !awaited, nil
	})
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if is, stays := runs[name]; stays {
			findings = append(findings, judge.RunsStop(from, r.Name, name, was[name], is)...)
		}
	}
	w.runs[r.Name] = runs
	return findings, err
}

// mostLate is how long a Job is waited for at most.
const mostLate = time.Minute

// runsOf is what is seen of the Jobs among operands that were made for o since began.
func (w *walk) runsOf(ctx context.Context, o *observe.Object, operands map[string]observe.Operand, began time.Time) (judge.Runs, error) {
	type run struct {
		made time.Time
		says map[string]string
	}
	var all []run
	for _, made := range operands {
		if made.Of != o.String() || !made.Direct || made.Kind != "Job" {
			continue
		}
		now, err := w.operandNow(ctx, made)
		if err != nil {
			return judge.Runs{}, err
		}
		if now != nil && !now.GetCreationTimestamp().Time.Before(began.Truncate(time.Second)) {
			all = append(all, run{now.GetCreationTimestamp().Time, saidBy(made)})
		}
	}
	slices.SortFunc(all, func(a, b run) int { return a.made.Compare(b.made) })
	runs := judge.Runs{Watched: time.Since(began), Age: time.Since(began), Made: len(all)}
	for i := 1; i < len(all); i++ {
		runs.Gap = max(runs.Gap, all[i].made.Sub(all[i-1].made))
	}
	if len(all) > 0 {
		last := all[len(all)-1]
		says := last.says
		runs.Age = time.Since(last.made)
		asked := scalarsOf(o.Author["spec"])
		runs.Says = slices.Sorted(maps.Keys(says))
		runs.Asked = slices.DeleteFunc(slices.Clone(runs.Says), func(path string) bool { return !slices.Contains(asked, says[path]) })
	}
	return runs, nil
}

// ofJobs matches what the API server adds to a Job, by which it finds its pods.
var ofJobs = observe.Compiled(`^(spec\.)?selector|controller-uid|job-name`)

// saidBy is what a Job says, by path.
func saidBy(job observe.Operand) map[string]string {
	values := valuesByName(job.Content)
	maps.DeleteFunc(values, func(path, _ string) bool { return ofJobs().MatchString(path) })
	return values
}

// scalarsOf are the texts and the numbers in value that are no usual ones.
func scalarsOf(value any) (all []string) {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			all = append(all, scalarsOf(inner)...)
		}
	case []any:
		for _, item := range v {
			all = append(all, scalarsOf(item)...)
		}
	case string, int64, float64:
		if text, err := json.Marshal(v); err == nil && len(text) > 1 {
			all = append(all, strings.Trim(string(text), `"`))
		}
	}
	return all
}
