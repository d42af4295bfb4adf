//go:build linux

// Package operator_test measures the memcached operator with many objects, side by side with one written as tutorials
// write it (package plain), on one embedded cluster: 'make bench-operator'.
package operator_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	prometheusmodel "github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/cluster/embedded"
	v1 "github.com/olmkit/olmkit/operator/api/v1"
)

const (
	namespace = "bench"
	// quiet is how long nothing may have been reconciled for a manager to be at rest.
	quiet = 3 * time.Second
)

var (
	root    = filepath.Join("..", "..", "..")
	objects = flag.Int("objects", 1000, "how many Memcacheds; for the growth a tenth of them, them, and ten times as many")
	plain   = filepath.Join(root, "bin", "bench", "plain")
	ours    = filepath.Join(root, "bin", "memcached-operator", "v0.5.0", "manager")
	world   *embedded.Cluster
	admin   client.Client
	token   string
	// seen is what watches tell of the benchmark's objects: to list them again and again would be most of the API server's
	// work.
	seen cache.Cache
)

func TestMain(m *testing.M) {
	embedded.Main()
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	code, err := runBenchmarks(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runBenchmarks(m *testing.M) (int, error) {
	ctx := context.Background()
	var err error
	if world, err = embedded.Start(ctx, embedded.Options{Audit: true, OLM: embedded.OLMVersion}); err != nil {
		return 0, err
	}
	defer func() { _ = world.Down(ctx) }()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensions.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			return 0, err
		}
	}
	config := world.Config()
	config.QPS = -1
	if admin, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	if err := prepare(ctx); err != nil {
		return 0, err
	}
	if seen, err = cache.New(config, cache.Options{
		Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}, DefaultTransform: cache.TransformStripManagedFields(),
	}); err != nil {
		return 0, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _ = seen.Start(watching) }()
	for _, object := range []client.Object{&v1.Memcached{}, &appsv1.Deployment{}, &appsv1.ReplicaSet{}, &corev1.Service{}, &corev1.Pod{}, &policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{}} {
		if _, err := seen.GetInformer(ctx, object); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
}

