package embedded

import (
	"strings"
	"testing"
	"time"
)

func TestParseAudit(t *testing.T) {
	t.Parallel()
	const log = `{"auditID":"later","verb":"get","requestReceivedTimestamp":"2026-01-02T03:04:07.000001Z"}
{"auditID":"at once","verb":"list","requestReceivedTimestamp":"2026-01-02T03:04:05.000000Z"}
{"auditID":"torn","verb":"wa{"auditID":"lost with it","verb":"get","requestReceivedTimestamp":"2026-01-02T03:04:08.000000Z"}
{"auditID":"too early","verb":"get","requestReceivedTimestamp":"2026-01-02T03:04:04.999999Z"}

{"auditID":"not yet whole","verb":"get","requestReceived`
	var got []string
	for _, e := range parseAudit([]byte(log), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		got = append(got, string(e.AuditID))
	}
	if want := "at once, later"; strings.Join(got, ", ") != want {
		t.Errorf("%q, wanted %s", got, want)
	}
}
