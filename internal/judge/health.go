package judge

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// HealthLimit is how long objects and operands have to become as ready as they were before a hop, since the last pod was replaced: a
// StatefulSet replaces its pods one after the other.
const HealthLimit = 45 * time.Second

// GoLimit is how long an object has to go with the namespace that it is in.
const GoLimit = time.Minute

// mostDelay is how much longer what asks for a delay has at most.
const mostDelay = 2 * HealthLimit

// Delay is how long the pods of operands ask to be left before they count as ready: the longest of their readiness and startup probes' initial
// delay, and of the time for which they must be ready, up to mostDelay.
func Delay(operands map[string]observe.Operand) time.Duration {
	longest := int64(0)
	for _, o := range operands {
		if !o.Direct || !slices.Contains(WorkloadKinds, o.Kind) {
			continue
		}
		stable, _, _ := unstructured.NestedInt64(o.Content, "spec", "minReadySeconds")
		delay := int64(0)
		template, _ := o.Template()
		for _, c := range template.Spec.Containers {
			for _, probe := range []*corev1.Probe{c.ReadinessProbe, c.StartupProbe} {
				if probe != nil {
					delay = max(delay, int64(probe.InitialDelaySeconds))
				}
			}
		}
		longest = max(longest, stable+delay)
	}
	return min(time.Duration(longest)*time.Second, mostDelay)
}

// Health tells the operands that were ready before and are not any more, and those that are new and not ready. Pods and ReplicaSets are
// told by what makes them.
func Health(before, after map[string]observe.Operand) []finding.Finding {
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was, is := before[name], after[name]
		if idle(was, after) {
			findings = append(findings, code.Finding(code.OperandWorse, name, "it was deleted during the upgrade, and nothing runs for %s any more", was.Of))
			continue
		}
		if was.Transient() || was.Unready != "" || is.Unready == "" || promised(after, is) {
			continue
		}
		findings = append(findings, worse(after, is, code.Finding(code.OperandWorse, name, "it was ready before the upgrade and has not been again for %s: %s", HealthLimit, is.Unready)))
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if is := after[name]; added(before, after, name) && is.Unready != "" {
			findings = append(findings, worse(after, is, code.Finding(code.OperandWorse, name, "the new version added it for %s, and for %s it has not been ready: %s", is.Of, HealthLimit, is.Unready)))
		}
	}
	return findings
}

// countField is how fields end that say how many of something there are to be.
var countField = observe.Compiled(`(?i)(replicas?|size|instances|nodes|members|count)$`)

// asksFor reports whether a field of spec that counts something says n.
func asksFor(spec any, n int64) bool {
	fields, _ := spec.(map[string]any)
	for name, value := range fields {
		if number, ok := value.(int64); ok && number == n && countField().MatchString(name) || asksFor(value, n) {
			return true
		}
	}
	return false
}

// Less tells the workloads that run less for objects that nobody changed: fewer replicas than before and than the object asks for, though nothing
// scales them and no other workload is new in their place, or none since they are suspended or paused.
func Less(objects []*observe.Object, before, after map[string]observe.Operand) []finding.Finding {
	specs := map[string]any{}
	for _, o := range objects {
		specs[o.String()] = o.Author["spec"]
	}
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		is, there := after[name]
		if !there || !slices.Contains(WorkloadKinds, is.Kind) {
			continue
		}
		instead := func(o observe.Operand) bool {
			_, known := before[o.String()]
			return o.Of == is.Of && !known && slices.Contains(WorkloadKinds, o.Kind)
		}
		wanted, has := replicasOf(was.Content), replicasOf(is.Content)
		if has < wanted && !asksFor(specs[is.Of], has) && !Scaled(is, after) && !slices.ContainsFunc(slices.Collect(maps.Values(after)), instead) {
			findings = append(findings, code.Finding(code.OperandWorse, name, "the new version runs %d replicas of it, and the old one ran %d, though nobody changed %s", has, wanted, is.Of))
		}
		for _, field := range []string{"suspend", "paused"} {
			if stopped(is, field) && !stopped(was, field) {
				findings = append(findings, code.Finding(code.OperandWorse, name, "the new version sets its spec.%s, though nobody changed %s", field, is.Of))
			}
		}
	}
	return findings
}

// Scaled reports whether among operands there is a HorizontalPodAutoscaler that scales a workload.
func Scaled(workload observe.Operand, operands map[string]observe.Operand) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(operands)), func(o observe.Operand) bool {
		target, _, _ := unstructured.NestedStringMap(o.Content, "spec", "scaleTargetRef")
		return o.Kind == "HorizontalPodAutoscaler" && o.Namespace == workload.Namespace && target["kind"] == workload.Kind && target["name"] == workload.Name
	})
}

