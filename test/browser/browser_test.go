// Package browser opens the pages of reports in a headless Chromium and uses them as people do: with the mouse, with the
// keyboard alone, by links, in the dark, on paper, without scripts; and has axe-core look for what would keep people out.
//
// It needs chromium, and npm for axe-core. Where one is missing the tests are skipped, except in CI.
package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/olmkit/olmkit/internal/cli"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/report"
)

var screenshots = flag.String("screenshots", "", "write pictures of the pages into this folder")

// browser is one Chromium for all tests; each has a tab of its own.
var browser context.Context

func TestMain(m *testing.M) {
	flag.Parse()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	var end context.CancelFunc
	browser, end = chromedp.NewContext(allocator)
	code := m.Run()
	end()
	stop()
	os.Exit(code)
}

// needed skips the test where program is missing, or fails it in CI.
func needed(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err == nil {
			return
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is missing: install it", programs[0])
	}
	t.Skipf("%s is missing", programs[0])
}

var started sync.Once

// tab opens a tab that fails the test when the page asks for anything but itself, or complains.
func tab(t *testing.T) context.Context {
	t.Helper()
	needed(t, "chromium", "google-chrome", "chromium-browser")
	started.Do(func() {
		if err := chromedp.Do(browser); err != nil {
			t.Fatalf("start Chromium: %v", err)
		}
	})
	ctx, end := chromedp.NewContext(browser)
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(func() { stop(); end() })
	do(t, ctx)
	err := chromedp.Listen(ctx, func(e any) {
		switch e := e.(type) {
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, "file://") || e.Type != network.ResourceTypeDocument {
				t.Errorf("the page asks for %s", e.Request.URL)
			}
		case *log.EventEntryAdded:
			t.Errorf("the browser says: %s", e.Entry.Text)
		case *runtime.EventExceptionThrown:
			t.Errorf("the script fails: %s", e.ExceptionDetails.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	do(t, ctx, command(network.Enable, network.EnableParams{}), command(log.Enable, cdp.Empty{}), command(runtime.Enable, cdp.Empty{}))
	return ctx
}

// command is an action that sends a command whose answer says nothing.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, to *chromedp.Target) (none chromedp.Void, err error) {
		_, err = cdp.Call(ctx, to, c, params)
		return none, err
	}
}

// script is an action that runs expression.
func script(expression string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](expression)
}

func do(t *testing.T, ctx context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// ask returns what expression is on the page.
func ask[T any](t *testing.T, ctx context.Context, expression string, args ...any) T {
	t.Helper()
	return get(t, ctx, chromedp.Evaluate[T](fmt.Sprintf(expression, args...)))
}

func get[T any](t *testing.T, ctx context.Context, action chromedp.Action[T]) T {
	t.Helper()
	answer, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// holds fails the test unless expression is true on the page, now or soon.
func holds(t *testing.T, ctx context.Context, what, expression string, args ...any) {
	t.Helper()
	expression = fmt.Sprintf(expression, args...)
	for until := time.Now().Add(5 * time.Second); ; {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool]("!!("+expression+")", chromedp.WithPollingTimeout(time.Until(until))))
		if err == nil {
			return
		}
		// The page that was asked has just made room for the one that it leads to.
		if !strings.Contains(err.Error(), "Cannot find context") || time.Now().After(until) {
			t.Errorf("%s: not so: %s: %v", what, expression, err)
			return
		}
	}
}

// write makes a file of a page and returns its address.
func write(t *testing.T, r *report.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return fileOf(t, b.Bytes())
}

func fileOf(t *testing.T, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return "file://" + file
}

// catalogPage is what 'olmkit catalog graph' makes of the repository's catalog.
func catalogPage(t *testing.T) string {
	t.Helper()
	var out, complaint bytes.Buffer
	args := []string{"catalog", "graph", "../../catalog", "-o", "html"}
	if code := cli.Run(t.Context(), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &complaint}, args); code != 0 {
		t.Fatalf("exit code %d: %s", code, &complaint)
	}
	return fileOf(t, out.Bytes())
}

