package olmv0

import (
	"slices"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

func TestGroup(t *testing.T) {
	group := func(labels map[string]string, targets ...string) *operatorsv1.OperatorGroup {
		return &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "g", Labels: labels},
			Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: targets}}
	}
	selecting := group(nil)
	selecting.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	for name, test := range map[string]struct {
		has  *operatorsv1.OperatorGroup
		mode lifecycle.Mode
		want []string
		says string
	}{
		"none":                     {nil, lifecycle.MultiNamespace, []string{"other", "third"}, ""},
		"none, for all":            {nil, lifecycle.AllNamespaces, nil, ""},
		"as wanted":                {group(nil, "third", "other"), lifecycle.MultiNamespace, []string{"third", "other"}, ""},
		"ours of another mode":     {group(cluster.Labels(""), "n"), lifecycle.SingleNamespace, []string{"other"}, ""},
		"ours of its own":          {group(cluster.Labels(""), "n", "other"), lifecycle.MultiNamespace, []string{"other", "third"}, ""},
		"ours, and now for all":    {group(cluster.Labels(""), "n"), lifecycle.AllNamespaces, nil, ""},
		"a user's for all":         {group(nil), lifecycle.AllNamespaces, nil, ""},
		"a user's of another mode": {group(nil), lifecycle.OwnNamespace, nil, "OperatorGroup n/g is for all namespaces, and the operator is to serve the namespaces n"},
		"a user's with a selector": {selecting, lifecycle.AllNamespaces, nil, "is for namespaces with a=b"},
		"a user's for another one": {group(nil, "n"), lifecycle.AllNamespaces, []string{"n"}, "is for the namespaces n, and the operator is to serve all namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(Scheme())
			if test.has != nil {
				builder = builder.WithObjects(test.has.DeepCopy())
			}
			c := &Client{WithWatch: builder.Build()}
			targets := map[lifecycle.Mode][]string{lifecycle.SingleNamespace: {"other"}, lifecycle.MultiNamespace: {"other", "third"}}[test.mode]
			err := c.Group(t.Context(), "n", test.mode, targets...)
			if test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says) || hint.Of(err) == "") || test.says == "" && err != nil {
				t.Errorf("it says %v", err)
			}
			var groups operatorsv1.OperatorGroupList
			if err := c.List(t.Context(), &groups, client.InNamespace("n")); err != nil {
				t.Fatal(err)
			}
			if len(groups.Items) != 1 || !slices.Equal(groups.Items[0].Spec.TargetNamespaces, test.want) {
				t.Errorf("the groups are %+v", groups.Items)
			}
		})
	}
}
