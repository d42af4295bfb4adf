package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the documentation anew")

const commandsPage = "../../docs/commands.md"

// TestDocs holds docs/commands.md to the commands.
func TestDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Commands\n\nMade from the commands themselves by `make generate`.\n\n")
	b.WriteString("Results go to standard output, progress and messages to standard error.\n\n")
	b.WriteString("| exit code | meaning |\n|---|---|\n")
	for _, row := range []struct {
		code    int
		meaning string
	}{
		{exitPassed, "passed"},
		{exitFailed, "the tool or its environment failed"},
		{exitUsage, "wrong command line"},
		{exitFindings, "the thing under test has findings at or above `--fail-on`"},
		{exitInterrupted, "interrupted, and cleaned up"},
	} {
		fmt.Fprintf(&b, "| %d | %s |\n", row.code, row.meaning)
	}
	describe(&b, newRoot(&session{}))
	want := b.String()
	if *update {
		if err := os.WriteFile(commandsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(commandsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not up to date: run 'make generate'", commandsPage)
	}
}

// describe writes a section for each command that can be run.
func describe(b *strings.Builder, c *cobra.Command) {
	if !c.HasSubCommands() && !c.Hidden {
		text := c.Long
		if text == "" {
			text = c.Short + "."
		}
		fmt.Fprintf(b, "\n## %s\n\n%s\n\n```\n%s\n```\n", c.CommandPath(), text, c.UseLine())
		if c.Example != "" {
			fmt.Fprintf(b, "\n```console\n%s\n```\n", strings.TrimRight(c.Example, "\n"))
		}
		flags := false
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			if !flags {
				b.WriteString("\n| flag | default | |\n|---|---|---|\n")
				flags = true
			}
			value, usage := pflag.UnquoteUsage(f)
			name := "--" + f.Name
			if f.Shorthand != "" {
				name = "-" + f.Shorthand + ", " + name
			}
			if value != "" {
				name += " " + value
			}
			def := f.DefValue
			if def == "[]" || def == "false" {
				def = ""
			}
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, code(def), strings.ReplaceAll(usage, "|", `\|`))
		})
	}
	for _, sub := range c.Commands() {
		if sub.Name() != "help" && sub.Name() != "completion" {
			describe(b, sub)
		}
	}
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"version", exitPassed, ""},
		{"nonsense", exitUsage, "olmkit has no command \"nonsense\""},
		{"catalog nonsense", exitUsage, "see 'olmkit catalog --help'"},
		{"version --nonsense", exitUsage, "fix: see 'olmkit version --help'"},
		{"version extra", exitUsage, "unknown command \"extra\" for \"olmkit version\""},
		{"cluster up --kind moon", exitUsage, "--kind moon"},
	} {
		t.Run(c.args, func(t *testing.T) {
			var out, errOut strings.Builder
			got := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}, strings.Fields(c.args))
			if got != c.code {
				t.Errorf("exit code %d, want %d\n%s", got, c.code, errOut.String())
			}
			if !strings.Contains(errOut.String(), c.says) {
				t.Errorf("it says %q, want %q", errOut.String(), c.says)
			}
		})
	}
}
