package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/olmkit/olmkit/internal/cluster"
)

// auditSize bounds the audit log (megabytes). One file that is full is kept beside the one that is written.
const auditSize = 64

// auditArgs makes the API server keep an audit log, behind a buffer that no request waits for: what finds it full is lost.
func (p *plane) auditArgs() ([]string, error) {
	if err := os.WriteFile(p.file("audit-policy.json"), []byte(cluster.AuditPolicy), 0o600); err != nil {
		return nil, err
	}
	return []string{
		"--audit-policy-file=" + p.file("audit-policy.json"), "--audit-log-path=" + p.file("audit.log"), "--audit-log-mode=batch",
		fmt.Sprintf("--audit-log-maxsize=%d", auditSize), "--audit-log-maxbackup=1", "--audit-log-maxage=0", "--audit-log-truncate-enabled",
	}, nil
}

// writeAudit copies the audit log to w from since on, the oldest events first.
func (p *plane) writeAudit(w io.Writer, since time.Time) error {
	// The newest file is opened first: when it is full meanwhile, it is found once more among the older ones, not missed.
	newest, err := os.Open(p.file("audit.log"))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the cluster keeps no audit log")
	} else if err != nil {
		return err
	}
	defer newest.Close()
	opened, err := newest.Stat()
	if err != nil {
		return err
	}
	older, err := filepath.Glob(p.file("audit-*.log")) // sorted; named after the time
	if err != nil {
		return err
	}
	for _, path := range older {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil && !os.SameFile(info, opened) {
			err = cluster.CopyAudit(w, f, since)
		}
		f.Close()
		if err != nil {
			return err
		}
	}
	return cluster.CopyAudit(w, newest, since)
}
