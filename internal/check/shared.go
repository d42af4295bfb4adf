package check

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmkit/olmkit/internal/document"
)

// maxSchemas is how many schemas are remembered, nested ones included: what the releases of some large operators have.
const maxSchemas = 100_000

// schemaReader reads the schemas of CustomResourceDefinitions. Those that are written alike are one schema wherever they stand,
// also deep within others: of what the releases of an operator define, nearly everything. So it is read, compared and
// validated once, and takes memory once. Nobody may change what it returns. The zero schemaReader is ready.
type schemaReader struct {
	// described keeps what schemas say of fields to people. Otherwise those that differ in nothing else are one: between
	// releases descriptions change all over, and no check asks for them.
	described bool

	mu     sync.Mutex
	known  map[string]*sharedSchema
	count  uint64
	frames []*frame // by depth, to be used again
}

// sharedSchema is one that was read.
type sharedSchema struct {
	apiextensionsv1.JSONSchemaProps
	id     uint64
	inner  []inner // what of properties, items and additionalProperties is a schema
	rules  bool    // there are CEL rules, here or within
	proven bool    // whether fits says something
	fits   bool    // the API server's validation has nothing against it, leaving out CEL rules
}

// inner is a schema within another one.
type inner struct {
	property string // "" for that of items or additionalProperties
	*sharedSchema
}

// frame is a schema that is being read.
type frame struct {
	own        []byte // its text without the schemas within
	properties []property
	named      bool // it has properties, be they none
	items      *sharedSchema
	additional *sharedSchema
}

type property struct {
	name []byte // in quotes
	*sharedSchema
}

// crd reads a CustomResourceDefinition of an API version that isCRD knows, nil where that fails.
func (s *schemaReader) crd(apiVersion string, manifest []byte) *crd {
	v1beta1 := apiVersion == crdV1beta1
	if v1beta1 {
		if manifest = toV1(manifest); manifest == nil {
			return nil
		}
	}
	c := s.parse(manifest)
	if c != nil {
		c.v1beta1 = v1beta1
		c.spec = sha256.Sum256(strconv.AppendBool(c.spec[:], v1beta1))
	}
	return c
}

// parse reads a CustomResourceDefinition of v1 as json.Unmarshal does, nil where that fails, with the schemas of its
// versions; those are nil where the text is too strange for them to be told apart.
func (s *schemaReader) parse(manifest []byte) *crd {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &apiextensionsv1.CustomResourceDefinition{}
	rest, versions, ok := s.cut(manifest)
	if ok && json.Unmarshal(rest, c) == nil {
		for i, v := range versions {
			if v != nil {
				c.Spec.Versions[i].Schema.OpenAPIV3Schema = &v.JSONSchemaProps
			}
		}
		return &crd{CustomResourceDefinition: c, schemas: versions, reader: s, spec: specOf(rest, versions)}
	}
	c = &apiextensionsv1.CustomResourceDefinition{}
	if json.Unmarshal(manifest, c) != nil {
		return nil
	}
	return &crd{CustomResourceDefinition: c, schemas: make([]*sharedSchema, len(c.Spec.Versions)), reader: s, spec: specOf(manifest, nil)}
}

