package walk

import (
	"testing"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/report"
)

func TestStrict(t *testing.T) {
	outage := func(operation string, seconds float64, fault string) report.Outage {
		return report.Outage{CRD: "c", Version: "v1", Operation: operation, Seconds: seconds, Fault: fault}
	}
	const object = "CustomResourceDefinition/c"
	for _, test := range []struct {
		name    string
		f       finding.Finding
		outages []report.Outage
		want    finding.Severity
	}{
		{"a note", code.Finding(code.OperandRolled, "", ""), nil, finding.Info},
		{"harm", code.Finding(code.Restarted, "", ""), nil, finding.Error},
		{"a sample", code.Finding(code.SampleRefused, "", ""), nil, finding.Warning},
		{"a short outage", code.Finding(code.WriteOutage, object, ""), []report.Outage{outage(observe.Write, 0.9, "")}, finding.Warning},
		{"a long outage", code.Finding(code.WriteOutage, object, ""), []report.Outage{outage(observe.Write, 0.9, ""), outage(observe.Write, 1.1, "")}, finding.Error},
		{"a long outage of the other operation", code.Finding(code.WriteOutage, object, ""), []report.Outage{outage(observe.Write, 0.9, ""), outage(observe.Read, 1.1, "")}, finding.Warning},
		{"a long outage by a fault", code.Finding(code.ReadOutage, object, ""), []report.Outage{outage(observe.Read, 0.5, ""), outage(observe.Read, 5, "kill-operator@installing")}, finding.Warning},
	} {
		w := &walk{options: Options{Strict: true}}
		findings := []finding.Finding{test.f}
		if w.grade(findings, test.outages); findings[0].Severity != test.want {
			t.Errorf("%s: %s, want %s", test.name, findings[0].Severity, test.want)
		}
		w.options.Grades = finding.Grades{test.f.Code: {Usual: test.f.Severity, Wanted: finding.Info}}
		if w.grade(findings, test.outages); findings[0].Severity != finding.Info {
			t.Errorf("%s: %s with a grade of its own, want %s", test.name, findings[0].Severity, finding.Info)
		}
	}
}
