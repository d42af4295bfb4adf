package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
)

// The cache is given cacheTimeout to learn of the operator's own write. It is checked after cacheRetry, then after twice as
// long each time. A cache that does not know the write after that never will: etcd was restored from before the write.
const (
	cacheRetry   = 20 * time.Millisecond
	cacheTimeout = time.Minute
)

// write is a write of a Memcached.
type write struct {
	version string // the resourceVersion that it led to
	at      time.Time
}

// behind returns how long to wait for the cache if it does not know yet what was written to m, else 0: whoever judged by such
// a state would record events again, or take a status for written that is not.
func (r *MemcachedReconciler) behind(m *v1.Memcached) time.Duration {
	written, ok := r.lastWrite(m)
	if !ok {
		return 0
	}
	order, err := resourceversion.CompareResourceVersion(m.ResourceVersion, written.version)
	age := time.Since(written.at)
	if err != nil || order >= 0 || age > cacheTimeout {
		return 0
	}
	return max(cacheRetry, age)
}

// wrote remembers what the API server answered to a write of m.
func (r *MemcachedReconciler) wrote(m *v1.Memcached) {
	r.written.Store(client.ObjectKeyFromObject(m), write{m.ResourceVersion, time.Now()})
}

func (r *MemcachedReconciler) lastWrite(m *v1.Memcached) (write, bool) {
	written, ok := r.written.Load(client.ObjectKeyFromObject(m))
	if !ok {
		return write{}, false
	}
	return written.(write), true
}
