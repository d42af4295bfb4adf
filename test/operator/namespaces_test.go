//go:build linux

package operator_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
)

// untouched fails if the operator has done anything for a Memcached.
func untouched(t *testing.T, m *v1.Memcached) {
	t.Helper()
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(m), m))
	if len(m.Finalizers) > 0 || len(m.Status.Conditions) > 0 {
		t.Errorf("%s/%s was worked on: %v %+v", m.Namespace, m.Name, m.Finalizers, m.Status)
	}
}

func TestWatchedNamespaces(t *testing.T) {
	install(t)
	for name, test := range map[string]struct {
		watched func(a, b, c string) string
		worked  [3]bool
	}{
		"one":                 {func(a, _, _ string) string { return a }, [3]bool{true, false, false}},
		"a list":              {func(a, b, _ string) string { return a + "," + b }, [3]bool{true, true, false}},
		"a list, badly typed": {func(a, _, c string) string { return " " + a + ", ," + c + "," }, [3]bool{true, false, true}},
		"all":                 {func(_, _, _ string) string { return "" }, [3]bool{true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			namespaces := [3]string{namespace(t), namespace(t), namespace(t)}
			// Those that are not watched are older, so they would have been found first.
			var all [3]*v1.Memcached
			for _, worked := range []bool{false, true} {
				for i, ns := range namespaces {
					if test.worked[i] == worked {
						all[i] = create(t, ns, "m", v1.MemcachedSpec{Replicas: 1})
					}
				}
			}
			start(t, nil, "WATCH_NAMESPACE="+test.watched(namespaces[0], namespaces[1], namespaces[2]))
			for i, ns := range namespaces {
				if test.worked[i] {
					available(t, ns, "m")
				}
			}
			for i := range namespaces {
				if !test.worked[i] {
					untouched(t, all[i])
				}
			}
		})
	}
}

// TestNamespaceScope runs a manager with what operator/config/namespaced grants, in one namespace.
func TestNamespaceScope(t *testing.T) {
	share(t)
	ns, other := namespace(t), namespace(t)
	outside := create(t, other, "m", v1.MemcachedSpec{Replicas: 1})
	env := as(t, ns, ruled(t, config("namespaced"), func(*rbacv1.PolicyRule) {})...)
	for _, object := range manifests(t, config("namespaced/watched")) {
		object.SetNamespace(ns)
		if object.GetKind() == "RoleBinding" {
			object.Object["subjects"] = []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": ns}}
		}
		apply(t, object)
	}
	manager := start(t, []string{"--watch-namespace=" + ns, "--storage-migration=false"}, env)
	m := create(t, ns, "m", v1.MemcachedSpec{Replicas: 1})
	available(t, ns, m.Name)
	must(t, admin.Delete(t.Context(), m))
	eventually(t, "the Memcached is deleted", func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(m), m); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	untouched(t, outside)
	if strings.Contains(manager.log(), "forbidden") {
		t.Errorf("it lacks a right:\n%s", manager.log())
	}
}

// TestLock elects by a lock of another name in another namespace, with the access of --kubeconfig, as on a developer's machine.
func TestLock(t *testing.T) {
	share(t)
	ns, locks := namespace(t), namespace(t)
	start(t, []string{"--kubeconfig=" + world.Kubeconfig(), "--leader-elect", "--leader-election-id=mine", "--leader-election-namespace=" + locks}, "KUBECONFIG=", "WATCH_NAMESPACE="+ns)
	create(t, ns, "m", v1.MemcachedSpec{Replicas: 1})
	available(t, ns, "m")
	var lease coordinationv1.Lease
	must(t, admin.Get(t.Context(), client.ObjectKey{Namespace: locks, Name: "mine"}, &lease))
}

func TestWatchSelector(t *testing.T) {
	install(t)
	ns := namespace(t)
	out := create(t, ns, "out", v1.MemcachedSpec{Replicas: 1})
	m := create(t, ns, "m", v1.MemcachedSpec{Replicas: 1})
	edit(t, m, func(m *v1.Memcached) { m.Labels = map[string]string{"shard": "a"} })
	start(t, []string{"--watch-selector=shard in (a, b)"})
	available(t, ns, m.Name)
	untouched(t, out)

	// One that leaves is not worked on any more; its servers stay as they are.
	edit(t, m, func(m *v1.Memcached) { m.Labels["shard"], m.Spec.Replicas = "c", 3 })
	// One that comes is: by its label alone.
	edit(t, out, func(m *v1.Memcached) { m.Labels = map[string]string{"shard": "b"} })
	available(t, ns, out.Name)
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(m), m))
	if m.Status.ObservedGeneration == m.Generation || len(podsOf(t, m)) != 1 {
		t.Errorf("worked on: %+v", m.Status)
	}
	edit(t, m, func(m *v1.Memcached) { m.Labels["shard"] = "a" })
	available(t, ns, m.Name)
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":            {[]string{"--unknown"}, "flag provided but not defined: -unknown"},
		"a word":                     {[]string{"--leader-elect", "false"}, `unexpected argument "false": the manager takes flags only`},
		"no workers":                 {[]string{"--max-concurrent-reconciles=0"}, "--max-concurrent-reconciles 0"},
		"no delay":                   {[]string{"--retry-base-delay=0s"}, "--retry-base-delay 0s"},
		"a longest that is shorter":  {[]string{"--retry-base-delay=1m", "--retry-max-delay=1s"}, "--retry-max-delay 1s"},
		"no retries":                 {[]string{"--retries-per-second=0"}, "--retries-per-second 0"},
		"retries that are no number": {[]string{"--retries-per-second=many"}, "invalid value"},
		"a selector that is none":    {[]string{"--watch-selector=a in"}, `--watch-selector "a in"`},
		"a level that is none":       {[]string{"--zap-log-level=loud"}, `invalid value "loud" for flag -zap-log-level`},
		"life in another namespace":  {[]string{"--leader-election-kind=life", "--leader-election-namespace=other"}, `--leader-election-namespace "other": with --leader-election-kind life`},
		"an address that is none":    {[]string{"--health-probe-bind-address=nowhere"}, "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), program, append([]string{"--webhooks=false", "--metrics-bind-address=0"}, test.args...)...)
			cmd.Env = []string{"KUBECONFIG=" + world.Kubeconfig()}
			out, err := cmd.CombinedOutput()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("ended with %v", err)
			}
			if !strings.Contains(string(out), test.want) || strings.Contains(string(out), "goroutine ") {
				t.Errorf("said %s", out)
			}
		})
	}
}

