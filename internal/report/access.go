package report

import (
	"fmt"
	"slices"
	"strings"
)

// Access is what a ServiceAccount of a release did with the rights that the release's CSV gives it, as the API server's audit log
// tells.
type Access struct {
	Package string `json:"package"`
	Release string `json:"release"`        // name of the bundle
	Version string `json:"version"`        // of the release
	Account string `json:"serviceAccount"` // its name
	OLM     string `json:"olm,omitempty"`  // v0 or v1, or the release of OLM v0, where several walks are compared

	Kubernetes string  `json:"kubernetes,omitempty"` // the release, where several are compared
	Used       []Right `json:"used,omitempty"`
	Unused     []Right `json:"unused,omitempty"`
	Kept       []Right `json:"kept,omitempty"`   // that an audit log cannot show to be used, or that the cluster cannot: they are no part of Unused
	Denied     []Right `json:"denied,omitempty"` // that it asked for and does not have
}

// Right is what may be done with one resource, or one URL.
type Right struct {
	Scope    string   `json:"scope"` // cluster (clusterPermissions of the CSV) or namespace (permissions)
	Group    string   `json:"group"`
	Resource string   `json:"resource,omitempty"` // with its subresource
	URL      string   `json:"url,omitempty"`      // in place of a resource
	Names    []string `json:"names,omitempty"`    // of the only objects that it is about
	Verbs    []string `json:"verbs"`
}

// The scopes of rights.
const (
	ScopeCluster   = "cluster"
	ScopeNamespace = "namespace"
)

// String names the right as kubectl does: get, list pods.
func (r Right) String() string {
	resource := r.Resource + r.URL
	if name, sub, _ := strings.Cut(r.Resource, "/"); r.Group != "" && r.Resource != "" {
		resource = strings.TrimSuffix(name+"."+r.Group+"/"+sub, "/")
	}
	if len(r.Names) > 0 {
		resource += " (" + strings.Join(r.Names, ", ") + ")"
	}
	return strings.Join(r.Verbs, ", ") + " " + resource
}

// verbsIn counts the single rights of a list.
func verbsIn(list []Right) int {
	n := 0
	for _, r := range list {
		n += len(r.Verbs) * max(1, len(r.Names))
	}
	return n
}

// Summary says in a sentence how much of its rights an account used.
func (a Access) Summary() string {
	used, all := verbsIn(a.Used), verbsIn(a.Used)+verbsIn(a.Unused)+verbsIn(a.Kept)
	s := fmt.Sprintf("%s%s: ServiceAccount %s used %d of its %d rights", a.Release, of(a.OLM, a.Kubernetes), a.Account, used, all)
	if n := verbsIn(a.Denied); n > 0 {
		s += fmt.Sprintf(", and was denied %d that it asked for", n)
	}
	return s
}

// lists are an account's rights that are to be looked at, by what they are.
func (a Access) lists() []string {
	var lines []string
	for _, l := range []struct {
		title string
		list  []Right
	}{{"denied", a.Denied}, {"never used", a.Unused}} {
		for _, scope := range []string{ScopeCluster, ScopeNamespace} {
			var told []string
			for _, r := range l.list {
				if r.Scope == scope {
					told = append(told, r.String())
				}
			}
			if len(told) > 0 {
				lines = append(lines, fmt.Sprintf("%s (%s): %s", l.title, scope, strings.Join(told, "; ")))
			}
		}
	}
	return lines
}

// rbacHint says what the measured rights are good for.
const rbacHint = "'olmkit bundle generate --rbac-from REPORT' proposes the least rights, from this report as JSON"

// access prints what accounts did with their rights: the numbers, and all of it if everything is told.
func (t *text) access(r *Report) {
	if len(r.Access) == 0 {
		return
	}
	t.gap()
	t.line("%s", t.paint(bold, "rights"))
	for _, a := range r.Access {
		t.paragraph("  ", a.Summary())
		if !r.Verbose {
			continue
		}
		for _, line := range a.lists() {
			t.paragraph("    ", line)
		}
	}
	if slices.ContainsFunc(r.Access, func(a Access) bool { return len(a.Unused) > 0 }) {
		t.paragraph("  ", rbacHint)
	}
}

// access folds away what accounts did with their rights.
func (m *markdown) access(r *Report) {
	var lines []string
	for _, a := range r.Access {
		lines = append(lines, "- "+cell(a.Summary()))
		for _, line := range a.lists() {
			lines = append(lines, "  - "+cell(line))
		}
	}
	m.folded("rights that were used", false, "", lines)
}

// accessView is an account's rights on a page.
type accessView struct {
	Summary string
	Lists   []string
}

func accessViews(r *Report) []accessView {
	var views []accessView
	for _, a := range r.Access {
		views = append(views, accessView{a.Summary(), a.lists()})
	}
	return views
}
