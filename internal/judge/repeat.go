package judge

import (
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// unrepeated tells what goes on with what a Secret of a new object said before that was made anew, and took over what it says with from.
func unrepeated(from, to string, was, is New) []finding.Finding {
	stale := namesOf(is.Repeats, func(name string) bool { return was.Repeats[name] && !is.Repeats[name] })
	if was.Of != is.Of || len(stale) == 0 {
		return nil
	}
	return []finding.Finding{doesLess("write in each reconcile what repeats a Secret, also in other namespaces, and watch the Secret", is.Sample,
		"%s does less for a new object like it than %s: when its Secret is made anew, %s goes on with what that said before, not only for %s", to, from, strings.Join(stale, " and "), EffectLimit)}
}
