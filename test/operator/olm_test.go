//go:build linux

package operator_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

// Where OLM installs the operator, its metrics are served with the certificate that OLM made, to who may read them.
func TestMetricsByOLM(t *testing.T) {
	ctx := t.Context()
	c, err := olmv0.Connect(world.Config())
	must(t, err)
	made, err := olmv0.Install(ctx, c, olmv0.Release{})
	t.Cleanup(func() {
		if err := c.Remove(context.Background(), made, waitLimit); err != nil {
			t.Error(err)
		}
	})
	must(t, err)
	catalog, err := os.ReadFile(filepath.Join(root, "catalog", "memcached-operator", "catalog.yaml"))
	must(t, err)
	const name = "memcached-operator"
	at, err := world.Catalog(ctx, name, catalog)
	must(t, err)
	ns := namespace(t)
	place := lifecycle.Place{Package: name, Channel: "stable", Catalog: name, Namespace: ns, Mode: lifecycle.AllNamespaces}
	must(t, c.Publish(ctx, place, at))
	must(t, c.Prepare(ctx, place))
	t.Cleanup(func() {
		if err := c.Uninstall(context.Background(), place, []string{crdName}, waitLimit); err != nil {
			t.Error(err)
		}
	})
	must(t, c.Request(ctx, place, name+"."+release))
	eventually(t, "the operator is installed", func() error {
		csv := &operators.ClusterServiceVersion{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: name + "." + release}, csv); err != nil {
			return err
		}
		if csv.Status.Phase != operators.CSVPhaseSucceeded {
			return fmt.Errorf("phase %s: %s", csv.Status.Phase, csv.Status.Message)
		}
		return nil
	})

	box := startBox(t, ns, "default")
	reader, stranger := tokenOf(t, ns, "reader"), tokenOf(t, ns, "stranger")
	mayReadMetrics(t, ns, "reader")
	for token, want := range map[string]int{"": http.StatusUnauthorized, stranger: http.StatusForbidden, reader: http.StatusOK} {
		// OLM may make a certificate, and the operator a pod, once more.
		eventually(t, fmt.Sprintf("the metrics are answered with %d", want), func() error {
			var pods corev1.PodList
			if err := admin.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{"control-plane": "controller-manager"}); err != nil {
				return err
			}
			var secret corev1.Secret
			if err := admin.Get(ctx, client.ObjectKey{Namespace: ns, Name: manager + "-service-cert"}, &secret); err != nil {
				return err
			}
			if len(pods.Items) != 1 {
				return fmt.Errorf("there are %d pods", len(pods.Items))
			}
			answer, err := ask(t, box, question{
				URL:   "https://" + net.JoinHostPort(pods.Items[0].Status.PodIP, "8443") + "/metrics",
				Token: token, Host: manager + "-service." + ns + ".svc", Authorities: secret.Data["olmCAKey"],
			})
			if err != nil {
				return err
			}
			if answer.Status != want {
				return fmt.Errorf("answered %d: %s", answer.Status, tail(answer.Body, 3))
			}
			if want == http.StatusOK {
				_, err = answer.sample(`controller_runtime_max_concurrent_reconciles{controller="memcached"}`)
			}
			return err
		})
	}
}
