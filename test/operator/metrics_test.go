//go:build linux

package operator_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1beta1"
)

// TestRules tries the alerts on series made up for it.
func TestRules(t *testing.T) {
	t.Parallel()
	promtool := filepath.Join(root, "bin", "promtool")
	if found, err := exec.LookPath("promtool"); err == nil {
		promtool = found
	} else if _, err := os.Stat(promtool); err != nil {
		t.Fatalf("%v: get it with 'make promtool', or install Debian's package prometheus", err)
	}
	folder := filepath.Join(root, "operator", "internal", "monitoring")
	for _, args := range [][]string{
		{"check", "rules", filepath.Join(folder, "rules.yaml")},
		{"test", "rules", filepath.Join(folder, "testdata", "rules_test.yaml")},
	} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// What the operator logs, unless told to log more, is for people to read: JSON line by line, little of a Memcached that is
// well, and no credentials.
func TestLog(t *testing.T) {
	share(t)
	ctx, ns := t.Context(), namespace(t)
	p := start(t, nil, "WATCH_NAMESPACE="+ns)
	m := &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "talked-about"}, Spec: v1.MemcachedSpec{Replicas: 1}}
	must(t, admin.Create(ctx, m))
	m = available(t, ns, m.Name)
	must(t, admin.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`))))
	m = available(t, ns, m.Name)
	must(t, admin.Delete(ctx, m))
	eventually(t, "it is gone", func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(m), m); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	eventually(t, "its last event is written", func() error { // which client-go drops with an error when the manager stops
		var events corev1.EventList
		if err := admin.List(ctx, &events, client.InNamespace(ns)); err != nil {
			return err
		}
		if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "Dissolved" }) {
			return fmt.Errorf("there are %d others", len(events.Items))
		}
		return nil
	})
	p.stop(t)
	about := 0
	for line := range strings.Lines(p.log()) {
		var entry struct{ TS, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.TS == "" || entry.Msg == "" || entry.Level != "info" {
			t.Errorf("%v: %s", err, line)
		}
		if strings.Contains(line, m.Name) {
			about++
			t.Log(line)
		}
	}
	if about > 2 {
		t.Errorf("%d lines about a Memcached that was well all the time", about)
	}
	for what, secret := range map[string]string{"a token": world.Config().BearerToken, "a key": "PRIVATE KEY"} {
		if secret != "" && strings.Contains(p.log(), secret) {
			t.Errorf("%s is in the log", what)
		}
	}
}

// A question is asked of the metrics' server from a pod, as Prometheus would ask.
const scrapeArgument = "scrape"

type question struct {
	URL, Token string
	// Host and Authorities verify the server's certificate.
	Host        string
	Authorities []byte
}

type reply struct {
	Status int
	Serial string // of the server's certificate
	Body   string
}

// scrape asks the question that is encoded in text.
func scrape(w io.Writer, text string) error {
	var q question
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(q.Authorities)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: q.Host}}}
	request, err := http.NewRequest(http.MethodGet, q.URL, nil)
	if err != nil {
		return err
	}
	if q.Token != "" {
		request.Header.Set("Authorization", "Bearer "+q.Token)
	}
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(reply{response.StatusCode, response.TLS.PeerCertificates[0].SerialNumber.String(), string(body)})
}

// ask asks q from pod.
func ask(t *testing.T, pod *corev1.Pod, q question) (reply, error) {
	t.Helper()
	text, err := json.Marshal(q)
	must(t, err)
	var r reply
	out, err := inside(t, pod, scrapeArgument, string(text))
	if err == nil {
		err = json.Unmarshal([]byte(out), &r)
	}
	return r, err
}

// sample is the value of a series, written as it is exposed.
func (r reply) sample(series string) (float64, error) {
	for line := range strings.Lines(r.Body) {
		if text, ok := strings.CutPrefix(line, series+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(text), 64)
		}
	}
	return 0, fmt.Errorf("answered %d, without %s", r.Status, series)
}

// tokenOf makes an account in ns and a token of it.
func tokenOf(t *testing.T, ns, account string) string {
	t.Helper()
	a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: account}}
	must(t, admin.Create(t.Context(), a))
	request := &authenticationv1.TokenRequest{}
	must(t, admin.SubResource("token").Create(t.Context(), a, request))
	return request.Status.Token
}

// mayReadMetrics binds an account to the role for it.
func mayReadMetrics(t *testing.T, ns, account string) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns + "-" + account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "memcached-operator-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: account}},
	}
	must(t, admin.Create(t.Context(), binding))
	t.Cleanup(func() { _ = admin.Delete(context.Background(), binding) })
}

// authorities are those in the Secret of the operator's own certificate.
func authorities(t *testing.T) []byte {
	t.Helper()
	var secret corev1.Secret
	must(t, admin.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "memcached-operator-webhook-cert"}, &secret))
	return secret.Data["ca.crt"]
}

const webhookHost = "memcached-operator-webhook-service." + system + ".svc"

// Who may read the metrics reads them from whom it can verify, they follow the objects, and a new certificate takes the
// old one's place while webhooks and conversion are in use.
func TestMetrics(t *testing.T) {
	deploy(t)
	ctx, ns := t.Context(), namespace(t)
	pod := startBox(t, ns, "default")
	reader, stranger := tokenOf(t, ns, "reader"), tokenOf(t, ns, "stranger")
	mayReadMetrics(t, ns, "reader")

	var service corev1.Service
	must(t, admin.Get(ctx, client.ObjectKey{Namespace: system, Name: "memcached-operator-metrics"}, &service))
	if port := service.Spec.Ports[0]; port.Name != "metrics" || port.Port != 8443 {
		t.Errorf("the Service's port is %+v", port)
	}
	right := question{
		URL:   "https://" + net.JoinHostPort(operatorPods(t)[0].Status.PodIP, "8443") + "/metrics",
		Token: reader, Host: webhookHost, Authorities: authorities(t),
	}
	for name, test := range map[string]struct {
		change func(*question)
		status int
		err    string
	}{
		"nobody": {func(q *question) { q.Token = "" }, http.StatusUnauthorized, ""},
		// The API server tells more of a token that it has not signed than that it is nobody's, which controller-runtime
		// v0.24.1 takes for a failure (pkg/metrics/filters/filters.go).
		"a forged token":    {func(q *question) { q.Token = "x" + q.Token }, http.StatusInternalServerError, ""},
		"without the right": {func(q *question) { q.Token = stranger }, http.StatusForbidden, ""},
		"another path":      {func(q *question) { q.URL += "/all" }, http.StatusNotFound, ""},
		"another host":      {func(q *question) { q.Host = "metrics." + system + ".svc" }, 0, "certificate is valid for " + webhookHost},
		"no authority":      {func(q *question) { q.Authorities = nil }, 0, "certificate signed by unknown authority"},
		"all as it should":  {func(*question) {}, http.StatusOK, ""},
	} {
		q := right
		test.change(&q)
		r, err := ask(t, pod, q)
		if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) || r.Status != test.status {
			t.Errorf("%s: answered %d, error %v", name, r.Status, err)
		}
	}

	shows := func(what string, want map[string]float64) {
		t.Helper()
		eventually(t, what, func() error {
			r, err := ask(t, pod, right)
			if err != nil {
				return err
			}
			for series, value := range want {
				if got, err := r.sample(series); err != nil || got != value {
					return fmt.Errorf("%s is %v, not %v: %w", series, got, value, err)
				}
			}
			return nil
		})
	}
	count := func(condition string, status metav1.ConditionStatus) string {
		return fmt.Sprintf("memcached_operator_memcacheds{condition=%q,status=%q}", condition, status)
	}
	const mismatches = "memcached_operator_size_mismatches_total"
	shows("there is none", map[string]float64{
		count("Available", "True"): 0, count("Available", "False"): 0, count("Available", "Unknown"): 0, count("Degraded", "True"): 0,
		mismatches: 0, "memcached_operator_migration_pending": 0,
	})
	m := &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "m"}}
	must(t, admin.Create(ctx, m))
	available(t, ns, "m")
	shows("one is well", map[string]float64{
		count("Available", "True"): 1, count("Progressing", "False"): 1, count("Degraded", "False"): 1, mismatches: 0,
		`controller_runtime_reconcile_errors_total{controller="memcached"}`: 0,
	})

	taken := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "memcached-broken"}}
	taken.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
	taken.Spec.Template.Labels = taken.Spec.Selector.MatchLabels
	taken.Spec.Template.Spec.Containers = []corev1.Container{{Name: "other", Image: "example.com/other:v1"}}
	must(t, admin.Create(ctx, taken))
	broken := &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "broken"}}
	must(t, admin.Create(ctx, broken))
	shows("the other is not", map[string]float64{
		count("Available", "True"): 1, count("Available", "False"): 1, count("Degraded", "True"): 1, count("Degraded", "False"): 1,
	})
	must(t, admin.Delete(ctx, broken))
	shows("it is gone, and its series", map[string]float64{count("Available", "False"): 0, count("Degraded", "True"): 0})

	scaled := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "memcached-m"}}
	must(t, admin.Patch(ctx, scaled, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`)), client.FieldOwner("somebody")))
	shows("somebody scaled a Deployment", map[string]float64{mismatches: 1})
	available(t, ns, "m")

	for name, rotate := range map[string]func(*corev1.Secret) error{
		"another certificate": func(s *corev1.Secret) error {
			return admin.Patch(ctx, s, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/data/tls.crt","value":""}]`)))
		},
		"another authority": func(s *corev1.Secret) error { return admin.Delete(ctx, s) },
	} {
		before, err := ask(t, pod, right)
		must(t, err)
		const begin = "process_start_time_seconds"
		started, err := before.sample(begin)
		must(t, err)
		stop := converts(t)
		must(t, rotate(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "memcached-operator-webhook-cert"}}))
		var after reply
		eventually(t, name+" is served", func() error {
			var secret corev1.Secret
			if err := admin.Get(ctx, client.ObjectKey{Namespace: system, Name: "memcached-operator-webhook-cert"}, &secret); err != nil {
				return err
			}
			right.Authorities = secret.Data["ca.crt"]
			if after, err = ask(t, pod, right); err == nil && after.Serial == before.Serial {
				err = errors.New("it is still the old one")
			}
			return err
		})
		calls := stop()
		if now, err := after.sample(begin); err != nil || now != started {
			t.Errorf("%s: the manager was restarted: %v", name, err)
		}
		t.Logf("%s: certificate %s, then %s; %d calls of webhooks meanwhile", name, before.Serial, after.Serial, calls)
	}
}

