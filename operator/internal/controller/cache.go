package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The cache is given cacheTimeout to learn of the operator's own write. It is checked after cacheRetry, then after twice as
// long each time. A cache that does not know the write after that never will: etcd was restored from before the write.
const (
	cacheRetry   = 20 * time.Millisecond
	cacheTimeout = time.Minute
)

// write is a write of an object.
type write struct {
	version string // the resourceVersion that it led to
	at      time.Time
}

// behind returns how long to wait for the cache if it does not know yet what was written to an object, else 0: whoever judged by
// such a state would record events again, or take a status for written that is not.
func behind(writes *sync.Map, object client.Object) time.Duration {
	written, ok := writes.Load(client.ObjectKeyFromObject(object))
	if !ok {
		return 0
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), written.(write).version)
	age := time.Since(written.(write).at)
	if err != nil || order >= 0 || age > cacheTimeout {
		return 0
	}
	return max(cacheRetry, age)
}

// wrote remembers the version that the API server answered to a write of an object.
func wrote(writes *sync.Map, key client.ObjectKey, version string) {
	writes.Store(key, write{version, time.Now()})
}
