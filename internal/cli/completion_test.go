package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCompletion: shells complete packages, channels, versions and codes.
func TestCompletion(t *testing.T) {
	t.Parallel()
	const catalog = "../../catalog"
	for line, want := range map[string][]string{
		"upgrade test " + catalog + " --package ":                                                {"memcached-operator"},
		"upgrade test " + catalog + " --package other":                                           nil,
		"upgrade plan " + catalog + " --channel ":                                                {"candidate\tof memcached-operator", "stable\tof memcached-operator"},
		"upgrade plan " + catalog + " --channel stable --to 0.5":                                 {"0.5.0\tmemcached-operator.v0.5.0"},
		"upgrade plan " + catalog + " --channel stable --from 0.6":                               nil,
		"upgrade plan " + catalog + " --from 0.6":                                                {"0.6.0-rc.1\tmemcached-operator.v0.6.0-rc.1"},
		"catalog graph " + catalog + " --channel s":                                              {"stable\tof memcached-operator"},
		"subscription generate --catalog " + catalog + " --package mem":                          {"memcached-operator"},
		"subscription generate --catalog " + catalog + " --starting-csv memcached-operator.v0.5": {"memcached-operator.v0.5.0"},
		"upgrade test ../../nothing --package ":                                                  nil,
		"upgrade test quay.io/team/catalog:1 --package ":                                         nil,
		"explain crds-w": {"crds-written\tthe CRDs of the new release are applied; from now on the old operator works with the new CRDs"},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			var out, errOut strings.Builder
			if code := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}, append([]string{"__complete"}, strings.Split(line, " ")...)); code != exitPassed {
				t.Fatalf("exit code %d\n%s", code, errOut.String())
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			got := lines[:len(lines)-1] // the last one is for the shell
			slices.Sort(got)
			if diff := cmp.Diff(want, slices.Clip(got), cmp.Transformer("none", func(s []string) []string { return append([]string{}, s...) })); diff != "" && len(want)+len(got) > 0 {
				t.Errorf("wanted and got (-/+):\n%s\n%s", diff, errOut.String())
			}
		})
	}
}

// TestCompleted: each flag that is completed is one of its commands.
func TestCompleted(t *testing.T) {
	commands := leaves(t)
	for _, f := range completed {
		for _, name := range f.commands {
			if c := commands[name]; c == nil || c.Flag(f.flag) == nil {
				t.Errorf("there is no --%s of olmkit %s", f.flag, name)
			}
		}
	}
}
