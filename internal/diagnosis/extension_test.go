package diagnosis

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
)

// clusterV1 is a cluster on which OLM v1 has installed tea.v1 from the catalog c.
type clusterV1 struct {
	definitions []*apiextensionsv1.CustomResourceDefinition
	programs    []*appsv1.Deployment
	catalogs    []*olmv1.ClusterCatalog
	tea         *olmv1.ClusterExtension
	manager     *appsv1.Deployment
	pods        []*corev1.Pod
}

func newClusterV1() *clusterV1 {
	c := &clusterV1{catalogs: []*olmv1.ClusterCatalog{catalogV1("c", metav1.ConditionTrue, "Available", "Succeeded", "")}}
	for _, name := range []string{"clustercatalogs", "clusterextensions"} {
		d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name + ".olm.operatorframework.io"}}
		d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
		c.definitions = append(c.definitions, d)
	}
	for _, name := range []string{"catalogd-controller-manager", "operator-controller-controller-manager"} {
		c.programs = append(c.programs, deployment(olmv1.Namespace, name))
	}
	c.tea = &olmv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: "tea", Generation: 2}}
	c.tea.Spec = olmv1.ClusterExtensionSpec{
		Namespace: "n", ServiceAccount: olmv1.ServiceAccount{Name: "tea-installer"},
		Source: olmv1.ExtensionSource{SourceType: "Catalog", Catalog: &olmv1.CatalogFilter{PackageName: "tea", Channels: []string{"stable"}}},
	}
	c.tea.Status.Install = &olmv1.InstallStatus{Bundle: olmv1.BundleMetadata{Name: "tea.v1", Version: "1.0.0"}}
	c.says("Succeeded", "Desired state reached")
	c.manager = deployment("n", "tea")
	c.manager.Labels = olmv1.MadeFor("tea")
	return c
}

// says has OLM v1 say something of tea.
func (c *clusterV1) says(reason, message string) {
	c.tea.Status.Conditions = []metav1.Condition{
		{Type: "Installed", Status: metav1.ConditionTrue, Reason: "Succeeded"},
		{Type: "Progressing", Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: 2},
	}
}

// refuses has OLM v1 refuse tea.v2.
func (c *clusterV1) refuses(why string) {
	c.says("Retrying", `error for resolved bundle "tea.v2" with version "2.0.0": `+why)
}

// stores adds the CRD of pots, which stores objects in a version.
func (c *clusterV1) stores(version string) {
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "pots.example.com"}}
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1"}, {Name: version, Storage: true}}
	c.definitions = append(c.definitions, d)
}

// breaks has the pod of tea be in a status, and its Deployment be unavailable for some time.
func (c *clusterV1) breaks(status corev1.ContainerStatus, ago time.Duration) {
	since := metav1.NewTime(noon.Add(-ago))
	c.manager.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, LastTransitionTime: since},
	}}
	status.Name = "manager"
	p := &corev1.Pod{ObjectMeta: at("tea-1")}
	p.Labels = map[string]string{"app": "tea"}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	c.pods = []*corev1.Pod{p}
}

func deployment(namespace, name string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	d.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	return d
}

func catalogV1(name string, serves metav1.ConditionStatus, why, progress, message string) *olmv1.ClusterCatalog {
	c := &olmv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"olm.operatorframework.io/metadata.name": name}}}
	c.Status.Conditions = []metav1.Condition{
		{Type: "Serving", Status: serves, Reason: why},
		{Type: "Progressing", Status: metav1.ConditionTrue, Reason: progress, Message: message},
	}
	return c
}

// read reads c as a command does, at noon.
func (c *clusterV1) read(t *testing.T) *StateV1 {
	t.Helper()
	objects := []client.Object{c.tea, c.manager}
	for _, o := range c.definitions {
		objects = append(objects, o)
	}
	for _, o := range c.programs {
		objects = append(objects, o)
	}
	for _, o := range c.catalogs {
		objects = append(objects, o)
	}
	for _, o := range c.pods {
		objects = append(objects, o)
	}
	s, err := ReadV1(t.Context(), &olmv1.Client{WithWatch: fake.NewClientBuilder().WithScheme(olmv1.Scheme()).WithObjects(objects...).Build()})
	if err != nil {
		t.Fatal(err)
	}
	s.Now = noon
	return s
}

