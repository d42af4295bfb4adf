package cli

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/catalog/registry"
	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/hint"
)

// TestRehearsedCatalog: the catalog is what --catalog names; else what the image has, or what is served if that cannot be pulled.
func TestRehearsedCatalog(t *testing.T) {
	// What is read tells where from by its default channel.
	channel := func(name string) string {
		return fmt.Sprintf(`{"schema":"olm.package","name":"tea","defaultChannel":%q}`+"\n"+`{"schema":"olm.channel","package":"tea","name":%q,"entries":[{"name":"tea.v1"}]}`+"\n"+
			`{"schema":"olm.bundle","package":"tea","name":"tea.v1","properties":[{"type":"olm.package","value":{"packageName":"tea","version":"1.0.0"}},{"type":"olm.bundle.object","value":{"data":"e30="}}]}`+"\n", name, name)
	}
	file := filepath.Join(t.TempDir(), "catalog.json")
	if err := os.WriteFile(file, []byte(channel("named")), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = registry.Serve(t.Context(), listener, catalog.Parse("tea.json", []byte(channel("served"))))
	}()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			_, _ = w.Write([]byte(`{"gitVersion":"v1.36.0"}`))
			return
		}
		http.Error(w, "you may not", http.StatusForbidden)
	}))
	defer api.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: %q}}]}`, api.URL)
	if err := os.WriteFile(kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	at, err := existing.Connect(t.Context(), existing.Options{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	const gone = "127.0.0.1:1/tea-catalog:v1"
	for name, test := range map[string]struct {
		catalog, image, address string
		want                    string
		errs                    []string
	}{
		"named":                       {catalog: file, image: gone, address: listener.Addr().String(), want: "named"},
		"served":                      {address: listener.Addr().String(), want: "served"},
		"served, its image is gone":   {image: gone, address: listener.Addr().String(), want: "served"},
		"neither served nor an image": {image: gone, errs: []string{gone, "list the pods in namespace olm", "fix: name its content with --catalog"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{Streams: Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}}
			r := &upgradeRehearse{catalog: test.catalog}
			r.read.Package = "tea"
			source := &v1alpha1.CatalogSource{Spec: v1alpha1.CatalogSourceSpec{Image: test.image, Address: test.address}}
			source.Namespace, source.Name = "olm", "tea"
			read, err := r.catalogIn(t.Context(), s, at, source)
			if len(test.errs) > 0 {
				told := fmt.Sprint(err)
				for _, one := range hint.Errors(err) {
					told += "\nfix: " + hint.Of(one)
				}
				for _, want := range test.errs {
					if !strings.Contains(told, want) {
						t.Errorf("it says %q, without %q", told, want)
					}
				}
				return
			}
			if err != nil || read.Find("tea").DefaultChannel != test.want {
				t.Errorf("%v, %v", read, err)
			}
		})
	}
}
