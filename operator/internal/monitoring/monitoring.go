// Package monitoring tells Prometheus of the operator: it counts what controller-runtime does not count already, and
// where the prometheus-operator is installed it keeps the ServiceMonitor and the PrometheusRule of this operator there.
//
// How long reconciliations take, and how they end, controller-runtime measures by controller
// (controller_runtime_reconcile_time_seconds, controller_runtime_reconcile_total); there is nothing to add to that.
package monitoring

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/operator/internal/manager"
)

const (
	// name is what the ServiceMonitor and the PrometheusRule are called, and the job that their series belong to.
	name = "memcached-operator"
	// deployment is the manager's own Deployment, under OLM as without it.
	deployment = "memcached-operator-controller-manager"
	fieldOwner = "memcached-operator-monitoring"
	// itself is where Prometheus has what says who it is.
	itself = "/var/run/secrets/kubernetes.io/serviceaccount/token"

	// resync is how often the objects are applied again, which changes nothing unless somebody else did. Watches of them
	// would outlive their kinds, which may be uninstalled at any time.
	resync = 30 * time.Second
	// settling is how long an API server is given to serve a kind whose CRD it has.
	settling = 5 * time.Second
	// The wait after a first failure, and the longest.
	firstRetry, longestRetry = time.Second, 5 * time.Minute
)

// Nobody can be allowed to create objects of one name only. Deletion is never asked for; the right to it is what
// OwnerReferencesPermissionEnforcement, an admission plugin that OpenShift turns on, wants of who mends an object's owners.
//
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=servicemonitors.monitoring.coreos.com;prometheusrules.monitoring.coreos.com,verbs=list;watch
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=servicemonitors;prometheusrules,verbs=create,namespace=system
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=servicemonitors;prometheusrules,resourceNames=memcached-operator,verbs=patch;delete,namespace=system
// +kubebuilder:rbac:groups=apps,resources=deployments,resourceNames=memcached-operator-controller-manager,verbs=get,namespace=system

// AddToScheme makes the kinds of the prometheus-operator known to clients. It says nothing about the cluster.
func AddToScheme(scheme *runtime.Scheme) error { return monitoringv1.AddToScheme(scheme) }

//go:embed rules.yaml
var rules []byte

// Reconciler keeps the operator's own objects of the prometheus-operator's kinds. Its requests name those kinds' CRDs.
type Reconciler struct {
	Client client.Client
	// API reads past the manager's cache.
	API client.Reader
	// CRDs reads the metadata of a CRD from a cache that holds no other, by the CRD's name.
	CRDs map[string]client.Reader
	// Namespace is the operator's own.
	Namespace string
	// Certificate is what the metrics are served with.
	Certificate manager.Certificate
	// Rules is what Prometheus is to record, and to call for help for.
	Rules monitoringv1.PrometheusRuleSpec

	// applied is the version of each object that was last seen.
	applied map[string]string
}

// Add gives a manager the census of its Memcacheds and, where Prometheus could verify whom it asks, a controller of its
// own for the ServiceMonitor and the PrometheusRule: other queue, other retries, so that it stands in nobody's way.
func Add(mgr ctrl.Manager, settings manager.Settings) error {
	if err := mgr.Add(&Census{Memcacheds: mgr.GetCache(), Selector: settings.Selector, Objects: settings.ObjectMetrics, Log: mgr.GetLogger().WithName("census")}); err != nil {
		return err
	}
	if settings.Namespace == "" || settings.Certificate == (manager.Certificate{}) {
		mgr.GetLogger().WithName("monitoring").V(1).Info("keeping no ServiceMonitor: nobody could verify the certificate of the metrics")
		return nil
	}
	r := &Reconciler{
		Client: mgr.GetClient(), API: mgr.GetAPIReader(), CRDs: map[string]client.Reader{},
		Namespace: settings.Namespace, Certificate: settings.Certificate, applied: map[string]string{},
	}
	if err := yaml.UnmarshalStrict(rules, &r.Rules); err != nil {
		return fmt.Errorf("reading the rules: %w", err)
	}
	c, err := controller.New("monitoring", mgr, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: 1,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, longestRetry),
		// A watch that cannot begin is tried again for ever; by default it would end the manager, and all its work.
		CacheSyncTimeout: math.MaxInt64,
	})
	if err != nil {
		return err
	}
	for crd := range objects {
		one, err := cache.New(mgr.GetConfig(), cache.Options{
			HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
			// Whoever may list and watch only an object of one name must ask for that name.
			DefaultFieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, crd),
			DefaultTransform:     cache.TransformStripManagedFields(),
		})
		if err != nil {
			return fmt.Errorf("making a cache for crd %s: %w", crd, err)
		}
		if err := mgr.Add(one); err != nil {
			return err
		}
		if err := c.Watch(source.Kind[client.Object](one, definition(), &handler.EnqueueRequestForObject{})); err != nil {
			return err
		}
		r.CRDs[crd] = one
	}
	return nil
}