// walk is a report on n hops of a channel of n+1 releases: the third fails, every seventh is warned of.
func walk(n int) *report.Report {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	name := func(i int) string { return fmt.Sprintf("tea-operator.v1.%d.0", i) }
	d := graph.Drawing{Package: "tea-operator", Channel: "stable", Default: true, Head: name(n)}
	r := &report.Report{
		APIVersion: report.APIVersion, Kind: report.KindUpgrade, Result: report.Failed, Seconds: 9.7 * float64(n),
		Titles: map[string]string{"U103": "The new version's CSV did not reach Succeeded in time.", "U402": "For a while objects could not be written.", "CSV016": "a kind has no sample"},
		Source: func(string, int) (string, bool) {
			return "    replaces: tea-operator.v1.1.0 # the release before", true
		},
		Cluster: &report.Cluster{Kind: "embedded", Kubernetes: "v1.36.3", OLM: "v0.46.0", Limitations: []string{"images were not pulled"}},
	}
	for i := range n + 1 {
		d.Entries = append(d.Entries, graph.Entry{Name: name(i), Chosen: i%9 != 5, Deprecated: i == 0})
		if i < n {
			d.Entries[i].Next = name(i + 1)
		}
		if i == 0 {
			continue
		}
		d.Edges = append(d.Edges, graph.Arrow{From: name(i - 1), To: name(i), Edge: graph.Replaces, Declared: true, Effective: true, Next: true})
		if i > 3 {
			d.Edges = append(d.Edges, graph.Arrow{From: name(i - 3), To: name(i), Edge: graph.Skips, Declared: true, Effective: i%2 == 0})
		}
		h := report.Hop{
			Package: "tea-operator", Channel: "stable", From: name(i - 1), To: name(i), Edge: "replaces", Effective: true,
			Result: report.Passed, Start: start, Seconds: 9.5,
			Phases: []report.Phase{
				{Name: "catalog noticed", Seconds: 0.9}, {Name: "install plan created", Seconds: 0.7}, {Name: "CRDs written", Seconds: 0.6}, {Name: "requirements met", Seconds: 1},
				{Name: "installing", Seconds: 0.5}, {Name: "succeeded", Seconds: 1.8}, {Name: "old CSV gone", Seconds: 0.4}, {Name: "stable", Seconds: 3.6},
			},
			Events: []report.Event{
				{At: 0, Kind: "walk", State: "published"}, {At: 0.9, Kind: "CatalogSource", Name: "olmkit", State: "ready"},
				{At: 2.1, Kind: "CustomResourceDefinition", Name: "teas.example.com", State: "written", Detail: "serves v1, stores v1, conversion None"},
				{At: 4.4, Kind: "Pod", Name: "tea-operator-5d9f/manager", State: "restarted", Detail: "1 times, last with exit code 1"}, {At: 5.1, Kind: "Pod", Name: "tea-operator-5d9f", State: "ready"},
			},
		}
		if i%7 == 0 {
			h.Outages = []report.Outage{{Version: "v1beta1", Operation: "write", Seconds: 1.4, Errors: 7, First: "connection refused", Start: start.Add(2200 * time.Millisecond), Cause: "pod tea-operator-5d9f was gone"}}
			h.Findings = []finding.Finding{{Code: "U402", Severity: finding.Warning, Message: "no write through v1beta1 for 1.4s", Fix: "shorten the window"}}
		}
		if i == 3 {
			h.Result = report.Failed
			h.Findings = []finding.Finding{{
				Code: "U103", Severity: finding.Error, Subject: finding.Subject{Object: "Pod/tea/tea-operator-5d9f"}, Message: "installing stalled after phase 'installing': the container ends at once",
				Cause: "last lines of tea/tea-operator-5d9f/manager:\npanic: no kettle", Fix: "put the kettle on", References: []string{"https://example.com/kettle"},
			}}
			h.Logs = []report.Log{{Source: "tea/tea-operator-5d9f/manager", Text: strings.Repeat("boiling\n", 40) + "panic: no kettle"}}
		}
		r.Hops = append(r.Hops, h)
	}
	for i := range 6 {
		r.Findings = append(r.Findings, finding.Finding{
			Code: "CSV016", Severity: finding.Info, Location: &finding.Location{File: "catalog/tea.yaml", Line: 10 + i, Column: 5},
			Subject: finding.Subject{Package: "tea-operator"}, Message: fmt.Sprintf("kind Cup%d has no sample", i), Cause: "nobody sees how it is used", Fix: "add one",
		})
	}
	r.Graph = []graph.Drawing{d}
	return r
}

