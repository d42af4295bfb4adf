package monitoring

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/yaml"

	_ "github.com/olmkit/olmkit/operator/internal/migration"
)

var update = flag.Bool("update", false, "write docs/operator-metrics.md anew")

// rule is as much of one as the page shows.
type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

func allRules(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(rules, &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// docs/operator-metrics.md says of each metric what it means, and of each alert what to do.
func TestDocs(t *testing.T) {
	all, families := allRules(t), registered(t)
	shown := map[string]int{}
	page, err := template.New("").Funcs(template.FuncMap{
		"metrics": func(prefixes ...string) string {
			var rows strings.Builder
			for _, f := range families {
				if !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(f.GetName(), prefix) }) {
					continue
				}
				var labels []string
				for _, l := range f.GetMetric()[0].GetLabel() {
					labels = append(labels, "`"+l.GetName()+"`")
				}
				fmt.Fprintf(&rows, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), cell(f.GetHelp()))
			}
			return rows.String()
		},
		"records": func() string {
			var rows strings.Builder
			for _, r := range all {
				if r.Record != "" {
					fmt.Fprintf(&rows, "| `%s` | `%s` |\n", r.Record, cell(r.Expr))
				}
			}
			return rows.String()
		},
		"alert": func(name string) (string, error) {
			at := slices.IndexFunc(all, func(r rule) bool { return r.Alert == name })
			if at < 0 {
				return "", fmt.Errorf("there is no alert %s", name)
			}
			shown[name]++
			r := all[at]
			return fmt.Sprintf("### %s\n\n%s Severity %s, after %s of\n\n```\n%s\n```\n", name, r.Annotations["summary"], r.Labels["severity"], r.For, r.Expr), nil
		},
	}).ParseFiles("testdata/operator-metrics.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := page.ExecuteTemplate(&got, "operator-metrics.md.tmpl", nil); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Alert == "" {
			continue
		}
		if shown[r.Alert] != 1 {
			t.Errorf("alert %s is explained %d times", r.Alert, shown[r.Alert])
		}
		if want := "https://github.com/olmkit/olmkit/blob/main/docs/operator-metrics.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("alert %s leads to %q, not %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || !slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) || r.For == "" {
			t.Errorf("alert %s says too little: %+v", r.Alert, r)
		}
	}
	path := filepath.Join("..", "..", "..", "docs", "operator-metrics.md")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("run 'make generate':\n%s", diff)
	}
}

func cell(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "|", `\|`)
}

// registered is all metrics of a manager that has reconciled something.
func registered(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	second, ended := make(chan struct{}), make(chan error)
	c, err := controller.NewUnmanaged("memcached", controller.Options{
		// The second request is worked on when the first has been measured.
		Reconciler: reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
			if request.Name == "2" {
				close(second)
			}
			return reconcile.Result{}, nil
		}),
		SkipNameValidation: new(true),
		LogConstructor:     func(*reconcile.Request) logr.Logger { return logr.Discard() },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		for _, name := range []string{"1", "2"} {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- c.Start(ctx) }()
	<-second
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	census := &Census{Memcacheds: fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(memcached("a")).Build(), Objects: true, Log: logr.Discard()}
	metrics.Registry.MustRegister(census)
	defer metrics.Registry.Unregister(census)
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}
