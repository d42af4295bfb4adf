// Package crdconversion keeps what OLM lets go of while it upgrades the operator: the conversion of the operator's CRD, and the
// certificate of its webhooks. docs/conversion-and-olm.md says what it costs users otherwise.
package crdconversion

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Path is where the API server shows updates of CRDs to Conversion.
const Path = "/keep-conversion"

// CRD is the only CRD that Conversion ever changes.
const CRD = "memcacheds.cache.example.com"

// The rule cannot name the CRD; an objectSelector, which controller-gen cannot write, limits it to CRDs with the label
// cache.example.com/conversion (config/webhook).
//
// +kubebuilder:webhook:path=/keep-conversion,mutating=true,failurePolicy=ignore,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=update,versions=v1,name=keep-conversion.cache.example.com,admissionReviewVersions=v1

// Conversion keeps the CRD's conversion when an update would replace it by one that cannot work. OLM writes the whole
// CRD of a new bundle over the old one (operator-lifecycle-manager v0.46.0, pkg/controller/operators/catalog/step.go:181),
// and no bundle can name the authority that OLM will have made; until OLM has installed the rest of the bundle the API
// server would trust nobody's answer. The manager that runs meanwhile goes on converting, so its address stays, too.
//
// Updates that say no conversion, as OLM's when the operator is uninstalled, or say it whole, are left alone.
type Conversion struct{}

// document is as much of a CRD as Conversion looks at.
type document struct {
	Spec struct {
		Conversion json.RawMessage `json:"conversion"`
	} `json:"spec"`
}

// Handle answers an update of a CRD.
func (Conversion) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Name != CRD || request.Operation != admissionv1.Update || request.SubResource != "" {
		return admission.Allowed("")
	}
	after, _, err := conversion(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the new crd: %w", err))
	}
	before, raw, err := conversion(request.OldObject.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the old crd: %w", err))
	}
	if after == nil || after.Service == nil || len(after.CABundle) > 0 || before == nil || len(before.CABundle) == 0 {
		return admission.Allowed("")
	}
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/conversion", "value": raw}})
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	kind := admissionv1.PatchTypeJSONPatch
	response := admission.Allowed("")
	response.Patch, response.PatchType = patch, &kind
	log.FromContext(ctx).Info("kept the conversion of the crd", "crd", CRD, "writer", request.UserInfo.Username)
	return response
}

// conversion is the webhook that a CRD converts by, nil if it has none, and spec.conversion as it is written.
func conversion(crd []byte) (*apiextensions.WebhookClientConfig, json.RawMessage, error) {
	var d document
	if err := json.Unmarshal(crd, &d); err != nil {
		return nil, nil, err
	}
	if len(d.Spec.Conversion) == 0 || bytes.Equal(d.Spec.Conversion, []byte("null")) {
		return nil, nil, nil
	}
	var c apiextensions.CustomResourceConversion
	if err := json.Unmarshal(d.Spec.Conversion, &c); err != nil {
		return nil, nil, fmt.Errorf("spec.conversion: %w", err)
	}
	if c.Strategy != apiextensions.WebhookConverter || c.Webhook == nil {
		return nil, nil, nil
	}
	return c.Webhook.ClientConfig, d.Spec.Conversion, nil
}
