package upgrade

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// access is what a ServiceAccount asks of the API server.
type access struct {
	Account         string // namespace/name
	Verb            string
	Group, Resource string // the resource with its subresource
	Namespace       string // "" for the cluster scope
	Name            string // of the object, "" for all
}

// resource names what is asked for as kubectl does.
func (a access) resource() string {
	name, sub, _ := strings.Cut(a.Resource, "/")
	if a.Group != "" {
		name += "." + a.Group
	}
	return strings.TrimSuffix(name+"/"+sub, "/")
}

// object names the object that is asked for.
func (a access) object() string {
	name := a.resource()
	for _, part := range []string{a.Namespace, a.Name} {
		if part != "" {
			name += "/" + part
		}
	}
	return name
}

// refusal is what the API server refused an account, and has not granted since.
type refusal struct {
	access
	Code        string
	Count       int // 0 for what was not asked for since it is not allowed
	First, Last time.Time
	Why         string   // the API server's own message, or how else it is known
	Version     string   // of the API
	Fields      []string // that are invalid
	Wanted      []byte   // the refused object or patch, where the audit log has it
}

// refusalLimits are how often in a row something is refused before that is a refusal: an operator may ask once or twice
// whether an optional API is there, and meets conflicts whenever others write the same object.
var refusalLimits = map[string]int{codeNoResource: 3, codeConflicts: 5}

// messageLimit bounds what is quoted of the API server's messages, in bytes.
const messageLimit = 600

var (
	refusedVerb = regexp.MustCompile(`^.{0,500}cannot ([a-z]+) resource "`)
	denial      = regexp.MustCompile(`admission webhook ".{1,300}?" denied the request|ValidatingAdmissionPolicy '.{1,300}?' (with binding '.{1,300}?' )?denied request`)
)

// alternatives returns the verbs of which an operator needs any for what it did by a before, if that is what no release does
// without as long as the resource is its own or it may change its objects: to see its own objects, to write their status, to
// create what it takes care of. owned are the names of the definitions that it owns.
func (a access) alternatives(owned []string) []string {
	kind, sub, _ := strings.Cut(a.Resource, "/")
	own := slices.Contains(owned, kind+"."+a.Group)
	switch {
	case own && sub == "" && (a.Verb == "list" || a.Verb == "watch"), a.Verb == "create" && sub == "":
		return []string{a.Verb}
	case own && sub == "status" && (a.Verb == "update" || a.Verb == "patch"):
		return []string{"update", "patch"}
	}
	return nil
}

// accesses are what e asks for: a patch or update that created its object needs to be allowed to create as well.
func accesses(e auditv1.Event, account string) []access {
	o := e.ObjectRef
	if o == nil || o.Resource == "" {
		return nil
	}
	a := access{Account: account, Verb: e.Verb, Group: o.APIGroup, Resource: strings.TrimSuffix(o.Resource+"/"+o.Subresource, "/"), Namespace: o.Namespace, Name: o.Name}
	asked := []access{a}
	if s := e.ResponseStatus; e.Verb != "create" && s != nil && s.Code == http.StatusCreated {
		a.Verb = "create"
		asked = append(asked, a)
	}
	return asked
}

// granted reports whether the API server did what e asks for.
func granted(e auditv1.Event) bool { return e.ResponseStatus != nil && e.ResponseStatus.Code < 300 }

// refusedAs returns the code of the finding that the answer to e leads to if it stays so, or "".
func refusedAs(e auditv1.Event) string {
	s := e.ResponseStatus
	if s == nil || s.Code < 400 || s.Code >= 500 || strings.Contains(s.Message, faultName) {
		return ""
	}
	caused := func(t metav1.CauseType) bool {
		return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return t == "" || c.Type == t })
	}
	switch {
	case denial.MatchString(s.Message):
		return codeDenied
	case s.Code == http.StatusUnauthorized, s.Code == http.StatusForbidden && !caused("NamespaceTerminating"):
		return codeForbidden
	case s.Code == http.StatusNotFound && (s.Message == "" || strings.Contains(s.Message, "could not find the requested resource") || strings.Contains(s.Message, "404 page not found")):
		return codeNoResource
	case s.Code == http.StatusConflict && s.Reason == metav1.StatusReasonConflict && e.ObjectRef.Resource != "leases":
		return codeConflicts
	case s.Code == http.StatusUnprocessableEntity && caused(""):
		return codeInvalid
	}
	return ""
}

