//go:build linux

package e2e_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the token server knows of its only user beside the password.
const identityToken = "identity-of-tea"

// issuer is a token server, as registries have them (https://distribution.github.io/distribution/spec/auth/token/).
type issuer struct {
	url  string
	jwks string // file with its public key

	mu     sync.Mutex
	asked  []string // how it was asked for each token that it issued
	issued []string // the tokens
}

func startIssuer(t *testing.T) *issuer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	i := &issuer{jwks: filepath.Join(t.TempDir(), "jwks.json")}
	write(t, i.jwks, fmt.Sprintf(`{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "tea", "use": "sig", "alg": "EdDSA", "x": %q}]}`, encode(public)))
	token := func(scopes []string) string {
		access := []map[string]any{}
		for _, scope := range scopes {
			if parts := strings.Split(scope, ":"); len(parts) == 3 {
				actions := strings.Split(parts[2], ",")
				if strings.HasPrefix(parts[1], "others/") {
					actions = []string{"pull"}
				}
				access = append(access, map[string]any{"type": parts[0], "name": parts[1], "actions": actions})
			}
		}
		claims, err := json.Marshal(map[string]any{
			"iss": "tea", "sub": registryUser, "aud": "registry", "jti": rand.Text(), "access": access,
			"nbf": time.Now().Add(-time.Minute).Unix(), "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
		})
		if err != nil {
			panic(err)
		}
		signed := encode([]byte(`{"alg":"EdDSA","typ":"JWT","kid":"tea"}`)) + "." + encode(claims)
		return signed + "." + encode(ed25519.Sign(private, []byte(signed)))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, basic := r.BasicAuth()
		how := ""
		switch {
		case r.Method == http.MethodGet && basic && user == registryUser && password == registryPassword:
			how = "password"
		case r.Method == http.MethodPost && r.FormValue("grant_type") == "refresh_token" && r.FormValue("refresh_token") == identityToken:
			how = "identity token"
		default:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"errors": [{"code": "UNAUTHORIZED", "message": "nobody knows you"}]}`)
			return
		}
		if err := r.ParseForm(); err != nil {
			panic(err)
		}
		made := token(strings.Fields(strings.Join(r.Form["scope"], " ")))
		i.mu.Lock()
		i.asked, i.issued = append(i.asked, how), append(i.issued, made)
		i.mu.Unlock()
		field := map[string]string{"password": "token", "identity token": "access_token"}[how]
		fmt.Fprintf(w, `{%q: %q, "expires_in": 3600}`, field, made)
	}))
	t.Cleanup(server.Close)
	i.url = strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	return i
}

// TestTokens pushes to a registry that wants tokens, which a token server gives for credentials of every kind.
func TestTokens(t *testing.T) {
	i := startIssuer(t)
	host := runRegistry(t, t.TempDir(), "", fmt.Sprintf("auth: {token: {realm: %q, service: registry, issuer: tea, jwks: %q}}", i.url+"/token", i.jwks))
	password := base64.StdEncoding.EncodeToString([]byte(registryUser + ":" + registryPassword))
	for n, c := range []struct {
		name, config, helper string
		as                   string // REGISTRY_AUTH_FILE for Podman's; "" for Docker's
		how, err             string
	}{
		{name: "a password in Docker's configuration", config: `{"auths": {"HOST": {"auth": "` + password + `"}}}`, how: "password"},
		{name: "a password in Podman's", as: "REGISTRY_AUTH_FILE", config: `{"auths": {"HOST": {"auth": "` + password + `"}}}`, how: "password"},
		{name: "a helper for this registry", config: `{"credHelpers": {"HOST": "tea"}}`, helper: `{"ServerURL": "x", "Username": "` + registryUser + `", "Secret": "` + registryPassword + `"}`, how: "password"},
		{name: "a helper for all", config: `{"credsStore": "tea"}`, helper: `{"ServerURL": "x", "Username": "` + registryUser + `", "Secret": "` + registryPassword + `"}`, how: "password"},
		{name: "an identity token", config: `{"auths": {"HOST": {"identitytoken": "` + identityToken + `"}}}`, how: "identity token"},
		{name: "a helper with an identity token", config: `{"credsStore": "tea"}`, helper: `{"ServerURL": "x", "Username": "<token>", "Secret": "` + identityToken + `"}`, how: "identity token"},
		{name: "another's password", config: `{"auths": {"HOST": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("tea:spilt")) + `"}}}`, err: "nobody knows you"},
		{name: "no credentials", config: `{}`, err: "nobody knows you"},
		{name: "a helper that is not there", config: `{"credsStore": "coffee"}`, err: "get the credentials for"},
		{name: "a helper that fails", config: `{"credsStore": "tea"}`, helper: `{"spilt":`, err: "get the credentials for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			config, env := filepath.Join(dir, "config.json"), []string{"HOME=" + dir, "DOCKER_CONFIG=" + dir, "XDG_RUNTIME_DIR=" + dir, "XDG_CONFIG_HOME=" + dir}
			if c.as != "" {
				config = filepath.Join(dir, "auth.json")
				env = append(env, c.as+"="+config)
			}
			write(t, config, strings.ReplaceAll(c.config, "HOST", host))
			said := filepath.Join(dir, "asked")
			// The registry's name comes on standard input, the secret goes out on standard output; neither is ever an argument.
			write(t, filepath.Join(dir, "docker-credential-tea"), fmt.Sprintf("#!/bin/sh\necho \"$*\" >>%s\ncat >/dev/null\necho '%s'\n", said, c.helper))
			if err := os.Chmod(filepath.Join(dir, "docker-credential-tea"), 0o700); err != nil {
				t.Fatal(err)
			}
			env = append(env, "PATH="+dir+":"+os.Getenv("PATH"))
			i.mu.Lock()
			i.asked, i.issued = nil, nil
			i.mu.Unlock()

			reference := fmt.Sprintf("%s/team/bundle:%d", host, n)
			r := run(t, env, "bundle", "push", somePushed, reference, "--verbose")
			all := r.out + r.errOut
			if c.err == "" {
				back := run(t, env, "catalog", "render", reference, "--verbose")
				if r.code != 0 || back.code != 0 {
					t.Errorf("exit codes %d and %d\n%s%s", r.code, back.code, r.errOut, back.errOut)
				}
				all += back.errOut
			} else if r.code != 1 || !strings.Contains(r.errOut, c.err) || !strings.Contains(r.errOut, "docker login "+host) {
				t.Errorf("exit code %d\n%s", r.code, r.errOut)
			}
			i.mu.Lock()
			defer i.mu.Unlock()
			if c.how != "" && !strings.Contains(strings.Join(i.asked, ","), c.how) {
				t.Errorf("the token server was asked with %v", i.asked)
			}
			for _, secret := range append(i.issued, registryPassword, password, identityToken, "spilt") {
				if strings.Contains(all, secret) {
					t.Errorf("it prints the secret %q:\n%s", secret, all)
				}
			}
			if c.helper != "" {
				asked, err := os.ReadFile(said)
				if err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(string(asked)) {
					if line != "get\n" {
						t.Errorf("the helper was called with %q", line)
					}
				}
			}
		})
	}

	t.Run("no right to push", func(t *testing.T) {
		env := loggedIn(t, host)
		r := run(t, env, "bundle", "push", somePushed, host+"/others/bundle:v1")
		if r.code != 1 || !strings.Contains(r.errOut, "docker login "+host) {
			t.Errorf("exit code %d\n%s", r.code, r.errOut)
		}
	})
}

