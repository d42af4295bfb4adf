package judge

import (
	"reflect"
	"testing"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/test/support/expect"
)

func TestVariants(t *testing.T) {
	sound := Dealt{Made: true, Ready: 1, Well: true, Alike: true}
	const retain = " with spec.policy: Retain"
	dealt := func(change func(n *New)) New {
		n := New{Sample: "Pot/n/a", Of: "a", Variant: retain, Copy: sound, Original: sound, Parted: true, Makes: []string{"ConfigMap", "Service"}}
		change(&n)
		return n
	}
	plain := dealt(func(n *New) {
		n.Elsewhere = []Distant{{Kind: "Namespace", Name: "a-one", Gone: true}}
	})
	is := dealt(func(*New) {})
	elsewhere := func(gone bool) New {
		return dealt(func(n *New) { n.Elsewhere = []Distant{{Kind: "Namespace", Name: "a-one", Gone: gone}} })
	}
	left := func(kinds ...string) New {
		return dealt(func(n *New) {
			for _, kind := range kinds {
				n.Unowned = append(n.Unowned, Left{kind, "a"})
			}
		})
	}
	saves := func(resources ...string) New {
		return dealt(func(n *New) { n.Lasting = resources })
	}
	unlike := func(fields ...string) New {
		return dealt(func(n *New) { n.Unlike = append([]string{}, fields...) })
	}
	paused := func(came Deletion) New {
		return dealt(func(n *New) { n.Paused = came })
	}
	deserted := func(came Deletion) New {
		return dealt(func(n *New) { n.Variant, n.Deserted = " if it is created before Cup b", came })
	}
	bereft := func(unsaid bool) New {
		return dealt(func(n *New) {
			n.Variant, n.Bereft = " if it is created before Cup b", map[string]bool{"status.ready": unsaid}
		})
	}
	saving := saves("secrets")
	alone := dealt(func(n *New) { n.Copy = Dealt{} })
	for name, c := range map[string]struct {
		copied, was, is New
		found           []finding.Finding
		want            []string
	}{
		"the same":                  {copied: plain, was: is, is: is},
		"a namespace is kept":       {copied: plain, was: elsewhere(false), is: elsewhere(false)},
		"a namespace goes":          {copied: plain, was: elsewhere(false), is: elsewhere(true), want: []string{code.DataLost}},
		"one that stays for all":    {copied: elsewhere(false), was: elsewhere(false), is: elsewhere(true)},
		"one that goes for all":     {copied: plain, was: elsewhere(true), is: elsewhere(true)},
		"a ConfigMap goes":          {copied: plain, was: left("ConfigMap"), is: left(), want: []string{code.DataLost}},
		"one that was left":         {copied: left("ConfigMap"), was: left("ConfigMap"), is: left()},
		"one that is not made":      {copied: plain, was: left("Secret"), is: left()},
		"a backup all the same":     {copied: saving, was: saves(), is: saving, want: []string{code.DoesLess}},
		"a backup that is new":      {copied: plain, was: saves(), is: saving},
		"a backup that was":         {copied: saving, was: saving, is: saving},
		"what differs still":        {copied: plain, was: unlike("Service spec.type"), is: unlike("Service spec.ports")},
		"what is the same for all":  {copied: plain, was: unlike("Service spec.type"), is: unlike(), want: []string{code.DoesLess}},
		"what was the same":         {copied: plain, was: unlike(), is: unlike()},
		"one that is paused goes":   {copied: plain, was: paused(Gone), is: paused(Gone)},
		"one that is paused stays":  {copied: plain, was: paused(Gone), is: paused(Stays), want: []string{code.DoesLess}},
		"one that stayed":           {copied: plain, was: paused(Stays), is: paused(Stays)},
		"one that goes now":         {copied: plain, was: paused(Stays), is: paused(Gone)},
		"one alone goes":            {copied: plain, was: deserted(Gone), is: deserted(Gone)},
		"one alone stays":           {copied: plain, was: deserted(Gone), is: deserted(Stays), want: []string{code.DoesLess}},
		"one alone stayed":          {copied: plain, was: deserted(Stays), is: deserted(Stays)},
		"it says that that is gone": {copied: plain, was: bereft(true), is: bereft(true)},
		"it goes on to be well":     {copied: plain, was: bereft(true), is: bereft(false), want: []string{code.ReadyEarly}},
		"it went on to be well":     {copied: plain, was: bereft(false), is: bereft(false)},
		"it did not say so":         {copied: plain, was: deserted(Gone), is: bereft(false)},
		"one with what it names":    {copied: plain, was: deserted(Gone), is: deserted(0)},
		"nothing":                   {copied: plain, was: is, is: alone, want: []string{code.NewIgnored}},
		"nothing for any":           {copied: plain, was: is, is: alone, found: NewObjects("v1", "v2", is, alone)},
		"nothing for either":        {copied: plain, was: alone, is: alone},
	} {
		found := Variants("v1", "v2", c.copied, c.was, c.is, c.found)
		var got []string
		for _, f := range found {
			got = append(got, f.Code)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q: %s", name, got, c.want, expect.Said(found))
		}
	}
}

// The words of a choice are in the finding; another sample has a name of its own.
func TestVariantWords(t *testing.T) {
	of := func(variant string, ready int) New {
		return New{Sample: "Pot/n/b", Variant: variant, Copy: Dealt{Made: true, Ready: ready}, Original: Dealt{Made: true, Ready: 1}}
	}
	for variant, want := range map[string]string{
		" with spec.tls: true": "v2 does less for a new object like it: within 45s nothing runs for it; with v1 it was as for this one; this is so with spec.tls: true",
		" as v1 b":             "v2 does less for a new object like it: within 45s nothing runs for it; with v1 it was as for this one",
	} {
		found := Variants("v1", "v2", New{}, of(variant, 1), of(variant, 0), nil)
		if len(found) != 1 || found[0].Message != want {
			t.Errorf("%q: %s", variant, expect.Said(found))
		}
	}
}

// Why an object is not well is the cause of what is found.
func TestUnwell(t *testing.T) {
	was := New{Sample: "Pot/n/a", Copy: Dealt{Made: true, Well: true, Alike: true}, Original: Dealt{Made: true, Well: true}}
	is := was
	is.Copy.Alike, is.Copy.Unwell = false, "condition Ready was True and is False"
	found := NewObjects("v1", "v2", was, is)
	if len(found) != 1 || found[0].Code != code.NewIgnored || found[0].Cause != is.Copy.Unwell {
		t.Errorf("%s: %+v", expect.Said(found), found)
	}
}
