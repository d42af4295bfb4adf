package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/embedded/sandbox"
)

// The kubelet's pace of restarts: at once, then after 10 s, doubled up to 5 min, and at once again after a container has
// run for 10 min (k8s.io/kubernetes v1.36 pkg/kubelet/kubelet.go, backOffPeriod and MaxCrashLoopBackOff).
const (
	firstBackOff   = 10 * time.Second
	longestBackOff = 5 * time.Minute
	backOffReset   = 10 * time.Minute
)

// nobody is the user of a container that must not run as root and names no user.
const nobody = 65532

// container runs one container of a pod. The pod's mutex guards what is below it.
type container struct {
	pod  *pod
	spec *corev1.Container
	init bool

	state, last corev1.ContainerState
	ready       bool
	started     bool
	restarts    int32
	id          string
	process     *sandbox.Process
	env         []string
	log         *runLog
	previousLog *runLog
}

func newContainer(p *pod, spec *corev1.Container, init bool) *container {
	reason := "ContainerCreating"
	if !init && len(p.current().Spec.InitContainers) > 0 {
		reason = "PodInitializing"
	}
	return &container{pod: p, spec: spec, init: init, log: newRunLog(), state: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

// status returns a copy. It is called with the pod's mutex held.
func (c *container) status() corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: c.spec.Name, State: *c.state.DeepCopy(), LastTerminationState: *c.last.DeepCopy(), Ready: c.ready, Started: ptr.To(c.started),
		RestartCount: c.restarts, Image: c.spec.Image, ImageID: c.spec.Image, ContainerID: c.id,
	}
}

// set changes the container's status and tells the API.
func (c *container) set(change func()) {
	c.pod.mu.Lock()
	change()
	c.pod.mu.Unlock()
	c.pod.changed()
}

