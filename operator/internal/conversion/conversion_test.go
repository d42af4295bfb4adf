package conversion

import (
	"context"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1alpha1"
	"github.com/olmkit/olmkit/operator/api/v1beta1"
)

var (
	rounds = flag.Int("rounds", unhurried, "fuzzed objects per round trip")
	seed   = flag.Int64("seed", 1, "seed of the fuzzed objects")
	update = flag.Bool("update", false, "write the golden files")
)

func alphaToV1(src *v1alpha1.Memcached, dst *v1.Memcached) error {
	return AlphaWithV1().ConvertSpokeToHub(context.Background(), src, dst)
}

func v1ToAlpha(src *v1.Memcached, dst *v1alpha1.Memcached) error {
	return AlphaWithV1().ConvertHubToSpoke(context.Background(), src, dst)
}

// there is src in another version.
func there[S, D any](t testing.TB, src *S, to func(*S, *D) error) *D {
	t.Helper()
	before := wire(t, src)
	dst := new(D)
	if err := to(src, dst); err != nil {
		t.Fatalf("converting\n%s\n%v", before, err)
	}
	if after := wire(t, src); after != before {
		t.Fatalf("the source was changed: %s", cmp.Diff(before, after))
	}
	return dst
}

// roundTrip fails unless src comes back from another version as it was, byte for byte on the wire.
func roundTrip[S, D any](t testing.TB, src *S, to func(*S, *D) error, back func(*D, *S) error) {
	t.Helper()
	via := there(t, src, to)
	if got, want := wire(t, there(t, via, back)), wire(t, src); got != want {
		t.Fatalf("came back changed by way of\n%s\n%s", wire(t, via), cmp.Diff(want, got))
	}
}

func wire(t testing.TB, object any) string {
	t.Helper()
	out, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// filler fills every field, or about half of them, with values as they come off the wire.
func filler(seed int64, nilChance float64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(nilChance).NumElements(0, 4).Funcs(
		func(*metav1.TypeMeta, randfill.Continue) {},
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			c.FillNoCustom(m)
			m.ManagedFields = nil
			m.CreationTimestamp, m.DeletionTimestamp = metav1.Time{}, nil
			// What an object says about its own version, or about none, is nobody's memory.
			for key := range m.Annotations {
				if strings.HasPrefix(key, AnnotationPrefix) {
					delete(m.Annotations, key)
				}
			}
		},
		func(t *metav1.Time, c randfill.Continue) { t.Time = time.Unix(c.Int63n(1<<32), 0).UTC() },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63n(1<<40), resource.DecimalSI)
		},
		func(i *int32, c randfill.Continue) {
			if *i = c.Int31(); c.Intn(4) == 0 {
				*i = 0
			}
		},
		func(s *v1beta1.MemcachedSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Image = reference(c)
		},
		func(i *v1.Image, c randfill.Continue) {
			c.FillNoCustom(i)
			if c.Bool() {
				if whole := SplitImage(reference(c)); whole != nil {
					*i = *whole
				}
			}
		},
		func(s *v1beta1.MemcachedStatus, c randfill.Continue) {
			c.FillNoCustom(s)
			// Names that repeat: a list says what a map cannot.
			if len(s.Nodes) > 1 && c.Bool() {
				s.Nodes[0] = s.Nodes[1]
			}
		},
	)
}

func reference(c randfill.Continue) string {
	parts := []string{"", "memcached", "localhost:5000/a/b", "a:", ":1", "@", "x@sha256:" + strings.Repeat("0", 64), "a/b:1.6@sha256:1f", "a:b:c", "r:5000", " a ", c.String(0)}
	return parts[c.Intn(len(parts))]
}

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	for _, nilChance := range []float64{0, .5} {
		f := filler(*seed, nilChance)
		for range *rounds {
			a, b, c := new(v1alpha1.Memcached), new(v1beta1.Memcached), new(v1.Memcached)
			f.Fill(a)
			f.Fill(b)
			f.Fill(c)
			a, b, c = normal(t, a), normal(t, b), normal(t, c)
			roundTrip(t, a, alphaToBeta, betaToAlpha)
			roundTrip(t, a, alphaToV1, v1ToAlpha)
			roundTrip(t, b, betaToAlpha, alphaToBeta)
			roundTrip(t, b, betaToV1, v1ToBeta)
			roundTrip(t, c, v1ToBeta, betaToV1)
			roundTrip(t, c, v1ToAlpha, alphaToV1)
			roundTrip(t, there(t, c, v1ToAlpha), alphaToBeta, betaToAlpha)
			roundTrip(t, there(t, a, alphaToV1), v1ToBeta, betaToV1)
		}
	}
}

