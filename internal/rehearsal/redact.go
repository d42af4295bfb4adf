package rehearsal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/definition"
)

// Redact replaces the names of objects and namespaces, but for the operator's own, and all strings that objects say: each word by
// another of the same shape, the same word by the same one everywhere, so that patterns hold and references lead where they led. What
// replaces what is not kept. Numbers, times, what schemas name (enums, defaults) and keys stay. An object of which a redacted value
// would not match its pattern is left out, which the notes say.
func (s *Snapshot) Redact() {
	r := newRedactor(s)
	left := map[string]int{}
	objects := s.Objects[:0]
	for _, o := range s.Objects {
		if field := r.object(o, schemaOf(s.Definitions, o)); field != "" {
			left[o.GetKind()+": "+field]++
			continue
		}
		objects = append(objects, o)
	}
	s.Objects, s.Redacted = objects, true
	for i, n := range s.Installed.Targets {
		s.Installed.Targets[i] = r.text(n)
	}
	for _, what := range slices.Sorted(maps.Keys(left)) {
		s.note("%d objects are left out, since a redacted value would not match the pattern of the field: %s", left[what], what)
	}
	s.note("names and string values are redacted")
}

// redactor replaces words.
type redactor struct {
	key    []byte
	keep   map[string]bool   // words that stay
	to     map[string]string // by word
	used   map[string]bool   // replacements
	fields map[string]bool   // keys whose values stay
}

// plain are words that say nothing of who wrote them.
var plain = []string{"", "true", "false", "True", "False", "Unknown", "default", "latest", "svc", "cluster", "local", "http", "https", "com", "org", "io", "sha256"}

// apiFields are keys whose values are Kubernetes' or the operator's words.
var apiFields = []string{"apiVersion", "kind", "apiGroup", "type", "reason", "status", "phase", "protocol", "operator", "effect"}

func newRedactor(s *Snapshot) *redactor {
	r := &redactor{key: make([]byte, 32), keep: map[string]bool{}, to: map[string]string{}, used: map[string]bool{}, fields: map[string]bool{}}
	_, _ = rand.Read(r.key) // it never fails
	for _, w := range append(slices.Clone(plain), s.Installed.Namespace) {
		r.keep[w] = true
	}
	for _, f := range apiFields {
		r.fields[f] = true
	}
	for _, d := range s.Definitions {
		for _, v := range d.Spec.Versions {
			if v.Schema != nil {
				r.keepNamed(v.Schema.OpenAPIV3Schema)
			}
		}
	}
	return r
}

// keepNamed keeps the values that schema names.
func (r *redactor) keepNamed(schema *apiextensionsv1.JSONSchemaProps) {
	if schema == nil {
		return
	}
	named := slices.Clone(schema.Enum)
	if schema.Default != nil {
		named = append(named, *schema.Default)
	}
	for _, raw := range named {
		var value any
		if json.Unmarshal(raw.Raw, &value) == nil {
			r.keepIn(value)
		}
	}
	for _, p := range schema.Properties {
		r.keepNamed(&p)
	}
	if schema.Items != nil {
		r.keepNamed(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil {
		r.keepNamed(schema.AdditionalProperties.Schema)
	}
	for _, list := range [][]apiextensionsv1.JSONSchemaProps{schema.AllOf, schema.AnyOf, schema.OneOf} {
		for i := range list {
			r.keepNamed(&list[i])
		}
	}
}

func (r *redactor) keepIn(value any) {
	switch v := value.(type) {
	case string:
		for _, w := range words.FindAllString(v, -1) {
			r.keep[w] = true
		}
	case []any:
		for _, item := range v {
			r.keepIn(item)
		}
	case map[string]any:
		for _, item := range v {
			r.keepIn(item)
		}
	}
}

// object redacts o, of which schema is the whole. It returns a field whose redacted value does not match its pattern, or "".
func (r *redactor) object(o *unstructured.Unstructured, schema *apiextensionsv1.JSONSchemaProps) string {
	o.SetName(r.text(o.GetName()))
	o.SetNamespace(r.text(o.GetNamespace()))
	for _, all := range []struct {
		get func() map[string]string
		set func(map[string]string)
	}{{o.GetLabels, o.SetLabels}, {o.GetAnnotations, o.SetAnnotations}} {
		if values := all.get(); len(values) > 0 {
			for k, v := range values {
				values[k] = r.text(v)
			}
			all.set(values)
		}
	}
	for key, value := range o.Object {
		if key == "apiVersion" || key == "kind" || key == "metadata" {
			continue
		}
		redacted, wrong := r.value(value, key, key, property(schema, key))
		if wrong != "" {
			return wrong
		}
		o.Object[key] = redacted
	}
	return ""
}

// value redacts what stands at a path, under key. It returns the path of a value that would not match its pattern, or "".
func (r *redactor) value(value any, at, key string, schema *apiextensionsv1.JSONSchemaProps) (any, string) {
	switch v := value.(type) {
	case string:
		if r.fields[key] {
			return v, ""
		}
		text := r.text(v)
		if schema != nil && schema.Pattern != "" && text != v {
			if p, err := regexp.Compile(schema.Pattern); err != nil || !p.MatchString(text) {
				return nil, at
			}
		}
		return text, ""
	case []any:
		for i := range v {
			redacted, wrong := r.value(v[i], at+"[]", "", items(schema))
			if wrong != "" {
				return nil, wrong
			}
			v[i] = redacted
		}
	case map[string]any:
		for k := range v {
			redacted, wrong := r.value(v[k], at+"."+k, k, property(schema, k))
			if wrong != "" {
				return nil, wrong
			}
			v[k] = redacted
		}
	}
	return value, ""
}

// words are what is replaced as a whole; number is what is no word.
var (
	words  = regexp.MustCompile(`[\pL\pN_-]+`)
	number = regexp.MustCompile(`^-?[0-9][0-9_-]*[A-Za-z]{0,2}$`)
)

// text redacts a text word by word. JSON, as annotations have it, is redacted inside.
func (r *redactor) text(text string) string {
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		var value any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		err := d.Decode(&value)
		if _, more := d.Token(); err == nil && errors.Is(more, io.EOF) { // nothing follows
			redacted, _ := r.value(value, "", "", nil)
			if data, err := json.Marshal(redacted); err == nil {
				return string(data)
			}
		}
	}
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		return text
	}
	if _, err := time.ParseDuration(text); err == nil {
		return text
	}
	if address, err := netip.ParseAddr(text); err == nil {
		return r.address(address)
	}
	return words.ReplaceAllStringFunc(text, r.word)
}

