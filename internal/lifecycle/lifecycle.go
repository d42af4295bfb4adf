// Package lifecycle is what a walk needs of a lifecycle manager for operators, in terms that know no kind of any. Each manager
// is a package below this one; nothing outside of them branches on which it is.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
)

// Mode says which namespaces an operator serves.
type Mode string

// Modes, the widest first.
const (
	AllNamespaces   Mode = "AllNamespaces"
	OwnNamespace    Mode = "OwnNamespace"
	SingleNamespace Mode = "SingleNamespace"
	MultiNamespace  Mode = "MultiNamespace"
)

// Place is which package is to be installed, and where.
type Place struct {
	Package   string
	Channel   string
	Catalog   string // what the manager's name for the walk's catalog is
	Namespace string // of the operator
	Mode      Mode
	Targets   []string // the namespaces that the operator serves in place of its own: one with SingleNamespace, more with MultiNamespace
}

// Connect returns the manager of the cluster at config. What it makes is labelled as made for the walk with the given id, ""
// on a cluster that goes with the walk. brings names what the manager makes of the cluster's scope for the walk's bundles,
// each Kind/name; it is noted on the cluster, for who removes what a killed walk left.
type Connect func(config *rest.Config, walk string, brings []string) (Manager, error)

// Unthrottled returns a client that knows scheme's kinds and uses config without client-side throttling: the API server's priority
// and fairness limits it.
func Unthrottled(config *rest.Config, scheme *runtime.Scheme) (client.WithWatch, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server at %s: %w", config.Host, err)
	}
	return c, nil
}

// Manager drives one lifecycle manager on one cluster. Its errors name the object that they are about. What needs no context
// can be asked of one that is not connected.
type Manager interface {
	Installer
	Reporter
	Watched
	Injector

	// Client speaks to the manager's cluster, and knows the manager's kinds.
	Client() client.WithWatch
	// Version says which version of the manager runs on the cluster. It is an error if none does.
	Version(ctx context.Context) (string, error)
}

// Installer installs, upgrades and removes releases.
type Installer interface {
	// Modes returns the modes in which the manager can install r, the widest first.
	Modes(r *Release) []Mode
	// Present names what of the package is on the cluster, or in the namespaces where it would be installed.
	Present(ctx context.Context, pkg string, crds []string, namespaces ...string) ([]string, error)
	// EnsureNamespace creates a namespace that does not exist.
	EnsureNamespace(ctx context.Context, name string) error
	// Prepare makes the place ready to install into.
	Prepare(ctx context.Context, p Place) error
	// Catalog returns the catalog from which the manager, asked for the last of the bundles called names, installs it, or upgrades to
	// it from another of them. That was installed from the channel called was, if that is not "". What the manager needs beside it, is
	// made in the place.
	Catalog(ctx context.Context, at Place, p *catalog.Package, was, channel string, names ...string) ([]byte, error)
	// Publish has the manager read the place's catalog at an address. What it read before, it may read until then.
	Publish(ctx context.Context, p Place, at cluster.CatalogAddress) error
	// WaitPublished waits until the manager reads the catalog where it was published last.
	WaitPublished(ctx context.Context, p Place, limit time.Duration) error
	// Request asks the manager for the bundle, which the published catalog offers. It returns at once.
	Request(ctx context.Context, p Place, bundle string) error
	// Rollback removes what is installed, but for definitions and their objects, and requests bundle, and nothing after it. It
	// returns ErrTimeout if the manager does not take it up within limit, else what to call again and again until bundle is
	// installed.
	Rollback(ctx context.Context, p Place, bundle string, limit time.Duration) (again func(context.Context) error, err error)
	// Uninstall removes the package with the definitions crds and their objects, and the catalog. It returns
	// DeletionTimeoutError if something stays for longer than limit.
	Uninstall(ctx context.Context, p Place, crds []string, limit time.Duration) error
	// DeleteOrphans removes what the manager leaves of uninstalled bundles, which shipped the objects named Kind/name, and says
	// what that was.
	DeleteOrphans(ctx context.Context, p Place, shipped []string) ([]string, error)
}

