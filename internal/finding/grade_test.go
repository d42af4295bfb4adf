package finding

import "testing"

func TestGrades(t *testing.T) {
	t.Parallel()
	grades := Grades{
		"LOW": {Usual: Error, Wanted: Info}, "HIGH": {Usual: Warning, Wanted: Error}, "NOTE": {Usual: Info, Wanted: Warning},
	}
	for _, test := range []struct {
		code      string
		was, want Severity
	}{
		{"LOW", Error, Info},
		{"LOW", Warning, Info},
		{"HIGH", Warning, Error},
		{"HIGH", Info, Info},
		{"NOTE", Info, Warning},
		{"NOTE", Error, Warning},
		{"OTHER", Error, Error},
	} {
		findings := []Finding{{Code: test.code, Severity: test.was}}
		for range 2 { // a walk does it, and so does who reports
			if grades.Apply(findings); findings[0].Severity != test.want {
				t.Errorf("%s %s: %s, not %s", test.code, test.was, findings[0].Severity, test.want)
			}
		}
	}
}
