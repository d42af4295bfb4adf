package walk

import (
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestTexts: a text of which the name tells what it says is changed to another one, a version at the end; nothing where a few words are to choose from, or no other one is known.
func TestTexts(t *testing.T) {
	var schema apiextensionsv1.JSONSchemaProps
	if err := yaml.Unmarshal([]byte(`{properties: {spec: {properties: {
		version: {type: string}, channel: {type: string}, serverVersion: {type: string}, mode: {type: object, properties: {version: {type: string, enum: ["1", "2"]}}}, versionOf: {type: string},
		banner: {type: string}, logLevel: {type: string}, log: {type: object, properties: {level: {type: string}}}, level: {type: string}, message: {type: string}}}}}`), &schema); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range texts(&schema, map[string]any{"spec": map[string]any{
		"version": "16", "channel": "1", "serverVersion": "latest", "mode": map[string]any{"version": "1"}, "versionOf": "1", "banner": "hello", "logLevel": "info", "log": map[string]any{"level": "WARN"}, "level": "high", "message": "",
	}}) {
		got = append(got, string(s.There)+" "+string(s.Back))
	}
	want := []string{
		`{"spec":{"banner":"hello tried"}} {"spec":{"banner":"hello"}}`, `{"spec":{"log":{"level":"DEBUG"}}} {"spec":{"log":{"level":"WARN"}}}`,
		`{"spec":{"logLevel":"debug"}} {"spec":{"logLevel":"info"}}`, `{"spec":{"version":"17"}} {"spec":{"version":"16"}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for value, want := range map[string]string{"1.6.39": "1.6.40", "v15.9": "v15.10", "16": "17", "1.2.3-rc.1": "1.2.3-rc.1", "latest": "latest", "": ""} {
		if got := otherVersion(value); got != want {
			t.Errorf("of the version %s: %s, want %s", value, got, want)
		}
	}
	for value, want := range map[string]string{"info": "debug", "INFO": "DEBUG", "Warn": "Debug", "debug": "info", "DEBUG": "INFO", "2": "3"} {
		if got := otherLevel(value); got != want {
			t.Errorf("of the level %s: %s, want %s", value, got, want)
		}
	}
}
