// Package admission judges and completes Memcacheds as they are written.
//
// Nothing rests on it alone. What must always hold is in the schema, which the API server enforces itself, and what is
// wrong here is Degraded in the status; so the webhooks may be passed over while no manager serves them (failurePolicy
// Ignore), and an upgrade of the operator stops nobody from writing.
package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/internal/conversion"
)

// +kubebuilder:webhook:path=/mutate-cache-example-com-v1-memcached,mutating=true,failurePolicy=ignore,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=5,groups=cache.example.com,resources=memcacheds,verbs=create;update,versions=v1,name=mmemcached-v1.cache.example.com,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate-cache-example-com-v1-memcached,mutating=false,failurePolicy=ignore,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=5,groups=cache.example.com,resources=memcacheds,verbs=create;update,versions=v1,name=vmemcached-v1.cache.example.com,admissionReviewVersions=v1

// defaultPath is where the API server sends Memcacheds to be completed.
const defaultPath = "/mutate-cache-example-com-v1-memcached"

// Serve makes a manager complete and judge the Memcacheds that the API server sends; image is the default one.
func Serve(mgr ctrl.Manager, image string) error {
	hook := admission.WithDefaulter(mgr.GetScheme(), Defaulter{Image: image})
	hook.Handler = readable{hook.Handler, admission.NewDecoder(mgr.GetScheme())}
	mgr.GetWebhookServer().Register(defaultPath, hook)
	return ctrl.NewWebhookManagedBy(mgr, &v1.Memcached{}).WithValidator(Validator{}).Complete()
}

// readable lets what is no Memcached pass: the API server asks before it looks at the schema, and then says better than
// a decoder what is wrong, and where.
type readable struct {
	admission.Handler
	decoder admission.Decoder
}

// Handle answers one review.
func (r readable) Handle(ctx context.Context, request admission.Request) admission.Response {
	if r.decoder.Decode(request, &v1.Memcached{}) != nil {
		return admission.Allowed("the schema tells what is wrong")
	}
	return r.Handler.Handle(ctx, request)
}

// Defaulter completes what the schema's defaults cannot.
type Defaulter struct {
	// Image is the operator's default image.
	Image string
}

// Default puts an image in order: a reference pasted whole into the repository is taken apart, and a tag or digest
// without a repository gets that of the default image.
func (d Defaulter) Default(_ context.Context, m *v1.Memcached) error {
	image := m.Spec.Image
	if image == nil {
		return nil
	}
	image.Repository = strings.TrimPrefix(strings.TrimSpace(image.Repository), "docker://")
	if image.Tag == "" && image.Digest == "" {
		if parts := conversion.SplitImage(image.Repository); parts != nil {
			image.Repository, image.Tag, image.Digest = parts.Repository, parts.Tag, parts.Digest
		}
	}
	if image.Repository == "" && (image.Tag != "" || image.Digest != "") {
		image.Repository = conversion.SplitImage(d.Image).Repository
	}
	return nil
}

// Validator refuses what could not run.
type Validator struct{}

// ValidateCreate judges a new object.
func (Validator) ValidateCreate(_ context.Context, m *v1.Memcached) (admission.Warnings, error) {
	return Warnings(m), Check(m)
}

// ValidateUpdate judges a changed object. One that is on its way out may always be changed, or it could not leave.
func (Validator) ValidateUpdate(_ context.Context, _, m *v1.Memcached) (admission.Warnings, error) {
	if !m.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return Warnings(m), Check(m)
}

// ValidateDelete allows every deletion.
func (Validator) ValidateDelete(context.Context, *v1.Memcached) (admission.Warnings, error) {
	return nil, nil
}

// managed is memcached's options that the operator sets itself, or that would take the server out of its hands.
var managed = []string{"-p", "--port", "-m", "--memory-limit", "-c", "--conn-limit", "-d", "--daemon", "-u", "--user", "-l", "--listen", "-s", "--unix-socket", "-P", "--pidfile"}

// Check is nil, or an API error of reason Invalid that names every field that could not run.
func Check(m *v1.Memcached) error {
	var (
		wrong field.ErrorList
		spec  = field.NewPath("spec")
	)
	if reference := conversion.JoinImage(m.Spec.Image); reference != "" {
		if err := CheckImage(reference); err != nil {
			wrong = append(wrong, field.Invalid(spec.Child("image"), reference, err.Error()))
		}
	}
	for i, argument := range m.Spec.Cache.ExtraArgs {
		if option := managedOption(argument); option != "" {
			wrong = append(wrong, field.Forbidden(spec.Child("cache", "extraArgs").Index(i), fmt.Sprintf("the operator sets %s itself, from the other fields of the spec", option)))
		}
	}
	if r := m.Spec.Resources; r != nil {
		path := spec.Child("resources")
		for resourceName, pair := range map[string][2]*resource.Quantity{"cpu": {r.Requests.CPU, r.Limits.CPU}, "memory": {r.Requests.Memory, r.Limits.Memory}} {
			request, limit := pair[0], pair[1]
			for kind, quantity := range map[string]*resource.Quantity{"requests": request, "limits": limit} {
				if quantity != nil && quantity.Sign() < 0 {
					wrong = append(wrong, field.Invalid(path.Child(kind, resourceName), quantity.String(), "must not be negative"))
				}
			}
			if request != nil && limit != nil && request.Cmp(*limit) > 0 {
				wrong = append(wrong, field.Invalid(path.Child("requests", resourceName), request.String(), "must not exceed the limit of "+limit.String()))
			}
		}
		if items := int64(m.Spec.Cache.MemoryMegabytes) << 20; r.Limits.Memory != nil && r.Limits.Memory.Value() <= items {
			wrong = append(wrong, field.Invalid(path.Child("limits", "memory"), r.Limits.Memory.String(),
				fmt.Sprintf("must exceed spec.cache.memoryMegabytes (%d), or the server is killed when the cache is full", m.Spec.Cache.MemoryMegabytes)))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.SortFunc(wrong, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return apierrors.NewInvalid(v1.GroupVersion.WithKind("Memcached").GroupKind(), m.Name, wrong)
}

// managedOption is the managed option that an argument sets, empty if none. memcached reads its options by getopt, so
// -p1, -p 1, --port=1 and any unambiguous beginning of --port are one option.
func managedOption(argument string) string {
	option, _, _ := strings.Cut(argument, "=")
	for _, m := range managed {
		switch {
		case option == m,
			strings.HasPrefix(m, "--") && strings.HasPrefix(option, "--") && len(option) > 2 && strings.HasPrefix(m, option),
			!strings.HasPrefix(m, "--") && !strings.HasPrefix(argument, "--") && strings.HasPrefix(argument, m):
			return m
		}
	}
	return ""
}

// CheckImage says what is wrong with an image reference.
func CheckImage(reference string) error {
	if _, err := name.ParseReference(reference, name.WeakValidation); err != nil {
		return fmt.Errorf("not an image reference such as registry.example.com:5000/memcached:1.6: %w", err)
	}
	return nil
}

// Warnings is what the writer of an object should know about it.
func Warnings(m *v1.Memcached) admission.Warnings {
	return ImageWarnings("spec.image", conversion.JoinImage(m.Spec.Image))
}

// ImageWarnings is what the writer of an image reference, in this field, should know about it.
func ImageWarnings(path, reference string) admission.Warnings {
	if image := conversion.SplitImage(reference); image != nil && image.Digest == "" && (image.Tag == "" || image.Tag == "latest") {
		return admission.Warnings{path + " names no fixed version: servers that start later may run another one"}
	}
	return nil
}
