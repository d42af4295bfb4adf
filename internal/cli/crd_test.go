package cli

import (
	"strings"
	"testing"

	"github.com/olmkit/olmkit/pkg/storagemigration"
)

func TestMigrationText(t *testing.T) {
	both, one := []string{"v1beta1", "v1"}, []string{"v1"}
	for want, r := range map[string]storagemigration.Result{
		"teas: all 0 objects can be stored as v1; status.storedVersions is v1beta1, v1\n":      {Version: "v1", StoredVersions: both, DryRun: true},
		"teas: all 7 objects can be stored as v1; status.storedVersions is v1beta1\n":          {Version: "v1", StoredVersions: both[:1], DryRun: true, Objects: 7},
		"teas: 7 objects are stored as v1; status.storedVersions was v1beta1, v1, and is v1\n": {Version: "v1", StoredVersions: both, Objects: 7, Pruned: true},
		"teas: nothing to migrate: status.storedVersions is v1\n":                              {Version: "v1", StoredVersions: one},
		"teas: nothing to migrate: status.storedVersions is v1 \n":                             {Version: "v1", StoredVersions: one, DryRun: true},
	} {
		r.CRD = "teas"
		var out strings.Builder
		if err := printMigration(&out, r); err != nil || strings.TrimSpace(out.String()) != strings.TrimSpace(want) {
			t.Errorf("%+v is said as %q, want %q (%v)", r, out.String(), want, err)
		}
	}
}
