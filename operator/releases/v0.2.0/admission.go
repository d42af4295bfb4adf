package main

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/olmkit/olmkit/operator/api/v1beta1"
	"github.com/olmkit/olmkit/operator/internal/admission"
)

// matchPolicy Exact keeps v1alpha1 out of it: its schema says all there is to say, and a request that had to be
// converted for a webhook would depend on the conversion webhook.
//
// +kubebuilder:webhook:path=/mutate-cache-example-com-v1beta1-memcached,mutating=true,failurePolicy=ignore,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=cache.example.com,resources=memcacheds,verbs=create;update,versions=v1beta1,name=mmemcached-v1beta1.cache.example.com,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate-cache-example-com-v1beta1-memcached,mutating=false,failurePolicy=ignore,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=cache.example.com,resources=memcacheds,verbs=create;update,versions=v1beta1,name=vmemcached-v1beta1.cache.example.com,admissionReviewVersions=v1

type defaulter struct{}

// Default takes from an image what is no part of a reference.
func (defaulter) Default(_ context.Context, m *v1beta1.Memcached) error {
	m.Spec.Image = strings.TrimPrefix(strings.TrimSpace(m.Spec.Image), "docker://")
	return nil
}

type validator struct{}

func (validator) ValidateCreate(_ context.Context, m *v1beta1.Memcached) (webhook.Warnings, error) {
	return admission.ImageWarnings("spec.image", m.Spec.Image), check(m)
}

func (validator) ValidateUpdate(_ context.Context, _, m *v1beta1.Memcached) (webhook.Warnings, error) {
	if !m.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return admission.ImageWarnings("spec.image", m.Spec.Image), check(m)
}

func (validator) ValidateDelete(context.Context, *v1beta1.Memcached) (webhook.Warnings, error) {
	return nil, nil
}

func check(m *v1beta1.Memcached) error {
	if m.Spec.Image == "" {
		return nil
	}
	if err := admission.CheckImage(m.Spec.Image); err != nil {
		return apierrors.NewInvalid(v1beta1.GroupVersion.WithKind("Memcached").GroupKind(), m.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "image"), m.Spec.Image, err.Error()),
		})
	}
	return nil
}
