package storagemigration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// server has three pages of one object each, which are called as the tokens that lead there: "", "2", "3".
type server struct {
	client.WithWatch
	list    func(ctx context.Context, token string) error // what becomes of a list, instead of a page; may be nil
	status  func() error                                  // what becomes of a write of the CRD's status; may be nil
	listed  []string                                      // tokens
	written []string                                      // objects that were written back
}

const crdName = "teas.example.com"

func newServer(t *testing.T) *server {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensions.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	crd := &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: crdName, Generation: 1},
		Spec:       apiextensions.CustomResourceDefinitionSpec{Group: "example.com", Names: apiextensions.CustomResourceDefinitionNames{Kind: "Tea"}, Versions: []apiextensions.CustomResourceDefinitionVersion{{Name: "v1beta1"}, {Name: "v1", Storage: true}}},
		Status:     apiextensions.CustomResourceDefinitionStatus{StoredVersions: []string{"v1beta1", "v1"}},
	}
	s := &server{}
	base := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(crd).WithObjects(crd).Build()
	s.WithWatch = interceptor.NewClient(base, interceptor.Funcs{
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			token := (&client.ListOptions{}).ApplyOptions(opts).Continue
			s.listed = append(s.listed, token)
			if s.list != nil {
				if err := s.list(ctx, token); err != nil {
					return err
				}
			}
			following, known := map[string]string{"": "2", "2": "3", "3": "", "3, as of now": ""}[token]
			if !known {
				return apierrors.NewBadRequest("continue key is not valid")
			}
			*list.(*metav1.PartialObjectMetadataList) = metav1.PartialObjectMetadataList{
				ListMeta: metav1.ListMeta{Continue: following},
				Items:    []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m" + token}}},
			}
			return nil
		},
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
			s.written = append(s.written, object.GetName())
			return nil
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if s.status != nil {
				if err := s.status(); err != nil {
					return err
				}
			}
			return c.SubResource(sub).Patch(ctx, object, patch, opts...)
		},
	})
	return s
}

func (s *server) migration() *Migration { return &Migration{Client: s, API: s, CRD: crdName} }

func once(t *testing.T, m *Migration) error {
	t.Helper()
	_, err := m.Run(t.Context())
	return err
}

