package upgrade

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

type fields = map[string]any

// byName puts operands of one object under their names.
func byName(list ...operand) map[string]operand {
	all := map[string]operand{}
	for _, o := range list {
		o.Namespace, o.Of = "n", "Pot/n/a"
		all[o.String()] = o
	}
	return all
}

// TestJudgeClaims tells volumes whose data is gone or not read any more, and is silent where fewer pods are wanted.
func TestJudgeClaims(t *testing.T) {
	there := fake.NewClientBuilder().WithScheme(olmv0.Scheme).WithObjects(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "data-a-0"}}).Build()
	gone := fake.NewClientBuilder().WithScheme(olmv0.Scheme).Build()
	claim := func(name, volume string) operand {
		return operand{Kind: kindClaim, Name: name, Content: fields{"spec": fields{"volumeName": volume}}}
	}
	set := func(name string) operand { return operand{Kind: "StatefulSet", Name: name} }
	pod := func(name string) operand { return operand{Kind: "Pod", Name: name} }
	before := byName(set("a"), pod("a-0"), pod("a-1"), claim("data-a-0", "v0"))
	ephemeral := claim("tmp", "v9")
	ephemeral.OfPod = true
	for _, test := range []struct {
		name   string
		client *walk
		before map[string]operand
		after  map[string]operand
		want   []string
	}{
		{"kept", &walk{client: there}, before, before, nil},
		{"another volume", &walk{client: there}, before, byName(set("a"), pod("a-0"), pod("a-1"), claim("data-a-0", "v1")),
			[]string{"error U515 PersistentVolumeClaim/n/data-a-0: it was deleted and made anew during the upgrade: it has another volume"}},
		{"gone", &walk{client: gone}, before, byName(set("a"), pod("a-0"), pod("a-1")),
			[]string{"error U515 PersistentVolumeClaim/n/data-a-0: it was deleted during the upgrade"}},
		{"left behind by workloads of other names", &walk{client: there}, before, byName(set("b"), pod("b-0")),
			[]string{"error U515 PersistentVolumeClaim/n/data-a-0: it is still there, and no pod of Pot/n/a mounts it any more"}},
		{"left behind by other claims", &walk{client: there}, before, byName(set("a"), pod("a-0"), pod("a-1"), claim("disk-a-0", "v1")),
			[]string{"error U515 PersistentVolumeClaim/n/data-a-0: it is still there, and no pod of Pot/n/a mounts it any more"}},
		{"scaled down", &walk{client: there}, before, byName(set("a"), pod("a-1")), nil},
		{"of a pod", &walk{client: gone}, byName(ephemeral), nil, nil},
		{"never bound", &walk{client: gone}, byName(claim("data-a-0", "")), nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.client.judgeClaims(t.Context(), test.before, test.after)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, got, test.want...)
		})
	}
}

// TestAddClaims finds the claims that pods mount, and no other.
func TestAddClaims(t *testing.T) {
	pod := operand{Kind: "Pod", Name: "a-0", Claims: []string{kindClaim + "/n/data", kindClaim + "/n/absent"}}
	found := byName(pod)
	addClaims(found, map[string]operand{
		kindClaim + "/n/data":  {Kind: kindClaim, Namespace: "n", Name: "data"},
		kindClaim + "/n/other": {Kind: kindClaim, Namespace: "n", Name: "other"},
	})
	if len(found) != 2 || found[kindClaim+"/n/data"].Of != "Pot/n/a" {
		t.Errorf("found %v", found)
	}
}

// TestCredentials tells passwords that an upgrade changed, and leaves certificates and configuration to a warning.
func TestCredentials(t *testing.T) {
	secret := func(data fields) map[string]operand {
		return byName(operand{Kind: "Secret", Name: "a", UID: "1", Content: fields{"data": data}})
	}
	expect(t, judgeOperands(secret(fields{"root-password": "1", "tls.crt": "1", "conf": "1"}), secret(fields{"root-password": "2", "tls.crt": "2", "conf": "1"})),
		"error U516 Secret/n/a: data.root-password changed although nobody changed the object it was made for",
		`warning U505 Secret/n/a: the new version changed it although nobody changed the object it was made for: data.tls.crt was "1" and is "2"`)
	expect(t, judgeOperands(secret(fields{"ADMIN_PASSWORD": "1"}), secret(fields{"ADMIN_PASSWORD": "1", "other-password": "2"})))
	expect(t, judgeOperands(secret(fields{"apiKey": "1"}), secret(fields{})),
		"error U516 Secret/n/a: data.apiKey changed although nobody changed the object it was made for")
}

// TestIdle tells an object for which nothing runs any more, not one that runs by another workload.
func TestIdle(t *testing.T) {
	before := byName(operand{Kind: "Deployment", Name: "a", UID: "1"}, operand{Kind: "Job", Name: "j", UID: "2"})
	expect(t, judgeHealth(before, nil), "error U511 Deployment/n/a: it was deleted during the upgrade, and nothing runs for Pot/n/a any more")
	expect(t, judgeOperands(before, nil), "warning U501 Job/n/j: it was deleted during the upgrade")
	other := byName(operand{Kind: "StatefulSet", Name: "a", UID: "3"})
	expect(t, judgeHealth(before, other))
	expect(t, judgeOperands(before, other), "warning U501 Deployment/n/a: it was deleted during the upgrade", "warning U501 Job/n/j: it was deleted during the upgrade")
}
