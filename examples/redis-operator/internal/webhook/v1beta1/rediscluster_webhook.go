// Package v1beta1 validates RedisClusters, and serves the conversion between their versions.
package v1beta1

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	redisv1beta1 "github.com/olmkit/olmkit/examples/redis-operator/api/v1beta1"
	"github.com/olmkit/olmkit/examples/redis-operator/internal/resources"
)

// SetupRedisClusterWebhookWithManager registers the webhooks for RedisCluster in the manager.
func SetupRedisClusterWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &redisv1beta1.RedisCluster{}).
		WithValidator(&RedisClusterCustomValidator{}).
		Complete()
}

// +kubebuilder:webhook:path=/validate-redis-example-com-v1beta1-rediscluster,mutating=false,failurePolicy=fail,sideEffects=None,groups=redis.example.com,resources=redisclusters,verbs=create;update,versions=v1beta1,name=vrediscluster-v1beta1.kb.io,admissionReviewVersions=v1

// RedisClusterCustomValidator validates a RedisCluster when it is created or updated.
type RedisClusterCustomValidator struct{}

var _ admission.Validator[*redisv1beta1.RedisCluster] = &RedisClusterCustomValidator{}

// ValidateCreate refuses what no RedisCluster may say.
func (v *RedisClusterCustomValidator) ValidateCreate(_ context.Context, rc *redisv1beta1.RedisCluster) (admission.Warnings, error) {
	return nil, invalid(rc, validateSpec(&rc.Spec))
}

// ValidateUpdate also refuses changes that cannot be made. An update that leaves the spec as it was is never refused, so
// that finalizers and labels of objects older than a rule can be written.
func (v *RedisClusterCustomValidator) ValidateUpdate(_ context.Context, before, rc *redisv1beta1.RedisCluster) (admission.Warnings, error) {
	if equality.Semantic.DeepEqual(before.Spec, rc.Spec) {
		return nil, nil
	}
	errs := validateSpec(&rc.Spec)
	if before.Spec.Storage.Size.Cmp(rc.Spec.Storage.Size) != 0 {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "storage", "size"), "the size of volumes cannot be changed"))
	}
	return nil, invalid(rc, errs)
}

// ValidateDelete lets every RedisCluster go.
func (v *RedisClusterCustomValidator) ValidateDelete(context.Context, *redisv1beta1.RedisCluster) (admission.Warnings, error) {
	return nil, nil
}

func validateSpec(spec *redisv1beta1.RedisClusterSpec) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if spec.Storage.Size.Sign() < 0 {
		errs = append(errs, field.Invalid(path.Child("storage", "size"), spec.Storage.Size.String(), "a volume needs a size above 0"))
	}
	for key, value := range spec.Config {
		at := path.Child("config").Key(key)
		if slices.Contains(resources.Reserved, key) {
			errs = append(errs, field.Forbidden(at, "the operator sets this directive itself"))
		}
		if key == "" || strings.ContainsAny(key+value, "\r\n") || strings.ContainsAny(key, " \t#") {
			errs = append(errs, field.Invalid(at, value, "a directive is a word, and its value a line"))
		}
	}
	return errs
}

func invalid(rc *redisv1beta1.RedisCluster, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(redisv1beta1.GroupVersion.WithKind("RedisCluster").GroupKind(), rc.Name, errs)
}
