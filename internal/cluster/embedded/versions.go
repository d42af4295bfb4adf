package embedded

// Versions of the components, as tools/cluster/go.mod pins them.
const (
	KubernetesVersion = "v1.36.3"
	OLMVersion        = "v0.46.0"
)

// OLMImage is the reference under which embedded clusters run OLM's programs, the one of OLM's release.
const OLMImage = "quay.io/operator-framework/olm:" + OLMVersion
