// The manager of a release 0.3.0 that cannot start without a setting that no Deployment makes.
package main

import (
	"errors"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1alpha1"
	"github.com/olmkit/olmkit/operator/api/v1beta1"
	"github.com/olmkit/olmkit/operator/internal/manager"
)

func main() {
	manager.Main(manager.Release{
		Version:     "0.3.0",
		AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1beta1.AddToScheme, v1.AddToScheme},
		Webhooks:    true,
		Setup:       setup,
	})
}

func setup(ctrl.Manager, manager.Settings) error {
	if os.Getenv("MEMCACHED_ZONES") == "" {
		return errors.New("MEMCACHED_ZONES is not set")
	}
	return nil
}
