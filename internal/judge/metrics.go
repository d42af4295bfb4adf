package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// Metrics tells what of the metrics of the operator of the release called from that of the one called to does not report any more, whether these are for
// all to read, and which tell of what is gone.
func Metrics(from, to string, was, is observe.Metrics) []finding.Finding {
	switch {
	case was.Port == "":
		return nil
	case is.Port == "" && is.Refused != "":
		return []finding.Finding{code.Finding(code.MetricsGone, "", "who may read %s is told %s by the operator of %s; that of %s served %d metrics there, at %s", observe.MetricsPath, is.Refused, to, from, len(was.Families), was.Port)}
	case is.Port == "":
		return []finding.Finding{code.Finding(code.MetricsGone, "", "the operator of %s serves no metrics at %s of a port that it declares or that a Service leads to; that of %s served %d at %s", to, observe.MetricsPath, from, len(was.Families), was.Port)}
	}
	var findings []finding.Finding
	if was.Service != "" && is.Service == "" {
		findings = append(findings, code.Finding(code.MetricsGone, "", "no Service leads to the metrics of the operator of %s, at %s of its pods: those who look for Service %s of %s, as ServiceMonitors do, find nothing", to, is.Port, was.Service, from))
	}
	if is.Open != "" && was.Open == "" {
		findings = append(findings, code.Finding(code.MetricsOpen, "", "the operator of %s serves its metrics at %s to whoever asks; that of %s asked for a token", to, is.Open, from))
	}
	gone, unheard := metricsLess(was, is)
	if len(gone) > 0 {
		findings = append(findings, code.Finding(code.MetricsLess, "", "the operator of %s does not report %s; that of %s did", to, strings.Join(gone, ", "), from))
	}
	if stale := without(is.Stale, was.Stale); len(stale) > 0 {
		findings = append(findings, code.Finding(code.MetricsLess, "", "the operator of %s goes on reporting an object that is gone in %s; that of %s did not: alerts on it do not end, and who makes many objects fills its memory", to, strings.Join(stale, ", "), from))
	}
	if len(unheard) > 0 {
		f := code.Finding(code.MetricsLess, "", "the operator of %s has not reported %s, as that of %s did: there may have been nothing to count", to, strings.Join(unheard, ", "), from)
		f.Severity = finding.Info
		findings = append(findings, f)
	}
	return findings
}

// metricsLess are the operator's own metrics, and labels of these, that was has and is has not. A metric with labels has no series until there is
// something to count: it may be unheard.
func metricsLess(was, is observe.Metrics) (gone, unheard []string) {
	for _, name := range slices.Sorted(maps.Keys(was.Families)) {
		now, reported := is.Families[name]
		switch labels := was.Families[name]; {
		case ofLibrary(name):
		case !reported && len(labels) == 0:
			gone = append(gone, name)
		case !reported:
			unheard = append(unheard, name)
		default:
			for _, label := range labels {
				if !slices.Contains(now, label) {
					gone = append(gone, fmt.Sprintf("the label %s of %s", label, name))
				}
			}
		}
	}
	return gone, unheard
}

// ofLibrary reports whether a metric is one of the libraries' that operators are made with, which come and go with their versions.
func ofLibrary(name string) bool {
	return slices.ContainsFunc([]string{
		"go_", "process_", "promhttp_", "controller_runtime_", "workqueue_", "rest_client_", "leader_election_", "certwatcher_", "reconcile_", "ansible_operator_", "helm_operator_",
		"apiserver_", "authentication_", "authorization_", "authenticated_", "kubernetes_", "hidden_metrics_", "jvm_", "system_", "executor_", "http_server_", "logback_", "operator_sdk_", "python_", "tokio_", "vertx_", "kopf_", "registered_metrics_", "disabled_metrics_", "build_info",
	}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
