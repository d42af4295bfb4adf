package diagnosis

import (
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// tea is the catalog of the tests: v1, v2 which replaces it, and a package that needs what nobody has.
const tea = `{"schema":"olm.package","name":"tea","defaultChannel":"stable"}
{"schema":"olm.channel","package":"tea","name":"stable","entries":[{"name":"tea.v1"},{"name":"tea.v2","replaces":"tea.v1"}]}
{"schema":"olm.channel","package":"tea","name":"old","entries":[{"name":"tea.v1"}]}
{"schema":"olm.bundle","package":"tea","name":"tea.v1","image":"example.com/tea:v1","properties":[{"type":"olm.package","value":{"packageName":"tea","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"tea","name":"tea.v2","image":"example.com/tea:v2","properties":[{"type":"olm.package","value":{"packageName":"tea","version":"2.0.0"}}]}
{"schema":"olm.package","name":"pot","defaultChannel":"stable"}
{"schema":"olm.channel","package":"pot","name":"stable","entries":[{"name":"pot.v1"}]}
{"schema":"olm.bundle","package":"pot","name":"pot.v1","image":"example.com/pot:v1","properties":[{"type":"olm.package","value":{"packageName":"pot","version":"1.0.0"}},{"type":"olm.package.required","value":{"packageName":"kettle","versionRange":">=1.0.0"}}]}
`

func at(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "n", Name: name} }

func subscription(name, pkg, channel, installed, current string) v1alpha1.Subscription {
	s := v1alpha1.Subscription{ObjectMeta: at(name)}
	s.Spec = &v1alpha1.SubscriptionSpec{Package: pkg, Channel: channel, CatalogSource: "c", CatalogSourceNamespace: "n"}
	s.Status.InstalledCSV, s.Status.CurrentCSV = installed, current
	return s
}

func csv(name, release, replaces string, phase v1alpha1.ClusterServiceVersionPhase, reason v1alpha1.ConditionReason) v1alpha1.ClusterServiceVersion {
	v := v1alpha1.ClusterServiceVersion{ObjectMeta: at(name)}
	v.Annotations = map[string]string{"operatorframework.io/properties": `{"properties":[{"type":"olm.package","value":{"packageName":"tea","version":"` + release + `"}}]}`}
	v.Spec.Version, v.Spec.Replaces = version.OperatorVersion{Version: semver.MustParse(release)}, replaces
	v.Status.Phase, v.Status.Reason, v.Status.Message = phase, reason, "it says why"
	long := metav1.NewTime(noon.Add(-time.Hour))
	v.Status.LastTransitionTime = &long
	return v
}

func plan(name, installs string, phase v1alpha1.InstallPlanPhase) v1alpha1.InstallPlan {
	p := v1alpha1.InstallPlan{ObjectMeta: at(name)}
	p.Spec.ClusterServiceVersionNames = []string{installs}
	p.Status.Phase, p.Status.Message = phase, "a step failed"
	return p
}

// atV1 is a cluster on which tea.v1 runs, subscribed to the channel old, in which nothing is newer.
func atV1() *State {
	c := v1alpha1.CatalogSource{ObjectMeta: at("c")}
	c.Status.GRPCConnectionState = &v1alpha1.GRPCConnectionState{LastObservedState: "READY"}
	return &State{
		Now: noon, OLM: lifecycle.Status{Installed: true, Namespace: "olm"}, Catalogs: []v1alpha1.CatalogSource{c},
		Subscriptions: []v1alpha1.Subscription{subscription("tea", "tea", "old", "tea.v1", "tea.v1")},
		CSVs:          []v1alpha1.ClusterServiceVersion{csv("tea.v1", "1.0.0", "", v1alpha1.CSVPhaseSucceeded, "InstallSucceeded")},
		Groups:        []operatorsv1.OperatorGroup{{ObjectMeta: at("g")}},
		Plans:         []v1alpha1.InstallPlan{plan("install-1", "tea.v1", v1alpha1.InstallPlanPhaseComplete)},
		Namespaces:    []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}},
	}
}

