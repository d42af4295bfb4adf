// Package diff owns what users of a package see change between two of its releases or two catalogs, and how that is shown;
// internal/check compares the releases.
package diff

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/safetext"
)

// APIVersion and the kinds of documents that WriteJSON writes.
const (
	APIVersion  = "olmkit/v1"
	KindBundle  = "BundleDiff"
	KindCatalog = "CatalogDiff"
)

// Kind says in which way something changes.
type Kind string

// Kinds of changes.
const (
	Added    Kind = "added"
	Removed  Kind = "removed"
	Changed  Kind = "changed"
	Stricter Kind = "stricter" // something new is asked of objects
	Looser   Kind = "looser"   // something is asked no more
)

// kinds in the order in which changes of one object are told.
var kinds = []Kind{Removed, Stricter, Changed, Looser, Added}

// Area is what of a release a change is about.
type Area string

// Areas, in the order in which they are told.
const (
	Requirements Area = "requirements"
	APIs         Area = "apis"
	Permissions  Area = "permissions"
	Webhooks     Area = "webhooks"
	Images       Area = "images"
	Objects      Area = "objects"
)

var areas = []struct {
	area  Area
	title string
}{
	{Requirements, "Requirements"},
	{APIs, "APIs"},
	{Permissions, "Permissions"},
	{Webhooks, "Webhooks"},
	{Images, "Deployments and images"},
	{Objects, "Other objects"},
}

// Change is one thing that changes for users of a release.
type Change struct {
	Area     Area     `json:"area"`
	Kind     Kind     `json:"kind"`
	Object   string   `json:"object,omitempty"`   // the CRD's or webhook's name
	Versions []string `json:"versions,omitempty"` // of the CRD
	Field    string   `json:"field,omitempty"`    // path in the CRD's objects
	What     string   `json:"what"`
	Old      string   `json:"old,omitempty"`
	New      string   `json:"new,omitempty"`
	Detail   string   `json:"detail,omitempty"`   // what the documentation says of it
	Breaking bool     `json:"breaking,omitempty"` // what worked with the old release can fail with the new one
}

// Release is what changes between two bundles.
type Release struct {
	Package string   `json:"package"`
	Channel string   `json:"channel,omitempty"` // whose users get it
	From    string   `json:"from"`
	To      string   `json:"to"`
	Changes []Change `json:"changes"`
}

// Catalogs is what changes between two catalogs.
type Catalogs struct {
	Changes  []catalog.Change `json:"changes"`
	Releases []Release        `json:"releases"`         // what users of the heads of channels get
	Unread   []string         `json:"unread,omitempty"` // bundles that could not be compared, as their manifests are not in the catalog
}

// NewRelease orders changes, and tells equal ones of several versions of a CRD once.
func NewRelease(pkg, from, to string, changes []Change) Release {
	r := Release{Package: pkg, From: from, To: to, Changes: []Change{}}
	slices.SortStableFunc(changes, compare)
	at := map[string]int{}
	for _, c := range changes {
		key := strings.Join([]string{string(c.Area), string(c.Kind), c.Object, c.Field, c.What, c.Old, c.New}, "\x00")
		if i, ok := at[key]; ok && len(c.Versions) > 0 {
			r.Changes[i].Versions = append(r.Changes[i].Versions, c.Versions...)
			r.Changes[i].Breaking = r.Changes[i].Breaking || c.Breaking
			continue
		}
		at[key] = len(r.Changes)
		r.Changes = append(r.Changes, c)
	}
	return r
}

// compare orders by area, object and kind. The order of equals, as versions and fields are found, stays.
func compare(a, b Change) int {
	area := func(c Change) int {
		return slices.IndexFunc(areas, func(one struct {
			area  Area
			title string
		}) bool {
			return one.area == c.Area
		})
	}
	return cmp.Or(area(a)-area(b), strings.Compare(a.Object, b.Object), slices.Index(kinds, a.Kind)-slices.Index(kinds, b.Kind))
}

// WriteJSON writes the changes between two bundles.
func (r Release) WriteJSON(w io.Writer) error {
	return safetext.EncodeJSON(w, struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Release
	}{APIVersion, KindBundle, r})
}

// WriteJSON writes the changes between two catalogs.
func (c Catalogs) WriteJSON(w io.Writer) error {
	return safetext.EncodeJSON(w, struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Catalogs
	}{APIVersion, KindCatalog, c})
}
