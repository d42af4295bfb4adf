package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/olmkit/olmkit/internal/cluster/certificates"
)

// Fixed places inside of the cluster's own network namespace, where nothing else is.
const (
	apiPort      = 6443
	etcdAddress  = "127.0.0.1:2379"
	serviceRange = "10.96.0.0/16"
	dnsAddress   = "10.96.0.10" // as kubeadm has it
	podRange     = "10.244.0.0/16"
)

// maxRequest lets InstallPlans, which carry every manifest of a bundle in their status, through etcd (bytes).
const maxRequest = 10 << 20

// plane is a control plane of real components.
type plane struct {
	programs   string // directory of the components
	dir        string // for data, keys and tokens, on tmpfs
	address    netip.Addr
	authority  *certificates.Authority
	adminToken string

	components []*component // in the order of start
}

// startPlane starts etcd, the API server, the controller manager and the scheduler, and waits until the API server is
// ready. hosts are further names under which clients reach the API server.
func startPlane(ctx context.Context, config hostConfig, dir string, address netip.Addr, hosts []string) (*plane, error) {
	authority, err := certificates.NewAuthority("olmkit embedded cluster")
	if err != nil {
		return nil, fmt.Errorf("make the cluster's certificate authority: %w", err)
	}
	p := &plane{programs: config.Programs, dir: dir, address: address, authority: authority, adminToken: newToken()}
	hosts = append(hosts, "localhost", "127.0.0.1", address.String(), "10.96.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	if err := writeIdentities(authority, dir, hosts); err != nil {
		return nil, err
	}
	var tokens strings.Builder
	fmt.Fprintf(&tokens, "%s,admin,admin,system:masters\n", p.adminToken)
	for _, user := range []string{"system:kube-controller-manager", "system:kube-scheduler"} {
		token := newToken()
		fmt.Fprintf(&tokens, "%s,%s,%s\n", token, user, user)
		if err := clientcmd.WriteToFile(p.kubeconfig(p.server(), token), p.kubeconfigOf(user)); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(p.file("tokens.csv"), []byte(tokens.String()), 0o600); err != nil {
		return nil, err
	}
	p.start("etcd",
		"--data-dir="+p.file("etcd"), "--name=embedded", "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=http://"+etcdAddress, "--advertise-client-urls=http://"+etcdAddress,
		"--listen-peer-urls=http://127.0.0.1:0", "--max-request-bytes="+strconv.Itoa(maxRequest))
	apiserver, err := p.apiserverArgs(config)
	if err != nil {
		return nil, err
	}
	p.start("kube-apiserver", apiserver...)
	if err := p.waitReady(ctx); err != nil {
		return nil, err
	}
	p.start("kube-controller-manager",
		"--kubeconfig="+p.kubeconfigOf("system:kube-controller-manager"), "--use-service-account-credentials",
		"--service-account-private-key-file="+p.file("service-accounts.key"), "--root-ca-file="+p.file("ca.crt"),
		"--leader-elect=false", "--bind-address=127.0.0.1", "--cert-dir="+p.file("kcm"), "--authentication-skip-lookup",
		"--kube-api-qps=200", "--kube-api-burst=400", "--min-resync-period=12h")
	p.start("kube-scheduler",
		"--kubeconfig="+p.kubeconfigOf("system:kube-scheduler"), "--leader-elect=false", "--bind-address=127.0.0.1",
		"--cert-dir="+p.file("scheduler"), "--authentication-skip-lookup")
	return p, nil
}

// apiserverArgs are kube-apiserver's arguments.
func (p *plane) apiserverArgs(config hostConfig) ([]string, error) {
	args := []string{
		"--etcd-servers=http://" + etcdAddress, "--bind-address=" + p.address.String(), "--secure-port=" + strconv.Itoa(apiPort),
		"--token-auth-file=" + p.file("tokens.csv"), "--authorization-mode=RBAC", "--client-ca-file=" + p.file("ca.crt"),
		"--tls-cert-file=" + p.file("apiserver.crt"), "--tls-private-key-file=" + p.file("apiserver.key"),
		"--kubelet-client-certificate=" + p.file("kubelet-client.crt"), "--kubelet-client-key=" + p.file("kubelet-client.key"),
		"--kubelet-certificate-authority=" + p.file("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + p.file("service-accounts.key"),
		"--service-account-signing-key-file=" + p.file("service-accounts.key"), "--service-cluster-ip-range=" + serviceRange,
		"--enable-aggregator-routing=true", "--cert-dir=" + p.file("apiserver"), "--profiling=false", "--watch-cache=true",
		"--requestheader-client-ca-file=" + p.file("front-proxy-ca.crt"), "--requestheader-allowed-names=" + frontProxy,
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p.file(frontProxy+".crt"), "--proxy-client-key-file=" + p.file(frontProxy+".key"),
		"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000", "--allow-privileged",
	}
	if len(config.Admission) > 0 {
		args = append(args, "--enable-admission-plugins="+strings.Join(config.Admission, ","))
	}
	if config.Audit {
		audit, err := p.auditArgs()
		if err != nil {
			return nil, err
		}
		args = append(args, audit...)
	}
	return args, nil
}

// server is where the API server listens: at this address alone, since all of Services are this network namespace's as well.
func (p *plane) server() string { return netip.AddrPortFrom(p.address, apiPort).String() }

func (p *plane) file(name string) string { return filepath.Join(p.dir, name) }

func (p *plane) kubeconfigOf(user string) string {
	return p.file(strings.TrimPrefix(user, "system:") + ".kubeconfig")
}

func (p *plane) start(name string, args ...string) {
	p.components = append(p.components, start(name, filepath.Join(p.programs, "cluster"), args...))
}

func (p *plane) component(name string) *component {
	for _, c := range p.components {
		if c.name == name {
			return c
		}
	}
	return nil
}

// kubeconfig returns credentials for the API server at host:port.
func (p *plane) kubeconfig(server, token string) clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters["olmkit"] = &clientcmdapi.Cluster{Server: "https://" + server, CertificateAuthorityData: p.authority.PEM}
	config.AuthInfos["olmkit"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["olmkit"] = &clientcmdapi.Context{Cluster: "olmkit", AuthInfo: "olmkit"}
	config.CurrentContext = "olmkit"
	return *config
}

// config returns the administrator's credentials inside of the namespace, without a limit on the rate of requests.
func (p *plane) config() *rest.Config {
	return &rest.Config{
		Host: "https://" + p.server(), BearerToken: p.adminToken, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: p.authority.PEM},
	}
}

// waitReady waits until the API server says that it is ready.
func (p *plane) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	client, err := kubernetes.NewForConfig(p.config())
	if err != nil {
		return err
	}
	for {
		var status int
		client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status)
		if status == http.StatusOK {
			return nil
		}
		for _, c := range p.components {
			if c.crashes() > 3 {
				return fmt.Errorf("%s does not start; it said last:\n%s", c.name, c.log.tail(8))
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API server did not become ready: %w; it said last:\n%s", context.Cause(ctx), p.component("kube-apiserver").log.tail(8))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stored returns the value under a key of etcd, by the JSON gateway of its API, or nil where there is none.
func stored(ctx context.Context, key string) ([]byte, error) {
	body, err := json.Marshal(map[string][]byte{"key": []byte(key)})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+etcdAddress+"/v3/kv/range", strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read %s from etcd: %w", key, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read %s from etcd: it answers %s", key, response.Status)
	}
	var answer struct {
		Kvs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("read %s from etcd: %w", key, err)
	}
	if len(answer.Kvs) == 0 {
		return nil, nil
	}
	return answer.Kvs[0].Value, nil
}
