package walk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/fuzz"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// losing is a kind of failures of the conversion of a definition.
type losing struct {
	crd string
	fuzz.Kind
}

// fuzz sends objects that it makes of the schemas of r's definitions through conversion, there and back, once for each release. It
// stores nothing: objects are created as a dry run, and the conversion webhook is asked as the API server asks it, through the API
// server's proxy. What the release called from loses as well, or r if it was installed, is no matter of an upgrade.
func (w *walk) fuzz(ctx context.Context, from string, r *lifecycle.Release) ([]finding.Finding, error) {
	if w.options.Fuzz == 0 || w.fuzzed[r.Name] != nil {
		return nil, nil
	}
	w.fuzzed[r.Name] = map[losing]bool{}
	var findings []finding.Finding
	for _, d := range r.CRDs {
		if len(definition.ServedVersions(d)) < 2 || w.SimulatedConverter(r, d.Name) != "" {
			continue
		}
		step := w.options.Progress.Start("  fuzz %s on %s", d.Name, r.Name)
		found, err := w.fuzzKind(ctx, from, r, d.Name)
		findings = append(findings, found...)
		if step.End(err) != nil {
			return findings, fmt.Errorf("fuzz CustomResourceDefinition %s: %w", d.Name, err)
		}
	}
	return findings, nil
}

