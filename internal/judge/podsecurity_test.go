package judge

import (
	"testing"

	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

// TestPodSecurity: pods that met a standard and do not any more are told, with the strictest that they met; what never met one, and who had no pods, is not.
func TestPodSecurity(t *testing.T) {
	type m = map[string]any
	workload := func(kind string, container m, pod m) map[string]observe.Operand {
		spec := m{"containers": []any{container}}
		for k, v := range pod {
			spec[k] = v
		}
		template := m{"template": m{"spec": spec}}
		if kind == "CronJob" {
			template = m{"jobTemplate": m{"spec": template}}
		}
		o := observe.Operand{Kind: kind, Namespace: "n", Name: "a", Of: "Pot/n/a", Direct: true, Content: m{"spec": template}}
		return map[string]observe.Operand{o.String(): o}
	}
	tight := m{"name": "a", "securityContext": m{"allowPrivilegeEscalation": false, "capabilities": m{"drop": []any{"ALL"}}}}
	pod := m{"securityContext": m{"runAsNonRoot": true, "seccompProfile": m{"type": "RuntimeDefault"}}}
	loose, host := m{"name": "a"}, m{"hostPID": true}
	restricted := workload("StatefulSet", tight, pod)
	for name, c := range map[string]struct {
		before, after map[string]observe.Operand
		want          []string
	}{
		"as before":              {restricted, restricted, nil},
		"another kind":           {restricted, workload("CronJob", tight, pod), nil},
		"it may escalate":        {restricted, workload("Deployment", m{"name": "a", "securityContext": m{"capabilities": m{"drop": []any{"ALL"}}}}, pod), []string{`warning U523 Pot/n/a: what runs for it met the Pod Security Standard "restricted" before the upgrade, and does not any more: allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false)`}},
		"it is as root, by cron": {workload("CronJob", tight, pod), workload("CronJob", tight, m{"securityContext": m{"seccompProfile": m{"type": "RuntimeDefault"}}}), []string{`warning U523 Pot/n/a: what runs for it met the Pod Security Standard "restricted" before the upgrade, and does not any more: runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)`}},
		"it sees the node":       {workload("Deployment", loose, nil), workload("Deployment", loose, host), []string{`warning U523 Pot/n/a: what runs for it met the Pod Security Standard "baseline" before the upgrade, and does not any more: host namespaces (hostPID=true)`}},
		"it always did":          {workload("Deployment", loose, host), workload("Deployment", loose, host), nil},
		"nothing ran":            {nil, workload("Deployment", loose, host), nil},
		"it asks for less":       {workload("Deployment", loose, nil), restricted, nil},
	} {
		t.Run(name, func(t *testing.T) { expect.Findings(t, PodSecurity(c.before, c.after), c.want...) })
	}
}
