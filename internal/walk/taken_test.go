package walk

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/test/support/expect"
)

// A manager that deletes definitions when it uninstalls is told to do so at the end of the walk, with an object there, and what
// stays is a finding.
func TestTakenAlong(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	definition := client.ObjectKey{Name: "things.example.com"}
	for name, c := range map[string]struct {
		takes func(w *world) func(ctx context.Context) error
		code  string
		says  string
	}{
		"definitions go": {func(w *world) func(context.Context) error {
			return func(ctx context.Context) error {
				return w.Delete(ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definition.Name}})
			}
		}, code.TakenAlong, "deleting Installation/v2 deleted it, and with it Thing/"},
		"definitions stay": {func(w *world) func(context.Context) error {
			return func(ctx context.Context) error {
				var d apiextensionsv1.CustomResourceDefinition
				if err := w.Get(ctx, definition, &d); err != nil {
					return err
				}
				d.Status.Conditions = append(d.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
					Type: apiextensionsv1.Terminating, Reason: "InstanceDeletionFailed", Message: "could not list instances: conversion webhook",
				})
				return w.Status().Update(ctx, &d)
			}
		}, code.TakenHalfway, "it is still there, with Thing/"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.takes = c.takes(w)
				r, err := w.walk(t.Context(), t, p, plan, Options{})
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(r.Findings, func(f finding.Finding) bool { return f.Code == c.code })
				if i < 0 || !strings.Contains(r.Findings[i].Message, c.says) || r.Findings[i].Subject.Object != "CustomResourceDefinition/"+definition.Name {
					t.Errorf("no %s: %s", c.code, expect.Said(r.Findings))
				}
				if c.code == code.TakenHalfway && i >= 0 && !strings.Contains(r.Findings[i].Message, "InstanceDeletionFailed: could not list instances") {
					t.Errorf("not why: %s", r.Findings[i].Message)
				}
				if w.called("BeginUninstall") != 1 || w.called("Uninstall") != 1 {
					t.Errorf("begun %d times, uninstalled %d times", w.called("BeginUninstall"), w.called("Uninstall"))
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		broken := errors.New("it does not answer")
		w.takes = func(context.Context) error { return broken }
		if r, err := w.walk(t.Context(), t, p, plan, Options{}); !errors.Is(err, broken) || !slices.ContainsFunc(r.Findings, func(f finding.Finding) bool { return f.Code == code.WalkEnded }) {
			t.Errorf("%v, %+v", err, r)
		}
	})
}

// Who may not delete an object does not read that finalizers keep it.
func TestUndeletable(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	synctest.Test(t, func(t *testing.T) {
		w := newDisposable()
		w.behaviour["v2"] = keeps
		r, err := w.walk(t.Context(), t, p, plan, Options{})
		if err != nil {
			t.Fatal(err)
		}
		const want = `error U603 Thing/olmkit-samples/a-v1-w: with v2 the API server refuses to delete it: things.example.com "a-v1-w" is forbidden: admission webhook "things" denied the request`
		if found := expect.Said(r.Findings); !slices.Contains(found, want) {
			t.Error(strings.Join(found, "\n"))
		}
	})
}
