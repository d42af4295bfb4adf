package cli

import (
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/nearest"
)

// nearestCodes is how many codes are offered instead of one that there is not.
const nearestCodes = 3

// readGrades reads what --severity says: CODE=SEVERITY each.
func readGrades(given []string) (finding.Grades, error) {
	if len(given) == 0 {
		return nil, nil
	}
	all := explanations()
	grades := finding.Grades{}
	for _, g := range given {
		code, severity, _ := strings.Cut(g, "=")
		code = strings.ToUpper(code)
		wanted := finding.Severity(severity)
		if !slices.Contains([]finding.Severity{finding.Error, finding.Warning, finding.Info}, wanted) {
			return nil, hint.With(usagef("--severity %s: must be CODE=SEVERITY, with a severity of error, warning or info", g), "write for example --severity U401=error")
		}
		i := slices.IndexFunc(all, func(e explanation) bool { return e.Code == code })
		if i < 0 {
			return nil, hint.With(usagef("--severity %s: no finding has the code %s", g, code), "write one of the nearest codes: %s; docs/checks lists all codes", strings.Join(nearestTo(code, all), ", "))
		}
		grades[code] = finding.Grade{Usual: all[i].Severity, Wanted: wanted}
	}
	return grades, nil
}

// The versions of OLM that --olm knows, and what compares them.
const olmV0, olmV1, olmBoth = "v0", "v1", "v0,v1"

// checkOLM refuses what is no version of OLM.
func checkOLM(version string) error {
	if version == olmV0 || version == olmV1 {
		return nil
	}
	return hint.With(usagef("--olm %s: must be %s or %s", version, olmV0, olmV1), "write --olm v1 for OLM v1")
}

// checkOLMs refuses what is neither a version of OLM nor both.
func checkOLMs(versions string) error {
	if versions == olmV0 || versions == olmV1 || versions == olmBoth {
		return nil
	}
	return hint.With(usagef("--olm %s: must be %s, %s, or %s for both", versions, olmV0, olmV1, olmBoth), "write --olm %s to compare OLM v1 with v0", olmBoth)
}

// gradeForOLM makes errors of the findings on what OLM v1 refuses, for those who use it, unless --severity says otherwise.
func (j *judge) gradeForOLM() error {
	if j.olm == "" || j.olm == olmV0 {
		return nil
	}
	if err := checkOLM(j.olm); err != nil {
		return err
	}
	if j.grades == nil {
		j.grades = finding.Grades{}
	}
	for _, e := range explanations() {
		if _, given := j.grades[e.Code]; !given && check.Family(e.Code) == check.FamilyOLM {
			j.grades[e.Code] = finding.Grade{Usual: e.Severity, Wanted: finding.Error}
		}
	}
	return nil
}

// nearestTo returns those codes of all that are most like code.
func nearestTo(code string, all []explanation) []string {
	var codes []string
	for _, e := range all {
		codes = append(codes, e.Code)
	}
	return nearest.Names(code, codes, nearestCodes)
}
