//go:build linux

package e2e_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/test/support/trace"
)

// hopArgs walks one hop of the memcached operator, between two releases that serve three versions by conversion.
func hopArgs() []string {
	args := []string{"upgrade", "test", "catalog", "--package", "memcached-operator", "--edges", "chain", "--from", "0.3.1", "--to", "0.4.0", "--timeout", "8m"}
	for _, v := range []string{"v0.3.1", "v0.4.0"} {
		args = append(args, "--image", "ghcr.io/olmkit/memcached-operator:"+v+"="+filepath.Join(root, "bin", "memcached-operator", v, "manager"))
	}
	return args
}

// output collects what a running program prints, to be looked at meanwhile.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// begin starts olmkit and returns it with what it prints to standard output and to standard error.
func begin(t *testing.T, env string, args ...string) (cmd *exec.Cmd, out, account *output) {
	t.Helper()
	out, account = &output{}, &output{}
	cmd = exec.Command(olmkit, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = root, append(os.Environ(), env), out, account
	if err := cmd.Start(); err != nil {
		t.Fatalf("run olmkit: %v (build it with 'make build managers')", err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd, out, account
}

// jsonReport is what of a report's documented shape the tests look at.
type jsonReport struct {
	APIVersion string
	Kind       string
	Result     string
	Verdict    string
	Findings   []jsonFinding

	Installations []struct {
		Package, Channel, Name, Result string
		Seconds                        float64
		Findings                       []jsonFinding
		Simulated, NotVerified         []string
	}
	Hops []struct {
		Package, Channel, From, To, Edge, Result string
		Effective                                bool
		Seconds                                  float64
		Phases                                   []struct {
			Name    string
			Seconds float64
		}
		Findings []jsonFinding
		Outages  []struct {
			Version, Operation, First, Cause string
			Seconds                          float64
			Errors                           int
		}
		Simulated []string
	}
	Cluster struct {
		Kind, Kubernetes, OLM string
		Limitations           []string
	}
}

type jsonFinding struct {
	Code, Severity, Message, Cause, Fix string
	Subject                             struct{ Package, From, To, Object string }
}

func readReport(t *testing.T, file string) jsonReport {
	t.Helper()
	var r jsonReport
	if err := json.Unmarshal([]byte(read(t, file)), &r); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return r
}

// TestWalkWithConversion walks a hop in which the real managers of two releases answer the API server's conversion
// requests.
func TestWalkWithConversion(t *testing.T) {
	t.Parallel()
	before := trace.New(t)
	reports := t.TempDir()
	asJSON, asJUnit := filepath.Join(reports, "report.json"), filepath.Join(reports, "report.xml")
	cmd, out, account := begin(t, before.Env(), append(hopArgs(), "--compare-fresh", "--report", "json="+asJSON, "--report", "junit="+asJUnit)...)

	// The new release's manager has to answer, while it runs; when the walk ends so does its log.
	eventually(t, "the manager of 0.4.0 answers a conversion request", func() error {
		return converted(t, before.Env(), "0.4.0")
	})
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, account, out)
	}
	t.Logf("%s\n%s", account, out)
	before.Check(t)

	r := readReport(t, asJSON)
	if r.APIVersion != "olmkit/v1" || r.Kind != "UpgradeReport" || r.Result != "passed" || len(r.Hops) != 1 {
		t.Fatalf("the report is a %s %s, %s, with %d hops", r.APIVersion, r.Kind, r.Result, len(r.Hops))
	}
	if !strings.Contains(account.String(), "install memcached-operator.v0.4.0") {
		t.Errorf("0.4.0 was not installed afresh:\n%s", account)
	}
	for _, f := range r.Findings {
		if f.Code == "U607" {
			t.Errorf("%+v", f)
		}
	}
	h := r.Hops[0]
	if h.Package != "memcached-operator" || h.Channel != "stable" || h.From != "memcached-operator.v0.3.1" || h.To != "memcached-operator.v0.4.0" ||
		h.Edge != "replaces" || !h.Effective || h.Result != "passed" || h.Seconds <= 0 || len(h.Simulated) > 0 {
		t.Errorf("the hop is %+v", h)
	}
	var phases []string
	var sum float64
	for _, p := range h.Phases {
		phases = append(phases, p.Name)
		sum += p.Seconds
	}
	for _, want := range []string{"catalog noticed", "install plan complete", "CRDs written", "succeeded", "old CSV gone", "stable"} {
		if !slices.Contains(phases, want) {
			t.Errorf("no phase is called %q: %v", want, phases)
		}
	}
	if sum < h.Seconds-0.1 || sum > h.Seconds+0.1 {
		t.Errorf("the phases take %.3fs and the hop %.3fs", sum, h.Seconds)
	}
	// v1 is what is stored, so that its readers and writers need no conversion; the others' outages have to be told in full.
	for _, o := range h.Outages {
		if !slices.Contains([]string{"v1", "v1alpha1", "v1beta1"}, o.Version) || !slices.Contains([]string{"read", "write"}, o.Operation) ||
			o.Seconds <= 0 || o.Errors == 0 || o.First == "" {
			t.Errorf("an outage is %+v", o)
		}
	}
	if r.Cluster.Kind != "embedded" || r.Cluster.Kubernetes == "" || r.Cluster.OLM == "" || len(r.Cluster.Limitations) == 0 {
		t.Errorf("the report says of the cluster %+v", r.Cluster)
	}

	var junit struct {
		Name   xml.Name
		Suites []struct {
			Cases []struct {
				Name     string `xml:"name,attr"`
				Failures []struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(read(t, asJUnit)), &junit); err != nil {
		t.Fatalf("%s: %v", asJUnit, err)
	}
	found := false
	for _, s := range junit.Suites {
		for _, c := range s.Cases {
			found = found || strings.Contains(c.Name, "memcached-operator.v0.3.1 -> memcached-operator.v0.4.0")
			if len(c.Failures) > 0 {
				t.Errorf("test case %s failed: %v", c.Name, c.Failures)
			}
		}
	}
	if !found {
		t.Errorf("no test case is the hop:\n%s", read(t, asJUnit))
	}
	if files, err := os.ReadDir(reports); err != nil || len(files) != 2 {
		t.Errorf("beside the reports there is something else: %v, %v", files, err)
	}
}

// converted returns nil if in the one cluster of the cache folder that env names the manager of release has answered a
// conversion request.
func converted(t *testing.T, env, release string) error {
	t.Helper()
	fields := strings.Fields(run(t, []string{env}, "cluster", "status").out)
	i := slices.Index(fields, "embedded")
	if i < 1 {
		return errors.New("no cluster runs")
	}
	logs := run(t, []string{env}, "cluster", "logs", "--name", fields[i-1]).out
	is := map[string]bool{} // containers of the release
	for line := range strings.Lines(logs) {
		container, said, _ := strings.Cut(line, "| ")
		if strings.Contains(said, fmt.Sprintf(`"msg":"starting","release":%q`, release)) {
			is[container] = true
		}
		if is[container] && strings.Contains(said, "answered a conversion request") && strings.Contains(said, `"failed":0`) {
			return nil
		}
	}
	return fmt.Errorf("%d managers of it run, none did", len(is))
}

// TestInterruptedInMidHop presses Ctrl-C while OLM replaces a release.
func TestInterruptedInMidHop(t *testing.T) {
	t.Parallel()
	before := trace.New(t)
	reports := t.TempDir()
	asJSON := filepath.Join(reports, "report.json")
	if err := os.WriteFile(asJSON, []byte("the last run's"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, out, account := begin(t, before.Env(), append(hopArgs(), "--report", "json="+asJSON)...)
	eventually(t, "OLM is in the middle of the hop", func() error {
		if s := account.String(); !strings.Contains(s, "CSV created") {
			return fmt.Errorf("it is not yet: %s", s)
		}
		return nil
	})
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("it ended with %v, want exit code 130\n%s", err, account)
	}
	if !strings.HasSuffix(account.String(), "interrupted; cleaned up\n") {
		t.Errorf("it does not say what became of it:\n%s", account)
	}
	// What was found until then is told, as what has failed: nobody takes it, or the last run's report, for that of a whole walk.
	data, err := os.ReadFile(asJSON)
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	says := func(f finding.Finding) bool { return f.Code == code.WalkEnded && f.Message == "it was interrupted" }
	if err := json.Unmarshal(data, &r); err != nil || r.Result != report.Failed || r.Hops[0].Result != report.Skipped || !slices.ContainsFunc(r.Findings, says) {
		t.Errorf("%v: %s", err, data)
	}
	if s := out.String(); !strings.Contains(s, "it was interrupted") || !strings.Contains(s, "failed: 1 installation") {
		t.Errorf("it printed: %s", s)
	}
	before.Check(t)
}