// prepare installs the CRD, with one version served and so nothing to convert, and makes the account that may read
// metrics.
func prepare(ctx context.Context) error {
	raw, err := os.ReadFile(filepath.Join(root, "operator", "config", "crd", "bases", "cache.example.com_memcacheds.yaml"))
	if err != nil {
		return err
	}
	var crd apiextensions.CustomResourceDefinition
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		return err
	}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		v.Served, v.Storage = v.Name == "v1", v.Name == "v1"
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader", Namespace: namespace}}
	for _, object := range []client.Object{
		&crd,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		account,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "reader"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "reader", Namespace: namespace}},
		},
	} {
		if err := admin.Create(ctx, object); err != nil {
			return err
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := admin.SubResource("token").Create(ctx, account, request); err != nil {
		return err
	}
	token = request.Status.Token
	return await("the CRD is served", func() error { return admin.List(ctx, &v1.MemcachedList{}) })
}

// figures is what one manager took.
type figures struct {
	steady, restart, deletion       time.Duration
	steadyCPU, deletionCPU          float64 // of the cluster and the manager, in seconds
	reconciles, reads, writes       float64 // up to the steady state
	restartReconciles, restartReads float64
	restartWrites, changed          float64
	memory                          float64 // MiB, at most
}

// BenchmarkObjects creates many Memcacheds under each manager, waits until all are well and nothing moves, restarts the
// manager, and deletes them all.
func BenchmarkObjects(b *testing.B) {
	for _, program := range []string{plain, ours} {
		if _, err := os.Stat(program); err != nil {
			b.Fatalf("%v: run 'make bench-operator', which builds it", err)
		}
	}
	for b.Loop() {
		peer := measure(b, *objects, plain, "http")
		own := measureOurs(b, *objects)
		n := float64(*objects)
		fmt.Printf("\n%d Memcacheds                plain       olmkit's    plain / olmkit's\n", *objects)
		for _, row := range []struct {
			name       string
			plain, own float64
			unit       string
		}{
			{"steady after", peer.steady.Seconds(), own.steady.Seconds(), "s"},
			{"  processor time", peer.steadyCPU, own.steadyCPU, "s"},
			{"reconciles an object", peer.reconciles / n, own.reconciles / n, ""},
			{"writes an object", peer.writes / n, own.writes / n, ""},
			{"reads an object", peer.reads / n, own.reads / n, ""},
			{"memory at most", peer.memory, own.memory, "MiB"},
			{"restart: at rest after", peer.restart.Seconds(), own.restart.Seconds(), "s"},
			{"restart: reconciles", peer.restartReconciles, own.restartReconciles, ""},
			{"restart: reads", peer.restartReads, own.restartReads, ""},
			{"restart: writes", peer.restartWrites, own.restartWrites, ""},
			{"restart: objects changed", peer.changed, own.changed, ""},
			{"all deleted after", peer.deletion.Seconds(), own.deletion.Seconds(), "s"},
			{"  processor time", peer.deletionCPU, own.deletionCPU, "s"},
		} {
			ratio := "-"
			if row.own > 0 {
				ratio = fmt.Sprintf("%.1f", row.plain/row.own)
			}
			fmt.Printf("%-26s %8.1f %-3s %8.1f %-3s %8s\n", row.name, row.plain, row.unit, row.own, row.unit, ratio)
		}
		b.ReportMetric(own.reconciles/n, "reconciles/object")
		b.ReportMetric(own.memory, "MiB")
		b.ReportMetric(own.restartWrites, "writes/restart")
	}
}

// BenchmarkGrowth measures the operator alone with three numbers of Memcacheds, and prints how its costs grow: the slopes of cost over
// number, both as logarithms, from the second number to the last. 1 is in proportion.
func BenchmarkGrowth(b *testing.B) {
	var all []figures
	for _, n := range []int{*objects / 10, *objects, *objects * 10} {
		f := measureOurs(b, n)
		all = append(all, f)
		fmt.Printf("%6d Memcacheds: steady after %.1f s, with %.1f s of processor time and %.1f MiB; restart %.1f s; all deleted after %.1f s, with %.1f s of processor time\n",
			n, f.steady.Seconds(), f.steadyCPU, f.memory, f.restart.Seconds(), f.deletion.Seconds(), f.deletionCPU)
	}
	slope := func(of func(figures) float64) float64 { return math.Log10(of(all[2]) / of(all[1])) }
	fmt.Printf("slopes: steady %.2f, its processor time %.2f, memory %.2f, restart %.2f, deletion %.2f, its processor time %.2f\n",
		slope(func(f figures) float64 { return f.steady.Seconds() }), slope(func(f figures) float64 { return f.steadyCPU }),
		slope(func(f figures) float64 { return f.memory }), slope(func(f figures) float64 { return f.restart.Seconds() }),
		slope(func(f figures) float64 { return f.deletion.Seconds() }), slope(func(f figures) float64 { return f.deletionCPU }))
	b.ReportMetric(0, "ns/op")
}

func measureOurs(b *testing.B, n int) figures {
	b.Helper()
	return measure(b, n, ours, "https", "--webhooks=false", "--health-probe-bind-address=0", "--zap-log-level=error")
}

// measure has a manager work on n Memcacheds.
func measure(b *testing.B, n int, program, scheme string, args ...string) figures {
	b.Helper()
	ctx := b.Context()
	var f figures
	m := start(b, program, scheme, args)
	began, used := time.Now(), processors(b)
	each(b, n, func(m metav1.ObjectMeta) error {
		return admin.Create(ctx, &v1.Memcached{ObjectMeta: m, Spec: v1.MemcachedSpec{Replicas: 1}})
	})
	must(b, await("all Memcacheds are well", func() error {
		var list v1.MemcachedList
		if err := seen.List(ctx, &list); err != nil {
			return err
		}
		well := 0
		for _, memcached := range list.Items {
			if memcached.Status.ReadyReplicas == 1 && memcached.Status.ObservedGeneration == memcached.Generation {
				well++
			}
		}
		if well < n {
			return fmt.Errorf("%d are", well)
		}
		return nil
	}))
	end, counts := m.rest(b)
	f.steady, f.reconciles, f.reads, f.writes = end.Sub(began), counts.reconciles, counts.reads, counts.writes
	f.memory, f.steadyCPU = m.memory(b), processors(b)-used
	m.stop()
	fmt.Fprintf(os.Stderr, "%d Memcacheds are steady after %s\n", n, f.steady.Round(time.Millisecond))

	before := versions(b)
	began = time.Now()
	m = start(b, program, scheme, args)
	end, counts = m.rest(b)
	f.restart, f.restartReconciles, f.restartReads = end.Sub(began), counts.reconciles, counts.reads
	f.restartWrites = writes(b, filepath.Base(program), began)
	after := versions(b)
	for name, version := range before {
		if after[name] != version {
			f.changed++
		}
	}

	began, used = time.Now(), processors(b)
	// One request for all would take longer than the API server gives one.
	each(b, n, func(m metav1.ObjectMeta) error { return admin.Delete(ctx, &v1.Memcached{ObjectMeta: m}) })
	must(b, await("all is deleted", func() error {
		left := len(versions(b))
		for _, list := range []client.ObjectList{&appsv1.ReplicaSetList{}, &corev1.PodList{}} {
			if err := seen.List(ctx, list); err != nil {
				return err
			}
			left += meta.LenList(list)
		}
		if left > 0 {
			return fmt.Errorf("%d objects are left", left)
		}
		return nil
	}))
	f.deletion, f.deletionCPU = time.Since(began), processors(b)-used
	m.stop()
	return f
}

// each does something with each of n Memcacheds, a few at a time.
func each(b *testing.B, n int, do func(metav1.ObjectMeta) error) {
	b.Helper()
	var group errgroup.Group
	group.SetLimit(8)
	for i := range n {
		group.Go(func() error { return do(metav1.ObjectMeta{Name: "m" + strconv.Itoa(i), Namespace: namespace}) })
	}
	must(b, group.Wait())
}

// versions is the resource version of every object that a manager writes.
func versions(b *testing.B) map[string]string {
	b.Helper()
	found := map[string]string{}
	for _, list := range []client.ObjectList{&v1.MemcachedList{}, &appsv1.DeploymentList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}} {
		must(b, seen.List(b.Context(), list))
		items, err := meta.ExtractList(list)
		must(b, err)
		for _, item := range items {
			object, err := meta.Accessor(item)
			must(b, err)
			found[fmt.Sprintf("%T %s", list, object.GetName())] = object.GetResourceVersion()
		}
	}
	return found
}

