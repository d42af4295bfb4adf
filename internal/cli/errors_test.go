package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

const saidFile = "said" // in an archive of TestErrors: what the commands say

// TestErrors holds what commands say of bad input to testdata/errors, an archive for each package that finds it out: its comment
// has the commands, and said what they print to standard error. Each error says what is wrong, where, and what to do.
func TestErrors(t *testing.T) {
	archives, err := filepath.Glob(filepath.Join("testdata", "errors", "*.txtar"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("there are no archives: %v", err)
	}
	for _, file := range archives {
		file, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			want := unpackErrors(t, archive)
			got := &bytes.Buffer{}
			for line := range strings.Lines(string(archive.Comment)) {
				if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
					saidOf(t, got, line)
				}
			}
			if *update {
				archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == saidFile })
				archive.Files = slices.Insert(archive.Files, 0, txtar.File{Name: saidFile, Data: got.Bytes()})
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// unpackErrors writes the archive's files to the working directory, and returns what the commands are to say.
func unpackErrors(t *testing.T, archive *txtar.Archive) []byte {
	t.Helper()
	var want []byte
	for _, f := range archive.Files {
		if f.Name == saidFile {
			want = f.Data
			continue
		}
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return want
}

// saidOf appends to said what the command prints to standard error. What follows < is its standard input. A command that
// succeeds, and an error that nobody is told how to mend, fail the test.
func saidOf(t *testing.T, said io.Writer, command string) {
	t.Helper()
	words, input, _ := strings.Cut(command, " <")
	in := &bytes.Buffer{}
	if input != "" {
		data, err := os.ReadFile(strings.TrimSpace(input))
		if err != nil {
			t.Fatal(err)
		}
		in.Write(data)
	}
	var messages bytes.Buffer
	code := Run(t.Context(), Streams{In: in, Out: io.Discard, Err: &messages}, append(strings.Fields(words), "--quiet"))
	work, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(messages.String(), work, "$WORK")
	if code == exitPassed {
		t.Errorf("olmkit %s: it succeeds", command)
	}
	// Of a choice, the error itself says what there is.
	if last := text[strings.LastIndex(text, "error: ")+1:]; !strings.Contains(last, "\n  fix: ") && !strings.Contains(last, ": must be ") {
		t.Errorf("olmkit %s: it does not say what to do:\n%s", command, text)
	}
	fmt.Fprintf(said, "$ olmkit %s\n%sexit code %d\n\n", command, text, code)
}
