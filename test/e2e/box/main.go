// Command box is what the end-to-end tests run in a pod: it serves what it sees of its surroundings, and ends or turns
// unhealthy when it is told to.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	fmt.Println("box started", os.Args[1:])
	if len(os.Args) == 4 && os.Args[1] == "link" { // as an init container
		if err := os.Symlink(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		<-terminated
		fmt.Println("box ends")
		os.Exit(0)
	}()
	var ill atomic.Bool
	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if ill.Load() {
			http.Error(w, "ill", http.StatusInternalServerError)
		}
	})
	http.HandleFunc("/ill", func(http.ResponseWriter, *http.Request) { ill.Store(true) })
	http.HandleFunc("/exit", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	http.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		data, err := os.ReadFile(r.FormValue("path"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = w.Write(data) //nolint:gosec // nobody's browser asks
	})
	http.HandleFunc("/write", func(w http.ResponseWriter, r *http.Request) {
		if err := os.WriteFile(r.FormValue("path"), []byte(r.FormValue("text")), 0o600); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	http.HandleFunc("/call", answer(func(r *http.Request) (string, error) { return call(r.FormValue("url")) }))
	http.HandleFunc("/lookup", answer(func(r *http.Request) (string, error) {
		hosts, err := net.DefaultResolver.LookupHost(r.Context(), r.FormValue("name"))
		return strings.Join(hosts, " "), err
	}))
	http.HandleFunc("/servers", answer(func(r *http.Request) (string, error) {
		name, servers, err := net.DefaultResolver.LookupSRV(r.Context(), r.FormValue("port"), "tcp", r.FormValue("name"))
		for _, s := range servers {
			name += fmt.Sprintf(" %s:%d", s.Target, s.Port)
		}
		return name, err
	}))
	http.HandleFunc("/self", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"args": os.Args[1:], "env": os.Environ(), "pid": os.Getpid(), "uid": os.Getuid()})
	})
	server := &http.Server{Addr: ":8080", ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}

// answer answers with what f returns, and its error as text.
func answer(f func(*http.Request) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := f(r)
		if err != nil {
			text = err.Error()
		}
		_, _ = io.WriteString(w, text)
	}
}

// call returns what a server of the cluster answers.
func call(url string) (string, error) {
	authority, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
	if err != nil {
		return "", err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	response, err := client.Get(url) //nolint:gosec // nobody else asks
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
