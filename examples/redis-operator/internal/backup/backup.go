// Package backup saves the keys of a RedisCluster's servers in a Secret, and writes them back.
//
// A backup is small: it has to fit into a Secret. Keys are saved as the servers' DUMP serializes them, so that all types of
// values and their expiry come back. The Secret has no owner, and so outlives the RedisCluster.
package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/examples/redis-operator/internal/redis"
	"github.com/olmkit/olmkit/examples/redis-operator/internal/resources"
)

const (
	// SecretType is the type of backups' Secrets.
	SecretType corev1.SecretType = "redis.example.com/backup"

	// limit is how many bytes the keys of all servers may take; a Secret holds 1 MiB, and in JSON keys grow by a third.
	limit = 700 << 10
)

// ErrNoServer says that no server is ready, so that there is nothing to read keys from.
var ErrNoServer = errors.New("no server is ready")

// SecretName returns the name of the backup of a RedisCluster. Another one of the same name later has another backup.
func SecretName(name string, uid types.UID) string {
	return fmt.Sprintf("%.200s-backup-%.8s", name, uid)
}

// Take saves the keys of all servers of the RedisCluster called name in a Secret, and returns their number.
func Take(ctx context.Context, c client.Client, namespace, name, secretName string) (int, error) {
	pods, err := servers(ctx, c, namespace, name)
	if err != nil {
		return 0, err
	}
	if len(pods) == 0 {
		return 0, ErrNoServer
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretName, Labels: resources.Labels(name)},
		Type:       SecretType,
		Data:       map[string][]byte{},
	}
	count, left := 0, limit
	for ordinal, pod := range pods {
		keys, err := dump(ctx, pod, left)
		if err != nil {
			return 0, err
		}
		data, err := json.Marshal(keys)
		if err != nil {
			return 0, fmt.Errorf("write the keys of Pod %s as JSON: %w", pod.Name, err)
		}
		count += len(keys)
		left -= len(data) * 3 / 4
		secret.Data[strconv.Itoa(ordinal)] = data
	}
	if err := c.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return 0, fmt.Errorf("create Secret %s/%s: %w", namespace, secretName, err)
	}
	return count, nil
}

// Impossible reports whether err, of Take, stays: no server is left, or the namespace is being deleted and takes no Secret.
func Impossible(err error) bool {
	return errors.Is(err, ErrNoServer) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func dump(ctx context.Context, pod corev1.Pod, limit int) ([]redis.Key, error) {
	conn, err := dial(ctx, pod)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	keys, err := conn.Dump(limit)
	if err != nil {
		return nil, fmt.Errorf("read the keys of Pod %s: %w", pod.Name, err)
	}
	return keys, nil
}

// Restore writes the keys of a backup into the servers of the RedisCluster called name, each into the server of the number
// that it came from.
func Restore(ctx context.Context, c client.Client, namespace, name, secretName string) error {
	var secret corev1.Secret
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: secretName}, &secret); err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	if secret.Type != SecretType {
		return fmt.Errorf("secret %s/%s is no backup: its type is %q", namespace, secretName, secret.Type)
	}
	pods, err := servers(ctx, c, namespace, name)
	if err != nil {
		return err
	}
	for number, data := range secret.Data {
		ordinal, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		pod, ready := pods[ordinal]
		if !ready {
			return fmt.Errorf("the backup has keys of server %d: %w of that number", ordinal, ErrNoServer)
		}
		var keys []redis.Key
		if err := json.Unmarshal(data, &keys); err != nil {
			return fmt.Errorf("secret %s/%s, %s: %w", namespace, secretName, number, err)
		}
		if err := restore(ctx, pod, keys); err != nil {
			return err
		}
	}
	return nil
}

func restore(ctx context.Context, pod corev1.Pod, keys []redis.Key) error {
	conn, err := dial(ctx, pod)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.Restore(keys); err != nil {
		return fmt.Errorf("write the keys of Pod %s: %w", pod.Name, err)
	}
	return nil
}

func dial(ctx context.Context, pod corev1.Pod) (*redis.Conn, error) {
	conn, err := redis.Dial(ctx, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(resources.Port)))
	if err != nil {
		return nil, fmt.Errorf("connect to Pod %s: %w", pod.Name, err)
	}
	return conn, nil
}

// servers returns the ready pods of the RedisCluster called name, by their number in the StatefulSet.
func servers(ctx context.Context, c client.Client, namespace, name string) (map[int]corev1.Pod, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels(resources.Labels(name))); err != nil {
		return nil, fmt.Errorf("list the pods of RedisCluster %s/%s: %w", namespace, name, err)
	}
	ready := map[int]corev1.Pod{}
	for _, pod := range pods.Items {
		ordinal, err := strconv.Atoi(strings.TrimPrefix(pod.Name, name+"-"))
		if err == nil && pod.DeletionTimestamp == nil && isReady(pod) {
			ready[ordinal] = pod
		}
	}
	return ready, nil
}

func isReady(pod corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.Status.PodIP != ""
		}
	}
	return false
}
