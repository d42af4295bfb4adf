package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

type object = map[string]any

// patient is a published bundle as the injections of faults see it.
type patient struct {
	*rand.Rand
	csv   object
	crds  []object
	extra []object          // further manifests
	files map[string]string // of metadata, and raw manifests
	entry object            // of the bundle in its channel
	doc   object            // the rendered bundle
	more  []object          // further documents of the catalog
	pkg   object            // its olm.package
}

// at returns the value at path, making mappings on the way.
func (p *patient) at(o object, path ...string) object {
	for _, step := range path {
		next, ok := o[step].(object)
		if !ok {
			next = object{}
			o[step] = next
		}
		o = next
	}
	return o
}

// openShift gives the bundle an annotation instead of those by which it says that it is for OpenShift.
func (p *patient) openShift(annotation string) {
	delete(p.at(p.csv, "metadata", "annotations"), "operators.openshift.io/valid-subscription")
	const file = "metadata/annotations.yaml"
	text := strings.ReplaceAll(p.files[file], "com.redhat.openshift.versions", "was")
	p.files[file] = strings.Replace(text, "annotations:\n", "annotations:\n  "+annotation+": v4.14\n", 1)
}

func (p *patient) spec() object { return p.at(p.csv, "spec") }

func (p *patient) deployment() object {
	list := p.at(p.csv, "spec", "install", "spec")["deployments"].([]any)
	return list[p.IntN(len(list))].(object)
}

func (p *patient) pod() object { return p.at(p.deployment(), "spec", "template", "spec") }

func (p *patient) container() object {
	list := p.pod()["containers"].([]any)
	return list[p.IntN(len(list))].(object)
}

func (p *patient) crd() object { return p.crds[p.IntN(len(p.crds))] }

// version is a version of the CRD, and the properties of its spec.
func (p *patient) version(c object) object {
	for _, v := range p.at(c, "spec")["versions"].([]any) {
		if v.(object)["storage"] == true {
			return v.(object)
		}
	}
	return nil
}

func (p *patient) schema(c object) object { return p.at(p.version(c), "schema", "openAPIV3Schema") }

// withStatus is a CRD with a status subresource, where there is one.
func (p *patient) withStatus() object {
	for _, c := range p.crds {
		if p.at(p.version(c), "subresources")["status"] != nil {
			return c
		}
	}
	return p.crd()
}

// owned is the description of an owned CRD.
func (p *patient) owned() object {
	list := p.at(p.csv, "spec", "customresourcedefinitions")["owned"].([]any)
	return list[p.IntN(len(list))].(object)
}

func (p *patient) webhook(kind string) object {
	w := object{
		"type": kind, "generateName": "fault.example.com", "deploymentName": p.deployment()["name"], "containerPort": 443, "targetPort": 9443,
		"sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "failurePolicy": "Fail",
	}
	if kind == "ConversionWebhook" {
		w["conversionCRDs"] = []any{p.at(p.crd(), "metadata")["name"]}
	} else {
		w["rules"] = []any{object{"operations": []any{"CREATE"}, "apiGroups": []any{"example.com"}, "apiVersions": []any{"v1"}, "resources": []any{"cups"}}}
	}
	p.spec()["webhookdefinitions"] = append(list(p.spec()["webhookdefinitions"]), w)
	return w
}

func (p *patient) property(kind string, value any) {
	p.doc["properties"] = append(list(p.doc["properties"]), object{"type": kind, "value": value})
}

