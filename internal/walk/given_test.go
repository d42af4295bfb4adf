package walk

import (
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestGiven: what an object leaves out is given a value that does no harm, by the shape and the name of the field; nothing where none is known.
func TestGiven(t *testing.T) {
	for field, want := range map[string]string{
		// Numbers.
		`replicas: {type: integer}`:                       `{"replicas":2}`,
		`depth: {type: integer}`:                          `{"depth":7}`,
		`depth: {type: integer, minimum: 30}`:             `{"depth":30}`,
		`depth: {type: integer, maximum: 5}`:              `{"depth":5}`,
		`depth: {type: integer, maximum: 0}`:              ``,
		`port: {type: integer}`:                           ``,
		`targetCPUUtilizationPercentage: {type: integer}`: ``,
		`paused: {type: integer}`:                         ``,
		`depth: {x-kubernetes-int-or-string: true}`:       ``,
		// Texts.
		`backupSchedule: {type: string}`:          `{"backupSchedule":"17 3 * * *"}`,
		`host: {type: string}`:                    `{"host":"tried.example.com"}`,
		`logLevel: {type: string}`:                `{"logLevel":"debug"}`,
		`level: {type: string}`:                   ``,
		`every: {type: string, format: duration}`: `{"every":"7m"}`,
		`pollInterval: {type: string}`:            `{"pollInterval":"7m"}`,
		`banner: {type: string}`:                  `{"banner":"tried"}`,
		`secretName: {type: string}`:              ``,
		`image: {type: string}`:                   ``,
		// Maps and lists.
		`podLabels: {type: object, additionalProperties: {type: string}}`:                                                                        `{"podLabels":{"olmkit.dev/tried":"tried"}}`,
		`annotations: {type: object, additionalProperties: {type: string}}`:                                                                      `{"annotations":{"olmkit.dev/tried":"tried"}}`,
		`env: {type: object, additionalProperties: {type: string}}`:                                                                              `{"env":{"OLMKIT_TRIED":"tried"}}`,
		`settings: {type: object, additionalProperties: {type: string}}`:                                                                         `{"settings":{"tried":"tried"}}`,
		`nodeSelector: {type: object, additionalProperties: {type: string}}`:                                                                     `{"nodeSelector":{"kubernetes.io/os":"linux"}}`,
		`podSelector: {type: object, additionalProperties: {type: string}}`:                                                                      ``,
		`limits: {type: object, additionalProperties: {type: integer}}`:                                                                          ``,
		`dnsNames: {type: array, items: {type: string}}`:                                                                                         `{"dnsNames":["tried.example.com"]}`,
		`args: {type: array, items: {type: string}}`:                                                                                             ``,
		`extraEnv: {type: array, items: {type: object, properties: {name: {type: string}, value: {type: string}}}}`:                              `{"extraEnv":[{"name":"OLMKIT_TRIED","value":"tried"}]}`,
		`tolerations: {type: array, items: {type: object, properties: {key: {type: string}, operator: {type: string}, effect: {type: string}}}}`: `{"tolerations":[{"effect":"NoSchedule","key":"olmkit.dev/tried","operator":"Exists"}]}`,
		`imagePullSecrets: {type: array, items: {type: object, properties: {name: {type: string}}}}`:                                             `{"imagePullSecrets":[{"name":"olmkit-tried"}]}`,
		`users: {type: array, items: {type: object, properties: {name: {type: string}}}}`:                                                        ``,
		// Parts.
		`resources: {type: object, properties: {requests: {type: object, additionalProperties: {x-kubernetes-int-or-string: true}}}}`:                                                      `{"resources":{"requests":{"cpu":"17m","memory":"37Mi"}}}`,
		`metrics: {type: object, properties: {enabled: {type: boolean}, port: {type: integer}, interval: {type: string}}}`:                                                                 `{"metrics":{"enabled":true}}`,
		`metrics: {type: object, required: [interval], properties: {enabled: {type: boolean, default: false}, interval: {type: string}}}`:                                                  `{"metrics":{"enabled":true,"interval":"7m"}}`,
		`metrics: {type: object, required: [user], properties: {enabled: {type: boolean}, user: {type: string}}}`:                                                                          ``,
		`autoscaling: {type: object, required: [maxReplicas], properties: {maxReplicas: {type: integer}, minReplicas: {type: integer}, percent: {type: integer}, quick: {type: boolean}}}`: `{"autoscaling":{"maxReplicas":2,"minReplicas":2}}`,
		`log: {type: object, properties: {level: {type: string}}}`:                                                                                                                         `{"log":{"level":"debug"}}`,
		`tls: {type: object, properties: {issuer: {type: string}}}`:                                                                                                                        ``,
		`storage: {type: object, properties: {size: {type: integer}}}`:                                                                                                                     ``,
		`securityContext: {type: object, properties: {runAsUser: {type: integer}, fsGroupDays: {type: integer}}}`:                                                                          ``,
		`anything: {type: object, x-kubernetes-preserve-unknown-fields: true}`:                                                                                                             ``,
	} {
		var schema apiextensionsv1.JSONSchemaProps
		if err := yaml.Unmarshal([]byte(`{properties: {spec: {properties: {`+field+`}}}}`), &schema); err != nil {
			t.Fatal(field, err)
		}
		var got []string
		for _, s := range unset(&schema, map[string]any{"spec": map[string]any{}}, giveValue) {
			got = append(got, string(s.There))
		}
		var wanted []string
		if want != "" {
			wanted = []string{`{"spec":` + want + `}`}
		}
		if !slices.Equal(got, wanted) {
			t.Errorf("%s: %q, want %q", field, got, wanted)
		}
	}
}

// TestNoteTried: what something followed is not said to be unseen, though no sample asks for it.
func TestNoteTried(t *testing.T) {
	w := teaWalk()
	d := thingDefinition()
	w.noteAsked(d, "v1", map[string]any{"spec": map[string]any{}})
	a := w.sampled[d.Name]
	w.sampled[d.Name] = askedFor{"Thing", []string{"depth", "log", "note", "size"}, a.by}
	for _, path := range []string{"spec.depth", "spec.log.level", "spec.note (leaving that out)"} {
		w.noteTried(d.Name, path)
	}
	w.noteTried("unknown.example.com", "spec.size")
	want := []string{"no sample of Thing asks for size in its spec, so nothing shows what becomes of that: --sample gives one that does"}
	if got := w.untried(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
