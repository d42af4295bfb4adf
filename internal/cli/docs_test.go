package cli

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the documentation again")

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
	root := newRoot(&session{})
	b.WriteString("\n## Flags of every command\n" + flagTable)
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { b.WriteString(flagRow(f)) })
	shared := sharedFlags(root)
	b.WriteString("\n## Shared flags\n\nSeveral commands have these flags, and name them below their own.\n" + flagTable)
	for _, row := range slices.Sorted(maps.Keys(shared)) {
		b.WriteString(row)
	}
	describe(&b, root, shared)
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

const flagTable = "\n| flag | default | |\n|---|---|---|\n"

// flagRow is the line of a table that describes f.
func flagRow(f *pflag.Flag) string {
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
	return fmt.Sprintf("| `%s` | %s | %s |\n", name, quoted(def), strings.ReplaceAll(usage, "|", `\|`))
}

// sharedFlags are the flags, by their lines, that at least five of the commands below root have, and none with another meaning.
func sharedFlags(root *cobra.Command) map[string]bool {
	have, variants := map[string]int{}, map[string]map[string]bool{}
	var count func(c *cobra.Command)
	count = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			count(sub)
		}
		if !c.HasSubCommands() && !c.Hidden && c.Name() != "help" {
			c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
				row := flagRow(f)
				have[row]++
				if variants[f.Name] == nil {
					variants[f.Name] = map[string]bool{}
				}
				variants[f.Name][row] = true
			})
		}
	}
	count(root)
	shared := map[string]bool{}
	for name, rows := range variants {
		for row := range rows {
			if len(rows) == 1 && have[row] >= 5 && name != "help" {
				shared[row] = true
			}
		}
	}
	return shared
}

// describe writes a section for each command that can be run. It names the shared flags alone.
func describe(b *strings.Builder, c *cobra.Command, shared map[string]bool) {
	if !c.HasSubCommands() && !c.Hidden {
		text := c.Long
		if text == "" {
			text = c.Short + "."
		}
		fmt.Fprintf(b, "\n## %s\n\n%s\n\n```\n%s\n```\n", c.CommandPath(), text, c.UseLine())
		if c.Example != "" {
			fmt.Fprintf(b, "\n```console\n%s\n```\n", strings.TrimRight(c.Example, "\n"))
		}
		own, others := "", []string(nil)
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			switch row := flagRow(f); {
			case f.Hidden:
			case shared[row]:
				others = append(others, "`--"+f.Name+"`")
			default:
				own += row
			}
		})
		if own != "" {
			b.WriteString(flagTable + own)
		}
		if others != nil {
			fmt.Fprintf(b, "\n[Shared flags](#shared-flags): %s\n", strings.Join(others, ", "))
		}
	}
	for _, sub := range c.Commands() {
		if sub.Name() != "help" && sub.Name() != "completion" {
			describe(b, sub, shared)
		}
	}
}

func quoted(s string) string {
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
		{"--version", exitPassed, ""},
		{"nonsense", exitUsage, "olmkit has no command \"nonsense\""},
		{"catlog", exitUsage, "fix: did you mean 'catalog'? see 'olmkit --help'"},
		{"catalog --version", exitUsage, "unknown flag: --version"},
		{"catalog build --output-dir x", exitUsage, "fix: did you mean --output-file? see 'olmkit catalog build --help'"},
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