func (p *patient) rule(cluster bool, rule object) {
	key := "permissions"
	if cluster {
		key = "clusterPermissions"
	}
	install := p.at(p.csv, "spec", "install", "spec")
	install[key] = append(list(install[key]), object{"serviceAccountName": "fault", "rules": []any{rule}})
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func (p *patient) manifest(apiVersion, kind string) {
	p.extra = append(p.extra, object{"apiVersion": apiVersion, "kind": kind, "metadata": object{"name": "fault"}})
}

// faultsOfBundles are, for each check of single bundles, how its fault comes into a bundle.
var faultsOfBundles = map[string]func(p *patient){
	"API001": func(p *patient) {
		p.spec()["relatedImages"] = []any{object{"name": "x", "image": "Registry/cup@sha256:12"}}
	},
	"API002": func(p *patient) { delete(p.spec(), "minKubeVersion") },
	"API003": func(p *patient) { p.at(p.csv, "metadata", "annotations")["capabilities"] = "Perfect" },
	"OLM001": func(p *patient) {
		p.files["metadata/dependencies.yaml"] = "dependencies: [{type: olm.package, value: {packageName: fault, version: '>1.0.0'}}]\n"
	},
	"OLM002": func(p *patient) {
		p.at(p.csv, "spec", "apiservicedefinitions")["owned"] = []any{object{"name": "faults", "group": "example.com", "version": "v1", "kind": "Fault"}}
	},
	"OLM003": func(p *patient) {
		p.spec()["installModes"] = []any{object{"type": "OwnNamespace", "supported": true}}
	},
	"OLM009": func(p *patient) {
		p.webhook("ValidatingAdmissionWebhook")["rules"] = []any{object{"operations": []any{"CREATE"}, "apiGroups": []any{"olm.operatorframework.io"}, "apiVersions": []any{"v1"}, "resources": []any{"clusterextensions"}}}
	},
	"CSV001": func(p *patient) { p.manifest("operators.coreos.com/v1alpha1", "ClusterServiceVersion") },
	"CSV002": func(p *patient) { p.spec()["keywords"] = "one" },
	"CSV003": func(p *patient) { p.container()["imagePulPolicy"] = "Always" },
	"CSV004": func(p *patient) {
		p.files["manifests/fault.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: b\n  a: c\n"
	},
	"CSV005": func(p *patient) {
		p.files["manifests/fault.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: z}\n"
	},
	"CSV006": func(p *patient) { p.at(p.csv, "metadata")["name"] = "fault.v99.0.0" },
	"CSV007": func(p *patient) { p.spec()["replaces"] = p.at(p.csv, "metadata")["name"] },
	"CSV008": func(p *patient) { p.at(p.csv, "metadata", "annotations")["olm.skipRange"] = "<v1.0.0" },
	"CSV009": func(p *patient) { p.owned()["version"] = "v99" },
	"CSV010": func(p *patient) { p.at(p.crd(), "metadata")["name"] = "faults.example.com" },
	"CSV011": func(p *patient) { p.manifest("monitoring.coreos.com/v1", "PodMonitor") },
	"CSV012": func(p *patient) {
		p.spec()["installModes"] = []any{object{"type": "AllNamespaces", "supported": false}}
	},
	"CSV040": func(p *patient) { p.at(p.csv, "spec", "install")["strategy"] = "fault" },
	"CSV041": func(p *patient) {
		p.spec()["apiservicedefinitions"] = object{"owned": []any{object{"name": "faults", "group": "example.com", "version": "v1", "kind": "Fault", "deploymentName": "fault"}}}
	},
	"CSV013": func(p *patient) { p.spec()["minKubeVersion"] = "1.28" },
	"CSV014": func(p *patient) { p.at(p.csv, "metadata", "annotations")["alm-examples"] = "[{]" },
	"CSV015": func(p *patient) {
		o := p.owned()
		group := strings.SplitN(o["name"].(string), ".", 2)[1]
		p.at(p.csv, "metadata", "annotations")["alm-examples"] = fmt.Sprintf(`[{"apiVersion": "%s/v99", "kind": %q, "metadata": {"name": "x"}}]`, group, o["kind"])
	},
	"CSV016": func(p *patient) { p.at(p.csv, "metadata", "annotations")["alm-examples"] = "[]" },
	"CSV017": func(p *patient) { p.at(p.deployment(), "spec", "selector")["matchLabels"] = object{"fault": "x"} },
	"CSV018": func(p *patient) { p.at(p.csv, "spec", "install", "spec")["deployments"] = []any{} },
	"CSV019": func(p *patient) {
		for _, c := range list(p.pod()["containers"]) {
			delete(c.(object), "readinessProbe")
		}
	},
	"CSV020": func(p *patient) {
		p.files["metadata/annotations.yaml"] = strings.Replace(p.files["metadata/annotations.yaml"], "mediatype.v1", "mediatyp.v1", 1)
	},
	"CSV021": func(p *patient) {
		noise := make([]byte, 2<<20)
		for i := range noise {
			noise[i] = byte('0' + p.IntN(64))
		}
		p.extra = append(p.extra, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "x"}, "data": object{"a": string(noise)}})
	},
	"CSV022": func(p *patient) {
		p.rule(false, object{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}})
		p.manifest("v1", "ServiceAccount")
	},
	"CSV023": func(p *patient) { p.at(p.deployment(), "spec")["replicas"] = 0 },
	"CSV024": func(p *patient) { p.at(p.deployment(), "spec")["strategy"] = object{"type": "Recreate"} },
	"CSV025": func(p *patient) {
		d := p.deployment()
		delete(p.at(d, "spec"), "strategy")
		p.at(d, "spec", "template", "spec")["volumes"] = []any{object{"name": "x", "persistentVolumeClaim": object{"claimName": "x"}}}
	},
	"CSV026": func(p *patient) { p.manifest("policy/v1beta1", "PodDisruptionBudget") },
	"CSV027": func(p *patient) {
		p.manifest("monitoring.coreos.com/v1", "ServiceMonitor")
		p.openShift("x")
	},
	"CSV039": func(p *patient) {
		p.manifest("monitoring.coreos.com/v1", "ServiceMonitor")
		p.openShift("com.redhat.openshift.versions")
	},
	"CSV028": func(p *patient) { p.owned()["specDescriptors"] = []any{object{"path": "no.such.field"}} },
	"CSV029": func(p *patient) { delete(p.spec(), "description") },
	"CSV030": func(p *patient) { delete(p.container(), "resources") },
	"CSV031": func(p *patient) { p.container()["securityContext"] = object{"runAsUser": 0} },
	"CSV032": func(p *patient) {
		pod := p.pod()
		delete(pod, "securityContext")
		for _, c := range list(pod["containers"]) {
			delete(c.(object), "securityContext")
		}
	},
	"CSV033": func(p *patient) { p.pod()["volumes"] = []any{object{"name": "x", "hostPath": object{"path": "/var"}}} },
	"CSV034": func(p *patient) {
		p.extra = append(p.extra, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "x", "generation": json.Number("9007199254740993")}})
	},
	"CSV035": func(p *patient) {
		p.files["metadata/annotations.yaml"] += "\n  " + bundle.AnnotationDefaultChannel + ": fault\n"
	},
	"CSV036": func(p *patient) {
		p.files["manifests/fault.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\n"
	},
	"CSV037": func(p *patient) {
		p.files["manifests/fault.yaml"] = "apiVersion: v1\nkind: Service\nmetadata: {name: fault}\nspec: {port: [{port: 80}]}\n"
	},
	"SCH001": func(p *patient) { p.at(p.schema(p.crd()), "properties")["fault"] = object{"type": "array"} },
	"SCH002": func(p *patient) {
		c := p.crd()
		other := object{}
		maps.Copy(other, c)
		other["metadata"] = object{"name": "faults.example.com"}
		p.extra = append(p.extra, other)
	},
	"SCH003": func(p *patient) {
		for _, v := range p.at(p.crd(), "spec")["versions"].([]any) {
			v.(object)["served"] = false
		}
	},
	"SCH004": func(p *patient) { p.schema(p.crd())["description"] = strings.Repeat("word ", largeCRD/4) },
	"SCH005": func(p *patient) { p.at(p.crd(), "spec")["validation"] = object{} },
	"SCH006": func(p *patient) {
		c := p.crd()
		delete(p.at(c, "spec"), "conversion")
		p.spec()["webhookdefinitions"] = []any{}
		v := object{"name": "v0fault", "served": true, "storage": false, "schema": object{"openAPIV3Schema": object{"type": "object", "properties": object{"fault": object{"type": "string"}}}}}
		s := p.schema(c)
		delete(s, "x-kubernetes-preserve-unknown-fields")
		p.at(c, "spec")["versions"] = append(list(p.at(c, "spec")["versions"]), v)
	},
	"IMG001": func(p *patient) {
		p.container()["image"] = "example.com/fault@sha256:" + strings.Repeat("1", 64)
		p.spec()["relatedImages"] = []any{object{"name": "other", "image": "example.com/other@sha256:" + strings.Repeat("2", 64)}}
	},
	"IMG002": func(p *patient) { p.container()["image"] = "example.com/fault:1" },
	"IMG003": func(p *patient) { p.container()["image"] = "example.com/fault" },
	"IMG004": func(p *patient) {
		p.spec()["relatedImages"] = append(list(p.spec()["relatedImages"]), object{"name": "fault", "image": "example.com/fault:1"})
	},
	"RBAC001": func(p *patient) { p.pod()["serviceAccountName"] = "fault" },
	"RBAC002": func(p *patient) {
		p.rule(false, object{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}})
	},
	"RBAC003": func(p *patient) {
		install := p.at(p.csv, "spec", "install", "spec")
		install["permissions"], install["clusterPermissions"] = []any{}, []any{}
	},
	"RBAC004": func(p *patient) {
		p.rule(true, object{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"*"}})
	},
	"RBAC005": func(p *patient) {
		p.rule(true, object{"apiGroups": []any{""}, "resources": []any{"users"}, "verbs": []any{"impersonate"}})
	},
	"RBAC006": func(p *patient) {
		p.rule(true, object{"apiGroups": []any{""}, "resources": []any{"secrets"}, "verbs": []any{"list"}})
	},
	"RBAC007": func(p *patient) {
		p.spec()["installModes"] = []any{object{"type": "OwnNamespace", "supported": true}}
		p.rule(false, object{"apiGroups": []any{""}, "resources": []any{"nodes"}, "verbs": []any{"get"}})
	},
	"RBAC008": func(p *patient) {
		for range 2 {
			p.rule(true, object{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}})
		}
	},
	"RBAC009": func(p *patient) {
		install := p.at(p.csv, "spec", "install", "spec")
		install["permissions"], install["clusterPermissions"] = []any{}, []any{}
		p.at(p.csv, "spec", "customresourcedefinitions")["required"] = []any{object{"name": "faults.example.com", "kind": "Fault", "version": "v1"}}
	},
	"RBAC010": func(p *patient) {
		p.rule(true, object{"apiGroups": []any{"example.com"}, "resources": []any{"faults"}, "verbs": []any{"*"}})
	},
	"WHK001": func(p *patient) { p.webhook("ValidatingAdmissionWebhook")["deploymentName"] = "fault" },
	"WHK002": func(p *patient) { p.webhook("ValidatingAdmissionWebhook")["deploymentName"] = strings.Repeat("a", 56) },
	"WHK003": func(p *patient) { p.webhook("ValidatingAdmissionWebhook")["targetPort"] = "fault" },
	"WHK004": func(p *patient) { p.webhook("ValidatingAdmissionWebhook"); p.webhook("MutatingAdmissionWebhook") },
	"WHK005": func(p *patient) { p.webhook("ConversionWebhook")["conversionCRDs"] = []any{} },
	"WHK006": func(p *patient) {
		p.spec()["webhookdefinitions"] = []any{}
		p.at(p.crd(), "spec")["conversion"] = object{"strategy": "Webhook"}
	},
	"WHK018": func(p *patient) {
		p.spec()["webhookdefinitions"] = []any{}
		c := p.crd()
		p.at(c, "spec")["versions"] = list(p.at(c, "spec")["versions"])[:1]
		p.at(c, "spec")["conversion"] = object{"strategy": "Webhook", "webhook": object{"clientConfig": object{"service": object{"name": "fault", "namespace": "fault"}}}}
	},
	"WHK007": func(p *patient) {
		p.twoVersions()
		w := p.webhook("ConversionWebhook")
		w["conversionCRDs"] = []any{p.at(p.crds[0], "metadata")["name"]}
		delete(p.at(p.crds[0], "spec"), "conversion")
	},
	"WHK008": func(p *patient) {
		p.twoVersions()
		w := p.webhook("ConversionWebhook")
		w["conversionCRDs"] = []any{p.at(p.crds[0], "metadata")["name"]}
		p.at(p.crds[0], "spec")["conversion"] = object{"strategy": "Webhook"}
	},
	"WHK009": func(p *patient) {
		p.webhook("ValidatingAdmissionWebhook")["rules"] = []any{object{"apiGroups": []any{"*"}, "resources": []any{"cups"}}}
	},
	"WHK010": func(p *patient) {
		delete(p.webhook("ValidatingAdmissionWebhook"), []string{"sideEffects", "admissionReviewVersions"}[p.IntN(2)])
	},
	"WHK011": func(p *patient) {
		p.webhook("ValidatingAdmissionWebhook")
		w := p.webhook("MutatingAdmissionWebhook")
		w["targetPort"] = 9444
		first := p.spec()["webhookdefinitions"].([]any)
		w["deploymentName"] = first[len(first)-2].(object)["deploymentName"]
	},
	"WHK012": func(p *patient) { p.webhook("ValidatingAdmissionWebhook")["targetPort"] = 9 },
	"WHK013": func(p *patient) { p.webhook("ValidatingAdmissionWebhook")["webhookPath"] = "fault" },
	"WHK019": func(p *patient) {
		w := p.webhook("ValidatingAdmissionWebhook")
		field := []string{"failurePolicy", "matchPolicy", "timeoutSeconds", "containerPort", "targetPort"}[p.IntN(5)]
		w[field] = map[string]any{"failurePolicy": "fault", "matchPolicy": "fault", "timeoutSeconds": 31, "containerPort": 65536, "targetPort": -1}[field]
	},
	"WHK014": func(p *patient) {
		for _, d := range list(p.at(p.csv, "spec", "install", "spec")["deployments"]) {
			p.at(d.(object), "spec")["replicas"] = 1
		}
		p.webhook("ValidatingAdmissionWebhook")
	},
	"WHK015": func(p *patient) {
		p.webhook("ValidatingAdmissionWebhook")["rules"] = []any{object{"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"pods"}}}
	},
	"WHK016": func(p *patient) {
		p.at(p.crd(), "spec")["conversion"] = object{"strategy": "Webhook", "webhook": object{"clientConfig": object{"url": "https://example.com"}}}
	},
	"WHK017": func(p *patient) {
		p.spec()["webhookdefinitions"] = []any{}
		c := p.crd()
		w := p.webhook("ValidatingAdmissionWebhook")
		w["matchPolicy"] = "Exact"
		w["rules"] = []any{object{"operations": []any{"CREATE"}, "apiGroups": []any{p.at(c, "spec")["group"]}, "apiVersions": []any{"v99"}, "resources": []any{p.at(c, "spec", "names")["plural"]}}}
	},
}

// twoVersions gives the first CRD a second version.
func (p *patient) twoVersions() {
	versions := list(p.at(p.crds[0], "spec")["versions"])
	p.at(p.crds[0], "spec")["versions"] = append(versions, object{"name": "v0fault", "served": true, "storage": false, "schema": object{"openAPIV3Schema": object{"type": "object"}}})
}

// faultsOfUpgrades are, for each check of upgrades, what the next release must not change in the patient.
var faultsOfUpgrades = map[string]func(p *patient){
	"EDG001": func(p *patient) { p.at(p.deployment(), "spec", "selector", "matchLabels")["fault"] = "x" },
	"EDG002": func(p *patient) { p.deployment()["name"] = "fault" },
	"EDG003": func(p *patient) {
		for _, m := range list(p.spec()["installModes"]) {
			m.(object)["supported"] = false
		}
	},
	"EDG004": func(p *patient) {
		install := p.at(p.csv, "spec", "install", "spec")
		install["permissions"], install["clusterPermissions"] = []any{}, []any{}
	},
	"EDG005": func(p *patient) {
		p.rule(true, object{"apiGroups": []any{"fault.example.com"}, "resources": []any{"cups"}, "verbs": []any{"brew"}})
	},
	"EDG007": func(p *patient) { p.spec()["minKubeVersion"] = "1.99.0" },
	"EDG008": func(p *patient) {
		install := p.at(p.csv, "spec", "install", "spec")
		install["permissions"], install["clusterPermissions"] = []any{}, []any{}
	},
	"EDG009": func(p *patient) {
		c := p.crd()
		p.webhook("ValidatingAdmissionWebhook")["rules"] = []any{object{"operations": []any{"UPDATE"}, "apiGroups": []any{p.at(c, "spec")["group"]}, "apiVersions": []any{"*"}, "resources": []any{p.at(c, "spec", "names")["plural"]}}}
	},
	"EDG010": func(p *patient) { p.extra[len(p.extra)-1]["value"] = 2 },
	"OLM005": func(p *patient) {
		s := p.schema(p.crd())
		s["required"] = append(list(s["required"]), "faulty")
		p.at(s, "properties")["faulty"] = object{"type": "string"}
	},
	"CRD001": func(p *patient) { p.version(p.crd())["name"] = "v99" },
	"CRD003": func(p *patient) { p.version(p.crd())["served"] = false },
	"CRD004": func(p *patient) {
		c := p.crd()
		delete(p.at(c, "spec"), "conversion")
		p.version(c)["storage"] = false
		p.at(c, "spec")["versions"] = append(list(p.at(c, "spec")["versions"]), object{"name": "v99", "served": true, "storage": true, "schema": object{"openAPIV3Schema": object{"type": "object", "properties": object{"other": object{"type": "string"}}}}})
	},
	"CRD005": func(p *patient) {
		s := p.at(p.crd(), "spec")
		s["scope"] = map[any]string{"Cluster": "Namespaced", "Namespaced": "Cluster"}[s["scope"]]
	},
	"CRD006": func(p *patient) {
		s := p.schema(p.crd())
		s["required"] = append(list(s["required"]), "faulty")
		p.at(s, "properties")["faulty"] = object{"type": "string"}
	},
	"CRD019": func(p *patient) {
		s := p.schema(p.crd())
		s["x-kubernetes-validations"] = append(list(s["x-kubernetes-validations"]), object{"rule": "has(self.metadata.name)"})
	},
	"CRD018": func(p *patient) {
		c := p.crd()
		delete(p.at(c, "spec"), "conversion")
		p.at(c, "spec")["versions"] = append(list(p.at(c, "spec")["versions"]), object{"name": "v99", "served": true, "storage": false, "schema": object{"openAPIV3Schema": object{"type": "object", "required": []any{"faulty"}}}})
	},
	"CRD007": func(p *patient) {
		s := p.schema(p.crd())
		delete(s, "x-kubernetes-preserve-unknown-fields")
		delete(p.at(s, "properties"), "spec")
	},
	"CRD009": func(p *patient) { p.crds = p.crds[1:] },
	"OLM008": func(p *patient) { p.crds = p.crds[1:] },
	"CRD010": func(p *patient) { p.at(p.schema(p.crd()), "properties")["spec"].(object)["default"] = object{} },
	"CRD011": func(p *patient) { delete(p.at(p.version(p.withStatus()), "subresources"), "status") },
	"CRD014": func(p *patient) { p.at(p.crd(), "spec", "names")["singular"] = "fault" },
	"CRD016": func(p *patient) {
		p.at(p.schema(p.crd()), "properties")["spec"].(object)["x-kubernetes-map-type"] = "atomic"
	},
}

// faultsOfCatalogs are faults of the documents of a catalog with the patient at its head, under another release.
var faultsOfCatalogs = map[string]func(p *patient){
	"CAT001": func(p *patient) { p.more = append(p.more, p.pkg) },
	"CAT002": func(p *patient) { p.more = append(p.more, object{"schema": "olm.channel", "name": "fault"}) },
	"CAT003": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.channel", "package": "fault", "name": "fault", "entries": []any{}})
	},
	"CAT004": func(p *patient) { p.more = append(p.more, object{"schema": "olm.package", "name": "Fault"}) },
	"CAT005": func(p *patient) { p.more = append(p.more, object{"schema": "olm.package", "name": "fault"}) },
	"CAT006": func(p *patient) { p.pkg["defaultChannel"] = "fault" },
	"CAT007": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.channel", "package": p.pkg["name"], "name": "fault", "entries": []any{}})
	},
	"CAT008": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.channel", "package": p.pkg["name"], "name": "fault", "entries": []any{object{"name": "fault.v1.0.0"}}})
	},
	"CAT009": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.bundle", "package": p.pkg["name"], "name": "fault.v1.0.0", "image": "example.com/a"})
	},
	"CAT010": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.channel", "package": p.pkg["name"], "name": "fault", "entries": []any{object{"name": "a"}, object{"name": "a"}}})
	},
	"CAT011": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.bundle", "package": p.pkg["name"], "name": "fault.v1.0.0"})
	},
	"CAT012": func(p *patient) { p.property("olm.package", object{"packageName": "fault", "version": "1"}) },
	"CAT013": func(p *patient) { p.property("olm.gvk", []any{}) },
	"CAT014": func(p *patient) { p.doc["image"] = "Example.com/A@b" },
	"CAT015": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.bundle", "package": p.pkg["name"], "name": "fault", "properties": p.doc["properties"]})
	},
	"CAT016": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.deprecations", "package": p.pkg["name"], "entries": []any{object{"reference": object{"schema": "olm.bundle", "name": "fault"}, "message": "x"}}})
	},
	"CAT017": func(p *patient) { delete(p.entry, "replaces"); p.entry["replace"] = "fault" },
	"CAT018": func(p *patient) { p.entry["owner"] = "me" },
	"CAT019": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.bundel", "package": p.pkg["name"], "name": "fault"})
	},
	"CAT021": func(p *patient) { p.doc["image"], p.doc["properties"] = "example.com/a", []any{} },
	"CAT022": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.bundle", "package": p.pkg["name"], "name": strings.Repeat("a", 64)})
	},
	"CAT023": func(p *patient) { p.property("olm.gvk.requird", object{}) },
	"CAT024": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.bundle", "package": p.pkg["name"], "name": "A_fault"})
	},
	"CAT025": func(p *patient) { p.doc["name"] = "fault"; p.entry["name"] = "fault" },
	"CAT027": func(p *patient) { p.doc["image"] = "example.com/a" },
	"GRA001": func(p *patient) { delete(p.entry, "replaces") },
	"GRA002": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.channel", "package": p.pkg["name"], "name": "fault", "entries": []any{
			object{"name": p.entry["replaces"]}, object{"name": "mid", "replaces": p.entry["replaces"]}, object{"name": p.entry["name"], "skips": []any{"mid"}},
		}})
	},
	"GRA006": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.channel", "package": p.pkg["name"], "name": "fault", "entries": []any{object{"name": p.entry["name"], "replaces": "patient.v0.0.0"}}})
	},
	"GRA007": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.channel", "package": p.pkg["name"], "name": "fault", "entries": []any{object{"name": p.entry["name"], "replaces": "elsewhere.v0.0.0"}}})
	},
	"GRA019": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.channel", "package": p.pkg["name"], "name": "fault", "entries": []any{object{"name": p.entry["replaces"], "skips": []any{p.entry["name"]}}}})
	},
	"GRA003": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.channel", "package": p.pkg["name"], "name": "fault", "entries": []any{
			object{"name": p.entry["replaces"]}, object{"name": "mid", "replaces": p.entry["replaces"]}, object{"name": p.entry["name"], "skips": []any{"mid"}},
		}})
	},
	"GRA004": func(p *patient) { p.entry["skipRange"] = "<v9" },
	"GRA005": func(p *patient) { p.entry["skips"] = []any{p.entry["name"]} },
	"GRA009": func(p *patient) { p.entry["skipRange"] = ">=0.0.0-0" },
	"GRA014": func(p *patient) { p.entry["skipRange"] = ">=2.0.0 <1.0.0" },
	"GRA018": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.channel", "package": p.pkg["name"], "name": "fault", "entries": []any{object{"name": p.entry["name"]}}})
	},
	"GRA021": func(p *patient) {
		p.more = append(p.more, object{"schema": "olm.deprecations", "package": p.pkg["name"], "entries": []any{object{"reference": object{"schema": "olm.bundle", "name": p.entry["name"]}, "message": "x"}}})
	},
	"DEP001": func(p *patient) {
		p.property("olm.package.required", object{"packageName": p.pkg["name"], "versionRange": ">999.0.0"})
	},
	"DEP002": func(p *patient) {
		p.property("olm.gvk.required", object{"group": "fault", "version": "v1", "kind": "Fault"})
	},
	"DEP003": func(p *patient) {
		p.property("olm.constraint", object{"failureMessage": "x", "cel": object{"rule": "1 +"}})
	},
	"DEP006": func(p *patient) {
		p.property("olm.gvk.required", object{"group": "fault", "version": "v1", "kind": "Fault"})
	},
}

