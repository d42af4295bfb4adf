package walk

import (
	"context"
	"slices"
	"time"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// sharedMode returns the install mode to walk from from to to in, and whether both support it.
func (w *walk) sharedMode(from, to *lifecycle.Release) (lifecycle.Mode, bool) {
	return sharedMode(w.Manager.Modes(from), w.Manager.Modes(to), w.Place.Mode)
}

// sharedMode returns now if both releases support it, else the widest of from that to has, too; else, and false, the widest of
// from.
func sharedMode(from, to []lifecycle.Mode, now lifecycle.Mode) (lifecycle.Mode, bool) {
	if slices.Contains(from, now) && slices.Contains(to, now) {
		return now, true
	}
	for _, m := range from {
		if slices.Contains(to, m) {
			return m, true
		}
	}
	if len(from) > 0 {
		return from[0], false
	}
	return lifecycle.AllNamespaces, false
}

// placeFor is where the package is installed in mode.
func (w *walk) placeFor(mode lifecycle.Mode) lifecycle.Place {
	p := lifecycle.Place{Package: w.pkg.Name, Channel: w.channel, Catalog: catalogName, Namespace: w.pkg.Name, Mode: mode}
	switch mode {
	case lifecycle.AllNamespaces:
		p.Namespace = w.options.Namespace
	case lifecycle.SingleNamespace:
		p.Targets = []string{p.Namespace + "-served"}
	case lifecycle.MultiNamespace:
		p.Targets = []string{p.Namespace + "-served", p.Namespace + "-served-2"}
	}
	if r := w.options.Restore; r != nil {
		p.Namespace, p.Targets = w.options.Namespace, r.Targets
	}
	return p
}

// prepareAt makes the place for the walk's install mode ready and watches it.
func (w *walk) prepareAt(ctx context.Context) error {
	there := w.Place.Namespace
	p := w.placeFor(w.Place.Mode)
	if err := w.Manager.Prepare(ctx, p); err != nil {
		return err
	}
	w.Place = p
	if w.Watcher != nil && there == p.Namespace {
		return nil
	}
	if w.unwatch != nil {
		w.unwatch()
	}
	ctx, w.unwatch = context.WithCancel(ctx)
	var err error
	if w.Watcher, err = w.follow(ctx, p.Namespace); err != nil {
		return err
	}
	if w.options.Verbose {
		began := time.Now()
		w.Watcher.Tell(func(e lifecycle.Event) { w.options.Progress.Say("   %6.1fs    %s", e.At.Sub(began).Seconds(), e) })
	}
	return nil
}