// writes counts what a program asked the API server to change since then, by the audit log. Reviews of the token that
// reads the metrics change nothing.
func writes(b *testing.B, program string, since time.Time) float64 {
	b.Helper()
	events, err := world.Audit(b.Context(), since)
	must(b, err)
	var n float64
	for _, event := range events {
		if strings.HasPrefix(event.UserAgent, program+"/") && slices.Contains([]string{"create", "update", "patch", "delete"}, event.Verb) &&
			event.ObjectRef != nil && !strings.HasSuffix(event.ObjectRef.Resource, "reviews") {
			n++
		}
	}
	return n
}

// manager is a running manager whose metrics can be read.
type manager struct {
	cmd    *exec.Cmd
	url    string
	client *http.Client
	log    bytes.Buffer
}

func start(b *testing.B, program, scheme string, args []string) *manager {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	address := listener.Addr().String()
	must(b, listener.Close())
	m := &manager{
		cmd: exec.Command(program, append([]string{"--metrics-bind-address=" + address}, args...)...),
		url: scheme + "://" + address + "/metrics",
		// The manager makes its certificate itself, and is asked over the loopback interface.
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}},
	}
	m.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + world.Kubeconfig()}
	m.cmd.Stdout, m.cmd.Stderr = &m.log, &m.log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(b, m.cmd.Start())
	b.Cleanup(m.stop)
	must(b, await("the manager answers", func() error {
		_, err := m.counts()
		return err
	}))
	return m
}

