// Package installation has OLM install a bundle on a cluster, or upgrade to it, and leaves it running there.
package installation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/progress"
)

// channel is the only one of what is offered.
const channel = "olmkit"

// unresolvedLimit is how long OLM may say that it finds nothing to install, until it counts.
const unresolvedLimit = 20 * time.Second

// Options of Run.
type Options struct {
	Namespace string        // "" for where the package is, or else one called as the package
	Timeout   time.Duration // until the operator runs
	Progress  *progress.Printer
	// Publish serves a catalog on the cluster until long after this process: as the CatalogSource called name in namespace, or, where
	// that is "", as the ClusterCatalog called name.
	Publish func(ctx context.Context, namespace, name string, labels map[string]string, fbc []byte) error
}

// Result is what became of a Run.
type Result struct {
	Package   string         `json:"package"`
	OLM       string         `json:"olm"` // v0 or v1
	Namespace string         `json:"namespace"`
	Bundle    string         `json:"bundle"`
	From      string         `json:"from,omitempty"` // what it replaced
	Mode      lifecycle.Mode `json:"installMode,omitempty"`
	Unchanged bool           `json:"unchanged"` // it was installed before
	CRDs      []string       `json:"crds"`
	Images    []string       `json:"images"` // of the operator's pods
	Phases    []Phase        `json:"phases"`
}

// Phase is something that OLM did.
type Phase struct {
	Seconds float64 `json:"seconds"` // since the Subscription was made or changed
	Name    string  `json:"name"`
}

// Run has OLM install the bundle of the package pkg in offered, in which the other packages are what it depends on; if an
// earlier Run installed a lower version, OLM upgrades. What was made stays also when it fails.
func Run(ctx context.Context, c *olmv0.Client, offered *catalog.Catalog, pkg string, options Options) (*Result, error) {
	fbc, err := catalog.Offer(offered, channel)
	if err != nil {
		return nil, err
	}
	b := offered.Find(pkg).Bundles[0]
	r, err := read(b, pkg)
	if err != nil {
		return nil, err
	}
	installed, err := preflight(ctx, c, b, r, options.Namespace)
	if err != nil || r.Unchanged {
		return r, err
	}
	c.Run, c.Brings = pkg, brings(offered)
	if err := place(ctx, c, r, installed == nil); err != nil {
		return r, err
	}
	step := options.Progress.Start("CatalogSource %s/%s", r.Namespace, olmv0.RunCatalog)
	labels := cluster.Labels("")
	labels[cluster.RunLabel] = pkg
	if err := step.End(options.Publish(ctx, r.Namespace, olmv0.RunCatalog, labels, fbc)); err != nil {
		return r, err
	}
	s := olmv0.Subscription{Namespace: r.Namespace, Package: pkg, Channel: channel, Catalog: olmv0.RunCatalog}
	if err := c.Subscribe(ctx, s); err != nil {
		return r, err
	}
	step = options.Progress.Start("%s", r.verb())
	return r, step.End(r.wait(ctx, c, s, options))
}

// verb says what OLM is asked to do.
func (r *Result) verb() string {
	if r.From != "" {
		return r.From + " → " + r.Bundle
	}
	return "install " + r.Bundle
}

// read returns what is known of b before anything is installed.
func read(b *catalog.Bundle, pkg string) (*Result, error) {
	csv, err := b.CSV()
	if err != nil {
		return nil, err
	}
	modes := lifecycle.ModesOf(csv)
	if len(modes) == 0 {
		return nil, hint.With(catalog.Flaw{Err: fmt.Errorf("bundle %s (%s) supports no install mode", b.Name, b.At)}, "list one with supported: true in the CSV's installModes")
	}
	if !slices.Contains([]lifecycle.Mode{lifecycle.AllNamespaces, lifecycle.OwnNamespace}, modes[0]) {
		return nil, hint.With(fmt.Errorf("bundle %s (%s) supports neither AllNamespaces nor OwnNamespace", b.Name, b.At), "write a Subscription for it with 'olmkit subscription generate --install-mode'")
	}
	return newResult(b, pkg, "v0", modes[0], csv), nil
}

// newResult returns what is known before the bundle b of pkg is installed.
func newResult(b *catalog.Bundle, pkg, olm string, mode lifecycle.Mode, csv *v1alpha1.ClusterServiceVersion) *Result {
	r := &Result{Package: pkg, OLM: olm, Bundle: b.Name, Mode: mode, CRDs: []string{}, Images: []string{}, Phases: []Phase{}}
	for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
		if !slices.Contains(r.CRDs, d.Name) {
			r.CRDs = append(r.CRDs, d.Name)
		}
	}
	for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, container := range d.Spec.Template.Spec.Containers {
			r.Images = append(r.Images, container.Image)
		}
	}
	return r
}

