package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmkit/olmkit/internal/hint"
)

// deployment is one of the operator's.
type deployment struct {
	Input
	appsv1.Deployment
	node     *yaml.Node
	webhooks bool         // the CSV defines webhooks or API services that it serves
	served   []servedPort // Services of the manifests through which webhooks are called
}

type servedPort struct {
	service string
	port    int32
	target  intstr.IntOrString
}

func newDeployment(input Input) (*deployment, error) {
	d := &deployment{Input: input, node: nodeOfJSON(input.JSON)}
	if err := input.decode(&d.Deployment); err != nil {
		return nil, err
	}
	if d.Spec.Selector == nil || len(d.Spec.Template.Spec.Containers) == 0 {
		return nil, input.errorf([]any{"spec"}, "it has no selector or no containers")
	}
	return d, nil
}

// Name returns the deployment's name.
func (d *deployment) Name() string { return d.Input.Name }

// pod returns the spec of its pods, nil without one.
func (d *deployment) pod() *yaml.Node { return field(d.node, "spec", "template", "spec") }

// account returns the name of the service account that the pods run as.
func (d *deployment) account() string {
	return cmp.Or(d.Spec.Template.Spec.ServiceAccountName, d.Spec.Template.Spec.DeprecatedServiceAccount, "default")
}

func (d *deployment) hasPort(name string) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
	})
}

// names reports whether the pods take a volume or a variable from the Secret, and cannot do without.
func (d *deployment) names(secret string) bool {
	needed := func(name string, optional *bool) bool { return name == secret && (optional == nil || !*optional) }
	pod := d.Spec.Template.Spec
	for _, v := range pod.Volumes {
		if v.Secret != nil && needed(v.Secret.SecretName, v.Secret.Optional) {
			return true
		}
		if v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(p corev1.VolumeProjection) bool {
			return p.Secret != nil && needed(p.Secret.Name, p.Secret.Optional)
		}) {
			return true
		}
	}
	for _, c := range slices.Concat(pod.Containers, pod.InitContainers) {
		if slices.ContainsFunc(c.EnvFrom, func(e corev1.EnvFromSource) bool {
			return e.SecretRef != nil && needed(e.SecretRef.Name, e.SecretRef.Optional)
		}) || slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
			return e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && needed(e.ValueFrom.SecretKeyRef.Name, e.ValueFrom.SecretKeyRef.Optional)
		}) {
			return true
		}
	}
	return false
}

// useOLMCertificate takes away the mounts of the webhook's certificate where OLM mounts its own, with their volumes. Where
// the certificate is mounted at another place, the volume is pointed at OLM's Secret: nothing makes the one that
// cert-manager would have made, and the pod would wait for it for ever.
func (d *deployment) useOLMCertificate(secrets map[string]bool) {
	pod := d.pod()
	volumes := field(pod, "volumes")
	if volumes == nil {
		return
	}
	gone := map[string]bool{}
	for _, volume := range volumes.Content {
		name, secret := textAt(volume, "name"), textAt(volume, "secret", "secretName")
		if secret == "" {
			continue
		}
		paths := mountPaths(pod, name)
		atOLMs := slices.Contains(paths, certMountPath) || slices.Contains(paths, apiCertMountPath)
		switch {
		case atOLMs || secrets[secret] && len(paths) == 0:
			gone[name] = true
		case secrets[secret]:
			set(volume, text(serviceFor(d.Name())+"-cert"), "secret", "secretName")
		}
	}
	if len(gone) == 0 {
		return
	}
	drop := func(list *yaml.Node) {
		if list != nil {
			list.Content = slices.DeleteFunc(list.Content, func(n *yaml.Node) bool { return gone[textAt(n, "name")] })
		}
	}
	drop(volumes)
	if len(volumes.Content) == 0 {
		remove(pod, "volumes")
	}
	for _, container := range containers(pod, "containers", "initContainers") {
		if mounts := field(container, "volumeMounts"); mounts != nil {
			drop(mounts)
			if len(mounts.Content) == 0 {
				remove(container, "volumeMounts")
			}
		}
	}
}

