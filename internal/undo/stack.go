// Package undo takes changes back in the reverse order of how they were made.
package undo

import (
	"context"
	"errors"
	"time"
)

// Stack holds what takes changes back. A step is pushed before its change is made, so that one that fails halfway, or
// gets through though its answer is lost, is taken back as well: a step has to bear that there is nothing to take back.
type Stack struct {
	steps []func(context.Context) error
}

// Push adds a step that takes a change back.
func (u *Stack) Push(step func(context.Context) error) { u.steps = append(u.steps, step) }

// Empty reports whether there is nothing to take back.
func (u *Stack) Empty() bool { return len(u.steps) == 0 }

// Run takes every change back once, the last first, also when ctx is done and when a step fails. Together the steps may take
// as long as limit.
func (u *Stack) Run(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	var errs []error
	for !u.Empty() {
		last := len(u.steps) - 1
		step := u.steps[last]
		u.steps = u.steps[:last]
		errs = append(errs, step(ctx))
	}
	return errors.Join(errs...)
}
