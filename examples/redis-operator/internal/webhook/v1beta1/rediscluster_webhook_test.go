package v1beta1

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	redisv1beta1 "github.com/olmkit/olmkit/examples/redis-operator/api/v1beta1"
)

func with(size string, config map[string]string) *redisv1beta1.RedisCluster {
	rc := &redisv1beta1.RedisCluster{}
	rc.Spec.Storage.Size, rc.Spec.Config = resource.MustParse(size), config
	return rc
}

func TestValidate(t *testing.T) {
	fine, reserved := map[string]string{"maxmemory": "1mb"}, map[string]string{"port": "1"}
	for name, test := range map[string]struct {
		before, after *redisv1beta1.RedisCluster
		want          string // part of the error
	}{
		"created":                         {nil, with("1Gi", fine), ""},
		"created, no size":                {nil, with("-1", fine), "spec.storage.size"},
		"created, reserved directive":     {nil, with("1Gi", reserved), "spec.config[port]"},
		"created, two lines":              {nil, with("1Gi", map[string]string{"save": "1\nport 1"}), "spec.config[save]"},
		"updated":                         {with("1Gi", nil), with("1024Mi", fine), ""},
		"updated, other size":             {with("1Gi", nil), with("2Gi", nil), "cannot be changed"},
		"updated, older than the rule":    {with("1Gi", reserved), with("1Gi", reserved), ""},
		"updated, and breaking the rules": {with("1Gi", fine), with("1Gi", reserved), "spec.config[port]"},
	} {
		t.Run(name, func(t *testing.T) {
			var v RedisClusterCustomValidator
			var err error
			if test.before == nil {
				_, err = v.ValidateCreate(t.Context(), test.after)
			} else {
				_, err = v.ValidateUpdate(t.Context(), test.before, test.after)
			}
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("the error is %v, want one about %s", err, test.want)
			}
		})
	}
}
