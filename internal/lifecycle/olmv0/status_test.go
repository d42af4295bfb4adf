package olmv0

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/cluster"
)

// healthyOLM are OLM's parts as Install leaves them, with the given labels.
func healthyOLM(t *testing.T, labels map[string]string) []client.Object {
	t.Helper()
	definitions, objects, err := Release{}.parts()
	if err != nil {
		t.Fatal(err)
	}
	var all []client.Object
	for _, d := range definitions {
		d.Labels = labels
		d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
		all = append(all, d)
	}
	for _, o := range objects {
		o.SetLabels(labels)
		if o.GetKind() != "Deployment" {
			all = append(all, o)
			continue
		}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: o.GetName(), Labels: labels}}
		app := map[string]string{"app": d.Name}
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: app}
		d.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: Image}}}}
		d.Status.AvailableReplicas = 1
		all = append(all, d)
	}
	return all
}

// TestStatus: each part that is broken is named with the reason, and no other.
func TestStatus(t *testing.T) {
	crashing := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "catalog-operator-1", Labels: map[string]string{"app": "catalog-operator"}}}
	crashing.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "catalog-operator", RestartCount: 4,
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2}},
	}}
	unread := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "tea"}}
	unread.Status.GRPCConnectionState = &v1alpha1.GRPCConnectionState{LastObservedState: "TRANSIENT_FAILURE", Address: "tea.n.svc:50051"}
	for name, test := range map[string]struct {
		change func(client.Object) bool // false to leave the object out
		add    []client.Object
		want   []string
	}{
		"well":                   {},
		"a CRD is missing":       {change: except("subscriptions.operators.coreos.com"), want: []string{"CustomResourceDefinition/subscriptions.operators.coreos.com: it is missing"}},
		"a right is missing":     {change: except("olm-operator-binding-olm"), want: []string{"ClusterRoleBinding/olm-operator-binding-olm: it is missing"}},
		"an operator is missing": {change: except("catalog-operator"), want: []string{"Deployment/olm/catalog-operator: it is missing"}},
		"scaled to 0": {change: func(o client.Object) bool {
			if d, ok := o.(*appsv1.Deployment); ok && d.Name == "olm-operator" {
				d.Spec.Replicas = new(int32(0))
			}
			return true
		}, want: []string{"Deployment/olm/olm-operator: it is scaled to 0"}},
		"it crashes": {change: func(o client.Object) bool {
			if d, ok := o.(*appsv1.Deployment); ok && d.Name == "catalog-operator" {
				d.Status.AvailableReplicas = 0
			}
			return true
		}, add: []client.Object{crashing}, want: []string{"Deployment/olm/catalog-operator: Pod/olm/catalog-operator-1: container catalog-operator waits: CrashLoopBackOff , restarted 4 times, last ended with exit code 2"}},
		"a catalog is not read": {add: []client.Object{unread}, want: []string{"CatalogSource/n/tea: OLM does not read it: connection TRANSIENT_FAILURE to tea.n.svc:50051"}},
		"a CRD is not served": {change: func(o client.Object) bool {
			if d, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok && strings.HasPrefix(d.Name, "installplans") {
				d.Status.Conditions = nil
			}
			return true
		}, want: []string{"CustomResourceDefinition/installplans.operators.coreos.com: it is not established"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := slices.DeleteFunc(healthyOLM(t, cluster.Labels("")), func(o client.Object) bool { return test.change != nil && !test.change(o) })
			c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(append(objects, test.add...)...).Build()}
			s, err := c.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range s.Unwell() {
				got = append(got, p.Object+": "+p.Why)
			}
			if !s.Installed || !slices.Equal(got, test.want) {
				t.Errorf("installed %t, not well: %q", s.Installed, got)
			}
		})
	}
}

// except leaves out the object called name.
func except(name string) func(client.Object) bool {
	return func(o client.Object) bool { return o.GetName() != name }
}

// TestInstallKeptLeavesOthersAlone: an OLM that something else installed, or a walk, is neither completed nor removed.
func TestInstallKeptLeavesOthersAlone(t *testing.T) {
	for name, labels := range map[string]map[string]string{"somebody's": nil, "a walk's": cluster.Labels("w1")} {
		c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(healthyOLM(t, labels)...).Build()}
		made, err := InstallKept(t.Context(), c, Release{})
		if err == nil || !strings.Contains(err.Error(), "OLM "+Version+" is on the cluster already, in namespace olm") || len(made) > 0 {
			t.Errorf("%s: made %v: %v", name, made, err)
		}
		if own, err := c.InstalledKept(t.Context()); err != nil || len(own) > 0 {
			t.Errorf("%s: it takes %v for its own: %v", name, own, err)
		}
	}
	c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).Build()}
	if s, err := c.Status(t.Context()); err != nil || s.Installed {
		t.Errorf("nothing is installed: %+v, %v", s, err)
	}
}

// TestUsers: OLM's own OperatorGroups are no use of it, nor are copies of ClusterServiceVersions.
func TestUsers(t *testing.T) {
	objects := append(healthyOLM(t, nil), version("n", "tea.v1", map[string]string{v1alpha1.CopiedLabelKey: "theirs"}))
	c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...).Build()}
	if users, err := c.Users(t.Context()); err != nil || len(users) > 0 {
		t.Errorf("%v: %q", err, users)
	}
	if err := c.Create(t.Context(), version("m", "tea.v1", nil)); err != nil {
		t.Fatal(err)
	}
	if users, err := c.Users(t.Context()); err != nil || fmt.Sprint(users) != "[ClusterServiceVersion/m/tea.v1]" {
		t.Errorf("%v: %q", err, users)
	}
}
