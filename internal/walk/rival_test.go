package walk

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// An operator that deletes for each object what it made for the others is walked with one object.
func TestRivals(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1}}]`, []string{"v1", "v2", "v3"}, thingDefinition)
	expectAll(t, p, plan, []pairing{
		{ousts, ousts, "", ""},
		{ousts, idles, code.NotReconciled, "v2 does not reconcile it"},
		{"", ousts, "U501 U508", "v2 deletes it and makes it anew over and over"},
	})
}

func TestRivalsAreNoted(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1}}]`, []string{"v1", "v2"}, thingDefinition)
	synctest.Test(t, func(t *testing.T) {
		w := newDisposable()
		w.behaviour["v1"], w.behaviour["v2"] = ousts, ousts
		walk := w.connect(t, p, plan, Options{})
		defer time.Sleep(5 * time.Second)
		report, err := walk.run(t.Context(), plan)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(report.Cluster.Limitations, "\n"); !strings.Contains(got, "was deleted and made anew over and over while there were 2 objects of kind Thing") {
			t.Errorf("not noted: %s", got)
		}
	})
}
