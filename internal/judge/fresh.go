package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// Unlike says how upgraded, which is release, is not what fresh is, object by object.
func Unlike(release string, upgraded, fresh observe.Installed) []finding.Finding {
	all := maps.Clone(upgraded)
	maps.Copy(all, fresh)
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var places []string
		switch {
		case fresh[name] == nil:
			places = []string{"a fresh installation does not have it"}
		case upgraded[name] == nil:
			places = []string{"only a fresh installation has it"}
		default:
			differ("", upgraded[name], fresh[name], &places)
		}
		if len(places) > 0 {
			findings = append(findings, code.Finding(code.DiffersFromFresh, name, "after the upgrades to %s: %s", release, strings.Join(places, "; ")))
		}
	}
	return findings
}

func differ(at string, upgraded, fresh any, places *[]string) {
	u, mapping := upgraded.(map[string]any)
	f, both := fresh.(map[string]any)
	if mapping && both {
		keys := maps.Clone(u)
		maps.Copy(keys, f)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			differ(compare.Join(at, key), u[key], f[key], places)
		}
		return
	}
	us, list := upgraded.([]any)
	fs, both := fresh.([]any)
	if list && both && len(us) == len(fs) {
		for i := range us {
			differ(at+"["+strconv.Itoa(i)+"]", us[i], fs[i], places)
		}
		return
	}
	if a, b := text(upgraded), text(fresh); a != b {
		*places = append(*places, fmt.Sprintf("%s is %s, and %s in a fresh installation", compare.OrRoot(at), valueOf(upgraded), valueOf(fresh)))
	}
}

func text(v any) string {
	b, _ := json.Marshal(v) // it came from JSON
	return string(b)
}

func valueOf(v any) string {
	if v == nil {
		return "not there"
	}
	return compare.Show(v)
}