// Walks an object through random versions: wherever it has been, it says the same when it is shown in v1 again.
func TestRandomWalks(t *testing.T) {
	t.Parallel()
	f, random := filler(*seed, .3), rand.New(rand.NewPCG(uint64(*seed), 2))
	for range *rounds / 10 {
		c := new(v1.Memcached)
		f.Fill(c)
		c = normal(t, c)
		want, path := wire(t, c), "v1"
		for range 6 {
			switch random.IntN(2) {
			case 0:
				b := there(t, c, v1ToBeta)
				if random.IntN(2) == 0 {
					b = there(t, there(t, b, betaToAlpha), alphaToBeta)
					path += " v1beta1 v1alpha1 v1beta1 v1"
				}
				c = there(t, b, betaToV1)
			case 1:
				c = there(t, there(t, c, v1ToAlpha), alphaToV1)
				path += " v1alpha1 v1"
			}
		}
		if got := wire(t, c); got != want {
			t.Fatalf("changed on the way %s:\n%s", path, cmp.Diff(want, got))
		}
	}
}

// Each case is an object that was shown in an older version, changed there, and is read in the newer one.
func TestEditsInAnOlderVersionWin(t *testing.T) {
	t.Parallel()
	full := func() *v1.Memcached {
		return &v1.Memcached{
			Spec: v1.MemcachedSpec{
				Replicas: 3,
				Image:    &v1.Image{Repository: "example.com/memcached", Tag: "1.6", PullPolicy: "Always"},
				Service:  v1.Service{Port: 11300},
				Cache:    v1.Cache{MemoryMegabytes: 256, MaxConnections: 10, ExtraArgs: []string{"-v"}},
			},
			Status: v1.MemcachedStatus{
				Nodes:         map[string]v1.Node{"a": {Ready: true}, "b": {Ready: true}},
				ReadyReplicas: 2, ObservedGeneration: 7,
			},
		}
	}
	for name, test := range map[string]struct {
		edit func(*v1beta1.Memcached)
		want func(*v1.Memcached)
	}{
		"nothing": {func(*v1beta1.Memcached) {}, func(*v1.Memcached) {}},
		"size":    {func(m *v1beta1.Memcached) { m.Spec.Size = 5 }, func(m *v1.Memcached) { m.Spec.Replicas = 5 }},
		"port":    {func(m *v1beta1.Memcached) { m.Spec.ContainerPort = 1 }, func(m *v1.Memcached) { m.Spec.Service.Port = 1 }},
		"image keeps the pull policy": {
			func(m *v1beta1.Memcached) { m.Spec.Image = "other:2" },
			func(m *v1.Memcached) { m.Spec.Image = &v1.Image{Repository: "other", Tag: "2", PullPolicy: "Always"} },
		},
		"a node gone, a node come": {
			func(m *v1beta1.Memcached) { m.Status.Nodes = []string{"b", "c"} },
			func(m *v1.Memcached) { m.Status.Nodes = map[string]v1.Node{"b": {Ready: true}, "c": {}} },
		},
		"the annotation dropped": {
			func(m *v1beta1.Memcached) { m.Annotations = nil },
			func(m *v1.Memcached) {
				m.Spec.Image.PullPolicy = ""
				m.Spec.Cache = v1.Cache{MemoryMegabytes: 64, MaxConnections: 1024}
				m.Status = v1.MemcachedStatus{Nodes: map[string]v1.Node{"a": {}, "b": {}}}
			},
		},
		"the annotation not JSON": {
			func(m *v1beta1.Memcached) { m.Annotations[AnnotationPrefix+"v1"] = "{" },
			func(m *v1.Memcached) {
				m.Spec.Image.PullPolicy = ""
				m.Spec.Cache = v1.Cache{MemoryMegabytes: 64, MaxConnections: 1024}
				m.Status = v1.MemcachedStatus{Nodes: map[string]v1.Node{"a": {}, "b": {}}}
			},
		},
		"the annotation forged": {
			func(m *v1beta1.Memcached) {
				m.Annotations[AnnotationPrefix+"v1"] = `{"spec":{"replicas":"x","service":null,"cache":{"maxConnections":9},"Image":{"tag":"evil"}},"status":5,"metadata":{"name":"x"}}`
			},
			func(m *v1.Memcached) {
				m.Spec.Image.PullPolicy = ""
				m.Spec.Cache = v1.Cache{MemoryMegabytes: 64, MaxConnections: 9}
				m.Status = v1.MemcachedStatus{Nodes: map[string]v1.Node{"a": {}, "b": {}}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown := there(t, full(), v1ToBeta)
			test.edit(shown)
			want := full()
			test.want(want)
			if diff := cmp.Diff(want, there(t, shown, betaToV1)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What the first release with a converter stored, as v1alpha1 with an annotation, is what later ones must understand.
func TestObjectsStoredByEarlierReleases(t *testing.T) {
	t.Parallel()
	stored := `{"kind":"Memcached","apiVersion":"cache.example.com/v1alpha1",
		"metadata":{"name":"m","annotations":{"conversion.cache.example.com/v1beta1":"{\"spec\":{\"containerPort\":11300,\"image\":\"a/b:1@sha256:00\"},\"status\":{\"conditions\":[{\"lastTransitionTime\":\"2024-01-02T03:04:05Z\",\"message\":\"\",\"reason\":\"R\",\"status\":\"True\",\"type\":\"Available\"}]}}"}},
		"spec":{"size":4},"status":{"nodes":["y","x"]}}`
	var a v1alpha1.Memcached
	if err := json.Unmarshal([]byte(stored), &a); err != nil {
		t.Fatal(err)
	}
	got := there(t, &a, alphaToV1)
	want := `{"metadata":{"name":"m","annotations":{"conversion.cache.example.com/v1beta1":"{\"status\":{\"nodes\":[\"y\",\"x\"]}}"}},` +
		`"spec":{"replicas":4,"image":{"repository":"a/b","tag":"1","digest":"sha256:00"},"service":{"port":11300},"cache":{"memoryMegabytes":64,"maxConnections":1024}},` +
		`"status":{"nodes":{"x":{"ready":false},"y":{"ready":false}},"conditions":[{"type":"Available","status":"True","lastTransitionTime":"2024-01-02T03:04:05Z","reason":"R","message":""}]}}`
	if diff := cmp.Diff(want, wire(t, got)); diff != "" {
		t.Error(diff)
	}
	a.TypeMeta = metav1.TypeMeta{}
	roundTrip(t, &a, alphaToV1, v1ToAlpha)
}

func TestImages(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("ab", 32)
	for reference, want := range map[string]*v1.Image{
		"":                                     nil,
		"memcached":                            {Repository: "memcached"},
		"memcached:1.6":                        {Repository: "memcached", Tag: "1.6"},
		"localhost:5000/memcached":             {Repository: "localhost:5000/memcached"},
		"localhost:5000/memcached:1.6":         {Repository: "localhost:5000/memcached", Tag: "1.6"},
		"r/m@" + digest:                        {Repository: "r/m", Digest: digest},
		"r:5000/m:1.6@" + digest:               {Repository: "r:5000/m", Tag: "1.6", Digest: digest},
		"m:":                                   {Repository: "m:"},
		":1":                                   {Repository: ":1"},
		"m@latest":                             {Repository: "m@latest"},
		"m:" + strings.Repeat("t", 129):        {Repository: "m:" + strings.Repeat("t", 129)},
		"m@sha256:" + strings.Repeat("0", 256): {Repository: "m@sha256:" + strings.Repeat("0", 256)},
	} {
		got := SplitImage(reference)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", reference, diff)
		}
		if JoinImage(got) != reference {
			t.Errorf("%s became %s", reference, JoinImage(got))
		}
	}
}

// Any document that decodes survives, whatever its annotations say.
func FuzzDocuments(f *testing.F) {
	f.Add([]byte(`{"spec":{"size":3},"status":{"nodes":["b","a","a"]}}`))
	f.Add([]byte(`{"metadata":{"annotations":{"conversion.cache.example.com/v1":"{\"spec\":{\"image\":{\"tag\":null}}}"}},"spec":{"image":"a:1"}}`))
	f.Add([]byte(`{"spec":{"replicas":3,"image":{"tag":"1"},"cache":{"extraArgs":["-v"]}},"status":{"nodes":{"":{"ready":true}}}}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		var (
			a v1alpha1.Memcached
			b v1beta1.Memcached
			c v1.Memcached
		)
		if json.Unmarshal(document, &a) == nil {
			forget(&a.ObjectMeta, "v1alpha1")
			there(t, there(t, &a, alphaToV1), v1ToAlpha)
			forget(&a.ObjectMeta, "v1beta1", "v1")
			roundTrip(t, normal(t, &a), alphaToBeta, betaToAlpha)
			roundTrip(t, normal(t, &a), alphaToV1, v1ToAlpha)
		}
		if json.Unmarshal(document, &b) == nil {
			there(t, there(t, &b, betaToV1), v1ToBeta)
			forget(&b.ObjectMeta, "v1alpha1", "v1beta1", "v1")
			roundTrip(t, normal(t, &b), betaToAlpha, alphaToBeta)
			roundTrip(t, normal(t, &b), betaToV1, v1ToBeta)
		}
		if json.Unmarshal(document, &c) == nil {
			there(t, there(t, &c, v1ToAlpha), alphaToV1)
			forget(&c.ObjectMeta, "v1alpha1", "v1beta1", "v1")
			roundTrip(t, normal(t, &c), v1ToBeta, betaToV1)
			roundTrip(t, normal(t, &c), v1ToAlpha, alphaToV1)
		}
	})
}

func forget(meta *metav1.ObjectMeta, versions ...string) {
	for _, version := range versions {
		delete(meta.Annotations, AnnotationPrefix+version)
	}
}

// normal is an object as the wire carries it: Go tells an empty list from none, and two spellings of a quantity apart.
func normal[T any](t testing.TB, object *T) *T {
	t.Helper()
	out := new(T)
	if err := json.Unmarshal([]byte(wire(t, object)), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func BenchmarkV1ToBetaAndBack(b *testing.B) {
	c := new(v1.Memcached)
	filler(1, 0).Fill(c)
	for b.Loop() {
		roundTrip(b, c, v1ToBeta, betaToV1)
	}
}
