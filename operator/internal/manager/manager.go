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
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/olmkit/olmkit/operator/internal/certs"
	"github.com/olmkit/olmkit/operator/internal/crdconversion"
	"github.com/olmkit/olmkit/pkg/leader"
)

// DefaultImage is the operand's image where neither the object nor the environment names one. It is the same in all
// releases: a release with another would restart every cache that relies on it.
const DefaultImage = "docker.io/library/memcached:1.6.39"

// collectAt is by how many percent memory in use may grow before garbage is collected, unless GOGC says so. What a manager computes is
// little beside what it has the API server do, so less memory is worth a little more of it.
const collectAt = 50

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
	// ManagedFields says that the release reads who wrote Memcacheds; the cache then keeps that.
	ManagedFields bool
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
	// Migrate says that the release may migrate all stored objects of the cluster.
	Migrate bool
	// ObjectMetrics says that each Memcached has metrics of its own.
	ObjectMetrics bool
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
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	err := Run(ctrl.SetupSignalHandler(), release, os.Args[1:], os.Getenv, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "memcached-operator:", err)
		os.Exit(1)
	}
}

// Run runs a release until ctx ends. It reads these variables of the environment: WATCH_NAMESPACE (the default of
// --watch-namespace), RELATED_IMAGE_MEMCACHED and MEMCACHED_IMAGE (the operand's default image, the
// first that is set). OPERATOR_CONDITION_NAME, which OLM sets, says that the certificate is OLM's, POD_NAMESPACE where it is.
// POD_NAMESPACE, POD_NAME and POD_UID say which pod leads for life.
func Run(ctx context.Context, release Release, args []string, getenv func(string) string, stderr io.Writer) error {
	o, err := parseFlags(args, getenv, stderr)
	if err != nil {
		return err
	}
	log := logTo(stderr, &o.zap)
	release.Webhooks = release.Webhooks && o.webhooks
	r := &runner{
		Release: release, flags: o, getenv: getenv, log: log,
		ca: &certs.Authority{ //nolint:gosec // names of objects, not credentials
			Namespace: getenv("POD_NAMESPACE"), Secret: "memcached-operator-webhook-cert", Service: "memcached-operator-webhook-service", CRD: crdconversion.CRD,
			Mutating: "memcached-operator-mutating-webhook-configuration", Validating: "memcached-operator-validating-webhook-configuration",
			Log: log.WithName("certs"), Now: time.Now,
		},
	}
	if err := r.newManager(); err != nil {
		return err
	}
	if err := r.setUp(); err != nil {
		return err
	}
	if err := r.certify(ctx); err != nil {
		return err
	}
	return r.run(ctx)
}

// runner is a release's manager from its flags to its end.
type runner struct {
	Release
	flags  *flags
	getenv func(string) string
	log    logr.Logger
	ca     *certs.Authority

	mgr   ctrl.Manager
	hooks *webhooks
	lock  *leader.Lock // nil unless it elects for life
	shown Certificate
}

// logTo has everything in the process log to w.
func logTo(w io.Writer, options *zap.Options) logr.Logger {
	log := zap.New(zap.UseFlagOptions(options), zap.WriteTo(w))
	slog.SetDefault(slog.New(logr.ToSlogHandler(log))) // also for what net/http has to say
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	return log
}

// newManager makes the manager, which has neither controllers nor webhooks yet.
func (r *runner) newManager() error {
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensions.AddToScheme}, r.AddToScheme...) {
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
	options := r.options()
	options.Scheme = scheme
	if r.flags.elect && r.flags.kind == forLife {
		pod, err := leader.PodOf(r.getenv)
		if err != nil {
			return fmt.Errorf("--leader-election-kind %s: %w", r.flags.kind, err)
		}
		if r.lock, err = leader.New(config, pod, options.LeaderElectionID, r.log.WithName("leader")); err != nil {
			return err
		}
		options.LeaderElectionResourceLockInterface, options.LeaderElectionReleaseOnCancel = r.lock, false
	}
	if r.mgr, err = ctrl.NewManager(config, options); err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if r.lock == nil {
		return nil
	}
	r.lock.Events = r.mgr.GetEventRecorder("memcached-operator")
	return r.mgr.Add(r.lock)
}