// waitStarted waits until the container has started, and returns false if ctx ends before.
func (c *container) waitStarted(ctx context.Context) bool {
	for {
		c.pod.mu.Lock()
		started := c.started
		c.pod.mu.Unlock()
		if started {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// run runs the container, again and again if its restart policy says so, until it has ended for good or ctx ends. It
// returns true if the last run ended well.
func (c *container) run(ctx context.Context) bool {
	policy := c.pod.current().Spec.RestartPolicy
	if c.init && policy == corev1.RestartPolicyAlways {
		policy = corev1.RestartPolicyOnFailure
	}
	if ptr.Deref(c.spec.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
		policy = corev1.RestartPolicyAlways
	}
	if _, err := reference.ParseNormalizedNamed(c.spec.Image); err != nil {
		c.cannotPull(ctx, err)
		return false
	}
	backOff := time.Duration(0)
	for {
		began := time.Now()
		terminated := c.runOnce(ctx, policy)
		c.set(func() {
			c.state = corev1.ContainerState{Terminated: terminated}
			c.ready, c.started, c.process = false, false, nil
		})
		if ctx.Err() != nil {
			return terminated.ExitCode == 0
		}
		if endsWith(policy, terminated.ExitCode) {
			return terminated.ExitCode == 0
		}
		if time.Since(began) > backOffReset {
			backOff = 0
		}
		if backOff > 0 {
			c.pod.node.event(c.pod.current(), corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container "+c.spec.Name)
			c.set(func() {
				c.last = corev1.ContainerState{Terminated: terminated}
				reason, message := "CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container %s", backOff, c.spec.Name)
				if terminated.Reason == "StartError" {
					reason, message = "CreateContainerError", terminated.Message
				}
				c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
			})
		}
		select {
		case <-ctx.Done():
			c.set(func() { c.state = corev1.ContainerState{Terminated: terminated} })
			return false
		case <-time.After(backOff):
		}
		backOff = min(max(firstBackOff, 2*backOff), longestBackOff)
		c.set(func() {
			c.last = corev1.ContainerState{Terminated: terminated}
			c.restarts++
			c.previousLog, c.log = c.log, newRunLog()
		})
	}
}

// cannotPull has the container wait until ctx is done for an image whose reference is none, as the kubelet does
// (k8s.io/kubernetes v1.36 pkg/kubelet/images/image_manager.go).
func (c *container) cannotPull(ctx context.Context, err error) {
	message := fmt.Sprintf("Failed to apply default image tag %q: couldn't parse image name: %v", c.spec.Image, err)
	c.pod.node.event(c.pod.current(), corev1.EventTypeWarning, "InspectFailed", message)
	c.set(func() {
		c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "InvalidImageName", Message: message}}
	})
	<-ctx.Done()
}

// runOnce runs the container's program to its end.
func (c *container) runOnce(ctx context.Context, policy corev1.RestartPolicy) *corev1.ContainerStateTerminated {
	began := now()
	finish := func(code int, reason, message string) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: int32(code), Reason: reason, Message: message, StartedAt: began, FinishedAt: now(), ContainerID: c.id}
	}
	source, ok := c.pod.node.config.Images.Source(c.spec.Image)
	if !ok || c.pod.idle {
		c.set(func() {
			c.id = cluster.SimulatedContainer + string(c.pod.current().UID) + "/" + c.spec.Name
			c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}
			c.ready, c.started = true, true
		})
		if policy == corev1.RestartPolicyAlways {
			<-ctx.Done()
		}
		return finish(0, "Completed", "simulated: the image is not at hand, nothing ran")
	}
	log := c.log
	process, err := c.start(ctx, source, log)
	if err != nil {
		fmt.Fprintln(log, err)
		_ = log.Close()
		c.pod.node.event(c.pod.current(), corev1.EventTypeWarning, "Failed", fmt.Sprintf("container %s: %v", c.spec.Name, err))
		return finish(128, "StartError", err.Error())
	}
	c.set(func() {
		c.process = process
		c.id = fmt.Sprintf("process://%d/%s/%s", c.restarts, c.pod.current().UID, c.spec.Name)
		c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}
		c.started = c.spec.StartupProbe == nil
		c.ready = c.started && c.spec.ReadinessProbe == nil
	})
	c.pod.node.event(c.pod.current(), corev1.EventTypeNormal, "Started", "Started container "+c.spec.Name)

	exited := make(chan int, 1)
	go func() { exited <- process.Wait() }()
	probing, stopProbing := context.WithCancel(ctx)
	unhealthy := make(chan string, 1)
	var probes sync.WaitGroup
	probes.Go(func() { c.probe(probing, process, unhealthy) })
	defer probes.Wait()
	defer stopProbing()
	defer func() { _ = log.Close() }()

	select {
	case code := <-exited:
		return finish(code, reasonOf(code), c.lastWords(ctx, code))
	case <-ctx.Done():
		stopProbing()
		code := c.terminate(process, exited, c.pod.ends)
		return finish(code, reasonOf(code), "")
	case why := <-unhealthy:
		c.pod.node.event(c.pod.current(), corev1.EventTypeWarning, "Unhealthy", why)
		c.pod.node.event(c.pod.current(), corev1.EventTypeNormal, "Killing", "Container "+c.spec.Name+" failed its probe and will be restarted")
		return finish(c.terminate(process, exited, c.pod.endsWithin(graceOf(c.pod.current()))), "Error", why)
	}
}

// reasonOf is how a kubelet calls the end of a container that exited with code.
func reasonOf(code int) string {
	if code != 0 {
		return "Error"
	}
	return "Completed"
}

// lastWords is the end of the log of a container that exited with code, where its termination message is to be that.
func (c *container) lastWords(ctx context.Context, code int) string {
	if code == 0 || c.spec.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		return ""
	}
	var tail strings.Builder
	_ = c.log.copy(ctx, &tail, logOptions{tail: ptr.To[int64](80)})
	return tail.String()[max(0, tail.Len()-2048):]
}

