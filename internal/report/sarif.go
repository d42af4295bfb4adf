package report

import (
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// The objects of SARIF 2.1.0, as code scanners read it: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Columns string        `json:"columnKind"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string     `json:"id"`
		Short   sarifText  `json:"shortDescription"`
		Full    *sarifText `json:"fullDescription,omitempty"`
		HelpURI string     `json:"helpUri,omitempty"`
		Help    *sarifText `json:"help,omitempty"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`

		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Status        string `json:"status"`
		Justification string `json:"justification"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
	}
)

// SARIF renders the findings of r, and of its hops, for code scanners.
func SARIF(w io.Writer, r *Report) error {
	run := sarifRun{
		Tool:    sarifTool{Driver: sarifDriver{Name: "olmkit", InformationURI: "https://github.com/olmkit/olmkit", Rules: []sarifRule{}}},
		Columns: "unicodeCodePoints",
		Results: []sarifResult{},
	}
	all := r.All()
	codes := slices.Clone(r.Checks)
	for _, f := range all {
		codes = append(codes, f.Code)
	}
	slices.Sort(codes)
	codes = slices.Compact(codes)
	for _, code := range codes {
		rule := sarifRule{ID: code, Short: sarifText{code}}
		if title := r.Titles[code]; title != "" {
			rule.Short.Text = title
		}
		if i := slices.IndexFunc(all, func(f finding.Finding) bool { return f.Code == code }); i >= 0 {
			if all[i].Cause != "" {
				rule.Full = &sarifText{all[i].Cause}
			}
			if all[i].Fix != "" {
				rule.Help = &sarifText{all[i].Fix}
			}
			if len(all[i].References) > 0 {
				rule.HelpURI = all[i].References[0]
			}
		}
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
	}
	logs := r.logsAt()
	for i, f := range all {
		run.Results = append(run.Results, sarifResultOf(f, slices.Index(codes, f.Code), logs[i]))
	}
	return writeJSON(w, sarifLog{
		Schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run},
	})
}

// sarifResultOf is a finding, of the rule with this index, and what logs say about it.
func sarifResultOf(f finding.Finding, rule int, log string) sarifResult {
	text := f.Message
	for _, more := range []struct{ name, text string }{{"Cause", f.Cause}, {"Fix", f.Fix}} {
		if more.text != "" {
			text += "\n" + more.name + ": " + more.text
		}
	}
	if at := within(f); at != "" {
		text += "\n" + at
		if f.Location.Excerpt != "" {
			text += ":\n" + f.Location.Excerpt
		}
	}
	text += log
	result := sarifResult{RuleID: f.Code, RuleIndex: rule, Level: sarifLevel(f.Severity), Message: sarifText{text}}
	var at sarifLocation
	if f.Location != nil && f.Location.File != "" {
		at.Physical = &sarifPhysical{Artifact: sarifArtifact{URI: fileURI(f.Location.File)}}
		if f.Location.Line > 0 {
			at.Physical.Region = &sarifRegion{StartLine: f.Location.Line, StartColumn: f.Location.Column}
		}
	}
	name := logicalName(f.Subject)
	if f.Location != nil && f.Location.Path != "" {
		name += "/" + f.Location.Path
	}
	if name != "" {
		at.Logical = []sarifLogical{{name}}
	}
	if at.Physical != nil || at.Logical != nil {
		result.Locations = []sarifLocation{at}
	}
	if f.Suppressed != nil {
		kind := "external"
		if at := f.Suppressed.Location; at != nil && f.Location != nil && at.File == f.Location.File {
			kind = "inSource"
		}
		result.Suppressions = []sarifSuppression{{kind, "accepted", f.Suppressed.Reason + " (until " + f.Suppressed.Until + ")"}}
	}
	return result
}

// fileURI is a path as a relative or absolute URI reference.
func fileURI(file string) string {
	u := url.URL{Path: file}
	if strings.HasPrefix(file, "/") {
		u.Scheme = "file"
	}
	return u.String()
}

func sarifLevel(s finding.Severity) string {
	if s == finding.Info {
		return "note"
	}
	return string(s)
}

// logicalName is the subject's path, from the package inwards.
func logicalName(s finding.Subject) string {
	var parts []string
	for _, p := range []string{label(s.OLM, s.Kubernetes), s.Package, s.Channel, s.From, s.To, s.Object} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, "/")
}
