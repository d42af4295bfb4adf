package existing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
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

// served is what serves one content of a catalog.
type served struct {
	namespace string
	pod       string
	parts     []string // ConfigMaps
	labels    map[string]string
}

// Catalog serves the catalog from a pod, from ConfigMaps. OLM is told the pod's address: no registry and no name service are
// needed for that. It still reads the pod before, which therefore stays until the next call; what served before that is
// removed.
func (c *Cluster) Catalog(ctx context.Context, name string, fbc []byte) (cluster.CatalogAddress, error) {
	if err := c.ensureNamespace(ctx); err != nil {
		return cluster.CatalogAddress{}, err
	}
	c.published++
	s := &served{namespace: Namespace, pod: fmt.Sprintf("%s-%d", name, c.published), labels: c.labels()}
	old := c.served
	c.served = append(slices.Clone(old), s)
	if err := c.start(ctx, s, fbc); err != nil {
		return cluster.CatalogAddress{}, err
	}
	address, err := c.ready(ctx, s)
	if err != nil {
		return cluster.CatalogAddress{}, err
	}
	for _, o := range old {
		if o == c.current {
			continue
		}
		if err := c.remove(ctx, o); err != nil {
			return cluster.CatalogAddress{}, err
		}
		c.served = slices.DeleteFunc(c.served, func(s *served) bool { return s == o })
	}
	c.current = s
	return cluster.CatalogAddress{Address: address}, nil
}

func (c *Cluster) ensureNamespace(ctx context.Context) error {
	if c.namespaced {
		return nil
	}
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace, Labels: c.labels()}}
	if _, err := c.client.CoreV1().Namespaces().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace %s: %w", Namespace, err)
	}
	c.namespaced = true
	return nil
}

// start stores the catalog and starts the pod that serves it. What it made is noted in s, also when it fails.
func (c *Cluster) start(ctx context.Context, s *served, fbc []byte) error {
	archives, err := pack(ctx, fbc)
	if err != nil {
		return fmt.Errorf("pack the catalog: %w", err)
	}
	var files []string
	for i, archive := range archives {
		file := fmt.Sprintf("%d.tar", i)
		content := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", s.pod, i), Labels: s.labels},
			BinaryData: map[string][]byte{file: archive},
		}
		s.parts, files = append(s.parts, content.Name), append(files, file)
		if _, err := c.client.CoreV1().ConfigMaps(s.namespace).Create(ctx, content, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("store part %d of %d of the catalog, %d bytes: %w", i+1, len(archives), len(archive), err)
		}
	}
	if _, err := c.client.CoreV1().Pods(s.namespace).Create(ctx, c.serverPod(s, files), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("start the catalog's pod: %w", err)
	}
	return nil
}

// serverPod is the pod that serves the catalog's files, of which each is in the ConfigMap of s at its place.
func (c *Cluster) serverPod(s *served, files []string) *corev1.Pod {
	command := []string{"/olmkit", "catalog", "serve", "--address", fmt.Sprintf(":%d", port)}
	var sources []corev1.VolumeProjection
	for i, file := range files {
		sources = append(sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: s.parts[i]}}})
		command = append(command, "/catalog/"+file)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: s.pod, Labels: s.labels},
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
				Command:         command,
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
}

// remove ends the pod of s and deletes its ConfigMaps.
func (c *Cluster) remove(ctx context.Context, s *served) error {
	errs := []error{c.client.CoreV1().Pods(s.namespace).Delete(ctx, s.pod, metav1.DeleteOptions{})}
	for _, part := range s.parts {
		errs = append(errs, c.client.CoreV1().ConfigMaps(s.namespace).Delete(ctx, part, metav1.DeleteOptions{}))
	}
	errs = slices.DeleteFunc(errs, apierrors.IsNotFound)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove pod %s/%s, which serves no catalog any more, and its ConfigMaps: %w", s.namespace, s.pod, err)
	}
	return nil
}

// ready waits until the pod of s is ready and returns its address. A pod that cannot become so is not waited for.
func (c *Cluster) ready(ctx context.Context, s *served) (string, error) {
	address, err := c.waitReady(ctx, s.namespace, s.pod)
	if err != nil {
		return "", hint.With(fmt.Errorf("wait until pod %s/%s serves the catalog: %w", s.namespace, s.pod, err),
			"see that the cluster can pull %s, or name an image of olmkit that it can with --catalog-server", c.server)
	}
	return address, nil
}

func (c *Cluster) waitReady(ctx context.Context, namespace, name string) (string, error) {
	var address, state string
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, servingLimit, true, func(ctx context.Context) (bool, error) {
		pod, err := c.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
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
				_ = c.Logs(ctx, &log, namespace+"/"+name+"/server")
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
