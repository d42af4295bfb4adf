package rbac

import (
	"testing"

	"github.com/olmkit/olmkit/internal/report"
)

// A right that one part of a walk used is used, one that a part kept is kept, and the newest release comes last.
func TestJoin(t *testing.T) {
	rights := func(verbs ...string) []report.Right {
		return []report.Right{{Scope: report.ScopeCluster, Resource: "pods", Verbs: verbs}}
	}
	list := Join([]report.Access{
		{Release: "a.v1.0.0", Version: "1.0.0", Account: "m"},
		{Release: "a.v1.10.0", Version: "1.10.0", Account: "m", Used: rights("get"), Unused: rights("delete", "list", "watch"), Kept: rights("create")},
		{Release: "a.v1.9.0", Version: "1.9.0", Account: "m", Unused: rights("get")},
		{Release: "a.v1.10.0", Version: "1.10.0", Account: "m", Used: rights("list"), Unused: rights("create", "delete", "get"), Kept: rights("watch"), Denied: rights("patch")},
		{Release: "a.v1.10.0", Version: "1.10.0", Account: "n", Used: rights("delete")},
	})
	said := ""
	for _, a := range list {
		said += a.Release + " " + a.Account
		for _, rights := range [][]report.Right{a.Used, a.Unused, a.Kept, a.Denied} {
			said += " |"
			for _, r := range rights {
				said += " " + r.String()
			}
		}
		said += "\n"
	}
	if want := `a.v1.0.0 m | | | |
a.v1.9.0 m | | get pods | |
a.v1.10.0 m | get, list pods | delete pods | create, watch pods | patch pods
a.v1.10.0 n | delete pods | | |
`; said != want {
		t.Errorf("%s\nwant %s", said, want)
	}
}
