package diagnosis

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver/projection"
	"github.com/operator-framework/operator-registry/alpha/property"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

const noRisk = "none: operators and their objects are not touched"

// olmUnwell: OLM itself does not work. Its catalogs are told by catalogUnread.
func olmUnwell(s *State, _ *v1alpha1.Subscription) []Cause {
	return unwell(s.OLM, v1alpha1.CatalogSourceKind, "app", Fix{
		Do: "Install what is missing of OLM again, if olmkit installed it", Command: "olmkit olm install", Risk: noRisk,
	})
}

// unwell are the parts of an OLM that are not well, but for its catalogs, of the given kind. Its pods have their Deployment's name
// in a label; install mends what is missing.
func unwell(olm lifecycle.Status, catalogs, label string, install Fix) []Cause {
	var causes []Cause
	for _, p := range olm.Unwell() {
		kind, name, _ := strings.Cut(p.Object, "/")
		if kind == catalogs {
			continue
		}
		fix := install
		if kind == "Deployment" && p.Why != lifecycle.Missing {
			namespace, name, _ := strings.Cut(name, "/")
			fix = Fix{Do: "Look at why its pods do not run", Command: fmt.Sprintf("kubectl describe pods --namespace %s --selector %s=%s", namespace, label, name), Risk: noRisk}
			if strings.Contains(p.Why, "scaled to 0") {
				fix = Fix{Do: "Start it again", Command: fmt.Sprintf("kubectl scale deployment %s --namespace %s --replicas 1", name, namespace), Risk: "OLM goes on with all upgrades that are due, on the whole cluster"}
			}
		}
		causes = append(causes, Cause{Object: p.Object, Why: "a part of OLM is not well: " + p.Why, Fixes: []Fix{fix}})
	}
	return causes
}

// namespaceEnds: nothing can be made in a namespace that is being deleted.
func namespaceEnds(s *State, sub *v1alpha1.Subscription) []Cause {
	for _, n := range s.Namespaces {
		if n.Name == sub.Namespace && n.DeletionTimestamp != nil {
			return []Cause{{
				Object: "Namespace/" + n.Name, Why: "it is being deleted, and what is in it holds it: nothing new can be made there",
				Fixes: []Fix{{Do: "Look at what holds it", Command: "kubectl get namespace " + n.Name + " -o jsonpath='{.status.conditions}'", Risk: noRisk}},
			}}
		}
	}
	return nil
}

// groups: OLM resolves nothing in a namespace that has not exactly one OperatorGroup.
func groups(s *State, sub *v1alpha1.Subscription) []Cause {
	var names []string
	for _, g := range s.Groups {
		if g.Namespace == sub.Namespace {
			names = append(names, g.Name)
		}
	}
	switch len(names) {
	case 1:
		return nil
	case 0:
		return []Cause{{
			Object: "Namespace/" + sub.Namespace, Why: "it has no OperatorGroup, without which OLM installs nothing there",
			Fixes: []Fix{{
				Do: "Create one, here for all namespaces; list spec.targetNamespaces for fewer",
				Command: fmt.Sprintf("kubectl create --namespace %s -f - <<< '{\"apiVersion\": \"operators.coreos.com/v1\", \"kind\": \"OperatorGroup\", \"metadata\": {\"name\": \"%s\"}}'",
					sub.Namespace, sub.Namespace),
				Risk: "the operators of the namespace get their rights in the namespaces that it selects",
			}},
		}}
	}
	return []Cause{{
		Object: "Namespace/" + sub.Namespace, Why: fmt.Sprintf("it has %d OperatorGroups, and OLM wants exactly one: %s", len(names), strings.Join(names, ", ")),
		Fixes: []Fix{{
			Do:      "Delete those that select other namespaces than the operator serves",
			Command: fmt.Sprintf("kubectl delete operatorgroups.operators.coreos.com NAME --namespace %s", sub.Namespace),
			Risk:    "the operator loses its rights in the namespaces that only the deleted one selects",
		}},
	}}
}