// converts has the API server call the conversion and the admission webhooks all the time, and fails the test when one
// call fails. It goes on until stop, which returns how often that was.
func converts(t *testing.T) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var (
		running sync.WaitGroup
		calls   int
	)
	running.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			// v1beta1 is converted, and v1 is what admission is asked about.
			m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"}, Spec: v1beta1.MemcachedSpec{Size: 2}}
			if err := admin.Create(ctx, m, client.DryRunAll); err != nil && ctx.Err() == nil {
				t.Errorf("call %d: %v", calls, err)
			}
			calls++
		}
	})
	return func() int {
		cancel()
		running.Wait()
		return calls
	}
}

// What OLM mounts is read again when the kubelet writes it anew, by webhooks and metrics, and verified as the ServiceMonitor
// says.
func TestMountedCertificate(t *testing.T) {
	install(t)
	applyPrometheusCRDs(t)
	ns := namespace(t)
	folder := t.TempDir()
	ca, key := selfSigned(t)
	// As OLM makes them (operator-lifecycle-manager v0.46.0, pkg/controller/install/certresources.go).
	const service = manager + "-service"
	host := service + "." + ns + ".svc"
	csv := []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "memcached-operator." + release, UID: "csv"}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: manager}}
	deployment.Spec.Replicas = new(int32)
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"runs": "outside"}}
	deployment.Spec.Template.Labels = deployment.Spec.Selector.MatchLabels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: image}}
	for _, object := range []client.Object{
		deployment,
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: service, OwnerReferences: csv}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: service + "-cert"}, Data: map[string][]byte{
			"olmCAKey": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}),
		}},
	} {
		must(t, admin.Create(t.Context(), object))
	}
	// The kubelet writes a new folder and exchanges the link to it (k8s.io/kubernetes v1.36.3, pkg/volume/util/atomic_writer.go).
	mount := func(serial int64) {
		t.Helper()
		certificate, private := signed(t, ca, key, host, serial)
		data := fmt.Sprintf("..%d", serial)
		must(t, os.Mkdir(filepath.Join(folder, data), 0o755))
		must(t, os.WriteFile(filepath.Join(folder, data, "tls.crt"), certificate, 0o600))
		must(t, os.WriteFile(filepath.Join(folder, data, "tls.key"), private, 0o600))
		must(t, os.Symlink(data, filepath.Join(folder, "..data_tmp")))
		must(t, os.Rename(filepath.Join(folder, "..data_tmp"), filepath.Join(folder, "..data")))
	}
	mount(1)
	for _, name := range []string{"tls.crt", "tls.key"} {
		must(t, os.Symlink(filepath.Join("..data", name), filepath.Join(folder, name)))
	}
	webhooks, metrics := freeAddress(t), freeAddress(t)
	_, port, err := net.SplitHostPort(webhooks)
	must(t, err)
	p := start(t, []string{"--webhooks", "--webhook-cert-dir", folder, "--webhook-port", port, "--metrics-bind-address", metrics},
		"OPERATOR_CONDITION_NAME="+csv[0].Name, "POD_NAMESPACE="+ns)

	monitor := prometheusObject("ServiceMonitor", ns)
	eventually(t, "there is a ServiceMonitor", func() error { return admin.Get(t.Context(), client.ObjectKeyFromObject(monitor), monitor) })
	_, shownHost, authority := endpointOf(t, monitor)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	config := &tls.Config{RootCAs: roots, ServerName: shownHost}
	shown := func(serial int64) func() error {
		return func() error {
			for _, address := range []string{webhooks, metrics} {
				connection, err := tls.Dial("tcp", address, config)
				if err != nil {
					return err
				}
				got := connection.ConnectionState().PeerCertificates[0].SerialNumber
				_ = connection.Close()
				if got.Int64() != serial {
					return fmt.Errorf("%s shows %d", address, got)
				}
			}
			return nil
		}
	}
	eventually(t, "the first certificate is shown", shown(1))
	ctx, cancel := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	calling.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) { // without a pause it keeps the machine busy
			// A connection of its own for each call.
			c := &http.Client{Transport: &http.Transport{TLSClientConfig: config.Clone(), DisableKeepAlives: true}}
			if err := convertNothing(ctx, c, "https://"+webhooks+"/convert"); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	mount(2)
	eventually(t, "the second certificate is shown", shown(2))
	cancel()
	calling.Wait()
	select {
	case <-p.ended:
		t.Error("the manager ended")
	default:
	}
}

