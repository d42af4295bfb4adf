package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// AuditPolicy has the API server write down who asked for what and how it answered. What is written is kept of updates and
// patches by service accounts that are neither OLM's nor Kubernetes' own, so that a refused change can be told field by
// field; Secrets, ConfigMaps and what is written all the time are left out of that. Probes ask all the time for nothing.
const AuditPolicy = `{
  "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "omitManagedFields": true,
  "rules": [
    {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*"]},
    {"level": "Metadata", "userGroups": ["system:serviceaccounts:olm", "system:serviceaccounts:kube-system"]},
    {"level": "Metadata", "resources": [
      {"group": "", "resources": ["secrets", "configmaps", "events"]}, {"group": "events.k8s.io"}, {"group": "coordination.k8s.io"}]},
    {"level": "Request", "userGroups": ["system:serviceaccounts"], "verbs": ["update", "patch"]},
    {"level": "Metadata"}
  ]
}`

// CopyAudit copies to w what of an audit log the API server received at since or later, or may have received then.
func CopyAudit(w io.Writer, log io.Reader, since time.Time) error {
	for lines := bufio.NewReader(log); ; {
		line, failed := lines.ReadBytes('\n')
		if !receivedBefore(line, since) {
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
		if errors.Is(failed, io.EOF) {
			return nil
		} else if failed != nil {
			return failed
		}
	}
}

// ParseAudit returns the events in an audit log that the API server received at since or later, in the order in which it
// received them. A line that is not whole, as a killed API server leaves it, is left out.
func ParseAudit(log []byte, since time.Time) []auditv1.Event {
	var events []auditv1.Event
	for line := range bytes.Lines(log) {
		if receivedBefore(line, since) {
			continue
		}
		var e auditv1.Event
		if json.Unmarshal(line, &e) == nil && !e.RequestReceivedTimestamp.Time.Before(since) {
			events = append(events, e)
		}
	}
	slices.SortStableFunc(events, func(a, b auditv1.Event) int {
		if c := a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(string(a.AuditID), string(b.AuditID))
	})
	return events
}

// receivedBefore reports whether an event surely came before since, without decoding it: a long log is read often.
func receivedBefore(line []byte, since time.Time) bool {
	const key, layout = `"requestReceivedTimestamp":"`, "2006-01-02T15:04:05.000000Z"
	// Bodies of requests come before the API server's own time, so that the last one counts.
	i := bytes.LastIndex(line, []byte(key))
	if i < 0 || len(line) < i+len(key)+len(layout) {
		return false
	}
	return string(line[i+len(key):i+len(key)+len(layout)]) < since.UTC().Format(layout)
}