// duplicates: two Subscriptions to one package in a namespace cannot both be satisfied.
func duplicates(s *State, sub *v1alpha1.Subscription) []Cause {
	for _, other := range s.Subscriptions {
		if other.Namespace == sub.Namespace && other.Name != sub.Name && other.Spec != nil && other.Spec.Package == sub.Spec.Package {
			return []Cause{{
				Object: "Subscription/" + other.Namespace + "/" + other.Name, Why: "it is to the same package in the same namespace: OLM then upgrades nothing in the namespace",
				Fixes: []Fix{{
					Do:      "Delete the one that has no status.installedCSV",
					Command: fmt.Sprintf("kubectl get subscriptions.operators.coreos.com --namespace %s -o custom-columns=NAME:.metadata.name,INSTALLED:.status.installedCSV", sub.Namespace),
					Risk:    "a deleted Subscription leaves its operator running, without upgrades",
				}},
			}}
		}
	}
	return nil
}

// catalogUnread: OLM does not read the catalog.
func catalogUnread(s *State, sub *v1alpha1.Subscription) []Cause {
	name := sub.Spec.CatalogSourceNamespace + "/" + sub.Spec.CatalogSource
	source := s.catalog(sub)
	if source == nil {
		return []Cause{{
			Object: "CatalogSource/" + name, Why: "the Subscription names it, and it does not exist",
			Fixes: []Fix{{
				Do:      "Name a CatalogSource that exists",
				Command: fmt.Sprintf("kubectl patch subscriptions.operators.coreos.com %s --namespace %s --type merge -p '{\"spec\": {\"source\": \"NAME\", \"sourceNamespace\": \"NAMESPACE\"}}'", sub.Name, sub.Namespace),
				Risk:    "OLM takes the upgrades that the other catalog offers",
			}},
		}}
	}
	if olmv0.Connected(source) {
		return nil
	}
	why := "OLM does not read it"
	for _, p := range s.OLM.Parts {
		if p.Object == "CatalogSource/"+name && p.Why != "" {
			why = p.Why
		}
	}
	fix := Fix{
		Do:      "Look at its pod; OLM makes a new one when it is deleted",
		Command: fmt.Sprintf("kubectl describe pods --namespace %s --selector olm.catalogSource=%s", source.Namespace, source.Name), Risk: noRisk,
	}
	switch {
	case source.Name == olmv0.RunCatalog:
		fix = Fix{Do: "Serve it again: run the bundle that is installed once more", Command: "olmkit bundle run REF", Risk: noRisk}
	case source.Spec.Address != "":
		fix = Fix{Do: "Start what serves it at " + source.Spec.Address + ", or name where it is", Risk: noRisk,
			Command: fmt.Sprintf("kubectl patch catalogsources.operators.coreos.com %s --namespace %s --type merge -p '{\"spec\": {\"address\": \"HOST:PORT\"}}'", source.Name, source.Namespace)}
	}
	return []Cause{{Object: "CatalogSource/" + name, Why: why, Fixes: []Fix{fix}}}
}

// unpacking: OLM could not get the manifests of a bundle out of its image.
func unpacking(_ *State, sub *v1alpha1.Subscription) []Cause {
	c := sub.Status.GetCondition(v1alpha1.SubscriptionBundleUnpackFailed)
	if c.Status != corev1.ConditionTrue {
		return nil
	}
	return []Cause{{
		Object: "Subscription/" + sub.Namespace + "/" + sub.Name, Why: "OLM cannot unpack the bundle: " + c.Message,
		Fixes: []Fix{{
			Do:      "See that the nodes can pull the bundle's image; look at the Jobs that unpack",
			Command: fmt.Sprintf("kubectl get jobs --namespace %s --selector operatorframework.io/bundle-unpack-ref", sub.Spec.CatalogSourceNamespace), Risk: noRisk,
		}},
	}}
}

// planOf is the InstallPlan that sub waits for, or nil.
func planOf(s *State, sub *v1alpha1.Subscription) *v1alpha1.InstallPlan {
	if sub.Status.CurrentCSV == "" {
		return nil
	}
	return olmv0.PlanFor(s.plansIn(sub.Namespace), sub.Status.CurrentCSV)
}

