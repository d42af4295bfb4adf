package cluster_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/olmkit/olmkit/internal/cluster"
)

const auditLog = `{"auditID":"later","verb":"get","requestReceivedTimestamp":"2026-01-02T03:04:07.000001Z"}
{"auditID":"at once","verb":"list","requestReceivedTimestamp":"2026-01-02T03:04:05.000000Z"}
{"auditID":"torn","verb":"wa{"auditID":"lost with it","verb":"get","requestReceivedTimestamp":"2026-01-02T03:04:08.000000Z"}
{"auditID":"too early","verb":"get","requestReceivedTimestamp":"2026-01-02T03:04:04.999999Z"}

{"auditID":"not yet whole","verb":"get","requestReceived`

var auditSince = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestParseAudit(t *testing.T) {
	t.Parallel()
	var got []string
	for _, e := range cluster.ParseAudit([]byte(auditLog), auditSince) {
		got = append(got, string(e.AuditID))
	}
	if want := "at once, later"; strings.Join(got, ", ") != want {
		t.Errorf("%q, wanted %s", got, want)
	}
}

// TestCopyAudit leaves out what surely came before, and nothing else.
func TestCopyAudit(t *testing.T) {
	t.Parallel()
	var want, got strings.Builder
	for line := range strings.Lines(auditLog) {
		if !strings.Contains(line, "too early") {
			want.WriteString(line)
		}
	}
	if err := cluster.CopyAudit(&got, strings.NewReader(auditLog), auditSince); err != nil || got.String() != want.String() {
		t.Errorf("%v\n%s", err, got.String())
	}
}

// TestAuditPolicy asks the API server's own code what the policy has it write down.
func TestAuditPolicy(t *testing.T) {
	t.Parallel()
	loaded, err := policy.LoadPolicyFromBytes([]byte(cluster.AuditPolicy))
	if err != nil {
		t.Fatal(err)
	}
	account := func(namespace string) user.Info {
		return &user.DefaultInfo{Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}}
	}
	for _, test := range []struct {
		name string
		a    authorizer.AttributesRecord
		want audit.Level
	}{
		{"an operator's change", authorizer.AttributesRecord{User: account("operators"), Verb: "patch", APIGroup: "apps", Resource: "statefulsets", ResourceRequest: true}, audit.LevelRequest},
		{"an operator's read", authorizer.AttributesRecord{User: account("operators"), Verb: "list", Resource: "pods", ResourceRequest: true}, audit.LevelMetadata},
		{"a Secret", authorizer.AttributesRecord{User: account("operators"), Verb: "update", Resource: "secrets", ResourceRequest: true}, audit.LevelMetadata},
		{"a lease", authorizer.AttributesRecord{User: account("operators"), Verb: "update", APIGroup: "coordination.k8s.io", Resource: "leases", ResourceRequest: true}, audit.LevelMetadata},
		{"OLM's change", authorizer.AttributesRecord{User: account("olm"), Verb: "update", APIGroup: "apps", Resource: "deployments", ResourceRequest: true}, audit.LevelMetadata},
		{"a probe", authorizer.AttributesRecord{User: &user.DefaultInfo{}, Verb: "get", Path: "/readyz"}, audit.LevelNone},
	} {
		if got := policy.NewPolicyRuleEvaluator(loaded).EvaluatePolicyRule(&test.a).Level; got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
