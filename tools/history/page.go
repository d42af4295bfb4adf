package main

import (
	"bytes"
	"fmt"
	"html"
	"maps"
	"slices"
)

// Size of a drawing, in pixels.
const (
	width, height = 720, 120
	margin        = 8
)

// page draws each benchmark's medians, the oldest to the left; releases are larger points.
func page(all []results) []byte {
	keys := map[string]bool{}
	for _, r := range all {
		for key := range r.values {
			keys[key] = true
		}
	}
	var out bytes.Buffer
	out.WriteString(`<!doctype html>
<meta charset="utf-8">
<title>olmkit benchmarks</title>
<style>body { font: 14px sans-serif; margin: 2em } svg { background: #f6f8fa } polyline { fill: none; stroke: #0969da } circle { fill: #0969da }</style>
<h1>Benchmarks of olmkit</h1>
<p>Medians, the oldest to the left. Large points are releases. Each drawing begins at zero.</p>
`)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		draw(&out, key, all)
	}
	return out.Bytes()
}

func draw(out *bytes.Buffer, key string, all []results) {
	most, last := 0.0, 0.0
	for _, r := range all {
		if values := r.values[key]; len(values) > 0 {
			last = median(values)
			most = max(most, last)
		}
	}
	fmt.Fprintf(out, "<h2>%s: %.6g</h2>\n<svg width=\"%d\" height=\"%d\">", html.EscapeString(key), last, width, height)
	var line, points bytes.Buffer
	for i, r := range all {
		values := r.values[key]
		if len(values) == 0 {
			continue
		}
		x, y := float64(margin), float64(height-margin)
		if len(all) > 1 {
			x += float64(i) * (width - 2*margin) / float64(len(all)-1)
		}
		if most > 0 {
			y -= median(values) / most * (height - 2*margin)
		}
		radius := 2
		if r.release != "" {
			radius = 5
		}
		fmt.Fprintf(&line, "%.1f,%.1f ", x, y)
		fmt.Fprintf(&points, `<circle cx="%.1f" cy="%.1f" r="%d"><title>%s %s: %.6g</title></circle>`, x, y, radius, html.EscapeString(r.name), html.EscapeString(r.release), median(values))
	}
	fmt.Fprintf(out, "<polyline points=\"%s\"/>%s</svg>\n", bytes.TrimSpace(line.Bytes()), points.String())
}