var (
	stale    = catalogV1("old", metav1.ConditionTrue, "Available", "Retrying", "source catalog content: manifest unknown")
	unread   = catalogV1("c", metav1.ConditionFalse, "Unavailable", "Retrying", "source catalog content: connection refused")
	off      = catalogV1("c", metav1.ConditionFalse, "UserSpecifiedUnavailable", "Succeeded", "")
	selector = &metav1.LabelSelector{MatchLabels: map[string]string{"olm.operatorframework.io/metadata.name": "c"}}
)

const (
	patchTea    = "kubectl patch clusterextensions.olm.operatorframework.io tea --type merge -p "
	forbidden   = `failed to get release state using server-side dry-run: clusterroles.rbac.authorization.k8s.io "tea" is forbidden: User "system:serviceaccount:n:tea-installer" cannot get resource "clusterroles"`
	unsafeCRD   = `validating upgrade for CRD "pots.example.com": v1: ^.spec.size: maximum: maximum decreased : 5 -> 3`
	droppedCRD  = `validating upgrade for CRD "pots.example.com": storedVersionRemoval: stored version "v1alpha1" removed`
	noSuccessor = `error upgrading from currently installed version "1.0.0": no bundles found for package "tea" matching version "9.0.0"`
)

// TestDiagnoseV1: each state of a ClusterExtension is told from the others, with the command that mends it.
func TestDiagnoseV1(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(c *clusterV1)
		state    string
		next     string
		object   string   // of the first cause
		why, fix string   // of the first cause
		fixes    []string // what more of its commands have, in their order
	}{
		"up to date":                          {func(*clusterV1) {}, UpToDate, "", "", "", "", nil},
		"not seen yet":                        {func(c *clusterV1) { c.tea.Generation = 3 }, Upgrading, "", "", "", "", nil},
		"just created":                        {func(c *clusterV1) { c.tea.Status = olmv1.ClusterExtensionStatus{} }, Upgrading, "", "", "", "", nil},
		"it is rolled out":                    {func(c *clusterV1) { c.says("RollingOut", "revision 2 rolls out") }, Upgrading, "", "", "", "", nil},
		"a refusal of what was wanted before": {func(c *clusterV1) { c.refuses(unsafeCRD); c.tea.Generation = 3 }, Upgrading, "", "", "", "", nil},

		"the program does not run": {func(c *clusterV1) { c.programs[1].Spec.Replicas = new(int32(0)) }, Stuck, "",
			"Deployment/olmv1-system/operator-controller-controller-manager", "a part of OLM is not well: it is scaled to 0",
			"kubectl scale deployment operator-controller-controller-manager --namespace olmv1-system --replicas 1", nil},
		"the program crashes": {func(c *clusterV1) { c.programs[0].Status.AvailableReplicas = 0 }, Stuck, "",
			"Deployment/olmv1-system/catalogd-controller-manager", "no pod of it is available",
			"kubectl describe pods --namespace olmv1-system --selector control-plane=catalogd-controller-manager", nil},
		"the program is missing": {func(c *clusterV1) { c.programs = c.programs[:1] }, Stuck, "",
			"Deployment/olmv1-system/operator-controller-controller-manager", "it is missing", "", nil},
		"a definition is missing": {func(c *clusterV1) { c.definitions, c.catalogs = c.definitions[1:], nil }, Stuck, "",
			"CustomResourceDefinition/clustercatalogs.olm.operatorframework.io", "it is missing", "", nil},

		"deletion hangs": {func(c *clusterV1) {
			c.tea.DeletionTimestamp, c.tea.Finalizers = &metav1.Time{Time: noon.Add(-time.Hour)}, []string{"olm.operatorframework.io/cleanup"}
		}, Stuck, "", "ClusterExtension/tea", "its finalizers hold it: olm.operatorframework.io/cleanup", "kubectl describe clusterextensions.olm.operatorframework.io tea", nil},
		"it is being deleted": {func(c *clusterV1) {
			c.tea.DeletionTimestamp, c.tea.Finalizers = &metav1.Time{Time: noon}, []string{"olm.operatorframework.io/cleanup"}
		}, Upgrading, "", "", "", "", nil},

		"the catalog is not served": {func(c *clusterV1) {
			c.catalogs = []*olmv1.ClusterCatalog{unread}
			c.says("Retrying", `error walking catalogs: error getting package "tea" from catalog "c": cache for catalog "c" not found`)
		}, Stuck, "", "ClusterCatalog/c", "catalogd does not serve it: Retrying: source catalog content: connection refused",
			"kubectl patch clustercatalogs.olm.operatorframework.io c --type merge -p ", []string{"kubectl logs --namespace olmv1-system deployment/catalogd"}},
		"a catalog that it does not choose from is not served": {func(c *clusterV1) {
			c.catalogs = append(c.catalogs, catalogV1("d", metav1.ConditionFalse, "Unavailable", "Retrying", ""))
			c.tea.Spec.Source.Catalog.Selector = selector
		}, UpToDate, "", "", "", "", nil},
		"its only catalog is old":     {func(c *clusterV1) { c.catalogs = []*olmv1.ClusterCatalog{stale} }, Stuck, "", "ClusterCatalog/old", "cannot read it again: Retrying: source catalog content: manifest unknown", `"image": {"ref": "IMAGE"}`, nil},
		"another catalog is old":      {func(c *clusterV1) { c.catalogs = append(c.catalogs, stale) }, UpToDate, "", "", "", "", nil},
		"the catalog is switched off": {func(c *clusterV1) { c.catalogs = []*olmv1.ClusterCatalog{off} }, Stuck, "", "ClusterCatalog/c", "it is switched off", `-p '{"spec": {"availabilityMode": "Available"}}'`, nil},
		"another catalog is switched off": {func(c *clusterV1) {
			c.catalogs = []*olmv1.ClusterCatalog{off, catalogV1("d", metav1.ConditionTrue, "Available", "Succeeded", "")}
		}, UpToDate, "", "", "", "", nil},
		"no catalog":           {func(c *clusterV1) { c.catalogs = nil }, Stuck, "", "ClusterExtension/tea", "the cluster has no ClusterCatalog", "kubectl create -f - <<< ", nil},
		"no catalog is chosen": {func(c *clusterV1) { c.catalogs[0].Labels, c.tea.Spec.Source.Catalog.Selector = nil, selector }, Stuck, "", "ClusterExtension/tea", "its selector matches no ClusterCatalog", patchTea + `'{"spec": {"source": {"catalog": {"selector": null}}}}'`, nil},
		"catalogd is not reached": {func(c *clusterV1) {
			c.says("Retrying", `error walking catalogs: error getting package "tea" from catalog "c": dial tcp: no route to host`)
		}, Stuck, "", "ClusterExtension/tea", "no route to host", "kubectl logs --namespace olmv1-system deployment/operator-controller-controller-manager", nil},

		"nothing matches": {func(c *clusterV1) { c.says("Retrying", noSuccessor) }, Stuck, "", "ClusterExtension/tea", noSuccessor,
			patchTea + `'{"spec": {"source": {"catalog": {"version": "VERSION"}}}}'`, []string{`"upgradeConstraintPolicy": "SelfCertified"`}},
		"two catalogs have it": {func(c *clusterV1) {
			c.says("Retrying", `found bundles for package "tea" in multiple catalogs with the same priority [c d]`)
		}, Stuck, "", "ClusterExtension/tea", "with the same priority [c d]", `"olm.operatorframework.io/metadata.name": "CATALOG"`, nil},
		"the range is none": {func(c *clusterV1) { c.says("Blocked", `desired version range "x" is invalid`) }, Stuck, "", "ClusterExtension/tea", "is invalid", "kubectl edit clusterextensions.olm.operatorframework.io tea", nil},
		"it has dependencies": {func(c *clusterV1) {
			c.says("Retrying", `validating bundle "tea.v2": bundle "tea.v2" has a dependency declared via property "olm.gvk.required" which is currently not supported`)
		}, Stuck, "", "ClusterExtension/tea", "olm.gvk.required", `"version": "VERSION"`, nil},

		"the ServiceAccount is missing": {func(c *clusterV1) {
			c.says("Retrying", `operation cannot proceed due to the following validation error(s): service account "tea-installer" not found in namespace "n"`)
		}, Stuck, "", "ClusterExtension/tea", "not found in namespace", "kubectl create serviceaccount tea-installer --namespace n", nil},
		"the ServiceAccount lacks rights": {func(c *clusterV1) { c.refuses(forbidden) }, Stuck, "tea.v2", "ClusterExtension/tea", `cannot get resource "clusterroles"`,
			"olmkit subscription generate --olm v1 --package tea --namespace n --catalog CATALOG --catalog-source c --channel stable --starting-csv tea.v2",
			[]string{"kubectl create clusterrolebinding tea-installer-cluster-admin --clusterrole cluster-admin --serviceaccount n:tea-installer"}},
		"it may not even see what is installed": {func(c *clusterV1) {
			c.says("Retrying", "retrying to get installed bundle")
			c.tea.Status.Conditions[0] = metav1.Condition{Type: "Installed", Status: metav1.ConditionUnknown, Message: `secrets is forbidden: User "system:serviceaccount:n:tea-installer" cannot list resource "secrets"`}
		}, Stuck, "", "ClusterExtension/tea", `cannot list resource "secrets"`, "olmkit subscription generate --olm v1 ", nil},

		"the CRD is not safe": {func(c *clusterV1) { c.refuses(unsafeCRD) }, Stuck, "tea.v2", "ClusterExtension/tea", "CRD upgrade safety refuses the bundle",
			`"version": "VERSION"`, []string{patchTea + `'{"spec": {"install": {"preflight": {"crdUpgradeSafety": {"enforcement": "None"}}}}}'`}},
		"a stored version goes":                      {func(c *clusterV1) { c.refuses(droppedCRD) }, Stuck, "tea.v2", "ClusterExtension/tea", `stored version "v1alpha1" removed`, "olmkit crd migrate pots.example.com", nil},
		"a version goes that the CRD stores no more": {func(c *clusterV1) { c.stores("v1"); c.refuses(droppedCRD) }, Stuck, "tea.v2", "ClusterExtension/tea", "objects may be stored", "olmkit crd migrate pots.example.com", nil},
		"the version goes that the CRD stores": {func(c *clusterV1) {
			c.stores("v1")
			c.refuses(`validating upgrade for CRD "pots.example.com": storedVersionRemoval: stored versions removed : [v1]`)
		}, Stuck, "tea.v2", "ClusterExtension/tea", "objects may be stored", `"version": "VERSION"`, nil},
		"somebody else owns an object": {func(c *clusterV1) {
			c.refuses(`Unable to continue with install: ServiceAccount "tea" in namespace "n" exists and cannot be imported into the current release`)
		}, Stuck, "tea.v2", "ClusterExtension/tea", "cannot be imported", "kubectl describe clusterextensions.olm.operatorframework.io tea", nil},
		"something else": {func(c *clusterV1) { c.refuses("error unpacking: no space left on device") }, Stuck, "tea.v2", "ClusterExtension/tea", "no space left on device", "kubectl logs --namespace olmv1-system deployment/operator-controller", nil},

		"its image cannot be pulled": {func(c *clusterV1) { c.breaks(unpulled, time.Minute) }, Stuck, "", "Pod/n/tea-1", "its Deployment tea does not become ready: container manager waits: ImagePullBackOff", "kubectl describe pod tea-1 --namespace n", nil},
		"it crashes":                 {func(c *clusterV1) { c.breaks(crashing, time.Second) }, Stuck, "", "Pod/n/tea-1", "last ended with exit code 1", "kubectl logs tea-1 --namespace n --container manager --previous", nil},
		"it is not ready for long":   {func(c *clusterV1) { c.breaks(unready, time.Hour) }, Stuck, "", "Pod/n/tea-1", "runs and is not ready", "kubectl logs tea-1 --namespace n --container manager", nil},
		"it starts":                  {func(c *clusterV1) { c.breaks(unready, time.Second) }, Upgrading, "", "", "", "", nil},
		"a Deployment of others breaks": {func(c *clusterV1) {
			c.breaks(crashing, time.Hour)
			c.manager.Labels = nil
		}, UpToDate, "", "", "", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClusterV1()
			test.change(c)
			told := DiagnoseV1(c.read(t), "tea")
			if len(told) != 1 || told[0].State != test.state || told[0].Next != test.next || told[0].Package != "tea" {
				t.Fatalf("%+v", told)
			}
			if test.why == "" {
				if len(told[0].Causes) > 0 {
					t.Errorf("causes %+v", told[0].Causes)
				}
				return
			}
			checkCause(t, told[0].Causes, test.object, test.why, append([]string{test.fix}, test.fixes...))
			if fix := told[0].Causes[0].Fixes[0]; test.fix == "" && (fix.Command != "" || !strings.Contains(fix.Do, "manifests of the release")) {
				t.Errorf("%+v", fix)
			}
		})
	}
}

