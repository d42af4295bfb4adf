package olmv0

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// A Subscription is told what is installed once OLM has lost that, and never while OLM may still write it by itself.
func TestRemind(t *testing.T) {
	for name, test := range map[string]struct {
		installed string // by the Subscription
		phase     v1alpha1.ClusterServiceVersionPhase
		writes    bool // OLM writes the status meanwhile
		mends     bool
	}{
		"all of it is lost":         {"", v1alpha1.CSVPhaseSucceeded, false, true},
		"an older status came back": {"tea.v1", v1alpha1.CSVPhaseSucceeded, false, true},
		"OLM still writes it":       {"", v1alpha1.CSVPhaseSucceeded, true, false},
		"the bundle is not ready":   {"", v1alpha1.CSVPhaseInstalling, false, false},
		"nothing is lost":           {"tea.v2", v1alpha1.CSVPhaseSucceeded, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "tea"}, Spec: &v1alpha1.SubscriptionSpec{}}
				s.Status.CurrentCSV, s.Status.InstalledCSV, s.Status.State = test.installed, test.installed, v1alpha1.SubscriptionStateUpgradePending
				csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "tea.v2"}}
				csv.Status.Phase = test.phase
				c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(s, csv).WithStatusSubresource(s, csv).Build()}
				remind := func() string {
					mended, err := c.Remind(t.Context(), lifecycle.Place{Namespace: "n", Package: "tea"}, "tea.v2", c)
					if err != nil {
						t.Fatal(err)
					}
					if err := c.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
						t.Fatal(err)
					}
					return mended
				}
				if mended := remind(); mended != "" {
					t.Errorf("at once it says %q", mended)
				}
				time.Sleep(forgottenAfter)
				if test.writes {
					s.Status.LastUpdated = metav1.Now()
					if err := c.WithWatch.Status().Update(t.Context(), s); err != nil {
						t.Fatal(err)
					}
				}
				mended := remind()
				if said := strings.HasPrefix(mended, "tea.v2 is installed"); said != test.mends {
					t.Errorf("it says %q", mended)
				}
				if test.mends && (s.Status.CurrentCSV != "tea.v2" || s.Status.InstalledCSV != "tea.v2" || s.Status.State != "") || !test.mends && s.Status.InstalledCSV != test.installed {
					t.Errorf("the status is %+v", s.Status)
				}
				if cause, fix := c.WhyMended(mended); test.mends && (!strings.Contains(cause, "workers") || !strings.Contains(fix, "diagnose")) {
					t.Errorf("%s; %s", cause, fix)
				}
			})
		})
	}
}
