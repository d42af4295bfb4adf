package walk

import (
	"testing"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// What repeats a Secret has to say what that says once it is made anew.
func TestRepeats(t *testing.T) {
	p, plan := thingsOf(t, lifecycle.AllNamespaces, `{"size":1}`, "v1", "v2", "v3")
	expectAll(t, p, plan, []pairing{
		{repeats, repeats, "", ""},
		{repeats, repeatsOnce, code.DoesLess, "when its Secret is made anew, ConfigMap default/olmkit-samples.a goes on with what that said before"},
		{repeatsOnce, repeatsOnce, "", ""},
		{repeatsOnce, repeats, "", ""},
	})
}
