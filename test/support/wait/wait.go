// Package wait has tests wait for what a cluster does.
package wait

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// For calls f every 50 ms until it returns nil. It fails the test with what and f's last error when limit or the test's
// context is over.
func For(t testing.TB, limit time.Duration, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) || t.Context().Err() != nil {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// ForEvent waits up to limit for an event of the object called name, in the namespace default, with the given reason and
// words in its message.
func ForEvent(t testing.TB, limit time.Duration, client kubernetes.Interface, name, reason, words string) {
	t.Helper()
	For(t, limit, "event "+reason+" of "+name, func() error {
		events, err := client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason + ",involvedObject.name=" + name})
		if err != nil {
			return err
		}
		var seen []string
		for _, e := range events.Items {
			if strings.Contains(e.Message, words) {
				return nil
			}
			seen = append(seen, e.Message)
		}
		return fmt.Errorf("none says %q: %q", words, seen)
	})
}
