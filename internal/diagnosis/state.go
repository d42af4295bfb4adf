// Package diagnosis says where the Subscriptions of a live cluster stand, what OLM would do next, why it does not, and how to
// mend that. It only reads.
package diagnosis

import (
	"context"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

// State is what of a cluster bears on its Subscriptions.
type State struct {
	Now           time.Time
	OLM           lifecycle.Status
	Subscriptions []v1alpha1.Subscription
	CSVs          []v1alpha1.ClusterServiceVersion // without copies
	Plans         []v1alpha1.InstallPlan
	Catalogs      []v1alpha1.CatalogSource
	Groups        []operatorsv1.OperatorGroup
	Conditions    []operatorsv2.OperatorCondition
	Namespaces    []corev1.Namespace
	Pods          []corev1.Pod        // of namespaces with Subscriptions
	Deployments   []appsv1.Deployment // of namespaces with Subscriptions
	// Unserved tells, by namespace/name of a ClusterServiceVersion that succeeded, the first namespace in which its operator lacks
	// its rights.
	Unserved map[string]string
}

// Read reads the state of the cluster that c reaches. It lists no Secrets and no custom resources, and asks the API server what
// operators may do in the namespaces that they serve.
func Read(ctx context.Context, c *olmv0.Client) (*State, error) {
	var subscriptions v1alpha1.SubscriptionList
	var versions v1alpha1.ClusterServiceVersionList
	var plans v1alpha1.InstallPlanList
	var catalogs v1alpha1.CatalogSourceList
	var groups operatorsv1.OperatorGroupList
	var conditions operatorsv2.OperatorConditionList
	var namespaces corev1.NamespaceList
	// Plans come before versions: a plan that is complete has installed its own.
	for _, list := range []client.ObjectList{&subscriptions, &plans, &versions, &catalogs, &groups, &conditions, &namespaces} {
		if err := c.List(ctx, list); err != nil && !meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	s := &State{
		Now:           time.Now(),
		Subscriptions: subscriptions.Items, Plans: plans.Items, Catalogs: catalogs.Items, Groups: groups.Items,
		Conditions: conditions.Items, Namespaces: namespaces.Items,
	}
	for _, v := range versions.Items {
		if !v.IsCopied() {
			s.CSVs = append(s.CSVs, v)
		}
	}
	read := map[string]bool{}
	for _, sub := range s.Subscriptions {
		if read[sub.Namespace] {
			continue
		}
		read[sub.Namespace] = true
		var pods corev1.PodList
		var deployments appsv1.DeploymentList
		for _, list := range []client.ObjectList{&pods, &deployments} {
			if err := c.List(ctx, list, client.InNamespace(sub.Namespace)); err != nil {
				return nil, fmt.Errorf("list %T in %s: %w", list, sub.Namespace, err)
			}
		}
		s.Pods, s.Deployments = append(s.Pods, pods.Items...), append(s.Deployments, deployments.Items...)
	}
	if err := s.readRights(ctx, c); err != nil {
		return nil, err
	}
	var err error
	s.OLM, err = c.Status(ctx)
	return s, err
}

// readRights reads in which namespaces the operators that run lack rights.
func (s *State) readRights(ctx context.Context, c *olmv0.Client) error {
	s.Unserved = map[string]string{}
	for i := range s.CSVs {
		csv := &s.CSVs[i]
		namespace, err := c.WithoutRights(ctx, csv)
		if err != nil {
			return err
		}
		if namespace != "" {
			s.Unserved[csv.Namespace+"/"+csv.Name] = namespace
		}
	}
	return nil
}

// csv returns the ClusterServiceVersion called name in namespace, or nil.
func (s *State) csv(namespace, name string) *v1alpha1.ClusterServiceVersion {
	for i := range s.CSVs {
		if s.CSVs[i].Namespace == namespace && s.CSVs[i].Name == name {
			return &s.CSVs[i]
		}
	}
	return nil
}

// catalog returns the CatalogSource of sub, or nil.
func (s *State) catalog(sub *v1alpha1.Subscription) *v1alpha1.CatalogSource {
	for i := range s.Catalogs {
		if s.Catalogs[i].Namespace == sub.Spec.CatalogSourceNamespace && s.Catalogs[i].Name == sub.Spec.CatalogSource {
			return &s.Catalogs[i]
		}
	}
	return nil
}

// plansIn are the InstallPlans of a namespace.
func (s *State) plansIn(namespace string) []v1alpha1.InstallPlan {
	var plans []v1alpha1.InstallPlan
	for _, p := range s.Plans {
		if p.Namespace == namespace {
			plans = append(plans, p)
		}
	}
	return plans
}
