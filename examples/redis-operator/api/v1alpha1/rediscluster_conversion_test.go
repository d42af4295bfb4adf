package v1alpha1

import (
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	redisv1beta1 "github.com/olmkit/olmkit/examples/redis-operator/api/v1beta1"
)

// filler fills objects at random, as far as the API server would let them through.
func filler() *randfill.Filler {
	return randfill.New().NilChance(0.3).NumElements(1, 3).Funcs(
		func(q *resource.Quantity, _ randfill.Continue) {
			*q = *resource.NewQuantity(rand.Int64N(1<<40), resource.BinarySI)
		},
		func(t *metav1.TypeMeta, _ randfill.Continue) {},
		func(f *metav1.FieldsV1, _ randfill.Continue) {},
	)
}

func TestRoundTripFromV1alpha1(t *testing.T) {
	fill := filler()
	for range 10_000 {
		var before, after RedisCluster
		var hub redisv1beta1.RedisCluster
		fill.Fill(&before)
		if err := before.DeepCopy().ConvertTo(&hub); err != nil {
			t.Fatal(err)
		}
		if err := after.ConvertFrom(&hub); err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(before, after) {
			t.Fatalf("it was\n%+v\nand is\n%+v", before, after)
		}
	}
}

func TestRoundTripFromV1beta1(t *testing.T) {
	fill := filler()
	for range 10_000 {
		var before, after redisv1beta1.RedisCluster
		var spoke RedisCluster
		fill.Fill(&before)
		if err := spoke.ConvertFrom(before.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if err := spoke.ConvertTo(&after); err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(before, after) {
			t.Fatalf("it was\n%+v\nand is\n%+v", before, after)
		}
	}
}

func TestForeignAnnotation(t *testing.T) {
	src := RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "r", Annotations: map[string]string{hubAnnotation: "{"}}}
	err := src.ConvertTo(&redisv1beta1.RedisCluster{})
	if err == nil || !strings.Contains(err.Error(), "RedisCluster n/r") {
		t.Errorf("the error is %v", err)
	}
}
