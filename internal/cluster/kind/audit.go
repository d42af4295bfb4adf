package kind

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/cluster"
)

// Where the node has the audit policy and the API server's audit log.
const (
	policyFolder = "/etc/kubernetes/olmkit"
	nodePolicy   = policyFolder + "/audit-policy.json"
	logFolder    = "/var/log/kubernetes"
	nodeLog      = logFolder + "/audit.log"
)

// auditSize bounds what is kept of the audit log in memory, in bytes: once it is full, the older half is let go.
const auditSize = 128 << 20

// policyOf is the file on this machine that is the audit policy of the cluster with the given kubeconfig.
func policyOf(kubeconfig string) string {
	return strings.TrimSuffix(kubeconfig, ".kubeconfig") + ".audit-policy.json"
}

// auditPatch makes the API server keep an audit log, a file that only grows. A patch of no version, with arguments by their
// names, is one for any version of kubeadm's configuration (sigs.k8s.io/kind v0.33.0 pkg/internal/patch/kubeadm_merge.go).
const auditPatch = `- |
  kind: ClusterConfiguration
  apiServer:
    extraArgs:
      audit-policy-file: ` + nodePolicy + `
      audit-log-path: ` + nodeLog + `
      audit-log-maxsize: "1000000"
      audit-log-truncate-enabled: "true"
    extraVolumes:
    - name: audit-policy
      hostPath: ` + policyFolder + `
      mountPath: ` + policyFolder + `
      readOnly: true
    - name: audit-log
      hostPath: ` + logFolder + `
      mountPath: ` + logFolder + `
      pathType: DirectoryOrCreate
`

// auditMount has the node mount the audit policy from the given file.
func auditMount(policy string) string {
	return fmt.Sprintf(`nodes:
- role: control-plane
  extraMounts:
  - hostPath: %q
    containerPath: %s
    readOnly: true
`, policy, nodePolicy)
}

// auditLog is what was read so far of the file on the node.
type auditLog struct {
	mu   sync.Mutex
	read int64 // bytes, also of what was let go
	data []byte
}

// Write takes more of the file.
func (l *auditLog) Write(p []byte) (int, error) {
	l.read += int64(len(p))
	l.data = append(l.data, p...)
	if len(l.data) > auditSize {
		half := l.data[len(l.data)-auditSize/2:]
		l.data = bytes.Clone(half[bytes.IndexByte(half, '\n')+1:])
	}
	return len(p), nil
}

// Audit returns what the API server was asked from since on, in the order in which it was asked, with as much of the objects
// themselves as cluster.AuditPolicy has it keep. Only what the log has grown by is read from the node.
func (c *Cluster) Audit(ctx context.Context, since time.Time) ([]auditv1.Event, error) {
	c.audit.mu.Lock()
	defer c.audit.mu.Unlock()
	if err := c.node.run(ctx, nil, &c.audit, "tail", "--bytes", fmt.Sprintf("+%d", c.audit.read+1), nodeLog); err != nil {
		return nil, fmt.Errorf("read the audit log of cluster %s: %w", c.name, err)
	}
	return cluster.ParseAudit(c.audit.data, since), nil
}