// Taker is a Manager that deletes definitions, and with them their objects, when it uninstalls a package.
type Taker interface {
	// BeginUninstall has the manager uninstall the package. It returns at once.
	BeginUninstall(ctx context.Context, p Place) error
}

// Waker is a Manager that can be made to look at once at what it puts off.
type Waker interface {
	// Wake touches what the manager has of the place's installation. Where that is known to mend something, or two of its objects wait
	// for each other, which it ends, it says what it found and did.
	Wake(ctx context.Context, p Place) (mended string, err error)
	// Hasten has the manager look at once at what it would look at by the clock alone, as seen has it: what it waits for has happened.
	Hasten(ctx context.Context, p Place, seen client.Reader) error
	// Remind writes down what the manager has forgotten of the bundle, which is installed, and says what that was; "" for nothing.
	Remind(ctx context.Context, p Place, bundle string, seen client.Reader) (mended string, err error)
	// WhyMended returns why what Wake or Remind says that it mended was so, and what to do.
	WhyMended(mended string) (cause, fix string)
}

// Reporter says how far an installation came and why it does not go on.
type Reporter interface {
	// State says how far the installation of r came, by what was seen.
	State(ctx context.Context, p Place, r *Release, seen View) (State, error)
	// Explain says why the bundle does not get installed. Events from before since are ignored.
	Explain(ctx context.Context, p Place, bundle string, since time.Time) (Explanation, error)
	// Warnings returns what the manager warned of since then while it installed.
	Warnings(ctx context.Context, p Place, since time.Time) ([]Warning, error)
	// Leftovers names what the manager made for bundles that are not installed any more and that nothing owns.
	Leftovers(ctx context.Context, p Place) ([]string, error)
	// ObjectOf names the object, Kind/name, that stands for the bundle.
	ObjectOf(bundle string) string
	// Decides reports whether the object of a finding, Kind/namespace/name, is one in which the manager says what it refuses.
	Decides(object string) bool
}

// Watched is what a walk watches of a manager.
type Watched interface {
	// Kinds are the manager's own kinds to watch, in the operator's namespace where they are namespaced.
	Kinds() []client.Object
	// Events says what is worth noting when an object of Kinds goes from before (nil if that is not known) to now.
	Events(before, now any, gone bool) []Event
	// Milestones are the moments of a hop to the bundle called to, from the one called from ("" for none), in their usual order.
	Milestones(from, to string) []Milestone
	// Setbacks says how often the manager installed the bundle again in timeline, and why it took it back: each reason once.
	Setbacks(timeline []Event, bundle string) (again int, reasons []string)
	// Actor names the manager's program with the given user agent, "" if it is none.
	Actor(program string) string
	// BundleOf names the bundle for which the manager runs the container, "" if that cannot be told.
	BundleOf(c *corev1.Container) string
	// Made reports whether the manager made o for the bundle.
	Made(o metav1.Object, bundle string) bool
	// Bookkeeping reports whether a label or an annotation differs from one installation of a bundle to the next.
	Bookkeeping(key string) bool
}

// Injector tells, and makes, the faults that need to know the manager.
type Injector interface {
	// Faults are those that only the manager knows.
	Faults() []Fault
	// FaultPhase says at which of the manager's phases a fault strikes that can be made under any manager, and that by its usual
	// one strikes at usual: "" where it would change nothing.
	FaultPhase(name, usual string) string
	// Inject makes the fault called name. Before each change it passes what takes the change back to the hop's Undo. Of a fault
	// that Blocks it returns whether the hop is held up now. It returns Inapplicable where it cannot be made.
	Inject(ctx context.Context, name string, hop Hop) (held func(context.Context) (bool, error), err error)
	// Certificates returns the Secrets with the certificates of the webhooks that the manager installed.
	Certificates(ctx context.Context, p Place) ([]corev1.Secret, error)
	// AuthorityKey is the key of such a Secret that holds the certificate of the authority, PEM encoded.
	AuthorityKey() string
}

// Stage is how far an installation came.
type Stage int

