package observe

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// TestAwaitInformers has an operator that is refused a namespace until OLM gives it the rights, or gets no answer until its own webhook converts, and asks again for it when its
// pause is over. Nobody waits for what it does not get for good.
func TestAwaitInformers(t *testing.T) {
	for _, test := range []struct {
		name    string
		refused int32 // the code
		allowed bool
		again   time.Duration // when it is granted, after its start; 0 for never
		waits   time.Duration
	}{
		{"it asks again", http.StatusForbidden, true, 43 * time.Second, 40 * time.Second},
		{"it never asks again", http.StatusForbidden, true, 0, retryLimit},
		{"it is refused for good", http.StatusForbidden, false, 0, 0},
		{"its webhook converts now", http.StatusInternalServerError, true, 43 * time.Second, 40 * time.Second},
		{"what it watches was not read yet", http.StatusTooManyRequests, true, 43 * time.Second, 40 * time.Second},
		{"its webhook never converts", http.StatusInternalServerError, false, 0, 0},
		{"it does not ask again although its webhook converts", http.StatusInternalServerError, true, 0, retryLimit},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &lifecycle.Release{CSV: &v1alpha1.ClusterServiceVersion{}}
				r.CSV.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "manager"}}
				started := time.Now()
				request := func(verb string, code int32, after time.Duration) auditv1.Event {
					return auditv1.Event{
						Verb: verb, User: authenticationv1.UserInfo{Username: "system:serviceaccount:operators:manager"}, ResponseStatus: &metav1.Status{Code: code},
						ObjectRef:                &auditv1.ObjectReference{APIVersion: "v1", Resource: "services", Namespace: "served"},
						RequestReceivedTimestamp: metav1.NewMicroTime(started.Add(after)),
					}
				}
				log := &fakeLog{events: []auditv1.Event{request("watch", test.refused, time.Second), request("list", test.refused, 2*time.Second)}}
				if test.again > 0 {
					log.events = append(log.events, request("watch", http.StatusOK, test.again))
				}
				w := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
					Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
						o.(*authorizationv1.SubjectAccessReview).Status.Allowed = test.allowed
						return nil
					},
				}).Build()
				served := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
				served.PrependReactor("list", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
					if !test.allowed {
						return true, nil, errors.New("conversion webhook failed")
					}
					return false, nil, nil
				})
				c := &Cluster{Client: w, Dynamic: served, Provider: log, Place: lifecycle.Place{Namespace: "operators"}, Watcher: &Watcher{changed: make(chan struct{})}}
				time.Sleep(3 * time.Second)
				began := time.Now()
				if err := c.awaitInformers(t.Context(), r, started); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < test.waits || took > test.waits+time.Second {
					t.Errorf("it took %s, not %s", took, test.waits)
				}
			})
		})
	}
}

// fakeLog is a cluster with an audit log, of which it tells what has happened by now.
type fakeLog struct {
	cluster.Cluster
	events []auditv1.Event
}

func (l *fakeLog) Audit(_ context.Context, since time.Time) ([]auditv1.Event, error) {
	return slices.DeleteFunc(slices.Clone(l.events), func(e auditv1.Event) bool {
		at := e.RequestReceivedTimestamp.Time
		return at.Before(since) || at.After(time.Now())
	}), nil
}

func (l *fakeLog) Disposable() bool { return true }
