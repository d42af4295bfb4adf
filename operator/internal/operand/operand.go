// Package operand is what the operator runs for a Memcached: a Deployment, a headless Service, a NetworkPolicy and, where there is
// more than one server, a PodDisruptionBudget; how they are brought about, what is seen of them, and how they are taken down.
//
// Every release of the operator makes its operands here, whichever version of the API it reads, so that an upgrade of
// the operator restarts no cache: the same Desired gives the same pod template, byte for byte.
package operand

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
)

// What an operand gets where Desired is silent.
const (
	DefaultPort            = 11211
	DefaultMemoryMegabytes = 64
	DefaultMaxConnections  = 1024
)

const (
	// FieldOwner is the name under which the operator applies what it owns.
	FieldOwner = "memcached-operator"
	// OwnerAnnotation holds, on a pod, the name of the Memcached that it belongs to. A label could not: names may be
	// longer than labels.
	OwnerAnnotation = "cache.example.com/memcached"

	component = "memcached"
	portName  = "memcached"
	// user is the numeric user of the official memcached images; runAsNonRoot can't be verified without a number.
	user = 11211
)

// Desired is what a Memcached asks for, whichever version of the API it was written in.
type Desired struct {
	// The Memcached that owns the operand.
	Name, Namespace string
	UID             types.UID
	APIVersion      string

	Replicas        int32
	Image           string
	PullPolicy      corev1.PullPolicy // decided by Kubernetes if empty
	Port            int32
	MemoryMegabytes int32
	MaxConnections  int32
	ExtraArgs       []string
	Resources       corev1.ResourceRequirements // reckoned from the memory if empty
}

// DesiredFor returns a Desired that has its owner alone.
func DesiredFor(owner metav1.Object, apiVersion string) Desired {
	return Desired{Name: owner.GetName(), Namespace: owner.GetNamespace(), UID: owner.GetUID(), APIVersion: apiVersion}
}

