package diagnosis

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
)

// extensionRules find causes for a ClusterExtension, in the order in which these are to be mended.
var extensionRules = []func(s *StateV1, x *olmv1.ClusterExtension) []Cause{olmV1Unwell, extensionEnds, catalogsUnserved, refused, notReady}

// olmV1Unwell: OLM v1 itself does not work. Its catalogs are told by catalogsUnserved.
func olmV1Unwell(s *StateV1, _ *olmv1.ClusterExtension) []Cause {
	return unwell(s.OLM, olmv1.KindCatalog, "control-plane", Fix{
		Do: "Apply the manifests of the release of OLM v1 again, which its release page has", Risk: noRisk,
	})
}

// patchExtension is the command that changes x.
func patchExtension(x *olmv1.ClusterExtension, spec string) string {
	return fmt.Sprintf(`kubectl patch clusterextensions.olm.operatorframework.io %s --type merge -p '{"spec": {%s}}'`, x.Name, spec)
}

// describeExtension shows what OLM v1 says of x.
func describeExtension(x *olmv1.ClusterExtension) string {
	return "kubectl describe clusterextensions.olm.operatorframework.io " + x.Name
}

// extensionEnds: what is being deleted is not upgraded.
func extensionEnds(s *StateV1, x *olmv1.ClusterExtension) []Cause {
	if x.DeletionTimestamp == nil || s.Now.Sub(x.DeletionTimestamp.Time) < slowThreshold {
		return nil
	}
	return []Cause{{
		Object: nameOf(x), Why: "it is being deleted, and its finalizers hold it: " + strings.Join(x.Finalizers, ", "),
		Fixes: []Fix{{
			Do: "Look at what OLM v1 says of it: OLM v1 removes its finalizers when all that it made is gone", Command: describeExtension(x),
			Risk: "none by looking; when it goes, the CRDs that it brought go as well, with all their objects",
		}},
	}}
}

func nameOf(x *olmv1.ClusterExtension) string { return olmv1.KindExtension + "/" + x.Name }

const (
	catalogRisk = "all ClusterExtensions that choose from the catalog take the upgrades that it then offers"
	kubectlLogs = "kubectl logs --namespace %s deployment/%s"
)

// catalogsUnserved: OLM v1 cannot read a catalog that x chooses from, or there is none.
func catalogsUnserved(s *StateV1, x *olmv1.ClusterExtension) []Cause {
	selected := s.selected(x)
	if len(selected) == 0 {
		return []Cause{noCatalog(s, x)}
	}
	var causes []Cause
	off := 0
	for _, c := range selected {
		why := c.Trouble()
		switch {
		case c.SwitchedOff():
			off++
		case why != "" && (!c.Serves() || len(selected) == 1 || !x.Settled()):
			// Another of several catalogs that is old bears on x only if x finds nothing.
			causes = append(causes, unserved(s, c, why))
		}
	}
	if off == len(selected) {
		c := selected[0]
		causes = append(causes, Cause{
			Object: olmv1.KindCatalog + "/" + c.Name, Why: "it is switched off, and OLM v1 chooses nothing from it",
			Fixes: []Fix{{Do: "Switch it on", Command: patchCatalog(c, `"availabilityMode": "Available"`), Risk: catalogRisk}},
		})
	}
	return causes
}

func patchCatalog(c *olmv1.ClusterCatalog, spec string) string {
	return fmt.Sprintf(`kubectl patch clustercatalogs.olm.operatorframework.io %s --type merge -p '{"spec": {%s}}'`, c.Name, spec)
}

