package conversion

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1alpha1"
	"github.com/olmkit/olmkit/operator/api/v1beta1"
)

// server is the conversion webhook as a manager serves it, and its log.
func server(t *testing.T) (*httptest.Server, *strings.Builder) {
	t.Helper()
	return serve(t, func(scheme *runtime.Scheme) (conversion.Converter, error) {
		return conversion.NewHubSpokeConverter(&v1.Memcached{}, AlphaWithV1(), BetaWithV1())(scheme)
	})
}

func serve(t *testing.T, by func(*runtime.Scheme) (conversion.Converter, error)) (*httptest.Server, *strings.Builder) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, v1beta1.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	converter, err := by(scheme)
	if err != nil {
		t.Fatal(err)
	}
	registry := conversion.NewRegistry()
	if err := registry.RegisterConverter(v1.GroupVersion.WithKind("Memcached").GroupKind(), Counted(converter)); err != nil {
		t.Fatal(err)
	}
	log := &strings.Builder{}
	logger := funcr.New(func(_, args string) { log.WriteString(args + "\n") }, funcr.Options{})
	s := httptest.NewServer(Handler(scheme, registry, logger))
	t.Cleanup(s.Close)
	return s, log
}

func post(t *testing.T, s *httptest.Server, body []byte) (int, apiextensions.ConversionReview) {
	t.Helper()
	response, err := http.Post(s.URL+Path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var review apiextensions.ConversionReview
	if response.StatusCode == http.StatusOK {
		if err := json.NewDecoder(response.Body).Decode(&review); err != nil {
			t.Fatal(err)
		}
	}
	return response.StatusCode, review
}

// A manager whose hub is v1beta1 converts to v1 as one whose hub is v1: while the first is upgraded to the second, both
// are asked.
func TestEitherHub(t *testing.T) {
	t.Parallel()
	request, err := os.ReadFile(filepath.Join("testdata", "review.json"))
	if err != nil {
		t.Fatal(err)
	}
	late, _ := server(t)
	early, _ := serve(t, func(scheme *runtime.Scheme) (conversion.Converter, error) {
		return conversion.NewHubSpokeConverter(&v1beta1.Memcached{}, AlphaWithBeta(), V1WithBeta())(scheme)
	})
	// First to v1, then what came of it to the others.
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		var review apiextensions.ConversionReview
		if err := json.Unmarshal(request, &review); err != nil {
			t.Fatal(err)
		}
		review.Request.DesiredAPIVersion = "cache.example.com/" + version
		body, err := json.Marshal(review)
		if err != nil {
			t.Fatal(err)
		}
		_, want := post(t, late, body)
		status, got := post(t, early, body)
		if status != http.StatusOK || got.Response.Result.Status != "Success" {
			t.Fatalf("to %s: answered %d %+v", version, status, got.Response)
		}
		if diff := cmp.Diff(want.Response.ConvertedObjects, got.Response.ConvertedObjects); diff != "" {
			t.Errorf("to %s: %s", version, diff)
		}
		if version == "v1" {
			review.Request.Objects = got.Response.ConvertedObjects
			if request, err = json.Marshal(review); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The request is as an API server sends it: objects of two versions, with all of their metadata.
func TestReviews(t *testing.T) {
	t.Parallel()
	s, log := server(t)
	request, err := os.ReadFile(filepath.Join("testdata", "review.json"))
	if err != nil {
		t.Fatal(err)
	}
	status, review := post(t, s, request)
	if status != http.StatusOK || review.Response == nil || review.Response.Result.Status != "Success" || review.Response.UID != "705ab4f5-6393-11e8-b7cc-42010a800002" {
		t.Fatalf("answered %d %+v", status, review.Response)
	}
	var got []string
	for _, object := range review.Response.ConvertedObjects {
		var indented bytes.Buffer
		if err := json.Indent(&indented, object.Raw, "", "  "); err != nil {
			t.Fatal(err)
		}
		got = append(got, indented.String())
	}
	golden(t, "converted.json", strings.Join(got, "\n")+"\n")
	if line := log.String(); !strings.Contains(line, `"from"="v1alpha1,v1beta1" "to"="v1" "objects"=2 "failed"=0`) {
		t.Errorf("logged %s", line)
	}

	// What came out, sent back to where it came from, is what went in.
	var sent apiextensions.ConversionReview
	if err := json.Unmarshal(request, &sent); err != nil {
		t.Fatal(err)
	}
	for i, object := range review.Response.ConvertedObjects {
		var type_ struct {
			APIVersion string `json:"apiVersion"`
		}
		if err := json.Unmarshal(sent.Request.Objects[i].Raw, &type_); err != nil {
			t.Fatal(err)
		}
		back, err := json.Marshal(apiextensions.ConversionReview{Request: &apiextensions.ConversionRequest{
			UID: "u", DesiredAPIVersion: type_.APIVersion, Objects: []runtime.RawExtension{object},
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, review := post(t, s, back)
		var want, got any
		if err := json.Unmarshal(sent.Request.Objects[i].Raw, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(review.Response.ConvertedObjects[0].Raw, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestReviewsThatCannotBeAnswered(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body   string
		status int
	}{
		"not JSON":        {`{`, http.StatusBadRequest},
		"no request":      {`{"kind":"ConversionReview"}`, http.StatusBadRequest},
		"unknown version": {`{"request":{"uid":"u","desiredAPIVersion":"cache.example.com/v9","objects":[{"apiVersion":"cache.example.com/v1","kind":"Memcached"}]}}`, http.StatusOK},
		"unknown kind":    {`{"request":{"uid":"u","desiredAPIVersion":"cache.example.com/v1","objects":[{"apiVersion":"cache.example.com/v1beta1","kind":"Redis"}]}}`, http.StatusOK},
		"same version":    {`{"request":{"uid":"u","desiredAPIVersion":"cache.example.com/v1","objects":[{"apiVersion":"cache.example.com/v1","kind":"Memcached"}]}}`, http.StatusOK},
		"wrong type":      {`{"request":{"uid":"u","desiredAPIVersion":"cache.example.com/v1","objects":[{"apiVersion":"cache.example.com/v1beta1","kind":"Memcached","spec":{"size":"x"}}]}}`, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := server(t)
			status, review := post(t, s, []byte(test.body))
			if status != test.status {
				t.Fatalf("answered %d", status)
			}
			if status == http.StatusOK && (review.Response.Result.Status != "Failure" || review.Response.Result.Message == "") {
				t.Errorf("answered %+v", review.Response)
			}
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s", path, diff)
	}
}