// terminate asks the program to end, and ends it at deadline, which may come nearer meanwhile.
func (c *container) terminate(process *sandbox.Process, exited <-chan int, deadline func() time.Time) int {
	over := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer close(over)
		for ctx.Err() == nil && time.Now().Before(deadline()) {
			time.Sleep(min(time.Until(deadline()), 100*time.Millisecond))
		}
		cancel()
	}()
	if c.spec.Lifecycle != nil && c.spec.Lifecycle.PreStop != nil {
		c.preStop(ctx, process, c.spec.Lifecycle.PreStop)
	}
	_ = process.Terminate()
	select {
	case code := <-exited:
		return code
	case <-over:
	}
	_ = process.Signal(syscall.SIGKILL)
	return <-exited
}

func (c *container) preStop(ctx context.Context, process *sandbox.Process, hook *corev1.LifecycleHandler) {
	var err error
	switch {
	case hook.Exec != nil:
		_, err = process.Exec(ctx, hook.Exec.Command, c.env, nil, c.log, c.log)
	case hook.HTTPGet != nil:
		err = checkHTTP(ctx, hook.HTTPGet, c.pod.endpoint.address.String(), c.spec)
	case hook.Sleep != nil:
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(hook.Sleep.Seconds) * time.Second):
		}
	}
	if err != nil {
		c.pod.node.event(c.pod.current(), corev1.EventTypeWarning, "FailedPreStopHook", err.Error())
	}
}

// probe runs the container's probes until ctx ends; a reason to restart it goes to unhealthy.
func (c *container) probe(ctx context.Context, process *sandbox.Process, unhealthy chan<- string) {
	address := c.pod.endpoint.address.String()
	run := func(ctx context.Context, command []string, in io.Reader, out, errOut io.Writer) (int, error) {
		return process.Exec(ctx, command, c.env, in, out, errOut)
	}
	if probe := c.spec.StartupProbe; probe != nil {
		startup, done := context.WithCancel(ctx)
		watch(startup, probe, address, c.spec, run, false, func(ok bool, message string) {
			if !ok {
				unhealthy <- "Startup probe failed: " + message
			}
			done()
			if ok {
				c.set(func() { c.started, c.ready = true, c.spec.ReadinessProbe == nil })
			}
		})
		done()
		c.pod.mu.Lock()
		started := c.started
		c.pod.mu.Unlock()
		if !started {
			return
		}
	}
	var probes sync.WaitGroup
	defer probes.Wait()
	if probe := c.spec.ReadinessProbe; probe != nil {
		probes.Go(func() {
			watch(ctx, probe, address, c.spec, run, false, func(ok bool, message string) {
				if !ok {
					c.pod.node.event(c.pod.current(), corev1.EventTypeWarning, "Unhealthy", "Readiness probe failed: "+message)
				}
				c.set(func() { c.ready = ok })
			})
		})
	}
	if probe := c.spec.LivenessProbe; probe != nil {
		probes.Go(func() {
			watch(ctx, probe, address, c.spec, run, true, func(ok bool, message string) {
				if !ok {
					select {
					case unhealthy <- "Liveness probe failed: " + message:
					default:
					}
				}
			})
		})
	}
}

