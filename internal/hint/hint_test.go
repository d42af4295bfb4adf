package hint

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestErrors(t *testing.T) {
	a, b, c := With(errors.New("a"), "fix a"), errors.New("b"), errors.New("c")
	for name, test := range map[string]struct {
		err  error
		want []string
	}{
		"one":                 {a, []string{"a"}},
		"joined":              {errors.Join(a, b), []string{"a", "b"}},
		"joined twice":        {errors.Join(errors.Join(a, b), c), []string{"a", "b", "c"}},
		"a join with advice":  {With(errors.Join(a, b), "fix"), []string{"a\nb"}},
		"a join with a text":  {fmt.Errorf("x: %w", errors.Join(a, b)), []string{"x: a\nb"}},
		"several in one text": {fmt.Errorf("%w and %w", a, b), []string{"a and b"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range Errors(test.err) {
				got = append(got, err.Error())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if got := Of(Errors(errors.Join(b, a))[1]); got != "fix a" {
		t.Errorf("fix %q", got)
	}
}