func (m *manager) stop() {
	if m.cmd.ProcessState == nil {
		_ = m.cmd.Process.Signal(syscall.SIGTERM)
		_ = m.cmd.Wait()
	}
}

type counts struct{ reconciles, reads, writes float64 }

// counts reads how often the manager reconciled, and what it asked of the API server.
func (m *manager) counts() (counts, error) {
	request, err := http.NewRequest(http.MethodGet, m.url, nil)
	if err != nil {
		return counts{}, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := m.client.Do(request)
	if err != nil {
		return counts{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return counts{}, err
	}
	if response.StatusCode != http.StatusOK {
		return counts{}, fmt.Errorf("%s: %s %s", m.url, response.Status, body)
	}
	parser := expfmt.NewTextParser(prometheusmodel.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return counts{}, err
	}
	return counts{
		reconciles: sum(families["controller_runtime_reconcile_total"], "controller", "memcached"),
		reads:      sum(families["rest_client_requests_total"], "method", http.MethodGet),
		writes:     sum(families["rest_client_requests_total"], "method", http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete),
	}, nil
}

func sum(family *dto.MetricFamily, label string, values ...string) float64 {
	var total float64
	for _, metric := range family.GetMetric() {
		for _, pair := range metric.GetLabel() {
			if pair.GetName() == label && slices.Contains(values, pair.GetValue()) {
				total += metric.GetCounter().GetValue()
			}
		}
	}
	return total
}

// rest waits until the manager has worked and rests, and returns since when.
func (m *manager) rest(b *testing.B) (time.Time, counts) {
	b.Helper()
	var (
		last  counts
		since time.Time
	)
	for deadline := time.Now().Add(limit()); ; time.Sleep(200 * time.Millisecond) {
		now, err := m.counts()
		must(b, err)
		switch {
		case now.reconciles != last.reconciles || since.IsZero():
			last, since = now, time.Now()
		case now.reconciles > 0 && time.Since(since) > quiet:
			return since, now
		}
		if time.Now().After(deadline) {
			b.Fatalf("the manager does not come to rest: %+v", now)
		}
	}
}

// memory is the most that the manager had in memory, in MiB.
func (m *manager) memory(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	must(b, err)
	for line := range strings.Lines(string(status)) {
		if words := strings.Fields(line); words[0] == "VmHWM:" {
			kibibytes, err := strconv.ParseFloat(words[1], 64)
			must(b, err)
			return kibibytes / 1024
		}
	}
	b.Fatal("no VmHWM")
	return 0
}

// processors is the processor time that the cluster and the manager have used so far, in seconds: the processes that
// descend from this one. Other work on the machine makes all slower, and this hardly more.
func processors(b *testing.B) float64 {
	b.Helper()
	const ticks = 100 // a second; the kernel's USER_HZ
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	must(b, err)
	parents, times := map[string]string{}, map[string]float64{}
	for _, file := range files {
		stat, _ := os.ReadFile(file) // what has ended meanwhile has none
		words := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(words) < 13 {
			continue
		}
		pid := filepath.Base(filepath.Dir(file))
		parents[pid] = words[1]
		for _, used := range words[11:13] { // in user mode, and in the kernel
			n, err := strconv.ParseFloat(used, 64)
			must(b, err)
			times[pid] += n / ticks
		}
	}
	var total float64
	own := strconv.Itoa(os.Getpid())
	for pid, used := range times {
		for parent := parents[pid]; parent != ""; parent = parents[parent] {
			if parent == own {
				total += used
				break
			}
		}
	}
	return total
}

// limit bounds each wait.
func limit() time.Duration { return 10*time.Minute + time.Duration(*objects)*time.Second }

func await(what string, f func() error) error {
	for deadline := time.Now().Add(limit()); ; time.Sleep(200 * time.Millisecond) {
		err := f()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
