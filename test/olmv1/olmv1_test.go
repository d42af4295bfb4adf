// Package olmv1_test runs OLM v1 on embedded clusters.
package olmv1_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/diagnosis"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
	"github.com/olmkit/olmkit/internal/report"
)

const (
	root    = "../.."
	pkg     = "memcached-operator"
	channel = "candidate"
)

func TestMain(m *testing.M) {
	embedded.Main()
	os.Exit(m.Run())
}

func memcached(t *testing.T) *catalog.Package {
	t.Helper()
	c, err := catalog.Load(t.Context(), nil, filepath.Join(root, "catalog"))
	if err != nil {
		t.Fatal(err)
	}
	return c.Find(pkg)
}

// managers are the flags by which every release runs.
func managers(t *testing.T) []string {
	t.Helper()
	var flags []string
	for _, b := range memcached(t).Bundles {
		version := "v" + b.Version.String()
		flags = append(flags, "--image", fmt.Sprintf("ghcr.io/olmkit/%s:%s=%s", pkg, version, filepath.Join(root, "bin", pkg, version, "manager")))
	}
	return flags
}

// Each of the 8 upgrades that OLM v1 takes in the channel works, under load: conversion, objects, the manager.
func TestEveryUpgrade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	args := append([]string{"upgrade", "test", filepath.Join(root, "catalog"), "--package", pkg, "--channel", channel, "--edges", "all", "--olm", "v1",
		"--suppress", filepath.Join(root, "operator", "releases", "suppressed", "upgrades.yaml"), "--report", "json=" + file}, managers(t)...)
	said, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "olmkit"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	r := read(t, file)
	if len(r.Hops) != 8 || r.Cluster.OLM != olmv1.Version {
		t.Errorf("%d hops under OLM %s, want 8 under %s", len(r.Hops), r.Cluster.OLM, olmv1.Version)
	}
	for _, h := range r.Hops {
		if h.Result != report.Passed {
			t.Errorf("%s → %s %s: %v", h.From, h.To, h.Result, h.Findings)
		}
		t.Logf("%s → %s: %.1fs", h.From, h.To, h.Seconds)
	}
}

// read reads a report.
func read(t *testing.T, file string) (r report.Report) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// An upgrade whose manager does not start can be taken back, unless the release before does not know the version that is stored now.
func TestRollback(t *testing.T) {
	for _, hop := range []struct {
		from, to string
		back     report.Result
		code     string
		says     string
	}{
		{"0.3.1", "0.4.0", report.Passed, code.RolledBack, "6 objects say what they said before"},
		{"0.2.0", "0.3.1", report.Failed, code.RollbackFailed, "storedVersionRemoval"},
	} {
		t.Run(hop.from, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.json")
			ref := "ghcr.io/olmkit/" + pkg + ":v"
			olmkit := filepath.Join(root, "bin", "olmkit")
			said, err := exec.CommandContext(t.Context(), olmkit, "upgrade", "test", filepath.Join(root, "catalog"), "--package", pkg, "--edges", "chain",
				"--from", hop.from, "--to", hop.to, "--olm", "v1", "--rollback", "--timeout", "2m", "--report", "json="+file,
				"--image", ref+hop.from+"="+filepath.Join(root, "bin", pkg, "v"+hop.from, "manager"),
				"--image", ref+hop.to+"="+olmkit, // which says what flags it has, and ends
			).CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 3 {
				t.Fatalf("%v\n%s", err, said)
			}
			r := read(t, file)
			if len(r.Hops) != 1 || r.Hops[0].Rollback == nil || r.Hops[0].Rollback.Result != hop.back {
				t.Fatalf("%+v", r.Hops)
			}
			if !slices.ContainsFunc(r.Hops[0].Rollback.Findings, func(f finding.Finding) bool { return f.Code == hop.code && strings.Contains(f.Message, hop.says) }) {
				t.Errorf("%+v", r.Hops[0].Rollback.Findings)
			}
		})
	}
}

