package upgrade

import (
	"context"
	"errors"
	"time"
)

// undoStack holds what takes changes back. A step is pushed before its change is made, so that one that fails halfway, or
// gets through though its answer is lost, is taken back as well: a step has to bear that there is nothing to take back.
type undoStack struct {
	steps []func(context.Context) error
}

func (u *undoStack) push(step func(context.Context) error) { u.steps = append(u.steps, step) }

func (u *undoStack) empty() bool { return len(u.steps) == 0 }

// run takes every change back once, the last first, also when ctx is done and when a step fails. Together the steps may take
// as long as limit.
func (u *undoStack) run(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	var errs []error
	for !u.empty() {
		last := len(u.steps) - 1
		step := u.steps[last]
		u.steps = u.steps[:last]
		errs = append(errs, step(ctx))
	}
	return errors.Join(errs...)
}
