//go:build linux

package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKindEveryDay is the loop of every day on a kind cluster, whose nodes pull: run a bundle, look, clean up, apply what
// 'subscription generate' writes. At full length the catalog comes from a registry that wants a password, is pushed again, and the
// upgrade comes by itself.
func TestKindEveryDay(t *testing.T) {
	image := needKind(t)
	d := daily{T: t, name: "e2e-daily"}
	d.kubeconfig, d.config = up(t, d.name, "--kind", "kind", "--node-image", image, "--olm", "--catalog", "catalog")
	if r := d.olmkit(0, "olm", "status", "-o", "json"); !strings.Contains(r.out, `"well": true`) {
		t.Errorf("the status of OLM is %s", r.out)
	}
	must(t, "cluster", "load", "--kind", "kind", "--name", d.name, "ghcr.io/olmkit/memcached-operator:v0.1.0="+filepath.Join(root, "bin", "memcached-operator", "v0.1.0", "manager"))
	d.olmkit(0, "bundle", "run", "bundle/memcached-operator/0.1.0")
	if r := d.olmkit(0, "upgrade", "diagnose", "-p", "memcached-operator", "-o", "json"); !strings.Contains(r.out, `"state": "up to date"`) {
		t.Errorf("the diagnosis is %s", r.out)
	}
	cleanup := d.olmkit(0, "cleanup", "memcached-operator")
	if left := d.kubectl("", "get", "crd,namespaces", "-o", "name"); strings.Contains(left, "memcached") {
		t.Errorf("cleanup says\n%s\nand leaves %s", cleanup.out, d.kubectl("", "get", "crd,namespaces", "-o", "custom-columns=NAME:.metadata.name,MADE:.metadata.creationTimestamp,DELETED:.metadata.deletionTimestamp,LABELS:.metadata.labels,MANAGERS:.metadata.managedFields[*].manager,CONDITIONS:.status.conditions[*].type"))
	}
	dir := t.TempDir()
	everyMode(t, dir, "0.1.0", "0.1.1")
	if testing.Short() {
		first := catalogOf(t, dir, "0.1.0")
		must(t, "cluster", "load", "--kind", "kind", "--name", d.name, "--catalog", first)
		d.apply(first, "own", "--install-mode", "OwnNamespace")
		d.comes("own", "memcached-operator.v0.1.0")
		d.readsServed("own", "memcached-operator.v0.1.0")
		return
	}
	d.polls(catalogOf(t, dir, "0.1.0"), catalogOf(t, dir, "0.1.0", "0.1.1"))
}

// readsServed reads what a rehearsal of the Subscription in namespace needs, with the catalog from the pod that serves it: nothing else
// on the cluster says what is in it.
func (d daily) readsServed(namespace, installed string) {
	d.Helper()
	address := d.kubectl("", "get", "catalogsources.operators.coreos.com", "olmkit-catalog", "--namespace", "olm", "-o", "jsonpath={.spec.address}")
	d.kubectl(fmt.Sprintf("{apiVersion: operators.coreos.com/v1alpha1, kind: CatalogSource, metadata: {name: served, namespace: olm}, spec: {sourceType: grpc, address: %q}}", address), "apply", "-f", "-")
	d.kubectl("", "patch", "subscriptions.operators.coreos.com", "memcached-operator", "--namespace", namespace, "--type", "merge", "-p", `{"spec": {"source": "served"}}`)
	eventually(d.T, "OLM says what is installed", func() error {
		if now := d.kubectl("", "get", "subscriptions.operators.coreos.com", "memcached-operator", "--namespace", namespace, "-o", "jsonpath={.status.installedCSV}"); now != installed {
			return fmt.Errorf("it is %q", now)
		}
		return nil
	})
	saved := filepath.Join(d.TempDir(), "saved.json")
	r := d.olmkit(0, "upgrade", "rehearse", "-p", "memcached-operator", "--namespace", namespace, "--save", saved)
	if said := read(d.T, saved); !strings.Contains(r.errOut, "catalog olm/served from the cluster") || !strings.Contains(said, `"olm.bundle"`) || !strings.Contains(said, installed) {
		d.Errorf("read from the catalog's pod %d bytes:\n%s", len(said), r.errOut)
	}
}

