package manager

import (
	"context"
	"net/http"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// webhooks is a webhook server that outlives its manager. When a manager is told to stop, its pod is taken off the
// Service, but who calls webhooks learns of that a moment later, and goes on using connections that are open; so they
// are served until close, while the manager has long given up its lease to the next.
type webhooks struct {
	webhook.Server
	on      bool
	serving context.Context
	stop    context.CancelFunc
	started atomic.Bool
	leaving atomic.Bool
	ended   chan struct{}
	err     error
}

// newWebhooks is a server that serves nothing unless it is on.
func newWebhooks(on bool, server webhook.Server) *webhooks {
	w := &webhooks{Server: server, on: on, ended: make(chan struct{})}
	w.serving, w.stop = context.WithCancel(context.Background())
	return w
}

// Register serves hook at path.
func (w *webhooks) Register(path string, hook http.Handler) {
	w.Server.Register(path, http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if w.leaving.Load() {
			response.Header().Set("Connection", "close")
		}
		hook.ServeHTTP(response, request)
	}))
}

// Start serves, and returns when ctx ends or serving does. When ctx ends it goes on serving.
func (w *webhooks) Start(ctx context.Context) error {
	if !w.on {
		<-ctx.Done()
		return nil
	}
	w.started.Store(true)
	go func() {
		defer close(w.ended)
		w.err = w.Server.Start(w.serving)
	}()
	select {
	case <-w.ended:
		return w.err
	case <-ctx.Done():
		return nil
	}
}

// leave makes every answer the last one on its connection, so that who calls again looks for another server.
func (w *webhooks) leave() { w.leaving.Store(true) }

// close answers what has been asked, and ends the server. It does nothing if the server was never started.
func (w *webhooks) close() error {
	w.stop()
	if !w.started.Load() {
		return nil
	}
	<-w.ended
	return w.err
}