// TestMutations puts the fault of each check into published bundles, chosen by a fixed seed, and counts how many are found.
func TestMutations(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(published(t), "*", "*", "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(dirs), func(i, j int) { dirs[i], dirs[j] = dirs[j], dirs[i] })
	dirs = dirs[:min(len(dirs), 24)] // so that each is read once for several faults
	read := map[string]*bundle.Bundle{}
	const rounds = 2
	var missed []string
	total := 0
	try := func(kind, code string, round int, run func(*patient) []finding.Finding) {
		random := rand.New(rand.NewPCG(uint64(round), hash(kind+code)))
		for range 50 { // a bundle that can have the fault
			dir := filepath.Dir(dirs[random.IntN(len(dirs))])
			if read[dir] == nil {
				b, err := bundle.Read(dir)
				if err != nil {
					t.Fatal(err)
				}
				read[dir] = b
			}
			p := admit(t, random, read[dir])
			if p == nil {
				continue
			}
			total++
			if findings := run(p); !slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Code == code }) {
				missed = append(missed, code+" in "+filepath.Base(filepath.Dir(dir))+"/"+filepath.Base(dir))
			}
			return
		}
		t.Errorf("%s: no bundle can have the fault", code)
	}
	for round := range rounds {
		for _, code := range slices.Sorted(maps.Keys(faultsOfBundles)) {
			try("bundle", code, round, func(p *patient) []finding.Finding {
				faultsOfBundles[code](p)
				return Bundle(p.bundle(t), nil)
			})
		}
		for _, code := range slices.Sorted(maps.Keys(faultsOfUpgrades)) {
			try("upgrade", code, round, func(p *patient) []finding.Finding {
				before := p.render(t, "0.0.1")
				faultsOfUpgrades[code](p)
				p.doc = p.render(t, "0.0.2")
				findings, _ := Catalog(p.catalog(t, before), Options{Only: []string{code}})
				return findings
			})
		}
		for _, code := range slices.Sorted(maps.Keys(faultsOfCatalogs)) {
			try("catalog", code, round, func(p *patient) []finding.Finding {
				before := p.render(t, "0.0.1")
				p.doc = p.render(t, "0.0.2")
				p.entry = object{"name": p.doc["name"], "replaces": before["name"]}
				p.pkg = object{"schema": "olm.package", "name": p.doc["package"], "defaultChannel": "stable"}
				faultsOfCatalogs[code](p)
				findings, _ := Catalog(p.catalog(t, before), Options{Only: []string{code}})
				return findings
			})
		}
	}
	slices.Sort(missed)
	t.Logf("%d faults of %d checks, %d found; missed: %s", total, len(faultsOfBundles)+len(faultsOfUpgrades)+len(faultsOfCatalogs), total-len(missed), strings.Join(missed, ", "))
	if found := total - len(missed); found*100 < total*98 {
		t.Errorf("%d of %d faults found, fewer than 98 of 100; missed:\n%s", found, total, strings.Join(missed, "\n"))
	}
}

