package judge

import (
	"testing"

	"github.com/olmkit/olmkit/test/support/expect"
)

// TestNotBack: what is other than before, once a field has been changed back, counts if the release before left it as it was, and that is known.
func TestNotBack(t *testing.T) {
	stays := func(fields map[string][]string) New {
		return New{Sample: "Pot/n/a", Makes: []string{"Ingress", "Secret …-admin"}, Stays: fields}
	}
	const host, image = "spec.host", "spec.image"
	for name, c := range map[string]struct {
		was, is New
		want    []string
	}{
		"as before":          {stays(map[string][]string{host: {}}), stays(map[string][]string{host: {}}), nil},
		"it never went back": {stays(map[string][]string{host: {"Ingress spec.rules[1].host"}}), stays(map[string][]string{host: {"Ingress spec.rules[1].host"}}), nil},
		"not known":          {stays(map[string][]string{image: {}}), stays(map[string][]string{host: {"Ingress spec.rules[1].host"}}), nil},
		"the old one stays": {stays(map[string][]string{host: {}}), stays(map[string][]string{host: {"Ingress spec.rules[1].host"}}), []string{
			"error U514 Pot/n/a: v2 leaves what it made for a new object like it other than it was, after a change of spec.host that was taken back: Ingress spec.rules[1].host; with v1 it was as before",
		}},
		"two at the same time": {stays(map[string][]string{host: {}, image: {"Ingress spec.a"}}), stays(map[string][]string{host + And + image: {"Ingress spec.a", "Ingress spec.b"}}), []string{
			"error U514 Pot/n/a: v2 leaves what it made for a new object like it other than it was, after a change of spec.host and spec.image that was taken back: Ingress spec.b; with v1 it was as before",
		}},
		"another password": {stays(map[string][]string{image: {}}), stays(map[string][]string{image: {"Secret …-admin data.password"}}), []string{
			"error U516 Pot/n/a: v2 makes anew for a new object like it, after a change of spec.image: Secret …-admin data.password; with v1 it stayed",
		}},
		"after each change": {stays(map[string][]string{image: {}, host: {}}), stays(map[string][]string{image: {"Secret …-admin data.password"}, host: {"Secret …-admin data.password"}}), []string{
			"error U516 Pot/n/a: v2 makes anew for a new object like it, after a change of spec.host, spec.image: Secret …-admin data.password; with v1 it stayed",
		}},
		"what is new is made anew": {stays(map[string][]string{image: {}}), stays(map[string][]string{image: {"Secret …-tls data.key"}}), nil},
		"the field is deprecated":  {stays(map[string][]string{host: {}}), New{Sample: "Pot/n/a", Stays: map[string][]string{host: {"Ingress spec"}}, Deprecated: map[string]bool{host: true}}, nil},
	} {
		t.Run(name, func(t *testing.T) { expect.Findings(t, notBack("v1", "v2", c.was, c.is), c.want...) })
	}
}

// TestTakesNeeds: who makes an object the owner of what is the user's, and did not before, has it deleted with the object.
func TestTakesNeeds(t *testing.T) {
	none, page := []string{}, []string{"ConfigMap page"}
	for name, c := range map[string]struct{ was, is, want []string }{
		"both":      {page, page, nil},
		"none":      {none, none, nil},
		"no more":   {page, none, nil},
		"not known": {nil, page, nil},
		"now": {none, page, []string{
			"error U515 Pot/n/a: v2 makes a new object like it the owner of the user's ConfigMap page that it names: Kubernetes deletes that with the object; v1 left it to the user",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Findings(t, forsaken("v1", "v2", New{Sample: "Pot/n/a", Takes: c.was}, New{Sample: "Pot/n/a", Takes: c.is}), c.want...)
		})
	}
}

// TestTakesAway: of two that are listed in the same place, the second may not replace the first, if both were there before.
func TestTakesAway(t *testing.T) {
	both, one, anew := Distant{"ConfigMap", "n/list", true, true, true}, Distant{"ConfigMap", "n/list", true, true, false}, Distant{"ConfigMap", "n/other", true, true, false}
	for name, c := range map[string]struct {
		was, is Distant
		want    []string
	}{
		"both": {both, both, nil}, "only one before": {one, one, nil}, "both now": {one, both, nil}, "another list": {both, anew, nil},
		"only one now": {both, one, []string{
			"error U514 Pot/n/a: what v2 writes about a new object like it into ConfigMap n/list takes away what was said there of this one; with v1 both were there",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Findings(t, elsewhere("v1", "v2", New{Sample: "Pot/n/a", Elsewhere: []Distant{c.was}}, New{Sample: "Pot/n/a", Elsewhere: []Distant{c.is}}), c.want...)
		})
	}
}

// TestGoes: an object that stays in a namespace that is deleted, and went before, is told of.
func TestGoes(t *testing.T) {
	goes, stays := true, false
	for name, c := range map[string]struct {
		was, is *bool
		want    []string
	}{
		"both": {&goes, &goes, nil}, "never": {&stays, &stays, nil}, "now": {&stays, &goes, nil}, "not known now": {&goes, nil, nil}, "not known before": {nil, &stays, nil},
		"no more": {&goes, &stays, []string{
			"error U603 Pot/n/a: an object like it that is deleted with its namespace stays for 1m0s, and the namespace with it: v2 does not remove example.com/keep; with v1 it went",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Findings(t, inNamespace("v1", "v2", New{Sample: "Pot/n/a", Goes: c.was}, New{Sample: "Pot/n/a", Goes: c.is, Held: []string{"example.com/keep"}}), c.want...)
		})
	}
}