// options are the manager's, but for its scheme. The webhooks' server is made with them.
func (r *runner) options() ctrl.Options {
	// Metrics are served with the webhooks' certificate, which clients can verify; without webhooks, with one that they can't.
	tlsOptions := []func(*tls.Config){onlyHTTP1, atLeastTLS12}
	switch {
	case !r.Webhooks:
	case r.flags.selfSigned:
		tlsOptions = append(tlsOptions, func(config *tls.Config) { config.GetCertificate = r.ca.Certificate })
		r.shown = Certificate{Secret: r.ca.Secret, AuthorityKey: certs.Key, Host: r.ca.Host()}
	case r.getenv("OPERATOR_CONDITION_NAME") != "":
		r.shown = Certificate{Secret: crdconversion.Secret, AuthorityKey: crdconversion.AuthorityKey, Host: crdconversion.Service + "." + r.ca.Namespace + ".svc"}
	}
	o := r.flags
	r.hooks = newWebhooks(r.Webhooks, webhook.NewServer(webhook.Options{Port: o.port, CertDir: o.certDir, TLSOpts: tlsOptions}))
	return ctrl.Options{
		Logger:                 r.log,
		Cache:                  caching(o.namespaces, r.ManagedFields),
		Metrics:                metrics.Options{BindAddress: o.metrics, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization, CertDir: o.certDir, TLSOpts: tlsOptions},
		WebhookServer:          r.hooks,
		HealthProbeBindAddress: o.probes,
		PprofBindAddress:       o.pprof,
		Controller:             ctrlconfig.Controller{MaxConcurrentReconciles: o.workers, ReconciliationTimeout: working},
		LeaderElection:         o.elect,
		// The default is one name through all releases: during an upgrade the old and the new manager exclude each other.
		LeaderElectionID:              o.lockName,
		LeaderElectionNamespace:       o.lockNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(leader.Duration),
		RenewDeadline:                 new(leader.Deadline),
		RetryPeriod:                   new(leader.Period),
		GracefulShutdownTimeout:       new(stopping),
	}
}

// setUp adds the probes, and the release's controllers and webhooks.
func (r *runner) setUp() error {
	if err := r.mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	ready := healthz.Ping
	if r.Webhooks {
		server := r.mgr.GetWebhookServer()
		server.Register(crdconversion.Path, &admission.Webhook{Handler: crdconversion.Conversion{}})
		ready = server.StartedChecker()
	}
	if err := r.mgr.AddReadyzCheck("ready", ready); err != nil {
		return err
	}
	image := cmp.Or(r.getenv("RELATED_IMAGE_MEMCACHED"), r.getenv("MEMCACHED_IMAGE"), DefaultImage)
	if err := r.Setup(r.mgr, Settings{
		Image: image, Namespace: r.getenv("POD_NAMESPACE"), Selector: r.flags.selector, Certificate: r.shown, Retries: r.flags.rateLimiter, Migrate: r.flags.migrate, ObjectMetrics: r.flags.objectMetrics,
	}); err != nil {
		return fmt.Errorf("setting up release %s: %w", r.Version, err)
	}
	r.log.Info("starting", "release", r.Version, "image", image, "namespaces", r.flags.namespaces)
	return nil
}

// certify makes the webhooks' certificate, or keeps the one that OLM made.
func (r *runner) certify(ctx context.Context) error {
	switch {
	case !r.Webhooks:
	case r.flags.selfSigned:
		r.ca.Client, r.ca.API = r.mgr.GetClient(), r.mgr.GetAPIReader()
		if err := try(ctx, r.ca.Ensure); err != nil {
			return fmt.Errorf("making the webhooks' certificate: %w", err)
		}
		return r.mgr.Add(r.ca)
	case r.getenv("OPERATOR_CONDITION_NAME") != "":
		// Without it the manager works as well, and is rolled out once more when OLM has found the certificate gone.
		if err := try(ctx, func(ctx context.Context) error {
			return crdconversion.KeepCertificate(ctx, r.mgr.GetAPIReader(), r.mgr.GetClient(), r.getenv("POD_NAMESPACE"))
		}); err != nil {
			r.log.Error(err, "not keeping the certificate")
		}
	}
	return nil
}

// run runs the manager until ctx ends, and then serves webhooks a little longer.
func (r *runner) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, r.hooks.leave)()
	if err := r.mgr.Start(ctx); err != nil {
		return fmt.Errorf("running release %s: %w", r.Version, err)
	}
	if r.lock != nil {
		// All that only a leader does has ended, or Start would have returned an error.
		if err := r.lock.Release(context.WithoutCancel(ctx)); err != nil {
			r.log.Error(err, "leaving the lock to be claimed")
		}
	}
	if r.Webhooks {
		r.log.Info("stopped working, serving webhooks a little longer", "for", lingering.String())
		time.Sleep(lingering)
		if err := r.hooks.close(); err != nil {
			return fmt.Errorf("serving webhooks of release %s to the end: %w", r.Version, err)
		}
	}
	r.log.Info("stopped", "release", r.Version)
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

// onlyHTTP1 turns HTTP/2 off, whose stream resets let a client make a server work for nothing (CVE-2023-44487).
func onlyHTTP1(config *tls.Config) { config.NextProtos = []string{"http/1.1"} }

// atLeastTLS12 refuses clients of older versions, whatever GODEBUG says; the API server and Prometheus speak TLS 1.3.
func atLeastTLS12(config *tls.Config) { config.MinVersion = tls.VersionTLS12 }