// TestTwoRegistries puts a catalog on a base from a registry with TLS and a password, and pushes it to one without either.
func TestTwoRegistries(t *testing.T) {
	secured, caFile := startRegistry(t)
	plain := startPlainRegistry(t)
	var told []string // what the plain registry is told of who asks
	var mu sync.Mutex
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: plain})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		told = append(told, r.Header.Get("Authorization"))
		mu.Unlock()
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	plain = strings.TrimPrefix(front.URL, "http://")
	env := loggedIn(t, secured)

	if r := run(t, env, "catalog", "push", "catalog", secured+"/base/opm:v1", "--ca-file", secured+"="+caFile); r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.errOut)
	}
	r := run(t, env, "catalog", "push", "catalog", plain+"/team/catalog:v1", "--base", secured+"/base/opm:v1",
		"--ca-file", secured+"="+caFile, "--plain-http="+plain)
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.errOut)
	}
	if got, want := must(t, "catalog", "render", plain+"/team/catalog:v1", "--plain-http").out, must(t, "catalog", "render", "catalog").out; got != want {
		t.Error("the catalog that comes back is another")
	}
	for _, header := range told {
		if header != "" {
			t.Errorf("the plain registry was told %q", header)
		}
	}
	r = run(t, env, "catalog", "push", "catalog", plain+"/team/catalog:v1", "--base", secured+"/base/opm:v1", "--ca-file", plain+"="+caFile)
	if r.code != 1 || !strings.Contains(r.errOut, "--ca-file") {
		t.Errorf("an authority of another registry: exit code %d\n%s", r.code, r.errOut)
	}
}

