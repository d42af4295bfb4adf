package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/project"
)

const (
	schemaFile        = "../../docs/olmkit.schema.json"
	configurationPage = "../../docs/configuration.md"
)

// leaves are the commands that can be run, by what follows olmkit.
func leaves(t *testing.T) map[string]*cobra.Command {
	t.Helper()
	found := map[string]*cobra.Command{}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if !c.HasSubCommands() {
			found[commandName(c)] = c
		}
	}
	walk(newRoot(&session{}))
	return found
}

// projectSchema is the JSON schema of olmkit.yaml.
func projectSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.For[project.Settings](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {}}})
	if err != nil {
		t.Fatal(err)
	}
	schema.Schema = "https://json-schema.org/draft/2020-12/schema"
	schema.Title = "olmkit.yaml"
	for _, property := range schema.Properties {
		if property.Items != nil {
			property.Type, property.Types = "array", nil
		}
	}
	for _, k := range clusterKinds {
		schema.Properties["cluster"].Enum = append(schema.Properties["cluster"].Enum, k.name)
	}
	flags := schema.Properties["flags"]
	flags.Properties, flags.AdditionalProperties, flags.Type, flags.Types = map[string]*jsonschema.Schema{}, &jsonschema.Schema{Not: &jsonschema.Schema{}}, "object", nil
	for name, c := range leaves(t) {
		command := &jsonschema.Schema{Type: "object", Description: c.Short, Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
		for _, flag := range flagNames(c) {
			command.Properties[flag] = flagSchema(c.Flag(flag))
		}
		flags.Properties[name] = command
	}
	return schema
}

func flagSchema(f *pflag.Flag) *jsonschema.Schema {
	_, usage := pflag.UnquoteUsage(f)
	scalar := []string{"string", "number", "boolean"}
	if _, list := f.Value.(pflag.SliceValue); list {
		return &jsonschema.Schema{Description: usage, Types: append(scalar, "array"), Items: &jsonschema.Schema{Types: scalar}}
	}
	switch f.Value.Type() {
	case "bool":
		return &jsonschema.Schema{Description: usage, Type: "boolean"}
	case "int", "int64":
		return &jsonschema.Schema{Description: usage, Type: "integer"}
	}
	return &jsonschema.Schema{Description: usage, Types: scalar}
}

// TestDocsConfiguration holds the JSON schema and the table of keys in docs/configuration.md to the settings.
func TestDocsConfiguration(t *testing.T) {
	schema := projectSchema(t)
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(configurationPage)
	if err != nil {
		t.Fatal(err)
	}
	const head = "| key | sets | meaning |\n|---|---|---|\n"
	prose, _, found := strings.Cut(string(page), head)
	if !found {
		t.Fatalf("%s has no table of keys", configurationPage)
	}
	var rows strings.Builder
	for _, key := range schema.PropertyOrder {
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", key, strings.Join(sets(key), ", "), schema.Properties[key].Description)
	}
	for file, want := range map[string]string{schemaFile: string(text) + "\n", configurationPage: prose + head + rows.String()} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not up to date (%v): run 'make generate'", file, err)
		}
	}
}

// sets are the arguments and flags that a key of olmkit.yaml sets.
func sets(key string) []string {
	var all []string
	if key == "catalog" {
		for _, c := range catalogCommands {
			all = append(all, "`"+c+" CATALOG`")
		}
	}
	for _, o := range settings {
		if o.key == key {
			for _, c := range o.commands {
				all = append(all, "`"+c+" --"+o.flag+"`")
			}
		}
	}
	if key == "flags" {
		all = append(all, "what it names")
	}
	return all
}

// TestSettings: each key but flags sets flags that there are, of commands that there are.
func TestSettings(t *testing.T) {
	commands := leaves(t)
	keys := map[string]bool{"flags": true}
	for _, o := range settings {
		keys[o.key] = true
		for _, name := range o.commands {
			if c := commands[name]; c == nil || c.Flag(o.flag) == nil {
				t.Errorf("key %s sets --%s of olmkit %s, which there is not", o.key, o.flag, name)
			}
		}
	}
	for _, name := range catalogCommands {
		if commands[name] == nil {
			t.Errorf("there is no olmkit %s", name)
		}
	}
	for i, settings := 0, reflect.TypeFor[project.Settings](); i < settings.NumField(); i++ {
		if key, _, _ := strings.Cut(settings.Field(i).Tag.Get("json"), ","); !keys[key] {
			t.Errorf("key %s sets nothing", key)
		}
	}
}

// ofFiles is what the usage of a flag says that takes a path, and notPaths are flags that say so and take none.
var (
	ofFiles  = regexp.MustCompile(`\b(file|FILE|archive|directory|folder|OCI layout)\b`)
	notPaths = []string{"bundle generate package"}
)

// TestPathFlags: of each flag that takes a path it is known, so that the path is taken relative to olmkit.yaml.
func TestPathFlags(t *testing.T) {
	for name, c := range leaves(t) {
		for _, flag := range flagNames(c) {
			_, listed := pathFlags[flag]
			_, own := pathFlags[name+" "+flag]
			if ofFiles.MatchString(c.Flag(flag).Usage) && !listed && !own && !slices.Contains(notPaths, name+" "+flag) {
				t.Errorf("olmkit %s --%s: %s: it is not said where its path stands", name, flag, c.Flag(flag).Usage)
			}
		}
	}
}

// TestConfigurationSchema: the schema and the reader accept and refuse the same files.
func TestConfigurationSchema(t *testing.T) {
	page, err := os.ReadFile(configurationPage)
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	schema, err := projectSchema(t).Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		text string
		ok   bool
	}{
		"the page's example": {example, true},
		"an empty mapping":   {"{}", true},
		"an unknown key":     {"sample: [a.yaml]", false},
		"a list for a text":  {"package: [tea]", false},
		"a text for a list":  {"images: tea=bin/tea", false},
		"a number":           {"settle: 2", false},
		"an unknown command": {"flags: {upgrade tset: {}}", false},
		"an unknown flag":    {"flags: {upgrade test: {timeuot: 10m}}", false},
		"a mapping":          {"flags: {upgrade test: {timeout: {a: b}}}", false},
		"nothing":            {"flags: {upgrade test: {timeout: null}}", false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), project.FileName)
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			documents, err := document.Parse(file, []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			var value any
			if err := json.Unmarshal(documents[0].JSON, &value); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); (err == nil) != test.ok {
				t.Errorf("by the schema: %v", err)
			}
			read, err := project.Read(file)
			if err == nil {
				err = checkFlags(newRoot(&session{}), read)
			}
			if (err == nil) != test.ok {
				t.Errorf("as it is read: %v", err)
			}
		})
	}
}
