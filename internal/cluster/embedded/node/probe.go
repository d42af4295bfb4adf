package node

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// execFunc runs a command in the container and returns its exit code.
type execFunc func(ctx context.Context, command []string, in io.Reader, out, errOut io.Writer) (int, error)

// watch probes the container until ctx ends and calls changed with true when probe has succeeded successThreshold times in a
// row, with false when it has failed failureThreshold times, each only when the answer changes from was.
func watch(ctx context.Context, probe *corev1.Probe, address string, c *corev1.Container, exec execFunc, was bool, changed func(ok bool, message string)) {
	delay := time.Duration(probe.InitialDelaySeconds) * time.Second
	period := time.Duration(max(1, probe.PeriodSeconds)) * time.Second
	successes, failures := 0, 0
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(period)
		err := check(ctx, probe, address, c, exec)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			successes, failures = successes+1, 0
		} else {
			successes, failures = 0, failures+1
		}
		switch {
		case err == nil && !was && successes >= int(max(1, probe.SuccessThreshold)):
			was = true
			changed(true, "")
		case err != nil && was && failures >= int(max(1, probe.FailureThreshold)):
			was = false
			changed(false, err.Error())
		case err != nil && !was && failures == int(max(1, probe.FailureThreshold)):
			changed(false, err.Error())
		}
	}
}

// check probes once.
func check(ctx context.Context, probe *corev1.Probe, address string, c *corev1.Container, exec execFunc) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(1, probe.TimeoutSeconds))*time.Second)
	defer cancel()
	switch {
	case probe.HTTPGet != nil:
		return checkHTTP(ctx, probe.HTTPGet, address, c)
	case probe.TCPSocket != nil:
		port, err := portNumber(probe.TCPSocket.Port, c)
		if err != nil {
			return err
		}
		if probe.TCPSocket.Host != "" {
			address = probe.TCPSocket.Host
		}
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		if err != nil {
			return err
		}
		return connection.Close()
	case probe.GRPC != nil:
		return checkGRPC(ctx, probe.GRPC, address)
	case probe.Exec != nil:
		out := &beginning{left: maxProbeOutput}
		code, err := exec(ctx, probe.Exec.Command, nil, out, out)
		if err != nil {
			return err
		}
		if code != 0 {
			return fmt.Errorf("command %v ended with exit code %d: %.200s", probe.Exec.Command, code, out.String())
		}
		return nil
	}
	return errors.New("the probe says nothing to do")
}

// maxProbeOutput is how many bytes of what a probe's command says are kept, as by the kubelet (k8s.io/kubernetes v1.36,
// pkg/probe/exec/exec.go).
const maxProbeOutput = 10 << 10

// beginning keeps the first bytes of what it is written.
type beginning struct {
	bytes.Buffer
	left int
}

// Write is io.Writer's.
func (b *beginning) Write(p []byte) (int, error) {
	kept := p[:min(len(p), b.left)]
	b.left -= len(kept)
	_, _ = b.Buffer.Write(kept) // never fails
	return len(p), nil
}

func checkHTTP(ctx context.Context, get *corev1.HTTPGetAction, address string, c *corev1.Container) error {
	port, err := portNumber(get.Port, c)
	if err != nil {
		return err
	}
	if get.Host != "" {
		address = get.Host
	}
	scheme := "http"
	if get.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(address, strconv.Itoa(port))+get.Path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "kube-probe/olmkit")
	for _, header := range get.HTTPHeaders {
		if http.CanonicalHeaderKey(header.Name) == "Host" {
			request.Host = header.Value
		} else {
			request.Header.Add(header.Name, header.Value)
		}
	}
	client := http.Client{
		// As the kubelet does: a probe asks whether the container answers, not who it is.
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 200))
	if response.StatusCode < 200 || response.StatusCode >= 400 {
		return fmt.Errorf("HTTP probe failed with status code %d: %s", response.StatusCode, bytes.TrimSpace(body))
	}
	return nil
}

func checkGRPC(ctx context.Context, action *corev1.GRPCAction, address string) error {
	connection, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(address, strconv.Itoa(int(action.Port))), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	request := &healthpb.HealthCheckRequest{}
	if action.Service != nil {
		request.Service = *action.Service
	}
	answer, err := healthpb.NewHealthClient(connection).Check(ctx, request)
	if err != nil {
		return err
	}
	if answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return fmt.Errorf("gRPC health is %s", answer.GetStatus())
	}
	return nil
}

// portNumber resolves the name of a container's port.
func portNumber(port intstr.IntOrString, c *corev1.Container) (int, error) {
	if port.Type == intstr.Int {
		return port.IntValue(), nil
	}
	for _, p := range c.Ports {
		if p.Name == port.StrVal {
			return int(p.ContainerPort), nil
		}
	}
	if n, err := strconv.Atoi(port.StrVal); err == nil {
		return n, nil
	}
	return 0, fmt.Errorf("container %s has no port called %s", c.Name, port.StrVal)
}
