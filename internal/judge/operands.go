package judge

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// Endpoints asks whether the Services among operands had an endpoint that takes requests all through timeline.
func Endpoints(timeline []lifecycle.Event, operands map[string]observe.Operand) []finding.Finding {
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		o := operands[name]
		if o.Kind != observe.KindService {
			continue
		}
		var down, total time.Duration
		var since time.Time
		for _, e := range timeline {
			switch {
			case e.Kind != observe.KindService || e.Name != o.Namespace+"/"+o.Name:
			case e.State != observe.StateReady && since.IsZero():
				since = e.At
			case e.State == observe.StateReady && !since.IsZero():
				down, since = e.At.Sub(since), time.Time{}
				total += down
			}
		}
		if since.IsZero() && total > 0 { // one that still has none is judged as an operand's health
			findings = append(findings, code.Finding(code.OperandOutage, name, "it had no ready endpoint for %.1fs during the upgrade", max(total, 100*time.Millisecond).Seconds()))
		}
	}
	return findings
}

// ExplainEndpoints says of Services that lost their endpoints what else was found of a workload of the same object: one that
// the API server refused to change, that was made anew or is less ready than before. What mends that mends the Service.
func ExplainEndpoints(findings []finding.Finding, operands map[string]observe.Operand) []finding.Finding {
	for i, f := range findings {
		service, known := operands[f.Subject.Object]
		if f.Code != code.OperandOutage || !known {
			continue
		}
		for _, g := range findings {
			refused := slices.Contains(refusals, g.Code)
			if !refused && g.Code != code.OperandReplaced && g.Code != code.OperandWorse {
				continue
			}
			if o := workloadOf(service.Of, g.Subject.Object, operands); o != nil {
				findings[i].Cause, findings[i].Fix = fmt.Sprintf("%s, which was made for the same object: %s (%s)", o, g.Message, g.Code), g.Fix
				break
			}
		}
	}
	return findings
}

// refusals are the codes of what the API server refused the operator; their findings name an object by its resource.
var refusals = []string{code.Forbidden, code.NoResource, code.Conflicts, code.Invalid, code.Denied}

// workloadOf returns the operand with pods that was made for the object called of and that subject names, or nil.
func workloadOf(of, subject string, operands map[string]observe.Operand) *observe.Operand {
	for _, o := range operands {
		name := "/" + o.Namespace + "/" + o.Name
		runs := slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "Pod"}, o.Kind)
		if runs && o.Of == of && strings.HasSuffix(subject, name) && strings.HasPrefix(strings.ToLower(subject), strings.ToLower(o.Kind)) {
			return &o
		}
	}
	return nil
}

// Dropped tells the definitions of from that to does not own any more: those that are still there, and those that are gone, or going,
// with all of their objects.
func Dropped(from, to *lifecycle.Release, there map[string]*lifecycle.Definition) []finding.Finding {
	var findings []finding.Finding
	for _, d := range from.CRDs {
		object := "CustomResourceDefinition/" + d.Name
		switch now := there[d.Name]; {
		case to.CRD(d.Name) != nil:
		case now == nil || now.Deleting:
			findings = append(findings, code.Finding(code.DefinitionDeleted, object,
				"%s owned it and %s does not: the upgrade deleted it, and with it all of its objects", from.Name, to.Name))
		default:
			findings = append(findings, code.Finding(code.DefinitionDropped, object,
				"%s owned it and %s does not: OLM leaves it, with its objects, to nobody", from.Name, to.Name))
		}
	}
	return findings
}