// containers returns those in some lists of a pod.
func containers(pod *yaml.Node, lists ...string) (all []*yaml.Node) {
	for _, list := range lists {
		if n := field(pod, list); n != nil {
			all = append(all, n.Content...)
		}
	}
	return all
}

// mountPaths returns where containers mount the volume.
func mountPaths(pod *yaml.Node, volume string) []string {
	var paths []string
	for _, container := range containers(pod, "containers", "initContainers") {
		mounts := field(container, "volumeMounts")
		if mounts == nil {
			continue
		}
		for _, mount := range mounts.Content {
			if textAt(mount, "name") == volume {
				paths = append(paths, strings.TrimSuffix(textAt(mount, "mountPath"), "/"))
			}
		}
	}
	return paths
}

// installStrategy states the deployments in the CSV; their order is that of their names.
func (g *generator) installStrategy() {
	if len(g.deployments) == 0 {
		if present := field(g.csv, "spec", "install", "spec", "deployments"); present == nil || len(present.Content) == 0 {
			g.fail(hint.With(errors.New("the manifests hold no Deployment: there is nothing for OLM to install"),
				"point --manifests at the operator's deployment too, for example at config/default or config/manifests"))
		}
		return
	}
	slices.SortFunc(g.deployments, func(a, b *deployment) int { return cmp.Compare(a.Name(), b.Name()) })
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, d := range g.deployments {
		entry := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		set(entry, text(d.Name()), "name")
		if labels := field(d.node, "metadata", "labels"); labels != nil && len(labels.Content) > 0 {
			set(entry, labels, "label")
		}
		spec := field(d.node, "spec")
		remove(spec, "template", "metadata", "creationTimestamp")
		set(entry, spec, "spec")
		list.Content = append(list.Content, entry)
	}
	set(g.csv, list, "spec", "install", "spec", "deployments")
	set(g.csv, text(v1alpha1.InstallStrategyNameDeployment), "spec", "install", "strategy")
}

// relatedImagePrefix begins the names of variables that tell an operator which images to run.
const relatedImagePrefix = "RELATED_IMAGE_"

// repository returns an image's name without tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		image = image[:i]
	}
	return image
}

// namesImage reports whether a variable tells an operator which image to run: by its name, or because its value is one of the images that are run, as of an operator that runs its own
// image elsewhere.
func namesImage(name, value string, run map[string]bool) bool {
	isImage := strings.ContainsAny(value, ":/@") // a word may be any other name
	return strings.HasPrefix(name, relatedImagePrefix) || isImage && (run[value] || repository(value) == placeholder)
}

// runs are the images that the deployment's pods run.
func (d *deployment) runs() map[string]bool {
	images := map[string]bool{}
	for _, c := range slices.Concat(d.Spec.Template.Spec.Containers, d.Spec.Template.Spec.InitContainers) {
		images[c.Image] = true
	}
	delete(images, "")
	return images
}

// images puts the images of the options in the place of those that the manifests name, and then digests in the place of
// tags: what is installed tomorrow is what was released today.
func (g *generator) images() {
	used := map[string]bool{}
	became := map[string]string{}
	if named := g.setByKustomize(); named != "" {
		used[placeholder] = true
		g.Images = maps.Clone(g.Images)
		g.Images[named] = g.Images[placeholder]
	}
	replace := func(d *deployment, holder *yaml.Node, key string) {
		image := textAt(holder, key)
		if image == "" {
			return
		}
		if became[image] == "" {
			used[repository(image)] = true
			found := cmp.Or(g.Images[repository(image)], image)
			found = g.pinned(d, found)
			became[image] = found
		}
		set(holder, text(became[image]), key)
	}
	for _, d := range g.deployments {
		run := d.runs()
		for _, container := range containers(d.pod(), "containers", "initContainers") {
			replace(d, container, "image")
			if variables := field(container, "env"); variables != nil {
				for _, variable := range variables.Content {
					if namesImage(textAt(variable, "name"), textAt(variable, "value"), run) {
						replace(d, variable, "value")
					}
				}
			}
		}
		d.replaceImages(became, run)
	}
	if base := field(g.csv, "spec", "relatedImages"); base != nil {
		for _, n := range base.Content {
			if found := became[textAt(n, "image")]; found != "" {
				set(n, text(found), "image")
			}
		}
	}
	if found := became[textAt(g.csv, "metadata", "annotations", "containerImage")]; found != "" {
		set(g.csv, text(found), "metadata", "annotations", "containerImage")
	}
	for _, name := range slices.Sorted(maps.Keys(g.Images)) {
		if !used[name] {
			g.failOption(fmt.Errorf("no deployment runs an image %s", name), "name one of: %s", strings.Join(slices.Sorted(maps.Keys(used)), ", "))
		}
	}
}

