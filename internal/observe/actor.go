package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Auditor is a cluster that keeps an audit log.
type Auditor interface {
	// Audit returns what the API server was asked from since on, in the order in which it was asked.
	Audit(ctx context.Context, since time.Time) ([]auditv1.Event, error)
}

// Attributed returns the timeline since started, with who did what where the cluster can tell and wanted asks for it.
func (c *Cluster) Attributed(ctx context.Context, started time.Time, wanted bool) ([]lifecycle.Event, error) {
	timeline := c.Watcher.Since(started)
	auditor, ok := c.Provider.(Auditor)
	if !ok || !wanted {
		return timeline, nil
	}
	log, err := auditor.Audit(ctx, started.Add(-WatchSkew))
	if err != nil {
		return timeline, fmt.Errorf("ask who did what during the upgrade: %w", err)
	}
	return attribute(c.Manager, timeline, log), nil
}

// attribute names the actor of every event in timeline that a request in log explains: the last one to write or delete the
// object before the watch told of it.
func attribute(m lifecycle.Watched, timeline []lifecycle.Event, log []auditv1.Event) []lifecycle.Event {
	named := slices.Clone(timeline)
	for i, e := range named {
		verbs := []string{"update", "patch", "create"}
		if e.State == StateGone {
			verbs = []string{"delete", "deletecollection"}
		}
		resource := ""
		switch {
		case e.Kind == KindCRD:
			resource = "customresourcedefinitions"
		case e.Kind == KindPod && e.State == StateGone:
			resource = "pods"
		default:
			continue
		}
		for _, a := range slices.Backward(log) {
			asked := a.ObjectRef
			if asked == nil || asked.Resource != resource || asked.Name != e.Name || asked.Subresource != "" || !slices.Contains(verbs, a.Verb) {
				continue
			}
			if a.ResponseStatus == nil || a.ResponseStatus.Code >= 300 || a.StageTimestamp.After(e.At.Add(WatchSkew)) || isNode(a.User.Username) {
				continue
			}
			named[i].By = actor(m, a)
			break
		}
	}
	return named
}

// isNode reports whether user is the node, which deletes a pod finally after somebody else asked for it.
func isNode(user string) bool { return strings.HasPrefix(user, "system:node:") || user == "admin" }

// actor names who made a request: the lifecycle manager's programs, which may share an account, by their names, others by their
// account.
func actor(m lifecycle.Watched, a auditv1.Event) string {
	program, _, _ := strings.Cut(a.UserAgent, "/")
	_, account, isAccount := strings.Cut(a.User.Username, "system:serviceaccount:")
	switch {
	case m.Actor(program) != "":
		return m.Actor(program)
	case isAccount && strings.HasPrefix(account, "kube-system:"):
		return "Kubernetes' " + strings.TrimPrefix(account, "kube-system:")
	case isAccount:
		return "the service account " + strings.Replace(account, ":", "/", 1)
	case strings.HasPrefix(program, "olmkit"), strings.HasSuffix(program, ".test"):
		return "olmkit"
	}
	return a.User.Username
}