// fullDisk is a command that runs the one after it, in which dir is a disk of so many bytes.
func fullDisk(dir, size string) []string {
	return []string{"unshare", "-rm", "sh", "-c", `mount -t tmpfs -o size=` + size + ` none "$0" && exec "$@"`, dir}
}

// TestPushToAFullRegistry has a registry whose disk is full before everything is there.
func TestPushToAFullRegistry(t *testing.T) {
	data := t.TempDir()
	host := runRegistry(t, data, "", "", fullDisk(data, "512k")...)
	reference := host + "/team/catalog:v1"
	if r := run(t, nil, "bundle", "push", somePushed, reference); r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.errOut)
	}
	before := must(t, "catalog", "render", reference).out

	// Bundles of noise, which cannot be compressed, until there is no more room.
	dir := filepath.Join(t.TempDir(), "bundle")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, somePushed))); err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 600_000)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "manifests", "noise.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: noise}\ndata: {noise: "+base64.StdEncoding.EncodeToString(noise)+"}\n")
	r := run(t, nil, "bundle", "push", dir, reference)
	if r.code != 1 || !strings.Contains(r.errOut, "fix: ") {
		t.Errorf("exit code %d\n%s", r.code, r.errOut)
	}
	t.Log(r.errOut)
	if after := must(t, "catalog", "render", reference).out; after != before {
		t.Error("the tag is not what it was")
	}
}

// TestWriteToAFullDisk has no room for what olmkit writes: nothing may be left of it.
func TestWriteToAFullDisk(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "catalog.tar")
	must(t, "catalog", "push", "catalog", "--output", archive)
	dir := t.TempDir()
	for _, c := range []struct {
		name  string
		words []string
	}{
		{"an archive", []string{"bundle", "push", somePushed, "--output", filepath.Join(dir, "a.tar")}},
		{"a layout", []string{"bundle", "push", somePushed, "--oci-layout", filepath.Join(dir, "layout")}},
		{"a rendered catalog", []string{"catalog", "render", "catalog", "--output-file", filepath.Join(dir, "catalog.json")}},
		{"a built catalog", []string{"catalog", "build", "catalog/template.yaml", "--output-file", filepath.Join(dir, "catalog.yaml")}},
		{"temporary files", []string{"catalog", "render", archive}},
	} {
		t.Run(c.name, func(t *testing.T) {
			script := `"$@"; code=$?; ls -A "$TMPDIR" >&2; exit $code`
			words := append(fullDisk(dir, "8k"), append([]string{"sh", "-c", script, "sh", olmkit}, c.words...)...)
			cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
			cmd.Dir = root
			cmd.Env = append(os.Environ(), "TMPDIR="+dir)
			var errOut strings.Builder
			cmd.Stderr = &errOut
			_ = cmd.Run()
			said := errOut.String()
			if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(said, "no space left on device") {
				t.Errorf("exit code %d\n%s", cmd.ProcessState.ExitCode(), said)
			}
			// The list of what is left follows the fix.
			if last := said[strings.LastIndex(strings.TrimRight(said, "\n"), "\n")+1:]; !strings.HasPrefix(last, "  fix: make room") {
				t.Errorf("left behind, or said without a fix:\n%s", said)
			}
		})
	}
}
