package crdconversion

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var update = flag.Bool("update", false, "write the golden files")

// What each AdmissionReview of an update is answered: whether the conversion is kept, or left as the update has it.
func TestConversion(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&admission.Webhook{Handler: Conversion{}})
	t.Cleanup(server.Close)
	for name, kept := range map[string]bool{
		"upgrade":                     true,
		"upgrade-without-conversion":  false,
		"install":                     false,
		"first-conversion":            false,
		"first-conversion-of-old-crd": false,
		"lost-before":                 false,
		"another-crd":                 false,
		"by-address":                  false,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request, err := os.ReadFile(filepath.Join("testdata", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			response := post(t, server, request)
			if !response.Allowed || response.UID != "8a2e7d4b-52d0-4b86-8e5b-0f6d2a1f3c77" {
				t.Fatalf("answered %+v", response)
			}
			if (len(response.Patch) > 0) != kept || (response.PatchType != nil) != kept {
				t.Fatalf("patch %s", response.Patch)
			}
			if !kept {
				return
			}
			var got bytes.Buffer
			if err := json.Indent(&got, response.Patch, "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			golden := filepath.Join("testdata", name+".patch")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is no CRD is refused with a reason; the failure policy then lets the update pass as it is.
func TestConversionOfNonsense(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&admission.Webhook{Handler: Conversion{}})
	t.Cleanup(server.Close)
	request, err := os.ReadFile(filepath.Join("testdata", "upgrade.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, nonsense := range []string{`"conversion": 7`, `"conversion": {"strategy": "Webhook", "webhook": []}`} {
		broken := bytes.Replace(request, []byte(`"conversion": {`), []byte(nonsense+`, "other": {`), 1)
		if response := post(t, server, broken); response.Allowed || !strings.Contains(response.Result.Message, "spec.conversion") {
			t.Errorf("%s: answered %+v", nonsense, response)
		}
	}
}

func post(t *testing.T, server *httptest.Server, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	response, err := http.Post(server.URL, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(response.Body).Decode(&review); err != nil {
		t.Fatal(err)
	}
	if review.Response == nil {
		t.Fatal("no response")
	}
	return review.Response
}
