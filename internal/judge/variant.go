package judge

import (
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
)

// With is what the choice of a variant follows, in New.Variant, and Early what a variant names that is created before that.
const (
	With  = " with "
	Early = " if it is created before "
)

// Variants tells what the operator of the release called to did not do for a variant, and that of from did, besides what found tells already. copied is what that of from did for the
// copy.
func Variants(from, to string, copied, was, is New, found []finding.Finding) []finding.Finding {
	if is.Copy.Refused {
		return refused(from, to, was, is)
	}
	list := append(NewObjects(from, to, was, is), otherwise(from, to, copied, was, is)...)
	if was.Of == is.Of {
		list = append(list, keptNoMore(from, to, copied, was, is)...)
		list = append(list, keptAllTheSame(from, to, copied, was, is)...)
		list = append(list, sameForAll(from, to, was, is)...)
	}
	list = slices.DeleteFunc(list, func(f finding.Finding) bool {
		return slices.ContainsFunc(found, func(told finding.Finding) bool { return told.Code == f.Code && told.Message == f.Message })
	})
	for i := range list {
		if strings.HasPrefix(is.Variant, With) || strings.HasPrefix(is.Variant, Early) { // others say it by their names or in their words
			list[i].Message += "; this is so" + is.Variant
		}
	}
	return append(list, heldBack(from, to, was, is)...)
}

// refused tells that the API server does not take a variant any more that was well: maybe on purpose.
func refused(from, to string, was, is New) []finding.Finding {
	if was.Copy.Refused || !was.Copy.Made || len(was.Lacks()) > 0 {
		return nil
	}
	f := code.Finding(code.NewIgnored, is.Sample, "%s refuses a new object like it%s; %s took it, and did for it as for this one", to, is.Variant, from)
	f.Severity, f.Cause, f.Fix = finding.Warning, is.Copy.Unwell, "take what the old version took: refuse only what never worked"
	return []finding.Finding{f}
}

// heldBack tells that a variant stays that is deleted in a way in which it went.
func heldBack(from, to string, was, is New) (list []finding.Finding) {
	if was.Paused == Gone && is.Paused == Stays {
		list = append(list, doesLess("look at whether an object is being deleted before looking at whether it is paused", is.Sample, "%s does not let a new object like it go that is deleted while it is paused: its finalizer stays; %s did", to, from))
	}
	if was.Deserted == Gone && is.Deserted == Stays {
		list = append(list, doesLess("let an object go also where what it names is gone", is.Sample, "%s does not let a new object like it go when %s, which it names, is gone: its finalizer stays; %s did",
			to, strings.TrimPrefix(is.Variant, Early), from))
	}
	if said := namesOf(is.Bereft, func(path string) bool { return was.Bereft[path] && !is.Bereft[path] }); len(said) > 0 {
		f := code.Finding(code.ReadyEarly, is.Sample, "with %s the status of a new object like it goes on to say %s when %s, which it names, is gone, for %s; with %s it did not",
			to, strings.Join(said, ", "), strings.TrimPrefix(is.Variant, Early), DownLimit, from)
		f.Fix = "watch what objects name, and write the status also where that is not there"
		list = append(list, f)
	}
	return list
}

// keptNoMore tells what stayed of a variant when that was deleted, though it went with the copy, and goes now: the variant asks for it to be kept.
func keptNoMore(from, to string, copied, was, is New) []finding.Finding {
	var lost []string
	for _, d := range is.Elsewhere {
		_, stayed := ofKind(was.Elsewhere, d)
		if plain, stays := ofKind(copied.Elsewhere, d); plain && !stays && stayed && d.Gone {
			lost = append(lost, d.Kind+" "+d.Name)
		}
	}
	for _, left := range was.Unowned {
		made := slices.ContainsFunc(is.Makes, func(name string) bool { return isOfKind(name, left.Kind) })
		if made && !is.Leaves(left.Kind) && !copied.Leaves(left.Kind) {
			lost = append(lost, left.Kind+" "+left.Name)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	f := code.Finding(code.DataLost, is.Sample, "%s deletes %s of a new object like it when that is deleted; %s kept it", to, firstOf(lost), from)
	f.Fix = "keep what an object asks to be kept"
	return []finding.Finding{f}
}

// keptAllTheSame tells what is made when a variant is deleted and outlasts it, which was made of the copy alone: the variant asks for it not to be.
func keptAllTheSame(from, to string, copied, was, is New) []finding.Finding {
	kept := slices.DeleteFunc(slices.Clone(is.Lasting), func(resource string) bool { return !slices.Contains(copied.Lasting, resource) })
	if !was.Parted || len(was.Lasting) > 0 || len(kept) == 0 {
		return nil
	}
	return []finding.Finding{doesLess("keep nothing of an object that asks for nothing to be kept", is.Sample, "when a new object like it is deleted, %s makes %s, which stays; %s did so of others alone", to, strings.Join(kept, ", "), from)}
}

// sameForAll tells that what is made for a variant does not differ any more from what is made for the copy.
func sameForAll(from, to string, was, is New) []finding.Finding {
	if len(was.Unlike) == 0 || is.Unlike == nil || len(is.Unlike) > 0 || !is.Copy.Made {
		return nil
	}
	return []finding.Finding{doesLess(handOn, is.Sample, "%s does less for a new object like it than %s: what it makes is the same for all, and with %s it was not: %s", to, from, from, firstOf(was.Unlike))}
}