// checkCause holds the first cause to what is wanted, and all fixes to have a risk.
func checkCause(t *testing.T, causes []Cause, object, why string, commands []string) {
	t.Helper()
	if len(causes) == 0 || causes[0].Object != object || !strings.Contains(causes[0].Why, why) || len(causes[0].Fixes) < len(commands) {
		t.Fatalf("causes %+v", causes)
	}
	for i, command := range commands {
		if !strings.Contains(causes[0].Fixes[i].Command, command) {
			t.Errorf("fix %q, not %q", causes[0].Fixes[i].Command, command)
		}
	}
	for _, c := range causes {
		for _, f := range c.Fixes {
			if f.Do == "" || f.Risk == "" {
				t.Errorf("%s: a fix without a risk: %+v", c.Object, f)
			}
		}
	}
}

// TestExtension: what is wanted, installed and chosen from is told, and deprecation is no reason to be stuck.
func TestExtension(t *testing.T) {
	c := newClusterV1()
	c.tea.Spec.Source.Catalog.Version = ">=1.0.0"
	c.tea.Status.Conditions = append(c.tea.Status.Conditions, metav1.Condition{Type: "Deprecated", Status: metav1.ConditionTrue, Message: "tea is no more"})
	s := c.read(t)
	if told := DiagnoseV1(s, "coffee"); len(told) > 0 {
		t.Errorf("another package: %+v", told)
	}
	e := DiagnoseV1(s, "")[0]
	if e.State != UpToDate || e.Deprecated != "tea is no more" || e.Installed != "tea.v1" || e.Version != ">=1.0.0" || e.Namespace != "n" ||
		e.ServiceAccount != "tea-installer" || !slices.Equal(e.Catalogs, []string{"c"}) || !slices.Equal(e.Channels, []string{"stable"}) || len(e.Conditions) != 3 {
		t.Errorf("%+v", e)
	}
}

// TestWithoutV1: a cluster that does not have the definitions of OLM v1 has nothing to tell of it.
func TestWithoutV1(t *testing.T) {
	none := &olmv1.Client{WithWatch: fake.NewClientBuilder().WithScheme(olmv1.Scheme()).Build()}
	s, err := ReadV1(t.Context(), none)
	if err != nil || s != nil || DiagnoseV1(s, "") != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestResolvedIn takes no words of a catalog into commands that a user copies.
func TestResolvedIn(t *testing.T) {
	for said, want := range map[string]string{
		`error for resolved bundle "tea.v2.0.0" with version "2.0.0": no`:       "tea.v2.0.0",
		`error for resolved bundle "tea; rm -rf ~" with version "2.0.0": no`:    "",
		`error for resolved bundle "--kubeconfig=/x" with version "2.0.0": no`:  "",
		`something else, about the resolved bundle "tea.v2.0.0" with version 2`: "",
	} {
		if got := resolvedIn(said); got != want {
			t.Errorf("%s: %q, want %q", said, got, want)
		}
	}
}