func convertNothing(ctx context.Context, c *http.Client, url string) error {
	review, err := json.Marshal(apiextensions.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensions.SchemeGroupVersion.String(), Kind: "ConversionReview"},
		Request:  &apiextensions.ConversionRequest{UID: "1", DesiredAPIVersion: v1.GroupVersion.String()},
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(review))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", response.Status)
	}
	return nil
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func selfSigned(t *testing.T) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	ca, err := x509.ParseCertificate(raw)
	must(t, err)
	return ca, key
}

func signed(t *testing.T, ca *x509.Certificate, by *ecdsa.PrivateKey, host string, serial int64) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{host}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
	}, ca, &private.PublicKey, by)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// prometheusCRDs are the prometheus-operator's own, generated from the package with its types.
func prometheusCRDs(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	find := exec.CommandContext(t.Context(), "go", "-C", filepath.Join(root, "tools", "codegen"), "tool", "-n", "controller-gen")
	find.Stderr = os.Stderr
	generator, err := find.Output()
	must(t, err)
	folder := t.TempDir()
	generate := exec.CommandContext(t.Context(), strings.TrimSpace(string(generator)), "crd", "paths=github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1", "output:crd:dir="+folder)
	generate.Dir = root
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("generate the CRDs: %v\n%s", err, out)
	}
	var crds []*unstructured.Unstructured
	for _, plural := range []string{"servicemonitors", "prometheusrules"} {
		data, err := os.ReadFile(filepath.Join(folder, "monitoring.coreos.com_"+plural+".yaml"))
		must(t, err)
		data, err = yaml.YAMLToJSON(data)
		must(t, err)
		crd := &unstructured.Unstructured{}
		must(t, crd.UnmarshalJSON(data))
		crds = append(crds, crd)
	}
	return crds
}

