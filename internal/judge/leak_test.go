package judge_test

import (
	"testing"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

func TestLeaks(t *testing.T) {
	operand := func(kind, name, said string) observe.Operand {
		return observe.Operand{Of: "Pot/n/a", Kind: kind, Namespace: "n", Name: name, Content: map[string]any{"data": map[string]any{"conf": said}}}
	}
	all := func(list ...observe.Operand) map[string]observe.Operand {
		operands := map[string]observe.Operand{}
		for _, o := range list {
			operands[o.String()] = o
		}
		return operands
	}
	secret := operand("Secret", "s", "(hidden) sha256:0a")
	plain, leaks := operand("ConfigMap", "c", "size=1"), operand("ConfigMap", "c", "size=1 password=(hidden) sha256:0a")
	told := "error U516 ConfigMap/n/c: it says in data.conf what Secret/n/s holds in data.conf, and did not before the upgrade: whoever may read it has that"
	for name, c := range map[string]struct {
		before, after map[string]observe.Operand
		want          []string
	}{
		"none":                           {all(secret, plain), all(secret, plain), nil},
		"as before":                      {all(secret, leaks), all(secret, leaks), nil},
		"no more":                        {all(secret, leaks), all(secret, plain), nil},
		"new":                            {all(secret, plain), all(secret, leaks), []string{told}},
		"in what is new":                 {all(secret), all(secret, leaks), []string{told}},
		"renamed":                        {all(secret, operand("ConfigMap", "old", "(hidden) sha256:0a")), all(secret, leaks), nil},
		"another secret":                 {all(plain), all(leaks), []string{"error U516 ConfigMap/n/c: it says in data.conf what a Secret holds, and did not before the upgrade: whoever may read it has that"}},
		"a pod and its template are one": {all(secret), all(secret, operand("Pod", "p", "(hidden) sha256:0a")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Findings(t, judge.Leaks(c.before, c.after), c.want...)
		})
	}
}
