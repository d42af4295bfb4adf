package storagemigration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// store is an API server with one CRD and many objects of it, which pages its lists by tokens that expire.
type store struct {
	t       *testing.T
	mu      sync.Mutex
	crd     *apiextensions.CustomResourceDefinition
	objects int
	stored  []string     // the version that each object is stored in
	writes  int          // of objects, but for dry runs
	reject  map[int]bool // objects that admission refuses
	expire  int          // the page whose token has expired when it is used, once
	patched func(writes int)
}

// tea is an object as a client of one version sees it.
func tea(i int) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Tea"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t" + strconv.Itoa(i)}}
}

func newStore(t *testing.T, objects int) *store {
	t.Helper()
	s := &store{t: t, objects: objects, reject: map[int]bool{}, expire: -1, crd: &apiextensions.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: crdName, UID: "u", Generation: 1, ResourceVersion: "1"},
		Spec: apiextensions.CustomResourceDefinitionSpec{Group: "example.com", Names: apiextensions.CustomResourceDefinitionNames{Kind: "Tea"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{Name: "v1beta1"}, {Name: "v1", Storage: true}}},
		Status: apiextensions.CustomResourceDefinitionStatus{StoredVersions: []string{"v1beta1", "v1"}},
	}}
	for range objects {
		s.stored = append(s.stored, "v1beta1")
	}
	return s
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := func(code int, object any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(object); err != nil {
			s.t.Error(err)
		}
	}
	fail := func(err *apierrors.StatusError) {
		err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		answer(int(err.ErrStatus.Code), err.ErrStatus)
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"):
		if r.Method == http.MethodPatch {
			var patch apiextensions.CustomResourceDefinition
			if err := json.NewDecoder(r.Body).Decode(&patch); err != nil || patch.ResourceVersion != s.crd.ResourceVersion {
				fail(apierrors.NewConflict(schema.GroupResource{}, crdName, err))
				return
			}
			version, _ := strconv.Atoi(s.crd.ResourceVersion)
			s.crd.ResourceVersion = strconv.Itoa(version + 1)
			if strings.HasSuffix(r.URL.Path, "/status") {
				s.crd.Status.StoredVersions = patch.Status.StoredVersions
			} else {
				s.crd.Annotations = patch.Annotations
			}
		}
		answer(http.StatusOK, s.crd)
	case r.Method == http.MethodGet:
		if err := s.list(r, answer); err != nil {
			fail(err)
		}
	default:
		i, err := strconv.Atoi(r.URL.Path[strings.LastIndex(r.URL.Path, "/t")+2:])
		if err != nil {
			s.t.Error(err)
		}
		if s.reject[i] {
			fail(apierrors.NewForbidden(schema.GroupResource{}, r.URL.Path, fmt.Errorf("denied")))
			return
		}
		if r.URL.Query().Get("dryRun") == "" {
			s.stored[i] = "v1"
			s.writes++
			if s.patched != nil {
				s.patched(s.writes)
			}
		}
		answer(http.StatusOK, tea(i))
	}
}

// list answers a page. A token is "REVISION:INDEX".
func (s *store) list(r *http.Request, answer func(int, any)) *apierrors.StatusError {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	from := 0
	if token := r.URL.Query().Get("continue"); token != "" {
		revision, index, _ := strings.Cut(token, ":")
		if from, err = strconv.Atoi(index); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		if revision == "old" && s.expire == from/limit {
			s.expire = -1
			expired := apierrors.NewResourceExpired("the provided continue parameter is too old")
			expired.ErrStatus.Continue = "new:" + index
			return expired
		}
	}
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	for i := from; i < min(from+limit, s.objects); i++ {
		list.Items = append(list.Items, tea(i))
	}
	if left := int64(s.objects - from - len(list.Items)); left > 0 {
		list.Continue, list.RemainingItemCount = fmt.Sprintf("old:%d", from+limit), &left
	}
	answer(http.StatusOK, list)
	return nil
}

