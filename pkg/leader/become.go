package leader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// Option changes how Become elects.
type Option func(*settings)

// settings is what the options of Become say.
type settings struct {
	namespace string
	longest   time.Duration
	config    *rest.Config
	log       logr.Logger
	lost      func(error)
}

// WithNamespace names the lock's namespace, which is the pod's: an object's owner is in its own namespace. It is needed where
// neither POD_NAMESPACE nor the token of a service account names it.
func WithNamespace(namespace string) Option { return func(s *settings) { s.namespace = namespace } }

// WithRetryInterval limits the time between two looks of a candidate at the lock, which doubles from 1 s on. The default is
// 16 s. So much later, at most, a candidate finds out that the leader's pod has ended.
func WithRetryInterval(longest time.Duration) Option {
	return func(s *settings) { s.longest = longest }
}

// WithConfig says how to reach the API server. The default is the pod's service account.
func WithConfig(config *rest.Config) Option { return func(s *settings) { s.config = config } }

// WithLogger takes the log; the default is klog's.
func WithLogger(log logr.Logger) Option { return func(s *settings) { s.log = log } }

// OnLost calls f, once, when the pod no longer leads: another pod has the lock, or the lock could not be read for 10 s. All
// that only a leader may do has to end within 3 s. The default logs the error and ends the process with exit code 1.
func OnLost(f func(error)) Option { return func(s *settings) { s.lost = f } }

// Become blocks until the process's pod leads, and returns nil then. The pod leads until it ends: there is nothing to give
// up. If the lock is lost nevertheless, the process ends; see [OnLost]. Outside of a cluster (ErrNoNamespace), it logs that and
// returns nil at once.
//
// It returns an error when ctx ends before the pod leads, when the pod is not known (see [PodOf]), when a permission is
// missing, and when the ConfigMap with the lock's name is no lock. Other errors of the API server are logged and tried again.
func Become(ctx context.Context, lockName string, options ...Option) error {
	s := settings{longest: 16 * time.Second, log: klog.Background().WithName("leader")}
	for _, option := range options {
		option(&s)
	}
	pod, err := s.pod(os.Getenv, tokenFile)
	if errors.Is(err, ErrNoNamespace) {
		s.log.Info("leading without a lock: the process does not run in a cluster", "lock", lockName)
		return nil
	}
	if err != nil {
		return fmt.Errorf("becoming the leader: %w", err)
	}
	if s.config == nil {
		if s.config, err = rest.InClusterConfig(); err != nil {
			return fmt.Errorf("becoming the leader: %w: use leader.WithConfig where the pod has no service account", err)
		}
	}
	lock, err := New(s.config, pod, lockName, s.log)
	if err != nil {
		return err
	}
	return s.become(ctx, context.WithoutCancel(ctx), lock)
}

// pod is the pod that the process runs in.
func (s *settings) pod(getenv func(string) string, tokenFile string) (Pod, error) {
	pod, err := podOf(func(name string) string {
		if name == "POD_NAMESPACE" && s.namespace != "" {
			return s.namespace
		}
		return getenv(name)
	}, tokenFile)
	if err == nil && s.namespace != "" && pod.Namespace != s.namespace {
		return Pod{}, fmt.Errorf("the lock cannot be in the namespace %s: its owner, pod %s, is in %s; drop leader.WithNamespace", s.namespace, pod.Name, pod.Namespace)
	}
	return pod, err
}

// become waits until the lock's pod leads. Until life ends, it then calls lost when that is over.
func (s *settings) become(ctx, life context.Context, lock *Lock) error {
	if err := lock.acquire(ctx, s.longest); err != nil {
		return fmt.Errorf("becoming the leader by %s: %w", lock.Describe(), err)
	}
	s.log.Info("leading", "lock", lock.Describe(), "pod", lock.pod.Name)
	go func() {
		if err := lock.hold(life); err != nil {
			s.end(err)
		}
	}()
	return nil
}

// end does what OnLost says.
func (s *settings) end(err error) {
	if s.lost != nil {
		s.lost(err)
		return
	}
	s.log.Error(err, "no longer the leader: the process ends")
	klog.Flush()
	os.Exit(1)
}

// acquire returns nil as soon as the pod has the lock. The time between two looks doubles up to longest; it is the first while
// the pod's claim ripens.
func (l *Lock) acquire(ctx context.Context, longest time.Duration) error {
	first := min(time.Second, longest)
	for delay := first; ; delay = min(2*delay, longest) {
		err := l.try(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errForeign) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err):
			return err
		case errors.Is(err, errClaimed):
			delay = first
		case !errors.Is(err, errTaken):
			l.log.Error(err, "trying again to become the leader", "lock", l.Describe())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait.Jitter(delay, 0.1)):
		}
	}
}

// try takes the lock if it may be taken.
func (l *Lock) try(ctx context.Context) error {
	record, _, err := l.Get(ctx)
	switch {
	case err != nil:
		return err
	case record.HolderIdentity == l.claimant():
		return errClaimed
	case record.HolderIdentity != "" && record.HolderIdentity != l.Identity():
		return errTaken
	}
	return l.Update(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: l.Identity(), LeaderTransitions: record.LeaderTransitions + 1})
}

// hold reads the lock every Period, and returns an error when it is another's or could not be read for Deadline. It returns nil
// when ctx ends.
func (l *Lock) hold(ctx context.Context) error {
	last := l.now().Add(-request) // the write that took the lock was sent no earlier
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(Period):
		}
		now := l.now()
		err := l.renew(ctx)
		if apierrors.IsNotFound(err) {
			err = l.Create(ctx, resourcelock.LeaderElectionRecord{})
		}
		switch {
		case err == nil:
			last = now
		case ctx.Err() == nil && (errors.Is(err, errTaken) || l.now().Sub(last) >= Deadline):
			return fmt.Errorf("holding %s: %w", l.Describe(), err)
		default:
			l.log.Error(err, "reading the lock again", "lock", l.Describe())
		}
	}
	return nil
}
