package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// environment returns the variables of a container as NAME=value, sorted: those of its image's defaults, of the API
// server's place, of envFrom and env, in that order of precedence from low to high.
func (p *pod) environment(ctx context.Context, c *corev1.Container) ([]string, error) {
	vars := map[string]string{
		"PATH":                    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME":                    "/",
		"HOSTNAME":                hostname(p.current()),
		"KUBERNETES_SERVICE_HOST": p.node.config.APIHost,
		"KUBERNETES_SERVICE_PORT": strconv.Itoa(p.node.config.APIPort),
		"SSL_CERT_DIR":            "/etc/ssl/certs",
	}
	for _, from := range c.EnvFrom {
		data, err := p.envFrom(ctx, from)
		if err != nil {
			return nil, err
		}
		for key, value := range data {
			if name := from.Prefix + key; len(validation.IsEnvVarName(name)) == 0 {
				vars[name] = value
			}
		}
	}
	declared := map[string]string{}
	for _, e := range c.Env {
		value := expand(e.Value, func(name string) (string, bool) {
			if v, ok := declared[name]; ok {
				return v, true
			}
			v, ok := vars[name]
			return v, ok
		})
		if e.ValueFrom != nil {
			var found bool
			var err error
			if value, found, err = p.envValue(ctx, c, e.ValueFrom); err != nil {
				return nil, fmt.Errorf("variable %s: %w", e.Name, err)
			} else if !found {
				continue
			}
		}
		declared[e.Name] = value
	}
	maps.Copy(vars, declared)
	env := make([]string, 0, len(vars))
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env, nil
}

func (p *pod) envFrom(ctx context.Context, from corev1.EnvFromSource) (map[string]string, error) {
	switch {
	case from.ConfigMapRef != nil:
		m, err := p.configMap(ctx, from.ConfigMapRef.Name)
		if err != nil {
			if optional(from.ConfigMapRef.Optional) && apierrors.IsNotFound(err) {
				return nil, nil
			}
			return nil, err
		}
		return m.Data, nil
	case from.SecretRef != nil:
		s, err := p.secret(ctx, from.SecretRef.Name)
		if err != nil {
			if optional(from.SecretRef.Optional) && apierrors.IsNotFound(err) {
				return nil, nil
			}
			return nil, err
		}
		data := map[string]string{}
		for key, value := range s.Data {
			data[key] = string(value)
		}
		return data, nil
	}
	return nil, nil
}

// envValue returns the value that source points at, and false if it is optional and not there.
func (p *pod) envValue(ctx context.Context, c *corev1.Container, source *corev1.EnvVarSource) (string, bool, error) {
	switch {
	case source.FieldRef != nil:
		value, err := p.field(source.FieldRef.FieldPath)
		return value, true, err
	case source.ResourceFieldRef != nil:
		return p.resourceField(c, source.ResourceFieldRef), true, nil
	case source.ConfigMapKeyRef != nil:
		ref := source.ConfigMapKeyRef
		m, err := p.configMap(ctx, ref.Name)
		if err != nil {
			if optional(ref.Optional) && apierrors.IsNotFound(err) {
				return "", false, nil
			}
			return "", false, err
		}
		value, ok := m.Data[ref.Key]
		if !ok && !optional(ref.Optional) {
			return "", false, fmt.Errorf("config map %s has no key %s", ref.Name, ref.Key)
		}
		return value, ok, nil
	case source.SecretKeyRef != nil:
		ref := source.SecretKeyRef
		s, err := p.secret(ctx, ref.Name)
		if err != nil {
			if optional(ref.Optional) && apierrors.IsNotFound(err) {
				return "", false, nil
			}
			return "", false, err
		}
		value, ok := s.Data[ref.Key]
		if !ok && !optional(ref.Optional) {
			return "", false, fmt.Errorf("secret %s has no key %s", ref.Name, ref.Key)
		}
		return string(value), ok, nil
	}
	return "", false, fmt.Errorf("its source is of a kind that this node does not know")
}

func optional(b *bool) bool { return b != nil && *b }

func (p *pod) configMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	return p.node.config.Client.CoreV1().ConfigMaps(p.current().Namespace).Get(ctx, name, metav1.GetOptions{})
}

func (p *pod) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	return p.node.config.Client.CoreV1().Secrets(p.current().Namespace).Get(ctx, name, metav1.GetOptions{})
}

// field returns the pod's field at a downward API path.
func (p *pod) field(path string) (string, error) {
	object := p.current()
	if name, key, ok := subscript(path); ok {
		switch name {
		case "metadata.annotations":
			return object.Annotations[key], nil
		case "metadata.labels":
			return object.Labels[key], nil
		}
	}
	switch path {
	case "metadata.name":
		return object.Name, nil
	case "metadata.namespace":
		return object.Namespace, nil
	case "metadata.uid":
		return string(object.UID), nil
	case "metadata.labels":
		return formatMap(object.Labels), nil
	case "metadata.annotations":
		return formatMap(object.Annotations), nil
	case "spec.nodeName":
		return object.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return object.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return p.node.config.Network.HostAddress().String(), nil
	case "status.podIP", "status.podIPs":
		return p.endpoint.address.String(), nil
	}
	return "", fmt.Errorf("there is no field %s", path)
}

// subscript splits name['key'].
func subscript(path string) (name, key string, ok bool) {
	name, rest, found := strings.Cut(path, "['")
	if !found || !strings.HasSuffix(rest, "']") {
		return "", "", false
	}
	return name, strings.TrimSuffix(rest, "']"), true
}

// formatMap renders labels or annotations as the kubelet writes them for the downward API.
func formatMap(m map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s=%s\n", key, strconv.Quote(m[key]))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// resourceField returns a request or limit in units of its divisor; a limit that is not set is the node's capacity.
func (p *pod) resourceField(c *corev1.Container, ref *corev1.ResourceFieldSelector) string {
	if ref.ContainerName != "" {
		containers := p.current().Spec.Containers
		for i := range containers {
			if containers[i].Name == ref.ContainerName {
				c = &containers[i]
			}
		}
	}
	kind, name, _ := strings.Cut(ref.Resource, ".")
	list := c.Resources.Requests
	if kind == "limits" {
		list = c.Resources.Limits
	}
	quantity, ok := list[corev1.ResourceName(name)]
	if !ok && kind == "limits" {
		quantity = capacity[corev1.ResourceName(name)]
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor.Set(1)
	}
	value := (quantity.MilliValue() + divisor.MilliValue() - 1) / max(1, divisor.MilliValue())
	return strconv.FormatInt(value, 10)
}

// expand replaces $(NAME) by its value where lookup knows it; $$ stands for one $.
func expand(s string, lookup func(string) (string, bool)) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch s[i+1] {
		case '$':
			b.WriteByte('$')
			i++
		case '(':
			end := strings.IndexByte(s[i:], ')')
			if end < 0 {
				b.WriteByte('$')
				continue
			}
			if value, ok := lookup(s[i+2 : i+end]); ok {
				b.WriteString(value)
			} else {
				b.WriteString(s[i : i+end+1])
			}
			i += end
		default:
			b.WriteByte('$')
		}
	}
	return b.String()
}