// definition is a CRD, of which only the metadata is asked for.
func definition() *metav1.PartialObjectMetadata {
	d := &metav1.PartialObjectMetadata{}
	d.SetGroupVersionKind(apiextensions.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return d
}

// Reconcile applies the object of the kind whose CRD the request names. If there is no such kind, it asks for nothing.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	crd := definition()
	if err := r.CRDs[request.Name].Get(ctx, request.NamespacedName, crd); apierrors.IsNotFound(err) || err == nil && crd.DeletionTimestamp != nil {
		delete(r.applied, request.Name)
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading crd %s: %w", request.Name, err)
	}
	var owner appsv1.Deployment
	key := client.ObjectKey{Namespace: r.Namespace, Name: deployment}
	if err := r.API.Get(ctx, key, &owner); err != nil {
		return reconcile.Result{}, fmt.Errorf("reading deployment %s, the operator's own, which is to own what is made: %w", key, err)
	}
	object := objects[request.Name](r)
	object.SetNamespace(r.Namespace)
	object.SetName(name)
	object.SetLabels(map[string]string{"app.kubernetes.io/name": name})
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: owner.Name, UID: owner.UID}})
	version, err := r.apply(ctx, object)
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		// The CRD was not accepted yet, or is being deleted.
		return reconcile.Result{RequeueAfter: settling}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	if r.applied[request.Name] != version {
		ctrl.LoggerFrom(ctx).Info("applied what Prometheus is to do", "crd", request.Name, "name", name)
		r.applied[request.Name] = version
	}
	return reconcile.Result{RequeueAfter: resync}, nil
}

// apply applies object and returns its version then.
func (r *Reconciler) apply(ctx context.Context, object client.Object) (string, error) {
	kind, err := apiutil.GVKForObject(object, r.Client.Scheme())
	if err != nil {
		return "", err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return "", err
	}
	delete(content, "status")
	wanted := &unstructured.Unstructured{Object: content}
	wanted.SetGroupVersionKind(kind)
	if err := r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), client.FieldOwner(fieldOwner), client.ForceOwnership); err != nil {
		return "", fmt.Errorf("applying %s %s/%s: %w", kind.Kind, object.GetNamespace(), object.GetName(), err)
	}
	return wanted.GetResourceVersion(), nil
}

// objects makes, for each CRD, the object of its kind.
var objects = map[string]func(*Reconciler) client.Object{
	"servicemonitors.monitoring.coreos.com": func(r *Reconciler) client.Object { return serviceMonitor(r.Certificate) },
	"prometheusrules.monitoring.coreos.com": func(r *Reconciler) client.Object {
		return &monitoringv1.PrometheusRule{Spec: *r.Rules.DeepCopy()}
	},
}

// serviceMonitor has Prometheus ask the managers behind the Service for metrics, as itself, and verify whom it asks. The
// certificate is the webhooks', so it is of their host.
func serviceMonitor(certificate manager.Certificate) *monitoringv1.ServiceMonitor {
	endpoint := monitoringv1.Endpoint{Port: "metrics", Scheme: new(monitoringv1.SchemeHTTPS)}
	endpoint.BearerTokenFile = itself //nolint:staticcheck // what replaces it sends a token out of a Secret, which would have to be made and would never end
	endpoint.TLSConfig = &monitoringv1.TLSConfig{SafeTLSConfig: monitoringv1.SafeTLSConfig{
		CA: monitoringv1.SecretOrConfigMap{Secret: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: certificate.Secret}, Key: certificate.AuthorityKey,
		}},
		ServerName: new(certificate.Host),
	}}
	return &monitoringv1.ServiceMonitor{Spec: monitoringv1.ServiceMonitorSpec{
		JobLabel:  "app.kubernetes.io/name",
		Selector:  metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/component": "metrics"}},
		Endpoints: []monitoringv1.Endpoint{endpoint},
	}}
}
