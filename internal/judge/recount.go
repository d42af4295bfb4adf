package judge

import (
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
)

// countsOf are the numbers that a status says, and how many items its lists have, by path, but for what tells of pods.
func countsOf(status map[string]any) map[string]int64 {
	counts := map[string]int64{}
	var visit func(path string, value any)
	visit = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for k, member := range value {
				if !ofPods.MatchString(k) {
					visit(path+"."+k, member)
				}
			}
		case []any:
			counts[path] = int64(len(value))
		case int64:
			counts[path] = value
		}
	}
	visit("status", status)
	return counts
}

// RecountsOf tells of each count of a status, which said before what it said before others were created, how often it followed: Surely if it was another while they were there, and is as
// before now that they are gone.
func RecountsOf(before, there, now map[string]any) map[string]int {
	followed, whileThere, afterwards := map[string]int{}, countsOf(there), countsOf(now)
	for path, n := range countsOf(before) {
		switch {
		case whileThere[path] == n:
			followed[path] = 0
		case afterwards[path] == n:
			followed[path] = Surely
		default:
			followed[path] = 1
		}
	}
	return followed
}

// recounts tells of the counts in statuses of samples that no longer follow what is created and deleted besides.
func recounts(from, to string, was, is New) []finding.Finding {
	stale := namesOf(is.Recounts, func(count string) bool { return was.Recounts[count] == Surely && is.Recounts[count] < Surely })
	if len(stale) == 0 {
		return nil
	}
	f := code.Finding(code.StatusStale, is.Sample, "%s does not tell in %s of new objects of other kinds, or of these that they are gone; %s did", to, strings.Join(stale, " and "), from)
	f.Severity, f.Fix = finding.Error, "watch the objects that a status counts, map each to the object that counts it (handler.EnqueueRequestsFromMapFunc), and write the status whenever a count is another, not only when a condition is"
	return []finding.Finding{f}
}