// Stages, in the order in which an installation comes to them.
const (
	Unresolved Stage = iota // the manager has not taken the bundle up
	Resolved                // it is about to install it
	Installing              // it installs it
	Replacing               // the bundle is installed, and another is not removed yet
	Finishing               // the bundle is installed alone, and the manager is not done
	Installed
)

// State is how far an installation came, and what stands in its way.
type State struct {
	Stage Stage
	Stall *Stall // what keeps the bundle from ever being installed, or nil
	// Refused is what the manager repeats in vain, and what the operator's process may crash of; or nil.
	Refused *Stall
}

// Stall is why an installation does not go on.
type Stall struct {
	Reason Reason
	Said   string        // by the manager
	Grace  time.Duration // how long it must say so without a break; 0 for what never changes
	Why    *Explanation  // in the moment in which it is said, or nil: Explain finds it
}

// Reason is why an installation does not go on.
type Reason string

// Reasons.
const (
	NotChosen            Reason = "NotChosen"            // the manager does not take the way to the bundle
	NotApplied           Reason = "NotApplied"           // it cannot apply the bundle's objects
	NotSucceeded         Reason = "NotSucceeded"         // the bundle is applied, and does not become ready
	Unmet                Reason = "Unmet"                // what the bundle requires is not there
	UnsafeDefinition     Reason = "UnsafeDefinition"     // the change of a definition may break its objects
	StoredVersionRefused Reason = "StoredVersionRefused" // a definition drops a version that is stored
	ObjectsRefused       Reason = "ObjectsRefused"       // objects are invalid by the new schema
	ConversionFails      Reason = "ConversionFails"      // objects cannot be converted
)

// View is what was seen of the cluster so far.
type View struct {
	client.Reader         // the newest objects
	Timeline      []Event // since the bundle was requested
}

// Explanation is why a bundle is not running.
type Explanation struct {
	Phase     string // what the manager was doing, in its own words where it has any
	Object    string // Kind/namespace/name of the object that says why
	Why       string // what it says
	Event     string // the newest warning event that bears on it
	Container string // namespace/pod/container whose process is to blame, if one is
	Decider   string // namespace/pod/container of the manager's own program that decides, if no process is to blame
	Running   bool   // the container runs, and is not ready
	Ended     bool   // a process of the container ended
}

// String is the explanation in one line.
func (e Explanation) String() string {
	s := fmt.Sprintf("%s: %s says: %s", e.Phase, e.Object, e.Why)
	if e.Event != "" {
		s += "; event: " + e.Event
	}
	return s
}

// Warning is what the manager warned of.
type Warning struct {
	Object  string // Kind/namespace/name
	Message string
}

// Fault is a trouble that only the manager knows how to make.
type Fault struct {
	Name   string
	Doc    string // what is done, and until when
	Phase  string // at which it is injected unless another is asked for
	Fixed  bool   // it is injected at Phase only
	Blocks bool   // it holds an upgrade up while it is in force; one that does not is survived
	Shared bool   // it affects what others on the cluster need as well
}

// Hop is where a fault is made.
type Hop struct {
	Place
	From, To string // bundles
	Seen     client.Reader
	Undo     func(func(context.Context) error)
}

// BeforeHop is the phase before the catalog with the new bundle is published. The others are named by the milestones that
// begin them.
const BeforeHop = "before"

// Inapplicable is why a fault cannot be made on a hop.
type Inapplicable string

func (i Inapplicable) Error() string { return string(i) }

// ErrTimeout is the error of a condition that did not come about in time.
var ErrTimeout = errors.New("timed out waiting for the condition")

// DeletionTimeoutError is the error of what was deleted and is still there.
type DeletionTimeoutError struct {
	What  []string // Kind/name of each
	After time.Duration
	Why   string // what is known of what keeps it, or ""
}

func (r DeletionTimeoutError) Error() string {
	text := fmt.Sprintf("%s still there %s after being deleted", strings.Join(r.What, ", "), r.After)
	if r.Why != "" {
		text += ": " + r.Why
	}
	return text
}
