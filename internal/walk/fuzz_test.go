package walk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/fuzz"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// webhook answers as a conversion webhook does, or as answer says.
func webhook(answer func(objects []map[string]any) (string, error)) conversionReview {
	return conversionReview{group: "example.com", version: "v1", until: time.Now().Add(conversionsLimit), ask: func(_ context.Context, body []byte) ([]byte, error) {
		var review struct {
			Request struct {
				DesiredAPIVersion string           `json:"desiredAPIVersion"`
				Objects           []map[string]any `json:"objects"`
			} `json:"request"`
		}
		if err := utiljson.Unmarshal(body, &review); err != nil {
			return nil, err
		}
		said, err := answer(review.Request.Objects)
		if err != nil || said != "" {
			return []byte(said), err
		}
		for _, o := range review.Request.Objects {
			o["apiVersion"] = review.Request.DesiredAPIVersion
		}
		return json.Marshal(map[string]any{"response": map[string]any{"result": map[string]any{"status": "Success"}, "convertedObjects": review.Request.Objects}})
	}}
}

func TestConversionReview(t *testing.T) {
	object := map[string]any{"apiVersion": "example.com/v1", "metadata": map[string]any{"name": "one"}, "spec": map[string]any{"n": int64(1 << 60)}}
	tests := map[string]struct {
		answer      func(objects []map[string]any) (string, error)
		refusal     string
		unreachable bool
	}{
		"converts": {answer: func([]map[string]any) (string, error) { return "", nil }},
		"says why not": {answer: func([]map[string]any) (string, error) {
			return `{"response":{"result":{"status":"Failed","message":"no such zone"}}}`, nil
		}, refusal: "no such zone"},
		"drops objects":   {answer: func([]map[string]any) (string, error) { return `{"response":{"result":{"status":"Success"}}}`, nil }, refusal: "1 objects were sent, 0 came back"},
		"answers nothing": {answer: func([]map[string]any) (string, error) { return `hello`, nil }, refusal: "no ConversionReview"},
		"keeps the version": {answer: func([]map[string]any) (string, error) {
			return `{"response":{"result":{"status":"Success"},"convertedObjects":[{"apiVersion":"example.com/v1"}]}}`, nil
		}, refusal: "came back as example.com/v1"},
		"renames": {answer: func([]map[string]any) (string, error) {
			return `{"response":{"result":{"status":"Success"},"convertedObjects":[{"apiVersion":"example.com/v2","metadata":{"name":"other"}}]}}`, nil
		}, refusal: "another name"},
		"has odd metadata": {answer: func([]map[string]any) (string, error) {
			return `{"response":{"result":{"status":"Success"},"convertedObjects":[{"apiVersion":"example.com/v2","kind":7,"metadata":[{"uid":1}]}]}}`, nil
		}, refusal: "another name"},
		"dies of an object": {answer: func(objects []map[string]any) (string, error) {
			if len(objects) > 0 {
				return "", errors.New("EOF")
			}
			return "", nil
		}, refusal: "EOF"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			converted, err := webhook(test.answer).convert(t.Context(), []map[string]any{object}, "v2")
			var unreachable fuzz.UnreachableError
			if test.refusal == "" {
				if err != nil || converted[0]["apiVersion"] != "example.com/v2" || converted[0]["spec"].(map[string]any)["n"] != int64(1<<60) {
					t.Errorf("got %v, %v", converted, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), test.refusal) || errors.As(err, &unreachable) {
				t.Errorf("got %v, %v", converted, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := webhook(func(objects []map[string]any) (string, error) {
		if len(objects) == 0 {
			cancel() // what retries need not take their time here
		}
		return "", errors.New("no endpoints available")
	})
	var unreachable fuzz.UnreachableError
	if _, err := w.convert(ctx, []map[string]any{object}, "v2"); !errors.As(err, &unreachable) {
		t.Errorf("got %v", err)
	}
}

// A webhook that never answers, or not for some objects, holds nothing up for ever.
func TestSilentConversion(t *testing.T) {
	for name, silent := range map[string]func(body []byte) bool{
		"always":         func([]byte) bool { return true },
		"for the object": func(body []byte) bool { return strings.Contains(string(body), "example.com/v1") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := webhook(func([]map[string]any) (string, error) { return "", nil })
				answer := w.ask
				w.ask = func(ctx context.Context, body []byte) ([]byte, error) {
					if !silent(body) {
						return answer(ctx, body)
					}
					<-ctx.Done()
					return nil, ctx.Err()
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				_, err := w.convert(ctx, []map[string]any{{"apiVersion": "example.com/v1"}}, "v2")
				var unreachable fuzz.UnreachableError
				if ctx.Err() != nil || err == nil || errors.As(err, &unreachable) != (name == "always") {
					t.Errorf("got %v (%v)", err, ctx.Err())
				}
			})
		})
	}
}

func TestFuzzFindings(t *testing.T) {
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Name, d.Spec.Names.Kind = "things.example.com", "Thing"
	found := fuzzFindings(&lifecycle.Release{Name: "thing.v2"}, d, &fuzz.Result{Failures: []fuzz.Failure{
		{Version: "v2", Through: "v1", Field: "spec.zones", Text: `spec.zones was ["a","b"] and is ["a"]`, Seed: 8, Count: 5, Object: map[string]any{"kind": "Thing", "spec": map[string]any{"zones": []any{"a", "b"}}}},
		{Version: "v1", Through: "v1", Refused: true, Text: "from v1 to v2: no such zone", Seed: 3, Count: 1, Object: map[string]any{"spec": map[string]any{}}},
	}})
	lost, refused := found[0], found[1]
	if lost.Code != code.FuzzLost || lost.Severity != finding.Error || lost.Seed != 8 || lost.Example != `{"spec":{"zones":["a","b"]}}` || lost.Fields[0] != "spec.zones" ||
		lost.Message != `created as v2, read as v1 and written back unchanged, a valid Thing of thing.v2 loses fields: spec.zones was ["a","b"] and is ["a"]; 5 objects of this kind, the least: {"spec":{"zones":["a","b"]}} (--fuzz-seed 8)` {
		t.Errorf("got %+v", lost)
	}
	if refused.Code != code.FuzzRefused || refused.Severity != finding.Warning || refused.Message != `created as v1, a valid Thing of thing.v2 cannot be converted from v1 to v2: no such zone; 1 object of this kind, the least: {"spec":{}} (--fuzz-seed 3)` {
		t.Errorf("got %+v", refused)
	}
}

// TestLessen: what the release before lost as well, and what one that is installed loses, is a note.
func TestLessen(t *testing.T) {
	failures := []fuzz.Failure{{Version: "v1", Through: "v2", Field: "spec.zones"}, {Version: "v1", Through: "v2", Field: "spec.size"}, {Version: "v2", Through: "v1", Field: "spec.zones"}}
	had := func(kind fuzz.Kind) bool { return kind == failures[0].Kind() }
	for from, want := range map[string]string{"": "info lost, info lost, info lost", "thing.v1": "info lost; with thing.v1 it was the same, error lost, error lost"} {
		var findings []finding.Finding
		for range failures {
			findings = append(findings, finding.Finding{Severity: finding.Error, Message: "lost"})
		}
		lessen(findings, failures, from, had)
		var got []string
		for _, f := range findings {
			got = append(got, fmt.Sprintf("%v %s", f.Severity, f.Message))
		}
		if said := strings.Join(got, ", "); said != want {
			t.Errorf("from %q: %s, want %s", from, said, want)
		}
	}
}

// TestUnseen: what samples lose is not told once more.
func TestUnseen(t *testing.T) {
	of := func(fields ...string) finding.Finding { return finding.Finding{Fields: fields} }
	got := unseen([]finding.Finding{of("spec.port"), of("spec.users"), of()}, []finding.Finding{of("spec.size", "spec.port"), of()})
	if len(got) != 2 || got[0].Fields[0] != "spec.users" {
		t.Errorf("%v", got)
	}
}

// A webhook that takes too long for all objects is asked no more.
func TestLateConversions(t *testing.T) {
	review := conversionReview{until: time.Now().Add(-time.Second), ask: func(context.Context, []byte) ([]byte, error) {
		t.Error("it was asked")
		return nil, nil
	}}
	var unreachable fuzz.UnreachableError
	if _, err := review.convert(t.Context(), nil, "v1"); !errors.As(err, &unreachable) {
		t.Errorf("got %v", err)
	}
}
