package walk

import (
	"context"

	"github.com/olmkit/olmkit/internal/judge"
)

// recount notes in created how the counts in the samples' statuses followed copies, all of which are gone: before and there are what the statuses said before any was created, and while
// they were there. Those that followed then, and also afterwards under the release before, are waited for.
func (w *walk) recount(ctx context.Context, before, there map[string]map[string]any, was, created map[string]judge.New) error {
	samples := w.Untouched()
	return lookUntil(ctx, newLimit, lookPause, func() (bool, error) {
		now, followed := w.statusesNow(ctx, samples), map[string]map[string]int{} // by the samples' kind
		waits := false
		for _, o := range samples {
			if followed[o.CRD] == nil {
				followed[o.CRD] = map[string]int{}
			}
			name := o.String()
			for path, times := range judge.RecountsOf(before[name], there[name], now[name]) {
				count := path + " of " + name
				followed[o.CRD][count] = times
				waits = waits || times == 1 && was[o.CRD].Recounts[count] != 1
			}
		}
		for crd, is := range created {
			if followed[crd] != nil {
				is.Recounts = followed[crd]
				created[crd] = is
			}
		}
		return !waits, ctx.Err()
	})
}