// noCatalog is the cause that x has nothing to choose from.
func noCatalog(s *StateV1, x *olmv1.ClusterExtension) Cause {
	cause := Cause{Object: nameOf(x), Why: "its selector matches no ClusterCatalog: what is installed stays, and nothing comes after it"}
	cause.Fixes = []Fix{{
		Do: "Have it choose from all ClusterCatalogs", Command: patchExtension(x, `"source": {"catalog": {"selector": null}}`),
		Risk: "a package of the same name in another catalog may be chosen",
	}}
	if len(s.Catalogs) == 0 {
		cause.Why = "the cluster has no ClusterCatalog: what is installed stays, and nothing comes after it"
		cause.Fixes = []Fix{{
			Do: "Create one, with the image of the catalog that has the package",
			Command: `kubectl create -f - <<< '{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "NAME"}, ` +
				`"spec": {"source": {"type": "Image", "image": {"ref": "IMAGE"}}}}'`,
			Risk: catalogRisk,
		}}
	}
	return cause
}

// unserved is the cause that catalogd does not serve c as it should.
func unserved(s *StateV1, c *olmv1.ClusterCatalog, why string) Cause {
	return Cause{
		Object: olmv1.KindCatalog + "/" + c.Name, Why: why,
		Fixes: []Fix{
			{
				Do:      "See that catalogd can pull the catalog's image, or name one that it can pull",
				Command: patchCatalog(c, `"source": {"image": {"ref": "IMAGE"}}`), Risk: catalogRisk,
			},
			{Do: "Read what catalogd writes", Command: fmt.Sprintf(kubectlLogs, s.OLM.Namespace, "catalogd-controller-manager"), Risk: noRisk},
		},
	}
}

// refused: OLM v1 does not install what is wanted. It tries again by itself.
func refused(s *StateV1, x *olmv1.ClusterExtension) []Cause {
	said := x.Refused()
	if said == "" {
		return nil
	}
	cause := Cause{Object: nameOf(x), Why: "OLM v1 refuses what is wanted: " + said}
	switch olmv1.RefusalReason(said) {
	case lifecycle.StoredVersionRefused:
		cause.Why = "CRD upgrade safety refuses the bundle, since objects may be stored in a version that its CRD drops: " + said
		cause.Fixes = []Fix{storedAgain(s, x, said)}
	case lifecycle.UnsafeDefinition:
		cause.Why = "CRD upgrade safety refuses the bundle: " + said
		cause.Fixes = []Fix{pin(x, "Pin a version whose CRD is compatible with the installed one's"), unsafe(x)}
	case lifecycle.Unmet:
		cause.Why = "OLM v1 cannot install a bundle with dependencies: " + said
		cause.Fixes = []Fix{pin(x, "Pin a version without dependencies")}
	case lifecycle.NotApplied:
		cause.Fixes = notApplied(s, x, said)
	default:
		if strings.HasPrefix(said, "error walking catalogs") && len(catalogsUnserved(s, x)) > 0 {
			return nil // this is why
		}
		cause.Fixes = notChosen(s, x, said)
	}
	return []Cause{cause}
}

// pin has x want another version.
func pin(x *olmv1.ClusterExtension, do string) Fix {
	return Fix{
		Do: do + "; 'olmkit upgrade plan CATALOG --olm v1 --edges all' names what follows which", Command: patchExtension(x, `"source": {"catalog": {"version": "VERSION"}}`),
		Risk: "newer versions are not installed until the pin is changed or removed",
	}
}

// unsafe switches CRD upgrade safety off for x.
func unsafe(x *olmv1.ClusterExtension) Fix {
	return Fix{
		Do:      "Switch CRD upgrade safety off for this ClusterExtension, once its objects are known to be valid by the new CRD",
		Command: patchExtension(x, `"install": {"preflight": {"crdUpgradeSafety": {"enforcement": "None"}}}`),
		Risk:    "objects that the new CRD does not allow can no longer be changed, or lose fields",
	}
}

