package catalog

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
)

// annotationProperties is the CSV's annotation that holds properties as a JSON list (operator-registry v1.74.0,
// pkg/registry/types.go, PropertyKey).
const annotationProperties = "olm.properties"

// AnnotatedProperties are those that an annotation of a CSV holds. The error says why it cannot be read.
func AnnotatedProperties(annotations map[string]string) (properties []bundle.Property, err error) {
	text := annotations[annotationProperties]
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &properties); err != nil {
		return nil, err
	}
	return properties, nil
}

// gvk is the value of olm.gvk and olm.gvk.required, with the fields in opm's order.
type gvk struct {
	Group   string `json:"group"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

// Render returns the olm.bundle document of a bundle directory, as `opm render` makes it (operator-registry v1.74.0,
// alpha/action/render.go and pkg/registry/registry_to_model.go), with every manifest inline: also those that opm drops
// because they stand second in their file. With an empty image OLM installs the bundle from the catalog alone.
func Render(b *bundle.Bundle, image string) (*Document, error) {
	manifest := b.CSV()
	if manifest == nil {
		return nil, hint.With(fmt.Errorf("render bundle %s: manifests/ holds no %s", b.Dir, bundle.KindCSV),
			"add the %s to %s/manifests, for example with 'olmkit bundle generate'", bundle.KindCSV, b.Dir)
	}
	name := b.Package()
	if name == "" {
		return nil, hint.With(fmt.Errorf("render bundle %s: metadata/ names no package", b.Dir),
			"set annotations: %s in %s/metadata/annotations.yaml", bundle.AnnotationPackage, b.Dir)
	}
	csv, err := readCSV(manifest)
	if err != nil {
		return nil, err
	}
	properties, err := renderProperties(b, manifest, csv, name)
	if err != nil {
		return nil, err
	}
	for _, m := range b.Manifests {
		if m.Kind == bundle.KindCSV && m.At != manifest.At {
			return nil, hint.With(fmt.Errorf("render bundle %s: two %ss, at %s and %s", b.Dir, bundle.KindCSV, manifest.At, m.At),
				"keep one: a bundle is one release, and OLM takes the first it finds")
		}
	}
	raw, err := encode(struct {
		Schema     string     `json:"schema"`
		Name       string     `json:"name"`
		Package    string     `json:"package"`
		Image      string     `json:"image"`
		Properties []Property `json:"properties"`
	}{SchemaBundle, manifest.Name, name, image, properties})
	if err != nil {
		return nil, fmt.Errorf("render bundle %s: %w", b.Dir, err)
	}
	related, err := encode(csv.images(image))
	if err != nil {
		return nil, fmt.Errorf("render bundle %s: %w", b.Dir, err)
	}
	raw = appendObjects(raw, b.Manifests, related)
	return &Document{
		Schema: SchemaBundle, Package: name, Name: manifest.Name,
		JSON: raw, At: manifest.At, Source: document.New(raw, manifest.At),
	}, nil
}

// appendObjects completes the document raw, whose properties are its last field and not empty, by those that hold the
// manifests and by the related images. They are most of it, so they are written but once.
func appendObjects(raw json.RawMessage, manifests []bundle.Manifest, related json.RawMessage) json.RawMessage {
	raw = bytes.TrimSuffix(raw, []byte("]}"))
	const before, after = `,{"type":"` + PropertyObject + `","value":{"data":"`, `"}}`
	size := len(raw) + len(related) + len(`],"relatedImages":}`)
	for _, m := range manifests {
		size += len(before) + base64.StdEncoding.EncodedLen(len(m.JSON)) + len(after)
	}
	whole := append(make([]byte, 0, size), raw...)
	for _, m := range manifests {
		whole = append(whole, before...)
		whole = base64.StdEncoding.AppendEncode(whole, m.JSON)
		whole = append(whole, after...)
	}
	whole = append(whole, ']')
	if string(related) != "null" && string(related) != "[]" {
		whole = append(append(whole, `,"relatedImages":`...), related...)
	}
	return append(whole, '}')
}

// encode is json.Marshal without the escapes that HTML asks for.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// csv is what a catalog says of a ClusterServiceVersion.
type csv struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Version       string          `json:"version"`
		Release       json.RawMessage `json:"release"`
		RelatedImages []RelatedImage  `json:"relatedImages"`
		CRDs          struct {
			Required []struct {
				Name    string `json:"name"`
				Version string `json:"version"`
				Kind    string `json:"kind"`
			} `json:"required"`
		} `json:"customresourcedefinitions"`
		APIServices struct {
			Owned    []gvk `json:"owned"`
			Required []gvk `json:"required"`
		} `json:"apiservicedefinitions"`
		Install struct {
			Strategy string `json:"strategy"`
			Spec     struct {
				Deployments []struct {
					Spec struct {
						Template struct {
							Spec struct {
								Containers     []container `json:"containers"`
								InitContainers []container `json:"initContainers"`
							} `json:"spec"`
						} `json:"template"`
					} `json:"spec"`
				} `json:"deployments"`
			} `json:"spec"`
		} `json:"install"`
	} `json:"spec"`
}

type container struct {
	Image string `json:"image"`
}

func readCSV(m *bundle.Manifest) (*csv, error) {
	c := &csv{}
	if err := document.Decode(m.JSON, c); err != nil {
		problem := typeProblem(m.Document, err, finding.Subject{})
		return nil, hint.With(fmt.Errorf("render bundle: %s: %s", problem.Location, problem.Message), "write the field as the ClusterServiceVersion's CRD says")
	}
	if m.Name == "" {
		return nil, hint.With(fmt.Errorf("render bundle: %s: the %s has no name", m.At, bundle.KindCSV), "set metadata.name, for example my-operator.v1.2.3")
	}
	if c.Spec.Version == "" {
		return nil, hint.With(fmt.Errorf("render bundle: %s: the %s has no version", m.At, bundle.KindCSV), "set spec.version to the release's semantic version")
	}
	return c, nil
}

// images lists what the bundle needs to run: the images the CSV names, the bundle's own, and those of the containers.
func (c *csv) images(own string) []RelatedImage {
	images := slices.Clone(c.Spec.RelatedImages)
	known := map[string]bool{"": true}
	for _, i := range images {
		known[i.Image] = true
	}
	add := func(image string) {
		if !known[image] {
			known[image] = true
			images = append(images, RelatedImage{Image: image})
		}
	}
	add(own)
	if c.Spec.Install.Strategy == "deployment" {
		for _, d := range c.Spec.Install.Spec.Deployments {
			for _, i := range slices.Concat(d.Spec.Template.Spec.Containers, d.Spec.Template.Spec.InitContainers) {
				add(i.Image)
			}
		}
	}
	slices.SortStableFunc(images, func(a, b RelatedImage) int {
		return cmp.Or(strings.Compare(a.Image, b.Image), strings.Compare(a.Name, b.Name))
	})
	return images
}

// release returns spec.release, which may be a number, as text.
func (c *csv) release() string {
	var text string
	if json.Unmarshal(c.Spec.Release, &text) == nil {
		return text
	}
	return string(c.Spec.Release)
}

// renderProperties returns all properties but the manifests, sorted by type and value.
func renderProperties(b *bundle.Bundle, manifest *bundle.Manifest, c *csv, name string) ([]Property, error) {
	set := propertySet{}
	pkg := struct {
		PackageName string `json:"packageName"`
		Version     string `json:"version"`
		Release     string `json:"release,omitempty"`
	}{name, c.Spec.Version, c.release()}
	set.add(PropertyPackage, pkg)

	annotated, err := AnnotatedProperties(c.Metadata.Annotations)
	if err != nil {
		at := manifest.Document.Place("metadata", "annotations", annotationProperties)
		return nil, hint.With(fmt.Errorf("render bundle: %s: the annotation %s: %s", at, annotationProperties, document.Plain(err)), "write the annotation as a JSON list of type and value")
	}
	for _, p := range slices.Concat(b.Properties, annotated) {
		if p.Type == PropertyPackage {
			set.drop(PropertyPackage)
		}
		set.add(p.Type, p.Value)
	}
	if err := set.addDependencies(b); err != nil {
		return nil, err
	}
	if err := set.addProvided(b); err != nil {
		return nil, err
	}
	for _, v := range c.Spec.APIServices.Owned {
		set.add(PropertyGVK, v)
	}
	for i, r := range c.Spec.CRDs.Required {
		_, group, ok := strings.Cut(r.Name, ".")
		if !ok {
			at := manifest.Document.Place("spec", "customresourcedefinitions", "required", i, "name")
			return nil, hint.With(fmt.Errorf("render bundle: %s: required CRD %q is not named plural.group", at, r.Name), "name the CRD by its metadata.name")
		}
		set.add(PropertyGVKRequired, gvk{group, r.Kind, r.Version})
	}
	for _, v := range c.Spec.APIServices.Required {
		set.add(PropertyGVKRequired, v)
	}
	if set.err != nil {
		return nil, fmt.Errorf("render bundle %s: %w", b.Dir, set.err)
	}
	slices.SortFunc(set.list, func(a, b Property) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), bytes.Compare(a.Value, b.Value))
	})
	return set.list, nil
}

// addDependencies adds what metadata/dependencies.yaml asks for.
func (set *propertySet) addDependencies(b *bundle.Bundle) error {
	for _, d := range b.Dependencies {
		kind, value, err := Requirement(d)
		if err != nil {
			return err
		}
		set.add(kind, value)
	}
	return nil
}

// Requirement returns the type and the value of the property that a dependency is in a catalog, as opm makes it (operator-registry v1.74.0,
// pkg/registry/registry_to_model.go).
func Requirement(d bundle.Property) (kind string, value any, err error) {
	switch d.Type {
	case PropertyGVK:
		var v gvk
		err = readDependency(d, &v)
		return PropertyGVKRequired, v, err
	case PropertyPackage:
		var v struct {
			PackageName string `json:"packageName"`
			Version     string `json:"version"`
		}
		err = readDependency(d, &v)
		return PropertyPackageRequired, struct {
			PackageName  string `json:"packageName"`
			VersionRange string `json:"versionRange"`
		}{v.PackageName, v.Version}, err
	}
	return d.Type, d.Value, nil
}

func readDependency(d bundle.Property, into any) error {
	problem := "it has no value"
	if d.Value != nil {
		err := json.Unmarshal(d.Value, into)
		if err == nil {
			return nil
		}
		problem = document.Plain(err)
	}
	return hint.With(fmt.Errorf("render bundle: %s: dependency of type %s: %s", d.Place(), d.Type, problem), "write type, and value as a mapping")
}

// propertySet collects properties, each once.
type propertySet struct {
	list  []Property
	known map[string]bool // types and values
	err   error
}

func (s *propertySet) add(kind string, v any) {
	value, err := encode(v)
	if err != nil {
		s.err = err
		return
	}
	key := keyOf(kind, value)
	if s.known[key] {
		return
	}
	if s.known == nil {
		s.known = map[string]bool{}
	}
	s.known[key] = true
	s.list = append(s.list, Property{Type: kind, Value: value})
}

func keyOf(kind string, value json.RawMessage) string { return kind + "\n" + string(value) }

func (s *propertySet) drop(kind string) {
	s.list = slices.DeleteFunc(s.list, func(p Property) bool {
		if p.Type == kind {
			delete(s.known, keyOf(kind, p.Value))
		}
		return p.Type == kind
	})
}

// addProvided adds an olm.gvk for each version of each CRD, served or not, as opm does.
func (s *propertySet) addProvided(b *bundle.Bundle) error {
	for _, m := range b.Manifests {
		if m.Kind != "CustomResourceDefinition" {
			continue
		}
		var crd struct {
			Spec struct {
				Group string `json:"group"`
				Names struct {
					Kind string `json:"kind"`
				} `json:"names"`
				Version  string `json:"version"` // apiextensions.k8s.io/v1beta1
				Versions []struct {
					Name string `json:"name"`
				} `json:"versions"`
			} `json:"spec"`
		}
		if err := document.Decode(m.JSON, &crd); err != nil {
			problem := typeProblem(m.Document, err, finding.Subject{})
			return hint.With(fmt.Errorf("render bundle: %s: %s", problem.Location, problem.Message), "write the CustomResourceDefinition as the API server accepts it")
		}
		for _, v := range crd.Spec.Versions {
			s.add(PropertyGVK, gvk{crd.Spec.Group, crd.Spec.Names.Kind, v.Name})
		}
		if crd.Spec.Version != "" {
			s.add(PropertyGVK, gvk{crd.Spec.Group, crd.Spec.Names.Kind, crd.Spec.Version})
		}
	}
	return nil
}
