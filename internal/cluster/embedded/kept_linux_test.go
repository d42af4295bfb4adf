package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// serveReady is a host that says that its cluster is ready, and has written no kubeconfig.
func serveReady() {
	control, err := fileListener(controlListenerFD)
	if err != nil {
		panic(err)
	}
	panic(http.Serve(control, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(state{Ready: true})
	})))
}

// A cluster whose credentials can't be read ends before its directory goes.
func TestUnreadableClusterEnds(t *testing.T) {
	cache := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := launch(t.Context(), cache, []string{""}, Options{Name: "unreadable", Port: address.Port})
	if err == nil || !strings.Contains(err.Error(), "kubeconfig") {
		t.Errorf("launch: %v, %v", c, err)
	}
	if conn, err := net.Dial("tcp", address.String()); err == nil {
		conn.Close()
		t.Error("its host still holds the API server's address")
	}
	if _, err := os.Stat(filepath.Join(clustersDir(cache), "unreadable")); !os.IsNotExist(err) {
		t.Errorf("its directory: %v", err)
	}
}

// Whoever looks whether clusters live is in nobody's way: neither of one that starts nor of another that looks.
func TestProbesDisturbNobody(t *testing.T) {
	cache := t.TempDir()
	name := func(i int) string { return fmt.Sprintf("c%d", i%4) }
	ctx, stop := context.WithCancel(t.Context())
	var probes sync.WaitGroup
	for range 2 {
		probes.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				alive(filepath.Join(clustersDir(cache), name(i)))
			}
		})
	}
	for i := range 300 {
		dir, lock, err := claim(ctx, cache, name(i))
		if err != nil {
			t.Errorf("claim %d: %v", i, err)
			break
		}
		if !alive(dir) {
			t.Errorf("cluster %d counts as ended", i)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		lock.Close()
	}
	stop()
	probes.Wait()

	dir, lock, err := claim(t.Context(), cache, "ended")
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
	probe, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	if err := unix.Flock(int(probe.Fd()), unix.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	if alive(dir) {
		t.Error("an ended cluster counts as alive while another looks at it")
	}
}
