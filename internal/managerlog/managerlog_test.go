package managerlog

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

const traceOfConsole = `sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).reconcileHandler
	/root/go/pkg/mod/sigs.k8s.io/controller-runtime@v0.21.0/pkg/internal/controller/controller.go:353
github.com/me/redis/internal/controller.(*RedisReconciler).Reconcile
	/workspace/internal/controller/redis_controller.go:88
sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).Start.func2.2
	/root/go/pkg/mod/sigs.k8s.io/controller-runtime@v0.21.0/pkg/internal/controller/controller.go:202
`

// formats are logs with one error in each, between lines that are none.
var formats = map[string]struct {
	log     string
	message string
	err     string
	at      string // RFC 3339, "" for none
	object  string
	excerpt []string
	not     []string
}{
	"zap JSON": {
		log: `{"level":"info","ts":"2026-11-21T04:29:59Z","logger":"setup","msg":"starting manager","error":""}
{"level":"error","ts":"2026-11-21T04:30:00.5Z","msg":"Reconciler error","controller":"redis","controllerGroup":"cache.example.com","controllerKind":"Redis","Redis":{"name":"sample","namespace":"default"},"namespace":"default","name":"sample","reconcileID":"6b6ad8ab-6ac6-4fa0-b1ef-0f8ba9ff5f30","error":"statefulsets.apps is forbidden: User \"x\" cannot create resource \"statefulsets\"","stacktrace":"sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).reconcileHandler\n\t/root/go/pkg/mod/controller.go:353\ngithub.com/me/redis/internal/controller.(*RedisReconciler).Reconcile\n\t/workspace/redis_controller.go:88"}
`,
		message: "Reconciler error", err: `statefulsets.apps is forbidden: User "x" cannot create resource "statefulsets"`, at: "2026-11-21T04:30:00.5Z", object: "default/sample",
		excerpt: []string{"Reconciler error: statefulsets.apps is forbidden", "Redis=default/sample", "(*RedisReconciler).Reconcile (/workspace/redis_controller.go:88)"}, not: []string{"reconcileID", "reconcileHandler"},
	},
	"zap JSON, named by its kind alone": {
		log:     `{"level":"error","ts":"2026-11-21T04:30:00.5Z","logger":"controllers.Redis","msg":"Reconciler error","Redis":{"name":"sample","namespace":"default"},"error":"boom"}` + "\n",
		message: "Reconciler error", err: "boom", at: "2026-11-21T04:30:00.5Z", object: "default/sample", excerpt: []string{"Reconciler error: boom"},
	},
	"zap JSON with seconds": {
		log:     `{"level":"error","ts":1795235400.25,"logger":"setup","msg":"unable to start","error":"boom"}` + "\n",
		message: "unable to start", err: "boom", at: "2026-11-21T04:30:00.25Z", excerpt: []string{"unable to start: boom"},
	},
	"zap console": {
		log: "2026-11-21T04:29:00Z\tINFO\tsetup\tstarting manager, 0 errors\n" +
			"2026-11-21T04:30:00Z\t\x1b[31mERROR\x1b[0m\tReconciler error\t{\"controller\": \"redis\", \"Redis\": {\"name\":\"sample\",\"namespace\":\"default\"}, \"error\": \"no such host\"}\n" + traceOfConsole +
			"2026-11-21T04:30:01Z\tINFO\tsetup\tgo on\n",
		message: "Reconciler error", err: "no such host", at: "2026-11-21T04:30:00Z", object: "default/sample",
		excerpt: []string{"no such host", "github.com/me/redis/internal/controller.(*RedisReconciler).Reconcile (/workspace/internal/controller/redis_controller.go:88)"}, not: []string{"reconcileHandler", "go on"},
	},
	"zap console with a name and a caller": {
		log:     "2026-11-21T04:30:00.000Z\tERROR\tsetup\tcmd/main.go:77\tunable to start manager\t{\"error\": \"no kubeconfig\"}\n",
		message: "unable to start manager", err: "no kubeconfig", at: "2026-11-21T04:30:00Z", excerpt: []string{"unable to start manager: no kubeconfig"},
	},
	"funcr": {
		log:     `{"logger":"a","level":0,"msg":"fine"}` + "\n" + `{"logger":"a","msg":"cannot reconcile","error":"boom"}` + "\n",
		message: "cannot reconcile", err: "boom", excerpt: []string{"cannot reconcile: boom"},
	},
	"klog": {
		log: "I1121 04:29:59.000000       1 leaderelection.go:257] attempting to acquire leader lease\n" +
			"E1121 04:30:00.000000       1 reflector.go:150] Failed to watch *v1.Secret: secrets is forbidden\n",
		message: "Failed to watch *v1.Secret: secrets is forbidden", at: "2026-11-21T04:30:00Z", excerpt: []string{"secrets is forbidden"},
	},
	"klog with fields": {
		log:     `E1121 04:30:00.000000       1 controller.go:353] "Reconciler error" err="no such \"host\"" controller="redis" namespace="default" name="sample"` + "\n",
		message: "Reconciler error", err: `no such "host"`, at: "2026-11-21T04:30:00Z", object: "default/sample", excerpt: []string{`controller="redis"`},
	},
	"klog JSON": {
		log:     `{"ts":1795235399000,"caller":"a.go:1","msg":"fine","v":0,"err":"none of it"}` + "\n" + `{"ts":1795235400000,"caller":"a.go:1","msg":"Reconciler error","err":"boom"}` + "\n",
		message: "Reconciler error", err: "boom", at: "2026-11-21T04:30:00Z", excerpt: []string{"boom"},
	},
	"slog JSON": {
		log:     `{"time":"2026-11-21T04:30:00Z","level":"ERROR","msg":"Reconciler error","Memcached":{"name":"a-sample","namespace":"n"},"err":"boom"}` + "\n",
		message: "Reconciler error", err: "boom", at: "2026-11-21T04:30:00Z", object: "n/a-sample", excerpt: []string{"Memcached=n/a-sample"},
	},
	"slog text": {
		log:     `time=2026-11-21T04:30:00Z level=INFO msg="error budget is fine"` + "\n" + `time=2026-11-21T04:30:00Z level=ERROR msg="cannot do" err="it \"broke\""` + "\n",
		message: "cannot do", err: `it "broke"`, at: "2026-11-21T04:30:00Z", excerpt: []string{"cannot do"},
	},
	"plain text": {
		log: "2026/11/21 04:29:59 no error so far, 0 errors\n" + "errors are welcome\n" + "2026/11/21 04:30:00 ERROR: cannot read the file\n",
		// The standard library's logger says the time without a zone.
		message: "ERROR: cannot read the file", at: "2026-11-21T04:30:00Z", excerpt: []string{"cannot read the file"},
	},
}

