// Package manager is the process around a release of the operator: its flags, log, probes, metrics, leader election and
// webhook server. What the release does with them is the release's own.
package manager

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/olmkit/olmkit/operator/internal/certs"
	"github.com/olmkit/olmkit/operator/internal/crdconversion"
	"github.com/olmkit/olmkit/operator/internal/operand"
	"github.com/olmkit/olmkit/pkg/leader"
)

// DefaultImage is the operand's image where neither the object nor the environment names one. It is the same in all
// releases: a release with another would restart every cache that relies on it.
const DefaultImage = "docker.io/library/memcached:1.6.39"

// The pod's terminationGracePeriodSeconds must be more than the first two together, and the 3 s that giving up a leader's lock
// may take.
const (
	// stopping bounds how long a manager that is told to stop waits for its controllers.
	stopping = 10 * time.Second
	// lingering is how long it serves webhooks then. API servers look up a Service's endpoints in a cache, which is
	// behind by less than that.
	lingering = 5 * time.Second
	// working bounds one reconciliation: a request that hangs must not keep a worker for ever.
	working = time.Minute
	// trying bounds how long it tries, before it starts, to have the certificate that it needs.
	trying = 10 * time.Second
)

// Release is one release of the operator.
type Release struct {
	// Version is the release's version, without a v.
	Version string
	// AddToScheme makes the versions of the API that the release knows known.
	AddToScheme []func(*runtime.Scheme) error
	// Webhooks says that the release serves webhooks; its readiness then waits for their server.
	Webhooks bool
	// Setup adds the release's controllers and webhooks to its manager.
	Setup func(mgr ctrl.Manager, settings Settings) error
}

// Settings is what the flags and the environment say to a release's controllers.
type Settings struct {
	// Image is the operand's image where a Memcached names none.
	Image string
	// Namespace is the manager's own, empty where it runs outside of the cluster.
	Namespace string
	// Selector says by their labels which Memcacheds are this manager's; nil for all.
	Selector labels.Selector
	// Certificate is what webhooks and metrics are served with; zero where nobody could verify it.
	Certificate Certificate
	// Retries makes the rate limiter of a controller's queue: each controller has its own.
	Retries func() workqueue.TypedRateLimiter[reconcile.Request]
}

// Certificate is how clients verify a certificate: by the authority under a key of a Secret in the manager's namespace, and
// by the host that it is of.
type Certificate struct {
	Secret, AuthorityKey, Host string
}

// Main runs a release until it is told to stop, and ends the process.
func Main(release Release) {
	err := Run(ctrl.SetupSignalHandler(), release, os.Args[1:], os.Getenv, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "memcached-operator:", err)
		os.Exit(1)
	}
}