// applyPrometheusCRDs installs them until the end of the test.
func applyPrometheusCRDs(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	crds := prometheusCRDs(t)
	t.Cleanup(func() { deletePrometheusCRDs(t, crds) })
	apply(t, crds...)
	return crds
}

func deletePrometheusCRDs(t *testing.T, crds []*unstructured.Unstructured) {
	t.Helper()
	for _, crd := range crds {
		if err := admin.Delete(context.Background(), crd.DeepCopy()); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	}
	for _, crd := range crds {
		for deadline := time.Now().Add(waitLimit); !apierrors.IsNotFound(admin.Get(context.Background(), client.ObjectKeyFromObject(crd), crd.DeepCopy())); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("%s does not go", crd.GetName())
				return
			}
		}
	}
}

// prometheusObject is the operator's own of a kind of the prometheus-operator.
func prometheusObject(kind, ns string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("monitoring.coreos.com/v1")
	o.SetKind(kind)
	o.SetNamespace(ns)
	o.SetName("memcached-operator")
	return o
}

// endpointOf is what a ServiceMonitor says of its endpoint: the port, the host that its certificate is of, and the
// authorities that verify it.
func endpointOf(t *testing.T, monitor *unstructured.Unstructured) (port, host string, authority []byte) {
	t.Helper()
	endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	must(t, err)
	endpoint := endpoints[0].(map[string]any)
	port, _, _ = unstructured.NestedString(endpoint, "port")
	host, _, _ = unstructured.NestedString(endpoint, "tlsConfig", "serverName")
	name, _, _ := unstructured.NestedString(endpoint, "tlsConfig", "ca", "secret", "name")
	key, _, _ := unstructured.NestedString(endpoint, "tlsConfig", "ca", "secret", "key")
	var secret corev1.Secret
	must(t, admin.Get(t.Context(), client.ObjectKey{Namespace: monitor.GetNamespace(), Name: name}, &secret))
	return port, host, secret.Data[key]
}

