package node

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/olmkit/olmkit/internal/cluster"
)

// refusal says why a pod is not run, "" if it may be. Where nothing of it would run, because its images are simulated, what
// it asks for does no harm.
func (p *pod) refusal() string {
	wants := p.demands()
	if p.idle || len(wants) == 0 {
		return ""
	}
	return strings.Join(wants, ", ") + ": programs on an embedded cluster are given no way to this machine; run them on a cluster of --cluster kind"
}

// hasProgram reports whether a container of the pod has an image that can be run.
func (p *pod) hasProgram() (has bool) {
	p.eachContainer(func(c *corev1.Container) { has = has || p.node.config.Images.has(c.Image) })
	return has
}

// demands lists what of the machine the pod asks for.
func (p *pod) demands() []string {
	spec := &p.current().Spec
	var wants []string
	add := func(want bool, what string) {
		if want {
			wants = append(wants, what)
		}
	}
	add(spec.HostNetwork, "hostNetwork")
	add(spec.HostPID, "hostPID")
	add(spec.HostIPC, "hostIPC")
	p.eachContainer(func(c *corev1.Container) {
		if c.SecurityContext == nil {
			return
		}
		add(ptr.Deref(c.SecurityContext.Privileged, false), "privileged container "+c.Name)
		add(ptr.Deref(c.SecurityContext.ProcMount, corev1.DefaultProcMount) != corev1.DefaultProcMount, "procMount of container "+c.Name)
	})
	for _, v := range p.usedVolumes() {
		add(v.HostPath != nil, "hostPath volume "+v.Name)
	}
	return wants
}

// eachContainer calls f with every container of the pod.
func (p *pod) eachContainer(f func(*corev1.Container)) {
	spec := &p.current().Spec
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			f(&containers[i])
		}
	}
}

// refuse has all containers wait until ctx is done. The pod stays pending: one that has failed would be replaced by another,
// again and again.
func (p *pod) refuse(ctx context.Context, why string) {
	p.node.event(p.current(), corev1.EventTypeWarning, cluster.PodRefused, why)
	p.mu.Lock()
	for _, c := range p.containers {
		c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: cluster.PodRefused, Message: why}}
	}
	p.mu.Unlock()
	p.changed()
	<-ctx.Done()
}
