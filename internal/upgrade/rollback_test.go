package upgrade

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestJudgeReturned(t *testing.T) {
	thing := func(uid, version string, spec map[string]any, written string) *unstructured.Unstructured {
		metadata := map[string]any{"name": "a", "namespace": "n", "uid": uid, "labels": map[string]any{"team": "x"}}
		if written != "" {
			metadata["annotations"] = map[string]any{writes: written}
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/" + version, "kind": "Thing", "metadata": metadata, "spec": spec,
		}}
	}
	type views = map[string]*unstructured.Unstructured
	before := views{
		"v1":      thing("1", "v1", map[string]any{"port": int64(80), "size": int64(2)}, ""),
		"v1beta1": thing("1", "v1beta1", map[string]any{"containerPort": int64(80)}, ""),
	}
	of := func(written bool, acked int64) *object {
		o := &object{Kind: "Thing", Namespace: "n", Name: "a", Version: "v1", UID: "1", Written: written, Author: before["v1"].Object, Views: before}
		o.acked.Store(acked)
		return o
	}
	expect(t, judgeReturned(of(false, 0), before))
	expect(t, judgeReturned(of(false, 0), views{
		"v1":      thing("1", "v1", map[string]any{"port": int64(11211)}, ""),
		"v1beta1": thing("1", "v1beta1", map[string]any{"containerPort": int64(11211)}, ""),
	}), "error U802 Thing/n/a: compared with before the upgrade: as v1 spec.port was 80 and is 11211; spec.size was 2 and is gone; as v1beta1 spec.containerPort was 80 and is 11211")
	expect(t, judgeReturned(of(false, 0), views{"v1": thing("2", "v1", map[string]any{"port": int64(80), "size": int64(2)}, "")}),
		"error U802 Thing/n/a: it was deleted and made anew: its UID is another")

	read := func(n string) views {
		return views{"v1": thing("1", "v1", map[string]any{"port": int64(80), "size": int64(2)}, n)}
	}
	expect(t, judgeReturned(of(true, 7), read("7")))
	expect(t, judgeReturned(of(true, 7), read("6")), "error U802 Thing/n/a: write number 7 through v1 was acknowledged, but the object has number 6")
}