// address replaces one by another of those that are set aside for tests and documentation.
func (r *redactor) address(a netip.Addr) string {
	bits := r.bits(a.String(), 0)
	if a.Is4() {
		return netip.AddrFrom4([4]byte{198, 18 + bits[0]%2, bits[1], bits[2]}).String()
	}
	to := netip.MustParseAddr("2001:db8::").As16()
	copy(to[8:], bits[:8])
	return netip.AddrFrom16(to).String()
}

// bits are random, and the same for the same word and try.
func (r *redactor) bits(word string, try int) []byte {
	h := hmac.New(sha256.New, r.key)
	_, _ = fmt.Fprintf(h, "%d %s", try, word)
	return h.Sum(nil)
}

// word returns what replaces a word, nothing else than which it replaces.
func (r *redactor) word(word string) string {
	if r.keep[word] || number.MatchString(word) {
		return word
	}
	if known, ok := r.to[word]; ok {
		return known
	}
	const tries = 100
	to := ""
	for try := range tries {
		to = r.shaped(word, try)
		if !r.used[to] && !r.keep[to] {
			break
		}
	}
	for r.used[to] {
		to += "x" // there are no more words so short
	}
	r.to[word], r.used[to] = to, true
	return to
}

// hexadecimal are digests, UUIDs and the like.
var hexadecimal = regexp.MustCompile(`^[0-9a-f-]{8,}$`)

// shaped returns a word with a letter for each letter, a digit for each digit, and all else as it is.
func (r *redactor) shaped(word string, try int) string {
	letters := uint32(26)
	if hexadecimal.MatchString(word) {
		letters = 6
	}
	var out strings.Builder
	bits := r.bits(word, try)
	for i, c := range word {
		if i%8 == 0 && i > 0 {
			bits = r.bits(fmt.Sprintf("%s %d", word, i), try)
		}
		n := binary.BigEndian.Uint32(bits[i%8*4:][:4])
		switch {
		case c >= 'a' && c <= 'z':
			out.WriteByte(byte('a' + n%letters))
		case c >= 'A' && c <= 'Z':
			out.WriteByte(byte('A' + n%26))
		case c >= '0' && c <= '9':
			out.WriteByte(byte('1' + n%9))
		case c == '-' || c == '_':
			out.WriteRune(c)
		default:
			out.WriteByte(byte('a' + n%26))
		}
	}
	return out.String()
}

func schemaOf(definitions []*apiextensionsv1.CustomResourceDefinition, o *unstructured.Unstructured) *apiextensionsv1.JSONSchemaProps {
	kind := o.GroupVersionKind()
	for _, d := range definitions {
		if d.Spec.Group == kind.Group && d.Spec.Names.Kind == kind.Kind {
			return definition.Schema(d, kind.Version)
		}
	}
	return nil
}

func property(schema *apiextensionsv1.JSONSchemaProps, key string) *apiextensionsv1.JSONSchemaProps {
	if schema == nil {
		return nil
	}
	if p, ok := schema.Properties[key]; ok {
		return &p
	}
	if schema.AdditionalProperties != nil {
		return schema.AdditionalProperties.Schema
	}
	return nil
}

func items(schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if schema == nil || schema.Items == nil {
		return nil
	}
	return schema.Items.Schema
}
