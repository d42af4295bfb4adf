package embedded

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/cluster"

	"golang.org/x/mod/semver"

	"github.com/olmkit/olmkit/internal/hint"
)

// Versions of the components, as tools/cluster/go.mod pins them.
const (
	KubernetesVersion = "v1.36.3"
	OLMVersion        = "v0.46.0"
)

// OLMImage is the reference under which embedded clusters run OLM's programs, the one of OLM's release.
const OLMImage = "quay.io/operator-framework/olm:" + OLMVersion

// OLMv1Version is of operator-controller and catalogd, as tools/olmv1/go.mod pins it.
const OLMv1Version = cluster.OLMv1Version

// otherReleases are the releases of Kubernetes that kubernetes.txtar pins the modules of, one of each minor, from the oldest on.
// Of 1.31 and 1.32 they are not the newest patches: all of whose modules could be had when they were pinned.
var otherReleases = []string{"v1.30.14", "v1.31.4", "v1.32.2", "v1.33.13", "v1.34.4", "v1.35.4"}

// KubernetesReleases are the releases of Kubernetes that embedded clusters can be of, one of each minor, from the oldest on.
func KubernetesReleases() []string { return append(slices.Clone(otherReleases), KubernetesVersion) }

// KubernetesMinors are the minors of KubernetesReleases, such as 1.33.
func KubernetesMinors() []string {
	var minors []string
	for _, release := range KubernetesReleases() {
		minors = append(minors, minorOf(release))
	}
	return minors
}

// KubernetesRelease returns the release that a user names: by its minor, 1.33, or in full, with a v or without. No name is
// KubernetesVersion.
func KubernetesRelease(name string) (string, error) {
	if name == "" {
		return KubernetesVersion, nil
	}
	v := "v" + strings.TrimPrefix(name, "v")
	for _, release := range KubernetesReleases() {
		if v == release || v == "v"+minorOf(release) {
			return release, nil
		}
	}
	return "", hint.With(fmt.Errorf("embedded clusters have no Kubernetes %s", name), "%s", instead(v))
}

// instead says which releases there are for who asked for v.
func instead(v string) string {
	for _, release := range KubernetesReleases() {
		if semver.MajorMinor(v) == semver.MajorMinor(release) {
			return fmt.Sprintf("of Kubernetes %s there is %s: write %s", minorOf(release), release, minorOf(release))
		}
	}
	return fmt.Sprintf("choose one of %s; '--cluster kind' with --node-image runs others", strings.Join(KubernetesMinors(), ", "))
}

// minorOf is the minor of a release, without the v.
func minorOf(release string) string { return strings.TrimPrefix(semver.MajorMinor(release), "v") }
