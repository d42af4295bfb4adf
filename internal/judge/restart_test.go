package judge

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

// An operator that ends and comes back gives its lock to the next, as the one before did.
func TestComeback(t *testing.T) {
	kept := func(d time.Duration) observe.Comeback {
		return observe.Comeback{Back: true, Held: "Lease/pots", Lease: d}
	}
	for name, c := range map[string]struct {
		back     observe.Comeback
		released bool
		want     []string
	}{
		"it comes back":         {observe.Comeback{Back: true}, true, nil},
		"it does not come back": {observe.Comeback{}, true, []string{"error U105 : the operator of v2 does not come back: its pods were deleted, as when a node is drained, and no others are ready and lead in their place"}},
		"it keeps its lock":     {kept(15 * time.Second), true, []string{"warning U204 Lease/pots: the pods of v2 do not release it when they end: nothing is reconciled for 15s then, as in the next upgrade; those of v1 did"}},
		"for long":              {kept(5 * time.Minute), true, []string{"error U204 Lease/pots: the pods of v2 do not release it when they end: nothing is reconciled for 5m0s then, as in the next upgrade; those of v1 did"}},
		"as the one before":     {kept(15 * time.Second), false, nil},
	} {
		t.Run(name, func(t *testing.T) { expect.Findings(t, Comeback("v2", "v1", c.back, c.released), c.want...) })
	}
}

// Who starts again finds everything as it is to be.
func TestRestart(t *testing.T) {
	type m = map[string]any
	made := func(kind, uid string, content m) map[string]observe.Operand {
		o := observe.Operand{Kind: kind, Namespace: "n", Name: "a", Of: "Pot/n/a", Direct: true, UID: types.UID(uid), Content: content}
		return map[string]observe.Operand{o.String(): o}
	}
	template := func(at string) m {
		return m{"spec": m{"template": m{"metadata": m{"annotations": m{"startedAt": at}}}}}
	}
	for name, c := range map[string]struct {
		before, after map[string]observe.Operand
		said, says    m
		want          []string
	}{
		"nothing changes":     {made("Deployment", "1", template("1")), made("Deployment", "1", template("1")), m{"phase": "Ready"}, m{"phase": "Ready"}, nil},
		"it replaces pods":    {made("Deployment", "1", template("1")), made("Deployment", "1", template("2")), nil, nil, []string{"error U530 Pot/n/a: when the operator of v2 starts again, with nothing to do, it replaces the pods of Deployment/n/a (spec.template.metadata.annotations.startedAt)"}},
		"it makes it anew":    {made("Service", "1", nil), made("Service", "2", nil), nil, nil, []string{"error U530 Pot/n/a: when the operator of v2 starts again, with nothing to do, it makes Service/n/a anew"}},
		"it deletes it":       {made("Service", "1", nil), nil, nil, nil, []string{"error U530 Pot/n/a: when the operator of v2 starts again, with nothing to do, it deletes Service/n/a"}},
		"another password":    {made("Secret", "1", m{"data": m{"password": "x"}}), made("Secret", "1", m{"data": m{"password": "y"}}), nil, nil, []string{"error U530 Pot/n/a: when the operator of v2 starts again, with nothing to do, it sets another data.password in Secret/n/a"}},
		"another setting":     {made("ConfigMap", "1", m{"data": m{"a": "x"}}), made("ConfigMap", "1", m{"data": m{"a": "y"}}), nil, nil, []string{"warning U530 Pot/n/a: when the operator of v2 starts again, with nothing to do, it sets another data.a of ConfigMap/n/a"}},
		"times begin anew":    {made("Service", "1", nil), made("Service", "1", nil), m{"startedAt": "1"}, m{"startedAt": "2"}, []string{"warning U530 Pot/n/a: when the operator of v2 starts again, with nothing to do, status.startedAt was 1 and is 2"}},
		"it says when":        {made("Service", "1", nil), made("Service", "1", nil), m{"lastSync": "1", "syncTime": "1"}, m{"lastSync": "2", "syncTime": "2"}, nil},
		"it comes and goes":   {made("Job", "1", nil), nil, nil, nil, nil},
		"claims are the data": {made(observe.KindClaim, "1", nil), made(observe.KindClaim, "1", m{"spec": m{"volumeName": "v"}}), nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Findings(t, Restart("v2", c.before, c.after, map[string]map[string]any{"Pot/n/a": c.said}, map[string]map[string]any{"Pot/n/a": c.says}, nil), c.want...)
		})
	}
}

// What ran to its end is not run again, unless it is run from time to time.
func TestRunAgain(t *testing.T) {
	type m = map[string]any
	jobs := func(images ...string) map[string]observe.Operand {
		all := map[string]observe.Operand{}
		for i, image := range images {
			o := observe.Operand{Kind: "Job", Namespace: "n", Name: "a-" + strconv.Itoa(i), Of: "Pot/n/a", Direct: true, Content: m{"spec": m{"template": m{"spec": m{"containers": []any{m{"name": "run", "image": image}}}}}}}
			all[o.String()] = o
		}
		return all
	}
	for name, c := range map[string]struct {
		before, after map[string]observe.Operand
		made          int
		want          []string
	}{
		"once":              {jobs("x"), jobs("x"), 1, nil},
		"again":             {jobs("x"), jobs("x", "x"), 1, []string{"error U530 Pot/n/a: when the operator of v2 starts again, with nothing to do, it runs again, in Job/n/a-1, what another Job did"}},
		"something else":    {jobs("x"), jobs("x", "y"), 1, nil},
		"from time to time": {jobs("x"), jobs("x", "x"), 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Findings(t, Restart("v2", c.before, c.after, nil, nil, map[string]Runs{"Pot/n/a": {Made: c.made}}), c.want...)
		})
	}
}
