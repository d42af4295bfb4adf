package upgrade

import (
	"slices"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/report"
)

// StrictOutage is the longest outage that a strict walk lets pass (seconds): a client that tries again once does not notice
// it.
const StrictOutage = 1.0

// grade gives findings the severities that the user asked for, those by code over those of a strict walk.
func (w *walk) grade(findings []finding.Finding, outages []report.Outage) {
	if w.options.Strict {
		strict(findings, outages)
	}
	w.options.Grades.Apply(findings)
}

// strict makes errors of the warnings among findings, but for those about samples, which are none of an upgrade's doing, and
// for outages that end within StrictOutage. What a fault is to blame for is no warning.
func strict(findings []finding.Finding, outages []report.Outage) {
	for i, f := range findings {
		switch {
		case f.Severity != finding.Warning, f.Code == codeSampleRefused, f.Code == codeSampleUnknown:
			continue
		case slices.Contains(outageHarms, f.Code) && longest(outages, f) <= StrictOutage:
			continue
		}
		findings[i].Severity = finding.Error
	}
}

// longest returns the seconds of the longest outage that f is about.
func longest(outages []report.Outage, f finding.Finding) float64 {
	most := 0.0
	for _, o := range outages {
		isRead := f.Code == codeReadOutage
		if "CustomResourceDefinition/"+o.CRD == f.Subject.Object && (o.Operation == read) == isRead && o.Fault == "" {
			most = max(most, o.Seconds)
		}
	}
	return most
}
