package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"maragu.dev/gomponents"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/safetext"
)

// hostile are names and texts that a page must show and must not obey.
var hostile = []string{
	`</script><script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</style><b>`, `</title></textarea>`,
	"\u202egnp.exe\u2066", "javascript:alert(1)", "{{.Title}}", "<!--", "]]>", "a\x00b", "--></details></main>", "é 版本 🦀",
}

// walked is a report with everything in it that a page shows, in the words s.
func walked(s string) *Report {
	f := finding.Finding{
		Code: "U103", Severity: finding.Error, Message: s, Cause: s + "\n" + s, Fix: s, References: []string{s, "https://example.com/?q=" + s},
		Subject: finding.Subject{Object: s}, Location: &finding.Location{File: s, Line: 1, Column: 1},
	}
	known := f
	known.Code, known.Suppressed = "U104", &finding.Suppression{Reason: s, Until: "2027-01-31"}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &Report{
		APIVersion: APIVersion, Kind: KindUpgrade, Result: Failed, Seconds: 61.5, Findings: []finding.Finding{f},
		Titles: map[string]string{"U103": s}, Source: func(string, int) (string, bool) { return s, true },
		Graph: []graph.Drawing{{
			Package: s, Channel: s, Head: s + "2", Problem: s,
			Entries: []graph.Entry{{Name: s, Deprecated: true, Next: s + "2", Chosen: true}, {Name: s + "1"}, {Name: s + "2", Chosen: true}},
			Edges: []graph.Arrow{
				{From: s, To: s + "2", Edge: graph.Replaces, Declared: true, Effective: true, Next: true}, {From: s, To: s + "1", Edge: graph.Skips, Declared: true, Effective: true},
			},
		}, {Package: s, Channel: s + "b"}},
		Installations: []Installation{{
			Package: s, Channel: s, Name: s, Result: Passed, Seconds: 9.5, Start: start, Phases: []Phase{{s, 1.5}}, Findings: []finding.Finding{f, known},
			Simulated: []string{s}, NotVerified: []string{s}, Events: []Event{{At: 1, Kind: s, Name: s, State: s, Detail: s}}, Logs: []Log{{Source: s, Text: s}},
		}},
		Hops: []Hop{
			{
				Package: s, Channel: s, From: s, To: s + "2", Edge: "replaces", Effective: true, Result: Failed, Seconds: 9.5, Start: start,
				Phases: []Phase{{s, 1.5}, {"stable", 8}}, Verification: []Phase{{s, 1}, {"rest", 2}}, Findings: []finding.Finding{f, known}, Simulated: []string{s},
				Outages: []Outage{{Version: s, Operation: "read", Seconds: 1.2, Errors: 3, First: s, Start: start.Add(2 * time.Second), Cause: s}},
				Events:  []Event{{At: 1, Kind: s, Name: s, State: s, Detail: s}, {At: 2.5, Kind: "Pod", Name: s, State: "restarted"}},
				Logs:    []Log{{Source: s, Text: s}},
			},
			{Package: s, Channel: s, From: s, To: s + "2", Edge: "skips", Result: Skipped},
		},
		LeftOut: []Hop{{Package: s, Channel: s, From: s + "1", To: s + "2", Edge: s}},
		Cluster: &Cluster{Kind: s, Kubernetes: s, OLM: s, Limitations: []string{s}},
	}
}

func rendered(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// elements are all elements of a page.
func elements(t *testing.T, page string) []*html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var list []*html.Node
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			list = append(list, n)
		}
	}
	return list
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// Whatever names and messages say, the page has the same elements, nothing in it runs but the page's own script, links lead
// to places of the page or to the web, and what was said can be read.
func TestHTMLHostile(t *testing.T) {
	shape := func(page string) string {
		var tags []string
		for _, n := range elements(t, page) {
			tags = append(tags, n.Data)
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcset" || a.Key == "src" {
					t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
				}
			}
			if href := attribute(n, "href"); n.Data == "a" && !strings.HasPrefix(href, "#") && !strings.HasPrefix(href, "https://") && strings.Contains(href, ":") {
				t.Errorf("a link leads to %q", href)
			}
		}
		return strings.Join(tags, " ")
	}
	plain := shape(rendered(t, walked("plain")))
	for _, s := range hostile {
		page := rendered(t, walked(s))
		if got := shape(page); got != plain {
			t.Errorf("%q changes the elements of the page:\n%s\nwant\n%s", s, got, plain)
		}
		says := false
		for _, n := range elements(t, page) {
			says = says || n.FirstChild != nil && n.FirstChild.Type == html.TextNode && n.FirstChild.Data == safetext.Line(s)
		}
		if !says {
			t.Errorf("%q cannot be read on the page", s)
		}
	}
}

