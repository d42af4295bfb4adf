//go:build !linux

package output

import (
	"errors"
	"os"
)

// nameless fails: only Linux has files without names.
func nameless(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func name(*os.File, string, string) error { return errors.ErrUnsupported }
