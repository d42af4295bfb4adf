package lifecycle

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func TestModes(t *testing.T) {
	r := &Release{CSV: &v1alpha1.ClusterServiceVersion{}}
	r.CSV.Spec.InstallModes = []v1alpha1.InstallMode{
		{Type: v1alpha1.InstallModeTypeMultiNamespace, Supported: false},
		{Type: v1alpha1.InstallModeTypeOwnNamespace, Supported: true},
		{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true},
	}
	if got := r.Modes(); !slices.Equal(got, []Mode{AllNamespaces, OwnNamespace}) {
		t.Errorf("got %v", got)
	}
}

// releaseOf has one Deployment of a manager, which has the port 9443, and of a proxy, and a conversion webhook.
func releaseOf(w v1alpha1.WebhookDescription) *Release {
	var d v1alpha1.StrategyDeploymentSpec
	d.Name = "operator"
	d.Spec.Template.Spec.InitContainers = []corev1.Container{{Image: "wait"}}
	d.Spec.Template.Spec.Containers = []corev1.Container{
		{Image: "proxy", Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: 8443}}},
		{Image: "manager", Ports: []corev1.ContainerPort{{Name: "webhook-server", ContainerPort: 9443}}},
	}
	r := &Release{CSV: &v1alpha1.ClusterServiceVersion{}}
	r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{d}
	w.Type, w.DeploymentName, w.ConversionCRDs = v1alpha1.ConversionWebhook, "operator", []string{"things.example.com"}
	r.CSV.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{w}
	return r
}

// The container that has a webhook's port serves it; where none has, any may.
func TestConversionImages(t *testing.T) {
	any := []string{"wait", "proxy", "manager"}
	for name, c := range map[string]struct {
		w    v1alpha1.WebhookDescription
		want []string
	}{
		"by number":      {v1alpha1.WebhookDescription{ContainerPort: 443, TargetPort: ptr.To(intstr.FromInt32(9443))}, []string{"manager"}},
		"by name":        {v1alpha1.WebhookDescription{TargetPort: ptr.To(intstr.FromString("webhook-server"))}, []string{"manager"}},
		"without target": {v1alpha1.WebhookDescription{ContainerPort: 9443}, []string{"manager"}},
		"the default":    {v1alpha1.WebhookDescription{}, any},
		"of nobody":      {v1alpha1.WebhookDescription{TargetPort: ptr.To(intstr.FromString("9443"))}, any},
	} {
		if diff := cmp.Diff(c.want, releaseOf(c.w).ConversionImages("things.example.com")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := releaseOf(v1alpha1.WebhookDescription{}).ConversionImages("others.example.com"); got != nil {
		t.Errorf("of another CRD: %q", got)
	}
}

func TestIdle(t *testing.T) {
	r := releaseOf(v1alpha1.WebhookDescription{})
	if got := r.Idle([]string{"proxy", "wait"}); got != nil {
		t.Errorf("the manager runs: %q", got)
	}
	if diff := cmp.Diff([]string{"manager", "proxy", "wait"}, r.Idle([]string{"proxy", "wait", "manager"})); diff != "" {
		t.Error(diff)
	}
}