// migration is a process's.
func (s *store) migration(t *testing.T) *Migration {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	if err := apiextensions.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Tea"}, meta.RESTScopeNamespace)
	mapper.Add(apiextensions.SchemeGroupVersion.WithKind("CustomResourceDefinition"), meta.RESTScopeRoot)
	c, err := client.New(&rest.Config{Host: server.URL, QPS: -1}, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return &Migration{Client: c, API: c, CRD: crdName, Workers: 8, Save: true}
}

const many = 20_000

// TestMigrationOfTwentyThousand kills a migration in the middle; another process goes on, through an expired token.
func TestMigrationOfTwentyThousand(t *testing.T) {
	s := newStore(t, many)
	ctx, kill := context.WithCancel(t.Context())
	s.patched = func(writes int) {
		if writes == many/2+50 {
			kill()
		}
	}
	if _, err := s.migration(t).Run(ctx); err == nil {
		t.Fatal("it was not killed")
	}
	s.mu.Lock() // a request may be under way
	before := s.writes
	s.expire = 150
	s.mu.Unlock()
	reports := 0
	m := s.migration(t)
	m.Report = func(p Progress) {
		if reports++; p.Objects <= many/2-page {
			t.Errorf("it began anew: %+v", p)
		}
	}
	result, err := m.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if result.Objects != many || !result.Pruned || s.expire != -1 {
		t.Errorf("%+v; the token expired: %t", result, s.expire == -1)
	}
	if again := s.writes - many; again > 2*page || before > many*6/10 {
		t.Errorf("%d objects are written twice; %d were before the kill", again, before)
	}
	if i := slices.Index(s.stored, "v1beta1"); i >= 0 || !slices.Equal(s.crd.Status.StoredVersions, []string{"v1"}) || len(s.crd.Annotations) > 0 {
		t.Errorf("object %d is stored as before; the crd has %v, %v", i, s.crd.Status.StoredVersions, s.crd.Annotations)
	}
	if result, err = s.migration(t).Run(t.Context()); err != nil || result.Pruned || result.Objects > 0 {
		t.Errorf("once more: %+v %v", result, err)
	}
}

// A dry run tells of all objects that cannot be written, and changes nothing. Without it, they keep the versions from being pruned.
func TestRejected(t *testing.T) {
	s := newStore(t, 500)
	for _, i := range []int{3, 250, 251} {
		s.reject[i] = true
	}
	m := s.migration(t)
	m.DryRun = true
	result, err := m.Run(t.Context())
	if result.Objects != 500 || result.Pruned || err == nil || strings.Count(err.Error(), "denied") != 3 || !strings.Contains(err.Error(), "writing Tea ns/t250 back") {
		t.Errorf("%+v, %v", result, err)
	}
	if s.writes > 0 || len(s.crd.Annotations) > 0 || len(s.crd.Status.StoredVersions) != 2 {
		t.Errorf("%d writes, %v", s.writes, s.crd)
	}
	if _, err = s.migration(t).Run(t.Context()); err == nil || len(s.crd.Status.StoredVersions) != 2 {
		t.Errorf("%v: %v", err, s.crd.Status.StoredVersions)
	}
	s.reject = nil
	if result, err = s.migration(t).Run(t.Context()); err != nil || !result.Pruned {
		t.Errorf("%+v, %v", result, err)
	}
}

// What a dry run did is no progress of the run after it.
func TestRunAfterADryRun(t *testing.T) {
	s := newStore(t, 300)
	m := s.migration(t)
	m.DryRun = true
	if _, err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.DryRun = false
	result, err := m.Run(t.Context())
	if err != nil || result.Objects != 300 || s.writes != 300 || slices.Contains(s.stored, "v1beta1") {
		t.Errorf("%+v, %v: %d objects are written", result, err, s.writes)
	}
}

// A saved token that the API server refuses, as after a restore of etcd, stops one process, not all that come after it.
func TestSavedTokenIsRefused(t *testing.T) {
	s := newStore(t, 300)
	s.crd.Annotations = map[string]string{Annotation: `{"crd": "u", "generation": 1, "objects": 100, "next": "of another etcd"}`}
	if _, err := s.migration(t).Run(t.Context()); !apierrors.IsBadRequest(err) {
		t.Fatalf("the token is not refused: %v", err)
	}
	result, err := s.migration(t).Run(t.Context())
	if err != nil || !result.Pruned || slices.Contains(s.stored, "v1beta1") {
		t.Errorf("%+v, %v", result, err)
	}
}
