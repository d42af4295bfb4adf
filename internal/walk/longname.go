package walk

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/observe"
)

// longestOf are how long the names of some kinds may be, whose controllers add to them what a label has to hold: the Job's time of a CronJob, and the revision's hash of a StatefulSet's pods.
var longestOf = map[string]int{"CronJob": 52, "StatefulSet": 52}

// longestName is how long the name of an object like o may be: all that says it in what is made for o, operands, stays within the 63 characters that Kubernetes takes for labels, Services and
// what pods have (k8s.io/apimachinery v0.36.3 pkg/util/validation/validation.go). It is 0 where nothing says it.
func (o *newObject) longestName(operands map[string]observe.Operand) (longest int) {
	within := func(text string, most int) {
		if times := strings.Count(text, o.Name); times > 0 {
			if fits := (most - len(text) + times*len(o.Name)) / times; longest == 0 || fits < longest {
				longest = fits
			}
		}
	}
	for _, made := range operands {
		if !made.Direct {
			continue
		}
		within(made.Name, cmp.Or(longestOf[made.Kind], validation.DNS1123LabelMaxLength))
		for _, text := range compare.Values(made.Content) {
			if len(validation.IsDNS1123Label(text)) == 0 {
				within(text, validation.DNS1123LabelMaxLength)
			}
		}
	}
	return longest
}
