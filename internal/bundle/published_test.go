package bundle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
)

// TestPublishedRegenerate takes published bundles apart into what their authors had, Deployments, roles, bindings, webhook
// configurations with their Services, samples and a base, and puts them together again: the CSV must say the same. The
// folder of bundles is named by OLMKIT_DATA.
//
// What may differ, and why: rules of one account come in one list and once; a definition without a targetPort gets the
// one that OLM takes then; relatedImages gain what was missing; every served version of a CRD is owned; and bindings that
// were shipped beside the CSV are stated in it.
func TestPublishedRegenerate(t *testing.T) {
	root := os.Getenv("OLMKIT_DATA")
	if root == "" {
		t.Skip("OLMKIT_DATA names no folder of published bundles")
	}
	dirs, err := filepath.Glob(filepath.Join(root, "*", "*", "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	done := map[string]int{}
	for _, dir := range slices.Backward(dirs) {
		dir = filepath.Dir(dir)
		pkg := filepath.Base(filepath.Dir(dir))
		if done[pkg]++; done[pkg] > 6 {
			continue
		}
		t.Run(pkg+"/"+filepath.Base(dir), func(t *testing.T) { regenerate(t, dir) })
	}
	if len(done) < 8 {
		t.Errorf("only %d packages found in %s", len(done), root)
	}
}

func regenerate(t *testing.T, dir string) {
	b, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var want v1alpha1.ClusterServiceVersion
	if err := json.Unmarshal(b.CSV().JSON, &want); err != nil {
		t.Fatal(err)
	}
	inputs := takeApart(t, b, want)
	made, err := Generate(inputs, nil, Options{Package: b.Package(), Version: want.Spec.Version.Version, Conversion: ConversionKeep})
	if old := slices.ContainsFunc(b.Manifests, func(m Manifest) bool { return m.APIVersion == "apiextensions.k8s.io/v1beta1" }); old {
		if err == nil || !strings.Contains(err.Error(), "is not served since Kubernetes 1.22") {
			t.Errorf("got %v, want the CRDs of old refused", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	documents, err := document.Parse("csv", made.Files["manifests/"+b.Package()+".clusterserviceversion.yaml"])
	if err != nil {
		t.Fatal(err)
	}
	var got v1alpha1.ClusterServiceVersion
	if err := json.Unmarshal(documents[0].JSON, &got); err != nil {
		t.Fatal(err)
	}
	got.Spec.CustomResourceDefinitions.Owned = slices.DeleteFunc(got.Spec.CustomResourceDefinitions.Owned, func(d v1alpha1.CRDDescription) bool {
		same := func(other v1alpha1.CRDDescription) bool { return other.Name == d.Name && other.Version == d.Version }
		return want.OwnsCRD(d.Name) && !slices.ContainsFunc(want.Spec.CustomResourceDefinitions.Owned, same)
	})
	before, after := essence(t, want), essence(t, got)
	if bound := slices.ContainsFunc(b.Manifests, func(m Manifest) bool { return strings.HasSuffix(m.Kind, "RoleBinding") }); bound {
		after.Rules = slices.DeleteFunc(after.Rules, func(rule string) bool { return !slices.Contains(before.Rules, rule) })
	}
	if diff := gocmp.Diff(before, after); diff != "" {
		t.Errorf("ClusterServiceVersion (-published +regenerated):\n%s", diff)
	}
	for _, image := range want.Spec.RelatedImages {
		if !slices.ContainsFunc(got.Spec.RelatedImages, func(r v1alpha1.RelatedImage) bool { return r.Image == image.Image }) {
			t.Errorf("relatedImages lost %s", image.Image)
		}
	}
	for _, m := range b.Manifests {
		if m.Kind == KindCSV || strings.HasPrefix(m.APIVersion, "rbac.authorization.k8s.io/") {
			continue
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(made.Files)), func(file []byte) bool {
			return strings.Contains(string(file), "kind: "+m.Kind+"\n") && strings.Contains(string(file), "\n  name: "+m.Name+"\n")
		}) {
			t.Errorf("%s %s is lost", m.Kind, m.Name)
		}
	}
}

// essence is what a CSV says, in an order of its own.
type said struct {
	Spec        v1alpha1.ClusterServiceVersionSpec
	Rules       []string
	Examples    []string
	Annotations map[string]string
}

func essence(t *testing.T, csv v1alpha1.ClusterServiceVersion) said {
	t.Helper()
	e := said{Spec: csv.Spec, Annotations: map[string]string{}}
	strategy := &e.Spec.InstallStrategy.StrategySpec
	for kind, permissions := range map[string][]v1alpha1.StrategyDeploymentPermissions{"": strategy.Permissions, "cluster": strategy.ClusterPermissions} {
		for _, p := range permissions {
			for _, rule := range p.Rules {
				e.Rules = append(e.Rules, fmt.Sprint(kind, p.ServiceAccountName, rule))
			}
		}
	}
	slices.Sort(e.Rules)
	e.Rules = slices.Compact(e.Rules)
	strategy.Permissions, strategy.ClusterPermissions = nil, nil
	for i := range strategy.DeploymentSpecs {
		// OLM mounts its own certificate over one that is mounted there, and kubelets pass over volumes that nobody mounts.
		pod := &strategy.DeploymentSpecs[i].Spec.Template.Spec
		mounted := map[string]bool{}
		for j := range pod.Containers {
			c := &pod.Containers[j]
			c.VolumeMounts = slices.DeleteFunc(slices.Clone(c.VolumeMounts), func(m corev1.VolumeMount) bool { return m.MountPath == certMountPath })
			for _, m := range c.VolumeMounts {
				mounted[m.Name] = true
			}
			if len(c.VolumeMounts) == 0 {
				c.VolumeMounts = nil
			}
		}
		if len(pod.InitContainers) == 0 {
			pod.Volumes = slices.DeleteFunc(slices.Clone(pod.Volumes), func(v corev1.Volume) bool { return !mounted[v.Name] })
		}
		if len(pod.Volumes) == 0 {
			pod.Volumes = nil
		}
	}
	slices.SortFunc(strategy.DeploymentSpecs, func(a, b v1alpha1.StrategyDeploymentSpec) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(e.Spec.CustomResourceDefinitions.Owned, func(a, b v1alpha1.CRDDescription) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	for i := range e.Spec.CustomResourceDefinitions.Owned {
		owned := &e.Spec.CustomResourceDefinitions.Owned[i]
		owned.DisplayName, owned.Description = "", "" // made up where the author wrote none
	}
	e.Spec.RelatedImages = nil
	for i := range e.Spec.WebhookDefinitions {
		w := &e.Spec.WebhookDefinitions[i]
		if w.ContainerPort == 0 {
			w.ContainerPort = 443
		}
		if w.TargetPort == nil {
			port := intstr.FromInt32(w.ContainerPort)
			w.TargetPort = &port
		}
		if w.Type == v1alpha1.ConversionWebhook {
			w.GenerateName = strings.Join(w.ConversionCRDs, ",") // named after the CRD
			w.SideEffects = nil
		}
	}
	slices.SortFunc(e.Spec.WebhookDefinitions, func(a, b v1alpha1.WebhookDescription) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.GenerateName, b.GenerateName))
	})
	var examples []json.RawMessage
	if written := csv.Annotations["alm-examples"]; written != "" {
		if err := json.Unmarshal([]byte(written), &examples); err != nil {
			t.Fatal(err)
		}
	}
	for _, raw := range examples {
		var object any
		if err := json.Unmarshal(raw, &object); err != nil {
			t.Fatal(err)
		}
		canonical, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		e.Examples = append(e.Examples, string(canonical))
	}
	slices.Sort(e.Examples)
	e.Examples = slices.Compact(e.Examples)
	for key, value := range csv.Annotations {
		if key != "alm-examples" && key != "capabilities" && key != "operatorframework.io/suggested-namespace" {
			e.Annotations[key] = value
		}
	}
	return e
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
	for _, path := range [][]string{{"spec", "install"}, {"spec", "webhookdefinitions"}, {"metadata", "annotations", "alm-examples"}} {
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
