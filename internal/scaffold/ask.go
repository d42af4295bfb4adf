package scaffold

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Ask asks on out, and reads from in, what o leaves open; an empty answer takes the default, which suggested has.
func Ask(in io.Reader, out io.Writer, o, suggested Options) (Options, error) {
	answers := bufio.NewReader(in)
	maintainer := strings.Join(o.Maintainers, ", ")
	for _, q := range []struct {
		question string
		answer   *string
		usual    string
	}{
		{"Name for consoles", &o.DisplayName, suggested.DisplayName},
		{"What it does, in a sentence", &o.Description, suggested.Description},
		{"Provider", &o.Provider, suggested.Provider},
		{"Maintainer, as NAME <EMAIL>", &maintainer, ""},
		{"Image, without a tag", &o.ImageBase, suggested.ImageBase},
	} {
		if *q.answer != "" {
			continue
		}
		fmt.Fprintf(out, "%s [%s]: ", q.question, q.usual)
		line, err := answers.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return o, fmt.Errorf("read an answer: %w", err)
		}
		*q.answer = strings.TrimSpace(line)
	}
	if maintainer != "" && len(o.Maintainers) == 0 {
		o.Maintainers = []string{maintainer}
	}
	return o, nil
}