// approval: an InstallPlan waits until somebody approves it.
func approval(s *State, sub *v1alpha1.Subscription) []Cause {
	p := planOf(s, sub)
	if p == nil || p.Status.Phase != v1alpha1.InstallPlanPhaseRequiresApproval || p.Spec.Approved {
		return nil
	}
	return []Cause{{
		Object: "InstallPlan/" + p.Namespace + "/" + p.Name, Why: "it waits for an approval, and installs " + strings.Join(p.Spec.ClusterServiceVersionNames, ", "), waits: true,
		Fixes: []Fix{{
			Do:      "Approve it",
			Command: fmt.Sprintf("kubectl patch installplans.operators.coreos.com %s --namespace %s --type merge -p '{\"spec\": {\"approved\": true}}'", p.Name, p.Namespace),
			Risk:    "OLM installs all that it names, and does not go back to what is installed now",
		}},
	}}
}

// before is the ClusterServiceVersion that sub's next one replaces and that is still there, or nil.
func before(s *State, sub *v1alpha1.Subscription) *v1alpha1.ClusterServiceVersion {
	for _, name := range []string{sub.Status.CurrentCSV, sub.Status.InstalledCSV} {
		if csv := s.csv(sub.Namespace, name); csv != nil && csv.Spec.Replaces != "" {
			if old := s.csv(sub.Namespace, csv.Spec.Replaces); old != nil {
				return old
			}
		}
	}
	if sub.Status.InstalledCSV != sub.Status.CurrentCSV {
		return s.csv(sub.Namespace, sub.Status.InstalledCSV)
	}
	return nil
}

// tryAgain is the command by which OLM chooses anew what comes after installed, nothing if that is "". Without it, OLM takes what
// status.currentCSV names for done, and a Subscription with an InstallPlan for one that has it under way (ResolveSteps in
// pkg/controller/registry/resolver/step_resolver.go and ensureSubscriptionInstallPlanState in
// pkg/controller/operators/catalog/operator.go of operator-lifecycle-manager v0.46.0).
func tryAgain(sub *v1alpha1.Subscription, installed string) string {
	forget := ""
	if sub.Annotations[generatedBy] != "" {
		forget = fmt.Sprintf("kubectl annotate subscriptions.operators.coreos.com %s --namespace %s %s- && ", sub.Name, sub.Namespace, generatedBy)
	}
	return forget + fmt.Sprintf(`kubectl patch subscriptions.operators.coreos.com %s --namespace %s --subresource status --type merge -p '%s'`, sub.Name, sub.Namespace, olmv0.Naming(installed))
}

// generatedBy is the annotation of a Subscription that OLM has made for a dependency: the InstallPlan that it was made by, for which OLM looks as
// long as the status names none, and does not resolve anything in the namespace until then.
const generatedBy = "olm.generated-by"

// failedPlan: OLM tries a step for about a minute, and then never again.
func failedPlan(s *State, sub *v1alpha1.Subscription) []Cause {
	p := planOf(s, sub)
	if p == nil || p.Status.Phase != v1alpha1.InstallPlanPhaseFailed {
		return nil
	}
	e := olmv0.ExplainPlan(p)
	installed, commands := "", []string{fmt.Sprintf("kubectl delete installplans.operators.coreos.com %s --namespace %s", p.Name, p.Namespace)}
	if s.csv(sub.Namespace, sub.Status.CurrentCSV) != nil {
		commands = append(commands, fmt.Sprintf("kubectl delete clusterserviceversions.operators.coreos.com %s --namespace %s", sub.Status.CurrentCSV, sub.Namespace))
	}
	if old := before(s, sub); old != nil {
		installed = old.Name
	}
	commands = append(commands, tryAgain(sub, installed))
	return []Cause{{
		Object: e.Object, Why: "it failed, and OLM does not try it again: " + e.Why,
		Fixes: []Fix{{
			Do: "Fix what the message says, and have OLM start again", Command: strings.Join(commands, " && "),
			Risk: "deletes the ClusterServiceVersion of the version that failed, with the Deployments that OLM has given it; CRDs and their objects stay",
		}},
	}}
}

