package olmv0

import (
	"context"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// An installation is not done before OLM gave the operator its rights in the namespaces that it serves, and Wake says that it
// has OLM do so.
func TestWithoutRights(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", nil)
	for name, test := range map[string]struct {
		targets   string
		copies    map[string]string // the ClusterServiceVersions of RoleBindings, by their namespace
		allowed   bool
		gone      bool // the Roles to which RoleBindings of the new version bind
		noRules   bool
		list, ask error
		want      string
	}{
		"its own namespace":                       {targets: "operators"},
		"all namespaces":                          {targets: ""},
		"it has rights":                           {targets: "a,b", copies: map[string]string{"a": "tea.v2", "b": "tea.v2"}},
		"its Role is gone":                        {targets: "a", copies: map[string]string{"a": "tea.v2"}, gone: true, want: "a"},
		"it has the old version's":                {targets: "a", copies: map[string]string{"a": "tea.v1"}, allowed: true, want: "a"},
		"it has them in one of two":               {targets: "operators,a,b", copies: map[string]string{"a": "tea.v2"}, want: "b"},
		"it has none":                             {targets: "a", want: "a"},
		"it has them otherwise":                   {targets: "a", allowed: true},
		"it needs none":                           {targets: "a", noRules: true},
		"the walk may not list RoleBindings":      {targets: "a", list: forbidden},
		"the walk may not ask for others' rights": {targets: "a", ask: forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
				Namespace: "operators", Name: "tea.v2", Annotations: map[string]string{operatorsv1.OperatorGroupTargetsAnnotationKey: test.targets},
			}}
			csv.Status.Phase = v1alpha1.CSVPhaseSucceeded
			if !test.noRules {
				csv.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{{
					ServiceAccountName: "manager", Rules: []rbacv1.PolicyRule{
						{NonResourceURLs: []string{"/x"}, Verbs: []string{"get"}},
						{APIGroups: []string{"tea.example.com"}, Resources: []string{"pots/status"}, Verbs: []string{"patch"}},
					},
				}}
			}
			plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "install-1"}, Spec: v1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{"tea.v2"}}}
			plan.Status.Phase = v1alpha1.InstallPlanPhaseComplete
			subscription := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "tea"}, Status: v1alpha1.SubscriptionStatus{InstalledCSV: csv.Name}}
			objects := []client.Object{csv, plan, subscription}
			for namespace, owner := range test.copies {
				objects = append(objects, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, Name: "copy", Labels: map[string]string{v1alpha1.CopiedLabelKey: "operators", OwnerLabel: owner},
				}})
			}
			c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if _, is := list.(*rbacv1.RoleBindingList); is && test.list != nil {
						return test.list
					}
					return c.List(ctx, list, options...)
				},
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					review := o.(*authorizationv1.SubjectAccessReview)
					asked := review.Spec.ResourceAttributes
					if review.Spec.User != "system:serviceaccount:operators:manager" || asked.Verb != "patch" || asked.Group != "tea.example.com" || asked.Resource != "pots" || asked.Subresource != "status" {
						t.Errorf("asks %+v", review.Spec)
					}
					review.Status.Allowed = test.allowed || test.copies[review.Spec.ResourceAttributes.Namespace] == "tea.v2" && !test.gone
					return test.ask
				},
			}).Build()}
			place := lifecycle.Place{Namespace: "operators", Package: "tea"}
			if got, err := c.WithoutRights(t.Context(), csv); got != test.want || err != nil {
				t.Errorf("no rights in %q (%v), want %q", got, err, test.want)
			}
			stage := lifecycle.Installed
			if test.want != "" {
				stage = lifecycle.Finishing
			}
			if state, err := c.State(t.Context(), place, &lifecycle.Release{Name: "tea.v2"}, lifecycle.View{Reader: c}); err != nil || state.Stage != stage {
				t.Errorf("stage %v (%v), want %v", state.Stage, err, stage)
			}
			mended, err := c.Wake(t.Context(), place)
			if err != nil || (mended != "") != (test.want != "") || mended != "" && !strings.Contains(mended, "tea.v2 was left without its rights in namespace "+test.want) {
				t.Errorf("waking mends %q (%v)", mended, err)
			}
			if cause, fix := c.WhyMended(mended); mended != "" && (!strings.Contains(cause, "OperatorGroup") || fix == "") {
				t.Errorf("because %s: %s", cause, fix)
			}
		})
	}
}