const failedHop = "hop-tea-operator.v1.2.0-tea-operator.v1.3.0"

func TestDeepLinks(t *testing.T) {
	const oddCode = `it's "100%25" é/&+`
	r := walk(12)
	r.Findings = append(r.Findings, finding.Finding{Code: oddCode, Severity: finding.Info, Message: "odd"})
	ctx, at := tab(t), write(t, r)
	seen := func(id string) {
		t.Helper()
		holds(t, ctx, "#"+id+" is in sight", `(() => { const b = document.getElementById(%q).getBoundingClientRect(); return b.top >= 0 && b.top < innerHeight && b.height > 0 })()`, id)
	}
	other := "hop-tea-operator.v1.6.0-tea-operator.v1.7.0"
	do(t, ctx, chromedp.Navigate(at+"#"+other))
	holds(t, ctx, "the hop is open", `document.getElementById(%q).open`, other)
	seen(other)
	holds(t, ctx, "the hop has the focus", `document.activeElement === document.getElementById(%q).querySelector("summary")`, other)
	do(t, ctx, chromedp.Navigate(at+"#CSV016"))
	seen("CSV016")
	entry := "entry-tea-operator-stable-tea-operator.v1.4.0"
	do(t, ctx, chromedp.Navigate(at+"#"+entry))
	holds(t, ctx, "the table is open", `document.querySelector("details.entries").open`)
	seen(entry)
	do(t, ctx, press(t, ctx, `article a.code[href*="%"]`))
	holds(t, ctx, "a link leads to a code with any letters", `document.activeElement.id === %q`, oddCode)
	do(t, ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(at+"#"+url.PathEscape(oddCode)))
	seen(oddCode)
	do(t, ctx, chromedp.Navigate(at+"#no-such-place"))
	holds(t, ctx, "a link that leads nowhere does no harm", `document.documentElement.dataset.ready`)
}

func TestClicks(t *testing.T) {
	ctx := tab(t)
	do(t, ctx, chromedp.Navigate(write(t, walk(12))))
	holds(t, ctx, "the failed hop is open from the start, the others are not", `document.querySelectorAll("details.hop[open]").length === 1 && document.getElementById(%q).open`, failedHop)
	do(t, ctx, press(t, ctx, ".first a"))
	holds(t, ctx, "the first failure leads to the hop", `location.hash === %q && document.activeElement === document.getElementById(%q).querySelector("summary")`, "#"+failedHop, failedHop)

	do(t, ctx, press(t, ctx, ".edge.warned .mark circle"))
	holds(t, ctx, "an edge leads to its hop", `document.getElementById("hop-tea-operator.v1.6.0-tea-operator.v1.7.0").open`)
	do(t, ctx, press(t, ctx, ".node.head rect"))
	holds(t, ctx, "an entry leads to its row", `location.hash === "#entry-tea-operator-stable-tea-operator.v1.12.0" && "#" + document.activeElement.id === location.hash`)

	do(t, ctx, press(t, ctx, `[data-all=open]`))
	holds(t, ctx, "all hops are open", `document.querySelectorAll("details.hop:not([open])").length === 0`)
	do(t, ctx, press(t, ctx, `[data-all=close]`))
	holds(t, ctx, "all hops are closed", `document.querySelectorAll("details.hop[open]").length === 0`)

	do(t, ctx, chromedp.Focus("#search"), chromedp.KeyEvent("kettle"))
	holds(t, ctx, "what is searched for stays", `document.getElementById("found").textContent === "1 shown" && document.getElementById("CSV016").hidden && !document.getElementById("U103").hidden`)
	do(t, ctx, script(`(() => { const s = document.getElementById("search"); s.value = ""; s.dispatchEvent(new Event("input")) })()`),
		press(t, ctx, `button[data-severity=info]`))
	holds(t, ctx, "notes are hidden", `document.getElementById("CSV016").hidden && !document.getElementById("U402").hidden`)
	do(t, ctx, script(`location.hash = "CSV016"`))
	holds(t, ctx, "a link brings back what a filter hid", `!document.getElementById("CSV016").hidden`)
}

