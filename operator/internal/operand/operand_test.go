package operand

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

func TestDesiredObjects(t *testing.T) {
	t.Parallel()
	owner := &metav1.ObjectMeta{Name: "m", Namespace: "ns", UID: "uid"}
	small := DesiredFor(owner, "cache.example.com/v1")
	small.Replicas, small.Image = 2, "docker.io/library/memcached:1.6.39"
	full := small
	full.PullPolicy, full.Port, full.MemoryMegabytes, full.MaxConnections = corev1.PullAlways, 11300, 1000, 5000
	full.ExtraArgs = []string{"--max-item-size=2m", "-v"}
	full.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
	}
	for name, w := range map[string]Desired{"small": small, "full": full} {
		for kind, object := range map[string]any{"deployment": Deployment(w), "service": Service(w), "disruptionbudget": DisruptionBudget(w), "networkpolicy": NetworkPolicy(w)} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				got, err := yaml.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				path := filepath.Join("testdata", name+"-"+kind+".yaml")
				if *update {
					if err := os.WriteFile(path, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), string(got)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// The object's owner in another version of the API is the same owner: nothing of the pods may depend on it.
func TestTemplateIsTheSameForEveryAPIVersion(t *testing.T) {
	t.Parallel()
	owner := &metav1.ObjectMeta{Name: "m", Namespace: "ns", UID: "uid"}
	a := DesiredFor(owner, "cache.example.com/v1alpha1")
	b := DesiredFor(owner, "cache.example.com/v1")
	b.Port, b.MemoryMegabytes, b.MaxConnections = DefaultPort, DefaultMemoryMegabytes, DefaultMaxConnections
	if diff := cmp.Diff(Deployment(a).Spec, Deployment(b).Spec); diff != "" {
		t.Error(diff)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	names := []string{
		"a", "1", "m", "a-b", "a.b", strings.Repeat("a", 53), strings.Repeat("a", 54), strings.Repeat("a", 253),
		strings.Repeat("a", 63) + "." + strings.Repeat("b", 63), "x-0123456789abcdef", "1.2.3.4", "a-.b",
	}
	// What a derived name looks like is itself derived from, so that the two cannot meet.
	for _, name := range slices.Clone(names) {
		names = append(names, strings.TrimPrefix(Name(name), "memcached-"))
	}
	seen := map[string]string{}
	for _, name := range names {
		got := Name(name)
		if wrong := validation.IsDNS1035Label(got); len(wrong) > 0 {
			t.Errorf("%s: %s: %v", name, got, wrong)
		}
		for _, value := range Selector(name) {
			if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
				t.Errorf("%s: label %s: %v", name, value, wrong)
			}
		}
		if other, taken := seen[got]; taken && other != name {
			t.Errorf("%s and %s are both %s", name, other, got)
		}
		seen[got] = name
	}
	if got := Name("cache"); got != "memcached-cache" {
		t.Errorf("plain name became %s", got)
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	settled := Observation{Ready: 2, Settled: true}
	for name, test := range map[string]struct {
		seen Observation
		err  error
		want string
	}{
		"all ready":      {settled, nil, "Available=True/AllPodsReady Progressing=False/RolledOut Degraded=False/AsExpected"},
		"none yet":       {Observation{}, nil, "Available=False/NoPodReady Progressing=True/RollingOut Degraded=False/AsExpected"},
		"some":           {Observation{Ready: 1}, nil, "Available=True/SomePodsReady Progressing=True/RollingOut Degraded=False/AsExpected"},
		"rolling":        {Observation{Ready: 2}, nil, "Available=True/AllPodsReady Progressing=True/RollingOut Degraded=False/AsExpected"},
		"quota":          {Observation{Failure: "FailedCreate: exceeded quota"}, nil, "Available=False/NoPodReady Progressing=True/RollingOut Degraded=True/DeploymentFailing"},
		"name taken":     {settled, fmt.Errorf("applying: %w", &TakenError{"Service", "ns", "x"}), "Available=True/AllPodsReady Progressing=True/RollingOut Degraded=True/NameTaken"},
		"invalid":        {settled, fmt.Errorf("applying: %w", apierrors.NewInvalid(schema.GroupKind{}, "x", nil)), "Available=True/AllPodsReady Progressing=True/RollingOut Degraded=True/InvalidSpec"},
		"forbidden":      {settled, errors.New("forbidden"), "Available=True/AllPodsReady Progressing=True/RollingOut Degraded=True/ApplyFailed"},
		"a long account": {settled, errors.New(strings.Repeat("ä", 1<<16)), "Available=True/AllPodsReady Progressing=True/RollingOut Degraded=True/ApplyFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conditions := Conditions(7, 2, test.seen, test.err)
			var got []string
			for _, kind := range []string{"Available", "Progressing", "Degraded"} {
				condition := meta.FindStatusCondition(conditions, kind)
				got = append(got, fmt.Sprintf("%s=%s/%s", kind, condition.Status, condition.Reason))
				if condition.ObservedGeneration != 7 || len(condition.Message) > 2048 {
					t.Errorf("%+v", condition)
				}
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	pod := func(name, instance string, phase corev1.PodPhase, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: Selector(instance)},
			Status:     corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
		}
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: Name("m"), Generation: 2},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
	}
	settled := deployment.DeepCopy()
	settled.Status.ObservedGeneration = 2
	failing := settled.DeepCopy()
	failing.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "late"}}
	for name, test := range map[string]struct {
		objects []client.Object
		want    Observation
	}{
		"nothing":            {nil, Observation{Nodes: map[string]bool{}}},
		"old generation":     {[]client.Object{deployment}, Observation{Nodes: map[string]bool{}, Generation: 2}},
		"settled, with pods": {[]client.Object{settled, pod("a", "m", "Running", "True"), pod("b", "m", "Running", "False"), pod("c", "m", "Failed", "False"), pod("d", "other", "Running", "True")}, Observation{Nodes: map[string]bool{"a": true, "b": false}, Ready: 1, Generation: 2, Settled: true}},
		"failing":            {[]client.Object{failing}, Observation{Nodes: map[string]bool{}, Generation: 2, Settled: true, Failure: "ProgressDeadlineExceeded: late"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Observe(t.Context(), fake.NewClientBuilder().WithObjects(test.objects...).Build(), "ns", "m")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