func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range []byte(s) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}

// admit makes a patient of a published bundle that has what the faults change, or returns nil.
func admit(t *testing.T, random *rand.Rand, b *bundle.Bundle) *patient {
	t.Helper()
	annotations, err := os.ReadFile(filepath.Join(b.Dir, "metadata", "annotations.yaml"))
	if err != nil {
		return nil
	}
	p := &patient{Rand: random, files: map[string]string{"metadata/annotations.yaml": string(annotations)}}
	for _, m := range b.Manifests {
		var o object
		decoder := json.NewDecoder(strings.NewReader(string(m.JSON)))
		decoder.UseNumber()
		if err := decoder.Decode(&o); err != nil {
			t.Fatal(err)
		}
		switch m.Kind {
		case bundle.KindCSV:
			p.csv = o
		case "CustomResourceDefinition":
			if m.APIVersion != "apiextensions.k8s.io/v1" || p.version(o) == nil || p.at(p.schema(o), "properties")["spec"] == nil {
				return nil
			}
			p.crds = append(p.crds, o)
		default:
			p.extra = append(p.extra, o)
		}
	}
	owned, _ := p.at(p.csv, "spec", "customresourcedefinitions")["owned"].([]any)
	if len(p.crds) == 0 || len(owned) == 0 || len(list(p.at(p.csv, "spec", "install", "spec")["clusterPermissions"]))+len(list(p.at(p.csv, "spec", "install", "spec")["permissions"])) == 0 {
		return nil
	}
	p.extra = append(p.extra, object{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": object{"name": "fault"}, "value": 1})
	return p
}

// bundle is the patient as it is now.
func (p *patient) bundle(t *testing.T) *bundle.Bundle {
	t.Helper()
	files := fstest.MapFS{}
	for name, text := range p.files {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	for i, o := range append(append([]object{p.csv}, p.crds...), p.extra...) {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		files[fmt.Sprintf("manifests/%03d.json", i)] = &fstest.MapFile{Data: raw}
	}
	b, err := bundle.ReadFS(files, "patient")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// render is the patient as a bundle of a catalog, in a version.
func (p *patient) render(t *testing.T, version string) object {
	t.Helper()
	name := "patient.v" + version
	p.at(p.csv, "metadata")["name"], p.spec()["version"] = name, version
	delete(p.spec(), "replaces")
	d, err := catalog.Render(p.bundle(t), "")
	if err != nil {
		t.Fatal(err)
	}
	var doc object
	decoder := json.NewDecoder(strings.NewReader(string(d.JSON)))
	decoder.UseNumber()
	if err := decoder.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// catalog has the patient after the release before.
func (p *patient) catalog(t *testing.T, before object) *catalog.Catalog {
	t.Helper()
	if p.entry == nil {
		p.entry = object{"name": p.doc["name"], "replaces": before["name"]}
		p.pkg = object{"schema": "olm.package", "name": p.doc["package"], "defaultChannel": "stable"}
	}
	entries := []any{object{"name": before["name"]}, p.entry}
	var out strings.Builder
	for _, o := range append([]object{p.pkg, {"schema": "olm.channel", "package": p.pkg["name"], "name": "stable", "entries": entries}, before, p.doc}, p.more...) {
		if len(o) == 0 {
			continue
		}
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(raw, '\n'))
	}
	return catalog.Parse("patient.json", []byte(out.String()))
}