// start brings a cluster with OLM v1 up, and returns it with the address of the catalog of p, and the cluster's kubeconfig.
func start(t *testing.T, p *catalog.Package) (o *olmv1.Client, image, kubeconfig string) {
	t.Helper()
	begun := time.Now()
	programs, err := embedded.OLMv1Programs(t.Context(), embedded.Source{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for name, ref := range olmv1.Images {
		if err := c.LoadImage(t.Context(), ref, programs[name]); err != nil {
			t.Fatal(err)
		}
	}
	connected, err := olmv1.Manage(p)(c.Config(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	o = connected.(*olmv1.Client)
	if err := olmv1.Install(t.Context(), o, c); err != nil {
		t.Fatal(err)
	}
	fbc, err := catalog.Whole(p)
	if err != nil {
		t.Fatal(err)
	}
	at, err := (&olmv1.Store{Host: c}).Catalog(t.Context(), "catalog", fbc)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("cluster, OLM v1 and catalog are ready after %.1fs", time.Since(begun).Seconds())
	return o, at.Image, c.Kubeconfig()
}

// extension waits until the ClusterExtension says what done wants.
func extension(t *testing.T, c *olmv1.Client, done func(x *olmv1.ClusterExtension, progressing *metav1.Condition) bool) {
	t.Helper()
	var x olmv1.ClusterExtension
	err := lifecycle.Poll(t.Context(), time.Minute, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKey{Name: pkg}, &x); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		progressing := meta.FindStatusCondition(x.Status.Conditions, "Progressing")
		return progressing != nil && progressing.ObservedGeneration == x.Generation && done(&x, progressing), nil
	})
	if err != nil {
		t.Fatalf("%v: %+v", err, x.Status)
	}
}

func installed(name string) func(*olmv1.ClusterExtension, *metav1.Condition) bool {
	return func(x *olmv1.ClusterExtension, progressing *metav1.Condition) bool {
		return progressing.Reason == "Succeeded" && x.Status.Install != nil && x.Status.Install.Bundle.Name == name
	}
}

// apply is kubectl apply of documents.
func apply(t *testing.T, c *olmv1.Client, documents []byte) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(documents), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("kubectl"), client.ForceOwnership)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, documents)
		}
	}
}

// What 'subscription generate --olm v1' writes is all that has OLM v1 install the operator, and the rights in it are enough.
func TestSubscription(t *testing.T) {
	c, image, _ := start(t, memcached(t))
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "olmkit"), "subscription", "generate", "--olm", "v1", "--package", pkg,
		"--catalog", filepath.Join(root, "catalog", pkg), "--channel", "stable", "--image", image)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	written, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	apply(t, c, written)
	extension(t, c, installed("memcached-operator.v0.5.0"))
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: pkg, Name: "memcached-operator-installer"}, &corev1.ServiceAccount{}); err != nil {
		t.Error(err)
	}
}

// ask runs olmkit, wants it to end with an exit code, and returns what it says.
func ask(t *testing.T, code int, args ...string) string {
	t.Helper()
	out, _ := askBoth(t, code, args...)
	return out
}

// askBoth is ask, and returns standard error, too.
func askBoth(t *testing.T, code int, args ...string) (said, errors string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "olmkit"), args...)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	t.Logf("olmkit %s\n%s", strings.Join(args, " "), out.String())
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		t.Fatalf("%v, want exit code %d\n%s", err, code, errOut.String())
	}
	return out.String(), errOut.String()
}

// asked is what 'upgrade diagnose -o json' says.
type asked struct {
	Extensions []diagnosis.Extension `json:"extensions"`
}

