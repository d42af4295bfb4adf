package observe

import (
	"fmt"
	"strings"
	"testing"
)

func TestHide(t *testing.T) {
	var s secrets
	secret := map[string]any{"type": "Opaque", "data": map[string]any{
		"password": "czNjcmV0LXZhbHVl", "user": "dXNlcm5hbWUx", "token": "bWVtY2FjaGVk", "api-key": "c2hvcnQx",
	}}
	s.hide(secret)
	if said := fmt.Sprint(secret); strings.Contains(said, "czNjcmV0") || strings.Count(said, "(hidden) sha256:") != 4 || secret["type"] != "Opaque" {
		t.Error(said)
	}
	inner := map[string]any{"conf": "user=username1\npassword=s3cret-value\n", "image": "memcached:1", "port": int64(1)}
	other := map[string]any{"data": inner, "list": []any{"short1", "s3cret-value"}}
	digest := secret["data"].(map[string]any)["password"].(string)
	want := fmt.Sprint(map[string]any{
		"data": map[string]any{"conf": "user=username1\npassword=" + digest + "\n", "image": "memcached:1", "port": int64(1)}, "list": []any{"short1", digest},
	})
	if said := fmt.Sprint(s.hideIn(other)); said != want {
		t.Errorf("%s\nwant %s", said, want)
	}
	if inner["conf"] != "user=username1\npassword=s3cret-value\n" {
		t.Error("it was changed in place")
	}
	if !Hidden().MatchString(digest) {
		t.Errorf("%s is not told from others", digest)
	}
}
