// Package manager starts the managers of earlier releases, as cmd starts that of the present one.
package manager

import (
	"flag"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Run runs a manager of the API versions that schemes add, with the controllers and webhooks that setup adds, until it is
// told to end.
func Run(setup func(ctrl.Manager) error, schemes ...func(*runtime.Scheme) error) {
	var metricsAddr, probeAddr string
	var leaderElect bool
	flag.StringVar(&metricsAddr, "metrics-bind-address", "0", "The address the metrics endpoint binds to.")
	flag.StringVar(&probeAddr, "health-probe-bind-address", ":8081", "The address the probe endpoint binds to.")
	flag.BoolVar(&leaderElect, "leader-elect", false, "Enable leader election for controller manager.")
	opts := zap.Options{Development: true}
	opts.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&opts)))

	scheme := runtime.NewScheme()
	for _, add := range append(schemes, clientgoscheme.AddToScheme) {
		must(add(scheme), "unable to add to the scheme")
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme: scheme,
		Metrics: metricsserver.Options{
			BindAddress: metricsAddr, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		Client:                 client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Pod{}, &corev1.Secret{}}}},
		HealthProbeBindAddress: probeAddr,
		LeaderElection:         leaderElect,
		LeaderElectionID:       "d3737516.example.com",
	})
	must(err, "unable to start manager")
	must(setup(mgr), "unable to create controller")
	must(mgr.AddHealthzCheck("healthz", healthz.Ping), "unable to set up health check")
	must(mgr.AddReadyzCheck("readyz", healthz.Ping), "unable to set up ready check")
	must(mgr.Start(ctrl.SetupSignalHandler()), "problem running manager")
}

func must(err error, message string) {
	if err != nil {
		ctrl.Log.WithName("setup").Error(err, message)
		os.Exit(1)
	}
}
