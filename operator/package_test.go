package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// What consoles show of an object, and 'operator-sdk scorecard' asks for: each field of spec and status is described, and
// nothing that is not there.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"v0.5.0", "v0.6.0-rc.1"} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			resources := build(t, filepath.Join(releases(t)[release], "manifests"))
			crd := one(t, resources, "CustomResourceDefinition", "memcacheds.cache.example.com")
			// Markers in the API's sources say it, so that it stands in the bundle only.
			written, err := os.ReadFile(filepath.Join("../bundle/memcached-operator", release[1:], "manifests/memcached-operator.clusterserviceversion.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var csv map[string]any
			if err := yaml.Unmarshal(written, &csv); err != nil {
				t.Fatal(err)
			}
			for _, o := range slice(csv, "spec", "customresourcedefinitions", "owned") {
				version := slices.IndexFunc(slice(crd, "spec", "versions"), func(v any) bool { return value(v, "name") == value(o, "version") })
				schema := value(slice(crd, "spec", "versions")[version], "schema", "openAPIV3Schema", "properties")
				for part, key := range map[string]string{"spec": "specDescriptors", "status": "statusDescriptors"} {
					described := map[string]bool{}
					for _, d := range slice(o, key) {
						at, path := value(schema, part), value(d, "path").(string)
						for field := range strings.SplitSeq(path, ".") {
							if at = value(at, "properties", field); at == nil {
								t.Errorf("%s: %s has no field %s", value(o, "version"), part, path)
							}
						}
						field, _, _ := strings.Cut(path, ".")
						described[field] = true
					}
					fields, _ := value(schema, part, "properties").(map[string]any)
					delete(fields, "selector") // for the scale subresource, not for people
					if diff := cmp.Diff(slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(described))); diff != "" {
						t.Errorf("%s: fields of %s, and those that are described:\n%s", value(o, "version"), part, diff)
					}
				}
			}
		})
	}
}

// The suites that the scorecard comes with, from an image of one version.
func TestScorecard(t *testing.T) {
	t.Parallel()
	images, suites := map[any]bool{}, map[any]int{}
	for _, stage := range slice(one(t, build(t, "config/scorecard"), "Configuration", "config"), "stages") {
		for _, test := range slice(stage, "tests") {
			images[value(test, "image")] = true
			suites[value(test, "labels", "suite")]++
		}
	}
	if diff := cmp.Diff(map[any]int{"basic": 1, "olm": 5}, suites); diff != "" {
		t.Error(diff)
	}
	for image := range images {
		if len(images) != 1 || !regexp.MustCompile(`:v\d+\.\d+\.\d+$`).MatchString(image.(string)) {
			t.Errorf("images %v", images)
		}
	}
}

// What the Dockerfile copies and builds is there, and the image is what the Deployment needs: the entry point, and a user by
// number, which the kubelet needs to know that it is not root.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]string{}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		last[instruction] = rest
		words := strings.Fields(rest)
		if instruction == "COPY" && !strings.HasPrefix(rest, "--from=") {
			for _, source := range words[:len(words)-1] {
				if _, err := os.Stat(filepath.Join("..", source)); err != nil {
					t.Errorf("%s: %v", strings.TrimSpace(line), err)
				}
			}
		}
	}
	if got := []string{last["FROM"], last["USER"], last["ENTRYPOINT"]}; !slices.Equal(got, []string{"scratch", "65532:65532", `["/manager"]`}) {
		t.Errorf("the last of FROM, USER and ENTRYPOINT are %q", got)
	}
}

// People's roles come along however the operator is installed, and stay from release to release: OLM changes a ClusterRole
// of a bundle in place, and leaves alone those that the next bundle does not have.
func TestUserRoles(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"config/default", "config/manifests", "releases/v0.6.0-rc.1/config/manifests"} {
		resources := build(t, folder)
		for role, label := range map[string]string{"admin": "admin", "editor": "edit", "viewer": "view"} {
			r := one(t, resources, "ClusterRole", "memcached-operator-memcached-"+role)
			if value(r, "metadata", "labels", "rbac.authorization.k8s.io/aggregate-to-"+label) != "true" {
				t.Errorf("%s: %s is no part of %s", folder, role, label)
			}
		}
	}
}