// refusals returns what log, which is in order, says was refused and not granted since. account returns whose request an
// event is, "" for nobody's of interest.
func refusals(log []auditv1.Event, account func(auditv1.Event) string) []refusal {
	type key struct {
		code string
		access
	}
	of := func(code string, a access) key {
		if code == codeForbidden || code == codeNoResource {
			a.Name = "" // what is refused of one object is refused of all
		}
		return key{code, a}
	}
	open := map[key]*refusal{}
	var order []key
	for _, e := range log {
		who := account(e)
		if who == "" {
			continue
		}
		for _, a := range accesses(e, who) {
			if granted(e) {
				for _, code := range []string{codeForbidden, codeNoResource, codeConflicts, codeInvalid, codeDenied} {
					delete(open, of(code, a))
				}
				continue
			}
			code := refusedAs(e)
			if code == "" {
				continue
			}
			if m := refusedVerb.FindStringSubmatch(e.ResponseStatus.Message); code == codeForbidden && m != nil {
				a.Verb = m[1]
			}
			k := of(code, a)
			if open[k] == nil {
				open[k] = &refusal{access: a, Code: code, First: e.RequestReceivedTimestamp.Time}
				order = append(order, k)
			}
			open[k].add(e)
		}
	}
	var list []refusal
	for _, k := range order {
		if r := open[k]; r != nil && r.Count >= refusalLimits[r.Code] {
			list = append(list, *r)
			delete(open, k)
		}
	}
	return list
}

// add counts one more answer.
func (r *refusal) add(e auditv1.Event) {
	r.Count++
	r.Last = e.RequestReceivedTimestamp.Time
	s := e.ResponseStatus
	r.Why = cmp.Or(s.Message, http.StatusText(int(s.Code)))
	if len(r.Why) > messageLimit {
		r.Why = strings.ToValidUTF8(r.Why[:messageLimit], "") + "…"
	}
	r.Why = fmt.Sprintf("the API server says (%d): %s", s.Code, r.Why)
	if r.Code != codeInvalid {
		return
	}
	r.Version, r.Fields = e.ObjectRef.APIVersion, nil
	for _, c := range s.Details.Causes {
		if c.Field != "" && !slices.Contains(r.Fields, c.Field) {
			r.Fields = append(r.Fields, c.Field)
		}
	}
	if e.RequestObject != nil {
		r.Wanted = e.RequestObject.Raw
	}
}

// quotedNames are what messages name in single quotes: the fields that may be changed.
var quotedNames = regexp.MustCompile(`'([A-Za-z]{1,100})'`)

// changedFields says which of the refused fields r would have changed of the live object, from what to what; or names the
// refused fields alone, where that cannot be told.
func (r refusal) changedFields(live map[string]any) []string {
	var wanted map[string]any
	if live == nil || json.Unmarshal(r.Wanted, &wanted) != nil {
		return r.Fields
	}
	var mutable []string
	for _, m := range quotedNames.FindAllStringSubmatch(r.Why, -1) {
		mutable = append(mutable, m[1])
	}
	var changed []string
	for _, d := range differences(wanted, live) {
		for _, field := range r.Fields {
			rest, below := strings.CutPrefix(d.Path, field)
			next := strings.FieldsFunc(rest, func(c rune) bool { return c == '.' || c == '[' })
			if below && (rest == "" || rest[0] == '.' || rest[0] == '[') && (len(next) == 0 || !slices.Contains(mutable, next[0])) {
				changed = append(changed, fmt.Sprintf("%s from %s to %s", d.Path, show(d.Is), show(d.Was)))
				break
			}
		}
	}
	const most = 5
	if len(changed) > most {
		changed = append(changed[:most], fmt.Sprintf("and %d more", len(changed)-most))
	}
	if len(changed) == 0 {
		return r.Fields
	}
	return changed
}

