package undo

import (
	"context"
	"errors"
	"testing"
	"time"
)

// What can no longer be undone does not keep the rest from being undone.
func TestUndoGoesOn(t *testing.T) {
	undone := ""
	var u Stack
	u.Push(func(context.Context) error { undone += "first"; return nil })
	u.Push(func(context.Context) error { return errors.New("broken") })
	if err := u.Run(t.Context(), time.Minute); err == nil || err.Error() != "broken" || undone != "first" || !u.Empty() {
		t.Errorf("%v, %s, %d left", err, undone, len(u.steps))
	}
}
