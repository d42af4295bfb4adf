package monitoring

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func memcached(name string, conditions ...metav1.Condition) *v1.Memcached {
	return &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"shard": name[:1]}}, Status: v1.MemcachedStatus{Conditions: conditions}}
}

func TestCensus(t *testing.T) {
	t.Parallel()
	yes := func(kind string) metav1.Condition { return metav1.Condition{Type: kind, Status: metav1.ConditionTrue} }
	no := func(kind string) metav1.Condition { return metav1.Condition{Type: kind, Status: metav1.ConditionFalse} }
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(
		memcached("a1", yes(v1.ConditionAvailable), no(v1.ConditionProgressing), no(v1.ConditionDegraded)),
		memcached("a2", no(v1.ConditionAvailable), yes(v1.ConditionProgressing), yes(v1.ConditionDegraded)),
		memcached("b1", yes(v1.ConditionAvailable), yes(v1.ConditionProgressing), no(v1.ConditionDegraded)),
		memcached("b2"),
	).Build()
	silent := interceptor.NewClient(c, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("the cache is not started")
	}})
	counts := func(a ...float64) map[string]float64 {
		return map[string]float64{
			"Available True": a[0], "Available False": a[1], "Available Unknown": a[2],
			"Progressing True": a[3], "Progressing False": a[4], "Progressing Unknown": a[5],
			"Degraded True": a[6], "Degraded False": a[7], "Degraded Unknown": a[8],
		}
	}
	for name, test := range map[string]struct {
		reader   client.Reader
		selector string
		want     map[string]float64
	}{
		"all":                           {c, "", counts(2, 1, 1, 2, 1, 1, 1, 2, 1)},
		"those that are this manager's": {c, "shard=b", counts(1, 0, 1, 1, 0, 1, 0, 1, 1)},
		"none":                          {c, "shard=c", counts(0, 0, 0, 0, 0, 0, 0, 0, 0)},
		"a cache that can't say":        {silent, "", map[string]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			selector, err := labels.Parse(test.selector)
			if err != nil {
				t.Fatal(err)
			}
			registry := prometheus.NewPedanticRegistry()
			registry.MustRegister(&Census{Memcacheds: test.reader, Selector: selector, Log: logr.Discard()})
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for _, f := range families {
				for _, m := range f.GetMetric() {
					got[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = m.GetGauge().GetValue()
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Each Memcached has five series, if that is asked for; one that is gone has none.
func TestObjectMetrics(t *testing.T) {
	t.Parallel()
	m := memcached("a", metav1.Condition{Type: v1.ConditionAvailable, Status: metav1.ConditionTrue}, metav1.Condition{Type: v1.ConditionDegraded, Status: metav1.ConditionFalse})
	m.Spec.Replicas, m.Status.ReadyReplicas = 3, 2
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(m).Build()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&Census{Memcacheds: c, Objects: true, Log: logr.Discard()})
	names := []string{"memcached_operator_memcached_condition", "memcached_operator_memcached_ready_replicas", "memcached_operator_memcached_replicas"}
	want := `# HELP memcached_operator_memcached_condition 1 if a condition of a Memcached is True, else 0. With --object-metrics.
# TYPE memcached_operator_memcached_condition gauge
memcached_operator_memcached_condition{condition="Available",name="a",namespace="ns"} 1
memcached_operator_memcached_condition{condition="Degraded",name="a",namespace="ns"} 0
memcached_operator_memcached_condition{condition="Progressing",name="a",namespace="ns"} 0
# HELP memcached_operator_memcached_ready_replicas Servers of a Memcached that are ready. With --object-metrics.
# TYPE memcached_operator_memcached_ready_replicas gauge
memcached_operator_memcached_ready_replicas{name="a",namespace="ns"} 2
# HELP memcached_operator_memcached_replicas Servers that a Memcached asks for. With --object-metrics.
# TYPE memcached_operator_memcached_replicas gauge
memcached_operator_memcached_replicas{name="a",namespace="ns"} 3
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	if err := c.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(""), names...); err != nil {
		t.Error(err)
	}
}

// Names and help of our own metrics are as Prometheus would have them.
func TestMetricsLint(t *testing.T) {
	own := slices.DeleteFunc(registered(t), func(f *dto.MetricFamily) bool { return !strings.HasPrefix(f.GetName(), "memcached_") })
	if len(own) != 7 {
		t.Errorf("%d metrics of our own", len(own))
	}
	problems, err := promlint.NewWithMetricFamilies(own).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
