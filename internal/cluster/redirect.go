package cluster

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// Stay has clients of config follow no redirect. The API server sends none by itself, and passes those on that come from what it is a proxy to: a server under test could have the
// administrator's credentials sent to it, and requests to the machine's own network.
func Stay(config *rest.Config) {
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return staying{base} })
}

// staying leaves out of an answer where it redirects to.
type staying struct{ base http.RoundTripper }

func (s staying) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.base.RoundTrip(request)
	if err == nil && response.StatusCode/100 == 3 {
		response.Header.Del("Location")
	}
	return response, err
}

// WrappedRoundTripper is what client-go looks for behind this.
func (s staying) WrappedRoundTripper() http.RoundTripper { return s.base }
