package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Poll calls done every 100 ms until it says so, fails, or, with ErrTimeout, the time is up.
func Poll(ctx context.Context, limit time.Duration, done wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, limit, true, done)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w (%s)", ErrTimeout, limit)
	}
	return err
}