// plain matches the names of Memcacheds that can be part of a Service's name as they are. A name that ends like a
// derived one is not plain, so that no two names give the same operand.
var (
	plain   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?$`)
	derived = regexp.MustCompile(`-[0-9a-f]{16}$`)
)

// instance is a Memcached's name in a form that fits a label and, after "memcached-", a Service's name (63 characters,
// no dots): itself where it fits, else its beginning and a hash.
func instance(name string) string {
	if plain.MatchString(name) && !derived.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	head := strings.ReplaceAll(name, ".", "-")
	if len(head) > 36 {
		head = head[:36]
	}
	return strings.TrimRight(head, "-") + "-" + hex.EncodeToString(sum[:8])
}

// Name is the name of the Deployment, the Service and whatever else is the operand of the Memcached with this name.
// Different names give different ones.
func Name(memcached string) string { return component + "-" + instance(memcached) }

// Selector is the labels that the pods of one Memcached have and no others. It never changes, since a Deployment's
// selector is immutable.
func Selector(memcached string) labels.Set {
	return labels.Set{"app.kubernetes.io/name": component, "app.kubernetes.io/instance": instance(memcached)}
}

// Managed is the label of everything that the operator owns.
var Managed = labels.Set{"app.kubernetes.io/managed-by": FieldOwner}

func (d Desired) labels() map[string]string { return labels.Merge(Selector(d.Name), Managed) }

func (d Desired) owner() *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().WithAPIVersion(d.APIVersion).WithKind("Memcached").
		WithName(d.Name).WithUID(d.UID).WithController(true).WithBlockOwnerDeletion(true)
}

// Deployment is the Deployment that a Memcached asks for: just the fields that the operator owns.
func Deployment(d Desired) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment(Name(d.Name), d.Namespace).
		WithLabels(d.labels()).
		WithOwnerReferences(d.owner()).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(d.Replicas).
			WithRevisionHistoryLimit(2).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(d.Name))).
			// A new server starts empty, so the old one stays until it is ready.
			WithStrategy(appsv1ac.DeploymentStrategy().WithType("RollingUpdate").
				WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
					WithMaxUnavailable(intstr.FromInt32(0)).WithMaxSurge(intstr.FromInt32(1)))).
			WithTemplate(podTemplate(d)))
}

func podTemplate(d Desired) *corev1ac.PodTemplateSpecApplyConfiguration {
	port := orDefault(d.Port, DefaultPort)
	probe := func(period int32) *corev1ac.ProbeApplyConfiguration {
		return corev1ac.Probe().WithPeriodSeconds(period).WithTimeoutSeconds(2).
			WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromString(portName)))
	}
	container := corev1ac.Container().WithName(component).
		WithImage(d.Image).
		WithCommand("memcached").
		WithArgs(args(d)...).
		WithPorts(corev1ac.ContainerPort().WithName(portName).WithContainerPort(port).WithProtocol(corev1.ProtocolTCP)).
		WithReadinessProbe(probe(5)).
		WithLivenessProbe(probe(20)).
		WithResources(resources(d)).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))
	if d.PullPolicy != "" {
		container.WithImagePullPolicy(d.PullPolicy)
	}
	return corev1ac.PodTemplateSpec().
		WithLabels(d.labels()).
		WithAnnotations(map[string]string{OwnerAnnotation: d.Name}).
		WithSpec(corev1ac.PodSpec().
			WithAutomountServiceAccountToken(false).
			WithEnableServiceLinks(false).
			WithSecurityContext(corev1ac.PodSecurityContext().
				WithRunAsNonRoot(true).WithRunAsUser(user).
				WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
			WithTopologySpreadConstraints(corev1ac.TopologySpreadConstraint().
				WithMaxSkew(1).WithTopologyKey(corev1.LabelHostname).WithWhenUnsatisfiable(corev1.ScheduleAnyway).
				WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(d.Name)))).
			WithContainers(container))
}

func args(d Desired) []string {
	return slices.Concat([]string{
		fmt.Sprintf("--port=%d", orDefault(d.Port, DefaultPort)),
		fmt.Sprintf("--memory-limit=%d", orDefault(d.MemoryMegabytes, DefaultMemoryMegabytes)),
		fmt.Sprintf("--conn-limit=%d", orDefault(d.MaxConnections, DefaultMaxConnections)),
	}, d.ExtraArgs)
}

// resources leaves room beside the items for memcached's hash table, connections and slabs that are not full.
func resources(d Desired) *corev1ac.ResourceRequirementsApplyConfiguration {
	if len(d.Resources.Requests) > 0 || len(d.Resources.Limits) > 0 {
		out := corev1ac.ResourceRequirements()
		if len(d.Resources.Requests) > 0 {
			out.WithRequests(d.Resources.Requests)
		}
		if len(d.Resources.Limits) > 0 {
			out.WithLimits(d.Resources.Limits)
		}
		return out
	}
	items := int64(orDefault(d.MemoryMegabytes, DefaultMemoryMegabytes))
	mebibytes := func(n int64) resource.Quantity { return *resource.NewQuantity(n<<20, resource.BinarySI) }
	return corev1ac.ResourceRequirements().
		WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: mebibytes(items + 32)}).
		WithLimits(corev1.ResourceList{corev1.ResourceMemory: mebibytes(items + items/4 + 64)})
}

// Service is the headless Service that a Memcached asks for: memcached's clients spread their keys over the servers
// themselves, and so must see each of them.
func Service(d Desired) *corev1ac.ServiceApplyConfiguration {
	port := orDefault(d.Port, DefaultPort)
	return corev1ac.Service(Name(d.Name), d.Namespace).
		WithLabels(d.labels()).
		WithOwnerReferences(d.owner()).
		WithSpec(corev1ac.ServiceSpec().
			WithClusterIP(corev1.ClusterIPNone).
			WithSelector(Selector(d.Name)).
			WithPorts(corev1ac.ServicePort().WithName(portName).WithPort(port).
				WithTargetPort(intstr.FromString(portName)).WithProtocol(corev1.ProtocolTCP)))
}

// DisruptionBudget is the PodDisruptionBudget that a Memcached asks for: a node is drained one server at a time. A share of
// the servers would not do, since one server alone could then never be moved.
func DisruptionBudget(d Desired) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(Name(d.Name), d.Namespace).
		WithLabels(d.labels()).
		WithOwnerReferences(d.owner()).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			// A server that is not ready serves nobody; it must not keep a node from being drained.
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(d.Name))))
}

// NetworkPolicy is the NetworkPolicy that a Memcached asks for: memcached is reached at its port alone, and reaches nobody.
func NetworkPolicy(d Desired) *networkingv1ac.NetworkPolicyApplyConfiguration {
	return networkingv1ac.NetworkPolicy(Name(d.Name), d.Namespace).
		WithLabels(d.labels()).
		WithOwnerReferences(d.owner()).
		WithSpec(networkingv1ac.NetworkPolicySpec().
			WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(d.Name))).
			WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
			WithIngress(networkingv1ac.NetworkPolicyIngressRule().
				WithPorts(networkingv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromString(portName)))))
}

func orDefault(value, fallback int32) int32 {
	if value == 0 {
		return fallback
	}
	return value
}
