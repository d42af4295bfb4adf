package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// Who interrupts a command is told what it could not take away.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		said string
	}{
		{context.Canceled, "interrupted; cleaned up\n"},
		{errors.Join(context.Canceled, leftError{errors.New("end the cluster: it hangs")}), "interrupted, and not all is cleaned up: end the cluster: it hangs\n"},
	} {
		var said strings.Builder
		if code := complain(&said, test.err, true); code != exitInterrupted || said.String() != test.said {
			t.Errorf("exit code %d: %s", code, &said)
		}
	}
}

// Whatever is wrong with a command line, the exit code is the one for that.
func TestExitCodeOfCommandLines(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"no-such-command", "catalog no-such-command", "catalog validate", "catalog validate --no-such-flag",
		"subscription generate", "bundle generate", "bundle generate --version 1.0.0",
		"upgrade test x --shard 2/1", "upgrade test x --cluster moon", "upgrade test x --parallel -1", "upgrade test x --cluster existing --image a=b",
		"upgrade test x --install-olm", "report merge",
	} {
		var complaint strings.Builder
		code := Run(t.Context(), Streams{In: strings.NewReader(""), Out: io.Discard, Err: &complaint}, strings.Fields(args))
		if code != exitUsage {
			t.Errorf("olmkit %s: exit code %d: %s", args, code, &complaint)
		}
	}
}

// TestFullOutput: what only prints fails where its output has no room, and says so.
func TestFullOutput(t *testing.T) {
	t.Parallel()
	commands := []string{"", "help", "--help", "help catalog", "catalog", "completion bash", "completion zsh", "completion fish", "completion powershell", "completion",
		"explain CRD001", "explain --help", "catalog validate --explain CRD001", "version"}
	for _, command := range runnable(newRoot(&session{})) {
		commands = append(commands, command+" --help", "help "+command)
	}
	for _, args := range commands {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		var complaint strings.Builder
		code := Run(t.Context(), Streams{In: strings.NewReader(""), Out: full, Err: &complaint}, strings.Fields(args))
		if code != exitFailed || !strings.Contains(complaint.String(), "no space left on device") || !strings.Contains(complaint.String(), "fix: make room") {
			t.Errorf("olmkit %s: exit code %d: %s", args, code, &complaint)
		}
		if err := full.Close(); err != nil {
			t.Error(err)
		}
	}
}
