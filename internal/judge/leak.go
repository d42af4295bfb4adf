package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// Leaks tells what of after says what a Secret holds, and no such operand of the object did before.
func Leaks(before, after map[string]observe.Operand) []finding.Finding {
	like := func(o observe.Operand) string {
		if slices.Contains(WorkloadKinds, o.Kind) {
			return o.Of + " workload"
		}
		return o.Of + " " + o.Kind
	}
	leaky := map[string]bool{}
	for _, o := range before {
		if len(hiddenIn(o)) > 0 {
			leaky[like(o)] = true
		}
	}
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(after)) {
		o := after[name]
		if o.Kind == observe.KindSecret || o.Transient() || o.Kind == "Job" && !o.Direct || leaky[like(o)] {
			continue
		}
		if hidden := hiddenIn(o); len(hidden) > 0 {
			paths := slices.Sorted(maps.Keys(hidden))
			findings = append(findings, code.Finding(code.Credentials, name, "it says in %s what %s, and did not before the upgrade: whoever may read it has that",
				strings.Join(paths, ", "), holderOf(hidden[paths[0]], after)))
		}
	}
	return findings
}

// LogsLeak tells that the manager of a release, called installation, logs what a Secret holds, and that of the release before did not; line has one without that.
func LogsLeak(installation, release, line string) finding.Finding {
	f := code.Finding(code.Credentials, installation, "%s logs what a Secret holds, and the release before did not: whoever may read its log has that: %q", release, line)
	f.Fix = "log names and keys of Secrets, never what they hold, nor whole objects or addresses in which that is"
	return f
}

// holderOf says which Secret among operands holds what digest stands for.
func holderOf(digest string, operands map[string]observe.Operand) string {
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		if operands[name].Kind != observe.KindSecret {
			continue
		}
		for path, held := range hiddenIn(operands[name]) {
			if held == digest {
				return fmt.Sprintf("%s holds in %s", name, path)
			}
		}
	}
	return "a Secret holds"
}

// hiddenIn is what stands for values of Secrets in an operand, by path.
func hiddenIn(o observe.Operand) map[string]string {
	found := map[string]string{}
	for path, text := range compare.Values(o.Content) {
		if digest := observe.Hidden().FindString(text); digest != "" {
			found[path] = digest
		}
	}
	return found
}
