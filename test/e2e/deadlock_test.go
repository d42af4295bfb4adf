//go:build linux

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// OLM may look at the old version when the new CRDs are written and before it has noticed the new version: then both wait for each
// other for ever. On a quiet machine that is rare, so it is made here, by the status that OLM then writes. The walk ends it and
// says so, and before that 'upgrade diagnose' has the command.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	kubeconfig, config := up(t, "deadlock", "--olm")
	loadManagers(t, "embedded", "deadlock", "v0.4.0", "v0.5.0")
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // who is first, OLM or this test, is not certain
		cmd, out, account := begin(t, "", "upgrade", "test", "catalog", "--package", "memcached-operator", "--edges", "chain", "--channel", "candidate",
			"--from", "0.4.0", "--to", "0.5.0", "--cluster", "existing", "--kubeconfig", kubeconfig, "--timeout", "3m")
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
		locked := lock(ctx, objects)
		if locked == nil {
			eventually(t, "diagnose says it", func() error {
				r := run(t, nil, "upgrade", "diagnose", "--kubeconfig", kubeconfig)
				if r.code != 3 || !strings.Contains(r.out, "memcached-operator.v0.4.0 and memcached-operator.v0.5.0 wait for each other: the old one misses CustomResourceDefinition memcacheds.cache.example.com") ||
					!strings.Contains(r.out, "kubectl patch clusterserviceversions.operators.coreos.com memcached-operator.v0.4.0 --namespace olmkit-walk --subresource status") {
					return fmt.Errorf("exit code %d: %s%s", r.code, r.out, r.errOut)
				}
				return nil
			})
		}
		stop()
		err := cmd.Wait()
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, account, out)
		}
		if locked != nil {
			t.Logf("OLM was first: %v", locked)
			continue
		}
		if !strings.Contains(account.String(), "U905: memcached-operator.v0.4.0 and memcached-operator.v0.5.0 waited for each other") {
			t.Errorf("the walk says\n%s", account)
		}
		return
	}
	t.Error("OLM was first each time")
}

// lock has the old version wait from when the CRD serves no v1alpha1 any more, until the new version has waited for 3 s.
func lock(ctx context.Context, objects dynamic.Interface) error {
	versions := objects.Resource(schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "clusterserviceversions"}).Namespace("olmkit-walk")
	definitions := objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	var since time.Time
	for ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		next, err := versions.Get(ctx, "memcached-operator.v0.5.0", metav1.GetOptions{})
		if err != nil {
			continue
		}
		switch phase, _, _ := unstructured.NestedString(next.Object, "status", "phase"); phase {
		case "", "Pending":
		default:
			return fmt.Errorf("the new version is %s", phase)
		}
		d, err := definitions.Get(ctx, "memcacheds.cache.example.com", metav1.GetOptions{})
		if err != nil || servesAlpha(d) {
			continue
		}
		if since.IsZero() {
			since = time.Now()
		}
		status := []byte(`{"status": {"phase": "Pending", "reason": "RequirementsNotMet"}}`)
		if _, err := versions.Patch(ctx, "memcached-operator.v0.4.0", types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
		if time.Since(since) > 3*time.Second {
			return nil
		}
	}
	return errors.New("the new version did not come")
}

func servesAlpha(d *unstructured.Unstructured) bool {
	list, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
	for _, v := range list {
		if version, is := v.(map[string]any); is && version["name"] == "v1alpha1" && version["served"] == true {
			return true
		}
	}
	return false
}
