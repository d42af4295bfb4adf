package bundle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
)

// TestPublishedRegenerate takes published bundles apart into what their authors had, Deployments, roles, bindings, webhook
// configurations with their Services, samples and a base, and puts them together again: the result must say the same. The
// folder of bundles is named by OLMKIT_DATA. Which of the differences below there are, testdata/published.txt counts.
func TestPublishedRegenerate(t *testing.T) {
	root := os.Getenv("OLMKIT_DATA")
	if root == "" {
		t.Skip("OLMKIT_DATA names no folder of published bundles")
	}
	dirs, err := filepath.Glob(filepath.Join(root, "*", "*", "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]map[string]int{}
	for _, dir := range dirs {
		dir = filepath.Dir(dir)
		pkg := filepath.Base(filepath.Dir(dir))
		if counts[pkg] == nil {
			counts[pkg] = map[string]int{}
		}
		t.Run(pkg+"/"+filepath.Base(dir), func(t *testing.T) {
			counts[pkg]["bundles"]++
			found := regenerate(t, dir)
			for _, what := range found {
				counts[pkg][what]++
			}
			if !slices.ContainsFunc(found, func(what string) bool { return what != clusters }) {
				counts[pkg]["equal"]++
			}
		})
	}
	if len(counts) == 0 {
		t.Errorf("there are no bundles in %s", root)
	}
	made := map[string]string{} // by package
	for pkg, found := range counts {
		made[pkg] = fmt.Sprintf("%s: %d bundles, %d the same but for what only a cluster sets\n", pkg, found["bundles"], found["equal"])
		for _, what := range slices.Sorted(maps.Keys(found)) {
			if what != "bundles" && what != "equal" {
				made[pkg] += fmt.Sprintf("  %d %s\n", found[what], what)
			}
		}
	}
	const golden = "testdata/published.txt"
	if *update {
		var all strings.Builder
		for _, pkg := range slices.Sorted(maps.Keys(made)) {
			all.WriteString(made[pkg])
		}
		if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	for pkg, got := range made {
		_, known, found := strings.Cut("\n"+string(want), "\n"+pkg+": ")
		if !found {
			t.Logf("not in %s:\n%s", golden, got)
			continue
		}
		var block strings.Builder
		for i, line := range slices.Collect(strings.Lines(pkg + ": " + known)) {
			if i > 0 && !strings.HasPrefix(line, " ") {
				break
			}
			block.WriteString(line)
		}
		if diff := gocmp.Diff(block.String(), got); diff != "" {
			t.Errorf("%s (-want +got; write it anew with -update):\n%s", golden, diff)
		}
	}
}

const clusters = "lose what only a cluster sets: status, creationTimestamp, namespace"

// object is a JSON object.
type object = map[string]any

// differences are all that may become different, and why; level makes both sides alike in that.
var differences = []struct {
	what  string
	level func(published, made object)
}{
	{clusters, func(p, _ object) {
		delete(p, "status")
		delete(in(p, "metadata"), "creationTimestamp")
		delete(in(p, "metadata"), "namespace")
	}},
	{"are of operators.coreos.com/v1alpha1, the only version there is", func(p, m object) { p["apiVersion"] = m["apiVersion"] }},
	{"are named after package and version", func(p, m object) { in(p, "metadata")["name"] = in(m, "metadata")["name"] }},
	{"gain the capabilities that the base must say", func(p, m object) {
		if annotations := in(p, "metadata", "annotations"); annotations["capabilities"] == nil {
			annotations["capabilities"] = in(m, "metadata", "annotations")["capabilities"]
		}
	}},
	{"gain a displayName", func(p, m object) {
		if in(p, "spec")["displayName"] == nil {
			in(p, "spec")["displayName"] = in(m, "spec")["displayName"]
		}
	}},
	{"have their samples laid out anew, each once, by kind and name", func(p, m object) {
		for _, o := range []object{p, m} {
			annotations := in(o, "metadata", "annotations")
			written, _ := annotations["alm-examples"].(string)
			var list []any
			if json.Unmarshal([]byte(written), &list) != nil && written != "" {
				continue
			}
			annotations["alm-examples"] = distinct(list)
		}
	}},
	{"name the namespace that a binding of the cluster's roles works in", func(p, m object) {
		const key = "operatorframework.io/suggested-namespace"
		if in(p, "metadata", "annotations")[key] == nil {
			delete(in(m, "metadata", "annotations"), key)
		}
	}},
	{"have each account's rules in one list, and each rule once", func(p, m object) {
		for _, o := range []object{p, m} {
			for _, key := range []string{"permissions", "clusterPermissions"} {
				rules := object{}
				strategy := in(o, "spec", "install", "spec")
				for _, item := range listOf(strategy, key) {
					permission := item.(object)
					account := fmt.Sprint(permission["serviceAccountName"])
					list, _ := rules[account].([]any)
					rules[account] = distinct(append(list, listOf(permission, "rules")...))
				}
				for account, list := range rules {
					if len(list.([]any)) == 0 {
						delete(rules, account)
					}
				}
				strategy[key] = rules
			}
		}
	}},
	{"state bindings that were shipped beside the CSV", func(p, m object) {
		for _, key := range []string{"permissions", "clusterPermissions"} {
			before, after := in(p, "spec", "install", "spec", key), in(m, "spec", "install", "spec", key)
			for account, list := range after {
				old, _ := before[account].([]any)
				kept := slices.DeleteFunc(list.([]any), func(rule any) bool { return !has(old, rule) })
				if after[account] = kept; len(kept) == 0 {
					delete(after, account)
				}
			}
		}
	}},
	{"have their deployments by name", func(p, m object) {
		for _, o := range []object{p, m} {
			slices.SortFunc(listOf(in(o, "spec", "install", "spec"), "deployments"), func(a, b any) int {
				return cmp.Compare(fmt.Sprint(a.(object)["name"]), fmt.Sprint(b.(object)["name"]))
			})
		}
	}},
	{"leave the webhook's certificate to OLM, which mounts its own there", func(p, m object) {
		for _, o := range []object{p, m} {
			for _, d := range listOf(in(o, "spec", "install", "spec"), "deployments") {
				withoutCertificate(in(d.(object), "spec", "template", "spec"))
			}
		}
	}},
	{"own every version that their CRDs serve, and none that they do not", func(p, m object) {
		owned := func(o object) []any { return listOf(in(o, "spec", "customresourcedefinitions"), "owned") }
		id := func(item any) string { return fmt.Sprint(item.(object)["name"], item.(object)["version"]) }
		before, after := owned(p), owned(m)
		others := func(list []any) func(any) bool {
			return func(item any) bool {
				return !slices.ContainsFunc(list, func(other any) bool { return id(other) == id(item) })
			}
		}
		set := func(o object, list []any) {
			if len(list) == 0 {
				delete(in(o, "spec", "customresourcedefinitions"), "owned")
			} else {
				in(o, "spec", "customresourcedefinitions")["owned"] = list
			}
			if len(in(o, "spec", "customresourcedefinitions")) == 0 {
				delete(in(o, "spec"), "customresourcedefinitions")
			}
		}
		set(p, slices.DeleteFunc(slices.Clone(before), others(after)))
		set(m, slices.DeleteFunc(slices.Clone(after), others(before)))
	}},
	{"describe owned kinds that were not described", func(p, m object) {
		before, after := listOf(in(p, "spec", "customresourcedefinitions"), "owned"), listOf(in(m, "spec", "customresourcedefinitions"), "owned")
		for i := range min(len(before), len(after)) {
			for _, key := range []string{"displayName", "description"} {
				if fmt.Sprint(before[i].(object)[key]) == "" || before[i].(object)[key] == nil {
					before[i].(object)[key] = after[i].(object)[key]
				}
			}
		}
	}},
	{"list images that were missing in relatedImages", func(p, m object) {
		before := listOf(in(p, "spec"), "relatedImages")
		after := slices.DeleteFunc(slices.Clone(listOf(in(m, "spec"), "relatedImages")), func(item any) bool { return !has(before, item) })
		in(m, "spec")["relatedImages"] = after
		if len(after) == 0 && before == nil {
			delete(in(m, "spec"), "relatedImages")
		}
	}},
	{"have webhook definitions by type and name, with the ports that OLM takes where none are named", func(p, m object) {
		for _, o := range []object{p, m} {
			list := listOf(in(o, "spec"), "webhookdefinitions")
			for _, item := range list {
				w := item.(object)
				if w["containerPort"] == nil {
					w["containerPort"] = json.Number("443")
				}
				if w["targetPort"] == nil {
					w["targetPort"] = w["containerPort"]
				}
			}
			slices.SortStableFunc(list, func(a, b any) int {
				return cmp.Compare(fmt.Sprint(a.(object)["type"], a.(object)["generateName"]), fmt.Sprint(b.(object)["type"], b.(object)["generateName"]))
			})
		}
	}},
	{"name conversion webhooks after their CRD", func(p, m object) {
		for _, o := range []object{p, m} {
			for _, item := range listOf(in(o, "spec"), "webhookdefinitions") {
				if w := item.(object); w["type"] == string(v1alpha1.ConversionWebhook) {
					w["generateName"] = fmt.Sprint(w["conversionCRDs"])
				}
			}
		}
	}},
}

// in returns the object at the keys, a new one that is part of nothing if there is none.
func in(o object, keys ...string) object {
	for _, key := range keys {
		inner, ok := o[key].(object)
		if !ok {
			inner = object{}
		}
		o = inner
	}
	return o
}

func listOf(o object, key string) []any {
	list, _ := o[key].([]any)
	return list
}

func has(list []any, item any) bool {
	return slices.ContainsFunc(list, func(other any) bool { return reflect.DeepEqual(other, item) })
}

// distinct returns the items sorted by their JSON, each once.
func distinct(list []any) []any {
	var kept []any
	for _, item := range list {
		if !has(kept, item) {
			kept = append(kept, item)
		}
	}
	text := func(item any) string {
		raw, err := json.Marshal(item)
		if err != nil {
			panic(err)
		}
		return string(raw)
	}
	slices.SortFunc(kept, func(a, b any) int { return cmp.Compare(text(a), text(b)) })
	return kept
}

// withoutCertificate takes away what is mounted where OLM mounts its certificate, and volumes that no container mounts.
func withoutCertificate(pod object) {
	mounted := map[any]bool{}
	for _, key := range []string{"containers", "initContainers"} {
		for _, item := range listOf(pod, key) {
			c := item.(object)
			mounts := slices.DeleteFunc(slices.Clone(listOf(c, "volumeMounts")), func(m any) bool { return m.(object)["mountPath"] == certMountPath })
			for _, m := range mounts {
				mounted[m.(object)["name"]] = true
			}
			if c["volumeMounts"] = mounts; len(mounts) == 0 {
				delete(c, "volumeMounts")
			}
		}
	}
	volumes := slices.DeleteFunc(slices.Clone(listOf(pod, "volumes")), func(v any) bool { return !mounted[v.(object)["name"]] })
	if pod["volumes"] = volumes; len(volumes) == 0 {
		delete(pod, "volumes")
	}
}

func objectOf(t *testing.T, raw []byte) object {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var o object
	if err := decoder.Decode(&o); err != nil {
		t.Fatal(err)
	}
	return o
}

// refusals are why bundles that were published cannot be made.
var refusals = []struct {
	what string
	is   func(*Bundle, v1alpha1.ClusterServiceVersion) bool
	says string
}{
	{
		"refused: their CRDs are of apiextensions.k8s.io/v1beta1, which Kubernetes 1.22 ended",
		func(b *Bundle, _ v1alpha1.ClusterServiceVersion) bool {
			return slices.ContainsFunc(b.Manifests, func(m Manifest) bool { return m.APIVersion == "apiextensions.k8s.io/v1beta1" })
		},
		"is not served since Kubernetes 1.22",
	},
	{
		"refused: a CRD is converted by a webhook that the CSV does not define, so nobody would answer",
		func(b *Bundle, csv v1alpha1.ClusterServiceVersion) bool {
			return slices.ContainsFunc(b.Manifests, func(m Manifest) bool {
				return m.Kind == "CustomResourceDefinition" && textAt(nodeOfJSON(m.JSON), "spec", "conversion", "strategy") == "Webhook" &&
					!slices.ContainsFunc(csv.Spec.WebhookDefinitions, func(w v1alpha1.WebhookDescription) bool { return slices.Contains(w.ConversionCRDs, m.Name) })
			})
		},
		"the conversion webhook: ",
	},
}

// regenerate returns what is different.
func regenerate(t *testing.T, dir string) []string {
	b, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var typed v1alpha1.ClusterServiceVersion
	if err := json.Unmarshal(b.CSV().JSON, &typed); err != nil {
		t.Fatal(err)
	}
	inputs := takeApart(t, b, typed)
	generated, err := Generate(inputs, nil, Options{Package: b.Package(), Version: typed.Spec.Version.Version, Conversion: ConversionKeep})
	for _, refusal := range refusals {
		if refusal.is(b, typed) {
			if err == nil || !strings.Contains(err.Error(), refusal.says) {
				t.Errorf("got %v, want %q", err, refusal.says)
			}
			return []string{refusal.what}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	documents := map[string]*document.Document{}
	for file, content := range generated.Files {
		found, err := document.Parse(file, content)
		if file != "bundle.Dockerfile" && (err != nil || len(found) != 1) {
			t.Fatalf("%s: %d documents, error %v", file, len(found), err)
		}
		if file != "bundle.Dockerfile" {
			documents[file] = found[0]
		}
	}
	file := "manifests/" + b.Package() + ".clusterserviceversion.yaml"
	published, made := objectOf(t, b.CSV().JSON), objectOf(t, documents[file].JSON)
	var found []string
	for _, d := range differences {
		if reflect.DeepEqual(published, made) {
			break
		}
		before, after := clone(published).(object), clone(made).(object)
		d.level(published, made)
		if !reflect.DeepEqual(closer(before, after), closer(published, made)) {
			found = append(found, d.what)
		}
	}
	if diff := gocmp.Diff(published, made); diff != "" {
		t.Errorf("ClusterServiceVersion (-published +regenerated):\n%s", diff)
	}
	for _, m := range b.Manifests {
		if m.Kind == KindCSV || strings.HasPrefix(m.APIVersion, "rbac.authorization.k8s.io/") {
			continue
		}
		published, was := comparable(t, m.JSON, m.Kind), objectOf(t, m.JSON)
		same := slices.ContainsFunc(slices.Collect(maps.Values(documents)), func(d *document.Document) bool {
			return reflect.DeepEqual(published, comparable(t, d.JSON, m.Kind))
		})
		if m.Kind == "ServiceAccount" && strings.Contains(string(documents[file].JSON), `"serviceAccountName":"`+m.Name+`"`) {
			continue // OLM creates those that the CSV's permissions name
		}
		if !same {
			t.Errorf("%s %s is lost, or not what it was", m.Kind, m.Name)
		}
		if m.Kind == "CustomResourceDefinition" && in(was, "metadata", "annotations")["cert-manager.io/inject-ca-from"] != nil && !slices.Contains(found, uninjected) {
			found = append(found, uninjected)
		}
	}
	return found
}

const uninjected = "leave the CA of CRDs to OLM, not to cert-manager"

// comparable is a manifest without what only a cluster sets, and what OLM sets itself.
func comparable(t *testing.T, raw []byte, kind string) object {
	o := objectOf(t, raw)
	delete(o, "status")
	delete(in(o, "metadata"), "creationTimestamp")
	delete(in(o, "metadata"), "namespace")
	if kind == "CustomResourceDefinition" {
		delete(in(o, "spec"), "conversion")
		delete(in(o, "metadata", "annotations"), "cert-manager.io/inject-ca-from")
	}
	return o
}

func clone(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for key, inner := range v {
			out[key] = clone(inner)
		}
		return out
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = clone(inner)
		}
		return out
	}
	return v
}

// closer returns the paths at which the two are not the same.
func closer(a, b any) []string {
	var paths []string
	var walk func(a, b any, path string)
	walk = func(a, b any, path string) {
		x, isObject := a.(object)
		y, both := b.(object)
		if !isObject || !both {
			if !reflect.DeepEqual(a, b) {
				paths = append(paths, path)
			}
			return
		}
		for key := range x {
			walk(x[key], y[key], path+"."+key)
		}
		for key := range y {
			if _, there := x[key]; !there {
				paths = append(paths, path+"."+key)
			}
		}
	}
	walk(a, b, "")
	slices.Sort(paths)
	return paths
}

// takeApart is the reverse of Generate.
func takeApart(t *testing.T, b *Bundle, csv v1alpha1.ClusterServiceVersion) []Input {
	t.Helper()
	var inputs []Input
	add := func(raw []byte) {
		input, err := inputOf(document.New(raw, finding.Location{File: "taken apart"}), nil)
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, input)
	}
	object := func(apiVersion, kind, name string, fields map[string]any) {
		fields["apiVersion"], fields["kind"] = apiVersion, kind
		if fields["metadata"] == nil {
			fields["metadata"] = map[string]any{}
		}
		fields["metadata"].(map[string]any)["name"] = name
		raw, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		add(raw)
	}
	strategy := csv.Spec.InstallStrategy.StrategySpec
	// The raw deployments, so that nothing is lost to types.
	var raw struct {
		Spec struct {
			Install struct {
				Spec struct {
					Deployments []struct {
						Name  string
						Label map[string]string
						Spec  json.RawMessage
					}
				}
			}
		}
	}
	if err := json.Unmarshal(b.CSV().JSON, &raw); err != nil {
		t.Fatal(err)
	}
	for _, d := range raw.Spec.Install.Spec.Deployments {
		object("apps/v1", "Deployment", d.Name, map[string]any{"metadata": map[string]any{"labels": d.Label}, "spec": d.Spec})
	}
	rbac := "rbac.authorization.k8s.io/v1"
	for i, p := range strategy.Permissions {
		name := fmt.Sprintf("taken-%d", i)
		object(rbac, "Role", name, map[string]any{"rules": p.Rules})
		object(rbac, "RoleBinding", name, map[string]any{"roleRef": map[string]any{"kind": "Role", "name": name}, "subjects": []any{map[string]any{"kind": "ServiceAccount", "name": p.ServiceAccountName}}})
	}
	for i, p := range strategy.ClusterPermissions {
		name := fmt.Sprintf("taken-%d", i)
		object(rbac, "ClusterRole", name, map[string]any{"rules": p.Rules})
		object(rbac, "ClusterRoleBinding", name, map[string]any{"roleRef": map[string]any{"kind": "ClusterRole", "name": name}, "subjects": []any{map[string]any{"kind": "ServiceAccount", "name": p.ServiceAccountName}}})
	}
	accounts := map[string]bool{}
	for _, p := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
		accounts[p.ServiceAccountName] = true
	}
	shipped := map[string]bool{}
	for _, m := range b.Manifests {
		if m.Kind == "ServiceAccount" {
			shipped[m.Name] = true
		}
	}
	for account := range accounts {
		if !shipped[account] {
			object("v1", "ServiceAccount", account, map[string]any{})
		}
	}
	converted := map[string]v1alpha1.WebhookDescription{}
	for i, w := range csv.Spec.WebhookDefinitions {
		port := cmp.Or(w.ContainerPort, 443)
		target := intstr.FromInt32(port)
		if w.TargetPort != nil {
			target = *w.TargetPort
		}
		deployment := slices.IndexFunc(strategy.DeploymentSpecs, func(d v1alpha1.StrategyDeploymentSpec) bool { return d.Name == w.DeploymentName })
		if deployment < 0 {
			t.Fatalf("webhook %s is served by nobody", w.GenerateName)
		}
		service := fmt.Sprintf("webhooks-%d", i)
		object("v1", "Service", service, map[string]any{"spec": map[string]any{
			"ports": []any{map[string]any{"port": port, "targetPort": target}}, "selector": strategy.DeploymentSpecs[deployment].Spec.Selector.MatchLabels,
		}})
		client := map[string]any{"service": map[string]any{"name": service, "namespace": "default", "path": w.WebhookPath, "port": port}}
		if w.Type == v1alpha1.ConversionWebhook {
			for _, name := range w.ConversionCRDs {
				w.GenerateName = service
				converted[name] = w
			}
			continue
		}
		kind := map[v1alpha1.WebhookAdmissionType]string{v1alpha1.ValidatingAdmissionWebhook: "ValidatingWebhookConfiguration", v1alpha1.MutatingAdmissionWebhook: "MutatingWebhookConfiguration"}[w.Type]
		hook := map[string]any{
			"name": w.GenerateName, "rules": w.Rules, "failurePolicy": w.FailurePolicy, "matchPolicy": w.MatchPolicy, "objectSelector": w.ObjectSelector, "sideEffects": w.SideEffects,
			"timeoutSeconds": w.TimeoutSeconds, "admissionReviewVersions": w.AdmissionReviewVersions, "clientConfig": client,
		}
		if w.ReinvocationPolicy != nil {
			hook["reinvocationPolicy"] = w.ReinvocationPolicy
		}
		object("admissionregistration.k8s.io/v1", kind, service, map[string]any{"webhooks": []any{hook}})
	}
	base := nodeOfJSON(b.CSV().JSON)
	for _, path := range [][]string{
		{"spec", "install", "spec", "deployments"}, {"spec", "install", "spec", "permissions"}, {"spec", "install", "spec", "clusterPermissions"},
		{"spec", "webhookdefinitions"}, {"metadata", "annotations", "alm-examples"},
	} {
		remove(base, path...)
	}
	stripped, err := jsonOf(base, b.CSV().At)
	if err != nil {
		t.Fatal(err)
	}
	add(stripped)
	var examples []json.RawMessage
	if written := csv.Annotations["alm-examples"]; written != "" {
		if err := json.Unmarshal([]byte(written), &examples); err != nil {
			t.Fatal(err)
		}
	}
	for i, raw := range examples {
		// Samples of one kind may have one name, which objects of a cluster cannot.
		n := nodeOfJSON(raw)
		if textAt(n, "metadata", "name") == "" {
			set(n, text(fmt.Sprintf("sample-%d", i)), "metadata", "name")
		}
		unnamed, err := jsonOf(n, b.CSV().At)
		if err != nil {
			t.Fatal(err)
		}
		add(unnamed)
	}
	for _, m := range b.Manifests {
		switch {
		case m.Kind == KindCSV:
		case m.Kind == "CustomResourceDefinition" && converted[m.Name].GenerateName != "":
			w := converted[m.Name]
			n := nodeOfJSON(m.JSON)
			conversion := map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"clientConfig":             map[string]any{"service": map[string]any{"name": w.GenerateName, "namespace": "default", "path": w.WebhookPath, "port": cmp.Or(w.ContainerPort, 443)}},
				"conversionReviewVersions": w.AdmissionReviewVersions,
			}}
			set(n, nodeOf(conversion), "spec", "conversion")
			raw, err := jsonOf(n, m.At)
			if err != nil {
				t.Fatal(err)
			}
			add(raw)
		default:
			add(m.JSON)
		}
	}
	return inputs
}

// jsonOf returns the tree as exact JSON.
func jsonOf(n *yaml.Node, at finding.Location) (json.RawMessage, error) {
	documents, err := document.Parse(at.File, encode(n))
	if err != nil {
		return nil, err
	}
	if len(documents) != 1 {
		return nil, fmt.Errorf("%s: no content", at)
	}
	return documents[0].JSON, nil
}
