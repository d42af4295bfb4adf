package judge

import (
	"strings"
	"testing"
)

func TestOtherwise(t *testing.T) {
	was := New{Of: "a", Sample: "Pot/n/a", Fixed: map[string]string{"Secret immutable": "true", "StatefulSet spec.serviceName": "…"}}
	for name, c := range map[string]struct {
		is   New
		want string
	}{
		"the same":               {was, ""},
		"not set any more":       {New{Of: "a", Fixed: map[string]string{"Secret immutable": ""}}, "Secret immutable was true and is not set"},
		"another":                {New{Of: "a", Fixed: map[string]string{"StatefulSet spec.serviceName": "…-pods"}}, "StatefulSet spec.serviceName was … and is …-pods"},
		"something else":         {New{Of: "a", Fixed: map[string]string{"Secret …-more immutable": ""}}, ""},
		"of another sample":      {New{Of: "b", Fixed: map[string]string{"Secret immutable": ""}}, ""},
		"the copied one":         {New{Of: "c", Fixed: map[string]string{"Secret immutable": ""}}, ""},
		"nothing is known of it": {New{Of: "a"}, ""},
	} {
		got := ""
		for _, f := range otherwise("v1", "v2", New{Of: "c"}, was, c.is) {
			got += f.Message
		}
		if c.want == "" && got != "" || !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
