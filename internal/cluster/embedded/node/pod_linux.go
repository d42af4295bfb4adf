package node

import (
	"cmp"
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// pod runs one pod: its own goroutine lays the ground and starts a goroutine for each container; all of them speak to
// the API through status alone.
type pod struct {
	node     *Node
	key      string // namespace/name
	dir      string
	idle     bool // nothing of it runs: all its images are simulated
	endpoint *endpoint

	stop    context.CancelFunc // asks the containers to end
	stopped chan struct{}      // closed when all have ended

	// Only the worker that has the pod uses these.
	written *corev1.Pod // as the API answered the last write of its status; nil if the watch has that or a later one
	removed bool        // its final deletion was asked for

	volumes map[string]string // directories by name of the volume, all there before a container starts

	object atomic.Pointer[corev1.Pod] // as the API has it; replaced, never changed

	mu         sync.Mutex
	status     corev1.PodStatus
	containers map[string]*container
	tokens     map[string]token
	deadline   time.Time // by which containers that were asked to end have to
}

func (n *Node) newPod(object *corev1.Pod) *pod {
	ctx, stop := context.WithCancel(context.Background())
	p := &pod{
		node:       n,
		key:        object.Namespace + "/" + object.Name,
		dir:        filepath.Join(n.config.Dir, PodsDir, string(object.UID)),
		stop:       stop,
		stopped:    make(chan struct{}),
		volumes:    map[string]string{},
		containers: map[string]*container{},
		tokens:     map[string]token{},
	}
	p.update(object)
	p.status = corev1.PodStatus{
		Phase:     corev1.PodPending,
		StartTime: ptr.To(now()),
		HostIP:    n.config.Network.HostAddress().String(),
		HostIPs:   []corev1.HostIP{{IP: n.config.Network.HostAddress().String()}},
	}
	spec := &p.current().Spec
	for i := range spec.InitContainers {
		p.containers[spec.InitContainers[i].Name] = newContainer(p, &spec.InitContainers[i], true)
	}
	for i := range spec.Containers {
		p.containers[spec.Containers[i].Name] = newContainer(p, &spec.Containers[i], false)
	}
	p.idle = !p.hasProgram()
	go p.run(ctx)
	return p
}

// current returns the pod as the API last had it.
func (p *pod) current() *corev1.Pod { return p.object.Load() }

// update takes a changed pod: what can change in a running one is seen by the downward API only.
func (p *pod) update(object *corev1.Pod) { p.object.Store(object) }

func (p *pod) run(ctx context.Context) {
	defer p.finish()
	p.changed()
	if !p.retry(ctx, "FailedCreatePodSandBox", p.attach) {
		return
	}
	defer p.endpoint.Close()
	if why := p.refusal(); why != "" {
		p.refuse(ctx, why)
		return
	}
	p.mu.Lock()
	p.status.PodIP = p.endpoint.address.String()
	p.status.PodIPs = []corev1.PodIP{{IP: p.status.PodIP}}
	p.mu.Unlock()
	if !p.retry(ctx, "FailedMount", p.mountVolumes) {
		return
	}
	refresh, stopRefresh := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRefresh()
	go p.keepVolumesFresh(refresh)

	var running sync.WaitGroup
	defer running.Wait()
	spec := &p.current().Spec
	for i := range spec.InitContainers {
		c := p.containers[spec.InitContainers[i].Name]
		if ptr.Deref(spec.InitContainers[i].RestartPolicy, "") == corev1.ContainerRestartPolicyAlways { // a sidecar
			running.Go(func() { c.run(ctx) })
			if !c.waitStarted(ctx) {
				return
			}
			continue
		}
		if !c.run(ctx) {
			if ctx.Err() == nil { // it failed for good
				p.changed()
				<-ctx.Done()
			}
			return
		}
	}
	p.mu.Lock()
	for _, c := range p.containers {
		if !c.init && c.state.Waiting != nil {
			c.state.Waiting.Reason = "ContainerCreating"
		}
	}
	p.mu.Unlock()
	for i := range spec.Containers {
		c := p.containers[spec.Containers[i].Name]
		running.Go(func() { c.run(ctx) })
	}
	running.Wait()
	p.changed()
}

// attach gives the pod its network.
func (p *pod) attach(context.Context) (err error) {
	p.endpoint, err = p.node.attach(p.idle)
	return err
}

// retry calls f until it returns nil, as the kubelet does what a pod needs before its containers start, and returns false if
// ctx ends before. Each new error is told in an event with reason.
func (p *pod) retry(ctx context.Context, reason string, f func(context.Context) error) bool {
	last := ""
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := f(ctx)
		if err == nil {
			return true
		}
		if last != err.Error() {
			last = err.Error()
			p.node.event(p.current(), corev1.EventTypeWarning, reason, last)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
}

func (p *pod) keepVolumesFresh(ctx context.Context) {
	ticker := time.NewTicker(refreshPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.refreshVolumes(ctx)
		}
	}
}

// finish leaves nothing of a pod whose containers have ended but its status.
func (p *pod) finish() {
	_ = removeAll(p.dir) // it goes with the cluster
	p.mu.Lock()
	for _, c := range p.containers {
		if c.state.Terminated == nil {
			c.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: now()}}
		}
		c.ready = false
	}
	p.mu.Unlock()
	close(p.stopped)
	p.changed()
}

