package upgrade

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/finding"
)

const kindClaim = "PersistentVolumeClaim"

// volume names the PersistentVolume that o, a claim, is bound to, "" for none.
func (o operand) volume() string {
	name, _, _ := unstructured.NestedString(o.Content, "spec", "volumeName")
	return name
}

// judgeClaims tells the claims of before whose data is gone or is not used any more.
func (w *walk) judgeClaims(ctx context.Context, before, after map[string]operand) ([]finding.Finding, error) {
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		is, there := after[name]
		switch {
		case was.Kind != kindClaim || was.transient() || was.volume() == "":
		case there && is.volume() != was.volume():
			findings = append(findings, find(codeDataLost, name, "it was deleted and made anew during the upgrade: it has another volume"))
		case !there && !smaller(was.Of, before, after):
			err := w.client.Get(ctx, client.ObjectKey{Namespace: was.Namespace, Name: was.Name}, &corev1.PersistentVolumeClaim{})
			switch {
			case apierrors.IsNotFound(err):
				findings = append(findings, find(codeDataLost, name, "it was deleted during the upgrade"))
			case err != nil:
				return nil, fmt.Errorf("read %s: %w", name, err)
			default:
				findings = append(findings, find(codeDataLost, name, "it is still there, and no pod of %s mounts it any more", was.Of))
			}
		}
	}
	return findings, nil
}

// smaller reports whether the object called of has fewer pods after than before, of the same workloads: it was scaled down, or
// its pods do not come, which others tell.
func smaller(of string, before, after map[string]operand) bool {
	pods := func(operands map[string]operand) (n int) {
		for _, o := range operands {
			if o.Of == of && o.Kind == "Pod" {
				n++
			}
		}
		return n
	}
	for name, o := range before {
		if _, stays := after[name]; o.Of == of && slices.Contains(workloadKinds, o.Kind) && !stays {
			return false
		}
	}
	return pods(after) < pods(before)
}

// credentialKeys are how the keys of Secrets that hold what clients authenticate with end.
var credentialKeys = regexp.MustCompile(`(?i)(password|passwd|passphrase|api[-_]?key|access[-_]?key|secret[-_]?key)$`)

// credentialsChanged names the fields of a Secret that hold what clients authenticate with and that are not what they were.
func credentialsChanged(before, after operand) []string {
	if before.Kind != "Secret" {
		return nil
	}
	var changed []string
	was, _, _ := unstructured.NestedMap(before.Content, "data")
	is, _, _ := unstructured.NestedMap(after.Content, "data")
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if credentialKeys.MatchString(key) && was[key] != is[key] {
			changed = append(changed, "data."+key)
		}
	}
	return changed
}