// storedAgain mends that objects may be stored in a version that is dropped. CRD upgrade safety need not be switched off for it: the
// API server refuses as well.
func storedAgain(s *StateV1, x *olmv1.ClusterExtension, said string) Fix {
	name := definitionIn(said)
	stores := s.Stores[name]
	_, dropped, _ := strings.Cut(said, "storedVersionRemoval")
	if stores != "" && slices.Contains(apiVersion.FindAllString(dropped, -1), stores) {
		return pin(x, "Pin a version whose CRD has "+stores+", in which the installed CRD stores objects")
	}
	return Fix{
		Do: "Store all objects in the version that the CRD stores now; OLM v1 then goes on by itself", Command: "olmkit crd migrate " + cmp.Or(name, "CRD"),
		Risk: "writes each object of the CRD once, as it is; webhooks for it are called",
	}
}

// apiVersion is the version of an API.
var apiVersion = regexp.MustCompile(`\bv[0-9]+(?:(?:alpha|beta)[0-9]+)?\b`)

// definitionIn is the CustomResourceDefinition that CRD upgrade safety names, or "".
func definitionIn(said string) string {
	_, after, _ := strings.Cut(said, `validating upgrade for CRD "`)
	name, _, _ := strings.Cut(after, `"`)
	return name
}

// notApplied are ways to mend that a bundle is chosen, and its objects cannot be made.
func notApplied(s *StateV1, x *olmv1.ClusterExtension, said string) []Fix {
	account := x.Spec.ServiceAccount.Name
	switch {
	case account != "" && lacksRights(said):
		return []Fix{grantLeast(s, x, said), grantAll(x)}
	case strings.Contains(said, "cannot be imported into the current release"):
		return []Fix{{
			Do:      "Remove what else owns the object that the message names: another ClusterExtension, a Helm release, or OLM v0's Subscription and ClusterServiceVersion",
			Command: describeExtension(x), Risk: "none by looking; who removes an owner must see that CRDs and their objects stay",
		}}
	}
	return []Fix{{
		Do:      "Fix what the message says; OLM v1 tries again by itself",
		Command: fmt.Sprintf(kubectlLogs, s.OLM.Namespace, "operator-controller-controller-manager"), Risk: noRisk,
	}}
}

// lacksRights tells whether the API server refuses what the ServiceAccount does, as Kubernetes says it, or operator-controller's
// pre-authorization (internal/operator-controller/applier/helm.go) that it would.
func lacksRights(said string) bool {
	return strings.Contains(strings.ToLower(said), `is forbidden: user "system:serviceaccount:`) || strings.Contains(said, "pre-authorization failed")
}

// grantLeast shows the rights that the bundle takes.
func grantLeast(s *StateV1, x *olmv1.ClusterExtension, said string) Fix {
	source := "NAME"
	if selected := s.selected(x); len(selected) == 1 {
		source = selected[0].Name
	}
	command := "olmkit subscription generate --olm v1 --package " + x.Spec.Source.Catalog.PackageName + " --namespace " + x.Spec.Namespace +
		" --catalog CATALOG --catalog-source " + source
	if channels := x.Spec.Source.Catalog.Channels; len(channels) == 1 {
		command += " --channel " + channels[0]
	}
	if x.Name != x.Spec.Source.Catalog.PackageName {
		command += " --name " + x.Name
	}
	if next := resolvedIn(said); next != "" {
		command += " --starting-csv " + next
	}
	return Fix{
		Do: "Give ServiceAccount " + x.Spec.Namespace + "/" + x.Spec.ServiceAccount.Name +
			" the least rights that the bundle takes, by the roles and bindings that this writes; CATALOG is the catalog's directory or file",
		Command: command, Risk: "the ServiceAccount gets all rights that the operator has; leave it those to what the installed bundle has made until the upgrade is done",
	}
}

// grantAll gives the ServiceAccount all rights.
func grantAll(x *olmv1.ClusterExtension) Fix {
	account := x.Spec.ServiceAccount.Name
	return Fix{
		Do:      "Give it all rights on the cluster",
		Command: fmt.Sprintf("kubectl create clusterrolebinding %s-cluster-admin --clusterrole cluster-admin --serviceaccount %s:%s", account, x.Spec.Namespace, account),
		Risk:    "who may use the ServiceAccount, or make pods in " + x.Spec.Namespace + ", may then do anything on the cluster",
	}
}

