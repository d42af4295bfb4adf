package judge

import (
	"slices"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/fault"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/report"
)

// strictOutage is the longest outage that a strict walk lets pass (seconds): a client that tries again once does not notice
// it.
const strictOutage = 1.0

// Strict makes errors of the warnings among findings, but for those about samples, which are none of an upgrade's doing, and
// for outages that end within strictOutage. What a fault is to blame for is no warning.
func Strict(findings []finding.Finding, outages []report.Outage) {
	for i, f := range findings {
		switch {
		case f.Severity != finding.Warning, f.Code == code.SampleRefused, f.Code == code.SampleUnknown:
			continue
		case slices.Contains(fault.OutageHarms, f.Code) && longest(outages, f) <= strictOutage:
			continue
		}
		findings[i].Severity = finding.Error
	}
}

// longest returns the seconds of the longest outage that f is about.
func longest(outages []report.Outage, f finding.Finding) float64 {
	most := 0.0
	for _, o := range outages {
		isRead := f.Code == code.ReadOutage
		if "CustomResourceDefinition/"+o.CRD == f.Subject.Object && (o.Operation == observe.Read) == isRead && o.Fault == "" {
			most = max(most, o.Seconds)
		}
	}
	return most
}

// ErrorsIn returns the codes of the errors in findings.
func ErrorsIn(findings []finding.Finding) map[string]bool {
	codes := map[string]bool{}
	for _, f := range findings {
		if f.Severity == finding.Error {
			codes[f.Code] = true
			for _, code := range f.Also {
				codes[code] = true
			}
		}
	}
	return codes
}
