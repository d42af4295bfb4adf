package judge

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// standards are the Pod Security Standards that refuse any pods, from the strictest.
var standards = []api.Level{api.LevelRestricted, api.LevelBaseline}

// podSecurity evaluates pods by the rules of Kubernetes.
var podSecurity = sync.OnceValues(func() (policy.Evaluator, error) { return policy.NewEvaluator(policy.DefaultChecks(), nil) })

// refusedBy tells why a namespace that enforces a standard refuses what is made from operands for an object, by standard, each the reasons with commas.
func refusedBy(e policy.Evaluator, operands []observe.Operand) map[api.Level]string {
	reasons := map[api.Level][]string{}
	for _, o := range operands {
		template, has := o.Template()
		if !has || !o.Direct || !slices.Contains(WorkloadKinds, o.Kind) {
			continue
		}
		for _, level := range standards {
			result := policy.AggregateCheckResults(e.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()}, &template.ObjectMeta, &template.Spec))
			if !result.Allowed {
				reasons[level] = append(reasons[level], result.ForbiddenDetail())
			}
		}
	}
	refused := map[api.Level]string{}
	for level, all := range reasons {
		slices.Sort(all)
		refused[level] = strings.Join(slices.Compact(all), ", ")
	}
	return refused
}

// PodSecurity tells of which objects the pods met a Pod Security Standard before, and do not after (the strictest of these), and why.
func PodSecurity(before, after map[string]observe.Operand) []finding.Finding {
	evaluator, err := podSecurity()
	if err != nil {
		return nil // its own checks are at odds, which a test would have seen
	}
	were, are := byObject(before), byObject(after)
	var findings []finding.Finding
	for _, of := range slices.Sorted(maps.Keys(are)) {
		if !slices.ContainsFunc(were[of], func(o observe.Operand) bool { _, has := o.Template(); return has }) {
			continue
		}
		was, is := refusedBy(evaluator, were[of]), refusedBy(evaluator, are[of])
		for _, level := range standards {
			if was[level] == "" && is[level] != "" {
				findings = append(findings, code.Finding(code.PodSecurity, of, "what runs for it met the Pod Security Standard %q before the upgrade, and does not any more: %s", level, is[level]))
				break
			}
		}
	}
	return findings
}
