// Package hint attaches to an error what its reader can do about it.
package hint

import (
	"errors"
	"fmt"
	"strings"
)

type advised struct {
	err error
	fix string
}

func (a *advised) Error() string { return a.err.Error() }
func (a *advised) Unwrap() error { return a.err }

// With returns err with fix, one sentence in the imperative that tells the user how to get past it. It returns nil
// for a nil err.
func With(err error, fix string, args ...any) error {
	if err == nil {
		return nil
	}
	return &advised{err: err, fix: fmt.Sprintf(fix, args...)}
}

// Of returns the outermost fix attached to err, or "".
func Of(err error) string {
	var a *advised
	if errors.As(err, &a) {
		return a.fix
	}
	return ""
}

// Errors returns the errors that err joins, so that each can be told with its own fix, or err alone.
func Errors(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	var texts []string
	for _, inner := range joined.Unwrap() {
		texts = append(texts, inner.Error())
		all = append(all, Errors(inner)...)
	}
	if strings.Join(texts, "\n") != err.Error() {
		return []error{err} // fmt.Errorf with several %w
	}
	return all
}
