package opm_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// served is what serving a catalog took: until it answered that it serves, and until OLM's first question, for all bundles,
// was answered. The memory is the peak until then.
type served struct{ ready, listed cost }

// BenchmarkServe serves the catalog of all bundles, with a cache of it and without. Either server makes its cache at its
// first start.
func BenchmarkServe(b *testing.B) {
	dir := b.TempDir()
	root := filepath.Join(dir, "catalog")
	count := write(b, root, accepted(b, releases(b)), 1<<30)
	theirCache, ourCache := filepath.Join(dir, "opm"), filepath.Join(dir, "olmkit")
	theirs := func(address string) *exec.Cmd {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			b.Fatal(err)
		}
		return exec.Command(opm, "serve", root, "--port", port, "--cache-dir", theirCache, "--pprof-addr", "", "--termination-log", filepath.Join(dir, "log"))
	}
	// opm by itself fails where its cache is not there, as in a catalog's image.
	making := func(address string) *exec.Cmd {
		command := theirs(address)
		command.Args = append(command.Args, "--cache-enforce-integrity=false")
		return command
	}
	ours := func(address string) *exec.Cmd {
		command := exec.Command(olmkit, "catalog", "serve", root, "--address", address)
		command.Env = append(os.Environ(), "OLMKIT_CACHE="+ourCache)
		return command
	}
	cold := func(start func(string) *exec.Cmd, cache string) served {
		return quickest(2, func() served {
			if err := os.RemoveAll(cache); err != nil {
				b.Fatal(err)
			}
			return serve(b, start, count)
		})
	}
	compare := func(what string, theirs, ours served) {
		report(b, fmt.Sprintf("serve %d bundles, %s: ready", count, what), theirs.ready, ours.ready)
		report(b, fmt.Sprintf("serve %d bundles, %s: listed", count, what), theirs.listed, ours.listed)
	}
	compare("cold", cold(making, theirCache), cold(ours, ourCache))
	compare("warm", quickest(5, func() served { return serve(b, theirs, count) }), quickest(5, func() served { return serve(b, ours, count) }))
}

// quickest returns of several runs the one that was ready first.
func quickest(times int, f func() served) served {
	all := make([]served, times)
	for i := range all {
		all[i] = f()
	}
	return slices.MinFunc(all, func(x, y served) int { return cmp.Compare(x.ready.wall, y.ready.wall) })
}

// serve starts a server, which must list so many bundles, and ends it.
func serve(b *testing.B, start func(address string) *exec.Cmd, count int) served {
	b.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		b.Fatal(err)
	}
	command := start(address)
	var said bytes.Buffer
	command.Stderr = &said
	began := time.Now()
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	ctx, stop := context.WithTimeout(b.Context(), 5*time.Minute)
	go func() {
		_ = command.Wait() // it is told to end
		close(ended)
		stop()
	}()
	defer func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		<-ended
	}()
	taken := func() cost {
		c := cost{wall: time.Since(began), memory: peak(b, command.Process.Pid)}
		c.cpu = spent(b, command.Process.Pid)
		return c
	}
	wait(ctx, b, address, &said)
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		b.Fatal(err)
	}
	defer connection.Close()
	result := served{ready: taken()}
	stream, err := api.NewRegistryClient(connection).ListBundles(ctx, &api.ListBundlesRequest{})
	if err != nil {
		b.Fatal(err)
	}
	listed := 0
	for {
		_, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		listed++
	}
	if listed != count {
		b.Errorf("%s lists %d bundles, not %d", filepath.Base(command.Path), listed, count)
	}
	result.listed = taken()
	return result
}

// wait returns once the server's health is that it serves.
func wait(ctx context.Context, b *testing.B, address string, said fmt.Stringer) {
	b.Helper()
	for {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			connection.Close()
			break
		}
		if ctx.Err() != nil {
			b.Fatalf("it does not serve: %s", said)
		}
		time.Sleep(time.Millisecond)
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer connection.Close()
	answer, err := healthpb.NewHealthClient(connection).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		b.Fatalf("it does not serve: %v, %v: %s", answer, err, said)
	}
}

// peak returns the most memory that a process has had, in bytes: proc(5), VmHWM.
func peak(b *testing.B, pid int) int64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kibibytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return kibibytes << 10
		}
	}
	b.Fatalf("process %d has no VmHWM", pid)
	return 0
}

// spent returns the CPU time of a process: proc(5), utime and stime, in ticks of which a second has 100.
func spent(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