// 'upgrade diagnose' tells what keeps an upgrade, and a fix that it prints mends it: a version that does not follow what is
// installed, a ServiceAccount without rights, a CRD that is not safe, a catalog that cannot be pulled. OLM v1 itself says so.
func TestDiagnose(t *testing.T) {
	c, image, kubeconfig := start(t, memcached(t))
	place := lifecycle.Place{Package: pkg, Channel: channel, Catalog: "catalog", Namespace: "operators", Mode: lifecycle.AllNamespaces}
	if err := errors.Join(c.Prepare(t.Context(), place), c.Publish(t.Context(), place, cluster.CatalogAddress{Image: image})); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitPublished(t.Context(), place, time.Minute); err != nil {
		t.Fatal(err)
	}
	diagnose := func(code int, wants ...string) diagnosis.Extension {
		t.Helper()
		var r asked
		if err := json.Unmarshal([]byte(ask(t, code, "upgrade", "diagnose", "--kubeconfig", kubeconfig, "-o", "json")), &r); err != nil || len(r.Extensions) != 1 {
			t.Fatalf("%v: %+v", err, r)
		}
		said := ask(t, code, "upgrade", "diagnose", "-p", pkg, "--kubeconfig", kubeconfig)
		for _, want := range wants {
			if !strings.Contains(said, want) {
				t.Errorf("it does not say %q", want)
			}
		}
		return r.Extensions[0]
	}
	retrying := func(part string) func(*olmv1.ClusterExtension, *metav1.Condition) bool {
		return func(_ *olmv1.ClusterExtension, progressing *metav1.Condition) bool {
			return progressing.Reason == "Retrying" && strings.Contains(progressing.Message, part)
		}
	}

	if err := c.Request(t.Context(), place, "memcached-operator.v0.1.0"); err != nil {
		t.Fatal(err)
	}
	extension(t, c, installed("memcached-operator.v0.1.0"))
	if err := lifecycle.WaitAvailable(t.Context(), c, place.Namespace, "memcached-operator-controller-manager"); err != nil {
		t.Fatal(err)
	}
	if e := diagnose(0, "installed  memcached-operator.v0.1.0"); e.State != diagnosis.UpToDate || len(e.Causes) > 0 {
		t.Errorf("%+v", e)
	}

	if err := c.Request(t.Context(), place, "memcached-operator.v0.5.0"); err != nil {
		t.Fatal(err)
	}
	extension(t, c, retrying("no bundles found"))
	diagnose(3, "memcached-operator: stuck", "version 0.5.0", "no bundles found", `"upgradeConstraintPolicy": "SelfCertified"`)

	x := &olmv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: pkg}}
	lacking := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: olmv1.Installer(pkg)}}
	follows := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"source": {"catalog": {"version": "0.2.0"}}}}`))
	if err := errors.Join(c.Delete(t.Context(), lacking), c.Patch(t.Context(), x, follows)); err != nil {
		t.Fatal(err)
	}
	extension(t, c, retrying("forbidden"))
	e := diagnose(3, "is forbidden", "olmkit subscription generate --olm v1 --package memcached-operator --namespace operators", "kubectl create clusterrolebinding")
	command := strings.Fields(strings.Replace(e.Causes[0].Fixes[0].Command, "CATALOG", filepath.Join(root, "catalog", pkg), 1))
	apply(t, c, []byte(ask(t, 0, command[1:]...)))
	extension(t, c, installed("memcached-operator.v0.2.0"))

	for _, name := range []string{"memcached-operator.v0.5.0", "memcached-operator.v0.2.0"} {
		if _, err := c.Rollback(t.Context(), place, name, time.Minute); err != nil {
			t.Fatal(err)
		}
		if name == "memcached-operator.v0.5.0" {
			extension(t, c, installed(name))
		}
	}
	extension(t, c, retrying("validating upgrade for CRD"))
	diagnose(3, "next       memcached-operator.v0.2.0", "CRD upgrade safety refuses the bundle", "Pin a version whose CRD has v1,")

	status := []string{"olm", "status", "--kubeconfig", kubeconfig}
	if said := ask(t, 0, status...); !strings.Contains(said, "OLM "+olmv1.Version) || !strings.Contains(said, "namespace olmv1-system: 5 of 5 parts are well") {
		t.Error("OLM v1 is not said to be well")
	}
	if err := c.Publish(t.Context(), place, cluster.CatalogAddress{Address: "127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	if err := lifecycle.Poll(t.Context(), time.Minute, func(ctx context.Context) (bool, error) {
		var o olmv1.ClusterCatalog
		err := c.Get(ctx, client.ObjectKey{Name: "catalog"}, &o)
		return o.Trouble() != "", err
	}); err != nil {
		t.Fatal(err)
	}
	if said := ask(t, 3, status...); !strings.Contains(said, "ClusterCatalog/catalog") {
		t.Error("the catalog is said to be well")
	}
	diagnose(3, "ClusterCatalog/catalog: catalogd", "kubectl patch clustercatalogs.olm.operatorframework.io catalog")
}

// OLM v1 itself refuses each of the 34 upgrades that our plan does not have, from each release that is installed.
func TestRefusedUpgrades(t *testing.T) {
	p := memcached(t)
	plan, err := graph.NewPlan(p, graph.Options{Channel: channel, Mode: graph.All, OLMv1: true})
	if err != nil {
		t.Fatal(err)
	}
	c, image, _ := start(t, p)
	place := lifecycle.Place{Package: pkg, Channel: channel, Catalog: "catalog", Namespace: "operators", Mode: lifecycle.AllNamespaces}
	if err := errors.Join(c.Prepare(t.Context(), place), c.Publish(t.Context(), place, cluster.CatalogAddress{Image: image})); err != nil {
		t.Fatal(err)
	}
	refused, last := 0, ""
	for _, b := range p.Bundles {
		from := b.Name
		if last != "" { // 0.3.0 is on no way from the release before it
			if err := c.Uninstall(t.Context(), place, []string{"memcacheds.cache.example.com"}, time.Minute); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(c.Prepare(t.Context(), place), c.Publish(t.Context(), place, cluster.CatalogAddress{Image: image})); err != nil {
				t.Fatal(err)
			}
		}
		last = from
		if err := c.WaitPublished(t.Context(), place, time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := c.Request(t.Context(), place, from); err != nil {
			t.Fatal(err)
		}
		extension(t, c, installed(from))
		for _, b := range p.Bundles {
			if b.Name == from || slices.ContainsFunc(plan.Hops, func(e graph.Edge) bool { return e.From == from && e.To == b.Name }) {
				continue
			}
			refused++
			if err := c.Request(t.Context(), place, b.Name); err != nil {
				t.Fatal(err)
			}
			extension(t, c, func(x *olmv1.ClusterExtension, progressing *metav1.Condition) bool {
				if x.Status.Install.Bundle.Name != from {
					t.Fatalf("%s → %s was taken", from, x.Status.Install.Bundle.Name)
				}
				return progressing.Reason == "Retrying" && strings.Contains(progressing.Message, "no bundles found")
			})
		}
	}
	if refused != 34 {
		t.Errorf("%d upgrades were refused, want 34", refused)
	}
}