// storedVersions returns what the CRD says.
func (s *server) storedVersions(t *testing.T) []string {
	t.Helper()
	var crd apiextensions.CustomResourceDefinition
	if err := s.Get(t.Context(), client.ObjectKey{Name: crdName}, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Status.StoredVersions
}

// write changes the CRD, as somebody else.
func (s *server) write(change func(*apiextensions.CustomResourceDefinition)) error {
	var crd apiextensions.CustomResourceDefinition
	if err := s.Get(context.Background(), client.ObjectKey{Name: crdName}, &crd); err != nil {
		return err
	}
	change(&crd)
	return s.Update(context.Background(), &crd)
}

// touch makes a new generation of the CRD.
func (s *server) touch() error {
	return s.write(func(crd *apiextensions.CustomResourceDefinition) { crd.Generation++ })
}

func (s *server) label() error {
	return s.write(func(crd *apiextensions.CustomResourceDefinition) { crd.Labels = map[string]string{"team": "tea"} })
}

// saveOther writes the progress of another migration.
func (s *server) saveOther() error {
	return s.write(func(crd *apiextensions.CustomResourceDefinition) {
		crd.Annotations = map[string]string{Annotation: `{"next":"2"}`}
	})
}

// expired is the answer to a list whose token is too old; a server may have a token that leads on from there.
func expired(token string) error {
	err := apierrors.NewResourceExpired("the provided continue parameter is too old")
	err.ErrStatus.Continue = token
	return err
}

// What fails once, while the third page is listed or after, is gone about again where it failed.
func TestMigrationGoesOn(t *testing.T) {
	out := errors.New("the conversion webhook does not answer")
	for name, test := range map[string]struct {
		list, status func(*server) error // on the first look at page three; on the first write of the CRD's status
		listed       []string
		attempts     int
	}{
		"nothing fails":       {nil, nil, []string{"", "2", "3"}, 1},
		"a page can't be had": {func(*server) error { return out }, nil, []string{"", "2", "3", "3"}, 2},
		"a token expired":     {func(*server) error { return expired("3, as of now") }, nil, []string{"", "2", "3", "3, as of now"}, 1},
		"a token expired, and there is none instead": {func(*server) error { return expired("") }, nil, []string{"", "2", "3", "", "2", "3"}, 1},
		"a token is refused":                         {func(*server) error { return apierrors.NewBadRequest("continue key is not valid") }, nil, []string{"", "2", "3", "", "2", "3"}, 2},
		"a token of the future, after a restore": {func(*server) error {
			err := apierrors.NewTimeoutError("Too large resource version", 1)
			err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
			return err
		}, nil, []string{"", "2", "3", "", "2", "3"}, 2},
		"the crd was written":         {nil, (*server).label, []string{"", "2", "3"}, 1},
		"another migration runs":      {nil, (*server).saveOther, []string{"", "2", "3"}, 2},
		"the crd has another spec":    {nil, (*server).touch, []string{"", "2", "3", "", "2", "3"}, 2},
		"the crd's spec changed":      {nil, func(s *server) error { return errors.Join(out, s.touch()) }, []string{"", "2", "3", "", "2", "3"}, 2},
		"the spec changed on the way": {func(s *server) error { return errors.Join(out, s.touch()) }, nil, []string{"", "2", "3", "", "2", "3"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			if test.list != nil {
				s.list = func(_ context.Context, token string) error {
					if token != "3" {
						return nil
					}
					s.list = nil
					return test.list(s)
				}
			}
			if test.status != nil {
				s.status = func() error {
					s.status = nil
					return test.status(s)
				}
			}
			m := s.migration()
			attempts := 1
			for err := once(t, m); err != nil; err = once(t, m) {
				if attempts++; attempts > 5 {
					t.Fatal(err)
				}
			}
			if attempts != test.attempts {
				t.Errorf("%d attempts, want %d", attempts, test.attempts)
			}
			if diff := cmp.Diff(test.listed, s.listed); diff != "" {
				t.Error(diff)
			}
			for _, object := range []string{"m", "m2"} {
				if !slices.Contains(s.written, object) {
					t.Errorf("%s was not written back", object)
				}
			}
			if got := s.storedVersions(t); !slices.Equal(got, []string{"v1"}) {
				t.Errorf("the crd lists %q", got)
			}
		})
	}
}

// A token that expires whenever it is used is an error, not a loop.
func TestMigrationEndsOnATokenThatAlwaysExpires(t *testing.T) {
	s := newServer(t)
	s.list = func(_ context.Context, token string) error {
		if token == "" {
			return nil
		}
		return expired("expired, too")
	}
	if err := once(t, s.migration()); !apierrors.IsResourceExpired(err) {
		t.Errorf("got %v", err)
	}
	if got := s.storedVersions(t); len(got) != 2 {
		t.Errorf("the crd lists %q", got)
	}
}

// However many pages there are, each has its own time.
func TestMigrationOfManyObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.list = func(ctx context.Context, token string) error {
			time.Sleep(pageTimeout * 6 / 10)
			if ctx.Err() != nil {
				return fmt.Errorf("page %q: %w", token, ctx.Err())
			}
			return nil
		}
		if err := once(t, s.migration()); err != nil {
			t.Error(err)
		}
		s = newServer(t)
		s.list = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}
		if err := once(t, s.migration()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a server that never answers: %v", err)
		}
	})
}

// An annotation that could not be taken away at the end of a run is taken away by the next.
func TestMigrationForgets(t *testing.T) {
	for _, save := range []bool{true, false} {
		s := newServer(t)
		if err := s.write(func(crd *apiextensions.CustomResourceDefinition) {
			crd.Annotations = map[string]string{Annotation: "{}"}
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.Status().Update(t.Context(), s.prunedCRD(t)); err != nil {
			t.Fatal(err)
		}
		m := s.migration()
		m.Save = save
		if err := once(t, m); err != nil {
			t.Fatal(err)
		}
		if len(s.listed) != 0 || slices.Contains(s.written, crdName) != save {
			t.Errorf("with Save %t it lists %q and writes %q", save, s.listed, s.written)
		}
	}
}

// prunedCRD is the CRD with its stored version alone.
func (s *server) prunedCRD(t *testing.T) *apiextensions.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensions.CustomResourceDefinition{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: crdName}, crd); err != nil {
		t.Fatal(err)
	}
	crd.Status.StoredVersions = []string{"v1"}
	return crd
}