// installedGone: somebody deleted the ClusterServiceVersion, or the InstallPlan before it was done, and OLM makes neither again.
func installedGone(s *State, sub *v1alpha1.Subscription) []Cause {
	name := sub.Status.CurrentCSV
	if name == "" || s.csv(sub.Namespace, name) != nil {
		return nil
	}
	why := "OLM installed it, it is not there any more, and OLM does not make it again"
	switch p := planOf(s, sub); {
	case p == nil && sub.Status.InstallPlanRef != nil && s.rests(sub):
		why = "neither it nor the InstallPlan that installs it is there any more, and OLM makes neither again"
	case p == nil || p.Status.Phase != v1alpha1.InstallPlanPhaseComplete:
		return nil
	}
	fix := Fix{
		Do: "Have OLM install the package again", Command: tryAgain(sub, ""),
		Risk: "OLM installs the newest version of the channel, which need not be one that the deleted version upgrades to",
	}
	if starting := sub.Spec.StartingCSV; starting != "" {
		fix.Risk = fmt.Sprintf("OLM installs %s, which spec.startingCSV names, also over objects of a newer version", starting)
	}
	old := before(s, sub)
	if old == nil {
		old = s.newest(sub)
	}
	if old != nil {
		fix = Fix{Do: "Have OLM choose the upgrade again", Command: tryAgain(sub, old.Name), Risk: noRisk}
	}
	return []Cause{{Object: "ClusterServiceVersion/" + sub.Namespace + "/" + name, Why: why, Fixes: []Fix{fix}}}
}

// rests tells whether OLM has not written the status of sub for so long that nothing comes a moment later.
func (s *State) rests(sub *v1alpha1.Subscription) bool {
	return s.Now.Sub(sub.Status.LastUpdated.Time) >= patience
}

// unreferenced: a ClusterServiceVersion of the package is there, and no Subscription names it: after a restored backup, a
// Subscription that was created again, or a status that OLM has lost. The resolver then refuses to install it a second time
// (NewBundleVariableFromOperator in pkg/controller/registry/resolver/variable_types.go of operator-lifecycle-manager v0.46.0).
func unreferenced(s *State, sub *v1alpha1.Subscription) []Cause {
	if sub.Status.CurrentCSV != "" {
		return nil
	}
	csv := s.newest(sub)
	if csv == nil || !s.stays(csv) {
		return nil
	}
	return []Cause{{
		Object: "ClusterServiceVersion/" + csv.Namespace + "/" + csv.Name, Why: "it is installed, no Subscription names it, and OLM does not install the package a second time",
		Fixes: []Fix{{
			Do: "Have the Subscription name it: OLM then upgrades it", Command: tryAgain(sub, csv.Name),
			Risk: "none, as long as the Subscription's channel has this version, or one that replaces it",
		}},
	}}
}

// newest is the ClusterServiceVersion of sub's package in its namespace that no Subscription names and no other version replaces, or nil: of
// several, the highest version.
func (s *State) newest(sub *v1alpha1.Subscription) (newest *v1alpha1.ClusterServiceVersion) {
	for i := range s.CSVs {
		csv := &s.CSVs[i]
		if csv.Namespace != sub.Namespace || csv.DeletionTimestamp != nil || packageOf(csv) != sub.Spec.Package || s.named(csv) || s.replaced(csv) {
			continue
		}
		if newest == nil || csv.Spec.Version.GT(newest.Spec.Version.Version) {
			newest = csv
		}
	}
	return newest
}

// replaced tells whether a ClusterServiceVersion that is there replaces csv.
func (s *State) replaced(csv *v1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(s.CSVs, func(other v1alpha1.ClusterServiceVersion) bool {
		return other.Namespace == csv.Namespace && other.Spec.Replaces == csv.Name
	})
}

// named tells whether a Subscription says that csv is installed, or to be.
func (s *State) named(csv *v1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(s.Subscriptions, func(sub v1alpha1.Subscription) bool {
		return sub.Namespace == csv.Namespace && (sub.Status.InstalledCSV == csv.Name || sub.Status.CurrentCSV == csv.Name)
	})
}

// settles tells whether OLM is about to say, in a Subscription of namespace, that a ClusterServiceVersion is installed, or to delete one that is
// replaced: its resolver finds no solution until then.
func (s *State) settles(namespace string) bool {
	return slices.ContainsFunc(s.CSVs, func(csv v1alpha1.ClusterServiceVersion) bool {
		return csv.Namespace == namespace && (s.replaced(&csv) || s.unnoted(&csv))
	})
}

