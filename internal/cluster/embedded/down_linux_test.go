package embedded

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// A cluster that ends before it has answered the request to end is gone as it should be.
func TestDownUnanswered(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := lockFile(t.Context(), filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := openSocket(dir, func(path string) (net.Listener, error) { return net.Listen("unix", path) })
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		unlock()
		panic(http.ErrAbortHandler) // which closes the connection
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	c := &Cluster{name: "cluster", dir: dir, client: newClient(dir)}
	if err := c.Down(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("its folder: %v", err)
	}
}
