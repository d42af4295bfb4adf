package kind

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/cluster"
)

// kindConfig is what configuration uses of kind's configuration, as its API v1alpha4 names it.
type kindConfig struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Networking struct {
		APIServerAddress string `json:"apiServerAddress"`
		APIServerPort    int    `json:"apiServerPort"`
	} `json:"networking"`
	ContainerdConfigPatches []string `json:"containerdConfigPatches"`
	KubeadmConfigPatches    []string `json:"kubeadmConfigPatches"`
	Nodes                   []struct {
		Role        string `json:"role"`
		ExtraMounts []struct {
			HostPath      string `json:"hostPath"`
			ContainerPath string `json:"containerPath"`
			ReadOnly      bool   `json:"readOnly"`
		} `json:"extraMounts"`
	} `json:"nodes"`
}

// TestConfiguration reads what kind and kubeadm are given, and looks for the audit log in it.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		for _, policy := range []string{"", "/c/a: b.json"} {
			var config kindConfig
			if err := yaml.UnmarshalStrict([]byte(configuration(&engine{cgroupV1: old}, 7, policy)), &config); err != nil {
				t.Fatal(err)
			}
			if config.Kind != "Cluster" || config.APIVersion != "kind.x-k8s.io/v1alpha4" || config.Networking.APIServerPort != 7 {
				t.Errorf("the port is %d", config.Networking.APIServerPort)
			}
			var mounted []string
			for _, node := range config.Nodes {
				for _, m := range node.ExtraMounts {
					mounted = append(mounted, fmt.Sprint(node.Role, " ", m.HostPath, " ", m.ContainerPath, " ", m.ReadOnly))
				}
			}
			if got, want := fmt.Sprint(mounted), "[control-plane "+policy+" "+nodePolicy+" true]"; policy != "" && got != want || policy == "" && len(config.Nodes) > 0 {
				t.Errorf("with policy %q the nodes mount %s", policy, got)
			}
			audits, tolerates := false, false
			for _, patch := range config.KubeadmConfigPatches {
				var p struct {
					APIVersion, Kind string
					APIServer        struct {
						ExtraArgs    map[string]string
						ExtraVolumes []struct{ HostPath, MountPath string }
					}
				}
				if err := yaml.Unmarshal([]byte(patch), &p); err != nil {
					t.Fatal(err)
				}
				args := p.APIServer.ExtraArgs
				audits = audits || p.Kind == "ClusterConfiguration" && p.APIVersion == "" && args["audit-policy-file"] == nodePolicy &&
					args["audit-log-path"] == nodeLog && fmt.Sprint(p.APIServer.ExtraVolumes) == fmt.Sprintf("[{%[1]s %[1]s} {%[2]s %[2]s}]", policyFolder, logFolder)
				tolerates = tolerates || p.Kind == "KubeletConfiguration"
			}
			if audits != (policy != "") || tolerates != old {
				t.Errorf("with policy %q and cgroup v1 %v: audit log %v, cgroup v1 tolerated %v", policy, old, audits, tolerates)
			}
		}
	}
}

// TestAuditLog reads a log in parts that end anywhere, and lets the oldest go when it is too long.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	const event = `{"auditID":"%d","requestReceivedTimestamp":"2026-01-02T03:04:05.000000Z"}` + "\n"
	var l auditLog
	last := fmt.Sprintf(event, 2)
	for _, part := range []string{fmt.Sprintf(event, 1), last[:20], last[20:]} {
		_, _ = l.Write([]byte(part))
	}
	if got := cluster.ParseAudit(l.data, time.Time{}); len(got) != 2 || l.read != int64(2*len(last)) {
		t.Errorf("read %d: %v", l.read, got)
	}
	long := `{"auditID":"long","verb":"` + strings.Repeat("x", 1<<20) + `","requestReceivedTimestamp":"2026-01-02T03:04:05.000000Z"}` + "\n"
	for range 200 {
		_, _ = l.Write([]byte(long))
	}
	if !bytes.HasPrefix(l.data, []byte(`{"auditID":"long"`)) || !bytes.HasSuffix(l.data, []byte("\n")) || len(l.data) > auditSize || len(l.data) < auditSize/2-len(long) ||
		l.read != int64(2*len(last)+200*len(long)) {
		t.Errorf("kept %d of %d", len(l.data), l.read)
	}
}
