package walk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"

	"github.com/olmkit/olmkit/internal/assert"
	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// judgeAssertions waits until all of the user's assertions hold on r at the same time, and reports those that do not by
// their timeouts.
func (w *walk) judgeAssertions(ctx context.Context, r *lifecycle.Release) ([]finding.Finding, error) {
	assertions := w.options.Assertions
	if len(assertions) == 0 {
		return nil, nil
	}
	if idle := r.Idle(w.Simulated); len(idle) > 0 {
		return []finding.Finding{code.Finding(code.NotProvable, "", "whether %s is as asserted is not proved: its pods were simulated (%s)",
			r.Name, strings.Join(idle, ", "))}, nil
	}
	cluster := &asserted{resources: w.Dynamic, mapper: w.Client.RESTMapper(), objects: w.Objects, namespaces: w.AssertedNamespaces}
	longest := slices.MaxFunc(assertions, func(a, b assert.Assertion) int { return int(a.Timeout - b.Timeout) }).Timeout
	started := time.Now()
	var failed []mismatch
	err := w.Watcher.Until(ctx, longest, func() (bool, error) {
		var err error
		failed, err = cluster.mismatches(ctx, assertions)
		waiting := slices.ContainsFunc(failed, func(m mismatch) bool { return time.Since(started) < m.Timeout })
		return !waiting, err
	})
	if err != nil && !errors.Is(err, observe.ErrTimeout) {
		return nil, fmt.Errorf("compare objects with the assertions: %w", err)
	}
	var findings []finding.Finding
	for _, m := range failed {
		f := code.Finding(code.Assertion, m.Object, "timed out after %s waiting for it to be as asserted on %s: %s", m.Timeout, r.Name, strings.Join(m.Differences, "; "))
		f.Location = &m.At
		findings = append(findings, f)
	}
	return findings, nil
}

// asserted is where assertions are looked up.
type asserted struct {
	resources  dynamic.Interface
	mapper     meta.RESTMapper
	objects    []*observe.Object
	namespaces func(string) []string // that stand for the one that an assertion names
}

// mismatch is an assertion that does not hold.
type mismatch struct {
	assert.Assertion
	Object      string   // the one that comes nearest to it
	Differences []string // of that one
}

// mismatches returns those of assertions that do not hold now.
func (c *asserted) mismatches(ctx context.Context, assertions []assert.Assertion) ([]mismatch, error) {
	var failed []mismatch
	for _, a := range assertions {
		object, differences := c.look(ctx, a)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(differences) > 0 {
			failed = append(failed, mismatch{a, object, differences})
		}
	}
	return failed, nil
}

// look returns how the object that comes nearest to a differs from it, and nothing if a holds. That an object cannot be
// read is a difference too: it may pass.
func (c *asserted) look(ctx context.Context, a assert.Assertion) (object string, differences []string) {
	mapping, err := c.mapper.RESTMapping(a.Kind.GroupKind(), a.Kind.Version)
	if err != nil {
		return a.Kind.Kind, []string{err.Error()}
	}
	resource := c.resources.Resource(mapping.Resource)
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if a.Name == "" {
		return c.lookByLabels(ctx, a, resource, namespaced)
	}
	var names []string
	most, beside := 0, map[target]int{}
	for _, group := range c.targets(a, namespaced) {
		if beside[group[0]] > 1 { // the first object has the sample's own name, which means all that are there
			continue
		}
		first, all, found := c.compare(ctx, a, resource, group)
		for _, t := range group {
			beside[t] = found
		}
		if len(all) == 0 {
			return "", nil
		}
		if found > most {
			object, differences, most = first, all, found
		}
		for _, t := range group {
			names = append(names, t.of(a.Kind.Kind))
		}
	}
	if most == 0 {
		last := len(names) - 1
		object, differences = names[last], []string{"it is not there"}
		if last > 0 {
			differences[0] += ", nor is any of " + strings.Join(names[:last], ", ")
		}
	}
	return object, differences
}

// compare returns the first of the targets that is not as a asserts, its differences, and how many of the targets are there.
func (c *asserted) compare(ctx context.Context, a assert.Assertion, resource dynamic.NamespaceableResourceInterface, targets []target) (first string, differences []string, found int) {
	for _, t := range targets {
		var different []string
		o, err := t.in(resource).Get(ctx, t.name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			different = []string{"it is not there"}
		case err != nil:
			different = []string{err.Error()}
			found++
		default:
			different = a.Differences(o.Object)
			found++
		}
		if len(differences) == 0 {
			first, differences = t.of(a.Kind.Kind), different
		}
	}
	return first, differences, found
}