// toV2 has OLM be at work on tea.v2, which is in a phase.
func toV2(s *State, phase v1alpha1.ClusterServiceVersionPhase, reason v1alpha1.ConditionReason) {
	s.Subscriptions[0].Spec.Channel = "stable"
	s.Subscriptions[0].Status.CurrentCSV, s.Subscriptions[0].Status.InstalledCSV = "tea.v2", "tea.v2"
	s.CSVs[0].Status.Phase = v1alpha1.CSVPhaseReplacing
	s.CSVs = append(s.CSVs, csv("tea.v2", "2.0.0", "tea.v1", phase, reason))
}

// deployed gives tea.v2 a deployment with a pod, whose container is in a status.
func deployed(s *State, status corev1.ContainerStatus) {
	app := map[string]string{"app": "tea"}
	s.CSVs[1].Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: "tea"}}
	d := appsv1.Deployment{ObjectMeta: at("tea")}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: app}
	p := corev1.Pod{ObjectMeta: at("tea-1")}
	p.Labels = app
	status.Name = "manager"
	p.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	s.Deployments, s.Pods = []appsv1.Deployment{d}, []corev1.Pod{p}
}

var (
	unpulled = corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}
	crashing = corev1.ContainerStatus{
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
	}
	unready = corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
)

// TestDiagnose: each state is told from the others, with the command that mends it.
func TestDiagnose(t *testing.T) {
	for name, test := range map[string]struct {
		change    func(s *State)
		state     string
		installed string
		next      string
		why, fix  string // of the first cause
	}{
		"up to date":          {func(*State) {}, UpToDate, "tea.v1", "", "", ""},
		"an upgrade is there": {func(s *State) { s.Subscriptions[0].Spec.Channel = "stable" }, Upgrading, "tea.v1", "tea.v2", "", ""},
		"OLM installs": {func(s *State) {
			toV2(s, v1alpha1.CSVPhaseInstalling, "InstallWaiting")
			s.CSVs[1].Status.LastTransitionTime = &metav1.Time{Time: noon}
		}, Upgrading, "tea.v1", "tea.v2", "", ""},
		"OLM noted what has passed": {func(s *State) {
			s.Subscriptions[0].Status.Conditions = []v1alpha1.SubscriptionCondition{{Type: v1alpha1.SubscriptionResolutionFailed, Status: "True", Message: "tea.v0 exists and is not referenced"}}
		}, UpToDate, "tea.v1", "", "", ""},
		"it needs an approval": {func(s *State) {
			s.Subscriptions[0].Spec.Channel, s.Subscriptions[0].Status.CurrentCSV = "stable", "tea.v2"
			s.Plans = append(s.Plans, plan("install-2", "tea.v2", v1alpha1.InstallPlanPhaseRequiresApproval))
		}, Waiting, "tea.v1", "tea.v2", "waits for an approval, and installs tea.v2", `kubectl patch installplans.operators.coreos.com install-2 --namespace n --type merge -p '{"spec": {"approved": true}}'`},
		"OLM is broken": {func(s *State) {
			s.OLM.Parts = []lifecycle.Part{{Object: "Deployment/olm/catalog-operator", Why: "it is scaled to 0"}}
		}, Stuck, "tea.v1", "", "a part of OLM is not well: it is scaled to 0", "kubectl scale deployment catalog-operator --namespace olm --replicas 1"},
		"the namespace ends": {func(s *State) { s.Namespaces[0].DeletionTimestamp = &metav1.Time{Time: noon} }, Stuck, "tea.v1", "", "it is being deleted", "kubectl get namespace n"},
		"no OperatorGroup":   {func(s *State) { s.Groups = nil }, Stuck, "tea.v1", "", "no OperatorGroup", "kubectl create --namespace n"},
		"two OperatorGroups": {func(s *State) { s.Groups = append(s.Groups, operatorsv1.OperatorGroup{ObjectMeta: at("h")}) }, Stuck, "tea.v1", "", "2 OperatorGroups, and OLM wants exactly one: g, h", "kubectl delete operatorgroups"},
		"subscribed to twice": {func(s *State) {
			s.Subscriptions = append(s.Subscriptions, subscription("twin", "tea", "stable", "", ""))
		}, Stuck, "tea.v1", "", "to the same package in the same namespace", "kubectl get subscriptions"},
		"no such catalog": {func(s *State) { s.Subscriptions[0].Spec.CatalogSource = "d" }, Stuck, "tea.v1", "", "it does not exist", "kubectl patch subscriptions.operators.coreos.com tea --namespace n"},
		"the catalog's pod is gone": {func(s *State) {
			s.Catalogs[0].Status.GRPCConnectionState.LastObservedState = "TRANSIENT_FAILURE"
			s.OLM.Parts = []lifecycle.Part{{Object: "CatalogSource/n/c", Why: "OLM does not read it: connection TRANSIENT_FAILURE"}}
		}, Stuck, "tea.v1", "", "connection TRANSIENT_FAILURE", "kubectl describe pods --namespace n --selector olm.catalogSource=c"},
		"the catalog's server is gone": {func(s *State) {
			s.Catalogs[0].Spec.Address, s.Catalogs[0].Status.GRPCConnectionState = "10.0.0.1:50051", nil
		}, Stuck, "tea.v1", "", "OLM does not read it", "kubectl patch catalogsources.operators.coreos.com c --namespace n"},
		"a bundle is not unpacked": {func(s *State) {
			s.Subscriptions[0].Status.Conditions = []v1alpha1.SubscriptionCondition{{Type: v1alpha1.SubscriptionBundleUnpackFailed, Status: "True", Message: "DeadlineExceeded"}}
		}, Stuck, "tea.v1", "", "OLM cannot unpack the bundle: DeadlineExceeded", "kubectl get jobs --namespace n"},
		"the plan failed": {func(s *State) {
			toV2(s, v1alpha1.CSVPhasePending, "RequirementsNotMet")
			s.Plans = append(s.Plans, plan("install-2", "tea.v2", v1alpha1.InstallPlanPhaseFailed))
		}, Stuck, "tea.v1", "tea.v2", "OLM does not try it again: a step failed", `"currentCSV": "tea.v1", "installedCSV": "tea.v1", "installPlanRef": null`},
		"the plan failed early": {func(s *State) {
			s.Subscriptions[0].Spec.Channel, s.Subscriptions[0].Status.CurrentCSV = "stable", "tea.v2"
			s.Plans = append(s.Plans, plan("install-2", "tea.v2", v1alpha1.InstallPlanPhaseFailed))
		}, Stuck, "tea.v1", "tea.v2", "OLM does not try it again", "kubectl delete installplans.operators.coreos.com install-2 --namespace n && kubectl patch"},
		"somebody deleted the CSV": {func(s *State) { s.CSVs = nil }, Stuck, "tea.v1", "", "it is not there any more", `kubectl patch subscriptions.operators.coreos.com tea --namespace n --subresource status --type merge -p '{"status": {"currentCSV": null`},
		"a CSV whose plan goes on": {func(s *State) {
			s.Subscriptions[0].Status.InstalledCSV, s.Subscriptions[0].Spec.Channel = "", "stable"
			s.Plans[0].Status.Phase = v1alpha1.InstallPlanPhaseInstalling
		}, Upgrading, "", "tea.v1", "", ""},
		"another package is upgraded": {func(s *State) {
			toV2(s, v1alpha1.CSVPhaseInstalling, "InstallWaiting")
			pot := csv("pot.v1", "1.0.0", "", v1alpha1.CSVPhaseSucceeded, "InstallSucceeded")
			pot.Annotations = map[string]string{"operatorframework.io/properties": `{"properties":[{"type":"olm.package","value":{"packageName":"pot","version":"1.0.0"}}]}`}
			s.CSVs = append(s.CSVs, pot)
			s.Subscriptions = append([]v1alpha1.Subscription{subscription("pot", "pot", "stable", "pot.v1", "pot.v1")}, s.Subscriptions...)
		}, UpToDate, "pot.v1", "", "", ""},
		"somebody deleted the plan": {func(s *State) {
			s.Subscriptions[0].Spec.Channel, s.Subscriptions[0].Status.CurrentCSV = "stable", "tea.v2"
			s.Subscriptions[0].Status.InstallPlanRef = &corev1.ObjectReference{Name: "install-2"}
		}, Stuck, "tea.v1", "tea.v2", "neither it nor the InstallPlan", `"currentCSV": "tea.v1", "installedCSV": "tea.v1", "installPlanRef": null`},
		"OLM is about to make a plan": {func(s *State) {
			s.Subscriptions[0].Spec.Channel, s.Subscriptions[0].Status.CurrentCSV = "stable", "tea.v2"
			s.Subscriptions[0].Status.InstallPlanRef = &corev1.ObjectReference{Name: "install-2"}
			s.Subscriptions[0].Status.LastUpdated = metav1.NewTime(noon)
		}, Upgrading, "tea.v1", "tea.v2", "", ""},
		"somebody deleted the CSV that OLM starts with": {func(s *State) {
			s.CSVs, s.Subscriptions[0].Spec.StartingCSV, s.Subscriptions[0].Annotations = nil, "tea.v1", map[string]string{"olm.generated-by": "install-1"}
		}, Stuck, "tea.v1", "", "it is not there any more", "kubectl annotate subscriptions.operators.coreos.com tea --namespace n olm.generated-by- && kubectl patch"},
		"somebody deleted the CSV while it replaced another": {func(s *State) {
			s.Subscriptions[0].Spec.Channel, s.Subscriptions[0].Status.CurrentCSV, s.Subscriptions[0].Status.InstalledCSV = "stable", "tea.v2", "tea.v2"
			s.CSVs[0].Status.Phase, s.Plans = v1alpha1.CSVPhaseReplacing, []v1alpha1.InstallPlan{plan("install-2", "tea.v2", v1alpha1.InstallPlanPhaseComplete)}
		}, Stuck, "tea.v2", "", "it is not there any more", `"currentCSV": "tea.v1", "installedCSV": "tea.v1"`},
		"a CSV that came this moment": {func(s *State) {
			s.Subscriptions[0].Status.InstalledCSV, s.Subscriptions[0].Status.CurrentCSV, s.Subscriptions[0].Spec.Channel = "", "", "stable"
			s.CSVs[0].Status.LastTransitionTime = &metav1.Time{Time: noon}
		}, Upgrading, "", "", "", ""},
		"a CSV that OLM has yet to note": {func(s *State) {
			s.Subscriptions[0].Status.InstalledCSV, s.Subscriptions[0].Spec.Channel = "", "stable"
			s.CSVs[0].Status.LastTransitionTime = &metav1.Time{Time: noon}
		}, Upgrading, "", "tea.v1", "", ""},
		"requirements are missing": {func(s *State) {
			toV2(s, v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsNotMet)
			s.CSVs[1].Status.RequirementStatus = []v1alpha1.RequirementStatus{{Kind: "CustomResourceDefinition", Name: "cups.example.com", Status: v1alpha1.RequirementStatusReasonNotPresent}}
		}, Stuck, "tea.v1", "tea.v2", "CustomResourceDefinition cups.example.com is NotPresent", "kubectl describe clusterserviceversions.operators.coreos.com tea.v2"},
		"two versions wait for each other": {func(s *State) {
			toV2(s, v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsMet)
			s.CSVs[0].Status.Phase, s.CSVs[0].Status.Reason = v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsNotMet
			s.CSVs[0].Status.LastTransitionTime = &metav1.Time{Time: noon.Add(-2 * slowThreshold)}
			s.CSVs[0].Status.RequirementStatus = []v1alpha1.RequirementStatus{{Kind: "CustomResourceDefinition", Name: "teas.example.com", Status: v1alpha1.RequirementStatusReasonNotPresent, Message: "CRD version not served"}}
		}, Stuck, "tea.v1", "tea.v2", "tea.v1 and tea.v2 wait for each other: the old one misses CustomResourceDefinition teas.example.com", `kubectl patch clusterserviceversions.operators.coreos.com tea.v1 --namespace n --subresource status --type merge -p '{"status": {"phase": "Succeeded"}}'`},
		"the operator lacks its rights": {func(s *State) { s.Unserved = map[string]string{"n/tea.v1": "kitchen"} }, Stuck, "tea.v1", "",
			"its operator lacks the rights in namespace kitchen", "kubectl label clusterserviceversions.operators.coreos.com tea.v1 --namespace n --overwrite olmkit.dev/woken="},
		"the operator lacks its rights for a moment": {func(s *State) {
			s.Unserved = map[string]string{"n/tea.v1": "kitchen"}
			s.CSVs[0].Status.LastTransitionTime = &metav1.Time{Time: noon.Add(-time.Second)}
		}, UpToDate, "tea.v1", "", "", ""},
		"the operator forbids it": {func(s *State) {
			toV2(s, v1alpha1.CSVPhasePending, v1alpha1.CSVReasonOperatorConditionNotUpgradeable)
			o := operatorsv2.OperatorCondition{ObjectMeta: at("tea.v1")}
			o.Spec.Conditions = []metav1.Condition{{Type: operatorsv2.Upgradeable, Status: metav1.ConditionFalse, Reason: "Brewing", Message: "two more minutes"}}
			s.Conditions = []operatorsv2.OperatorCondition{o}
		}, Stuck, "tea.v1", "tea.v2", "must not be replaced now: Brewing: two more minutes", "kubectl patch operatorconditions.operators.coreos.com tea.v1"},
		"the image can't be pulled": {func(s *State) {
			toV2(s, v1alpha1.CSVPhaseInstalling, "InstallWaiting")
			deployed(s, unpulled)
		}, Stuck, "tea.v1", "tea.v2", "container manager waits: ImagePullBackOff", "kubectl describe pod tea-1 --namespace n"},
		"the operator crashes": {func(s *State) {
			toV2(s, v1alpha1.CSVPhaseFailed, v1alpha1.CSVReasonInstallCheckFailed)
			deployed(s, crashing)
		}, Stuck, "tea.v1", "tea.v2", "container manager waits: CrashLoopBackOff", "kubectl logs tea-1 --namespace n --container manager --previous"},
		"the operator starts": {func(s *State) {
			toV2(s, v1alpha1.CSVPhaseInstalling, "InstallWaiting")
			s.CSVs[1].Status.LastTransitionTime = &metav1.Time{Time: noon}
			deployed(s, unready)
		}, Upgrading, "tea.v1", "tea.v2", "", ""},
		"the operator is never ready": {func(s *State) {
			toV2(s, v1alpha1.CSVPhaseInstalling, "InstallWaiting")
			s.CSVs[1].Status.LastTransitionTime = &metav1.Time{Time: noon.Add(-2 * slowThreshold)}
			deployed(s, unready)
		}, Stuck, "tea.v1", "tea.v2", "container manager runs and is not ready", "kubectl logs tea-1 --namespace n --container manager"},
		"the OperatorGroup selects too much": {func(s *State) { toV2(s, v1alpha1.CSVPhaseFailed, v1alpha1.CSVReasonUnsupportedOperatorGroup) }, Stuck, "tea.v1", "tea.v2", "UnsupportedOperatorGroup: it says why", "kubectl edit operatorgroups"},
		"a channel that is not there":        {func(s *State) { s.Subscriptions[0].Spec.Channel = "fast" }, Stuck, "tea.v1", "", "no operators found in channel fast of package tea", "kubectl edit subscriptions.operators.coreos.com tea"},
		"a dependency that nobody has": {func(s *State) {
			s.Subscriptions[0], s.CSVs, s.Plans = subscription("pot", "pot", "stable", "", ""), nil, nil
		}, Stuck, "", "", "kettle", "kubectl edit subscriptions.operators.coreos.com pot"},
		"a CSV without a Subscription": {func(s *State) {
			s.Subscriptions[0].Status.InstalledCSV, s.Subscriptions[0].Status.CurrentCSV, s.Subscriptions[0].Spec.Channel, s.Plans = "", "", "stable", nil
		}, Stuck, "", "", "it is installed, no Subscription names it", `kubectl patch subscriptions.operators.coreos.com tea --namespace n --subresource status --type merge -p '{"status": {"currentCSV": "tea.v1", "installedCSV": "tea.v1", "installPlanRef": null`},
		"a CSV without a Subscription, and the one that it replaces": {func(s *State) {
			toV2(s, v1alpha1.CSVPhasePending, "RequirementsMet")
			s.Subscriptions[0].Status.InstalledCSV, s.Subscriptions[0].Status.CurrentCSV, s.Plans = "", "", nil
		}, Stuck, "", "", "it is installed, no Subscription names it", `"currentCSV": "tea.v2", "installedCSV": "tea.v2"`},
		"a CSV that OLM does not note": {func(s *State) {
			s.Subscriptions[0].Status.InstalledCSV, s.Subscriptions[0].Spec.Channel = "", "stable"
		}, Stuck, "", "tea.v1", "exists and is not referenced by a subscription", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := atV1()
			test.change(s)
			d := Diagnose(t.Context(), s, s.Subscriptions[0].Spec.Package, map[Key]*catalog.Catalog{{Name: "c", Namespace: "n"}: catalog.Parse("c", []byte(tea))})[0]
			if d.State != test.state || d.Installed != test.installed || d.Next != test.next {
				t.Errorf("%s, installed %q, next %q: %+v", d.State, d.Installed, d.Next, d.Causes)
			}
			if test.why == "" {
				if len(d.Causes) > 0 {
					t.Errorf("causes %+v", d.Causes)
				}
				return
			}
			if len(d.Causes) == 0 || !strings.Contains(d.Causes[0].Why, test.why) || len(d.Causes[0].Fixes) == 0 || !strings.Contains(d.Causes[0].Fixes[0].Command, test.fix) {
				t.Errorf("causes %+v", d.Causes)
			}
			for _, c := range d.Causes {
				for _, f := range c.Fixes {
					if f.Do == "" || f.Risk == "" {
						t.Errorf("%s: a fix without a risk: %+v", c.Object, f)
					}
				}
			}
		})
	}
}

