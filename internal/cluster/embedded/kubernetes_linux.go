package embedded

import (
	"fmt"
	"strings"
)

// kubernetesComponents are etcd and the control plane of release, one of KubernetesReleases.
func kubernetesComponents(release string) *componentSet {
	return &componentSet{
		name:     "kubernetes-" + minorOf(release),
		module:   kubernetesModule(release),
		says:     "etcd and Kubernetes " + release,
		takes:    "4 to 9 min",
		programs: []componentProgram{{"cluster", ".", []string{"-ldflags", kubernetesStamp(release)}}},
	}
}

// kubernetesStamp has Kubernetes' programs say that they are of release. OLM takes no minKubeVersion for met by one that says nothing.
func kubernetesStamp(release string) string {
	major, minor, _ := strings.Cut(minorOf(release), ".")
	const version = "k8s.io/component-base/version."
	return fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s", version, release, version, major, version, minor)
}
