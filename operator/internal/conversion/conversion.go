// Package conversion converts Memcached objects between the versions of their API, without loss in either direction.
//
// Versions form a chain, v1alpha1 - v1beta1 - v1, and each step knows its two neighbours only. What one side of a step
// says and the other cannot is remembered on the converted object, in an annotation named after the version that said
// it, and forgotten when the object is converted back. A remembered value yields to what was written since: whoever
// edits the object in the version that cannot say it wins.
//
// The chain is what lets releases read each other's objects: what release 0.2.0, whose hub is v1beta1,
// stored is read by a later release step by step, each step finding the annotation that it would have written itself.
package conversion

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1alpha1"
	"github.com/olmkit/olmkit/operator/api/v1beta1"
)

var (
	alpha = version[v1alpha1.Memcached]{
		name:     v1alpha1.GroupVersion.Version,
		meta:     func(m *v1alpha1.Memcached) *metav1.ObjectMeta { return &m.ObjectMeta },
		contents: func(m *v1alpha1.Memcached) contents { return contents{&m.Spec, &m.Status} },
	}
	beta = version[v1beta1.Memcached]{
		name:     v1beta1.GroupVersion.Version,
		meta:     func(m *v1beta1.Memcached) *metav1.ObjectMeta { return &m.ObjectMeta },
		contents: func(m *v1beta1.Memcached) contents { return contents{&m.Spec, &m.Status} },
	}
	stable = version[v1.Memcached]{
		name:     v1.GroupVersion.Version,
		meta:     func(m *v1.Memcached) *metav1.ObjectMeta { return &m.ObjectMeta },
		contents: func(m *v1.Memcached) contents { return contents{&m.Spec, &m.Status} },
	}
)

// AlphaWithBeta converts between v1alpha1 and v1beta1, the hub of the release that serves no later version.
func AlphaWithBeta() conversion.SpokeConverter[*v1beta1.Memcached] {
	return conversion.NewSpokeConverter(&v1alpha1.Memcached{},
		func(_ context.Context, src *v1beta1.Memcached, dst *v1alpha1.Memcached) error {
			return betaToAlpha(src, dst)
		},
		func(_ context.Context, src *v1alpha1.Memcached, dst *v1beta1.Memcached) error {
			return alphaToBeta(src, dst)
		})
}

// V1WithBeta converts between v1 and the hub v1beta1, for the release that does not serve v1 yet: while it is upgraded to
// one that does, it is the one that is asked to convert.
func V1WithBeta() conversion.SpokeConverter[*v1beta1.Memcached] {
	return conversion.NewSpokeConverter(&v1.Memcached{},
		func(_ context.Context, src *v1beta1.Memcached, dst *v1.Memcached) error { return betaToV1(src, dst) },
		func(_ context.Context, src *v1.Memcached, dst *v1beta1.Memcached) error { return v1ToBeta(src, dst) })
}

// BetaWithV1 converts between v1beta1 and the hub v1.
func BetaWithV1() conversion.SpokeConverter[*v1.Memcached] {
	return conversion.NewSpokeConverter(&v1beta1.Memcached{},
		func(_ context.Context, src *v1.Memcached, dst *v1beta1.Memcached) error { return v1ToBeta(src, dst) },
		func(_ context.Context, src *v1beta1.Memcached, dst *v1.Memcached) error { return betaToV1(src, dst) })
}

// AlphaWithV1 converts between v1alpha1 and the hub v1, by way of v1beta1.
func AlphaWithV1() conversion.SpokeConverter[*v1.Memcached] {
	return conversion.NewSpokeConverter(&v1alpha1.Memcached{},
		func(_ context.Context, src *v1.Memcached, dst *v1alpha1.Memcached) error {
			var via v1beta1.Memcached
			if err := v1ToBeta(src, &via); err != nil {
				return err
			}
			return betaToAlpha(&via, dst)
		},
		func(_ context.Context, src *v1alpha1.Memcached, dst *v1.Memcached) error {
			var via v1beta1.Memcached
			if err := alphaToBeta(src, &via); err != nil {
				return err
			}
			return betaToV1(&via, dst)
		})
}

func alphaToBeta(src *v1alpha1.Memcached, dst *v1beta1.Memcached) error {
	return convert(alpha, beta, src, dst, alphaAsBeta, betaAsAlpha)
}

func betaToAlpha(src *v1beta1.Memcached, dst *v1alpha1.Memcached) error {
	return convert(beta, alpha, src, dst, betaAsAlpha, alphaAsBeta)
}

func betaToV1(src *v1beta1.Memcached, dst *v1.Memcached) error {
	return convert(beta, stable, src, dst, betaAsV1, v1AsBeta)
}

func v1ToBeta(src *v1.Memcached, dst *v1beta1.Memcached) error {
	return convert(stable, beta, src, dst, v1AsBeta, betaAsV1)
}

// The four functions below translate what both sides of a step can say. Where the target has a default and the source
// is silent, they write what the source's silence means: the defaults of two versions differ, and an object must not
// change its meaning by being read in another version.

func alphaAsBeta(src *v1alpha1.Memcached, dst *v1beta1.Memcached) {
	dst.Spec = v1beta1.MemcachedSpec{Size: src.Spec.Size, ContainerPort: v1beta1.DefaultContainerPort}
	dst.Status = v1beta1.MemcachedStatus{Nodes: slices.Clone(src.Status.Nodes)}
}

func betaAsAlpha(src *v1beta1.Memcached, dst *v1alpha1.Memcached) {
	dst.Spec = v1alpha1.MemcachedSpec{Size: orDefault(src.Spec.Size, v1beta1.DefaultSize)}
	dst.Status = v1alpha1.MemcachedStatus{Nodes: slices.Clone(src.Status.Nodes)}
}

func betaAsV1(src *v1beta1.Memcached, dst *v1.Memcached) {
	dst.Spec = v1.MemcachedSpec{
		Replicas: orDefault(src.Spec.Size, v1beta1.DefaultSize),
		Image:    SplitImage(src.Spec.Image),
		Service:  v1.Service{Port: orDefault(src.Spec.ContainerPort, v1beta1.DefaultContainerPort)},
		Cache:    v1.Cache{MemoryMegabytes: v1.DefaultMemoryMegabytes, MaxConnections: v1.DefaultMaxConnections},
	}
	dst.Status = v1.MemcachedStatus{Conditions: cloneConditions(src.Status.Conditions)}
	if len(src.Status.Nodes) > 0 {
		dst.Status.Nodes = make(map[string]v1.Node, len(src.Status.Nodes))
		for _, name := range src.Status.Nodes {
			dst.Status.Nodes[name] = v1.Node{}
		}
	}
}

func v1AsBeta(src *v1.Memcached, dst *v1beta1.Memcached) {
	dst.Spec = v1beta1.MemcachedSpec{
		Size:          orDefault(src.Spec.Replicas, v1.DefaultReplicas),
		ContainerPort: orDefault(src.Spec.Service.Port, v1.DefaultPort),
		Image:         JoinImage(src.Spec.Image),
	}
	dst.Status = v1beta1.MemcachedStatus{
		Nodes:      slices.Sorted(maps.Keys(src.Status.Nodes)),
		Conditions: cloneConditions(src.Status.Conditions),
	}
}

func orDefault(value, fallback int32) int32 {
	if value == 0 {
		return fallback
	}
	return value
}

func cloneConditions(conditions []metav1.Condition) []metav1.Condition {
	if conditions == nil {
		return nil
	}
	clone := make([]metav1.Condition, len(conditions))
	for i := range conditions {
		conditions[i].DeepCopyInto(&clone[i])
	}
	return clone
}