// lookByLabels is look for an assertion without a name, which any object of the kind with its labels may fulfil.
func (c *asserted) lookByLabels(ctx context.Context, a assert.Assertion, resource dynamic.NamespaceableResourceInterface, namespaced bool) (object string, differences []string) {
	selector := labels.SelectorFromSet(a.Labels).String()
	object = a.Kind.Kind
	for _, namespace := range c.searched(a, namespaced) {
		list, err := target{namespace: namespace}.in(resource).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: mostListed})
		if err != nil {
			return object, []string{err.Error()}
		}
		for _, o := range list.Items {
			different := a.Differences(o.Object)
			if len(different) == 0 {
				return "", nil
			}
			if len(differences) == 0 || len(different) < len(differences) {
				object, differences = target{o.GetNamespace(), o.GetName()}.of(a.Kind.Kind), different
			}
		}
	}
	if len(differences) == 0 {
		differences = []string{strings.TrimSpace("there is none " + selector)}
	}
	return object, differences
}

// mostListed bounds how many objects an assertion without a name is compared with in one namespace.
const mostListed = 500

// searched are the namespaces in which an assertion without a name is looked up: that which it names, or all with samples.
func (c *asserted) searched(a assert.Assertion, namespaced bool) []string {
	if !namespaced {
		return []string{""}
	}
	list := slices.Clone(c.namespaces(a.Namespace))
	for _, o := range c.objects {
		if a.Namespace == "" && o.Namespace != "" && !slices.Contains(list, o.Namespace) {
			list = append(list, o.Namespace)
		}
	}
	return list
}

// target is an object by its name.
type target struct{ namespace, name string }

func (t target) in(resource dynamic.NamespaceableResourceInterface) dynamic.ResourceInterface {
	if t.namespace == "" {
		return resource
	}
	return resource.Namespace(t.namespace)
}

// of names the target as findings do.
func (t target) of(kind string) string {
	return kind + "/" + strings.TrimPrefix(t.namespace+"/"+t.name, "/")
}

// targets returns what a may mean by its name: groups of objects that have to be as asserted, all of one of them. Since the
// walk makes several objects of each sample, an assertion that says the sample's name, or has it in the name of an operand,
// means what belongs to each of them. What has exactly the name that it says is the last group.
func (c *asserted) targets(a assert.Assertion, namespaced bool) [][]target {
	var groups [][]target
	byCRD := map[string]int{}
	longest := 0
	for _, o := range c.objects {
		if _, ok := renamed(a.Name, o.Sample, o.Name); ok {
			longest = max(longest, len(o.Sample))
		}
	}
	for _, o := range c.objects {
		name, ok := renamed(a.Name, o.Sample, o.Name)
		if !ok || len(o.Sample) < longest {
			continue
		}
		t := target{"", name}
		if namespaced {
			t.namespace = c.namespaceOf(a, o.Namespace)
		}
		i, known := byCRD[o.CRD]
		if !known {
			i = len(groups)
			byCRD[o.CRD] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], t)
	}
	namespaces := []string{""}
	if namespaced {
		namespaces = c.namespaces(a.Namespace)
	}
	var exact []target
	for _, namespace := range namespaces {
		exact = append(exact, target{namespace, a.Name})
	}
	return append(groups, exact)
}

// namespaceOf is the namespace of what belongs to a sample in the namespace beside.
func (c *asserted) namespaceOf(a assert.Assertion, beside string) string {
	all := c.namespaces(a.Namespace)
	if beside != "" && (a.Namespace == "" || slices.Contains(all, beside)) {
		return beside
	}
	return all[0]
}

// renamed returns name with that of a made object in place of that of its sample, and false if it does not have it as a
// whole word between dashes or dots.
func renamed(name, sample, made string) (string, bool) {
	for from := 0; sample != ""; {
		i := strings.Index(name[from:], sample)
		if i < 0 {
			break
		}
		start, end := from+i, from+i+len(sample)
		if (start == 0 || strings.IndexByte("-.", name[start-1]) >= 0) && (end == len(name) || strings.IndexByte("-.", name[end]) >= 0) {
			return name[:start] + made + name[end:], true
		}
		from = start + 1
	}
	return name, false
}
