package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func bench(start string) string {
	return "goos: linux\nBenchmarkStart-2 \t 3 \t" + start + " ns/op\t 0.05 cpu-sec/op\nBenchmarkStart-2 \t 3 \t" + start + " ns/op\t 0.07 cpu-sec/op\nBenchmarkValidate/bundles=5/cold-2 1 7 ns/op\nPASS\n"
}

func TestHistory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	at := time.Date(2026, 11, 1, 1, 0, 0, 0, time.UTC)
	add := func(commit, release, text string) string {
		t.Helper()
		at = at.Add(24 * time.Hour)
		var out strings.Builder
		if err := run(dir, commit, release, at, strings.NewReader(text), &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if said := add("aaa", "", bench("100")); !strings.Contains(said, "first results") {
		t.Errorf("of the first results it says %q", said)
	}
	if said := add("bbb", "v1.0.0", bench("200")); !strings.Contains(said, "+100.0%") {
		t.Errorf("without a release it compares with the last results: %q", said)
	}
	add("ccc", "", bench("400"))
	said := add("ddd", "", bench("100"))
	if !strings.Contains(said, "against v1.0.0") || !strings.Contains(said, "-50.0%") {
		t.Errorf("it does not compare with the last release: %q", said)
	}
	if strings.Count(said, "0.06") != 2 || !strings.Contains(said, "Validate/bundles=5/cold ns/op") {
		t.Errorf("the medians are wrong: %q", said)
	}
	text, err := os.ReadFile(filepath.Join(dir, "2026-11-03T010000Z-bbb.txt"))
	if err != nil || !strings.HasPrefix(string(text), "commit: bbb\nrelease: v1.0.0\ngoos: linux\nBenchmarkStart-2 ") {
		t.Errorf("the results are not kept as benchstat reads them: %v\n%s", err, text)
	}
	html, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil || strings.Count(string(html), "<svg") != 3 || strings.Count(string(html), "<circle") != 12 || strings.Count(string(html), `r="5"`) != 3 {
		t.Errorf("the page is wrong: %v\n%s", err, html)
	}
}

func TestNoResults(t *testing.T) {
	dir := t.TempDir()
	if err := run(dir, "aaa", "", time.Now(), strings.NewReader("FAIL\n"), &strings.Builder{}); err == nil {
		t.Error("no results are kept as some")
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("it leaves %v", files)
	}
}