// refusalFindings makes of what to was refused a finding for each account and resource. before is what the release before was
// refused while it ran; local says which namespaces the CSV's permissions reach.
func refusalFindings(list, before []refusal, to *release, started time.Time, local func(namespace string) bool) []finding.Finding {
	type key struct{ code, account, resource string }
	groups := map[key][]refusal{}
	var order []key
	for _, r := range list {
		k := key{r.Code, r.Account, r.resource()}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	var findings []finding.Finding
	for _, k := range order {
		group := groups[k]
		f := find(k.code, group[0].object(), "%s", tellRefusals(group, to, started))
		if k.code == codeForbidden {
			f.Subject.Object = "ServiceAccount/" + k.account
			if rule := missingRules(group, local); rule != "" {
				f.Fix = rule
			}
		}
		f.Cause = group[0].Why
		if !slices.ContainsFunc(group, func(r refusal) bool { return !r.in(before) }) {
			f.Severity = finding.Warning
			f.Cause += "; the version before was refused the same"
		}
		findings = append(findings, f)
	}
	return findings
}

// in reports whether list has the same kind of refusal, of whichever account, object and namespace. What an informer needs is
// the same: which of it was asked for first is a matter of the moment.
func (r refusal) in(list []refusal) bool {
	return slices.ContainsFunc(list, func(o refusal) bool {
		sameVerb := o.Verb == r.Verb || slices.Contains(informerVerbs, o.Verb) && slices.Contains(informerVerbs, r.Verb)
		return o.Code == r.Code && sameVerb && o.Group == r.Group && o.Resource == r.Resource
	})
}

// tellRefusals says what was refused, where, how often and when.
func tellRefusals(group []refusal, to *release, started time.Time) string {
	var where []string
	count := 0
	first, last := group[0].First, group[0].Last
	for _, r := range group {
		place := "in namespace " + r.Namespace
		if r.Namespace == "" {
			place = "at the cluster scope"
		}
		if where = append(where, place); r.Count == 0 {
			continue
		}
		count += r.Count
		if first.IsZero() || r.First.Before(first) {
			first = r.First
		}
		if r.Last.After(last) {
			last = r.Last
		}
	}
	slices.Sort(where)
	where = slices.Compact(where)
	if more := len(where) - 3; more > 0 {
		where = append(where[:3], fmt.Sprintf("%d other namespaces", more))
	}
	what := fmt.Sprintf("%s %s %s", strings.Join(verbsOf(group), ", "), group[0].resource(), strings.Join(where, ", "))
	if count == 0 {
		return fmt.Sprintf("%s: ServiceAccount %s may not %s", to.Name, group[0].Account, what)
	}
	often := "once"
	if count > 1 {
		often = fmt.Sprintf("%d times", count)
	}
	switch {
	case first.IsZero(): // a log may tell no time
	case count > 1:
		often += fmt.Sprintf(", %.1fs to %.1fs after the start", first.Sub(started).Seconds(), last.Sub(started).Seconds())
	default:
		often += fmt.Sprintf(", %.1fs after the start", first.Sub(started).Seconds())
	}
	said := fmt.Sprintf("%s: the API server refuses ServiceAccount %s: %s (%s)", to.Name, group[0].Account, what, often)
	var fields []string
	for _, r := range group {
		fields = append(fields, r.Fields...)
	}
	slices.Sort(fields)
	if fields = slices.Compact(fields); len(fields) > 0 {
		said += "; it would change " + strings.Join(fields, ", ")
	}
	return said
}

func verbsOf(group []refusal) []string {
	var verbs []string
	for _, r := range group {
		verbs = append(verbs, r.Verb)
	}
	slices.Sort(verbs)
	return slices.Compact(verbs)
}

// missingRules says which rules to add to the ClusterServiceVersion so that what was forbidden is allowed, as YAML; "" if it was
// not RBAC that forbade it.
func missingRules(group []refusal, local func(namespace string) bool) string {
	lists := map[string][]refusal{}
	for _, r := range group {
		switch {
		case r.Count > 0 && !refusedVerb.MatchString(r.Why):
		case r.Namespace != "" && local(r.Namespace) && r.Resource != "namespaces":
			lists["permissions"] = append(lists["permissions"], r)
		default:
			lists["clusterPermissions"] = append(lists["clusterPermissions"], r)
		}
	}
	var rules []string
	for _, key := range []string{"clusterPermissions", "permissions"} {
		if missing := lists[key]; len(missing) > 0 {
			_, account, _ := strings.Cut(missing[0].Account, "/")
			rules = append(rules, fmt.Sprintf("add to the rules of serviceAccountName %s in spec.install.spec.%s of the ClusterServiceVersion: "+
				"- {apiGroups: [%s], resources: [%s], verbs: [%s]}", account, key, cmp.Or(missing[0].Group, `""`), missing[0].Resource, strings.Join(verbsOf(missing), ", ")))
		}
	}
	return strings.Join(rules, "; ")
}

// operatorPod is a pod in the operator's namespace.
type operatorPod struct {
	Release string // whose manager it runs, "" if that cannot be told
	IP      string
}

// operatorPodOf reads it off p.
func operatorPodOf(m lifecycle.Watched, p *corev1.Pod) operatorPod {
	of := operatorPod{}
	if !p.Spec.HostNetwork {
		of.IP = p.Status.PodIP
	}
	for i := range p.Spec.Containers {
		of.Release = cmp.Or(m.BundleOf(&p.Spec.Containers[i]), of.Release)
	}
	return of
}

// podNameExtra is where the API server tells to which pod a token was given.
const podNameExtra = "authentication.kubernetes.io/pod-name"

// unauthorized reports whether the API server does not know who asked.
func unauthorized(e auditv1.Event) bool {
	return e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusUnauthorized
}

// asker returns whose request an event is, if it came from r's pods, or from a pod that nothing is known of, and between
// since and until (the zero time is for ever). The API server does not know who sent a token that it refuses, but from where.
func asker(r *release, namespace string, pods map[string]operatorPod, since, until time.Time) func(auditv1.Event) string {
	accounts := r.Permitted(namespace)
	return func(e auditv1.Event) string {
		at := e.RequestReceivedTimestamp.Time
		if at.Before(since) || !until.IsZero() && !at.Before(until) {
			return ""
		}
		if unauthorized(e) {
			for _, p := range pods {
				if p.Release == r.Name && p.IP != "" && slices.Contains(e.SourceIPs, p.IP) {
					return accounts[0]
				}
			}
			return ""
		}
		name, is := strings.CutPrefix(e.User.Username, "system:serviceaccount:")
		account := strings.Replace(name, ":", "/", 1)
		if !is || !slices.Contains(accounts, account) {
			return ""
		}
		if of := e.User.Extra[podNameExtra]; len(of) > 0 {
			if p := pods[of[0]]; p.Release != "" && p.Release != r.Name {
				return ""
			}
		}
		return account
	}
}

// known is account without requests whose token the API server does not know. In an installation that does not come to its end
// OLM makes the ServiceAccount anew while pods have tokens of the old one.
func known(account func(auditv1.Event) string) func(auditv1.Event) string {
	return func(e auditv1.Event) string {
		if unauthorized(e) {
			return ""
		}
		return account(e)
	}
}
