package sandbox

import (
	"debug/elf"
	"io"
	"strings"
)

// elfInterpreter returns the dynamic loader that the program at path asks for, "" for a static one.
func elfInterpreter(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			data, err := io.ReadAll(io.LimitReader(p.Open(), 4096))
			return strings.TrimRight(string(data), "\x00"), err
		}
	}
	return "", nil
}