// TestUnknown: without the content of a catalog, what comes next is not claimed, and what OLM notes is told.
func TestUnknown(t *testing.T) {
	s := atV1()
	s.Subscriptions[0].Status.Conditions = []v1alpha1.SubscriptionCondition{{Type: v1alpha1.SubscriptionResolutionFailed, Status: "True", Message: "no operators found in channel fast"}}
	d := Diagnose(t.Context(), s, "", nil)[0]
	if d.Unknown == "" || d.State != Stuck || !strings.Contains(d.Causes[0].Why, "no operators found in channel fast") {
		t.Errorf("%+v", d)
	}
	s.Subscriptions[0].Status.Conditions[0].LastTransitionTime = &metav1.Time{Time: noon}
	if d := Diagnose(t.Context(), s, "", nil)[0]; d.Unknown == "" || d.Next != "" || len(d.Causes) > 0 {
		t.Errorf("%+v", d)
	}
}

// TestWaitsFor: of what is under way, the newest is told that OLM says; of what has put off its work, how to have OLM look again.
func TestWaitsFor(t *testing.T) {
	for want, change := range map[string]func(s *State){
		"": func(s *State) { s.Subscriptions[0].Spec.Channel = "stable" },
		"ClusterServiceVersion/n/tea.v2: CSV Installing: InstallWaiting: it says why": func(s *State) {
			toV2(s, v1alpha1.CSVPhaseInstalling, "InstallWaiting")
			s.CSVs[1].Status.LastTransitionTime = &metav1.Time{Time: noon}
		},
		"Pod/n/tea-1: CSV Installing: container manager runs and is not ready": func(s *State) {
			toV2(s, v1alpha1.CSVPhaseInstalling, "InstallWaiting")
			s.CSVs[1].Status.LastTransitionTime = &metav1.Time{Time: noon}
			deployed(s, unready)
		},
		"InstallPlan/n/install-2: InstallPlan Installing": func(s *State) {
			s.Subscriptions[0].Spec.Channel, s.Subscriptions[0].Status.CurrentCSV = "stable", "tea.v2"
			elsewhere := plan("install-3", "tea.v2", v1alpha1.InstallPlanPhaseInstalling)
			elsewhere.Namespace, elsewhere.Spec.Generation = "elsewhere", 9
			p := plan("install-2", "tea.v2", v1alpha1.InstallPlanPhaseInstalling)
			p.Status.Message, p.Status.Conditions = "", nil
			s.Plans = append(s.Plans, p, elsewhere)
		},
	} {
		s := atV1()
		change(s)
		d := Diagnose(t.Context(), s, "tea", map[Key]*catalog.Catalog{{Name: "c", Namespace: "n"}: catalog.Parse("c", []byte(tea))})[0]
		if d.State != Upgrading || d.WaitsFor != want {
			t.Errorf("%s, waits for %q, want %q: %+v", d.State, d.WaitsFor, want, d.Causes)
		}
	}
	s := atV1()
	toV2(s, v1alpha1.CSVPhaseInstalling, "InstallWaiting")
	s.CSVs[1].Status.LastTransitionTime = &metav1.Time{Time: noon.Add(-2 * slowThreshold)}
	if d := Diagnose(t.Context(), s, "tea", nil)[0]; d.WaitsFor != "" || len(d.Causes) != 1 || len(d.Causes[0].Fixes) != 2 || !strings.Contains(d.Causes[0].Fixes[1].Command, "kubectl label clusterserviceversions.operators.coreos.com tea.v2 --namespace n") {
		t.Errorf("%+v", d)
	}
}
