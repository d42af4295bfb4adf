package walk

import (
	"context"
	"fmt"

	"github.com/olmkit/olmkit/internal/judge"
)

// counting is what the statuses of samples count before copies are created, and while there are some, by the samples' kind and by path.
type counting struct{ before, there map[string]map[string]int64 }

// countsNow are what the statuses of samples count now.
func (w *walk) countsNow(ctx context.Context) (map[string]map[string]int64, error) {
	all := map[string]map[string]int64{}
	for _, o := range w.Untouched() {
		status, err := w.statusOf(ctx, o)
		if err != nil {
			return nil, err
		}
		if all[o.CRD] == nil {
			all[o.CRD] = map[string]int64{}
		}
		for path, n := range judge.CountsOf(status) {
			all[o.CRD][fmt.Sprintf("%s of %s", path, o)] = n
		}
	}
	return all, nil
}

// seeThere notes what the statuses count while copies are there.
func (c *counting) seeThere(ctx context.Context, w *walk) (err error) {
	c.there, err = w.countsNow(ctx)
	return err
}

// seeGone notes in created which counts were other ones while copies were there, and which of these are as before now that they are gone. What was so under the release before
// is waited for.
func (c *counting) seeGone(ctx context.Context, w *walk, before, created map[string]judge.New) error {
	return lookUntil(ctx, newLimit, lookPause, func() (bool, error) {
		now, err := w.countsNow(ctx)
		all := true
		for crd, is := range created {
			if c.there[crd] == nil {
				continue
			}
			is.Recounts = map[string]int{}
			for count, n := range c.before[crd] {
				if is.Recounts[count] = 0; c.there[crd][count] != n {
					is.Recounts[count] = judge.Surely - 1
				}
				if is.Recounts[count] > 0 && now[crd][count] == n {
					is.Recounts[count] = judge.Surely
				}
				all = all && (is.Recounts[count] != judge.Surely-1 || before[crd].Recounts[count] == judge.Surely-1)
			}
			created[crd] = is
		}
		return all, err
	})
}