// Each identifier is there once, and each link within the page leads somewhere.
func TestHTMLLinks(t *testing.T) {
	reports := map[string]*Report{"validate": validation(), "upgrade": upgrade(), "nothing": {}, "graph": {Kind: KindGraph, Graph: walked("x").Graph}}
	for _, s := range append(hostile, "tea.v1.0.0", "100%25", "a+b&c=d") {
		reports[s] = walked(s)
		reports["code "+s] = &Report{Kind: KindValidate, Findings: []finding.Finding{{Code: s, Severity: finding.Error}}}
	}
	for name, r := range reports {
		known := map[string]int{}
		var links []string
		for _, n := range elements(t, rendered(t, r)) {
			if id := attribute(n, "id"); id != "" {
				known[id]++
			}
			if to, within := strings.CutPrefix(attribute(n, "href"), "#"); within {
				id, err := url.PathUnescape(to) // as the page's script does
				if err != nil {
					t.Errorf("%s: a link leads to #%s: %v", name, to, err)
				}
				links = append(links, id)
			}
		}
		for id, n := range known {
			if n > 1 {
				t.Errorf("%s: %d elements are called %q", name, n, id)
			}
		}
		for _, to := range links {
			if known[to] == 0 {
				t.Errorf("%s: a link leads to #%s, which is not there", name, to)
			}
		}
	}
}

// Names and messages come back as they were, from elements and from attributes, and make no element.
func TestHTMLEscapes(t *testing.T) {
	for _, s := range append(hostile, "a & b &amp; c", "a+b", "`") {
		want := strings.ReplaceAll(s, "\x00", "\ufffd")
		var b bytes.Buffer
		if err := gomponents.El("p", classes(s), anchor(s), gomponents.Attr("data-name", s), gomponents.Text(s)).Render(&b); err != nil {
			t.Fatal(err)
		}
		list := elements(t, b.String())
		p := list[len(list)-1] // after html, head and body
		id, err := url.PathUnescape(strings.TrimPrefix(attribute(p, "href"), "#"))
		got := []string{p.Data, p.FirstChild.Data, attribute(p, "class"), attribute(p, "data-name"), id}
		if err != nil || len(list) != 4 || len(p.Attr) != 3 || !slices.Equal(got, []string{"p", want, want, want, s}) {
			t.Errorf("%q gives %s, which is %q (%v)", s, &b, got, err)
		}
	}
}

// Only what begins with http:// or https:// is a link, and leads where it says.
func TestHTMLReferences(t *testing.T) {
	links := []string{"https://example.com", "http://example.com/a?b=c&d='e'#f", `https://example.com/"><i>`}
	others := []string{"javascript:alert(1)", "JavaScript:alert(1)", " https://example.com", "//example.com", "data:text/html,x", "https:example.com", "file:///etc", "U103", ""}
	for _, to := range append(links, others...) {
		var b bytes.Buffer
		if err := reference(to).Render(&b); err != nil {
			t.Fatal(err)
		}
		list := elements(t, "<p>"+b.String())
		a := list[len(list)-1]
		switch isLink := slices.Contains(links, to); {
		case isLink && (a.Data != "a" || attribute(a, "href") != to || attribute(a, "rel") != "noreferrer" || a.FirstChild.Data != to):
			t.Errorf("%q gives %s, not a link", to, &b)
		case !isLink && (a.Data != "p" || len(list) != 4):
			t.Errorf("%q gives %s, not a text", to, &b)
		}
	}
}

