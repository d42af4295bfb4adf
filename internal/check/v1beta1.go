package check

import (
	"encoding/json"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
)

// The API versions of CustomResourceDefinitions. Kubernetes 1.22 gave up v1beta1, which old releases still ship: CSV026.
const (
	crdV1      = "apiextensions.k8s.io/v1"
	crdV1beta1 = "apiextensions.k8s.io/v1beta1"
)

// isCRD reports whether a manifest is a CustomResourceDefinition, of one of the API versions that the checks read.
func isCRD(apiVersion, kind string) bool {
	return kind == "CustomResourceDefinition" && (apiVersion == crdV1 || apiVersion == crdV1beta1)
}

// toV1 returns the CustomResourceDefinition of v1 that an API server which still knows v1beta1 makes of one of v1beta1, by
// the server's own defaults and conversion (k8s.io/apiextensions-apiserver v0.36.3, pkg/apis/apiextensions): what stands once
// for all versions stands with each of them, and unknown fields are kept unless preserveUnknownFields is false. It returns
// nil for what cannot be read.
func toV1(manifest []byte) []byte {
	old := &apiextensionsv1beta1.CustomResourceDefinition{}
	if json.Unmarshal(manifest, old) != nil {
		return nil
	}
	apiextensionsv1beta1.SetObjectDefaults_CustomResourceDefinition(old)
	hub, out := &apiextensions.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
	if apiextensionsv1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(old, hub, nil) != nil ||
		apiextensionsv1.Convert_apiextensions_CustomResourceDefinition_To_v1_CustomResourceDefinition(hub, out, nil) != nil {
		return nil
	}
	out.APIVersion, out.Kind = crdV1, old.Kind
	converted, err := json.Marshal(out)
	if err != nil {
		return nil
	}
	return converted
}