// fuzzKind fuzzes the definition called name as it is on the cluster, with the CA that the manager put in.
func (w *walk) fuzzKind(ctx context.Context, from string, r *lifecycle.Release, name string) ([]finding.Finding, error) {
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := w.Client.Get(ctx, client.ObjectKey{Name: name}, d); err != nil {
		return nil, err
	}
	if !w.options.FuzzAll && !definition.ConvertsByWebhook(d) { // what the API server drops is seen of schemas alone
		return nil, nil
	}
	o := fuzz.Options{Definition: d, Count: w.options.Fuzz, Seed: w.options.FuzzSeed, Samples: map[string][]map[string]any{}, Lost: losses}
	if d.Spec.Scope == apiextensionsv1.NamespaceScoped {
		o.Namespace = w.ObjectNamespaces("")[0]
		if err := w.Manager.EnsureNamespace(ctx, o.Namespace); err != nil {
			return nil, err
		}
	}
	for _, v := range d.Spec.Versions {
		for _, sample := range w.samples(r, d, v.Name) {
			o.Samples[v.Name] = append(o.Samples[v.Name], compare.Content(sample.Object))
		}
	}
	o.Accept = func(ctx context.Context, object map[string]any) (error, error) {
		return w.dryRun(ctx, d, object)
	}
	o.Convert = w.converter(d)
	result, err := fuzz.Run(ctx, o)
	var unreachable fuzz.UnreachableError
	if errors.As(err, &unreachable) {
		w.notes = append(w.notes, fmt.Sprintf("%s of %s was not fuzzed: its conversion webhook cannot be reached through the API server: %v", name, r.Name, unreachable.Err))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if result.Refused+result.Impossible > 0 {
		w.notes = append(w.notes, fuzzNote(r, name, result))
	}
	for kind := range result.Kinds {
		w.fuzzed[r.Name][losing{d.Name, kind}] = true
	}
	findings := fuzzFindings(r, d, result)
	if !w.options.FuzzAll {
		lessen(findings, result.Failures, from, func(kind fuzz.Kind) bool { return w.fuzzed[from][losing{d.Name, kind}] })
	}
	return findings, nil
}

// lessen makes notes of those of findings, one of each of failures, that are no matter of an upgrade: of kinds that the release called from had, and all where there is none.
func lessen(findings []finding.Finding, failures []fuzz.Failure, from string, had func(fuzz.Kind) bool) {
	for i, f := range failures {
		switch {
		case from == "":
			findings[i].Severity = finding.Info
		case had(f.Kind()):
			findings[i].Severity, findings[i].Message = finding.Info, findings[i].Message+"; with "+from+" it was the same"
		}
	}
}

// unseen are those of fuzzed, of which each is about a field, whose field none of findings about objects tells of: one cause is told once.
func unseen(fuzzed, findings []finding.Finding) []finding.Finding {
	told := map[string]bool{}
	for _, f := range findings {
		for _, field := range f.Fields {
			told[field] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(fuzzed), func(f finding.Finding) bool { return len(f.Fields) > 0 && told[f.Fields[0]] })
}

// fuzzNote says of how many objects nothing was shown.
func fuzzNote(r *lifecycle.Release, name string, result *fuzz.Result) string {
	note := fmt.Sprintf("%s of %s: of %d generated objects %d were sent through conversion", name, r.Name, result.Made+result.Impossible, result.Made-result.Refused)
	if result.Refused > 0 {
		note += fmt.Sprintf("; %d are refused on creation, the first with: %s", result.Refused, result.Refusal)
	}
	if result.Impossible > 0 {
		note += fmt.Sprintf("; for %d no object was found that satisfies the schema and its rules", result.Impossible)
	}
	return note
}

// fuzzFindings tells of each failure what does not survive.
func fuzzFindings(r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition, result *fuzz.Result) []finding.Finding {
	var findings []finding.Finding
	for _, failure := range result.Failures {
		least, err := json.Marshal(compare.Content(failure.Object))
		if err != nil {
			panic("walk: " + err.Error()) // it came as JSON
		}
		way := "created as " + failure.Version
		if failure.Through != failure.Version {
			way += fmt.Sprintf(", read as %s and written back unchanged", failure.Through)
		}
		kind, what := code.FuzzLost, "loses fields: "+failure.Text
		if failure.Refused {
			kind, what = code.FuzzRefused, "cannot be converted "+failure.Text
		}
		f := code.Finding(kind, "CustomResourceDefinition/"+d.Name, "%s, a valid %s of %s %s; %s of this kind, the least: %s (--fuzz-seed %d)",
			way, d.Spec.Names.Kind, r.Name, what, counted(failure.Count), least, failure.Seed)
		f.Seed, f.Example = failure.Seed, string(least)
		if failure.Field != "" {
			f.Fields = []string{failure.Field}
		}
		findings = append(findings, f)
	}
	return findings
}

func counted(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

// losses lists what of want's content, labels and annotations got does not have.
func losses(want, got map[string]any) []fuzz.Loss {
	var list []fuzz.Loss
	for _, d := range compare.Lost(compare.Content(want), compare.Content(got)).WithoutRewritten() {
		list = append(list, fuzz.Loss{Path: d.Path, Text: d.String()})
	}
	return list
}

// dryRun creates object without storing it. It returns why the API server refuses it: because of admission, not of conversion, which
// is judged by itself.
func (w *walk) dryRun(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition, object map[string]any) (refusal, err error) {
	o := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
	kind := o.GroupVersionKind()
	resources := w.Dynamic.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: d.Spec.Names.Plural})
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "olmkit"}
	if o.GetNamespace() == "" {
		_, refusal = resources.Create(ctx, o, options)
	} else {
		_, refusal = resources.Namespace(o.GetNamespace()).Create(ctx, o, options)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if refusal != nil && strings.Contains(refusal.Error(), "conversion webhook") {
		return nil, nil
	}
	return refusal, nil
}

// converter converts objects as the API server does: by d's webhook, or without one.
func (w *walk) converter(d *apiextensionsv1.CustomResourceDefinition) func(context.Context, []map[string]any, string) ([]map[string]any, error) {
	if !definition.ConvertsByWebhook(d) {
		return fuzz.None(d.Spec.Group)
	}
	webhook := d.Spec.Conversion.Webhook
	if webhook == nil || webhook.ClientConfig == nil || webhook.ClientConfig.Service == nil {
		return func(context.Context, []map[string]any, string) ([]map[string]any, error) {
			return nil, fuzz.UnreachableError{Err: errors.New("it is no Service")}
		}
	}
	service := webhook.ClientConfig.Service
	port, path := int32(443), ""
	if service.Port != nil {
		port = *service.Port
	}
	if service.Path != nil {
		path = *service.Path
	}
	proxied := fmt.Sprintf("https:%s:%d", service.Name, port)
	review := conversionReview{group: d.Spec.Group, until: time.Now().Add(conversionsLimit), version: firstOr(webhook.ConversionReviewVersions, "v1"), ask: func(ctx context.Context, body []byte) ([]byte, error) {
		return observe.Post(ctx, w.Provider.Config(), service.Namespace, proxied, path, body)
	}}
	return review.convert
}

func firstOr(list []string, otherwise string) string {
	if len(list) == 0 {
		return otherwise
	}
	return list[0]
}

// conversionLimit is how long a webhook may take to answer. The API server's proxy waits for ever.
const conversionLimit = 30 * time.Second

// conversionsLimit is how long all conversions of a kind may take: most take milliseconds each.
const conversionsLimit = 10 * time.Minute

// conversionReview asks a conversion webhook.
type conversionReview struct {
	group, version string    // of the definition, of the API of reviews
	until          time.Time // nobody asks it after that
	ask            func(ctx context.Context, body []byte) ([]byte, error)
}

// convert has the webhook convert objects to version. An answer that is none is the objects' fault if the webhook answers without
// them.
func (c conversionReview) convert(ctx context.Context, objects []map[string]any, version string) ([]map[string]any, error) {
	if time.Now().After(c.until) {
		return nil, fuzz.UnreachableError{Err: fmt.Errorf("it answers so late that not all objects were converted within %s", conversionsLimit)}
	}
	converted, err := c.try(ctx, objects, version)
	var answer answerError
	if err == nil || errors.As(err, &answer) || ctx.Err() != nil {
		return converted, err
	}
	if failed := observe.Retry(ctx, func(error) bool { return false }, func() error {
		_, err := c.try(ctx, nil, version)
		return err
	}); failed != nil {
		return nil, fuzz.UnreachableError{Err: failed}
	}
	return c.try(ctx, objects, version)
}

// answerError is what a webhook says.
type answerError string

func (e answerError) Error() string { return string(e) }

func (c conversionReview) try(ctx context.Context, objects []map[string]any, version string) ([]map[string]any, error) {
	if objects == nil {
		objects = []map[string]any{}
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/" + c.version, "kind": "ConversionReview",
		"request": map[string]any{"uid": "olmkit-fuzz", "desiredAPIVersion": c.group + "/" + version, "objects": objects},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, conversionLimit)
	defer cancel()
	said, err := c.ask(ctx, body)
	if err != nil {
		return nil, err
	}
	var review struct {
		Response struct {
			ConvertedObjects []map[string]any `json:"convertedObjects"`
			Result           metav1.Status    `json:"result"`
		} `json:"response"`
	}
	if err := utiljson.Unmarshal(said, &review); err != nil {
		return nil, answerError("the answer is no ConversionReview: " + err.Error())
	}
	response := review.Response
	switch {
	case response.Result.Status != metav1.StatusSuccess:
		return nil, answerError(cmp.Or(response.Result.Message, "the answer has no result"))
	case len(response.ConvertedObjects) != len(objects):
		return nil, answerError(fmt.Sprintf("%d objects were sent, %d came back", len(objects), len(response.ConvertedObjects)))
	}
	for i, o := range response.ConvertedObjects {
		if o["apiVersion"] != c.group+"/"+version {
			return nil, answerError(fmt.Sprintf("an object came back as %v", o["apiVersion"]))
		}
		if other := otherIdentity(objects[i], o); other != "" {
			return nil, answerError("an object came back with another " + other)
		}
	}
	return response.ConvertedObjects, nil
}

// otherIdentity names what a conversion must leave as it is and did not, or "" (apiextensions-apiserver v0.36.3,
// pkg/apiserver/conversion/webhook_converter.go, validateConvertedObject).
func otherIdentity(sent, back map[string]any) string {
	was, is := &unstructured.Unstructured{Object: sent}, &unstructured.Unstructured{Object: back}
	switch {
	case was.GetKind() != is.GetKind():
		return "kind"
	case was.GetName() != is.GetName():
		return "name"
	case was.GetNamespace() != is.GetNamespace():
		return "namespace"
	case was.GetUID() != is.GetUID():
		return "UID"
	}
	return ""
}
