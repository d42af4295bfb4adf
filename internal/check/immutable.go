package check

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// immutableChecks compare the manifests that both ends of an upgrade have, apart from CRDs (CRD005) and the CSV (EDG001).
var immutableChecks = []Check{
	{
		Code: "EDG010", Severity: finding.Error,
		Title: "an upgrade changes a field that the API server lets nobody change",
		Cause: "OLM updates the objects of a bundle in place: the API server rejects the update, the InstallPlan fails, and the new release is never installed",
		Fix:   "keep the field as it is, or give the changed object another name",
		References: []string{
			"https://github.com/operator-framework/operator-lifecycle-manager/blob/v0.46.0/pkg/controller/operators/catalog/step_ensurer.go",
			"https://kubernetes.io/docs/reference/access-authn-authz/rbac/#clusterrolebinding-example",
			"https://kubernetes.io/docs/concepts/configuration/secret/#secret-immutable",
		},
		edge: immutableChanged,
	},
}

// fields are those of a JSON object.
type fields = map[string]any

// immutableField is a field that an update must leave as it is.
type immutableField struct {
	path     string // its steps, with dots
	fallback any    // what the API server takes for an absent field
	kept     bool   // the API server keeps the old value where the update has none
	when     func(before, after fields) bool
}

// immutableFields are by kind and API group (k8s.io/kubernetes v1.36.0, pkg/apis/{core,rbac,scheduling,apps,batch,storage,
// networking}/validation). OLM v0 installs only the first six (CSV011); the others are here for bundles that come by other ways.
var immutableFields = map[string][]immutableField{
	"ClusterRoleBinding.rbac.authorization.k8s.io": {{path: "roleRef"}},
	"RoleBinding.rbac.authorization.k8s.io":        {{path: "roleRef"}},
	"PriorityClass.scheduling.k8s.io":              {{path: "value", fallback: 0.0}, {path: "preemptionPolicy", fallback: "PreemptLowerPriority"}},
	"Secret.":                                      {{path: "type", fallback: "Opaque"}, {path: "immutable", when: isImmutable}, {path: "data", when: isImmutable}},
	"ConfigMap.":                                   {{path: "immutable", when: isImmutable}, {path: "data", when: isImmutable}, {path: "binaryData", when: isImmutable}},
	"Service.": {
		{path: "spec.clusterIP", kept: true, when: hasClusterIP},
		{path: "spec.loadBalancerClass", when: isLoadBalancer},
	},
	"Deployment.apps": {{path: "spec.selector"}},
	"DaemonSet.apps":  {{path: "spec.selector"}},
	"StatefulSet.apps": {
		{path: "spec.selector"}, {path: "spec.serviceName"}, {path: "spec.podManagementPolicy", fallback: "OrderedReady"}, {path: "spec.volumeClaimTemplates"},
	},
	"Job.batch": {
		{path: "spec.template", when: isRunning}, {path: "spec.selector", kept: true}, {path: "spec.completions", when: isNotIndexed},
		{path: "spec.completionMode", fallback: "NonIndexed"}, {path: "spec.podFailurePolicy"}, {path: "spec.backoffLimitPerIndex"},
	},
	"PersistentVolumeClaim.": {
		{path: "spec.accessModes"}, {path: "spec.storageClassName", kept: true}, {path: "spec.volumeMode", fallback: "Filesystem"},
		{path: "spec.volumeName", kept: true}, {path: "spec.selector"}, {path: "spec.dataSource"},
	},
	"StorageClass.storage.k8s.io": {
		{path: "provisioner"}, {path: "parameters"}, {path: "reclaimPolicy", fallback: "Delete"}, {path: "volumeBindingMode", fallback: "Immediate"},
	},
	"IngressClass.networking.k8s.io": {{path: "spec.controller"}},
}

func isImmutable(before, _ fields) bool { return at(before, "immutable") == true }

func hasClusterIP(before, after fields) bool {
	return at(before, "spec.type") != "ExternalName" && at(after, "spec.type") != "ExternalName"
}

func isLoadBalancer(before, after fields) bool {
	return at(before, "spec.type") == "LoadBalancer" && at(after, "spec.type") == "LoadBalancer"
}

func isRunning(before, _ fields) bool { return at(before, "spec.suspend") != true }

func isNotIndexed(before, _ fields) bool { return at(before, "spec.completionMode") != "Indexed" }

// at returns the value at a path with dots, or nil.
func at(o fields, path string) any {
	var value any = o
	for _, step := range strings.Split(path, ".") {
		inner, _ := value.(fields)
		value = inner[step]
	}
	return value
}

// fixed is a manifest with immutable fields.
type fixed struct {
	rules []immutableField
	raw   json.RawMessage
}

// fixedOf returns a manifest if its kind has immutable fields, or nil. Of ConfigMaps, which can be large, only those that can
// be immutable are kept.
func fixedOf(apiVersion, kind string, raw json.RawMessage) *fixed {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	rules := immutableFields[kind+"."+group]
	if rules == nil || kind == "ConfigMap" && !bytes.Contains(raw, []byte(`"immutable"`)) {
		return nil
	}
	return &fixed{rules, raw}
}

// changed returns the paths of the immutable fields that an update of f to after changes.
func (f *fixed) changed(after *fixed) []string {
	if bytes.Equal(f.raw, after.raw) {
		return nil
	}
	var old, next fields
	if json.Unmarshal(f.raw, &old) != nil || json.Unmarshal(after.raw, &next) != nil {
		return nil
	}
	complete(old)
	complete(next)
	var paths []string
	for _, rule := range f.rules {
		if rule.when != nil && !rule.when(old, next) {
			continue
		}
		before, now := rule.in(old), rule.in(next)
		if !reflect.DeepEqual(before, now) && (now != nil || !rule.kept) {
			paths = append(paths, rule.path)
		}
	}
	return paths
}

// in returns the value of the field in o, nil for an empty one.
func (f immutableField) in(o fields) any {
	value := at(o, f.path)
	if v := reflect.ValueOf(value); !v.IsValid() || v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0 {
		return f.fallback
	}
	return value
}

// complete does what the API server does with an object before it compares it: it names the group of a role, and puts the
// stringData of a Secret into its data.
func complete(o fields) {
	if ref, ok := o["roleRef"].(fields); ok && (ref["apiGroup"] == nil || ref["apiGroup"] == "") {
		ref["apiGroup"] = "rbac.authorization.k8s.io"
	}
	text, ok := o["stringData"].(fields)
	if !ok {
		return
	}
	data, ok := o["data"].(fields)
	if !ok {
		data = fields{}
	}
	for key, value := range text {
		if s, ok := value.(string); ok {
			data[key] = base64.StdEncoding.EncodeToString([]byte(s))
		}
	}
	o["data"] = data
}

func immutableChanged(_ *subject, u upgrade, found func(hit)) {
	for _, name := range slices.Sorted(maps.Keys(u.from.fixed)) {
		after := u.to.fixed[name]
		if after == nil {
			continue
		}
		for _, path := range u.from.fixed[name].changed(after) {
			found(hit{
				Subject: finding.Subject{Object: name}, path: pathOf(path),
				message: fmt.Sprintf("%s changes %s of %s, which is immutable", u.To, path, strings.Replace(name, "/", " ", 1)),
			})
		}
	}
}
