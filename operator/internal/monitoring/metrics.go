package monitoring

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
)

// counting bounds how long a scrape waits for the manager's cache.
const counting = 3 * time.Second

var mismatches = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "memcached_operator_size_mismatches_total",
	Help: "Deployments found with another size than their Memcached sets: it was resized, or another client scaled the Deployment.",
})

func init() { metrics.Registry.MustRegister(mismatches) }

// Mismatched counts a Deployment that was found with another size than its Memcached asks for.
func Mismatched(_, _ string) { mismatches.Inc() }

var memcacheds = prometheus.NewDesc("memcached_operator_memcacheds",
	"Memcacheds by condition and its status, Unknown if it is not set yet. Only the leader reports it.",
	[]string{"condition", "status"}, nil)

// Metrics of each Memcached.
var (
	ofEach         = []string{"namespace", "name"}
	replicas       = prometheus.NewDesc("memcached_operator_memcached_replicas", "Servers that a Memcached asks for. With --object-metrics.", ofEach, nil)
	readyReplicas  = prometheus.NewDesc("memcached_operator_memcached_ready_replicas", "Servers of a Memcached that are ready. With --object-metrics.", ofEach, nil)
	conditionIsSet = prometheus.NewDesc("memcached_operator_memcached_condition", "1 if a condition of a Memcached is True, else 0. With --object-metrics.", append(ofEach, "condition"), nil)
)

// Census counts Memcacheds by condition each time that Prometheus asks, from the manager's cache: what is gone is not
// counted. An object has series of its own only with Objects.
type Census struct {
	// Memcacheds is the manager's cache.
	Memcacheds client.Reader
	// Selector says by their labels which Memcacheds count; nil for all.
	Selector labels.Selector
	// Objects says that each Memcached has series of its own, too.
	Objects bool
	Log     logr.Logger
}

// NeedLeaderElection says that the manager that works tells: others would count the same objects once more.
func (c *Census) NeedLeaderElection() bool { return true }

// Start counts until ctx ends.
func (c *Census) Start(ctx context.Context) error {
	if err := metrics.Registry.Register(c); err != nil {
		return err
	}
	defer metrics.Registry.Unregister(c)
	<-ctx.Done()
	return nil
}

// Describe says what Collect collects.
func (c *Census) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- memcacheds
	if c.Objects {
		descriptions <- replicas
		descriptions <- readyReplicas
		descriptions <- conditionIsSet
	}
}

// Collect counts. While the cache is not filled yet it says nothing, rather than that there are none.
func (c *Census) Collect(found chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), counting)
	defer cancel()
	var list v1.MemcachedList
	options := []client.ListOption{client.UnsafeDisableDeepCopy}
	if c.Selector != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: c.Selector})
	}
	if err := c.Memcacheds.List(ctx, &list, options...); err != nil {
		if !errors.Is(err, context.DeadlineExceeded) {
			c.Log.Error(err, "counting Memcacheds")
		}
		return
	}
	count := map[[2]string]int{}
	for i := range list.Items {
		if c.Objects {
			each(&list.Items[i], found)
		}
		for _, kind := range conditions {
			status := metav1.ConditionUnknown
			if condition := meta.FindStatusCondition(list.Items[i].Status.Conditions, kind); condition != nil {
				status = condition.Status
			}
			count[[2]string{kind, string(status)}]++
		}
	}
	for _, kind := range conditions {
		for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
			found <- prometheus.MustNewConstMetric(memcacheds, prometheus.GaugeValue, float64(count[[2]string{kind, string(status)}]), kind, string(status))
		}
	}
}

// each collects the metrics of one Memcached.
func each(m *v1.Memcached, found chan<- prometheus.Metric) {
	gauge := func(what *prometheus.Desc, value float64, more ...string) {
		found <- prometheus.MustNewConstMetric(what, prometheus.GaugeValue, value, append([]string{m.Namespace, m.Name}, more...)...)
	}
	gauge(replicas, float64(m.Spec.Replicas))
	gauge(readyReplicas, float64(m.Status.ReadyReplicas))
	for _, kind := range conditions {
		value := 0.0
		if meta.IsStatusConditionTrue(m.Status.Conditions, kind) {
			value = 1
		}
		gauge(conditionIsSet, value, kind)
	}
}

var conditions = []string{v1.ConditionAvailable, v1.ConditionProgressing, v1.ConditionDegraded}