// notChosen are ways to mend that OLM v1 does not get as far as a bundle.
func notChosen(s *StateV1, x *olmv1.ClusterExtension, said string) []Fix {
	account := x.Spec.ServiceAccount.Name
	edit := Fix{
		Do: "Correct what the message names", Command: strings.Replace(describeExtension(x), "describe", "edit", 1),
		Risk: "OLM v1 takes what is then wanted at once",
	}
	switch {
	case strings.Contains(said, fmt.Sprintf("service account %q not found", account)):
		return []Fix{{
			Do: "Create it; it needs rights as well, and what lacks is told next", Command: fmt.Sprintf("kubectl create serviceaccount %s --namespace %s", account, x.Spec.Namespace),
			Risk: noRisk,
		}}
	case strings.Contains(said, "in multiple catalogs with the same priority"):
		return []Fix{{
			Do:      "Choose one of the catalogs",
			Command: patchExtension(x, `"source": {"catalog": {"selector": {"matchLabels": {"olm.operatorframework.io/metadata.name": "CATALOG"}}}}`),
			Risk:    "upgrades that only another catalog has are not taken",
		}}
	case strings.Contains(said, "no bundles found for package"):
		fixes := []Fix{pin(x, "Pin a version that the catalogs have and that follows what is installed, or change the channels or the selector")}
		if x.Status.Install != nil {
			fixes = append(fixes, Fix{
				Do:      "Leave the ways that the catalog names, and answer for it; set it back to CatalogProvided afterwards",
				Command: patchExtension(x, `"source": {"catalog": {"upgradeConstraintPolicy": "SelfCertified"}}`),
				Risk:    "OLM v1 then goes to any version, also to an older one, which nobody may have tested; only CRD upgrade safety still refuses",
			})
		}
		return fixes
	case lacksRights(said) && account != "":
		return []Fix{grantLeast(s, x, said), grantAll(x)}
	case strings.HasPrefix(said, "error walking catalogs"):
		return []Fix{{
			Do:      "See whether operator-controller reaches catalogd; it tries again by itself",
			Command: fmt.Sprintf(kubectlLogs, s.OLM.Namespace, "operator-controller-controller-manager"), Risk: noRisk,
		}}
	}
	return []Fix{edit}
}

// notReady: what OLM v1 has applied does not come to run. OLM v1 does not wait for it, and says nothing of it.
func notReady(s *StateV1, x *olmv1.ClusterExtension) []Cause {
	if !x.Settled() {
		return nil
	}
	var causes []Cause
	for _, d := range s.deploymentsOf(x) {
		if !rollingOut(d) {
			continue
		}
		e, found := lifecycle.DeploymentTrouble(d, s.Pods)
		if !found || (e.Container == "" || e.Running && !e.Ended) && !s.lasts(d) {
			continue // it starts
		}
		causes = append(causes, Cause{Object: e.Object, Why: "OLM v1 has applied the bundle, and its Deployment " + d.Name + " does not become ready: " + e.Why, Fixes: lookInto(d, e)})
	}
	return causes
}

// lasts tells whether d has been unavailable for some time.
func (s *StateV1) lasts(d *appsv1.Deployment) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable && c.Status != corev1.ConditionTrue || c.Type == appsv1.DeploymentReplicaFailure {
			if s.Now.Sub(c.LastTransitionTime.Time) > slowThreshold {
				return true
			}
		}
	}
	return false
}

// lookInto are the commands that show why a Deployment is not ready.
func lookInto(d *appsv1.Deployment, e lifecycle.Explanation) []Fix {
	if e.Container != "" {
		return containerFixes(e)
	}
	return []Fix{{Do: "Look at why its pods do not run", Command: fmt.Sprintf("kubectl describe deployment %s --namespace %s", d.Name, d.Namespace), Risk: noRisk}}
}