// Operands compares the operands before and after a hop. That ReplicaSets and pods come and go follows from what
// changed in their owners.
func Operands(before, after map[string]observe.Operand) []finding.Finding {
	findings := namespacesGone(before, after)
	var rolled []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		is, there := after[name]
		switch {
		case was.Kind == observe.KindClaim && !was.Transient() && (!there || is.Volume() != was.Volume()): // Claims tells
		case idle(was, after): // Health tells
		case !there && followed(was, before, after): // as those who run something from time to time keep the last few
		case was.Kind == "Pod" && is.UID != was.UID && !ofJob(before, was):
			rolled = append(rolled, was.Namespace+"/"+was.Name)
		case was.Transient() && is.UID != was.UID:
		case was.Kind == observe.KindNamespace && is.UID != was.UID: // told already
		case !there && was.Kind == observe.KindService:
			findings = append(findings, code.Finding(code.PortGone, name, "it was deleted during the upgrade, and its clients find nothing under its name"))
		case !there:
			findings = append(findings, code.Finding(code.OperandReplaced, name, "it was deleted during the upgrade"))
		case is.UID != was.UID:
			findings = append(findings, code.Finding(code.OperandReplaced, name, "it was deleted and made anew during the upgrade: its UID is another"))
			broken, _ := clientsCut(name, was, is)
			findings = append(findings, broken...)
		case is.Restarts > was.Restarts:
			findings = append(findings, code.Finding(code.OperandRestarted, name, "its containers were restarted %d times during the upgrade", is.Restarts-was.Restarts))
		case !was.Transient():
			if is.Disowned && !was.Disowned {
				findings = append(findings, code.Finding(code.OperandChanged, name, "the new version took its owner reference to %s away: "+
					"when that is deleted, Kubernetes leaves it, and only the operator can delete it", was.Of))
			}
			if gone := marksGone(was, is); len(gone) > 0 {
				findings = append(findings, code.Finding(code.OperandChanged, name, "the new version took from it what others may select it or be configured by: %s", strings.Join(gone, ", ")))
			}
			findings = append(findings, accessChanged(name, was, is)...)
			broken, places := clientsCut(name, was, is)
			findings = append(findings, broken...)
			if len(places) > 0 {
				f := code.Finding(code.OperandChanged, name, "the new version changed it although nobody changed the object it was made for: %s", places)
				if !slices.ContainsFunc(places, otherThanTag) { // as new releases do
					f.Severity = finding.Info
				}
				if taken := takenSecrets(was, is, after); len(taken) > 0 {
					f.Severity, f.Cause = finding.Error, "its containers do not get Secret "+strings.Join(taken, ", ")+" any more, which is still there, nor another one in its place"
				}
				findings = append(findings, f)
			}
			if more := itemsAdded(was, is); len(more) > 0 {
				f := code.Finding(code.OperandChanged, name, "the new version added to it %s", strings.Join(more, ", "))
				f.Severity = finding.Info
				findings = append(findings, f)
			}
		}
	}
	if len(rolled) > 0 {
		findings = append(findings, code.Finding(code.OperandRolled, "", "the upgrade replaced %d pods that were made for objects: %s", len(rolled), strings.Join(rolled, ", ")))
	}
	return findings
}

// followed reports whether was is a Job that had ended, and there is another one now of the same object.
func followed(was observe.Operand, before, after map[string]observe.Operand) bool {
	if was.Kind != "Job" || was.Unready != "" {
		return false
	}
	for name, is := range after {
		if _, there := before[name]; !there && is.Kind == "Job" && is.Of == was.Of {
			return true
		}
	}
	return false
}

// namespacesGone tells the namespaces that were made for objects, or in which something was, and that are gone or other ones of the name.
func namespacesGone(before, after map[string]observe.Operand) (findings []finding.Finding) {
	gone := map[string]bool{}
	for name, was := range before {
		is, there := after[name]
		if was.Kind == observe.KindNamespace && is.UID != was.UID {
			gone[was.Name] = true
		} else if there && was.Within != "" && is.Within != "" && is.Within != was.Within {
			gone[was.Namespace] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		findings = append(findings, code.Finding(code.DataLost, observe.KindNamespace+"/"+name, "it was deleted during the upgrade, with all that was in it"))
	}
	return findings
}

// otherThanTag reports whether a field is something else than an image of the same repository and the same major version as before.
func otherThanTag(d compare.Difference) bool {
	was, _ := d.Was.(string)
	is, _ := d.Is.(string)
	return !strings.HasSuffix(d.Path, "].image") || repository(was) != repository(is) || major(was) != major(is)
}

// major is the first number of an image's tag, "" for none.
func major(image string) string {
	_, tag, _ := SplitImage(image)
	tag = strings.TrimPrefix(tag, "v")
	return tag[:len(tag)-len(strings.TrimLeft(tag, "0123456789"))]
}

// SplitImage takes a reference to an image apart; tag and digest are "" for none.
func SplitImage(image string) (repository, tag, digest string) {
	repository, digest, _ = strings.Cut(image, "@")
	if i := strings.LastIndex(repository, ":"); i > strings.LastIndex(repository, "/") {
		repository, tag = repository[:i], repository[i+1:]
	}
	return repository, tag, digest
}

// repository is a reference to an image without its tag and digest.
func repository(image string) string {
	repository, _, _ := SplitImage(image)
	return repository
}

// bookkeeping are labels and annotations by which an operator keeps what it wrote.
var bookkeeping = observe.Compiled(`(?i)^olmkit\.dev/|last-applied|hash|checksum|revision|generation`)

// marksGone names the labels and annotations that an operand had and has not any more.
func marksGone(was, is observe.Operand) []string {
	var gone []string
	for _, kind := range []string{"labels", "annotations"} {
		had, _ := was.Marks[kind].(map[string]any)
		has, _ := is.Marks[kind].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(had)) {
			if _, kept := has[key]; !kept && !bookkeeping().MatchString(key) {
				gone = append(gone, strings.TrimSuffix(kind, "s")+" "+key)
			}
		}
	}
	return gone
}

