package observe

import (
	"slices"
	"testing"
)

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"redis://user:pass@a-0.a.shop.svc:6379/0?timeout=5", []string{"a-0.a.shop.svc:6379"}},
		{"redis://user:1234@a:6379", []string{"a:6379"}},
		{"user:12ab@a:6379", []string{"a:6379"}},
		{"servers=a:6379,b.shop:6380;", []string{"a:6379", "b.shop:6380"}},
		{"at 12:30:45 redis:8.2 sha256:12ab localhost:80 127.0.0.1:80 x_a:1 a:123456", nil},
		{"a:", nil},
		{"", nil},
	} {
		if got := Addresses(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestAddressesOnly(t *testing.T) {
	for text, want := range map[string][]string{
		"a:6379":                               {"a:6379"},
		"redis://user:1234@a:6379/0":           {"a:6379"},
		"http://a:80, admin:1234":              {"a:80"},
		"listen a:6379\nauth admin:1234":       nil,
		"admin:1234 is who writes to a.b:6379": nil,
	} {
		if got := addressesOnly(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
