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
	OLMVersion        = cluster.OLMVersion
)

// OLMImage is the reference under which embedded clusters run OLM's programs, the one of OLM's release.
const OLMImage = cluster.OLMRepository + ":" + OLMVersion

// OLMv1Version is of operator-controller and catalogd, as tools/olmv1/go.mod pins it.
const OLMv1Version = cluster.OLMv1Version

// KindVersion is of kind, as tools/kind/kind/go.mod pins it.
const KindVersion = "v0.33.0"

// otherReleases are the releases of Kubernetes that kubernetes.txtar pins the modules of, one of each minor, from the oldest on.
// Of 1.31 and 1.32 they are not the newest patches: all of whose modules could be had when they were pinned.
var otherReleases = []string{"v1.30.14", "v1.31.4", "v1.32.2", "v1.33.13", "v1.34.4", "v1.35.4"}

// olmImage is the reference under which embedded clusters run the programs of a release of OLM v0.
func olmImage(release string) string { return cluster.OLMRepository + ":" + release }

// otherOLMReleases are the releases of OLM v0 that olm.txtar pins, one of each minor, from the oldest on. Not all could be had with what they
// are built of when they were pinned; upgrades of the memcached operator were walked under each.
var otherOLMReleases = []string{"v0.28.0", "v0.33.0", "v0.38.0", "v0.45.0"}

// OLMReleases are the releases of OLM v0 that embedded clusters can run, one of each minor, from the oldest on.
func OLMReleases() []string { return append(slices.Clone(otherOLMReleases), OLMVersion) }

// OLMMinors are the minors of OLMReleases, such as 0.38.
func OLMMinors() []string { return minorsOf(OLMReleases()) }

// OLMRelease returns the release of OLM v0 that a user names: by its minor, 0.38, or in full, with a v or without. No name is OLMVersion.
func OLMRelease(name string) (string, error) {
	if name == "" {
		return OLMVersion, nil
	}
	if release := named(name, OLMReleases()); release != "" {
		return release, nil
	}
	return "", hint.With(fmt.Errorf("embedded clusters have no OLM %s", name), "%s",
		instead("OLM", name, OLMReleases(), "'--cluster existing' walks under the OLM of your cluster"))
}

// KubernetesReleases are the releases of Kubernetes that embedded clusters can be of, one of each minor, from the oldest on.
func KubernetesReleases() []string { return append(slices.Clone(otherReleases), KubernetesVersion) }

// KubernetesMinors are the minors of KubernetesReleases, such as 1.33.
func KubernetesMinors() []string { return minorsOf(KubernetesReleases()) }

// KubernetesRelease returns the release that a user names: by its minor, 1.33, or in full, with a v or without. No name is
// KubernetesVersion.
func KubernetesRelease(name string) (string, error) {
	if name == "" {
		return KubernetesVersion, nil
	}
	if release := named(name, KubernetesReleases()); release != "" {
		return release, nil
	}
	return "", hint.With(fmt.Errorf("embedded clusters have no Kubernetes %s", name), "%s",
		instead("Kubernetes", name, KubernetesReleases(), "'--cluster kind' with --node-image runs others"))
}

// named is the one of releases that name is of; "" for none.
func named(name string, releases []string) string {
	v := "v" + strings.TrimPrefix(name, "v")
	for _, release := range releases {
		if v == release || v == "v"+minorOf(release) {
			return release
		}
	}
	return ""
}

// instead says which releases of what there are for who asked for another one, and where else there may be others.
func instead(what, name string, releases []string, elsewhere string) string {
	for _, release := range releases {
		if semver.MajorMinor("v"+strings.TrimPrefix(name, "v")) == semver.MajorMinor(release) {
			return fmt.Sprintf("of %s %s there is %s: write %s", what, minorOf(release), release, minorOf(release))
		}
	}
	return fmt.Sprintf("choose one of %s; %s", strings.Join(minorsOf(releases), ", "), elsewhere)
}

func minorsOf(releases []string) []string {
	minors := make([]string, len(releases))
	for i, release := range releases {
		minors[i] = minorOf(release)
	}
	return minors
}

// minorOf is the minor of a release, without the v.
func minorOf(release string) string { return strings.TrimPrefix(semver.MajorMinor(release), "v") }
