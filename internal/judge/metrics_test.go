package judge_test

import (
	"testing"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

func TestMetrics(t *testing.T) {
	own := func(more ...string) map[string][]string {
		families := map[string][]string{"go_goroutines": nil, "acme_queues": nil, "acme_messages": {"namespace", "queue"}}
		for _, name := range more {
			families[name] = nil
		}
		return families
	}
	was := observe.Metrics{Port: "https:8443", Families: own()}
	for name, c := range map[string]struct {
		was, is observe.Metrics
		want    string
	}{
		"the same":                {was, was, ""},
		"one more":                {was, observe.Metrics{Port: "https:9443", Families: own("acme_new")}, ""},
		"none before":             {observe.Metrics{}, observe.Metrics{Port: "http:8080", Open: "http:8080", Families: own()}, ""},
		"open before":             {observe.Metrics{Port: "http:8080", Open: "http:8080", Families: own()}, observe.Metrics{Port: "http:8080", Open: "http:8080", Families: own()}, ""},
		"closed since":            {observe.Metrics{Port: "http:8080", Open: "http:8080", Families: own()}, was, ""},
		"not served":              {was, observe.Metrics{}, "U527 error: the operator of b serves no metrics at /metrics of a port that it declares or that a Service leads to; that of a served 3 at https:8443"},
		"refused":                 {was, observe.Metrics{Refused: "403 Forbidden"}, "U527 error: who may read /metrics is told 403 Forbidden by the operator of b; that of a served 3 metrics there, at https:8443"},
		"refused by one of two":   {was, observe.Metrics{Port: "https:8443", Refused: "403 Forbidden", Families: own()}, ""},
		"no Service any more":     {observe.Metrics{Port: "https:8443", Service: "pots", Families: own()}, was, "U527 error: no Service leads to the metrics of the operator of b, at https:8443 of its pods: those who look for Service pots of a, as ServiceMonitors do, find nothing"},
		"another Service":         {observe.Metrics{Port: "https:8443", Service: "pots", Families: own()}, observe.Metrics{Port: "https:8443", Service: "metrics", Families: own()}, ""},
		"open":                    {was, observe.Metrics{Port: "http:8080", Open: "http:8080", Families: own()}, "U528 error: the operator of b serves its metrics at http:8080 to whoever asks; that of a asked for a token"},
		"one gone":                {was, observe.Metrics{Port: "https:8443", Families: map[string][]string{"acme_messages": {"namespace", "queue"}}}, "U529 warning: the operator of b does not report acme_queues; that of a did"},
		"a label gone":            {was, observe.Metrics{Port: "https:8443", Families: map[string][]string{"acme_queues": nil, "acme_messages": {"queue"}}}, "U529 warning: the operator of b does not report the label namespace of acme_messages; that of a did"},
		"one of what is gone":     {was, observe.Metrics{Port: "https:8443", Families: own(), Stale: []string{"acme_messages"}}, "U529 warning: the operator of b goes on reporting an object that is gone in acme_messages; that of a did not: alerts on it do not end, and who makes many objects fills its memory"},
		"gone before as well":     {observe.Metrics{Port: "https:8443", Families: own(), Stale: []string{"acme_messages"}}, observe.Metrics{Port: "https:8443", Families: own(), Stale: []string{"acme_messages"}}, ""},
		"one that counts nothing": {was, observe.Metrics{Port: "https:8443", Families: map[string][]string{"acme_queues": nil}}, "U529 info: the operator of b has not reported acme_messages, as that of a did: there may have been nothing to count"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, f := range judge.Metrics("a", "b", c.was, c.is) {
				got += f.Code + " " + string(f.Severity) + ": " + f.Message
			}
			if got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}