// Run runs a release until ctx ends. It reads these variables of the environment: WATCH_NAMESPACE (one namespace, a
// list with commas, or nothing for all), RELATED_IMAGE_MEMCACHED and MEMCACHED_IMAGE (the operand's default image, the
// first that is set). OPERATOR_CONDITION_NAME, which OLM sets, says that the certificate is OLM's, POD_NAMESPACE where it is.
// POD_NAMESPACE, POD_NAME and POD_UID say which pod leads for life.
func Run(ctx context.Context, release Release, args []string, getenv func(string) string, stderr io.Writer) error {
	var (
		flags    = flag.NewFlagSet("manager", flag.ContinueOnError)
		elect    = flags.Bool("leader-elect", false, "work only while elected, so that one of several managers works")
		probes   = flags.String("health-probe-bind-address", ":8081", "address of /healthz and /readyz")
		measures = flags.String("metrics-bind-address", "0", "address of the metrics, served over TLS to those who may read them; 0 for none")
		certDir  = flags.String("webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs", "folder with tls.crt and tls.key, read again when they change")
		serve    = flags.Bool("webhooks", true, "serve webhooks; without, as on a developer's machine, only the stored version of the API works")
		itself   = flags.Bool("self-signed-certificate", false, "make and renew the webhooks' certificate, and have the API server trust it: for deployments without OLM")
		port     = flags.Int("webhook-port", webhook.DefaultPort, "port of the webhooks")
		profiles = flags.String("pprof-bind-address", "0", "address of the profiles of net/http/pprof, for who may read the process's memory: bind it to the loopback interface; 0 for none")
		workers  = flags.Int("max-concurrent-reconciles", 4, "how many Memcacheds are worked on at the same time")
		first    = flags.Duration("retry-base-delay", 100*time.Millisecond, "how long after a first failure a Memcached is tried again; each failure doubles it")
		longest  = flags.Duration("retry-max-delay", 5*time.Minute, "the longest that the wait after failures gets")
		retries  = flags.Float64("retries-per-second", 10, "how many retries of all Memcacheds together begin a second, after a burst of ten times as many")
		which    = flags.String("watch-selector", "", "labels of the Memcacheds to work on, as kubectl's --selector takes them; all if empty")
		kind     electionKind
		level    slog.Level
	)
	flags.TextVar(&kind, "leader-election-kind", byLease, "how managers elect with --leader-elect: by a lease that the leader renews, or for the life of the leader's pod (lease or life)")
	flags.TextVar(&level, "log-level", slog.LevelInfo, "the least that is logged: debug, info, warn or error")
	flags.SetOutput(stderr)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: the manager takes flags only", flags.Arg(0))
	}
	selector, err := labels.Parse(*which)
	if err != nil {
		return fmt.Errorf("--watch-selector %q: %w", *which, err)
	}
	if *workers < 1 || *first <= 0 || *longest < *first || *retries <= 0 {
		return fmt.Errorf("--max-concurrent-reconciles %d, --retry-base-delay %s, --retry-max-delay %s, --retries-per-second %g: each must be more than 0, and the longest delay no less than the first", *workers, *first, *longest, *retries)
	}

	handler := slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level})
	slog.SetDefault(slog.New(handler)) // also for what net/http has to say
	log := logr.FromSlogHandler(handler)
	ctrl.SetLogger(log)
	klog.SetLogger(log)

	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensions.AddToScheme}, release.AddToScheme...) {
		if err := add(scheme); err != nil {
			return fmt.Errorf("filling the scheme: %w", err)
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	// What the API server warns of it warns of each time; once is enough.
	config.WarningHandlerWithContext = ctrllog.NewKubeAPIWarningLogger(ctrllog.KubeAPIWarningLoggerOptions{Deduplicate: true})
	release.Webhooks = release.Webhooks && *serve
	ca := &certs.Authority{ //nolint:gosec // names of objects, not credentials
		Namespace: getenv("POD_NAMESPACE"), Secret: "memcached-operator-webhook-cert", Service: "memcached-operator-webhook-service", CRD: crdconversion.CRD,
		Mutating: "memcached-operator-mutating-webhook-configuration", Validating: "memcached-operator-validating-webhook-configuration",
		Log: log.WithName("certs"), Now: time.Now,
	}
	// Metrics are served with the webhooks' certificate, which clients can verify; without webhooks, with one that they can't.
	tlsOptions := []func(*tls.Config){onlyHTTP1, atLeastTLS12}
	var shown Certificate
	switch {
	case !release.Webhooks:
	case *itself:
		tlsOptions = append(tlsOptions, func(config *tls.Config) { config.GetCertificate = ca.Certificate })
		shown = Certificate{Secret: ca.Secret, AuthorityKey: certs.Key, Host: ca.Host()}
	case getenv("OPERATOR_CONDITION_NAME") != "":
		shown = Certificate{Secret: crdconversion.Secret, AuthorityKey: crdconversion.AuthorityKey, Host: crdconversion.Service + "." + ca.Namespace + ".svc"}
	}
	hooks := newWebhooks(release.Webhooks, webhook.NewServer(webhook.Options{Port: *port, CertDir: *certDir, TLSOpts: tlsOptions}))
	options := ctrl.Options{
		Scheme:                 scheme,
		Logger:                 log,
		Cache:                  caching(getenv("WATCH_NAMESPACE")),
		Metrics:                metrics.Options{BindAddress: *measures, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization, CertDir: *certDir, TLSOpts: tlsOptions},
		WebhookServer:          hooks,
		HealthProbeBindAddress: *probes,
		PprofBindAddress:       *profiles,
		Controller:             ctrlconfig.Controller{MaxConcurrentReconciles: *workers, ReconciliationTimeout: working},
		LeaderElection:         *elect,
		// One name through all releases: during an upgrade the old and the new manager exclude each other.
		LeaderElectionID:              "memcached-operator.cache.example.com",
		LeaderElectionNamespace:       getenv("POD_NAMESPACE"),
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(leader.Duration),
		RenewDeadline:                 new(leader.Deadline),
		RetryPeriod:                   new(leader.Period),
		GracefulShutdownTimeout:       new(stopping),
	}
	var lock *leader.Lock
	if *elect && kind == forLife {
		pod, err := leader.PodOf(getenv)
		if err != nil {
			return fmt.Errorf("--leader-election-kind %s: %w", kind, err)
		}
		if lock, err = leader.New(config, pod, options.LeaderElectionID, log.WithName("leader")); err != nil {
			return err
		}
		options.LeaderElectionResourceLockInterface, options.LeaderElectionReleaseOnCancel = lock, false
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if lock != nil {
		lock.Events = mgr.GetEventRecorder("memcached-operator")
		if err := mgr.Add(lock); err != nil {
			return err
		}
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	ready := healthz.Ping
	if release.Webhooks {
		server := mgr.GetWebhookServer()
		server.Register(crdconversion.Path, &admission.Webhook{Handler: crdconversion.Conversion{}})
		ready = server.StartedChecker()
	}
	if err := mgr.AddReadyzCheck("ready", ready); err != nil {
		return err
	}
	image := DefaultImage
	for _, name := range []string{"MEMCACHED_IMAGE", "RELATED_IMAGE_MEMCACHED"} {
		if value := getenv(name); value != "" {
			image = value
		}
	}
	if err := release.Setup(mgr, Settings{
		Image: image, Namespace: getenv("POD_NAMESPACE"), Selector: selector, Certificate: shown,
		Retries: func() workqueue.TypedRateLimiter[reconcile.Request] {
			return workqueue.NewTypedMaxOfRateLimiter(
				workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](*first, *longest),
				&workqueue.TypedBucketRateLimiter[reconcile.Request]{Limiter: rate.NewLimiter(rate.Limit(*retries), int(max(1, 10**retries)))},
			)
		},
	}); err != nil {
		return fmt.Errorf("setting up release %s: %w", release.Version, err)
	}
	log.Info("starting", "release", release.Version, "image", image, "namespaces", getenv("WATCH_NAMESPACE"))
	switch {
	case !release.Webhooks:
	case *itself:
		ca.Client, ca.API = mgr.GetClient(), mgr.GetAPIReader()
		if err := try(ctx, ca.Ensure); err != nil {
			return fmt.Errorf("making the webhooks' certificate: %w", err)
		}
		if err := mgr.Add(ca); err != nil {
			return err
		}
	case getenv("OPERATOR_CONDITION_NAME") != "":
		// Without it the manager works as well, and is rolled out once more when OLM has found the certificate gone.
		if err := try(ctx, func(ctx context.Context) error {
			return crdconversion.KeepCertificate(ctx, mgr.GetAPIReader(), mgr.GetClient(), getenv("POD_NAMESPACE"))
		}); err != nil {
			log.Error(err, "not keeping the certificate")
		}
	}
	defer context.AfterFunc(ctx, hooks.leave)()
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running release %s: %w", release.Version, err)
	}
	if lock != nil {
		// All that only a leader does has ended, or Start would have returned an error.
		if err := lock.Release(context.WithoutCancel(ctx)); err != nil {
			log.Error(err, "leaving the lock to be claimed")
		}
	}
	if release.Webhooks {
		log.Info("stopped working, serving webhooks a little longer", "for", lingering.String())
		time.Sleep(lingering)
		if err := hooks.close(); err != nil {
			return fmt.Errorf("serving webhooks of release %s to the end: %w", release.Version, err)
		}
	}
	log.Info("stopped", "release", release.Version)
	return nil
}

// try calls f until it succeeds or it has tried long enough: roles may not be there yet, and another manager may be doing
// the same.
func try(ctx context.Context, f func(context.Context) error) error {
	var last error
	if err := wait.PollUntilContextTimeout(ctx, trying/20, trying, true, func(ctx context.Context) (bool, error) {
		last = f(ctx)
		return last == nil, nil
	}); err != nil {
		return cmp.Or(last, err)
	}
	return nil
}

// caching keeps of the cluster only what the operator manages, in the namespaces that it watches.
func caching(namespaces string) cache.Options {
	managed := cache.ByObject{Label: operand.Managed.AsSelector()}
	pods := managed
	pods.Transform = cache.TransformStripManagedFields()
	options := cache.Options{ByObject: map[client.Object]cache.ByObject{
		&appsv1.Deployment{}: managed, &corev1.Service{}: managed, &corev1.Pod{}: pods,
		&policyv1.PodDisruptionBudget{}: managed, &networkingv1.NetworkPolicy{}: managed,
	}}
	for namespace := range strings.SplitSeq(namespaces, ",") {
		if namespace = strings.TrimSpace(namespace); namespace != "" {
			if options.DefaultNamespaces == nil {
				options.DefaultNamespaces = map[string]cache.Config{}
			}
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}

// onlyHTTP1 turns HTTP/2 off, whose stream resets let a client make a server work for nothing (CVE-2023-44487).
func onlyHTTP1(config *tls.Config) { config.NextProtos = []string{"http/1.1"} }

// atLeastTLS12 refuses clients of older versions, whatever GODEBUG says; the API server and Prometheus speak TLS 1.3.
func atLeastTLS12(config *tls.Config) { config.MinVersion = tls.VersionTLS12 }
