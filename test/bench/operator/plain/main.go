// The memcached operator as tutorials write it, for comparison: every event of everything that it owns leads to a
// reconciliation, which reads each object, changes it and writes it back, and looks for the pods by a list. It makes the
// same objects as the operator does, for as much of the API as the benchmark uses.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
)

func main() {
	address := flag.String("metrics-bind-address", "0", "address of the metrics")
	flag.Parse()
	if err := run(*address); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address string) error {
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metrics.Options{BindAddress: address}})
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(mgr).
		For(&v1.Memcached{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Owns(&networkingv1.NetworkPolicy{}).
		Complete(&reconciler{client: mgr.GetClient(), scheme: scheme}); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

type reconciler struct {
	client client.Client
	scheme *runtime.Scheme
}

// Reconcile writes what the Memcached asks for over what is there.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var m v1.Memcached
	if err := r.client.Get(ctx, request.NamespacedName, &m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for _, part := range r.parts(&m) {
		if _, err := controllerutil.CreateOrUpdate(ctx, r.client, part.object, part.change); err != nil {
			return ctrl.Result{}, err
		}
	}
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(m.Namespace), client.MatchingLabels(labels(&m))); err != nil {
		return ctrl.Result{}, err
	}
	m.Status.Nodes, m.Status.ReadyReplicas = map[string]v1.Node{}, 0
	for _, pod := range pods.Items {
		ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		m.Status.Nodes[pod.Name] = v1.Node{Ready: ready}
		if ready {
			m.Status.ReadyReplicas++
		}
	}
	m.Status.ObservedGeneration = m.Generation
	available := metav1.ConditionFalse
	if m.Status.ReadyReplicas == m.Spec.Replicas {
		available = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: v1.ConditionAvailable, Status: available, Reason: "Reconciled", Message: "reconciled"})
	return ctrl.Result{}, r.client.Status().Update(ctx, &m)
}

func labels(m *v1.Memcached) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "memcached", "app.kubernetes.io/instance": m.Name}
}

// part is an object, and what is written over it after it was read.
type part struct {
	object client.Object
	change func() error
}

func (r *reconciler) parts(m *v1.Memcached) []part {
	named := metav1.ObjectMeta{Name: "memcached-" + m.Name, Namespace: m.Namespace}
	selector := &metav1.LabelSelector{MatchLabels: labels(m)}
	deployment := &appsv1.Deployment{ObjectMeta: named}
	service := &corev1.Service{ObjectMeta: named}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: named}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: named}
	own := func(object client.Object, change func()) part {
		return part{object, func() error {
			object.SetLabels(labels(m))
			change()
			return ctrl.SetControllerReference(m, object, r.scheme)
		}}
	}
	return []part{
		own(deployment, func() {
			deployment.Spec = appsv1.DeploymentSpec{
				Replicas: &m.Spec.Replicas,
				Selector: selector,
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels(m)},
					Spec: corev1.PodSpec{AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{
						Name: "memcached", Image: "docker.io/library/memcached:1.6.39", Command: []string{"memcached"},
						Ports: []corev1.ContainerPort{{Name: "memcached", ContainerPort: m.Spec.Service.Port}},
					}}},
				},
			}
		}),
		own(service, func() {
			service.Spec.ClusterIP = corev1.ClusterIPNone
			service.Spec.Selector = labels(m)
			service.Spec.Ports = []corev1.ServicePort{{Name: "memcached", Port: m.Spec.Service.Port}}
		}),
		own(budget, func() {
			budget.Spec = policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1)), Selector: selector}
		}),
		own(policy, func() {
			policy.Spec = networkingv1.NetworkPolicySpec{
				PodSelector: *selector,
				Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromString("memcached"))}}}},
			}
		}),
	}
}