// TestStripsAndLong: who removes what others guard by, and who tells objects apart by the beginning of their names.
func TestStripsAndLong(t *testing.T) {
	goes := true
	sound := New{Sample: "Pot/n/a", Goes: &goes, Long: []string{}, Anywhere: &Dealt{Made: true, Kinds: []string{"Service"}}}
	strips, mixes := sound, sound
	strips.Strips, mixes.Long = true, []string{"Service"}
	told := []string{
		"error U505 Pot/n/a: v2 removes finalizers of others from a deleted object like it: who guards objects by one, as a backup, finds them gone; v1 removed its own alone",
		"error U517 Pot/n/a: v2 does not make for each of two new objects with names of up to 52 characters, which differ in the last one alone, its own Service; v1 did",
	}
	for name, c := range map[string]struct {
		was, is New
		want    []string
	}{
		"sound": {sound, sound, nil}, "strips": {sound, strips, told[:1]}, "mixes": {sound, mixes, told[1:]}, "stripped before": {strips, strips, nil}, "mixed before": {mixes, mixes, nil},
		"not known before": {New{Sample: "Pot/n/a"}, strips, nil}, "names not known before": {New{Sample: "Pot/n/a"}, mixes, nil},
	} {
		t.Run(name, func(t *testing.T) { expect.Findings(t, inNamespace("v1", "v2", c.was, c.is), c.want...) })
	}
}

// TestRetriesAndAdditions: who does not try again what was refused, and who takes back what others set, is told of where it did otherwise before.
func TestRetriesAndAdditions(t *testing.T) {
	const restart = "the restart (kubectl rollout restart) of Deployment"
	of := func(retries, stays bool) New {
		return New{Sample: "Pot/n/a", Retries: map[string]bool{"Deployment": retries}, Additions: map[string]bool{restart: stays}, Reverts: map[string]bool{"Service": true}}
	}
	blind := of(true, true)
	blind.Reverts = nil
	updates, updatesOthers := blind, blind
	updates.Moves, updatesOthers.Moves = map[string][]string{"spec.size": {"Deployment"}}, map[string][]string{"spec.size": {"Service"}}
	scaled := func(stays bool) New {
		return New{Sample: "Pot/n/a", Additions: map[string]bool{Autoscaled + " Deployment": stays}}
	}
	gives := "error U514 Pot/n/a: v2 does not try again: a new object like it, in a namespace whose quota was used up, has no Deployment 30s after there is room; with v1 it had"
	takes := "error U505 Pot/n/a: v2 takes back what others set of what is made for a new object like it: " + restart + "; v1 left it"
	for name, c := range map[string]struct {
		was, is New
		want    []string
	}{
		"sound": {of(true, true), of(true, true), nil}, "gives up": {of(true, true), of(false, true), []string{gives}}, "takes back": {of(true, true), of(true, false), []string{takes}},
		"did both before": {of(false, false), of(false, false), nil}, "not known before": {New{Sample: "Pot/n/a"}, of(false, false), nil}, "looked at nothing before": {blind, of(true, false), nil},
		"updated it before": {updates, of(true, false), []string{takes}}, "updated others before": {updatesOthers, of(true, false), nil},
		"scales against its own autoscaler": {scaled(true), scaled(false), []string{"error U505 Pot/n/a: v2 takes back what others set of what is made for a new object like it: the autoscaled replicas of Deployment; v1 left it"}},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Findings(t, append(inNamespace("v1", "v2", c.was, c.is), stripped("v1", "v2", c.was, c.is)...), c.want...)
		})
	}
}

// TestAnywhere: who makes nothing in a namespace that is newer than the operator's pod, and did before, is told of; where nothing is made for any object, the status counts.
func TestAnywhere(t *testing.T) {
	made, well, none := Dealt{Made: true}, Dealt{Well: true}, Dealt{}
	told := "error U517 Pot/n/a: v2 does nothing for an object like it in a namespace that is newer than the operator's pod, not within 30s; v1 did"
	for name, c := range map[string]struct {
		copied  Dealt
		was, is *Dealt
		want    []string
	}{
		"both":                   {made, &made, &made, nil},
		"no more":                {made, &made, &none, []string{told}},
		"only well":              {made, &made, &well, []string{told}},
		"never":                  {made, &none, &none, nil},
		"not known now":          {made, &made, nil, nil},
		"not known before":       {made, nil, &none, nil},
		"nothing is made, well":  {well, &well, &well, nil},
		"nothing is made, worse": {well, &well, &none, []string{told}},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Findings(t, inNamespace("v1", "v2", New{Sample: "Pot/n/a", Copy: c.copied, Anywhere: c.was}, New{Sample: "Pot/n/a", Copy: c.copied, Anywhere: c.is}), c.want...)
		})
	}
}