func TestFormats(t *testing.T) {
	for name, test := range formats {
		t.Run(name, func(t *testing.T) {
			groups := groupsOf(t, test.log)
			if len(groups) != 1 {
				t.Fatalf("%d groups: %+v", len(groups), groups)
			}
			g := groups[0]
			if g.Message != test.message || g.Error != test.err || g.Count != 1 || g.Panic {
				t.Errorf("message %q, error %q, count %d, panic %v", g.Message, g.Error, g.Count, g.Panic)
			}
			if test.at != "" {
				at, err := time.Parse(time.RFC3339, test.at)
				if err != nil {
					t.Fatal(err)
				}
				if g.First.UTC().Format("01-02T15:04:05.000") != at.Format("01-02T15:04:05.000") {
					t.Errorf("at %s, want %s", g.First, at)
				}
			} else if !g.First.IsZero() {
				t.Errorf("at %s", g.First)
			}
			if got := strings.Join(g.Objects, " "); got != test.object {
				t.Errorf("objects %q, want %q", got, test.object)
			}
			for _, part := range test.excerpt {
				if !strings.Contains(g.Excerpt, part) {
					t.Errorf("the excerpt has no %q:\n%s", part, g.Excerpt)
				}
			}
			for _, part := range test.not {
				if strings.Contains(g.Excerpt, part) {
					t.Errorf("the excerpt has %q:\n%s", part, g.Excerpt)
				}
			}
		})
	}
}

func groupsOf(t *testing.T, text string) []Group {
	t.Helper()
	log := New()
	r := log.Reader("ns/pod/manager| ")
	if _, err := r.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return log.Groups()
}

