package embedded

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// slowAnswer is how long the slow converter takes, which is longer than clients are patient.
const slowAnswer = 10 * time.Second

// faultyConverters are conversion webhooks that misbehave, by how they do.
var faultyConverters = map[string]http.HandlerFunc{
	"slow": func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(slowAnswer):
		case <-r.Context().Done():
		}
		http.Error(w, "too late", http.StatusInternalServerError)
	},
	"500": func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "broken on purpose", http.StatusInternalServerError)
	},
	"wrong": convertWrongly,
}

// maxReview is how many bytes of a review are read.
const maxReview = 64 << 20

// convertWrongly answers with objects of another name, which the API server has to refuse.
func convertWrongly(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReview)).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no conversion review", http.StatusBadRequest)
		return
	}
	answer := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw.Raw); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		o.SetAPIVersion(review.Request.DesiredAPIVersion)
		o.SetName("somebody-else")
		answer.ConvertedObjects = append(answer.ConvertedObjects, runtime.RawExtension{Object: o})
	}
	review.Request, review.Response = nil, answer
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// faultyConverter serves the converter that misbehaves as mode says, until the cluster ends, and returns its URL.
func (h *host) faultyConverter(mode string) (string, error) {
	handler := faultyConverters[mode]
	if handler == nil {
		return "", fmt.Errorf("there is no converter that misbehaves as %q", mode)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if url := h.faultyConverters[mode]; url != "" {
		return url, nil
	}
	listener, err := net.Listen("tcp", netip.AddrPortFrom(h.net.HostAddress(), 0).String())
	if err != nil {
		return "", err
	}
	if err := h.serveTLS(listener, "converter", handler); err != nil {
		return "", err
	}
	h.faultyConverters[mode] = "https://" + listener.Addr().String()
	return h.faultyConverters[mode], nil
}
