package manager

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// flags are the manager's.
type flags struct {
	namespaces                      []string // none for all
	elect                           bool
	kind                            electionKind
	lockName, lockNamespace         string
	probes, metrics, pprof, certDir string
	webhooks, selfSigned            bool
	port, workers                   int
	firstRetry, longestRetry        time.Duration
	retries                         float64
	selector                        labels.Selector
	zap                             zap.Options
	migrate, objectMetrics          bool
}

// parseFlags reads the arguments. Defaults come from the environment where a variable says the same. What is wrong with them, and the
// help, goes to stderr.
func parseFlags(args []string, getenv func(string) string, stderr io.Writer) (*flags, error) {
	f := &flags{}
	var selector, namespaces string
	set := flag.NewFlagSet("manager", flag.ContinueOnError)
	config.RegisterFlags(set) // --kubeconfig
	f.zap.BindFlags(set)
	set.StringVar(&namespaces, "watch-namespace", getenv("WATCH_NAMESPACE"), "namespaces of the Memcacheds to work on, separated by commas; all if empty. The default is the variable WATCH_NAMESPACE")
	set.StringVar(&f.lockName, "leader-election-id", "memcached-operator.cache.example.com", "name of the lock; managers with the same name and namespace exclude each other, and the manager's Role names it")
	set.StringVar(&f.lockNamespace, "leader-election-namespace", getenv("POD_NAMESPACE"), "namespace of the lock; needed outside of a cluster. The default is the variable POD_NAMESPACE, or else the pod's own")
	set.BoolVar(&f.elect, "leader-elect", false, "work only while elected, so that one of several managers works")
	set.StringVar(&f.probes, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	set.StringVar(&f.metrics, "metrics-bind-address", "0", "address of the metrics, served over TLS to those who may read them; 0 for none")
	set.StringVar(&f.certDir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs", "folder with tls.crt and tls.key, read again when they change")
	set.BoolVar(&f.webhooks, "webhooks", true, "serve webhooks; without, as on a developer's machine, only the stored version of the API works")
	set.BoolVar(&f.selfSigned, "self-signed-certificate", false, "make and renew the webhooks' certificate, and have the API server trust it: for deployments without OLM")
	set.IntVar(&f.port, "webhook-port", webhook.DefaultPort, "port of the webhooks")
	set.StringVar(&f.pprof, "pprof-bind-address", "0", "address of the profiles of net/http/pprof, for who may read the process's memory: bind it to the loopback interface; 0 for none")
	set.IntVar(&f.workers, "max-concurrent-reconciles", 4, "how many Memcacheds are worked on at the same time")
	set.DurationVar(&f.firstRetry, "retry-base-delay", 100*time.Millisecond, "how long after a first failure a Memcached is tried again; each failure doubles it")
	set.DurationVar(&f.longestRetry, "retry-max-delay", 5*time.Minute, "the longest that the wait after failures gets")
	set.Float64Var(&f.retries, "retries-per-second", 10, "how many retries of all Memcacheds together begin a second, after a burst of ten times as many")
	set.StringVar(&selector, "watch-selector", "", "labels of the Memcacheds to work on, as kubectl's --selector takes them; all if empty")
	set.TextVar(&f.kind, "leader-election-kind", byLease, "how managers elect with --leader-elect: by a lease that the leader renews, or for the life of the leader's pod (lease or life)")
	set.BoolVar(&f.migrate, "storage-migration", true, "store all Memcacheds of the cluster in the version that is stored now, in a release that does; false where the manager may work in some namespaces only")
	set.BoolVar(&f.objectMetrics, "object-metrics", false, "report metrics of each Memcached, five series for each")
	set.SetOutput(stderr)
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: the manager takes flags only", set.Arg(0))
	}
	for namespace := range strings.SplitSeq(namespaces, ",") {
		if namespace = strings.TrimSpace(namespace); namespace != "" {
			f.namespaces = append(f.namespaces, namespace)
		}
	}
	if f.kind == forLife && f.lockNamespace != getenv("POD_NAMESPACE") {
		return nil, fmt.Errorf("--leader-election-namespace %q: with --leader-election-kind %s the lock is in the pod's namespace, %q (POD_NAMESPACE)", f.lockNamespace, f.kind, getenv("POD_NAMESPACE"))
	}
	var err error
	if f.selector, err = labels.Parse(selector); err != nil {
		return nil, fmt.Errorf("--watch-selector %q: %w", selector, err)
	}
	if f.workers < 1 || f.firstRetry <= 0 || f.longestRetry < f.firstRetry || f.retries <= 0 {
		return nil, fmt.Errorf("--max-concurrent-reconciles %d, --retry-base-delay %s, --retry-max-delay %s, --retries-per-second %g: each must be more than 0, and the longest delay no less than the first", f.workers, f.firstRetry, f.longestRetry, f.retries)
	}
	return f, nil
}

// rateLimiter is that of a controller's queue: a wait after each failure, and a limit for all retries.
func (f *flags) rateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](f.firstRetry, f.longestRetry),
		&workqueue.TypedBucketRateLimiter[reconcile.Request]{Limiter: rate.NewLimiter(rate.Limit(f.retries), int(max(1, 10*f.retries)))},
	)
}
