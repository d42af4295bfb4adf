package judge

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

func TestNewObjects(t *testing.T) {
	sound, alone := Dealt{Made: true, Ready: 1, Well: true, Alike: true}, Dealt{}
	follows := func(field string, times int) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Follows: map[string]int{field: times}}
	}
	mounts := func(times int, program string) New {
		n := follows("Secret tls", times)
		n.Mounts, n.Programs = map[string][]string{"Secret tls": {"StatefulSet"}}, map[string]string{"StatefulSet": program, "Deployment": "another " + program}
		return n
	}
	honours := func(program string, traces ...string) New {
		n := follows("spec.a", Surely)
		n.Traces = map[string][]string{"spec.a": {"ConfigMap data.conf", "StatefulSet spec.args[0]"}}
		n.Honours, n.Programs = map[string][]string{"spec.a": traces}, map[string]string{"StatefulSet": program}
		return n
	}
	remakes := func(does bool) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Remakes: map[string]bool{"Service": does}}
	}
	reverts := func(does bool) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Reverts: map[string]bool{"ConfigMap": does}}
	}
	both := New{Sample: "Pot/n/a", Copy: sound, Original: sound}
	asks := func(c Carriage) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Carried: map[string]Carriage{"spec.tolerations": c}}
	}
	hidden := asks(absent)
	hidden.Secrets = []string{"a: database"}
	moves := func(template string, kinds ...string) New {
		dealt := sound
		dealt.Kinds = []string{"Service", "StatefulSet"}
		return New{Sample: "Pot/n/a", Copy: dealt, Original: dealt, Follows: map[string]int{"spec.config": Surely}, Makes: []string{"Role reader-…", "RoleBinding"},
			Moves: map[string][]string{"spec.config": kinds}, Programs: map[string]string{"StatefulSet": template}}
	}
	says := func(copied, sample bool) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Says: map[string]bool{"status.endpoint": copied}, SampleSays: map[string]bool{"status.endpoint": sample}}
	}
	saysBoth := func(endpoint bool) New {
		n := says(endpoint, true)
		n.Says["status.phase"], n.SampleSays["status.phase"] = true, true
		return n
	}
	movesTwo := func(kinds ...string) New {
		n := moves("t", kinds...)
		n.Copy.Kinds = []string{"Deployment", "Service", "StatefulSet"}
		return n
	}
	atNone := func(why string) New {
		n := both
		n.AtNone = &why
		return n
	}
	keeps := func(traces ...string) New {
		n := moves("t", "Service", "StatefulSet")
		n.Keeps = map[string][]string{"spec.config": traces}
		return n
	}
	deprecates := func(n New, field string) New {
		n.Deprecated = map[string]bool{field: true}
		return n
	}
	leaves := func(kept int, kinds ...string) New {
		n := New{Sample: "Pot/n/a", Copy: sound, Original: sound, Kept: make([]observe.Operand, kept)}
		for _, kind := range kinds {
			n.Unowned = append(n.Unowned, Left{kind, "a"})
		}
		return n
	}
	finalized := func(n New) New {
		n.Finalizers = []string{"a"}
		return n
	}
	claims := func(kept, cleared bool) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Kept: make([]observe.Operand, map[bool]int{true: 1}[kept]), Cleared: cleared}
	}
	tells := func(finalizers, events string) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Says: map[string]bool{}, Finalizers: strings.Fields(finalizers), Events: strings.Fields(events)}
	}
	parts := func(known bool, lasting, any string) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Parted: known, Lasting: strings.Fields(lasting), Partings: strings.Fields(any)}
	}
	rolls := func(does bool) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Rolls: map[string]bool{"spec.config": does}}
	}
	marks := func(stay bool) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Marks: map[string]bool{"Service": stay}, Reverts: map[string]bool{"ConfigMap": true}}
	}
	labels := func(stay bool) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Labels: map[string]bool{"Service": stay}, Reverts: map[string]bool{"ConfigMap": true}}
	}
	makes := func(names ...string) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Makes: names}
	}
	blind := marks(true)
	blind.Reverts = nil
	picks := func(others string) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Picks: map[string][]string{"Service": strings.Fields(others)}}
	}
	writes := func(paths string) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Written: strings.Fields(paths)}
	}
	distant := func(list ...Distant) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Elsewhere: append([]Distant{}, list...)}
	}
	role := func(gone bool) Distant { return Distant{Kind: "ClusterRole", Name: "view-a", Gone: gone} }
	index := func(gone bool) Distant { return Distant{Kind: "ConfigMap", Name: "index", Gone: gone, Shared: true} }
	blocks := func(does, may bool) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Blocks: does, MayBlock: may}
	}
	turns := func(names map[string]bool) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Unsteady: names}
	}
	stays := func(fields ...string) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Behind: append([]string{}, fields...)}
	}
	sheds := func(field string, times int) New {
		n := follows(field, times)
		n.Sheds = map[string][]string{field: {"ConfigMap"}}
		return n
	}
	went := func(names ...string) New {
		n := follows("spec.a (to 1)", Surely)
		n.Sheds, n.Makes = map[string][]string{"spec.a (to 1)": names}, []string{"ConfigMap", "PodDisruptionBudget"}
		return n
	}
	reports := func(names ...string) New {
		n := follows("spec.a", Surely)
		n.Tells, n.States = map[string][]string{"spec.a": names}, []string{"endpoint", "users"}
		return n
	}
	of := func(sample string, n New) New {
		n.Of = sample
		return n
	}
	pauses := func(p Pause) New {
		return New{Sample: "Pot/n/a", Copy: sound, Original: sound, Pauses: map[Paused]Pause{{"spec.paused", "spec.a"}: p}}
	}
	kinds := func(copied, original string) New {
		dealt := func(kinds string) Dealt {
			d := sound
			d.Kinds = strings.Fields(kinds)
			return d
		}
		return New{Sample: "Pot/n/a", Copy: dealt(copied), Original: dealt(original)}
	}
	for name, c := range map[string]struct {
		was, is New
		want    []string
	}{
		"as before":                              {both, both, nil},
		"ignored":                                {both, New{Sample: "Pot/n/a", Copy: alone, Original: sound}, []string{"error U517 Pot/n/a: v2 does less for a new object like it: within 45s nothing is made that belongs to it, nothing runs for it, its status does not say that it is well; with v1 it was as for this one"}},
		"never ready":                            {both, New{Sample: "Pot/n/a", Copy: Dealt{Made: true, Well: true, Alike: true}, Original: sound}, []string{"error U517 Pot/n/a: v2 does less for a new object like it: within 45s nothing runs for it; with v1 it was as for this one"}},
		"nor the sample":                         {both, New{Sample: "Pot/n/a", Copy: alone, Original: alone}, nil},
		"nor before":                             {New{Copy: alone, Original: sound}, New{Copy: alone, Original: sound}, nil},
		"half of it before":                      {New{Copy: Dealt{Made: true}, Original: sound}, New{Sample: "Pot/n/a", Copy: alone, Original: sound}, []string{"error U517 Pot/n/a: v2 does less for a new object like it: within 45s nothing is made that belongs to it; with v1 it was as for this one"}},
		"belongs to nobody":                      {both, New{Sample: "Pot/n/a", Copy: alone, Original: sound, Unowned: []Left{{"Deployment", "a"}, {"Service", "a"}}}, []string{"error U518 Pot/n/a: v2 makes Deployment a, Service a for a new object like it without an owner reference, and it stayed when the object was deleted; with v1 it did not"}},
		"belonged to nobody":                     {New{Copy: sound, Original: sound, Unowned: []Left{{"Secret", "a"}}}, New{Copy: sound, Original: sound, Unowned: []Left{{"Secret", "a"}}}, nil},
		"names are the version's":                {New{Copy: sound, Original: sound, Unowned: []Left{{"Secret", "b"}}}, New{Copy: sound, Original: sound, Unowned: []Left{{"Secret", "a"}}}, nil},
		"one kind more":                          {New{Copy: sound, Original: sound, Unowned: []Left{{"Secret", "a"}}}, New{Sample: "Pot/n/a", Copy: sound, Original: sound, Unowned: []Left{{"Secret", "a"}, {"Service", "a"}}}, []string{"error U518 Pot/n/a: v2 makes Service a for a new object like it without an owner reference, and it stayed when the object was deleted; with v1 it did not"}},
		"was deleted before the copy":            {New{Copy: sound, Original: sound, Removed: []string{"Secret"}}, New{Copy: sound, Original: sound, Unowned: []Left{{"Secret", "a"}}}, nil},
		"another was deleted before":             {New{Copy: sound, Original: sound, Removed: []string{"Secret"}}, New{Sample: "Pot/n/a", Copy: sound, Original: sound, Unowned: []Left{{"Secret", "a"}, {"Service", "a"}}}, []string{"error U518 Pot/n/a: v2 makes Service a for a new object like it without an owner reference, and it stayed when the object was deleted; with v1 it did not"}},
		"workloads belonged to nobody":           {New{Copy: sound, Original: sound, Unowned: []Left{{"Deployment", "b"}}}, New{Copy: sound, Original: sound, Unowned: []Left{{"Service", "a"}}}, nil},
		"nobody was well":                        {New{Copy: Dealt{Made: true, Ready: 1}, Original: Dealt{Made: true, Ready: 1}}, New{Copy: Dealt{Made: true, Ready: 1}, Original: sound}, nil},
		"goes elsewhere, too":                    {distant(role(true)), distant(role(true)), nil},
		"stays elsewhere":                        {distant(role(true)), distant(role(false)), []string{"error U518 Pot/n/a: v2 makes ClusterRole view-a for a new object like it, and it stayed when the object was deleted; with v1 it did not"}},
		"stays under another name":               {distant(role(true)), distant(Distant{Kind: "ClusterRole", Name: "a"}), []string{"error U518 Pot/n/a: v2 makes ClusterRole a for a new object like it, and it stayed when the object was deleted; with v1 it did not"}},
		"always stayed elsewhere":                {distant(role(false)), distant(role(false)), nil},
		"is new and stays":                       {distant(), distant(role(false)), []string{"error U518 Pot/n/a: v2 makes ClusterRole view-a for a new object like it, and it stayed when the object was deleted; with v1 it did not"}},
		"is new and may be kept":                 {distant(), distant(Distant{Kind: "Secret", Name: "backups/a"}), []string{"warning U518 Pot/n/a: v2 makes Secret backups/a for a new object like it, and it stayed when the object was deleted; with v1 it did not"}},
		"stays where another was deleted before": {New{Copy: sound, Original: sound, Elsewhere: []Distant{}, Removed: []string{"ClusterRole"}}, distant(role(false)), nil},
		"was not kept":                           {distant(Distant{Kind: "Secret", Name: "backups/a", Gone: true}), distant(Distant{Kind: "Secret", Name: "backups/a"}), []string{"error U518 Pot/n/a: v2 makes Secret backups/a for a new object like it, and it stayed when the object was deleted; with v1 it did not"}},
		"a volume is labelled":                   {distant(), distant(Distant{Kind: "VolumeSnapshotContent", Name: "a", Shared: true}), nil},
		"another sample has it":                  {distant(), of("b", distant(role(false))), nil},
		"is taken out of the index":              {distant(index(true)), distant(index(true)), nil},
		"stays in the index":                     {distant(index(true)), distant(index(false)), []string{"error U518 Pot/n/a: what v2 writes about a new object like it into ConfigMap index stayed there when the object was deleted; with v1 it did not"}},
		"always stayed in the index":             {distant(index(false)), distant(index(false)), nil},
		"is in no index any more":                {distant(index(true)), distant(), nil},
		"nothing is known of elsewhere":          {New{Sample: "Pot/n/a", Copy: sound, Original: sound}, distant(role(false)), nil},
		"is not made elsewhere any more":         {distant(role(true), role(true)), distant(), []string{"warning U514 Pot/n/a: v2 makes no ClusterRole for a new object like it any more, of the cluster's scope, in another namespace or without an owner; v1 did"}},
		"may block its deletion":                 {blocks(true, true), blocks(true, true), nil},
		"may not block its deletion any more":    {blocks(true, true), blocks(true, false), []string{"error U211 Pot/n/a: v2 makes things for a new object like it that block its deletion (blockOwnerDeletion), and may not update its finalizers any more; v1 may. Clusters with the admission plugin OwnerReferencesPermissionEnforcement, as OpenShift, refuse them"}},
		"could not block its deletion":           {blocks(true, false), blocks(true, false), nil},
		"does not block its deletion any more":   {blocks(true, true), blocks(false, false), nil},
		"is always in order":                     {turns(map[string]bool{}), turns(map[string]bool{}), nil},
		"turns, and replaces pods":               {turns(map[string]bool{}), turns(map[string]bool{"ConfigMap": true}), []string{"error U524 Pot/n/a: v2 writes the ConfigMap of a new object like it again with the same words in another order, as who goes through a map in Go does; v1 did not"}},
		"turns, and replaces none":               {turns(map[string]bool{}), turns(map[string]bool{"Service": false}), []string{"warning U524 Pot/n/a: v2 writes the Service of a new object like it again with the same words in another order, as who goes through a map in Go does; v1 did not"}},
		"always turned":                          {turns(map[string]bool{"ConfigMap": true}), turns(map[string]bool{"ConfigMap": true}), nil},
		"it was not known whether it turns":      {turns(nil), turns(map[string]bool{"ConfigMap": true}), nil},
		"is as what is new":                      {stays(), stays(), nil},
		"is not as what is new":                  {stays(), stays("Deployment spec.b", "PodDisruptionBudget"), []string{"warning U525 Pot/n/a: v2 makes for a new object of the same spec what this one does not get: Deployment spec.b, PodDisruptionBudget; with v1 they were the same"}},
		"never was as what is new":               {stays("Deployment spec.b"), stays("Deployment spec.b"), nil},
		"leaves what is called otherwise":        {New{Beside: []string{}}, New{Sample: "Pot/n/a", Beside: []string{"RoleBinding access-…"}}, []string{"warning U525 Pot/n/a: v2 makes others for a new object of the same spec, and leaves what v1 made of this one beside them: RoleBinding access-…"}},
		"leaves what runs":                       {New{Beside: []string{}}, New{Sample: "Pot/n/a", Beside: []string{"Deployment server-…"}}, []string{"error U525 Pot/n/a: v2 makes others for a new object of the same spec, and leaves what v1 made of this one beside them: Deployment server-…"}},
		"left it before":                         {New{Beside: []string{"Deployment server-…"}}, New{Sample: "Pot/n/a", Beside: []string{"Deployment server-…"}}, nil},
		"is owned twice":                         {New{OwnedTwice: []string{}}, New{Sample: "Pot/n/a", OwnedTwice: []string{"ConfigMap", "Deployment"}}, []string{"warning U525 Pot/n/a: v2 applies what v1 wrote before under another name (metadata.managedFields), which still owns the same fields of ConfigMap, Deployment: what v2 leaves out of them from now on stays there"}},
		"is owned twice, and nothing stays":      {New{OwnedTwice: []string{}}, New{Sample: "Pot/n/a", OwnedTwice: []string{"ConfigMap"}, TakenOut: map[string][]string{"spec.a": nil}}, []string{"warning U525 Pot/n/a: v2 applies what v1 wrote before under another name (metadata.managedFields), which still owns the same fields of ConfigMap: what v2 leaves out of them from now on stays there"}},
		"is owned twice, and stays":              {New{OwnedTwice: []string{}}, New{Sample: "Pot/n/a", OwnedTwice: []string{"ConfigMap"}, TakenOut: map[string][]string{"spec.a": nil, "spec.b": {"ConfigMap data.c"}}}, []string{"error U525 Pot/n/a: v2 applies what v1 wrote before under another name (metadata.managedFields), which still owns the same fields of ConfigMap: what v2 leaves out of them from now on stays there"}},
		"was owned twice":                        {New{OwnedTwice: []string{"ConfigMap"}}, New{Sample: "Pot/n/a", OwnedTwice: []string{"ConfigMap"}}, nil},
		"follows less of another sample":         {follows("spec.a (to 0)", Surely), of("b", follows("spec.a (to 0)", 0)), nil},
		"goes on where there are to be none":     {follows("spec.a (to 0)", Surely), follows("spec.a (to 0)", 0), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: within 30s nothing that is made for it follows a change of its spec.a (to 0)"}},
		"may have a default":                     {follows("spec.a (leaving that out)", Surely), follows("spec.a (leaving that out)", 0), []string{"warning U514 Pot/n/a: v2 does less for a new object like it than v1: within 30s nothing that is made for it follows a change of its spec.a (leaving that out)"}},
		"keeps a part of what a field asked for": {keeps(), keeps("Service spec.ports[0].port"), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: after a change of its spec.config, what it asked for before stays in Service spec.ports[0].port, not only for 30s"}},
		"keeps a part of a deprecated field":     {keeps(), deprecates(keeps("Service spec.ports[0].port"), "spec.config"), []string{"warning U514 Pot/n/a: v2 does less for a new object like it than v1: after a change of its spec.config, what it asked for before stays in Service spec.ports[0].port, not only for 30s"}},
		"is not well when there is to be none":   {atNone(""), atNone("Ready is False"), []string{"error U504 Pot/n/a: v2 says of a new object like it that is asked for none that it is not well, not only for 30s; with v1 it was well: Ready is False"}},
		"nor was it with the old one":            {atNone("Ready is False"), atNone("Ready is Unknown"), nil},
		"it is well when there is to be none":    {atNone("Ready is False"), atNone(""), nil},
		"the old one did not follow it":          {New{Sample: "Pot/n/a", Copy: sound, Original: sound}, keeps("Service spec.ports[0].port"), nil},
		"keeps what went when it was left out":   {sheds("spec.a (leaving that out)", Surely), follows("spec.a (leaving that out)", 0), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: within 30s nothing that is made for it follows a change of its spec.a (leaving that out)"}},
		"deletes what is asked for no longer":    {went("PodDisruptionBudget"), went("PodDisruptionBudget"), nil},
		"keeps it":                               {went("PodDisruptionBudget"), went(), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: its PodDisruptionBudget stays after a change of its spec.a (to 1), not only for 30s"}},
		"keeps some of it":                       {went("ConfigMap", "PodDisruptionBudget"), went("ConfigMap"), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: its PodDisruptionBudget stays after a change of its spec.a (to 1), not only for 30s"}},
		"makes none of it":                       {went("Secret"), went(), nil},
		"deletes it of another sample":           {went("PodDisruptionBudget"), of("b", went()), nil},
		"tells of it in the status":              {reports("endpoint"), reports("endpoint"), nil},
		"status tells no more":                   {reports("endpoint", "users"), reports("users"), []string{"error U503 Pot/n/a: v2 does not tell of a change of spec.a in status.endpoint of a new object like it, not within 30s, though it follows it; v1 did"}},
		"has no such field":                      {reports("url"), reports(), nil},
		"tells of another sample":                {reports("endpoint"), of("b", reports()), nil},
		"had another spec":                       {New{Sample: "Pot/n/a", Copy: sound, Original: sound}, stays("Deployment spec.b"), nil},
		"follows a change":                       {follows("spec.a", Surely), follows("spec.a", Surely), nil},
		"ignores a change":                       {follows("spec.a", Surely), follows("spec.a", 0), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: within 30s nothing that is made for it follows a change of its spec.a"}},
		"ignores a renewed certificate":          {mounts(Surely, "a"), mounts(0, "a"), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: within 30s nothing that is made for it follows a change of its Secret tls"}},
		"whose new program may read it again":    {mounts(Surely, "a"), mounts(0, "b"), nil},
		"says another number":                    {honours("a", "ConfigMap data.conf", "StatefulSet spec.args[0]"), honours("a", "ConfigMap data.conf"), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: what its spec.a asks for is not said in StatefulSet spec.args[0], which follows it and says something else, not within 30s"}},
		"says it to a new program":               {honours("a", "ConfigMap data.conf", "StatefulSet spec.args[0]"), honours("b", "ConfigMap data.conf"), nil},
		"does not say it there at all":           {honours("a", "Service spec.port"), honours("a"), nil},
		"ignored it before":                      {follows("spec.a", 0), follows("spec.a", 0), nil},
		"followed by chance":                     {follows("spec.a", 1), follows("spec.a", 0), nil},
		"follows once":                           {follows("spec.a", Surely), follows("spec.a", 1), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: what follows a change of its spec.a does not follow when that is taken back, within 30s"}},
		"followed once":                          {follows("spec.a", 1), follows("spec.a", 1), nil},
		"another field":                          {follows("spec.a", Surely), follows("spec.b", 0), nil},
		"makes it again":                         {remakes(true), remakes(true), nil},
		"does not any more":                      {remakes(true), remakes(false), []string{"error U512 Pot/n/a: v2 does not make Service again that somebody deletes of a new object like it, not within 30s; v1 did"}},
		"no Service":                             {kinds("Service StatefulSet", "Service StatefulSet"), kinds("StatefulSet", "Service StatefulSet"), []string{"error U517 Pot/n/a: v2 does less for a new object like it: within 45s no Service is made for it; with v1 it was as for this one"}},
		"another workload":                       {kinds("Deployment Service", "Deployment Service"), kinds("Service StatefulSet", "Deployment Service"), nil},
		"no workload":                            {kinds("Deployment Service", "Deployment Service"), kinds("Service", "Deployment Service"), []string{"error U517 Pot/n/a: v2 does less for a new object like it: within 45s no Deployment is made for it; with v1 it was as for this one"}},
		"no Service before":                      {kinds("StatefulSet", "Service StatefulSet"), kinds("StatefulSet", "Service StatefulSet"), nil},
		"no Service for the sample":              {kinds("Service StatefulSet", "Service StatefulSet"), kinds("StatefulSet", "StatefulSet"), nil},
		"changes it back":                        {reverts(true), reverts(true), nil},
		"leaves it changed":                      {reverts(true), reverts(false), []string{"error U512 Pot/n/a: v2 leaves ConfigMap of a new object like it as somebody else changes it, for 30s; v1 changed it back"}},
		"always left it changed":                 {reverts(false), reverts(false), nil},
		"may not be changed":                     {reverts(true), both, nil},
		"pods are told":                          {moves("t", "ConfigMap", "StatefulSet"), moves("t", "ConfigMap", "StatefulSet"), nil},
		"pods are not told":                      {moves("t", "ConfigMap", "StatefulSet"), moves("t", "ConfigMap"), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: its StatefulSet does not follow a change of its spec.config, not within 30s; ConfigMap does"}},
		"pods may see it themselves":             {moves("t", "ConfigMap", "StatefulSet"), moves("with a reloader", "ConfigMap"), nil},
		"something else is told":                 {moves("t", "ConfigMap", "StatefulSet"), moves("t", "ConfigMap", "Secret"), nil},
		"rights do not follow":                   {moves("t", "Role", "RoleBinding"), moves("t", "Role"), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: its RoleBinding does not follow a change of its spec.config, not within 30s; Role does"}},
		"pods never were told":                   {moves("t", "ConfigMap"), moves("t", "ConfigMap"), nil},
		"what is not made any more":              {moves("t", "ConfigMap", "StatefulSet"), moves("t", "StatefulSet"), nil},
		"carries it":                             {asks(carried), asks(carried), nil},
		"may say it in a Secret":                 {asks(carried), hidden, nil},
		"carries it otherwise":                   {asks(carried), asks(mentioned), nil},
		"carries it no more":                     {asks(carried), asks(absent), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: what its spec.tolerations asks for is not in what is made for it"}},
		"mentions it, and does so no more":       {asks(mentioned), asks(absent), nil},
		"mentions some of it":                    {asks(mentioned), asks(partly), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: what its spec.tolerations asks for is not in what is made for it"}},
		"carries some of it":                     {asks(carried), asks(partly), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: what its spec.tolerations asks for is not in what is made for it"}},
		"mentioned some of it":                   {asks(partly), asks(absent), nil},
		"is not asked":                           {asks(carried), both, nil},
		"never carried it":                       {asks(mentioned), asks(absent), nil},
		"says where":                             {says(true, true), says(true, true), nil},
		"says nothing":                           {says(true, true), says(false, true), []string{"error U517 Pot/n/a: v2 does less for a new object like it: within 45s its status says nothing of status.endpoint; with v1 it was as for this one"}},
		"nor of the sample, told elsewhere":      {says(true, true), says(false, false), nil},
		"said nothing":                           {says(false, true), says(false, true), nil},
		"is gone":                                {says(true, true), both, nil},
		"no budget":                              {kinds("PodDisruptionBudget StatefulSet", "PodDisruptionBudget StatefulSet"), kinds("StatefulSet", "PodDisruptionBudget StatefulSet"), []string{"error U517 Pot/n/a: v2 does less for a new object like it: within 45s no PodDisruptionBudget is made for it; with v1 it was as for this one"}},
		"cleans up":                              {tells("a", "Created"), tells("b", "Made"), nil},
		"cleans up no more":                      {tells("a", ""), tells("", ""), []string{"warning U514 Pot/n/a: v2 puts no finalizer on a new object like it, and v1 put a: what that cleaned up on deletion may stay"}},
		"tells no more":                          {tells("", "Created Scaled"), tells("", ""), []string{"warning U514 Pot/n/a: v2 records no Event about a new object like it, and v1 recorded Created, Scaled"}},
		"was not asked":                          {tells("a", "Created"), both, nil},
		"says less":                              {saysBoth(true), saysBoth(false), []string{"error U517 Pot/n/a: v2 does less for a new object like it: within 45s its status says nothing of status.endpoint; with v1 it was as for this one"}},
		"says nothing of what is deprecated":     {saysBoth(true), deprecates(saysBoth(false), "status.endpoint"), nil},
		"a CronJob alone follows":                {movesTwo("CronJob", "StatefulSet"), movesTwo("CronJob"), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: its StatefulSet does not follow a change of its spec.config, not within 30s; CronJob does"}},
		"one workload of two is replaced":        {movesTwo("Deployment", "StatefulSet"), movesTwo("StatefulSet"), []string{"warning U514 Pot/n/a: v2 does less for a new object like it than v1: its Deployment does not follow a change of its spec.config, not within 30s; StatefulSet does"}},
		"a deprecated field is ignored":          {follows("spec.a", Surely), deprecates(follows("spec.a", 0), "spec.a"), []string{"warning U514 Pot/n/a: v2 does less for a new object like it than v1: within 30s nothing that is made for it follows a change of its spec.a"}},
		"a deprecated field is carried no more":  {asks(carried), deprecates(asks(absent), "spec.tolerations"), []string{"warning U514 Pot/n/a: v2 does less for a new object like it than v1: what its spec.tolerations asks for is not in what is made for it"}},
		"keeps a Secret beside its claims":       {leaves(1), leaves(1, "Secret"), []string{"warning U518 Pot/n/a: v2 makes Secret a for a new object like it without an owner reference, and it stayed when the object was deleted; with v1 it did not"}},
		"keeps a Secret for nothing":             {leaves(0), leaves(0, "Secret"), []string{"error U518 Pot/n/a: v2 makes Secret a for a new object like it without an owner reference, and it stayed when the object was deleted; with v1 it did not"}},
		"does not do what a Job did":             {finalized(parts(true, "jobs.batch", "jobs.batch")), finalized(parts(true, "", "")), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: when that is deleted, it makes none of the jobs.batch that v1 made then"}},
		"may do what a Job did":                  {parts(true, "jobs.batch", "jobs.batch"), finalized(parts(true, "", "")), []string{"warning U514 Pot/n/a: v2 does less for a new object like it than v1: when that is deleted, it makes none of the jobs.batch that v1 made then"}},
		"leaves it alone":                        {pauses(Held), pauses(Held), nil},
		"does not leave it alone":                {pauses(Held), pauses(Ignored), []string{"error U514 Pot/n/a: v2 does not leave a new object like it alone while its spec.paused is true: what is made for it follows a change of its spec.a; with v1 it did not"}},
		"does not go on":                         {pauses(Held), pauses(StaysStill), []string{"error U514 Pot/n/a: v2 does not go on with a new object like it once its spec.paused is not true any more: within 30s nothing that is made for it follows a change of its spec.a; with v1 it did"}},
		"cannot be paused":                       {pauses(Held), both, nil},
		"never left it alone":                    {pauses(Ignored), pauses(StaysStill), nil},
		"keeps claims":                           {claims(true, false), claims(true, false), nil},
		"deletes claims":                         {claims(true, false), claims(false, true), []string{"error U515 Pot/n/a: v2 deletes the claims of a new object like it when that is deleted; v1 kept them"}},
		"always deleted claims":                  {claims(false, true), claims(false, true), nil},
		"leaves what it deleted":                 {claims(false, true), claims(true, false), []string{"warning U518 Pot/n/a: v2 leaves the claims of a new object like it when that is deleted, and another one of its name finds their data; v1 deleted them"}},
		"deletes one of them":                    {claims(true, false), claims(true, true), nil},
		"deleted some claims":                    {claims(true, true), claims(true, true), nil},
		"takes a backup":                         {parts(true, "secrets", "secrets"), parts(true, "secrets", "secrets"), nil},
		"takes it otherwise":                     {parts(true, "secrets", "secrets"), parts(true, "jobs.batch", "jobs.batch"), nil},
		"takes none any more":                    {parts(true, "jobs.batch secrets", "jobs.batch secrets"), parts(true, "", "configmaps"), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: when that is deleted, it makes none of the jobs.batch, secrets that v1 made then"}},
		"took none":                              {parts(true, "", "secrets"), parts(true, "", ""), nil},
		"stays":                                  {parts(true, "secrets", "secrets"), parts(false, "", ""), nil},
		"takes it under a name of its own":       {parts(true, "secrets", "secrets"), parts(true, "", "secrets"), nil},
		"replaces pods":                          {rolls(true), rolls(true), nil},
		"replaces none any more":                 {rolls(true), rolls(false), []string{"error U514 Pot/n/a: v2 does less for a new object like it than v1: a change of its spec.config changes what its pods are made from, and none is replaced within 30s"}},
		"never replaced any":                     {rolls(false), rolls(false), nil},
		"there is nothing to replace":            {rolls(true), both, nil},
		"leaves annotations":                     {marks(true), marks(true), nil},
		"takes annotations away":                 {marks(true), marks(false), []string{"error U505 Pot/n/a: v2 takes annotations that others put on Service of a new object like it away, as load balancers and monitoring are configured by; v1 left them"}},
		"takes labels away":                      {labels(true), labels(false), []string{"info U505 Pot/n/a: v2 takes labels that others put on Service of a new object like it away, as monitoring and policies choose by; v1 left them"}},
		"always took labels away":                {labels(false), labels(false), nil},
		"renames a Service":                      {makes("Service", "Service …-client", "Secret"), makes("Service", "Service …-svc"), []string{"warning U510 Pot/n/a: v2 makes no Service …-client for a new object like it any more, and v1 did: clients find a Service by its name, and nobody keeps up to date the one that was made before"}},
		"makes no Service at all":                {makes("Service"), makes("Secret"), nil},
		"makes another Service":                  {makes("Service"), makes("Service", "Service …-svc"), nil},
		"the one before looked at nothing":       {blind, marks(false), nil},
		"always took them away":                  {marks(false), marks(false), nil},
		"may not be annotated":                   {marks(true), both, nil},
		"serves its own":                         {picks(""), picks(""), nil},
		"serves others":                          {picks(""), picks("Pot/n/b"), []string{"error U510 Pot/n/a: the selector of the Service that v2 makes for a new object like it picks pods of other objects, too: its clients reach Pot/n/b; with v1 it did not"}},
		"always served others":                   {picks("Pot/n/b"), picks("Pot/n/b"), nil},
		"a Service is new":                       {both, picks("Pot/n/b"), nil},
		"leaves the spec alone":                  {writes(""), writes(""), nil},
		"of the one before nothing is known":     {both, writes("spec.b"), nil},
		"writes into it":                         {writes("spec.a"), writes("spec.a spec.b"), []string{"warning U307 Pot/n/a: v2 writes spec.b into a new object like it, which its author left out, and v1 did not: a later default does not reach it, and tools that apply its manifest may take it out again"}},
		"has no claims":                          {claims(true, false), claims(false, false), nil},
		"never did":                              {remakes(false), remakes(false), nil},
		"more than the sample":                   {both, New{Sample: "Pot/n/a", Copy: sound, Original: alone}, nil},
	} {
		t.Run(name, func(t *testing.T) { expect.Findings(t, NewObjects("v1", "v2", c.was, c.is), c.want...) })
	}
}

// Neither pods nor what another operand made are the operator's own writing.
func TestFollow(t *testing.T) {
	is := func(kind, size string, direct bool) map[string]observe.Operand {
		return map[string]observe.Operand{kind + "/n/a": {Kind: kind, Direct: direct, Content: map[string]any{"size": size}}}
	}
	for name, c := range map[string]struct {
		before, after map[string]observe.Operand
		want          bool
	}{
		"same":    {is("ConfigMap", "1", true), is("ConfigMap", "1", true), false},
		"another": {is("ConfigMap", "1", true), is("ConfigMap", "2", true), true},
		"gone":    {is("ConfigMap", "1", true), nil, true},
		"new":     {nil, is("ConfigMap", "1", true), true},
		"a pod":   {is("Pod", "1", true), is("Pod", "2", true), false},
		"of one":  {is("ConfigMap", "1", false), is("ConfigMap", "2", false), false},
	} {
		if got := Follow(c.before, c.after); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A Job that is done runs nothing, and what another operand made belongs to the object less directly.
func TestDealtWith(t *testing.T) {
	operands := map[string]observe.Operand{
		"Deployment/n/a": {Kind: "Deployment", Of: "Pot/n/a", Direct: true},
		"Deployment/n/b": {Kind: "Deployment", Of: "Pot/n/a", Direct: true, Unready: "0 of 1 replicas are ready"},
		"Service/n/a":    {Kind: "Service", Of: "Pot/n/a", Direct: true},
		"Job/n/b":        {Kind: "Job", Of: "Pot/n/b", Direct: true},
		"Pod/n/c":        {Kind: "Pod", Of: "Pot/n/c"},
		"DaemonSet/n/d":  {Kind: "DaemonSet", Of: "Pot/n/d", Direct: true, Unready: "0 of 1 pods are ready"},
	}
	for name, want := range map[string]Dealt{
		"Pot/n/a": {Made: true, Ready: 1, Kinds: []string{"Deployment", "Service"}}, "Pot/n/b": {Made: true}, "Pot/n/c": {},
		"Pot/n/d": {Made: true, Kinds: []string{"DaemonSet"}}, "Pot/n/e": {},
	} {
		if got := DealtWith(name, operands, false); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestUntold(t *testing.T) {
	old := code.Finding(code.DoesLess, "Pot/n/a", "it does less")
	again, more := code.Finding(code.DoesLess, "Pot/n/a", "it does less for a new one"), code.Finding(code.NewIgnored, "Pot/n/a", "it ignores a new one")
	got := Untold([]finding.Finding{old}, []finding.Finding{again, more})
	if len(got) != 1 || got[0].Code != code.NewIgnored {
		t.Error(got)
	}
	if got = Untold(nil, []finding.Finding{again, more}); len(got) != 2 {
		t.Error(got)
	}
}

// Until as many workloads are ready for the copy as for the sample, reconciles are under way for that.
func TestSettled(t *testing.T) {
	for ready, want := range map[int]bool{0: false, 1: false, 2: true, 3: true} {
		if got := (New{Original: Dealt{Ready: 2}, Copy: Dealt{Ready: ready}}).Settled(); got != want {
			t.Errorf("%d of 2: %t", ready, got)
		}
	}
}

// TestPatience: a quick operator has less time than one that took its time, or of which nobody knows how long it took, and no less than to be started again.
func TestPatience(t *testing.T) {
	for slowest, patience := range map[time.Duration]time.Duration{
		0: EffectLimit, 100 * time.Millisecond: 15 * time.Second, time.Second: 20 * time.Second, time.Minute: EffectLimit,
	} {
		if is := (New{Slowest: slowest}).Patience(); is != patience {
			t.Errorf("after %s it has %s, not %s", slowest, is, patience)
		}
	}
}

// TestToldOf: what says something else, or nothing any more, is told, but for times and what follows pods.
func TestToldOf(t *testing.T) {
	before := map[string]any{"endpoint": "a:1", "users": []any{"a"}, "readyReplicas": int64(1), "backup": map[string]any{"at": "2026-01-02T03:04:05Z", "to": "s"}, "gone": "a"}
	after := map[string]any{"endpoint": "a:2", "users": []any{"a", "b"}, "readyReplicas": int64(2), "backup": map[string]any{"at": "2026-01-02T03:04:06Z", "to": "s"}, "new": "a"}
	if got := ToldOf(before, after); !slices.Equal(got, []string{"endpoint", "gone", "new", "users"}) {
		t.Errorf("%q", got)
	}
}

// TestKeptWhole: of what stays as a whole it is not told that it says what was asked for.
func TestKeptWhole(t *testing.T) {
	was := New{Sample: "Pot/n/a", Follows: map[string]int{"spec.a": Surely}, Sheds: map[string][]string{"spec.a": {"Deployment …-2"}}}
	is := New{Sample: "Pot/n/a", Follows: map[string]int{"spec.a": Surely}, Sheds: map[string][]string{"spec.a": nil}, Makes: []string{"Deployment …-2"}}
	is.Keeps = map[string][]string{"spec.a": {"Deployment …-2 spec.x"}}
	expect.Findings(t, kept("v1", "v2", was, is))
	is.Keeps["spec.a"] = append(is.Keeps["spec.a"], "ConfigMap data.x")
	expect.Findings(t, kept("v1", "v2", was, is),
		"error U514 Pot/n/a: v2 does less for a new object like it than v1: after a change of its spec.a, what it asked for before stays in ConfigMap data.x, not only for 30s")
}
