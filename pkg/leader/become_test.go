package leader

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// discard is how a process becomes the leader that says nothing.
func discard(lost func(error)) *settings {
	return &settings{longest: 16 * time.Second, log: logr.Discard(), lost: lost}
}

// A pod takes over when the leader's pod ends, and the leader notices when its lock is another's.
func TestBecome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.node("node", corev1.ConditionTrue)
		first, second := podNamed("first"), podNamed("second")
		s.pod(first, "node", corev1.PodRunning)
		s.pod(second, "node", corev1.PodRunning)
		lost := make(chan error, 1)
		if err := discard(func(err error) { lost <- err }).become(t.Context(), t.Context(), view(t, &link{server: s}, first)); err != nil {
			t.Fatal(err)
		}
		became := make(chan error, 1)
		go func() { became <- discard(nil).become(t.Context(), t.Context(), view(t, &link{server: s}, second)) }()
		time.Sleep(time.Hour)
		select {
		case err := <-became:
			t.Fatalf("a second pod leads beside the first: %v", err)
		case err := <-lost:
			t.Fatal(err)
		default:
		}

		s.pod(first, "node", corev1.PodFailed) // evicted, it is said, but it runs
		evicted := time.Now()
		err := <-lost
		if len(became) > 0 || !errors.Is(err, errTaken) {
			t.Errorf("the first pod learns it when the second leads: %v", err)
		}
		if err := <-became; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(evicted); took < Wait || took > Wait+21*time.Second {
			t.Errorf("a takeover lasts %s", took)
		}
	})
}

// A leader that cannot reach the API server stops before another may lead.
func TestBecomeCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.node("node", corev1.ConditionTrue)
		me := podNamed("me")
		s.pod(me, "node", corev1.PodRunning)
		wire := &link{server: s}
		lost := make(chan error, 1)
		if err := discard(func(err error) { lost <- err }).become(t.Context(), t.Context(), view(t, wire, me)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		wire.set(0, true)
		cut := time.Now()
		if err := <-lost; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(cut); took > Wait-3*time.Second {
			t.Errorf("it stops after %s", took)
		}
	})
}

func TestBecomeRecreatesTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.node("node", corev1.ConditionTrue)
		me := podNamed("me")
		s.pod(me, "node", corev1.PodRunning)
		if err := discard(func(err error) { t.Error(err) }).become(t.Context(), t.Context(), view(t, &link{server: s}, me)); err != nil {
			t.Fatal(err)
		}
		s.remove("configmaps", "lock")
		time.Sleep(time.Minute)
		if owners := s.lock().OwnerReferences; len(owners) != 1 || owners[0].UID != me.UID {
			t.Errorf("the lock's owners are %v", owners)
		}
	})
}

// What cannot pass is an error at once; the end of the context is one.
func TestBecomeErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		me, other := podNamed("me"), podNamed("other")
		s.put("configmaps", "lock", ownedBy(me, other))
		want := "becoming the leader by configmap system/lock: configmap system/lock is no leader's lock"
		if err := discard(nil).become(t.Context(), t.Context(), view(t, &link{server: s}, me)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		s.node("node", corev1.ConditionTrue)
		s.pod(other, "node", corev1.PodRunning)
		s.put("configmaps", "lock", ownedBy(other))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := discard(nil).become(ctx, t.Context(), view(t, &link{server: s}, me)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestBecomeOutsideOfACluster(t *testing.T) {
	if _, err := os.Stat(tokenFile); err == nil {
		t.Skip("the test runs in a pod")
	}
	for _, name := range []string{"POD_NAMESPACE", "POD_NAME", "POD_UID"} {
		t.Setenv(name, "")
	}
	if err := Become(t.Context(), "lock", WithLogger(logr.Discard())); err != nil {
		t.Error(err)
	}
	t.Setenv("POD_NAMESPACE", metav1.NamespaceDefault)
	want := "set POD_NAMESPACE, POD_NAME and POD_UID"
	if err := Become(t.Context(), "lock", WithConfig(&rest.Config{})); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestPodOf(t *testing.T) {
	t.Parallel()
	token := func(claims string) string {
		return "header." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".signature"
	}
	bound := token(`{"kubernetes.io":{"namespace":"system","pod":{"name":"me","uid":"me-uid"}}}`)
	all := map[string]string{"POD_NAMESPACE": "system", "POD_NAME": "me", "POD_UID": "me-uid"}
	for name, test := range map[string]struct {
		env              map[string]string
		token, namespace string
		want             string // a part of the error
		none             bool
	}{
		"variables":                     {env: all},
		"token":                         {token: bound},
		"token and a part of variables": {env: map[string]string{"POD_NAMESPACE": "other"}, token: bound},
		"token and its namespace":       {token: bound, namespace: "system"},
		"another namespace":             {token: bound, namespace: "other", want: "the lock cannot be in the namespace other: its owner, pod me, is in system"},
		"neither":                       {none: true, want: "POD_NAMESPACE is not set, and there is no token"},
		"a namespace alone":             {namespace: "system", want: "which pod this is, is not known: open"},
		"unbound token":                 {token: token(`{"kubernetes.io":{"namespace":"system"}}`), want: "the token is not bound to a pod: set POD_NAMESPACE"},
		"no token":                      {token: "secret", want: "it is no JSON web token"},
		"no base64":                     {token: "a.!.c", want: "the token's claims: illegal base64"},
		"no JSON":                       {token: token("{"), want: "the token's claims: unexpected end of JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "token")
			if test.token != "" {
				if err := os.WriteFile(file, []byte(test.token), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			pod, err := (&settings{namespace: test.namespace}).pod(func(name string) string { return test.env[name] }, file)
			switch {
			case test.want == "" && (err != nil || pod != podNamed("me")):
				t.Error(pod, err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, ErrNoNamespace) != test.none):
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}