// start starts the container's program from source.
func (c *container) start(ctx context.Context, source string, log io.Writer) (*sandbox.Process, error) {
	p := c.pod
	env, err := p.environment(ctx, c.spec)
	if err != nil {
		return nil, err
	}
	vars := func(name string) (string, bool) {
		for _, e := range env {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
	var command []string
	for _, word := range append(append([]string{}, c.spec.Command...), c.spec.Args...) {
		command = append(command, expand(word, vars))
	}
	config := sandbox.Container{
		Scratch:  filepath.Join(p.dir, "containers", c.spec.Name),
		Env:      env,
		Dir:      c.spec.WorkingDir,
		Hostname: hostname(p.current()),
		Files: map[string]string{
			"etc/hosts":       hostsFile(p.current(), p.endpoint.address),
			"etc/resolv.conf": resolverFile(p.current(), p.node.config.DNS),
		},
		MissingFiles: map[string]string{
			"etc/passwd": fmt.Sprintf("root:x:0:0:root:/:/bin/sh\nnonroot:x:%d:%d:nonroot:/:/bin/sh\n", nobody, nobody),
			"etc/group":  fmt.Sprintf("root:x:0:\nnonroot:x:%d:\n", nobody),
		},
	}
	if err := os.MkdirAll(config.Scratch, 0o755); err != nil {
		return nil, err
	}
	config.Mounts = p.mounts(c.spec, vars)
	if err := c.program(&config, source, command); err != nil {
		return nil, err
	}
	c.identity(&config)
	p.mu.Lock()
	c.env = env
	p.mu.Unlock()
	return sandbox.Start(config, p.endpoint.handle, log)
}

// program has config run command by what is at source: a folder that is the container's root, or the image's program alone.
func (c *container) program(config *sandbox.Container, source string, command []string) error {
	info, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("image %s: %w", c.spec.Image, err)
	}
	if info.IsDir() {
		if len(command) == 0 || len(c.spec.Command) == 0 {
			return fmt.Errorf("image %s is the directory %s, and the pod names no command to run in it", c.spec.Image, source)
		}
		config.Image, config.Command = source, command
		return nil
	}
	target := "/entrypoint/" + filepath.Base(source)
	switch {
	case len(c.spec.Command) == 0:
		command = append([]string{target}, command...)
	case path.IsAbs(command[0]):
		target = command[0]
	default:
		target = "/usr/local/bin/" + path.Base(command[0])
		command[0] = target
	}
	mounts, err := sandbox.ProgramMounts(source, target)
	if err != nil {
		return fmt.Errorf("image %s: %w", c.spec.Image, err)
	}
	config.Mounts, config.Command = append(mounts, config.Mounts...), command
	return nil
}

// identity sets the user and groups that the security contexts ask for, where the node can give them.
func (c *container) identity(config *sandbox.Container) {
	outer, inner := c.pod.current().Spec.SecurityContext, c.spec.SecurityContext
	if outer == nil {
		outer = &corev1.PodSecurityContext{}
	}
	if inner == nil {
		inner = &corev1.SecurityContext{}
	}
	config.ReadOnlyRoot = ptr.Deref(inner.ReadOnlyRootFilesystem, false)
	if !c.pod.node.config.Users {
		return
	}
	user, group := first(inner.RunAsUser, outer.RunAsUser), first(inner.RunAsGroup, outer.RunAsGroup)
	switch {
	case user != nil:
		config.User.UID = int(*user)
	case ptr.Deref(inner.RunAsNonRoot, ptr.Deref(outer.RunAsNonRoot, false)):
		config.User.UID, config.User.GID = nobody, nobody
	}
	if group != nil {
		config.User.GID = int(*group)
	}
	for _, g := range outer.SupplementalGroups {
		config.User.Groups = append(config.User.Groups, int(g))
	}
	if outer.FSGroup != nil {
		config.User.Groups = append(config.User.Groups, int(*outer.FSGroup))
	}
}

func first(values ...*int64) *int64 {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}

var errNotRunning = errors.New("the container is not running")

// exec runs command in the running container. In a simulated one it ends well and says nothing, as everything else there does: an
// operator that runs a tool in its operand would fail for ever otherwise.
func (c *container) exec(ctx context.Context, command []string, in io.Reader, out, errOut io.Writer) (int, error) {
	c.pod.mu.Lock()
	process, env, runs := c.process, c.env, c.state.Running != nil
	c.pod.mu.Unlock()
	switch {
	case process != nil:
		return process.Exec(ctx, command, env, in, out, errOut)
	case runs:
		return 0, nil
	}
	return 0, errNotRunning
}