// polls installs from a catalog's image, which OLM pulls by a Secret, for each install mode, and pushes a newer catalog.
func (d daily) polls(first, second string) {
	d.tellsOnFailure()
	d.mirrorOPM()
	host, caFile := d.nodeRegistry()
	env := loggedIn(d.T, host)
	reference := host + "/team/catalog:latest"
	push := func(catalog string) {
		d.Helper()
		folder := d.TempDir()
		write(d.T, filepath.Join(folder, "catalog.yaml"), read(d.T, catalog))
		if r := run(d.T, env, "catalog", "push", folder, reference, "--ca-file", caFile); r.code != 0 {
			d.Fatalf("push the catalog: %s", r.errOut)
		}
	}
	push(first)
	for _, namespace := range []string{"tea", "milk", "sugar", "theirs"} {
		d.kubectl("", "create", "namespace", namespace)
	}
	d.kubectl(operatorGroup, "apply", "-f", "-")
	modes := map[string][]string{
		"own":    {"--install-mode", "OwnNamespace", "--approval", "Manual"},
		"single": {"--install-mode", "SingleNamespace=tea"},
		"multi":  {"--install-mode", "MultiNamespace=milk,sugar"},
		"theirs": {"--operator-group", "existing"},
		"all":    nil,
	}
	apply := func(namespace string) {
		d.Helper()
		manifests := must(d.T, append([]string{"subscription", "generate", "--package", "memcached-operator", "--catalog", first, "--image", reference, "--pull-secret", "registry", "--poll-interval", "20s", "--namespace", namespace}, modes[namespace]...)...).out
		if namespace != "theirs" {
			d.kubectl("", "create", "namespace", namespace)
		}
		d.kubectl("", "create", "secret", "docker-registry", "registry", "--namespace", namespace, "--docker-server", host, "--docker-username", registryUser, "--docker-password", registryPassword)
		d.kubectl(manifests, "apply", "-f", "-")
	}
	scoped := []string{"own", "single", "multi", "theirs"}
	for _, namespace := range scoped {
		apply(namespace)
	}
	d.approve("own", "memcached-operator.v0.1.0")
	for _, namespace := range scoped {
		d.comes(namespace, "memcached-operator.v0.1.0")
	}
	push(second)
	d.approve("own", "memcached-operator.v0.1.1")
	for _, namespace := range scoped {
		d.comes(namespace, "memcached-operator.v0.1.1")
		d.kubectl("", "delete", "--namespace", namespace, "subscriptions.operators.coreos.com,clusterserviceversions.operators.coreos.com,operatorgroups.operators.coreos.com,catalogsources.operators.coreos.com", "--all")
	}
	apply("all")
	d.comes("all", "memcached-operator.v0.1.1")
}

// nodeRegistry starts a registry that the cluster's node reaches and trusts, and returns its host and its authority's certificate.
func (d daily) nodeRegistry() (host, caFile string) {
	users := filepath.Join(d.TempDir(), "htpasswd")
	write(d.T, users, registryUser+":"+registryHash+"\n")
	behind := runRegistry(d.T, d.TempDir(), "", fmt.Sprintf("auth: {htpasswd: {realm: tea, path: %q}}", users))
	listener := d.atGateway()
	dir := d.TempDir()
	caFile, certFile, keyFile := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	writeCertificates(d.T, caFile, certFile, keyFile, listener.Addr().(*net.TCPAddr).IP)
	server := &http.Server{Handler: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: behind})}
	go func() { _ = server.ServeTLS(listener, certFile, keyFile) }()
	d.Cleanup(func() { server.Close() })
	host = listener.Addr().String()
	d.configure(host, "ca.crt", read(d.T, caFile))
	d.configure(host, "hosts.toml", fmt.Sprintf("server = \"https://%[1]s\"\n[host.\"https://%[1]s\"]\n  ca = \"%[2]s/%[1]s/ca.crt\"\n", host, hostsFolder))
	return host, caFile
}

// mirrorOPM has the node pull the image of opm, which OLM serves catalogs' images with, from a registry of the test.
func (d daily) mirrorOPM() {
	behind := runRegistry(d.T, d.TempDir(), "", "")
	probe := filepath.Join(d.TempDir(), "grpc_health_probe")
	build := exec.Command("go", "build", "-o", probe, "./test/support/healthprobe")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		d.Fatalf("%v: %s", err, out)
	}
	must(d.T, "image", "push", "--plain-http", "--program", filepath.Join(root, "bin", "opm"), "--entrypoint", "/bin/opm", "--add", probe+"=/bin/grpc_health_probe", behind+"/operator-framework/opm:latest")
	listener := d.atGateway()
	server := &http.Server{Handler: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: behind})}
	go func() { _ = server.Serve(listener) }()
	d.Cleanup(func() { server.Close() })
	d.configure("quay.io", "hosts.toml", fmt.Sprintf("[host.\"http://%s\"]\n", listener.Addr()))
}

// atGateway listens where the cluster's node reaches this machine.
func (d daily) atGateway() net.Listener {
	gateway := ipv4(docker(d.T, "network", "inspect", "kind", "--format", "{{range .IPAM.Config}}{{.Gateway}} {{end}}"))
	listener, err := net.Listen("tcp", net.JoinHostPort(gateway, "0"))
	if err != nil {
		d.Fatal(err)
	}
	return listener
}

// hostsFolder is where containerd looks for what it has to know of a registry.
const hostsFolder = "/etc/containerd/certs.d"

// configure writes a file that tells the node's containerd of the registry host.
func (d daily) configure(host, file, text string) {
	folder := hostsFolder + "/" + host
	cmd := exec.Command("docker", "exec", "--interactive", d.name+"-control-plane", "sh", "-c", "mkdir -p "+folder+" && cat >"+folder+"/"+file)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		d.Fatalf("tell the node of the registry: %v: %s", err, out)
	}
}

// ipv4 is the first of addresses that is one of IPv4.
func ipv4(addresses []string) string {
	for _, a := range addresses {
		if ip := net.ParseIP(a); ip != nil && ip.To4() != nil {
			return a
		}
	}
	return ""
}