// clientsCut tells what clients that the old version served fail by, and returns what else differs.
func clientsCut(name string, was, is observe.Operand) (findings []finding.Finding, places compare.Diffs) {
	places = lostByName(was.Content, is.Content)
	if changed := credentialsChanged(was, is); len(changed) > 0 {
		findings = append(findings, code.Finding(code.Credentials, name, "%s changed although nobody changed the object it was made for", strings.Join(changed, ", ")))
		places = slices.DeleteFunc(places, func(d compare.Difference) bool { return slices.Contains(changed, d.Path) })
	}
	gone := portsGone(was, is)
	if len(gone) > 0 {
		findings = append(findings, code.Finding(code.PortGone, name, "clients that the old version served fail: %s", strings.Join(gone, "; ")))
	}
	places = slices.DeleteFunc(places, func(d compare.Difference) bool {
		return len(gone) > 0 && d.Path == "spec.type" || strings.HasPrefix(d.Path, "spec.ports") && (len(gone) > 0 || portsKept(was, is))
	})
	return findings, places
}

// itemKeys are the lists of a pod in which an item is found by the value of a field, and that field.
var itemKeys = map[string]string{"containers": "name", "initContainers": "name", "env": "name", "volumes": "name", "volumeMounts": "mountPath"}

// lostByName is what compare.Lost tells, with the items of those lists compared by name.
func lostByName(want, got map[string]any) compare.Diffs {
	lost := compare.Lost(keyed(want), keyed(got))
	for i, d := range lost {
		lost[i].Path = strings.ReplaceAll(d.Path, ".[", "[")
	}
	return lost
}

// keyed is v with the lists of itemKeys as maps, so that an item that is added or moved changes none of the others.
func keyed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		named := make(map[string]any, len(v))
		for key, value := range v {
			named[key] = keyed(value)
			if items, is := named[key].([]any); is && itemKeys[key] != "" {
				named[key] = itemsBy(itemKeys[key], items)
			}
		}
		return named
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = keyed(item)
		}
		return list
	}
	return v
}

// itemsBy is a map of items by what each has in field, in brackets, or items where they cannot be told apart by it.
func itemsBy(field string, items []any) any {
	byValue := make(map[string]any, len(items))
	for _, item := range items {
		fields, _ := item.(map[string]any)
		value, _ := fields[field].(string)
		byValue["["+value+"]"] = item
	}
	if len(byValue) < len(items) || byValue["[]"] != nil {
		return items
	}
	return byValue
}

// itemsAdded are the items that is has beyond those of was, as paths.
func itemsAdded(was, is observe.Operand) (paths []string) {
	for _, d := range lostByName(is.Content, was.Content) {
		if last := d.Path[strings.LastIndex(d.Path, ".")+1:]; d.Gone && (itemKeys[last] != "" || strings.HasSuffix(last, "]")) {
			paths = append(paths, d.Path)
		}
	}
	return paths
}

