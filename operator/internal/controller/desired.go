package controller

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/internal/conversion"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

func replicas(m *v1.Memcached) int32 {
	if m.Spec.Replicas == 0 {
		return v1.DefaultReplicas
	}
	return m.Spec.Replicas
}

// Desired is what a Memcached asks for, with image where it names none.
func Desired(m *v1.Memcached, image string) operand.Desired {
	d := operand.DesiredFor(m, v1.GroupVersion.String())
	d.Replicas = replicas(m)
	d.Image = image
	if asked := m.Spec.Image; asked != nil {
		complete := *asked
		if complete.Repository == "" && (complete.Tag != "" || complete.Digest != "") {
			complete.Repository = conversion.SplitImage(image).Repository
		}
		if reference := conversion.JoinImage(&complete); reference != "" {
			d.Image = reference
		}
		d.PullPolicy = asked.PullPolicy
	}
	d.Port = m.Spec.Service.Port
	d.MemoryMegabytes = m.Spec.Cache.MemoryMegabytes
	d.MaxConnections = m.Spec.Cache.MaxConnections
	d.ExtraArgs = m.Spec.Cache.ExtraArgs
	if r := m.Spec.Resources; r != nil {
		d.Resources.Requests = resourceList(r.Requests)
		d.Resources.Limits = resourceList(r.Limits)
	}
	return d
}

func resourceList(l v1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	if l.CPU != nil {
		out[corev1.ResourceCPU] = *l.CPU
	}
	if l.Memory != nil {
		out[corev1.ResourceMemory] = *l.Memory
	}
	return out
}
