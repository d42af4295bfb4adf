package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// States of events besides those that objects have of their own.
const (
	StateReady = "ready"
	StateGone  = "gone"
)

// KindCRD is the Kind of the events of CustomResourceDefinitions.
const KindCRD = "CustomResourceDefinition"

// Event is something that changed on the cluster while the walk watched. Times are those of the watching process, which
// also times the observers, so that both can be laid side by side.
type Event struct {
	At     time.Time
	Kind   string
	Name   string // without namespace
	State  string // what it is now; its phase where it has one
	Reason string // why, in the words of the object
	For    string // the bundle that is installed, the address that is read; of a lock: its holder
	By     string // who did it, if that is known
	CRD    *Definition
}

// String tells the event in one line.
func (e Event) String() string {
	s := strings.TrimSpace(e.Kind + " " + e.Name + " " + e.State)
	if e.For != "" {
		s += " for " + e.For
	}
	if e.Reason != "" {
		s += " (" + e.Reason + ")"
	}
	if e.By != "" {
		s += ", by " + e.By
	}
	if e.CRD != nil {
		s += fmt.Sprintf(": serves %s, stores %s, conversion %s", strings.Join(e.CRD.Served, ", "), e.CRD.Storage, e.CRD.conversion())
	}
	return s
}

// Definition is what of a CustomResourceDefinition decides how its objects are served.
type Definition struct {
	Generation int64 // of its spec
	Served     []string
	Storage    string
	Stored     []string // status.storedVersions
	Conversion string   // what converts: None, or the webhook's service and path
	CA         string   // short fingerprint of the caBundle; "" for none
	Deleting   bool     // it is being deleted, with its objects
}

// Same reports whether objects are served alike by n and d.
func (n *Definition) Same(d *Definition) bool {
	return d != nil && n.Generation == d.Generation && slices.Equal(n.Stored, d.Stored)
}

// Converts reports whether n can convert objects, as far as can be seen.
func (n *Definition) Converts() bool { return n.Conversion == ConversionNone || n.CA != "" }

// ConversionNone is the Conversion of a definition whose objects only get another apiVersion.
const ConversionNone = string(apiextensionsv1.NoneConverter)

func (n *Definition) conversion() string {
	switch {
	case n.Conversion == ConversionNone:
		return "None"
	case n.CA == "":
		return "webhook " + n.Conversion + " without a CA"
	}
	return "webhook " + n.Conversion + " with CA " + n.CA
}

// Milestone is a kind of moment of a hop that ends a phase: the first event, or the last, that Is picks.
type Milestone struct {
	Name string
	Last bool
	Is   func(Event) bool
}
