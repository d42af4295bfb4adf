package walk

import (
	"context"
	"maps"
	"slices"

	"github.com/olmkit/olmkit/internal/observe"
)

// theirs is what was made for the samples and was there before copies were created, but for what comes and goes. What an operator made since for a sample may be about a copy, as
// where objects of two kinds have something for each pair of them.
func (w *walk) theirs(ctx context.Context, there map[string]observe.Operand) (map[string]observe.Operand, error) {
	operands, err := w.Operands(ctx)
	maps.DeleteFunc(operands, func(name string, made observe.Operand) bool {
		return made.Transient() || made.Kind == "Job" || made.UID != there[name].UID
	})
	return operands, err
}

// goneAlong names what of theirs is deleted, or is about to be, since copies were deleted: who clears by a selector that picks too much takes what others have.
func (w *walk) goneAlong(ctx context.Context, theirs map[string]observe.Operand) ([]string, error) {
	gone := []string{}
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		now, err := w.operandNow(ctx, theirs[name])
		if err != nil {
			return nil, err
		}
		if now == nil || now.GetUID() != theirs[name].UID || now.GetDeletionTimestamp() != nil {
			gone = append(gone, name)
		}
	}
	return gone, nil
}
