package cluster

import (
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// What an answer redirects to never hears of the request, however a client asks.
func TestStay(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s came with the credentials %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		server := httptest.NewServer(http.RedirectHandler(other.URL, status))
		config := &rest.Config{Host: server.URL, BearerToken: "secret"}
		Stay(config)
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Pods("n").Get(t.Context(), "p", metav1.GetOptions{}); err == nil {
			t.Errorf("%d: reading a pod is no error", status)
		}
		if _, err := client.CoreV1().RESTClient().Post().AbsPath("/api/v1/namespaces/n/services/s/proxy/").Body([]byte("{}")).DoRaw(t.Context()); err == nil {
			t.Errorf("%d: posting is no error", status)
		}
		server.Close()
	}
}