// accessChanged tells who has a role less, or more, than before, and what nobody can change any more.
func accessChanged(name string, was, is observe.Operand) (findings []finding.Finding) {
	gone, everybody := subjectsChanged(was, is)
	if len(gone) > 0 {
		findings = append(findings, code.Finding(code.OperandWorse, name, "the new version takes the role from %s, though nobody changed the object that it was made for", strings.Join(gone, ", ")))
	}
	if everybody {
		findings = append(findings, code.Finding(code.OperandWorse, name, "the new version gives the role to everybody, though nobody changed the object that it was made for"))
	}
	if is.Content["immutable"] == true && was.Content["immutable"] != true {
		findings = append(findings, code.Finding(code.OperandChanged, name, "the new version made it immutable: neither a user nor the operator can change it any more, as to rotate a password"))
	}
	return findings
}

// subjectsChanged tells the users and groups of a RoleBinding that do not have its role any more, and whether everybody has it who had not. Accounts of pods come and go with
// these.
func subjectsChanged(was, is observe.Operand) (gone []string, everybody bool) {
	if was.Kind != "RoleBinding" {
		return nil, false
	}
	before, _, _ := unstructured.NestedSlice(was.Content, "subjects")
	after, _, _ := unstructured.NestedSlice(is.Content, "subjects")
	for _, item := range missing(before, after) {
		if item["kind"] != rbacv1.ServiceAccountKind {
			gone = append(gone, fmt.Sprintf("%v %v", item["kind"], item["name"]))
		}
	}
	return gone, slices.ContainsFunc(missing(after, before), func(item map[string]any) bool {
		name, _ := item["name"].(string)
		return slices.Contains([]string{"system:authenticated", "system:unauthenticated", "system:anonymous", "system:serviceaccounts"}, name)
	})
}

// missing are the maps of list that others does not have.
func missing(list, others []any) (all []map[string]any) {
	for _, item := range list {
		if m, is := item.(map[string]any); is && !slices.ContainsFunc(others, func(other any) bool { return reflect.DeepEqual(item, other) }) {
			all = append(all, m)
		}
	}
	return all
}

// portsKept reports whether a Service still has each port that it had, as it was: there may be more.
func portsKept(was, is observe.Operand) bool {
	if was.Kind != observe.KindService {
		return false
	}
	before, _, _ := unstructured.NestedSlice(was.Content, "spec", "ports")
	after, _, _ := unstructured.NestedSlice(is.Content, "spec", "ports")
	return !slices.ContainsFunc(before, func(port any) bool {
		return !slices.ContainsFunc(after, func(now any) bool { return reflect.DeepEqual(port, now) })
	})
}

// portsGone says what of a Service was offered to clients before, and is not any more.
func portsGone(before, after observe.Operand) []string {
	var was, is corev1.Service
	if before.Kind != observe.KindService || runtime.DefaultUnstructuredConverter.FromUnstructured(before.Content, &was) != nil ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(after.Content, &is) != nil {
		return nil
	}
	var gone []string
	for _, p := range was.Spec.Ports {
		if !slices.ContainsFunc(is.Spec.Ports, func(q corev1.ServicePort) bool { return q.Port == p.Port && q.Protocol == p.Protocol }) {
			gone = append(gone, fmt.Sprintf("port %d/%s is gone", p.Port, p.Protocol))
		}
	}
	outside := []corev1.ServiceType{corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer}
	if slices.Contains(outside, was.Spec.Type) && !slices.Contains(outside, is.Spec.Type) {
		gone = append(gone, fmt.Sprintf("type was %s and is %s", was.Spec.Type, is.Spec.Type))
	}
	return gone
}

// Claims tells the claims of before whose data is gone or is not used any more, and the StatefulSets that begin to delete those of pods that they have no more. left are
// those that are no operands any more and still there.
func Claims(before, after map[string]observe.Operand, left map[string]bool) []finding.Finding {
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		is, there := after[name]
		switch {
		case there && DeletesScaled(is) && !DeletesScaled(was):
			f := code.Finding(code.DataLost, name, "who scales it down loses data: it deletes the claims of the pods that it has no more (persistentVolumeClaimRetentionPolicy.whenScaled), and kept them before")
			f.Fix = "leave whenScaled at Retain, or let whoever made the object choose"
			findings = append(findings, f)
		case was.Kind != observe.KindClaim || was.Transient() || was.Volume() == "":
		case there && is.Volume() != was.Volume():
			findings = append(findings, code.Finding(code.DataLost, name, "it was deleted and made anew during the upgrade: it has another volume"))
		case smaller(was.Of, before, after):
		case there && mounts(before, was) && !mounts(after, was) && serves(after, was.Of, anyPod), !there && left[name]:
			f := code.Finding(code.DataLost, name, "it is still there, and no pod of %s mounts it any more", was.Of)
			if copied(before, after, was) {
				f.Severity = finding.Warning
			}
			findings = append(findings, f)
		case there:
		default:
			findings = append(findings, code.Finding(code.DataLost, name, "it was deleted during the upgrade"))
		}
	}
	return findings
}