// preflight finds where the package is, and notes it in r. It is an error if it is not an earlier Run's, or nothing that b can
// replace. It returns the package's Subscription, or nil if there is none.
func preflight(ctx context.Context, c *olmv0.Client, b *catalog.Bundle, r *Result, namespace string) (*v1alpha1.Subscription, error) {
	if _, err := c.Version(ctx); err != nil {
		return nil, hint.With(err, "install it with 'olmkit olm install'")
	}
	subscriptions, err := c.Subscriptions(ctx, r.Package)
	if err != nil {
		return nil, err
	}
	var ours *v1alpha1.Subscription
	for i, s := range subscriptions {
		if s.Labels[cluster.RunLabel] != r.Package {
			return nil, hint.With(fmt.Errorf("package %s is on the cluster already: %s, which 'olmkit bundle run' did not make", r.Package, olmv0.Describe(&subscriptions[i])),
				"use another cluster, or delete that installation first")
		}
		ours = &subscriptions[i]
	}
	r.Namespace = namespace
	if r.Namespace == "" {
		r.Namespace = r.Package
	}
	if ours == nil {
		others, err := c.Subscribed(ctx, r.Namespace, r.Package)
		if err == nil && len(others) > 0 {
			err = hint.With(fmt.Errorf("namespace %s has %s already", r.Namespace, strings.Join(others, ", ")), "choose another --namespace: OLM upgrades all that is in one together")
		}
		return nil, err
	}
	if err := r.stay(namespace, ours.Namespace); err != nil {
		return nil, err
	}
	before, err := c.ClusterServiceVersion(ctx, r.Namespace, ours.Status.InstalledCSV)
	switch {
	case err != nil || before == nil:
		return ours, err
	case before.Name == r.Bundle:
		r.Unchanged = before.Status.Phase == v1alpha1.CSVPhaseSucceeded
		return ours, nil
	}
	return ours, r.replaces(b.Version, before.Name, before.Spec.Version.Version)
}

// stay notes in r the namespace where the package is, which must be the wanted one unless that is "".
func (r *Result) stay(wanted, namespace string) error {
	if wanted != "" && wanted != namespace {
		return hint.With(fmt.Errorf("package %s runs in namespace %s", r.Package, namespace), "leave --namespace %s out, or run 'olmkit cleanup %s' first", wanted, r.Package)
	}
	r.Namespace = namespace
	return nil
}

// replaces notes in r that the bundle, of the version, replaces the one called name, whose version must be lower.
func (r *Result) replaces(version semver.Version, name string, old semver.Version) error {
	if version.LTE(old) {
		return hint.With(fmt.Errorf("%s is %s, and %s is installed, which is %s", r.Bundle, version, name, old),
			"run a bundle of a higher version, or 'olmkit cleanup %s' first", r.Package)
	}
	r.From = name
	return nil
}

// brings names what of the cluster's scope the bundles bring, each Kind/name.
func brings(offered *catalog.Catalog) []string {
	var all []string
	for _, p := range offered.Packages {
		for _, b := range p.Bundles {
			all = append(all, b.ClusterScoped()...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// place makes the namespace and its OperatorGroup, unless the package is there already.
func place(ctx context.Context, c *olmv0.Client, r *Result, create bool) error {
	if !create {
		return nil
	}
	if err := c.EnsureNamespace(ctx, r.Namespace); err != nil {
		return err
	}
	return c.Group(ctx, r.Namespace, r.Mode)
}

// wait waits until the bundle is installed and what it replaces is gone, and notes in r what OLM does.
func (r *Result) wait(ctx context.Context, c *olmv0.Client, s olmv0.Subscription, options Options) error {
	start, unresolved := time.Now(), time.Time{}
	note := r.noter(start, options.Progress)
	defer options.Progress.Status("")
	place := lifecycle.Place{Namespace: s.Namespace, Package: s.Package, Catalog: s.Catalog}
	var stop error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, options.Timeout, true, func(ctx context.Context) (bool, error) {
		state, err := c.InstallState(ctx, s, r.Bundle, r.From)
		if err != nil {
			return false, err
		}
		if state.Phase != "" {
			note(state.Phase)
		}
		if state.Unnamed {
			mended, err := c.Remind(ctx, place, r.Bundle, c)
			if mended != "" {
				options.Progress.Say("%s", mended)
			}
			return false, err
		}
		if !state.Unresolved {
			unresolved = time.Time{}
		} else if unresolved.IsZero() {
			unresolved = time.Now()
		}
		if state.Failed || !unresolved.IsZero() && time.Since(unresolved) > unresolvedLimit {
			stop = errors.New("it will not be")
		}
		return state.Done, stop
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	return r.notInstalled(ctx, c, place, start, err)
}

// noter returns what notes in r, once, that OLM began something that has a name.
func (r *Result) noter(start time.Time, p *progress.Printer) func(name string) {
	return func(name string) {
		if slices.ContainsFunc(r.Phases, func(p Phase) bool { return p.Name == name }) {
			return
		}
		r.Phases = append(r.Phases, Phase{Seconds: time.Since(start).Round(100 * time.Millisecond).Seconds(), Name: name})
		p.Status("%s: %s", r.Bundle, name)
	}
}

// explainer says why a bundle does not get installed.
type explainer interface {
	Explain(ctx context.Context, p lifecycle.Place, bundle string, since time.Time) (lifecycle.Explanation, error)
}

// notInstalled is the error of a bundle that was requested at start, and is not installed because of err.
func (r *Result) notInstalled(ctx context.Context, c explainer, p lifecycle.Place, start time.Time, err error) error {
	why, failed := c.Explain(ctx, p, r.Bundle, start)
	if failed != nil {
		return errors.Join(err, failed)
	}
	waited := time.Since(start).Round(time.Second)
	return hint.With(fmt.Errorf("%s is not installed after %s: %s", r.Bundle, waited, why),
		"see what it waits for with 'olmkit upgrade diagnose -p %[1]s'; if the bundle is to be changed, run 'olmkit cleanup %[1]s', and run it again. What was created stays for you to look at", r.Package)
}
