// Package services gives the Services of a cluster their addresses and names: what kube-proxy and CoreDNS are elsewhere.
package services

import (
	"context"
	"errors"
	"net/netip"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Config is what Start needs.
type Config struct {
	Client kubernetes.Interface
	DNS    netip.Addr                // where names are asked for
	Pods   netip.Prefix              // nothing else is called: other addresses are the machine's
	Idle   func(pod netip.Addr) bool // tells of pods in which nothing runs: who calls them is refused
	Files  int                       // that this process may have open: a part of them is for Services
}

// Start serves the names of all Services, and their addresses for TCP, until ctx ends. The addresses have to be of this network namespace.
func Start(ctx context.Context, config Config) error {
	factory := informers.NewSharedInformerFactory(config.Client, 0)
	services, slices := factory.Core().V1().Services(), factory.Discovery().V1().EndpointSlices()
	known := directory{services.Lister(), slices.Lister()}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](5*time.Millisecond, 10*time.Second))
	if err := errors.Join(watch(services.Informer(), queue, cache.MetaObjectToName), watch(slices.Informer(), queue, serviceOf)); err != nil {
		return err
	}
	if err := serveNames(ctx, netip.AddrPortFrom(config.DNS, dnsPort).String(), known); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	context.AfterFunc(ctx, queue.ShutDown)
	go func() {
		factory.WaitForCacheSyncWithContext(ctx)
		p := newProxy(known, config)
		defer p.close()
		for p.syncNext(ctx, queue) {
		}
	}()
	return nil
}

// watch puts into queue what the objects of informer are of, whenever these change.
func watch(informer cache.SharedIndexInformer, queue workqueue.TypedRateLimitingInterface[cache.ObjectName], of func(metav1.Object) cache.ObjectName) error {
	changed := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if o, ok := object.(metav1.Object); ok {
			queue.Add(of(o))
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, DeleteFunc: changed, UpdateFunc: func(_, object any) { changed(object) },
	})
	return err
}

// serviceOf names the Service of an EndpointSlice.
func serviceOf(slice metav1.Object) cache.ObjectName {
	return cache.NewObjectName(slice.GetNamespace(), slice.GetLabels()[discoveryv1.LabelServiceName])
}