// unnoted tells whether OLM has just installed csv, or is about to, and no Subscription says so yet.
func (s *State) unnoted(csv *v1alpha1.ClusterServiceVersion) bool {
	about := !s.stays(csv)
	for i := range s.Subscriptions {
		sub := &s.Subscriptions[i]
		if sub.Namespace != csv.Namespace {
			continue
		}
		if sub.Status.InstalledCSV == csv.Name {
			return false
		}
		if p := planOf(s, sub); sub.Status.CurrentCSV == csv.Name && p != nil && p.Status.Phase == v1alpha1.InstallPlanPhaseInstalling {
			about = true
		}
	}
	return about
}

// packageOf is the package of csv, by the properties that OLM notes in what it installs; "" if it did not install it.
func packageOf(csv *v1alpha1.ClusterServiceVersion) string {
	properties, err := projection.PropertyListFromPropertiesAnnotation(csv.Annotations[projection.PropertiesAnnotationKey])
	if err != nil {
		return ""
	}
	for _, p := range properties {
		var pkg property.Package
		if p.Type == property.TypePackage && json.Unmarshal([]byte(p.Value), &pkg) == nil {
			return pkg.PackageName
		}
	}
	return ""
}

// patience is how long what OLM waits for may be away: it may come a moment later.
const patience = 15 * time.Second

// stays tells whether csv has been where it is for so long that nothing comes a moment later.
func (s *State) stays(csv *v1alpha1.ClusterServiceVersion) bool {
	moved := csv.Status.LastTransitionTime
	if moved == nil {
		moved = &csv.CreationTimestamp
	}
	return s.Now.Sub(moved.Time) >= patience
}

// deadlock: what is installed waits for what the new version took away, and the new version waits for it to be replaced.
func deadlock(s *State, sub *v1alpha1.Subscription) []Cause {
	here := slices.DeleteFunc(slices.Clone(s.CSVs), func(csv v1alpha1.ClusterServiceVersion) bool { return csv.Namespace != sub.Namespace })
	old, next := olmv0.Deadlock(here)
	if old == nil || next.Name != sub.Status.CurrentCSV || !s.stays(old) {
		return nil
	}
	return []Cause{{
		Object: "ClusterServiceVersion/" + old.Namespace + "/" + old.Name, Why: old.Name + " and " + next.Name + " wait for each other: " + olmv0.DeadlockOf(old),
		Fixes: []Fix{{
			Do: "Have OLM replace the old version", Risk: noRisk,
			Command: fmt.Sprintf("kubectl patch clusterserviceversions.operators.coreos.com %s --namespace %s --subresource status --type merge -p '%s'", old.Name, old.Namespace, olmv0.DeadlockPatch),
		}},
	}}
}

// unservedNamespace: what is installed lacks its rights in a namespace that it serves, and OLM does not look again.
func unservedNamespace(s *State, sub *v1alpha1.Subscription) []Cause {
	csv := s.csv(sub.Namespace, sub.Status.InstalledCSV)
	if csv == nil || before(s, sub) != nil || !s.stays(csv) {
		return nil
	}
	namespace := s.Unserved[csv.Namespace+"/"+csv.Name]
	if namespace == "" {
		return nil
	}
	return []Cause{{
		Object: "ClusterServiceVersion/" + csv.Namespace + "/" + csv.Name,
		Why:    "its operator lacks the rights in namespace " + namespace + " that its permissions give it: OLM did not copy its Roles there, and looks again only when the ClusterServiceVersion changes",
		Fixes: []Fix{{
			Do: "Have OLM look again", Risk: noRisk,
			Command: fmt.Sprintf("kubectl label clusterserviceversions.operators.coreos.com %s --namespace %s --overwrite %s=%d", csv.Name, csv.Namespace, olmv0.WokenLabel, s.Now.Unix()),
		}},
	}}
}

// versions: what is installed, or to be, does not come to run.
func versions(s *State, sub *v1alpha1.Subscription) []Cause {
	csv := s.csv(sub.Namespace, sub.Status.CurrentCSV)
	if csv == nil {
		csv = s.csv(sub.Namespace, sub.Status.InstalledCSV)
	}
	if csv == nil || csv.Status.Phase == v1alpha1.CSVPhaseSucceeded {
		return nil
	}
	if old := before(s, sub); old != nil && csv.Status.Reason == v1alpha1.CSVReasonOperatorConditionNotUpgradeable {
		return []Cause{notUpgradeable(s, old, csv)}
	}
	e := olmv0.ExplainVersion(csv, s.Deployments, s.Pods)
	starts := e.Running && !e.Ended
	if (e.Container == "" || starts) && !s.lasts(csv) {
		return nil
	}
	return []Cause{{Object: e.Object, Why: e.Phase + ": " + e.Why, Fixes: fixesOf(csv, e)}}
}

