package existing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
)

const (
	port = 50051
	// share is how much of a catalog goes into one ConfigMap, compressed there; the API server takes up to 1 MiB.
	share = 2 << 20
	// servingLimit bounds how long a catalog's pod may take to be ready, with its image pulled.
	servingLimit = 3 * time.Minute
	// goneLimit bounds how long the namespace may take to go.
	goneLimit = 2 * time.Minute
)

// Catalog serves the catalog from a pod, from ConfigMaps, and ends the pod that served before. OLM is told the pod's
// address: no registry and no name service are needed for that.
func (c *Cluster) Catalog(ctx context.Context, name string, fbc []byte) (cluster.CatalogAddress, error) {
	if !c.namespaced {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace, Labels: cluster.Made}}
		if _, err := c.client.CoreV1().Namespaces().Create(ctx, n, metav1.CreateOptions{}); err != nil {
			return cluster.CatalogAddress{}, fmt.Errorf("create namespace %s: %w", Namespace, err)
		}
		c.namespaced = true
	}
	c.published++
	pod := fmt.Sprintf("%s-%d", name, c.published)
	archives, err := pack(ctx, fbc)
	if err != nil {
		return cluster.CatalogAddress{}, fmt.Errorf("pack the catalog: %w", err)
	}
	args := []string{"catalog", "serve", "--address", fmt.Sprintf(":%d", port)}
	var sources []corev1.VolumeProjection
	for i, archive := range archives {
		file := fmt.Sprintf("%d.tar", i)
		content := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", pod, i), Labels: cluster.Made},
			BinaryData: map[string][]byte{file: archive},
		}
		if _, err := c.client.CoreV1().ConfigMaps(Namespace).Create(ctx, content, metav1.CreateOptions{}); err != nil {
			return cluster.CatalogAddress{}, fmt.Errorf("store part %d of %d of the catalog, %d bytes: %w", i+1, len(archives), len(archive), err)
		}
		sources = append(sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: content.Name}}})
		args = append(args, "/catalog/"+file)
	}
	server := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod, Labels: cluster.Made},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:            "server",
				Image:           c.server,
				ImagePullPolicy: corev1.PullIfNotPresent, // 'olmkit cluster up' has loaded it
				Command:         append([]string{"/olmkit"}, args...),
				Ports:           []corev1.ContainerPort{{Name: "grpc", ContainerPort: port}},
				ReadinessProbe:  &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}, PeriodSeconds: 1},
				VolumeMounts:    []corev1.VolumeMount{{Name: "catalog", MountPath: "/catalog", ReadOnly: true}, {Name: "tmp", MountPath: "/tmp"}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
			Volumes: []corev1.Volume{
				{Name: "catalog", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
	if _, err := c.client.CoreV1().Pods(Namespace).Create(ctx, server, metav1.CreateOptions{}); err != nil {
		return cluster.CatalogAddress{}, fmt.Errorf("start the catalog's pod: %w", err)
	}
	address, err := c.ready(ctx, pod)
	if err != nil {
		return cluster.CatalogAddress{}, hint.With(fmt.Errorf("wait until pod %s/%s serves the catalog: %w", Namespace, pod, err),
			"see that the cluster can pull %s, or name an image of olmkit that it can with --catalog-server", c.server)
	}
	if c.serving != "" {
		if err := c.client.CoreV1().Pods(Namespace).Delete(ctx, c.serving, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return cluster.CatalogAddress{}, fmt.Errorf("end the pod of the catalog before: %w", err)
		}
	}
	c.serving = pod
	return cluster.CatalogAddress{Address: address}, nil
}

// ready waits until a pod is ready and returns its address. A pod that cannot become so is not waited for.
func (c *Cluster) ready(ctx context.Context, name string) (string, error) {
	var address, state string
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, servingLimit, true, func(ctx context.Context) (bool, error) {
		pod, err := c.client.CoreV1().Pods(Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		state = string(pod.Status.Phase)
		for _, s := range pod.Status.ContainerStatuses {
			if w := s.State.Waiting; w != nil {
				state = w.Reason + ": " + w.Message
			}
			if s.RestartCount > 2 {
				var log bytes.Buffer
				_ = c.Logs(ctx, &log, Namespace+"/"+name+"/server")
				return false, fmt.Errorf("it ends again and again: %s", strings.TrimSpace(log.String()))
			}
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue && pod.Status.PodIP != "" {
				address = net.JoinHostPort(pod.Status.PodIP, fmt.Sprint(port))
				return true, nil
			}
		}
		return false, nil
	})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("not ready after %s (%s)", servingLimit, state)
	}
	return address, err
}

// pack makes archives of a stream of JSON documents, a line each: small enough for a ConfigMap, as documents shrink to a
// fraction. A document that is too large all the same is an archive of its own, for the API server to refuse.
func pack(ctx context.Context, fbc []byte) ([][]byte, error) {
	dir, err := os.MkdirTemp("", "olmkit-catalog-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	root := os.DirFS(dir)
	var archives [][]byte
	for _, part := range shares(fbc) {
		const documents, archive = "catalog.json", "catalog.tar"
		if err := os.WriteFile(filepath.Join(dir, documents), part, 0o600); err != nil {
			return nil, err
		}
		artifact, err := image.Catalog(root, []string{documents}, nil)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(dir, archive)
		if err := (image.Client{}).Archive(ctx, file, "olmkit/catalog", artifact); err != nil {
			return nil, err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		archives = append(archives, data)
	}
	return archives, ctx.Err()
}

// shares cuts a stream of documents into parts of no more than share bytes, if no document has more.
func shares(fbc []byte) [][]byte {
	var parts [][]byte
	var part []byte
	for line := range bytes.Lines(fbc) {
		if len(part) > 0 && len(part)+len(line) > share {
			parts, part = append(parts, part), nil
		}
		part = append(part, line...)
	}
	return append(parts, part)
}

// Close removes what served the catalogs. The cluster stays.
func (c *Cluster) Close(ctx context.Context) error {
	if !c.namespaced {
		return nil
	}
	namespaces := c.client.CoreV1().Namespaces()
	if err := namespaces.Delete(ctx, Namespace, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete namespace %s: %w", Namespace, err)
	}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, goneLimit, true, func(ctx context.Context) (bool, error) {
		_, err := namespaces.Get(ctx, Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("wait until namespace %s is gone: %w", Namespace, err)
	}
	c.namespaced = false
	return nil
}
