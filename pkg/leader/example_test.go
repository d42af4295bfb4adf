package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/olmkit/olmkit/pkg/leader"
)

// Outside of a cluster there is nobody to compete with.
func ExampleBecome() {
	for _, name := range []string{"POD_NAMESPACE", "POD_NAME", "POD_UID"} {
		os.Unsetenv(name)
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	err := leader.Become(context.Background(), "my-operator-lock", leader.WithLogger(logr.FromSlogHandler(log.Handler())))
	fmt.Println(err)
	// Output:
	// level=INFO msg="leading without a lock: the process does not run in a cluster" lock=my-operator-lock
	// <nil>
}

// A program that ends its work by itself when it no longer leads, and that looks often.
func ExampleOnLost() {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	err := leader.Become(ctx, "my-operator-lock",
		leader.WithRetryInterval(4*time.Second),
		leader.OnLost(stop),
	)
	fmt.Println(err)
}

// The lock for a manager of controller-runtime, which serves webhooks before it leads: it goes into
// LeaderElectionResourceLockInterface, is added to the manager, and is released after the manager has ended.
func ExampleLock() {
	lock := func(config *rest.Config, log logr.Logger) (resourcelock.Interface, error) {
		pod, err := leader.PodOf(os.Getenv)
		if errors.Is(err, leader.ErrNoNamespace) {
			return nil, nil // not in a cluster: no election
		}
		if err != nil {
			return nil, err
		}
		return leader.New(config, pod, "my-operator-lock", log)
	}
	_ = lock
}
