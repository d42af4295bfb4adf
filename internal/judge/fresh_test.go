package judge

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

// What the cluster makes up for each installation is no difference; what a release says is, and so is an object.
func TestUnlikeFresh(t *testing.T) {
	stand := func(manifests ...string) observe.Installed {
		all := observe.Installed{}
		for _, m := range manifests {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(m), &o.Object); err != nil {
				t.Fatal(err)
			}
			all.Put(o, v0.Bookkeeping)
		}
		return all
	}
	upgraded := stand(`
kind: Deployment
metadata: {name: manager, uid: a, labels: {app: x, olm.deployment-spec-hash: "1"}, annotations: {deployment.kubernetes.io/revision: "2"}}
spec:
  replicas: 1
  template: {metadata: {annotations: {olmcahash: a}}, spec: {containers: [{name: manager, image: "x:1"}]}}
status: {replicas: 1}
`, `
kind: ValidatingWebhookConfiguration
metadata: {name: v.example.com-abcde, generateName: v.example.com-}
webhooks: [{name: v, clientConfig: {caBundle: QQ==, service: {name: a}}}]
`, `
kind: Service
metadata: {name: old}
spec: {clusterIP: 10.0.0.1}
`)
	fresh := stand(`
kind: Deployment
metadata: {name: manager, uid: b, labels: {app: z, olm.deployment-spec-hash: "2"}, annotations: {deployment.kubernetes.io/revision: "1"}}
spec:
  replicas: 2
  template: {metadata: {annotations: {olmcahash: b}}, spec: {containers: [{name: manager, image: "x:1", args: [--all]}]}}
`, `
kind: ValidatingWebhookConfiguration
metadata: {name: v.example.com-fghij, generateName: v.example.com-}
webhooks: [{name: v, clientConfig: {caBundle: Qg==, service: {name: a}}}]
`, `
kind: Role
metadata: {name: new}
`)
	got := expect.Said(Unlike("x.v2", upgraded, fresh))
	want := []string{
		`warning U607 Deployment/manager: after the upgrades to x.v2: metadata app is "x", and "z" in a fresh installation; ` +
			`spec.replicas is 1, and 2 in a fresh installation; ` +
			`spec.template.spec.containers[0].args is not there, and ["--all"] in a fresh installation`,
		"warning U607 Role/new: after the upgrades to x.v2: only a fresh installation has it",
		"warning U607 Service/old: after the upgrades to x.v2: a fresh installation does not have it",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if found := Unlike("x.v2", fresh, fresh); len(found) > 0 {
		t.Errorf("an installation is not like itself: %v", expect.Said(found))
	}
}
