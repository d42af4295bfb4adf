package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// The host, the process inside of a cluster's namespaces, is spoken to over HTTP on a unix socket in the cluster's
// directory, which its owner alone can enter.

const socketName = "control.sock"

// hostConfig is what the host is told when it is started, as JSON on its standard input.
type hostConfig struct {
	Programs string            // directory of the components
	Dir      string            // the cluster's directory
	Server   string            // host:port under which the API server is reached from outside
	Images   map[string]string // reference to absolute path

	Audit     bool     // as Options has it
	Admission []string // as Options has it
}

// Descriptors that the host is started with.
const (
	apiListenerFD = 3 + iota
	controlListenerFD
	lockFD
)

// state is what the host says of itself.
type state struct {
	Ready      bool     `json:"ready"`
	Error      string   `json:"error,omitempty"`
	Kubernetes string   `json:"kubernetes,omitempty"`
	Users      bool     `json:"users"`
	Simulated  []string `json:"simulated,omitempty"`
}

type imageRequest struct {
	Ref    string `json:"ref"`
	Source string `json:"source"`
}

type addressAnswer struct {
	Address string `json:"address"`
}

type faultyConverterAnswer struct {
	URL string `json:"url"`
	CA  []byte `json:"ca"` // PEM encoded
}

// nodeComponent is the name by which all containers of the node are killed.
const nodeComponent = "node"

// openSocket calls f with a path of the control socket that is short enough for a socket's address, however deep the
// cluster's directory is.
func openSocket[T any](dir string, f func(path string) (T, error)) (T, error) {
	d, err := os.Open(dir)
	if err != nil {
		var none T
		return none, err
	}
	defer d.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), socketName))
}

// client speaks to the host of the cluster in dir.
type client struct {
	http *http.Client
}

func newClient(dir string) *client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return openSocket(dir, func(path string) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", path) })
	}
	return &client{http: &http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// call sends a request and decodes the answer into out, or copies it if out is an io.Writer.
func (c *client) call(ctx context.Context, method, path string, query url.Values, body io.Reader, out any) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://cluster"+path+"?"+query.Encode(), body)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		var opErr *net.OpError
		if errors.As(err, &opErr) {
			err = fmt.Errorf("the cluster does not answer: %w", opErr.Err)
		}
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		message, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
		return errors.New(strings.TrimSpace(string(message)))
	}
	switch out := out.(type) {
	case nil:
		return nil
	case io.Writer:
		_, err = io.Copy(out, response.Body)
	default:
		err = json.NewDecoder(response.Body).Decode(out)
	}
	return err
}

func (c *client) callJSON(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.call(ctx, method, path, nil, bytes.NewReader(body), out)
}

func kubeconfigPath(dir string) string { return filepath.Join(dir, "kubeconfig") }