// press clicks where the element that selector names is drawn. A page that still follows a link would scroll it away: what
// follows has the focus when the page is there.
func press(t *testing.T, ctx context.Context, selector string) chromedp.Action[chromedp.Void] {
	t.Helper()
	at := ask[[]float64](t, ctx, `(() => { const e = document.querySelector(%q); (e.closest(".view") || e).scrollIntoView({block: "center"}); const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2] })()`, selector)
	return chromedp.MouseClickXY(at[0], at[1])
}

// box is the part of the graph in sight.
func box(t *testing.T, ctx context.Context) [4]float64 {
	t.Helper()
	var b [4]float64
	if _, err := fmt.Sscan(ask[string](t, ctx, `document.querySelector(".view svg").getAttribute("viewBox")`), &b[0], &b[1], &b[2], &b[3]); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGraphMoves(t *testing.T) {
	ctx := tab(t)
	do(t, ctx, chromedp.Navigate(write(t, walk(60))), chromedp.Focus(".view"))
	width := ask[float64](t, ctx, `+document.querySelector(".view svg").getAttribute("width")`)
	newest := box(t, ctx)
	if math.Abs(newest[0]+newest[2]-width) > 1 {
		t.Errorf("the newest release is not in sight: %v of %v", newest, width)
	}
	step := func(what string, action chromedp.Action[chromedp.Void], is func(before, after [4]float64) bool) {
		t.Helper()
		before := box(t, ctx)
		do(t, ctx, action)
		if after := box(t, ctx); !is(before, after) {
			t.Errorf("%s: from %v to %v", what, before, after)
		}
	}
	left := func(b, a [4]float64) bool { return a[0] < b[0] && a[2] == b[2] }
	right := func(b, a [4]float64) bool { return a[0] > b[0] && a[2] == b[2] }
	nearer := func(b, a [4]float64) bool { return a[2] < b[2] }
	farther := func(b, a [4]float64) bool { return a[2] > b[2] }
	step("arrow left", chromedp.KeyEvent(kb.ArrowLeft), left)
	step("arrow right", chromedp.KeyEvent(kb.ArrowRight), right)
	step("plus", chromedp.KeyEvent("+"), nearer)
	step("minus", chromedp.KeyEvent("-"), farther)
	step("home", chromedp.KeyEvent(kb.Home), left)
	step("0", chromedp.KeyEvent("0"), func(_, a [4]float64) bool { return a[2] >= width })
	step("button +", press(t, ctx, "[data-zoom=in]"), nearer)
	step("button −", press(t, ctx, "[data-zoom=out]"), farther)
	for range 12 {
		do(t, ctx, press(t, ctx, "[data-zoom=in]"))
	}
	at := ask[[]float64](t, ctx, `(() => { const b = document.querySelector(".view").getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2] })()`)
	x, y := at[0], at[1]
	step("dragging to the left", chromedp.DragAndDropXY(x, y, x-60, y), right)
	holds(t, ctx, "dragging follows no link", `location.hash === ""`)
	wheel := func(modifiers int64, dx, dy float64) chromedp.Action[chromedp.Void] {
		return command(input.DispatchMouseEvent, input.DispatchMouseEventParams{
			Type: input.DispatchMouseEventTypeMouseWheel, X: x, Y: y, DeltaX: dx, DeltaY: dy, Modifiers: modifiers,
		})
	}
	const ctrl, still = 2, 1e-3 // the protocol's client leaves out what is nothing
	step("wheel with ctrl", wheel(ctrl, still, 200), farther)
	step("wheel sideways", wheel(0, 120, still), right)
	step("wheel alone scrolls the page", wheel(0, still, 50), func(b, a [4]float64) bool { return a == b })
}

func TestKeyboardAlone(t *testing.T) {
	ctx := tab(t)
	do(t, ctx, chromedp.Navigate(write(t, walk(100))), chromedp.KeyEvent(kb.Tab))
	holds(t, ctx, "the first stop skips the head", `document.activeElement.className === "skip"`)
	seen := map[string]bool{}
	stops := 0
	for ; stops < 40 && !seen["SUMMARY hop"]; stops++ {
		do(t, ctx, chromedp.KeyEvent(kb.Tab))
		seen[ask[string](t, ctx, `document.activeElement.tagName + " " + (document.activeElement.closest(".hop") ? "hop" : document.activeElement.className)`)] = true
		if !ask[bool](t, ctx, `document.activeElement.matches(":focus-visible")`) {
			t.Errorf("stop %d cannot be seen", stops)
		}
	}
	if !seen["DIV view"] || !seen["SUMMARY hop"] {
		t.Errorf("with %d stops the keyboard comes to %v", stops, seen)
	}
	do(t, ctx, chromedp.KeyEvent(kb.Enter))
	holds(t, ctx, "Enter opens a hop", `document.activeElement.parentElement.open`)
}

func TestChannels(t *testing.T) {
	ctx := tab(t)
	do(t, ctx, chromedp.Navigate(catalogPage(t)))
	holds(t, ctx, "one channel is shown", `document.querySelectorAll(".channel:not([hidden])").length === 1`)
	do(t, ctx, chromedp.SetValue("#channel", "graph-memcached-operator-stable"),
		script(`document.getElementById("channel").dispatchEvent(new Event("change"))`))
	holds(t, ctx, "the other channel is shown", `document.querySelector(".channel:not([hidden])").id === "graph-memcached-operator-stable"`)
	holds(t, ctx, "it is drawn", `document.querySelector(".channel:not([hidden]) .view").clientHeight > 100`)
	do(t, ctx, script(`location.hash = "graph-memcached-operator-candidate"`))
	holds(t, ctx, "a link shows its channel", `document.querySelector(".channel:not([hidden])").id === "graph-memcached-operator-candidate"`)
}

func dark(is bool) chromedp.Action[chromedp.Void] {
	scheme := map[bool]string{true: "dark", false: "light"}[is]
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

func TestTheme(t *testing.T) {
	ctx, at := tab(t), write(t, walk(3))
	bright := `getComputedStyle(document.body).backgroundColor.match(/\d+/g)[0] > 128`
	do(t, ctx, dark(false), chromedp.Navigate(at))
	holds(t, ctx, "light as the system", bright)
	do(t, ctx, dark(true))
	holds(t, ctx, "dark as the system", "!("+bright+")")
	do(t, ctx, press(t, ctx, "#theme"))
	holds(t, ctx, "light by choice", bright+` && document.getElementById("theme").textContent === "Theme: light"`)
	do(t, ctx, dark(false), press(t, ctx, "#theme"))
	holds(t, ctx, "dark by choice", "!("+bright+")")
	do(t, ctx, chromedp.Navigate(at))
	holds(t, ctx, "the choice stays", "!("+bright+")")
	do(t, ctx, press(t, ctx, "#theme"))
	holds(t, ctx, "as the system again", bright)
}

func TestPrint(t *testing.T) {
	ctx := tab(t)
	do(t, ctx, chromedp.Navigate(write(t, walk(12))))
	before := ask[int](t, ctx, `document.querySelectorAll("details[open]").length`)
	do(t, ctx, script(`dispatchEvent(new Event("beforeprint"))`))
	holds(t, ctx, "on paper everything is open", `document.querySelectorAll("details:not([open])").length === 0`)
	do(t, ctx, script(`dispatchEvent(new Event("afterprint"))`))
	holds(t, ctx, "afterwards it is as before", `document.querySelectorAll("details[open]").length === %d`, before)
	if pdf := get(t, ctx, chromedp.PrintToPDF()); !bytes.HasPrefix(pdf, []byte("%PDF-")) {
		t.Errorf("printing gives %.20q", pdf)
	}
}

func TestWithoutScripts(t *testing.T) {
	ctx := tab(t)
	do(t, ctx, command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.Navigate(write(t, walk(12))))
	do(t, ctx, chromedp.WaitVisible(".view svg .node"), chromedp.WaitVisible("#U103"),
		chromedp.WaitNotVisible("#theme"))
	picture(t, "no-script", get(t, ctx, chromedp.CaptureScreenshot()))
}

func picture(t *testing.T, name string, png []byte) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// axe is the script of axe-core, which npm fetches as the lock file says.
func axe(t *testing.T) string {
	t.Helper()
	const file = "node_modules/axe-core/axe.min.js"
	if _, err := os.Stat(file); err != nil {
		needed(t, "npm")
		if out, err := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund").CombinedOutput(); err != nil {
			t.Fatalf("npm ci: %v\n%s", err, out)
		}
	}
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// Nobody is kept out of the pages, whatever light they are read in and on whatever screen.
func TestAccessible(t *testing.T) {
	pages := map[string]string{"walk": write(t, walk(12)), "graph": catalogPage(t)}
	if *screenshots != "" {
		for _, extra := range flag.Args() {
			pages["given-"+strings.TrimSuffix(filepath.Base(extra), ".html")] = "file://" + extra
		}
	}
	for name, at := range pages {
		for _, view := range []struct {
			name   string
			dark   bool
			width  int64
			height int64
		}{{"light", false, 1280, 900}, {"dark", true, 1280, 900}, {"narrow", false, 390, 844}} {
			t.Run(name+"/"+view.name, func(t *testing.T) {
				ctx := tab(t)
				rules := axe(t)
				do(t, ctx, dark(view.dark), chromedp.EmulateViewport(view.width, view.height), chromedp.Navigate(at))
				picture(t, name+"-"+view.name, get(t, ctx, chromedp.FullScreenshot(100)))
				do(t, ctx, script(`for (const d of document.querySelectorAll("details")) d.open = true`), script(rules))
				found := get(t, ctx, chromedp.Evaluate[string](`axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations.map(v => ({
					id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map(n => n.html + " " + n.failureSummary)}))))`, chromedp.EvalAwaitPromise))
				var violations []struct {
					ID, Help string
					Nodes    []string
				}
				if err := json.Unmarshal([]byte(found), &violations); err != nil {
					t.Fatal(err)
				}
				for _, v := range violations {
					t.Errorf("%s: %s\n  %s", v.ID, v.Help, strings.Join(v.Nodes, "\n  "))
				}
				holds(t, ctx, "nothing is wider than the screen", `document.documentElement.scrollWidth <= innerWidth`)
			})
		}
	}
}

// How long a hundred versions take is printed; the machine decides more than the page, so nothing is asked of it.
func TestHundredVersions(t *testing.T) {
	ctx, at := tab(t), write(t, walk(99))
	info, err := os.Stat(strings.TrimPrefix(at, "file://"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		do(t, ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(at))
		holds(t, ctx, "all versions are drawn", `document.querySelectorAll(".node").length === 100 && document.querySelectorAll("details.hop").length === 99`)
		times := ask[[]float64](t, ctx, `(() => { const n = performance.getEntriesByType("navigation")[0]; return [n.domInteractive, performance.getEntriesByName("olmkit-ready")[0].startTime, n.loadEventEnd] })()`)
		t.Logf("100 versions, %d KiB: parsed after %.0f ms, interactive after %.0f ms, loaded after %.0f ms", info.Size()/1024, times[0], times[1], times[2])
	}
}
