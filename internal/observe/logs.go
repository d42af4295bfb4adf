package observe

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/managerlog"
	"github.com/olmkit/olmkit/internal/report"
)

// An error is repeated if it was logged so often, and goes on if it is logged again within logWatch. Controllers double their
// wait after each failure, so what was repeated in the last seconds is repeated in the next.
const (
	repeatedOften = 3
	logWatch      = 12 * time.Second
	logAnswer     = 2 * time.Second // until an object that was touched is reconciled
	logPace       = 500 * time.Millisecond
)

// containersOf returns the containers that the manager runs for the release called name, as namespace/pod/container, sorted.
func (c *Cluster) containersOf(ctx context.Context, name string) ([]string, error) {
	var pods corev1.PodList
	if err := c.Watcher.List(ctx, &pods, client.InNamespace(c.Place.Namespace)); err != nil {
		return nil, err
	}
	var containers []string
	for _, p := range pods.Items {
		for _, container := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			if c.Manager.BundleOf(&container) == name {
				containers = append(containers, p.Namespace+"/"+p.Name+"/"+container.Name)
			}
		}
	}
	slices.Sort(containers)
	return containers, nil
}

// Quota is what a walk calls the ResourceQuota for which it has a namespace without room: what managers log of that is what the walk has made happen.
const Quota = "olmkit"

// Logs are what the containers of a release logged, without the credentials that Secrets are known to hold.
type Logs struct {
	Groups []managerlog.Group // the errors and panics
	Tails  []report.Log       // the last lines of each container
	Leaks  []string           // of each container the first line that had a credential
}

// Logged reads what the containers of r logged.
func (c *Cluster) Logged(ctx context.Context, r *lifecycle.Release) (logs Logs, err error) {
	containers, err := c.containersOf(ctx, r.Name)
	if err != nil {
		return logs, err
	}
	all := managerlog.New()
	all.Aside = "exceeded quota: " + Quota + ","
	known := c.Watcher.secrets.masks()
	for _, name := range containers {
		reader := all.Reader(name + "| ")
		log := &maskedLog{to: reader, known: known}
		// A container may be gone by now, or not have begun: then there is nothing to read.
		_ = c.Provider.Logs(ctx, log, name)
		_ = errors.Join(log.end(), reader.Close())
		if text := reader.Tail(); text != "" {
			logs.Tails = append(logs.Tails, report.Log{Source: name, Text: text})
		}
		if log.leak != "" {
			logs.Leaks = append(logs.Leaks, log.leak)
		}
	}
	logs.Groups = all.Groups()
	return logs, ctx.Err()
}

// Lasting returns those of groups that are repeated, and go on.
func (c *Cluster) Lasting(ctx context.Context, r *lifecycle.Release, groups []managerlog.Group) ([]managerlog.Group, error) {
	suspects := slices.DeleteFunc(slices.Clone(groups), func(g managerlog.Group) bool { return g.Panic || g.Count < repeatedOften })
	if len(suspects) > 0 {
		if err := c.touchAll(ctx); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	var lasting []managerlog.Group
	now := groups
	for {
		waited := time.Since(began)
		suspects = slices.DeleteFunc(suspects, func(was managerlog.Group) bool {
			is := was
			if i := slices.IndexFunc(now, func(g managerlog.Group) bool { return g.Key == was.Key }); i >= 0 {
				is = now[i]
			}
			goesOn, decided := persists(was, is, waited, time.Since(was.Last))
			if goesOn {
				lasting = append(lasting, is)
			}
			return decided
		})
		if len(suspects) == 0 {
			return lasting, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(logPace):
		}
		logs, err := c.Logged(ctx, r)
		if err != nil {
			return nil, err
		}
		now = logs.Groups
	}
}

// touchAll has the operator look at the objects that observers wrote: after many failures its next look may be minutes away.
func (c *Cluster) touchAll(ctx context.Context) error {
	definitions := c.Watcher.Definitions()
	for _, o := range c.Objects {
		if d := definitions[o.CRD]; o.Written && d != nil {
			// What cannot be written is judged elsewhere.
			_, _ = Touch(ctx, o, o.At(c.Dynamic, d.Storage))
		}
	}
	return ctx.Err()
}

// persists tells whether an error that was logged as was, and after waited as is, goes on; age is how long it was last logged
// before now. It is not decided while it may yet be logged again.
func persists(was, is managerlog.Group, waited, age time.Duration) (goesOn, decided bool) {
	switch {
	case is.Count > was.Count:
		return true, true
	case !was.Last.IsZero() && waited > logAnswer && age > 2*was.Gap+time.Second:
		return false, true
	case waited > logWatch:
		return !was.Last.IsZero(), true // the next time is still to come
	}
	return false, false
}

// FailedLogs returns known with the last lines of the containers of r, or where it has none of those of before. It leaves out
// what cannot be read: a hop that failed has worse to tell.
func (c *Cluster) FailedLogs(ctx context.Context, r, before *lifecycle.Release, known []report.Log) []report.Log {
	if c.Watcher == nil {
		return known
	}
	logs, err := c.Logged(ctx, r)
	if err == nil && len(logs.Tails) == 0 {
		logs, _ = c.Logged(ctx, before)
	}
	for _, t := range logs.Tails {
		if !slices.ContainsFunc(known, func(l report.Log) bool { return l.Source == t.Source }) {
			known = append(known, t)
		}
	}
	return known
}