// reader is the token of an account that may read metrics.
func reader(t *testing.T, ns string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "reader"}}
	about := metav1.ObjectMeta{Name: ns + "-reader"}
	for _, object := range []client.Object{
		account,
		&rbacv1.ClusterRole{ObjectMeta: about, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: about, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: account.Name}}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: about.Name}},
	} {
		must(t, admin.Create(t.Context(), object))
		t.Cleanup(func() { _ = admin.Delete(context.Background(), object) })
	}
	c, err := kubernetes.NewForConfig(world.Config())
	must(t, err)
	token, err := c.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	return token.Status.Token
}

// measured waits until a metric of a manager, which was started with a metrics address, has this value.
func measured(t *testing.T, token, address, series, want string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	eventually(t, series+" is "+want, func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", http.NoBody)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := c.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(body)) {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
				if value == want {
					return nil
				}
				return fmt.Errorf("it is %s", value)
			}
		}
		return fmt.Errorf("answered %s without it", response.Status)
	})
}

func TestConcurrency(t *testing.T) {
	share(t)
	ns := namespace(t)
	token := reader(t, ns)
	const address = "127.0.0.1:18443"
	for flag, want := range map[string]string{"--max-concurrent-reconciles=7": "7", "--zap-log-level=info": "4"} {
		manager := start(t, []string{flag, "--metrics-bind-address=" + address}, "WATCH_NAMESPACE="+ns)
		measured(t, token, address, `controller_runtime_max_concurrent_reconciles{controller="memcached"}`, want)
		manager.stop(t)
	}
}

// Two managers meet the same refusal. The one that waits an hour after a first failure tries once, while the one that
// never waits long tries again and again.
func TestRetriesAreSpaced(t *testing.T) {
	share(t)
	patient, eager := namespace(t), namespace(t)
	rights := as(t, "no-service", ruled(t, config("rbac"), no("create", "services"))...)
	waits := start(t, []string{"--retry-base-delay=1h", "--retry-max-delay=2h", "--zap-log-level=5"}, rights, "WATCH_NAMESPACE="+patient)
	hurries := start(t, []string{"--retry-base-delay=1ms", "--retry-max-delay=2ms", "--retries-per-second=1000"}, rights, "WATCH_NAMESPACE="+eager)
	failures := func(p *process) int {
		n := 0
		for _, e := range p.entries() {
			if e["msg"] == "Reconciler error" {
				n++
			}
		}
		return n
	}
	m := create(t, patient, "m", v1.MemcachedSpec{Replicas: 1})
	create(t, eager, "m", v1.MemcachedSpec{Replicas: 1})
	condition(t, m, v1.ConditionDegraded, "True/ApplyFailed")
	condition(t, m, v1.ConditionAvailable, "True/AllPodsReady")
	settledIn(t, patient)
	before := failures(waits)
	already := failures(hurries)
	eventually(t, "the other one tries again and again", func() error {
		if n := failures(hurries) - already; n < 20 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	if again := failures(waits) - before; before == 0 || again > 0 {
		t.Errorf("failed %d times, then %d more", before, again)
	}
}

// Without leader election nobody asks for a lease, and two managers work side by side.
func TestWithoutLeaderElection(t *testing.T) {
	install(t)
	a, b := namespace(t), namespace(t)
	start(t, nil, "WATCH_NAMESPACE="+a)
	start(t, nil, "WATCH_NAMESPACE="+b)
	for _, ns := range []string{a, b} {
		create(t, ns, "m", v1.MemcachedSpec{Replicas: 1})
		available(t, ns, "m")
	}
	var leases coordinationv1.LeaseList
	must(t, admin.List(t.Context(), &leases))
	for _, lease := range leases.Items {
		if strings.Contains(lease.Name, "memcached") {
			t.Errorf("there is the lease %s/%s", lease.Namespace, lease.Name)
		}
	}
}
