package leader

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ErrNoNamespace says that the process does not run in a cluster: no variable and no token of a service account names a
// namespace. PodOf returns it. Become then returns nil, since nobody else can lead.
var ErrNoNamespace = errors.New("no namespace: POD_NAMESPACE is not set, and there is no token of a service account")

// Pod is a pod that may lead.
type Pod struct {
	Namespace, Name string
	UID             types.UID
}

// tokenFile is where the kubelet mounts the token of the pod's service account, unless automountServiceAccountToken is
// false.
const tokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token" //nolint:gosec // a path, not a credential

// PodOf returns the pod that the process runs in: the one that POD_NAMESPACE, POD_NAME and POD_UID name if all are set (by
// the downward API), or else the one that the token of its service account is bound to. The API server is not asked: it may
// know another pod under the name by now. The error is ErrNoNamespace outside of a cluster.
func PodOf(getenv func(string) string) (Pod, error) { return podOf(getenv, tokenFile) }

func podOf(getenv func(string) string, tokenFile string) (Pod, error) {
	pod := Pod{Namespace: getenv("POD_NAMESPACE"), Name: getenv("POD_NAME"), UID: types.UID(getenv("POD_UID"))}
	if pod.Namespace != "" && pod.Name != "" && pod.UID != "" {
		return pod, nil
	}
	const remedy = "set POD_NAMESPACE, POD_NAME and POD_UID from metadata.namespace, metadata.name and metadata.uid (downward API)"
	token, err := os.ReadFile(tokenFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && pod.Namespace == "":
		return Pod{}, ErrNoNamespace
	case err != nil:
		return Pod{}, fmt.Errorf("which pod this is, is not known: %w: %s", err, remedy)
	}
	if pod, err = podOfToken(string(token)); err != nil {
		return Pod{}, fmt.Errorf("which pod this is, is not known: %s: %w: %s", tokenFile, err, remedy)
	}
	return pod, nil
}

// podOfToken reads the private claims of a token (Kubernetes v1.36.3, pkg/serviceaccount/claims.go).
func podOfToken(token string) (Pod, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Pod{}, errors.New("it is no JSON web token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Pod{}, fmt.Errorf("the token's claims: %w", err)
	}
	var claims struct {
		Kubernetes struct {
			Namespace string `json:"namespace"`
			Pod       struct {
				Name string    `json:"name"`
				UID  types.UID `json:"uid"`
			} `json:"pod"`
		} `json:"kubernetes.io"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return Pod{}, fmt.Errorf("the token's claims: %w", err)
	}
	pod := Pod{Namespace: claims.Kubernetes.Namespace, Name: claims.Kubernetes.Pod.Name, UID: claims.Kubernetes.Pod.UID}
	if pod.Namespace == "" || pod.Name == "" || pod.UID == "" {
		return Pod{}, errors.New("the token is not bound to a pod")
	}
	return pod, nil
}

// ended says why the pod will not lead any more, and nothing as long as it may. A pod that is being deleted may: it
// runs until it is gone. So may one whose containers crash: they are started again in it.
func (l *Lock) ended(ctx context.Context, holder metav1.OwnerReference) (string, error) {
	pod, err := l.client.Pods(l.pod.Namespace).Get(ctx, holder.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && pod.UID != holder.UID:
		return "pod " + holder.Name + " is gone", nil
	case err != nil:
		return "", fmt.Errorf("reading a leader's pod: %w", err)
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		// Evicted by the kubelet, preempted, or its node shut down: all of them are failures.
		return fmt.Sprintf("pod %s has ended: %s %s", holder.Name, pod.Status.Phase, pod.Status.Reason), nil
	case pod.Spec.NodeName == "":
		return "", nil
	}
	node, err := l.client.Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("the node %s of pod %s is gone", pod.Spec.NodeName, holder.Name), nil
	case err != nil:
		return "", fmt.Errorf("reading a leader's node: %w", err)
	case unreachable(node):
		return fmt.Sprintf("the node %s of pod %s is unreachable", pod.Spec.NodeName, holder.Name), nil
	}
	return "", nil
}

// unreachable says whether nothing was heard of the node for long: then its Ready condition is Unknown, and it has the
// taint (Kubernetes v1.36.3, pkg/controller/nodelifecycle/node_lifecycle_controller.go). A node that says itself that it
// is not ready lives, and so may its pods.
func unreachable(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return false
		}
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeUnreachable {
			return true
		}
	}
	return false
}