// DeletesScaled reports whether a StatefulSet deletes the claims of the pods that it is scaled down by.
func DeletesScaled(o observe.Operand) bool {
	when, _, _ := unstructured.NestedString(o.Content, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled")
	return o.Kind == "StatefulSet" && when == string(appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
}

// copied reports whether a pod of a Job mounts claim and one that is new and that a pod mounts which serves, as to copy what is in it.
func copied(before, after map[string]observe.Operand, claim observe.Operand) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(after)), func(o observe.Operand) bool {
		return o.Of == claim.Of && o.Kind == observe.KindPod && ofJob(after, o) && slices.Contains(o.Claims, claim.String()) &&
			slices.ContainsFunc(o.Claims, func(name string) bool {
				_, known := before[name]
				return !known && serves(after, claim.Of, func(pod observe.Operand) bool { return slices.Contains(pod.Claims, name) })
			})
	})
}

// mounts reports whether a pod that serves claim's object mounts claim.
func mounts(operands map[string]observe.Operand, claim observe.Operand) bool {
	return serves(operands, claim.Of, func(pod observe.Operand) bool { return slices.Contains(pod.Claims, claim.String()) })
}

func anyPod(observe.Operand) bool { return true }

// serves reports whether a pod that is none of a Job, and that wanted wants, was made for the object called of.
func serves(operands map[string]observe.Operand, of string, wanted func(pod observe.Operand) bool) bool {
	for _, o := range operands {
		if o.Of == of && o.Kind == "Pod" && wanted(o) && !ofJob(operands, o) {
			return true
		}
	}
	return false
}

// jobsPod matches what follows a Job's name in that of a pod of it.
var jobsPod = observe.Compiled(`^-([0-9]+-)?[a-z0-9]{5}$`)

// ofJob reports whether a Job among operands has the pod: it has the Job's name in its own.
func ofJob(operands map[string]observe.Operand, pod observe.Operand) bool {
	for _, o := range operands {
		if rest, named := strings.CutPrefix(pod.Name, o.Name); named && o.Kind == "Job" && o.Of == pod.Of && o.Namespace == pod.Namespace && jobsPod().MatchString(rest) {
			return true
		}
	}
	return false
}

// smaller reports whether the object called of has fewer pods after than before, of the same workloads: it was scaled down, or
// its pods do not come, which others tell.
func smaller(of string, before, after map[string]observe.Operand) bool {
	pods := func(operands map[string]observe.Operand) (n int) {
		for _, o := range operands {
			if o.Of == of && o.Kind == "Pod" {
				n++
			}
		}
		return n
	}
	for name, o := range before {
		if _, stays := after[name]; o.Of == of && slices.Contains(WorkloadKinds, o.Kind) && !stays {
			return false
		}
	}
	return pods(after) < pods(before)
}

// credentialKeys are how the keys of Secrets that hold what clients authenticate with end.
var credentialKeys = regexp.MustCompile(`(?i)(password|passwd|pwd|passphrase|cookie|(client|cookie|shared)[-_]?secret|api[-_]?key|access[-_]?key|secret[-_]?key)$`)

// credentialsChanged names the fields of a Secret that hold what clients authenticate with and that are not what they were.
func credentialsChanged(before, after observe.Operand) []string {
	if before.Kind != "Secret" {
		return nil
	}
	var changed []string
	was, _, _ := unstructured.NestedMap(before.Content, "data")
	is, _, _ := unstructured.NestedMap(after.Content, "data")
	for _, key := range slices.Sorted(maps.Keys(was)) {
		salted := strings.HasSuffix(strings.ToLower(key), "htpasswd") // the same password, written anew
		if credentialKeys.MatchString(key) && !salted && was[key] != is[key] {
			changed = append(changed, "data."+key)
		}
	}
	return changed
}