// The policy names the style and the script that are in the page, and no others.
func TestHTMLPolicy(t *testing.T) {
	var policy string
	var own []string
	for _, n := range elements(t, rendered(t, walked("x"))) {
		switch {
		case attribute(n, "http-equiv") == "Content-Security-Policy":
			policy = attribute(n, "content")
		case n.Data == "style" || n.Data == "script":
			sum := sha256.Sum256([]byte(n.FirstChild.Data))
			own = append(own, n.Data+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
		}
	}
	want := "default-src 'none'; " + strings.Join(own, "; ") + "; base-uri 'none'; form-action 'none'"
	if policy != want || len(own) != 2 {
		t.Errorf("the policy is\n%s\nwant\n%s", policy, want)
	}
}

func TestHTML(t *testing.T) {
	page := rendered(t, walked("tea"))
	if again := rendered(t, walked("tea")); page != again {
		t.Error("the same report gave another page")
	}
	for _, want := range []string{
		`<p class="verdict failed">`, `id="hop-tea-tea2"`, `id="hop-tea-tea2_2"`, `id="U103"`, `href="#hop-tea-tea2"`,
		`no read tea</th>`, "1 object: reconciling not verified", `>restarts</th>`, "Log of tea", "suppressed until 2027-01-31: tea", "<h3>Not covered by this cluster</h3>", `id="install-tea"`, "1 installation, 2 hops",
		`<a href="https://example.com/?q=tea"`, "1 hop left out",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// Reports that older releases wrote, or that were read from JSON, lack much; the page then shows what there is.
func TestHTMLTolerant(t *testing.T) {
	r := upgrade() // no graph, no starts, no events
	page := rendered(t, r)
	for _, want := range []string{`data-from="p.v1" data-to="p.v2"`, `id="hop-p.v2-p.v3"`, "1 outage, with causes", "simulated pods"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	r.Hops[0].Phases = []Phase{{"backwards", -3}}
	r.Hops[0].Outages[0].Start = time.Unix(1, 0)
	r.Hops[0].Start = time.Unix(1e9, 0)
	for _, bar := range timelineBars(r.Hops[0]) {
		if bar.Left < 0 || bar.Width < 0 || bar.Left > 100 {
			t.Errorf("a bar lies from %.1f%%, %.1f%% long", bar.Left, bar.Width)
		}
	}
}

func timelineBars(h Hop) []bar {
	rows, _ := timeline(h)
	var bars []bar
	for _, r := range rows {
		bars = append(bars, r.Bars...)
	}
	return bars
}

// All that happens in a hop lies on one axis.
func TestTimeline(t *testing.T) {
	rows, ticks := timeline(walked("x").Hops[0])
	var told []string
	for _, r := range rows {
		s := r.Group + " " + r.Name
		for _, b := range r.Bars {
			s += fmt.Sprintf(" %.1f+%.1f", b.Left, b.Width)
		}
		told = append(told, s)
	}
	want := []string{"phase x 0.0+15.8", "phase stable 15.8+84.2", "outage no read x 21.1+12.6", "event restarts 26.3+0.0", "event x 10.5+0.0"}
	if !slices.Equal(told, want) {
		t.Errorf("the rows are %q, want %q", told, want)
	}
	if len(ticks) != 5 || ticks[4].Says != "8s" {
		t.Errorf("the axis is marked %v", ticks)
	}
}

// An edge that nothing walked has the colour of the worst that is known of it, and leads there.
func TestHTMLStaticVerdicts(t *testing.T) {
	edge := finding.Subject{Package: "tea", Channel: "stable", From: "tea.v1", To: "tea.v2"}
	r := &Report{
		Kind: KindValidate, Result: Failed,
		Graph: []graph.Drawing{{
			Package: "tea", Channel: "stable", Head: "tea.v3", Entries: []graph.Entry{{Name: "tea.v1", Chosen: true}, {Name: "tea.v2", Chosen: true}, {Name: "tea.v3", Chosen: true}},
			Edges: []graph.Arrow{{From: "tea.v1", To: "tea.v2", Edge: graph.Replaces, Next: true}, {From: "tea.v2", To: "tea.v3", Edge: graph.Replaces, Next: true}},
		}},
		Findings: []finding.Finding{{Code: "CRD012", Severity: finding.Warning, Subject: edge}, {Code: "EDG001", Severity: finding.Error, Subject: edge}},
	}
	page := rendered(t, r)
	for _, want := range []string{`<g class="edge next failed" data-from="tea.v1" data-to="tea.v2"><a href="#EDG001"`, `data-from="tea.v2" data-to="tea.v3"><title>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}