// slowThreshold is how long OLM may take for a phase until that counts as stuck, if nothing says that it is.
const slowThreshold = 2 * time.Minute

// lasts tells whether csv is where it is for good: it failed, or has not moved for some time.
func (s *State) lasts(csv *v1alpha1.ClusterServiceVersion) bool {
	moved := csv.Status.LastTransitionTime
	return csv.Status.Phase == v1alpha1.CSVPhaseFailed || moved != nil && s.Now.Sub(moved.Time) > slowThreshold
}

// notUpgradeable: the operator that runs says that it must not be replaced now.
func notUpgradeable(s *State, old, csv *v1alpha1.ClusterServiceVersion) Cause {
	why := "the operator that runs says that it must not be replaced now"
	for _, o := range s.Conditions {
		if o.Namespace != old.Namespace || o.Name != old.Name {
			continue
		}
		for _, list := range [][]metav1.Condition{o.Spec.Overrides, o.Spec.Conditions} {
			if c := meta.FindStatusCondition(list, operatorsv2.Upgradeable); c != nil && c.Status == metav1.ConditionFalse {
				why += ": " + c.Reason + ": " + c.Message
				break
			}
		}
	}
	return Cause{
		Object: "OperatorCondition/" + old.Namespace + "/" + old.Name, Why: why,
		Fixes: []Fix{{
			Do: "Wait until it is done, or replace it all the same by " + csv.Name,
			Command: fmt.Sprintf(`kubectl patch operatorconditions.operators.coreos.com %s --namespace %s --type merge -p '{"spec": {"overrides": [{"type": "Upgradeable", "status": "True", "reason": "Forced", "message": "an administrator overrides it"}]}}'`,
				old.Name, old.Namespace),
			Risk: "the operator is replaced amid what it wants to finish first; its objects may be left half-way",
		}},
	}
}

// fixesOf are ways to mend what e says of csv.
func fixesOf(csv *v1alpha1.ClusterServiceVersion, e lifecycle.Explanation) []Fix {
	look := Fix{
		Do: "Look at what OLM says of it", Risk: noRisk,
		Command: fmt.Sprintf("kubectl describe clusterserviceversions.operators.coreos.com %s --namespace %s", csv.Name, csv.Namespace),
	}
	switch {
	case e.Container != "":
		return containerFixes(e)
	case csv.Status.Reason == v1alpha1.CSVReasonUnsupportedOperatorGroup:
		return []Fix{{
			Do: "Select with the OperatorGroup namespaces that the operator's install modes allow", Risk: "all operators of the namespace then serve what it selects",
			Command: fmt.Sprintf("kubectl edit operatorgroups.operators.coreos.com --namespace %s", csv.Namespace),
		}}
	}
	if csv.Status.Phase == v1alpha1.CSVPhaseFailed {
		return []Fix{look}
	}
	return []Fix{look, {
		Do: "Have OLM look at it again, if all that it waits for is there: it puts off what failed for up to 17 minutes", Risk: noRisk,
		Command: fmt.Sprintf("kubectl label clusterserviceversions.operators.coreos.com %s --namespace %s --overwrite %s=$(date +%%s)", csv.Name, csv.Namespace, olmv0.WokenLabel),
	}}
}

// containerFixes are the commands that show why the container that e names does not run.
func containerFixes(e lifecycle.Explanation) []Fix {
	parts := strings.SplitN(e.Container, "/", 3)
	logs := fmt.Sprintf("kubectl logs %s --namespace %s --container %s", parts[1], parts[0], parts[2])
	describe := Fix{Do: "See whether its image can be pulled, and where it can run", Risk: noRisk, Command: fmt.Sprintf("kubectl describe pod %s --namespace %s", parts[1], parts[0])}
	switch {
	case e.Ended:
		return []Fix{{Do: "Read what the container wrote before it ended", Risk: noRisk, Command: logs + " --previous"}, describe}
	case e.Running:
		return []Fix{{Do: "Read what the container writes", Risk: noRisk, Command: logs}, describe}
	}
	return []Fix{describe}
}