// placeholder is the manager's image in kubebuilder's projects, until 'kustomize edit set image controller=REF' gives it another name.
const placeholder = "controller"

// setByKustomize returns the name that kustomize gave the manager's image, where the options name that by the placeholder; "" where it
// still has this one, or no container alone is the manager.
func (g *generator) setByKustomize() string {
	if g.Images[placeholder] == "" {
		return ""
	}
	managers := map[string]bool{}
	for _, d := range g.deployments {
		for _, container := range containers(d.pod(), "containers") {
			image := repository(textAt(container, "image"))
			if image == placeholder {
				return ""
			}
			if textAt(container, "name") == "manager" {
				managers[image] = true
			}
		}
	}
	names := slices.Collect(maps.Keys(managers))
	if len(names) != 1 || g.Images[names[0]] != "" {
		return ""
	}
	g.note("the manager's image is %s, not %s: kustomize set it", names[0], placeholder)
	return names[0]
}

// pinned is the image with its digest, where digests are asked for.
func (g *generator) pinned(d *deployment, image string) string {
	if repository(image) == placeholder {
		g.note("%s: %s is the placeholder of kubebuilder's projects, which no cluster can pull: name the release's image with --image controller=REF", d.ID(), image)
		return image
	}
	if g.Pin == nil {
		return image
	}
	pinned, err := g.Pin(image)
	if err != nil {
		g.fail(d.errorf([]any{"spec", "template", "spec"}, "%w", err))
		return image
	}
	return pinned
}

// replaceImages puts the images that others became into the typed deployment.
func (d *deployment) replaceImages(became map[string]string, run map[string]bool) {
	for _, containers := range [][]corev1.Container{d.Spec.Template.Spec.Containers, d.Spec.Template.Spec.InitContainers} {
		for i := range containers {
			containers[i].Image = cmp.Or(became[containers[i].Image], containers[i].Image)
			for j, variable := range containers[i].Env {
				if namesImage(variable.Name, variable.Value, run) {
					containers[i].Env[j].Value = cmp.Or(became[variable.Value], variable.Value)
				}
			}
		}
	}
}

// relatedImages lists every image that the deployments run, or name in a RELATED_IMAGE_ variable for the operator to run,
// so that mirrors of the catalog are complete. What the base lists stays.
func (g *generator) relatedImages() {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if base := field(g.csv, "spec", "relatedImages"); base != nil {
		list.Content = base.Content
	}
	names, images := map[string]bool{}, map[string]bool{}
	for _, n := range list.Content {
		names[textAt(n, "name")] = true
		images[textAt(n, "image")] = true
	}
	add := func(name, image string) {
		if image == "" || images[image] {
			return
		}
		if names[name] {
			_, hash, found := strings.Cut(image, "@sha256:")
			if !found {
				hash = strings.NewReplacer("/", "-", ":", "-", ".", "-").Replace(image)
			}
			name += "-" + hash
		}
		names[name], images[image] = true, true
		list.Content = append(list.Content, nodeOf(v1alpha1.RelatedImage{Name: name, Image: image}))
	}
	for _, d := range g.deployments {
		pod := d.Spec.Template.Spec
		containers := slices.Concat(pod.Containers, pod.InitContainers)
		for _, c := range containers {
			for _, env := range c.Env {
				if strings.HasPrefix(env.Name, relatedImagePrefix) {
					add(strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(env.Name, relatedImagePrefix), "_", "-")), env.Value)
				}
			}
		}
		for _, c := range containers {
			add(c.Name, c.Image)
		}
	}
	if len(list.Content) > 0 {
		set(g.csv, list, "spec", "relatedImages")
	}
}
