package check

import (
	"strings"
	"testing"
)

// What the API server lets nobody change is found, and what it lets everybody change is not.
func TestImmutableFields(t *testing.T) {
	const (
		binding  = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: x}\nsubjects: [{kind: ServiceAccount, name: a}]\nroleRef: {kind: Role, name: a, apiGroup: rbac.authorization.k8s.io}\n"
		service  = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {clusterIP: None, ports: [{port: 80}]}\n"
		secret   = "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nimmutable: true\ndata: {a: Yg==}\n"
		settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nimmutable: true\ndata: {a: b}\n"
		stateful = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: x}\nspec: {replicas: 1, serviceName: a, selector: {matchLabels: {a: b}}}\n"
		job      = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {backoffLimit: 1, template: {spec: {restartPolicy: Never}}}\n"
		claim    = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: x}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
		class    = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: x}\nprovisioner: a\nallowVolumeExpansion: false\n"
		priority = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: x}\nvalue: 5\ndescription: a\n"
	)
	for name, c := range map[string]struct{ manifest, old, new, want string }{
		"a binding's role":                    {binding, "name: a, apiGroup", "name: b, apiGroup", "roleRef"},
		"a binding's subjects":                {binding, "name: a}]", "name: b}]", ""},
		"a binding's group, spelt out":        {binding, ", apiGroup: rbac.authorization.k8s.io", "", ""},
		"a cluster's binding":                 {strings.Replace(binding, "RoleBinding", "ClusterRoleBinding", 1), "kind: Role,", "kind: ClusterRole,", "roleRef"},
		"a headless service gets an address":  {service, "clusterIP: None", "clusterIP: 10.0.0.1", "spec.clusterIP"},
		"a service becomes headless":          {strings.Replace(service, "clusterIP: None, ", "", 1), "ports", "clusterIP: None, ports", "spec.clusterIP"},
		"a service no longer says headless":   {service, "clusterIP: None, ", "", ""},
		"a service becomes an external name":  {service, "clusterIP: None, ports: [{port: 80}]", "type: ExternalName, externalName: a.example.com", ""},
		"a service's ports":                   {service, "port: 80", "port: 81", ""},
		"an immutable secret":                 {secret, "Yg==", "Yw==", "data"},
		"an immutable secret in other words":  {secret, "data: {a: Yg==}", "stringData: {a: b}", ""},
		"an immutable secret no longer is":    {secret, "immutable: true\n", "", "immutable"},
		"a secret becomes immutable":          {strings.Replace(secret, "immutable: true\n", "", 1), "data", "immutable: true\ndata", ""},
		"a mutable secret":                    {strings.Replace(secret, "immutable: true\n", "", 1), "Yg==", "Yw==", ""},
		"a secret's type":                     {secret, "immutable: true\n", "immutable: true\ntype: example.com/a\n", "type"},
		"a secret's type, spelt out":          {secret, "immutable: true\n", "immutable: true\ntype: Opaque\n", ""},
		"an immutable ConfigMap":              {settings, "a: b", "a: c", "data"},
		"an immutable ConfigMap's labels":     {settings, "{name: x}", "{name: x, labels: {a: b}}", ""},
		"a mutable ConfigMap":                 {strings.Replace(settings, "immutable: true", "immutable: false", 1), "a: b", "a: c", ""},
		"a StatefulSet's selector":            {stateful, "a: b", "a: c", "spec.selector"},
		"a StatefulSet's service":             {stateful, "serviceName: a", "serviceName: b", "spec.serviceName"},
		"a StatefulSet's replicas":            {stateful, "replicas: 1", "replicas: 2", ""},
		"a Job's template":                    {job, "Never", "OnFailure", "spec.template"},
		"a Job's limit":                       {job, "backoffLimit: 1", "backoffLimit: 2", ""},
		"a claim's access":                    {claim, "ReadWriteOnce", "ReadWriteMany", "spec.accessModes"},
		"a claim's size":                      {claim, "1Gi", "2Gi", ""},
		"a StorageClass's provisioner":        {class, "provisioner: a", "provisioner: b", "provisioner"},
		"a StorageClass's policy":             {class, "provisioner: a", "provisioner: a\nreclaimPolicy: Retain", "reclaimPolicy"},
		"a StorageClass's policy, spelt out":  {class, "provisioner: a", "provisioner: a\nreclaimPolicy: Delete", ""},
		"a StorageClass's expansion":          {class, "allowVolumeExpansion: false", "allowVolumeExpansion: true", ""},
		"a PriorityClass's value":             {priority, "value: 5", "value: 6", "value"},
		"a PriorityClass's preemption":        {priority, "value: 5", "value: 5\npreemptionPolicy: Never", "preemptionPolicy"},
		"a PriorityClass's description":       {priority, "description: a", "description: b", ""},
		"another object":                      {priority, "{name: x}", "{name: z}", ""},
		"a kind of the same name, not theirs": {strings.Replace(priority, "scheduling.k8s.io", "example.com", 1), "value: 5", "value: 6", ""},
		"another shape":                       {priority, "value: 5", "value: [5]", "value"},
	} {
		t.Run(name, func(t *testing.T) {
			after := strings.Replace(c.manifest, c.old, c.new, 1)
			if after == c.manifest {
				t.Fatalf("nothing is changed: %s", c.manifest)
			}
			findings, _ := Catalog(releases(t, teaRelease+"---\n"+c.manifest, teaRelease+"---\n"+after), Options{Only: []string{"EDG010"}})
			switch {
			case c.want == "" && len(findings) > 0:
				t.Errorf("a false alarm: %s", findings[0].Message)
			case c.want != "" && (len(findings) != 1 || !strings.Contains(findings[0].Message, "tea.v2.0.0 changes "+c.want+" of ")):
				t.Errorf("not found: %v", findings)
			}
		})
	}
}