// The operator has Prometheus watch it from when that can be said until it can't any more, and works all the time.
func TestPrometheusOperator(t *testing.T) {
	began := time.Now()
	deploy(t)
	ctx, ns := t.Context(), namespace(t)
	must(t, admin.Create(ctx, &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "before"}}))
	available(t, ns, "before")
	asked := func(since time.Time) (requests []string) {
		for _, e := range audited(t, account, since) {
			if strings.Contains(e.RequestURI, "/apis/monitoring.coreos.com") {
				requests = append(requests, e.Verb+" "+e.RequestURI)
			}
		}
		return requests
	}
	if requests := asked(began); len(requests) > 0 {
		t.Errorf("asked for what there is not: %s", strings.Join(requests, ", "))
	}

	var owner appsv1.Deployment
	must(t, admin.Get(ctx, client.ObjectKey{Namespace: system, Name: manager}, &owner))
	monitor, rule := prometheusObject("ServiceMonitor", system), prometheusObject("PrometheusRule", system)
	there := func(what string) {
		t.Helper()
		for _, o := range []*unstructured.Unstructured{monitor, rule} {
			eventually(t, what+": there is a "+o.GetKind(), func() error {
				if err := admin.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
					return err
				}
				if owners := o.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != owner.UID {
					return fmt.Errorf("its owners are %v", owners)
				}
				endpoints, _, _ := unstructured.NestedSlice(o.Object, "spec", "endpoints")
				groups, _, _ := unstructured.NestedSlice(o.Object, "spec", "groups")
				if len(endpoints)+2*len(groups) != map[string]int{"ServiceMonitor": 1, "PrometheusRule": 4}[o.GetKind()] {
					return fmt.Errorf("its spec is %v", o.Object["spec"])
				}
				return nil
			})
		}
	}
	crds := applyPrometheusCRDs(t)
	there("installed")

	// What the ServiceMonitor says leads to the metrics, and verifies them.
	port, host, authority := endpointOf(t, monitor)
	selected, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	var services corev1.ServiceList
	must(t, admin.List(ctx, &services, client.InNamespace(system), client.MatchingLabels(selected)))
	if len(services.Items) != 1 || services.Items[0].Spec.Ports[0].Name != port || services.Items[0].Labels["app.kubernetes.io/name"] != "memcached-operator" {
		t.Errorf("the ServiceMonitor leads to %+v", services.Items)
	}
	mayReadMetrics(t, ns, "reader")
	r, err := ask(t, startBox(t, ns, "default"), question{
		URL: "https://" + net.JoinHostPort(operatorPods(t)[0].Status.PodIP, "8443") + "/metrics", Token: tokenOf(t, ns, "reader"), Host: host, Authorities: authority,
	})
	if err != nil || r.Status != http.StatusOK {
		t.Errorf("asking as the ServiceMonitor says: %d %v", r.Status, err)
	}

	must(t, admin.Patch(ctx, monitor.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null},"spec":{"endpoints":[]}}`)), client.FieldOwner("somebody")))
	must(t, admin.Delete(ctx, rule.DeepCopy()))
	there("repaired")
	// Applying the same again is no write.
	repaired, version := time.Now(), monitor.GetResourceVersion()
	eventually(t, "it is applied again", func() error {
		for _, request := range asked(repaired) {
			if strings.HasPrefix(request, "patch ") && strings.Contains(request, "/servicemonitors/") {
				return nil
			}
		}
		return errors.New("not yet")
	})
	must(t, admin.Get(ctx, client.ObjectKeyFromObject(monitor), monitor))
	if monitor.GetResourceVersion() != version {
		t.Error("what was as it should be was written")
	}

	deletePrometheusCRDs(t, crds)
	must(t, admin.Create(ctx, &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "after"}}))
	available(t, ns, "after")
	// The next resync was due while there was nothing to look at.
	must(t, admin.Delete(ctx, &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "before"}}))
	gone := time.Now()
	eventually(t, "the first Memcached is gone", func() error {
		if err := admin.Get(ctx, client.ObjectKey{Namespace: ns, Name: "before"}, &v1.Memcached{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	if requests := asked(gone); len(requests) > 0 {
		t.Errorf("asked for what is not there any more: %s", strings.Join(requests, ", "))
	}
	for _, crd := range crds {
		crd.SetResourceVersion("")
	}
	apply(t, crds...)
	there("installed again")
	for _, entry := range entries(operatorLog(t)) {
		if entry["level"] == "error" {
			t.Errorf("logged %v", entry)
		}
	}

	must(t, admin.Delete(ctx, &owner, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	for _, o := range []*unstructured.Unstructured{monitor, rule} {
		eventually(t, "the "+o.GetKind()+" goes with the operator", func() error {
			if err := admin.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	}
}