// specOf returns the digest of the spec of a CRD, its schemas among those that one reader read, and of the annotation by which
// its group is approved.
func specOf(manifest []byte, schemas []*sharedSchema) [sha256.Size]byte {
	var o struct {
		Metadata struct {
			Annotations struct {
				Approved string `json:"api-approved.kubernetes.io"`
			} `json:"annotations"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec"`
	}
	if document.Decode(manifest, &o) != nil {
		return sha256.Sum256(manifest)
	}
	text := append([]byte(o.Metadata.Annotations.Approved+"\x00"), o.Spec...)
	for _, schema := range schemas {
		id := uint64(0)
		if schema != nil {
			id = schema.id
		}
		text = binary.BigEndian.AppendUint64(text, id)
	}
	return sha256.Sum256(text)
}

// cut returns the manifest with null for the schema of each version, and the schemas.
func (s *schemaReader) cut(manifest []byte) (rest []byte, versions []*sharedSchema, ok bool) {
	from := 0
	version := func(at int) int {
		versions = append(versions, nil)
		return member(manifest, at, "schema", func(at int) int {
			return member(manifest, at, "openAPIV3Schema", func(at int) int {
				read, end := s.read(manifest, at, 0, s.described)
				if end >= 0 {
					versions[len(versions)-1] = read
					rest = append(append(rest, manifest[from:at]...), "null"...)
					from = end
				}
				return end
			})
		})
	}
	end := member(manifest, 0, "spec", func(at int) int {
		return member(manifest, at, "versions", func(at int) int { return document.Items(manifest, at, version) })
	})
	return append(rest, manifest[from:]...), versions, end >= 0
}

// member is document.Members for who wants one member only, which must not stand there twice, or in another spelling that
// encoding/json takes for it.
func member(data []byte, i int, name string, value func(at int) int) int {
	seen := false
	return document.Members(data, i, func(key []byte, at int) int {
		switch bare := string(key[1 : len(key)-1]); {
		case bare == name && !seen:
			seen = true
			return value(at)
		case strings.EqualFold(bare, name) || strings.Contains(bare, `\`):
			return -1
		}
		return document.Skip(data, at)
	})
}

// read returns the schema at data[i] and its end, or -1 where it is for encoding/json to say what it means.
func (s *schemaReader) read(data []byte, i, depth int, described bool) (*sharedSchema, int) {
	if depth == len(s.frames) {
		s.frames = append(s.frames, &frame{})
	}
	f := s.frames[depth]
	*f = frame{own: append(f.own[:0], '{'), properties: f.properties[:0]}
	within := func(into **sharedSchema, at int) (end int) {
		*into, end = s.read(data, at, depth+1, s.described)
		return end
	}
	end := document.Members(data, i, func(key []byte, at int) int {
		isObject := at < len(data) && data[at] == '{'
		switch string(key) {
		case `"properties"`:
			if !isObject || f.named {
				return -1
			}
			f.named = true
			return s.readProperties(f, data, at, depth)
		case `"items"`:
			if !isObject || f.items != nil {
				return -1
			}
			return within(&f.items, at)
		case `"additionalProperties"`:
			if f.additional != nil {
				return -1
			}
			if isObject {
				return within(&f.additional, at)
			}
		case `"description"`:
			if !described && at < len(data) && data[at] == '"' {
				return document.Skip(data, at)
			}
		}
		end := document.Skip(data, at)
		if end < 0 || unusual(string(key)) {
			return -1
		}
		if len(f.own) > 1 {
			f.own = append(f.own, ',')
		}
		f.own = append(append(append(f.own, key...), ':'), data[at:end]...)
		return end
	})
	if end < 0 {
		return nil, -1
	}
	f.own = append(f.own, '}')
	read := s.unite(f)
	if read == nil {
		return nil, -1
	}
	return read, end
}

// unusual reports whether a key is escaped, or is one that schemas are read by but for the case of its letters.
func unusual(key string) bool {
	for _, special := range []string{`"properties"`, `"items"`, `"additionalProperties"`} {
		if key != special && strings.EqualFold(key, special) {
			return true
		}
	}
	return strings.IndexByte(key, '\\') >= 0
}

// readProperties reads the properties at data[at] into f, and returns where they end, or -1.
func (s *schemaReader) readProperties(f *frame, data []byte, at, depth int) int {
	return document.Members(data, at, func(key []byte, at int) int {
		// The API server refuses a described metadata.
		read, end := s.read(data, at, depth+1, s.described || string(key) == `"metadata"`)
		f.properties = append(f.properties, property{name: key, sharedSchema: read})
		return end
	})
}

// unite returns the schema that f is, or nil if it is none.
func (s *schemaReader) unite(f *frame) *sharedSchema {
	// What is written alike has the same key: JSON knows no byte 0.
	own := len(f.own)
	key := f.own
	add := func(name string, inner *sharedSchema) {
		if inner != nil {
			key = binary.BigEndian.AppendUint64(append(append(key, name...), 0), inner.id)
		}
	}
	add("items", f.items)
	add("additional", f.additional)
	if f.named {
		key = append(key, 0)
		for _, p := range f.properties {
			add(string(p.name), p.sharedSchema)
		}
	}
	f.own = key // with what it grew by
	if known := s.known[string(key)]; known != nil {
		return known
	}
	made := &sharedSchema{}
	if json.Unmarshal(key[:own], &made.JSONSchemaProps) != nil {
		return nil
	}
	if !made.include(f) {
		return nil
	}
	made.rules = made.rules || len(made.XValidations) > 0
	s.count++
	made.id = s.count
	if s.known == nil || len(s.known) >= maxSchemas {
		s.known = map[string]*sharedSchema{}
	}
	s.known[string(key)] = made
	return made
}

// include puts the schemas within f into made.
func (made *sharedSchema) include(f *frame) bool {
	within := func(property string, s *sharedSchema) {
		made.inner = append(made.inner, inner{property, s})
		made.rules = made.rules || s.rules
	}
	if f.items != nil {
		made.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &f.items.JSONSchemaProps}
		within("", f.items)
	}
	if f.additional != nil {
		made.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &f.additional.JSONSchemaProps}
		within("", f.additional)
	}
	if f.named {
		made.Properties = make(map[string]apiextensionsv1.JSONSchemaProps, len(f.properties))
	}
	for _, p := range f.properties {
		name := string(p.name[1 : len(p.name)-1])
		if strings.Contains(name, `\`) || !utf8.ValidString(name) {
			if json.Unmarshal(p.name, &name) != nil {
				return false
			}
		}
		made.Properties[name] = p.JSONSchemaProps
		within(name, p.sharedSchema)
	}
	return true
}

// isSound reports whether the API server's validation of CustomResourceDefinitions has nothing against the schema as that
// of a field. It is false of those with CEL rules, which that validation judges by what stands around them.
func (s *schemaReader) isSound(top *sharedSchema) bool { return !top.rules && s.fits(top) }

// fits is isSound but for CEL rules. The API server's validation looks at each level for itself and a level below
// (apiextensions-apiserver v0.36.3, pkg/apis/apiextensions/validation, pkg/apiserver/schema and its defaulting): what holds of a schema
// within this one is asked once for all.
func (s *schemaReader) fits(top *sharedSchema) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var unproven []*sharedSchema
	var visit func(*sharedSchema)
	visit = func(one *sharedSchema) {
		if one.proven {
			return
		}
		one.proven = true
		for _, i := range one.inner {
			visit(i.sharedSchema)
		}
		unproven = append(unproven, one)
	}
	visit(top)
	asked := slices.DeleteFunc(slices.Clone(unproven), (*sharedSchema).ordinary)
	together := len(asked) > 0 && accepted(asked...)
	for _, one := range unproven {
		one.fits = (one.ordinary() || together || accepted(one)) && !slices.ContainsFunc(one.inner, func(i inner) bool { return !i.fits })
	}
	return top.fits
}

// ordinary reports whether the schema, whatever those within it are, is one that needs no asking: a type with nothing but limits, an array
// with its items, or an object with its properties or additional ones. Most are.
func (one *sharedSchema) ordinary() bool {
	s := one.JSONSchemaProps
	fields, items, others := len(s.Properties) > 0, s.Items != nil && s.Items.Schema != nil, s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil
	switch s.Type {
	case "string", "integer", "number", "boolean":
		if fields || items || others {
			return false
		}
	case "array":
		if !items || fields || others {
			return false
		}
		s.Items = nil
	case "object":
		if items || fields && others {
			return false
		}
		if s.Properties = nil; others {
			s.AdditionalProperties = nil
		}
	default:
		return false
	}
	s.Type, s.Format, s.Required, s.Nullable, s.Description = "", "", nil, false, ""
	s.Minimum, s.Maximum, s.MinLength, s.MaxLength, s.MinItems, s.MaxItems = nil, nil, nil, nil, nil, nil
	return reflect.DeepEqual(s, apiextensionsv1.JSONSchemaProps{})
}

// accepted asks the API server's validation about schemas as those of fields, leaving out what is within them.
func accepted(list ...*sharedSchema) bool {
	fields := make(map[string]apiextensionsv1.JSONSchemaProps, len(list))
	for i, one := range list {
		fields[fmt.Sprintf("field%d", i)] = one.shallow()
	}
	c := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields}},
			}},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}},
	}
	converted, err := internal(c)
	return err == nil && len(crdvalidation.ValidateCustomResourceDefinition(context.Background(), converted)) == 0
}

// shallow returns the schema with a stub for each one within, or all of it where those matter to its own validation; without its CEL
// rules.
func (one *sharedSchema) shallow() apiextensionsv1.JSONSchemaProps {
	out := one.JSONSchemaProps
	out.XValidations = nil
	if looksWithin(&out) {
		return out
	}
	if len(out.Properties) > 0 {
		out.Properties = make(map[string]apiextensionsv1.JSONSchemaProps, len(out.Properties))
	}
	for _, i := range one.inner {
		stub := i.stub()
		switch {
		case i.property != "":
			out.Properties[i.property] = stub
		case out.Items != nil && &i.JSONSchemaProps == out.Items.Schema:
			out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &stub}
		default:
			out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &stub}
		}
	}
	return out
}

// stub stands for a sound schema: equal stubs stand for equal schemas.
func (one *sharedSchema) stub() apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", Description: strconv.FormatUint(one.id, 10)}
}

// looksWithin reports whether to validate the schema is to look at more of those within it than that they are there.
func looksWithin(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.Default != nil || s.XEmbeddedResource || s.XListType != nil || len(s.XListMapKeys) > 0 || len(s.XValidations) > 0 ||
		len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 || s.Not != nil ||
		s.PatternProperties != nil || s.Dependencies != nil || s.Definitions != nil || s.AdditionalItems != nil || s.Ref != nil
}

// outline returns the definition with stubs for the fields of its schemas that are sound, so that what is wrong with it is
// wrong with its outline.
func (c *crd) outline() *apiextensionsv1.CustomResourceDefinition {
	out := *c.CustomResourceDefinition
	out.Spec.Versions = slices.Clone(out.Spec.Versions)
	for i := range out.Spec.Versions {
		v, root := &out.Spec.Versions[i], c.schemas[i]
		if root == nil || looksWithin(&root.JSONSchemaProps) || len(v.SelectableFields) > 0 {
			continue
		}
		top := c.reader.outline(root, "apiVersion", "kind", "metadata") // what is special about them is seen from the root
		v.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &top}
	}
	return &out
}

// outline returns a schema, in which validation looks at no more of those within it than that they are there, with stubs for its fields
// that are sound, but for those of some names. Of a field with CEL rules it returns the outline, if it has none itself: the cost of rules
// depends on how large the items of the lists and maps around them are, and not on the fields beside those.
func (s *schemaReader) outline(one *sharedSchema, kept ...string) apiextensionsv1.JSONSchemaProps {
	out := one.JSONSchemaProps
	out.Properties = maps.Clone(out.Properties)
	for _, field := range one.inner {
		switch {
		case field.property == "" || slices.Contains(kept, field.property):
		case field.rules && !looksWithin(&field.JSONSchemaProps):
			out.Properties[field.property] = s.outline(field.sharedSchema)
		case s.isSound(field.sharedSchema):
			out.Properties[field.property] = field.stub()
		}
	}
	return out
}

// schemaFor returns the schema of a version, or what of it an object can have to do with.
func (c *crd) schemaFor(object any, version int) *apiextensionsv1.JSONSchemaProps {
	whole := c.schema(version)
	if read := c.schemas[version]; read == nil || !c.reader.fits(read) {
		return whole // where something is wrong with it, the whole of it is refused
	}
	part := concerning(whole, object)
	return &part
}

// saysSame reports whether two versions say the same of an object, as far as that is quickly known.
func (c *crd) saysSame(version int, other *crd, otherVersion int, raw json.RawMessage) bool {
	a, b := c.schemas[version], other.schemas[otherVersion]
	var object any
	if a == nil || b == nil || !c.reader.fits(a) || !other.reader.fits(b) || json.Unmarshal(raw, &object) != nil {
		return false
	}
	return reflect.DeepEqual(concerning(&a.JSONSchemaProps, object), concerning(&b.JSONSchemaProps, object))
}

// concerning returns what of a schema values, and the defaults that they get by it, have to do with.
func concerning(schema *apiextensionsv1.JSONSchemaProps, values ...any) apiextensionsv1.JSONSchemaProps {
	fields := map[string][]any{}
	var items, others []any
	for _, v := range values {
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				if _, known := schema.Properties[name]; known {
					fields[name] = append(fields[name], value)
				} else {
					others = append(others, value)
				}
			}
		case []any:
			items = append(items, v...)
		}
	}
	part := *schema
	if schema.Properties != nil {
		part.Properties = make(map[string]apiextensionsv1.JSONSchemaProps, len(fields))
	}
	within := func(inner *apiextensionsv1.JSONSchemaProps, values []any) *apiextensionsv1.JSONSchemaProps {
		if inner == nil || inner.Default != nil {
			return inner
		}
		part := concerning(inner, values...)
		return &part
	}
	for name, inner := range schema.Properties {
		if values := fields[name]; len(values) > 0 || inner.Default != nil {
			part.Properties[name] = *within(&inner, values)
		}
	}
	if schema.Items != nil {
		part.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: within(schema.Items.Schema, items), JSONSchemas: schema.Items.JSONSchemas}
	}
	if extra := schema.AdditionalProperties; extra != nil {
		part.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: extra.Allows, Schema: within(extra.Schema, others)}
	}
	return part
}