// stopped reports whether the field of a workload that stops it is set.
func stopped(o observe.Operand, field string) bool {
	is, _, _ := unstructured.NestedBool(o.Content, "spec", field)
	return is
}

// worse says in f, about the operand is, which pod the cluster refuses or has no place for.
func worse(after map[string]observe.Operand, is observe.Operand, f finding.Finding) finding.Finding {
	if pod, why := blockedPod(after, is.Of, func(o observe.Operand) string { return o.Refused }); why != "" {
		f.Cause = pod + " is not run: " + why
		f.Fix = "take out of the pod what the cluster refuses, or test on one that gives it, with --cluster kind"
	}
	if pod, why := blockedPod(after, is.Of, func(o observe.Operand) string { return o.Crowded }); why != "" {
		f.Severity = finding.Warning
		f.Cause = pod + " would run on another node, and there is but one: " + why
		f.Fix = "test on a cluster with more nodes, with --cluster existing"
	}
	return f
}

// added reports whether the workload called name is new for an object whose workloads were all ready before, so that what runs for it can be
// ready there. A Job may fail if another new one does not: operators try again.
func added(before, after map[string]observe.Operand, name string) bool {
	is := after[name]
	if _, there := before[name]; there || !is.Direct || !slices.Contains(WorkloadKinds, is.Kind) {
		return false
	}
	ready := false
	for _, o := range before {
		if o.Of == is.Of && slices.Contains(WorkloadKinds, o.Kind) {
			if o.Unready != "" {
				return false
			}
			ready = true
		}
	}
	for other, o := range after {
		if _, there := before[other]; !there && is.Kind == "Job" && o.Of == is.Of && o.Kind == "Job" && o.Direct && o.Unready == "" {
			return false
		}
	}
	return ready && !promised(after, is)
}

// servingCertificate is the annotation of a Service for which OpenShift makes a Secret of that name; no other cluster does.
const servingCertificate = "service.beta.openshift.io/serving-cert-secret-name"

// promised reports whether a workload mounts a Secret that OpenShift makes for a Service of the same object, and that is not there.
func promised(operands map[string]observe.Operand, workload observe.Operand) bool {
	for _, o := range operands {
		annotations, _ := o.Marks["annotations"].(map[string]any)
		secret, _ := annotations[servingCertificate].(string)
		_, there := operands["Secret/"+workload.Namespace+"/"+secret]
		if o.Of == workload.Of && secret != "" && !there && Mounts(workload.Content, secret) {
			return true
		}
	}
	return false
}

// Mounts reports whether one of the volumes that content lists is of what is called name.
func Mounts(content any, name string) bool {
	return Names(content, name, func(key string) bool { return key == "volumes" })
}

// Names reports whether value says name anywhere below a key that wanted wants.
func Names(value any, name string, wanted func(key string) bool) bool {
	return namesBelow(value, name, wanted, false)
}

func namesBelow(value any, name string, wanted func(key string) bool, below bool) bool {
	switch v := value.(type) {
	case string:
		return below && v == name
	case map[string]any:
		for k, inner := range v {
			if namesBelow(inner, name, wanted, below || wanted(k)) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(inner any) bool { return namesBelow(inner, name, wanted, below) })
	}
	return false
}

// idle reports whether was ran something for its object, and nothing does after.
func idle(was observe.Operand, after map[string]observe.Operand) bool {
	runs := func(o observe.Operand) bool {
		return o.Of == was.Of && o.Kind != "Job" && slices.Contains(WorkloadKinds, o.Kind)
	}
	return runs(was) && !slices.ContainsFunc(slices.Collect(maps.Values(after)), runs)
}

// blockedPod names a pod made for the object of that does not run for a reason that reason tells, and that reason.
func blockedPod(operands map[string]observe.Operand, of string, reason func(observe.Operand) string) (name, why string) {
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		if o := operands[name]; o.Of == of && reason(o) != "" {
			return name, reason(o)
		}
	}
	return "", ""
}

// OperandImages tells images that the new version runs for an object whose pods really ran before, and that cannot be
// had: on a cluster that pulls them they may not be there.
func OperandImages(before, after map[string]observe.Operand, simulated []string) []finding.Finding {
	ran, known := map[string]bool{}, map[string]bool{}
	for _, o := range before {
		for _, image := range o.Images {
			known[image] = true
			ran[o.Of] = ran[o.Of] || !slices.Contains(simulated, image)
		}
	}
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(after)) {
		for _, image := range after[name].Images {
			if ran[after[name].Of] && !known[image] && slices.Contains(simulated, image) {
				findings = append(findings, code.Finding(code.OperandImage, name, "its image %s cannot be had, so the pod is simulated; the pods made for %s ran before the upgrade", image, after[name].Of))
			}
		}
	}
	return findings
}