// TestLongFrames keeps the line, whatever has to go.
func TestLongFrames(t *testing.T) {
	t.Parallel()
	const reconciler = "github.com/me/operators/redis/internal/controller.(*RedisReconciler).Reconcile"
	got := ownFrames([]string{reconciler + "(0xc0001)", "\tgithub.com/me/operators/redis/a-folder-of-a-long-name/internal/controller/redis_controller.go:88 +0x12"})
	if want := []string{reconciler + " (redis_controller.go:88)"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPanics(t *testing.T) {
	const reconciler = "github.com/me/redis/internal/controller.(*RedisReconciler).Reconcile"
	for name, test := range map[string]struct {
		log   string
		value string
	}{
		"a process that ended": {`panic: runtime error: index out of range [1] with length 1

goroutine 1 [running]:
main.setup({0x1b7c2f8, 0xc0004b2000}, {{0x0, 0x0}})
	/workspace/main.go:31 +0x1d
` + reconciler + `(0xc0001, {0x1, 0x2})
	/workspace/internal/controller/redis_controller.go:88 +0x12
exit status 2
{"level":"info","msg":"started again"}
`, "index out of range"},
		"a fatal error": {"fatal error: concurrent map writes\n\ngoroutine 7 [running]:\n" + reconciler + "(0x1)\n\t/workspace/a.go:1 +0x1\n", "concurrent map writes"},
		"one that was recovered": {
			`{"time":"2026-11-21T04:30:00Z","level":"ERROR","msg":"Observed a panic","panic":"runtime error: invalid memory address or nil pointer dereference","panicGoValue":"\"x\"","stacktrace":"goroutine 150 [running]:\nk8s.io/apimachinery/pkg/util/runtime.logPanic({0x1, 0x2})\n\t/root/runtime.go:132 +0xbc\npanic({0x1, 0x2})\n\t/usr/local/go/src/runtime/panic.go:792 +0x132\n` + reconciler + `(0xc0001, {0x1, 0x2})\n\t/workspace/internal/controller/redis_controller.go:88 +0x12"}
{"time":"2026-11-21T04:30:00Z","level":"ERROR","msg":"Reconciler error","err":"panic: runtime error: invalid memory address or nil pointer dereference [recovered]"}
`, "invalid memory address"},
	} {
		t.Run(name, func(t *testing.T) {
			groups := groupsOf(t, test.log)
			if len(groups) != 1 || !groups[0].Panic || groups[0].Count != 1 {
				t.Fatalf("%+v", groups)
			}
			for _, part := range []string{test.value, reconciler + " (/workspace/"} {
				if !strings.Contains(groups[0].Excerpt, part) {
					t.Errorf("the excerpt has no %q:\n%s", part, groups[0].Excerpt)
				}
			}
		})
	}
}

// The same error of several objects, at other times, is one group.
func TestGroups(t *testing.T) {
	groups := groupsOf(t, `ns/pod/manager| {"level":"error","ts":"2026-11-21T04:30:00Z","msg":"Reconciler error","namespace":"default","name":"first","error":"pods \"first-6f7d8c9b5d-x2x4z\" not found after 1.5s at 0xc000123 in 6b6ad8ab-6ac6-4fa0-b1ef-0f8ba9ff5f30"}
ns/pod/manager| {"level":"error","ts":"2026-11-21T04:30:01Z","msg":"Reconciler error","namespace":"other","name":"second","error":"pods \"second-6f7d8c9b5e-abcde\" not found after 20ms at 0xc000456 in 0b6ad8ab-6ac6-4fa0-b1ef-0f8ba9ff5f31"}
ns/pod/manager| {"level":"error","ts":"2026-11-21T04:30:05Z","msg":"Reconciler error","namespace":"default","name":"first","error":"pods \"first-6f7d8c9b5d-x2x4z\" not found after 2s at 0xc000123 in 6b6ad8ab-6ac6-4fa0-b1ef-0f8ba9ff5f30"}
ns/pod/manager| {"level":"error","ts":"2026-11-21T04:30:05Z","msg":"Reconciler error","namespace":"default","name":"first","error":"services is forbidden"}
`)
	if len(groups) != 2 || groups[0].Count != 3 || groups[1].Count != 1 {
		t.Fatalf("%+v", groups)
	}
	if g := groups[0]; g.Gap != 4*time.Second || g.Last.Sub(g.First) != 5*time.Second || strings.Join(g.Objects, " ") != "default/first other/second" || !g.LastOf["default/first"].Equal(g.Last) || !g.LastOf["other/second"].Equal(g.First.Add(time.Second)) {
		t.Errorf("%+v", g)
	}
}

// So is the error of what Kubernetes gave names that begin with those of the objects.
func TestGroupsOfGenerated(t *testing.T) {
	groups := groupsOf(t, `{"level":"error","msg":"Reconciler error","namespace":"n","name":"first","error":"lookup first-xmczc-head.n.svc: no such host"}
{"level":"error","msg":"Reconciler error","namespace":"n","name":"second","error":"lookup second-qdmcb-head.n.svc: no such host"}
{"level":"error","msg":"Reconciler error","namespace":"n","name":"second","error":"lookup second-other-head.n.svc: no such host"}
`)
	if len(groups) != 2 || groups[0].Count != 2 {
		t.Fatalf("%+v", groups)
	}
}

func TestHarmless(t *testing.T) {
	for _, said := range []string{
		`{"level":"error","msg":"Reconciler error","error":"Operation cannot be fulfilled on redis: the object has been modified; please apply your changes to the latest version and try again"}`,
		`{"level":"error","msg":"error received after stop sequence was engaged","error":"leader election lost"}`,
		`E1121 04:30:00.000000       1 server.go:1] http: Server closed`,
		`2026/11/21 04:30:00 http: TLS handshake error from 10.0.0.1:4242: EOF`,
	} {
		if groups := groupsOf(t, said+"\n"); len(groups) > 0 {
			t.Errorf("%s: %+v", said, groups)
		}
	}
}

func TestTail(t *testing.T) {
	log := New()
	log.Aside = "of no interest"
	r := log.Reader("p| ")
	for range 300 {
		_, _ = r.Write([]byte("p| line\n\n"))
	}
	_, _ = r.Write([]byte("p| the \x1b[31mlast\x1b[0m \x00one\xff"))
	_, _ = r.Write([]byte("\np| this is of no interest"))
	_ = r.Close()
	lines := strings.Split(r.Tail(), "\n")
	if len(lines) != tailLines || lines[len(lines)-1] != "the last one\uFFFD" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

// FuzzReader holds that whatever a manager writes is read, in bounds and without control characters.
func FuzzReader(f *testing.F) {
	for _, test := range formats {
		f.Add([]byte(test.log))
	}
	f.Add([]byte("panic: \x1b[31m\n\tx.go:1\ngoroutine 1 [running]:\n\xff\xfe"))
	f.Add([]byte(`{"level":"error","ts":1e300,"msg":{"a":[[[[]]]]},"error":7}` + "\n" + strings.Repeat("x", 3*maxLine)))
	f.Fuzz(func(t *testing.T, data []byte) {
		log := New()
		r := log.Reader("")
		for _, half := range [][]byte{data[:len(data)/2], data[len(data)/2:]} {
			if n, err := r.Write(half); n != len(half) || err != nil {
				t.Fatal(n, err)
			}
		}
		_ = r.Close()
		groups := log.Groups()
		if len(groups) > maxGroups || len(r.lines) > tailLines || len(r.line) > 0 {
			t.Fatalf("%d groups, %d lines", len(groups), len(r.lines))
		}
		for _, g := range groups {
			if len(g.Excerpt) > 2*maxExcerpt || strings.ContainsAny(g.Excerpt+r.Tail(), "\x1b\x00\r") || len(g.Key) > 2*maxExcerpt {
				t.Fatalf("%+v", g)
			}
		}
	})
}

// Panics that say the same are the same in the same function, whatever the line; what comes without a stack is of the one before.
func TestPanicsByFunction(t *testing.T) {
	l := New()
	at := func(frame string) *entry {
		e := &entry{Message: "Observed a panic", Error: "invalid memory address or nil pointer dereference", Panic: true}
		if frame != "" {
			e.Trace = []string{"example.com/pot/controller." + frame + "(0x1)", "\t/src/" + frame + ".go:1 +0x1"}
		}
		return e
	}
	for _, frame := range []string{"brew", "", "pour", "brew", ""} {
		l.add(at(frame))
	}
	counts := map[string]int{}
	for _, g := range l.Groups() {
		counts[g.Key[strings.LastIndex(g.Key, ".")+1:]] = g.Count
	}
	if want := map[string]int{"brew": 4, "pour": 1}; !maps.Equal(counts, want) {
		t.Errorf("%v, want %v", counts, want)
	}
}
