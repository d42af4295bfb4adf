package walk

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// Who does not answer while the operator's pods are replaced is waited for; who does not while they run is not.
func TestRetryWhileRolling(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1}}]`, []string{"v1", "v2"}, thingDefinition)
	for name, c := range map[string]struct {
		rolls, answers time.Duration
		waits          bool
	}{
		"while they are replaced":  {rolls: 20 * time.Second, answers: 21 * time.Second, waits: true},
		"just before they are":     {rolls: 9900 * time.Millisecond, answers: 11 * time.Second, waits: true},
		"while they run":           {answers: 21 * time.Second},
		"soon":                     {answers: time.Second, waits: true},
		"they are never there":     {rolls: time.Hour, answers: time.Hour},
		"they are there, it isn't": {rolls: 20 * time.Second, answers: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world := newWorld()
				w := world.connect(t, p, plan, Options{})
				w.Watcher = observe.NewWatcher(world, fakeManager{world: world}, "operators")
				world.watcher, w.Place.Namespace = w.Watcher, "operators"
				w.release = w.releases["v1"]
				began := time.Now()
				d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Place.Namespace, Name: w.release.Deployments()[0]}}
				d.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1}
				if err := world.Create(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(c.rolls, func() {
					d.Status.AvailableReplicas = 1
					if err := world.Status().Update(t.Context(), d); err != nil {
						t.Error(err)
					}
				})
				err := w.retry(t.Context(), observe.Refused, func() error {
					if time.Since(began) < c.answers {
						return errors.New("no endpoints available")
					}
					return nil
				})
				if (err == nil) != c.waits {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
		})
	}
}
