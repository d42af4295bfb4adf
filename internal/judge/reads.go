package judge

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmkit/olmkit/internal/observe"
)

// takenSecrets are the Secrets that containers of was read and that no container of is reads any more, though the containers and the Secrets are still there, and no other Secret came in
// their place. after is all that there is now.
func takenSecrets(was, is observe.Operand, after map[string]observe.Operand) []string {
	before, had := was.Template()
	now, has := is.Template()
	if !had || !has {
		return nil
	}
	reads, all := secretsOf(now.Spec), map[string]bool{}
	for _, names := range reads {
		maps.Copy(all, names)
	}
	taken, kept := map[string]bool{}, map[string]bool{}
	for container, names := range secretsOf(before.Spec) {
		maps.Copy(kept, names)
		if _, stays := reads[container]; stays {
			maps.Copy(taken, names)
		}
	}
	for name := range all {
		if !kept[name] { // in the place of what is taken
			return nil
		}
	}
	maps.DeleteFunc(taken, func(name string, _ bool) bool {
		_, there := after[observe.Operand{Kind: observe.KindSecret, Namespace: is.Namespace, Name: name}.String()]
		return all[name] || !there
	})
	return slices.Sorted(maps.Keys(taken))
}

// secretsOf are the Secrets that each container of a pod reads, by its name: from variables and from what it mounts.
func secretsOf(pod corev1.PodSpec) map[string]map[string]bool {
	reads := map[string]map[string]bool{}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		names := map[string]bool{}
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				names[e.ValueFrom.SecretKeyRef.Name] = true
			}
		}
		for _, e := range c.EnvFrom {
			if e.SecretRef != nil {
				names[e.SecretRef.Name] = true
			}
		}
		for _, m := range c.VolumeMounts {
			for _, name := range secretsIn(pod.Volumes, m.Name) {
				names[name] = true
			}
		}
		reads[c.Name] = names
	}
	return reads
}

// secretsIn are the Secrets that the volume called name has.
func secretsIn(volumes []corev1.Volume, name string) (secrets []string) {
	for _, v := range volumes {
		if v.Name != name {
			continue
		}
		if v.Secret != nil {
			secrets = append(secrets, v.Secret.SecretName)
		}
		if v.Projected != nil {
			for _, s := range v.Projected.Sources {
				if s.Secret != nil {
					secrets = append(secrets, s.Secret.Name)
				}
			}
		}
	}
	return secrets
}