// end asks the containers to end within grace, and returns true once they have. Asked once more, it gives them less time if that is
// sooner, as a kubelet does.
func (p *pod) end(grace time.Duration) bool {
	p.mu.Lock()
	if deadline := time.Now().Add(grace); p.deadline.IsZero() || deadline.Before(p.deadline) {
		p.deadline = deadline
	}
	p.mu.Unlock()
	p.stop()
	select {
	case <-p.stopped:
		return true
	default:
		return false
	}
}

// changed has the node tell the API of a changed status, soon.
func (p *pod) changed() { p.node.queue.Add(p.key) }

// now is the present time as the API keeps it: in whole seconds.
func now() metav1.Time { return metav1.Now().Rfc3339Copy() }

// snapshot returns the pod's present status.
func (p *pod) snapshot() *corev1.PodStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	spec := &p.current().Spec
	status := p.status.DeepCopy()
	initialized, ready, running, failed, ended := true, true, false, false, true
	initFailed := false
	for i := range spec.InitContainers {
		c := p.containers[spec.InitContainers[i].Name]
		s := c.status()
		status.InitContainerStatuses = append(status.InitContainerStatuses, s)
		sidecar := ptr.Deref(spec.InitContainers[i].RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
		if sidecar {
			initialized = initialized && ptr.Deref(s.Started, false)
			ready = ready && s.Ready
		} else if s.State.Terminated == nil || s.State.Terminated.ExitCode != 0 {
			initialized = false
			initFailed = initFailed || s.State.Terminated != nil && spec.RestartPolicy == corev1.RestartPolicyNever
		}
	}
	for i := range spec.Containers {
		s := p.containers[spec.Containers[i].Name].status()
		status.ContainerStatuses = append(status.ContainerStatuses, s)
		ready = ready && s.Ready
		running = running || s.State.Waiting == nil || s.LastTerminationState.Terminated != nil
		ended = ended && s.State.Terminated != nil && endsWith(spec.RestartPolicy, s.State.Terminated.ExitCode)
		failed = failed || s.State.Terminated != nil && s.State.Terminated.ExitCode != 0
	}
	switch {
	case ended && failed, initFailed:
		status.Phase = corev1.PodFailed
	case ended:
		status.Phase = corev1.PodSucceeded
	case running:
		status.Phase = corev1.PodRunning
	}
	ready = ready && initialized && !ended
	for _, condition := range []struct {
		kind corev1.PodConditionType
		ok   bool
	}{
		{corev1.PodScheduled, true},
		{corev1.PodReadyToStartContainers, status.PodIP != ""},
		{corev1.PodInitialized, initialized},
		{corev1.ContainersReady, ready},
		{corev1.PodReady, ready},
	} {
		setCondition(&p.status, condition.kind, condition.ok)
	}
	status.Conditions = append([]corev1.PodCondition(nil), p.status.Conditions...)
	p.status.Phase = status.Phase
	return status
}

// endsWith tells whether a container that ended with code stays ended.
func endsWith(policy corev1.RestartPolicy, code int32) bool {
	return policy == corev1.RestartPolicyNever || policy == corev1.RestartPolicyOnFailure && code == 0
}

func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, ok bool) {
	value, reason := corev1.ConditionTrue, ""
	if !ok {
		value, reason = corev1.ConditionFalse, "ContainersNotReady"
	}
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == kind {
			if c.Status != value {
				c.Status, c.Reason, c.LastTransitionTime = value, reason, now()
			}
			return
		}
	}
	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: value, Reason: reason, LastTransitionTime: now()})
}

// ends returns when the containers, which were asked to end, have to.
func (p *pod) ends() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deadline
}

// endsWithin returns when a container that was given so long from now has to end: sooner if the pod is deleted meanwhile.
func (p *pod) endsWithin(grace time.Duration) func() time.Time {
	deadline := time.Now().Add(grace)
	return func() time.Time {
		if ends := p.ends(); !ends.IsZero() && ends.Before(deadline) {
			return ends
		}
		return deadline
	}
}

// graceOf returns how long the pod's containers have to end after they were asked to.
func graceOf(object *corev1.Pod) time.Duration {
	seconds := cmp.Or(object.DeletionGracePeriodSeconds, object.Spec.TerminationGracePeriodSeconds, ptr.To[int64](30))
	return time.Duration(*seconds) * time.Second
}
