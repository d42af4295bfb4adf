package upgrade

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

func TestEnd(t *testing.T) {
	w := &walk{}
	found, err := w.end(nil)
	if expect(t, found); err != nil {
		t.Errorf("of a walk that came to its end: %v", err)
	}
	found, err = w.end(fmt.Errorf("uninstall: %w", lifecycle.DeletionTimeoutError{What: []string{"Deployment/n/a", "CustomResourceDefinition/b"}, After: time.Minute}))
	if expect(t, found,
		"error U606 Deployment/n/a: it was deleted 1m0s ago and is still there, so the walk ended here",
		"error U606 CustomResourceDefinition/b: it was deleted 1m0s ago and is still there, so the walk ended here"); err != nil {
		t.Errorf("what stays is no error of the walk: %v", err)
	}
	broken := errors.New("the API server is gone")
	found, err = w.end(broken)
	if expect(t, found, "error U903 : the API server is gone"); !errors.Is(err, broken) {
		t.Errorf("the walk's error became %v", err)
	}
}
