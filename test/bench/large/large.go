// Package large makes catalogs of packages with very large CustomResourceDefinitions, to measure on.
package large

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Package is a package like those of operators whose CRDs hold whole pod templates: each release has many fields, and differs
// from the last one in a few of them, all over.
type Package struct {
	Name    string
	Bundles int
	crds    int // of each bundle
	wide    int // how many fields each object of their schemas has, three levels deep
	renewed int // of 1000 fields, how many have another description in the next release
}

// The two kinds on which we found validating slow: many releases with very large CRDs, and fewer with large ones.
var (
	Many = Package{Name: "many", Bundles: 52, crds: 10, wide: 12, renewed: 20}
	Few  = Package{Name: "few", Bundles: 22, crds: 2, wide: 21, renewed: 60}
)

// Write writes a catalog with so many releases of the package, and returns its size.
func (l Package) Write(b testing.TB, root string, bundles int) int64 {
	b.Helper()
	if err := os.MkdirAll(root, 0o755); err != nil {
		b.Fatal(err)
	}
	file, err := os.Create(filepath.Join(root, l.Name+".json"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	w := bufio.NewWriter(file)
	encoder := json.NewEncoder(w)
	var entries []object
	for i := range bundles {
		e := object{"name": l.bundle(i)}
		if i > 0 {
			e["replaces"] = l.bundle(i - 1)
		}
		entries = append(entries, e)
	}
	documents := []object{
		{"schema": "olm.package", "name": l.Name, "defaultChannel": "stable"},
		{"schema": "olm.channel", "package": l.Name, "name": "stable", "entries": entries},
	}
	for _, d := range documents {
		if err := encoder.Encode(d); err != nil {
			b.Fatal(err)
		}
	}
	for i := range bundles {
		if err := encoder.Encode(l.release(b, i)); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	info, err := file.Stat()
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}

func (l Package) bundle(i int) string { return fmt.Sprintf("%s.v1.%d.0", l.Name, i) }

// WriteBundles writes so many releases of the package as bundle directories, and returns these.
func (l Package) WriteBundles(b testing.TB, root string, bundles int) []string {
	b.Helper()
	annotations := object{}
	for key, value := range map[string]string{
		"mediatype.v1": "registry+v1", "manifests.v1": "manifests/", "metadata.v1": "metadata/",
		"package.v1": l.Name, "channels.v1": "stable", "channel.default.v1": "stable",
	} {
		annotations["operators.operatorframework.io.bundle."+key] = value
	}
	var dirs []string
	for i := range bundles {
		dir := filepath.Join(root, l.bundle(i))
		files := map[string]object{"metadata/annotations.yaml": {"annotations": annotations}}
		for n, manifest := range l.manifests(i) {
			files[fmt.Sprintf("manifests/%02d.yaml", n)] = manifest
		}
		for name, content := range files {
			text, err := yaml.Marshal(content)
			if err == nil {
				err = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// release returns the document of release i.
func (l Package) release(b testing.TB, i int) object {
	b.Helper()
	properties := []object{{"type": "olm.package", "value": object{"packageName": l.Name, "version": fmt.Sprintf("1.%d.0", i)}}}
	for _, o := range l.owned() {
		properties = append(properties, object{"type": "olm.gvk", "value": object{"group": "example.com", "kind": o["kind"], "version": "v1"}})
	}
	for _, manifest := range l.manifests(i) {
		data, err := json.Marshal(manifest)
		if err != nil {
			b.Fatal(err)
		}
		properties = append(properties, object{"type": "olm.bundle.object", "value": object{"data": base64.StdEncoding.EncodeToString(data)}})
	}
	return object{"schema": "olm.bundle", "package": l.Name, "name": l.bundle(i), "properties": properties, "relatedImages": []object{}}
}

// owned returns what the CSV says of each CRD.
func (l Package) owned() []object {
	var owned []object
	for c := range l.crds {
		kind := fmt.Sprintf("Kind%d", c)
		owned = append(owned, object{"name": strings.ToLower(kind) + "s.example.com", "kind": kind, "version": "v1", "displayName": kind, "description": kind})
	}
	return owned
}

// manifests returns the CRDs and the CSV of release i.
func (l Package) manifests(i int) []object {
	owned := l.owned()
	var manifests []object
	for c, o := range owned {
		kind := o["kind"].(string)
		plural := strings.ToLower(kind) + "s"
		manifests = append(manifests, object{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": object{"name": o["name"]},
			"spec": object{
				"group": "example.com", "scope": "Namespaced",
				"names": object{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind)},
				"versions": []object{{"name": "v1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": object{
					"type": "object", "description": kind,
					"properties": object{
						"apiVersion": object{"type": "string"}, "kind": object{"type": "string"}, "metadata": object{"type": "object"},
						"spec":   l.schema(fmt.Sprint(l.Name, "/", c), i, 3),
						"status": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
					},
				}}}},
			},
		})
	}
	return append(manifests, l.csv(i, owned))
}

func (l Package) csv(i int, owned []object) object {
	labels := object{"app": l.Name}
	return object{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": object{"name": l.bundle(i)},
		"spec": object{
			"version": fmt.Sprintf("1.%d.0", i), "displayName": l.Name,
			"installModes":              []object{{"type": "AllNamespaces", "supported": true}},
			"customresourcedefinitions": object{"owned": owned},
			"install": object{"strategy": "deployment", "spec": object{"deployments": []object{{
				"name": l.Name, "spec": object{
					"replicas": 1, "selector": object{"matchLabels": labels},
					"template": object{"metadata": object{"labels": labels}, "spec": object{"containers": []object{{"name": "manager", "image": fmt.Sprintf("example.com/%s:v1.%d.0", l.Name, i)}}}},
				},
			}}}},
		},
	}
}

// object is a JSON object.
type object = map[string]any

const prose = "is what the container of the pod that the operator runs is given when it starts, and what becomes of it later; see the documentation of Kubernetes for what else it means to users."

// schema returns an object at path, as release i has it.
func (l Package) schema(path string, i, levels int) object {
	properties := object{}
	for n := range l.wide {
		name := fmt.Sprintf("field%d", n)
		at := path + "/" + name
		switch {
		case levels > 1 && n%4 == 3:
			properties[name] = object{"type": "array", "items": l.schema(at, i, levels-1), "description": l.describe(at, i)}
		case levels > 1:
			properties[name] = l.schema(at, i, levels-1)
		default:
			properties[name] = object{"type": []string{"string", "integer", "boolean"}[n%3], "description": l.describe(at, i)}
		}
	}
	return object{"type": "object", "properties": properties, "description": l.describe(path, i)}
}

// describe returns what release i says of the field at path: what the last release said that renewed it.
func (l Package) describe(path string, i int) string {
	of := func(release int) uint64 {
		digest := fnv.New64a()
		fmt.Fprint(digest, path, "#", release)
		return digest.Sum64()
	}
	for i > 0 && of(i)%1000 >= uint64(l.renewed) {
		i--
	}
	return fmt.Sprintf("%x %s", of(i), prose[:60+of(0)%100])
}
