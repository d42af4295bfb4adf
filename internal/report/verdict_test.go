package report

import (
	"strings"
	"testing"
)

// TestVerdict: "passed" alone stands only where all was verified.
func TestVerdict(t *testing.T) {
	t.Parallel()
	hop := Hop{From: "a", To: "b", Result: Passed}
	ran := []Installation{{Name: "a", Result: Passed}}
	for want, r := range map[string]*Report{
		"passed":                           {Kind: KindUpgrade, Result: Passed, Installations: ran, Hops: []Hop{hop}},
		"failed":                           {Kind: KindUpgrade, Result: Failed, Hops: []Hop{{Result: Failed, Simulated: []string{"x"}}}},
		"nothing to test: 1 hop left out":  {Kind: KindUpgrade, Result: Passed, LeftOut: []Hop{hop}},
		"nothing to test: the plan has no": {Kind: KindUpgrade, Result: Passed},
		"passed: no findings":              {Kind: KindValidate, Result: Passed},
		"passed, manifests of 2 bundles not checked (--pull reads them): no findings": {Kind: KindValidate, Result: Passed, NotRead: 2},
		"passed: 1 installation, no findings":                                         {Kind: KindUpgrade, Result: Passed, Installations: ran},
		"passed, operator not run: 1 hop (1 w":                                        {Kind: KindUpgrade, Result: Passed, Hops: []Hop{{Simulated: []string{"x"}}}},
		"passed, operator not run: 1 install":                                         {Kind: KindUpgrade, Result: Passed, Installations: []Installation{{Simulated: []string{"x"}}}},
		"passed, reconciling of 2 objects not verified": {
			Kind: KindUpgrade, Result: Passed,
			Installations: []Installation{{Name: "a", NotVerified: []string{"Thing/a"}}}, Hops: []Hop{{NotVerified: []string{"Thing/a", "Thing/b"}}},
		},
		"passed, nothing verified of 1 kind without a sample: 1 installation, 1 hop": {
			Kind: KindUpgrade, Result: Passed, Installations: []Installation{{Name: "a", NoSample: []string{"CustomResourceDefinition/things.example.com"}}},
			Hops: []Hop{{NoSample: []string{"CustomResourceDefinition/things.example.com"}}},
		},
		"passed, operator not run, reconciling of 1 object not verified": {Kind: KindUpgrade, Result: Passed, Hops: []Hop{{Simulated: []string{"x"}, NotVerified: []string{"Thing/a"}}}},
	} {
		for _, format := range []string{"text", "markdown", "json", "junit", "html"} {
			if (format == "junit" || format == "html") && len(r.Hops)+len(r.Installations) == 0 {
				continue
			}
			said := want
			if format != "text" {
				said, _, _ = strings.Cut(want, ":")
			}
			var b strings.Builder
			if err := Write(&b, format, r, false); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(b.String(), said) {
				t.Errorf("%s: no %q in\n%s", format, said, b.String())
			}
		}
	}
}

// TestFirstFailure: what failed and says why comes before what failed and does not.
func TestFirstFailure(t *testing.T) {
	t.Parallel()
	r := upgrade()
	f, ok := firstFailure(r)
	if !ok || f.Code != "UPG001" || f.Subject.To != "p.v3" {
		t.Errorf("the first failure is %+v", f)
	}
	r.Hops = nil
	if f, ok := firstFailure(r); !ok || f.Code != "" || f.Subject.From != "p.v9" || f.Subject.To != "" {
		t.Errorf("the first failure without hops is %+v", f)
	}
}
