package observe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Access is what a ServiceAccount asks of the API server.
type Access struct {
	Account         string // namespace/name
	Verb            string
	Group, Resource string // the resource with its subresource
	Namespace       string // "" for the cluster scope
	Name            string // of the object, "" for all
}

// FullResource names what is asked for as kubectl does.
func (a Access) FullResource() string {
	name, sub, _ := strings.Cut(a.Resource, "/")
	if a.Group != "" {
		name += "." + a.Group
	}
	return strings.TrimSuffix(name+"/"+sub, "/")
}

// Object names the object that is asked for.
func (a Access) Object() string {
	name := a.FullResource()
	for _, part := range []string{a.Namespace, a.Name} {
		if part != "" {
			name += "/" + part
		}
	}
	return name
}

// Refusal is what the API server refused an account, and has not granted since.
type Refusal struct {
	Access
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
var refusalLimits = map[string]int{code.NoResource: 3, code.Conflicts: 5}

// messageLimit bounds what is quoted of the API server's messages, in bytes.
const messageLimit = 600

var (
	// RefusedVerb finds the verb in what RBAC says of a request that it refuses.
	RefusedVerb = Compiled(`^.{0,500}cannot ([a-z]+) resource "`)
	// Denial finds who denies a request in what the API server says of it: an admission webhook or a policy.
	Denial = Compiled(`admission webhook ".{1,300}?" denied the request|ValidatingAdmissionPolicy '.{1,300}?' (with binding '.{1,300}?' )?denied request`)
)

// alternatives returns the verbs of which an operator needs any for what it did by a before, if that is what no release does
// without as long as the resource is its own or it may change its objects: to see its own objects, to write their status, to
// create what it takes care of. owned are the names of the definitions that it owns.
func (a Access) alternatives(owned []string) []string {
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
func accesses(e auditv1.Event, account string) []Access {
	o := e.ObjectRef
	if o == nil || o.Resource == "" {
		return nil
	}
	a := Access{Account: account, Verb: e.Verb, Group: o.APIGroup, Resource: strings.TrimSuffix(o.Resource+"/"+o.Subresource, "/"), Namespace: o.Namespace, Name: o.Name}
	asked := []Access{a}
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
	if s == nil || s.Code < 400 || s.Code >= 500 || strings.Contains(s.Message, FaultName) {
		return ""
	}
	caused := func(t metav1.CauseType) bool {
		return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return t == "" || c.Type == t })
	}
	switch {
	case Denial().MatchString(s.Message):
		return code.Denied
	case s.Code == http.StatusUnauthorized, s.Code == http.StatusForbidden && !caused("NamespaceTerminating"):
		return code.Forbidden
	case s.Code == http.StatusNotFound && (s.Message == "" || strings.Contains(s.Message, "could not find the requested resource") || strings.Contains(s.Message, "404 page not found")):
		return code.NoResource
	case s.Code == http.StatusConflict && s.Reason == metav1.StatusReasonConflict && e.ObjectRef.Resource != "leases":
		return code.Conflicts
	case s.Code == http.StatusUnprocessableEntity && caused(""):
		return code.Invalid
	}
	return ""
}

// Refusals returns what log, which is in order, says was refused and not granted since. account returns whose request an
// event is, "" for nobody's of interest.
func Refusals(log []auditv1.Event, account func(auditv1.Event) string) []Refusal {
	type key struct {
		kind string
		Access
	}
	of := func(kind string, a Access) key {
		if kind == code.Forbidden || kind == code.NoResource {
			a.Name = "" // what is refused of one object is refused of all
		}
		return key{kind, a}
	}
	open := map[key]*Refusal{}
	var order []key
	for _, e := range log {
		who := account(e)
		if who == "" {
			continue
		}
		for _, a := range accesses(e, who) {
			if granted(e) {
				for _, kind := range []string{code.Forbidden, code.NoResource, code.Conflicts, code.Invalid, code.Denied} {
					delete(open, of(kind, a))
				}
				if a.Verb == "create" { // what could not be changed was made anew
					for _, a.Verb = range []string{"update", "patch"} {
						delete(open, of(code.Invalid, a))
					}
				}
				continue
			}
			kind := refusedAs(e)
			if kind == "" {
				continue
			}
			if m := RefusedVerb().FindStringSubmatch(e.ResponseStatus.Message); kind == code.Forbidden && m != nil {
				a.Verb = m[1]
			}
			k := of(kind, a)
			if open[k] == nil {
				open[k] = &Refusal{Access: a, Code: kind, First: e.RequestReceivedTimestamp.Time}
				order = append(order, k)
			}
			open[k].add(e)
		}
	}
	var list []Refusal
	for _, k := range order {
		if r := open[k]; r != nil && r.Count >= refusalLimits[r.Code] {
			list = append(list, *r)
			delete(open, k)
		}
	}
	return list
}

// add counts one more answer.
func (r *Refusal) add(e auditv1.Event) {
	r.Count++
	r.Last = e.RequestReceivedTimestamp.Time
	s := e.ResponseStatus
	r.Why = cmp.Or(s.Message, http.StatusText(int(s.Code)))
	if len(r.Why) > messageLimit {
		r.Why = strings.ToValidUTF8(r.Why[:messageLimit], "") + "…"
	}
	r.Why = fmt.Sprintf("the API server says (%d): %s", s.Code, r.Why)
	if r.Code != code.Invalid {
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

// ChangedFields says which of the refused fields r would have changed of the live object, from what to what; or names the
// refused fields alone, where that cannot be told.
func (r Refusal) ChangedFields(live map[string]any) []string {
	var wanted map[string]any
	if live == nil || json.Unmarshal(r.Wanted, &wanted) != nil {
		return r.Fields
	}
	var mutable []string
	for _, m := range quotedNames.FindAllStringSubmatch(r.Why, -1) {
		mutable = append(mutable, m[1])
	}
	var changed []string
	for _, d := range compare.Differences(wanted, live) {
		for _, field := range r.Fields {
			rest, below := strings.CutPrefix(d.Path, field)
			next := strings.FieldsFunc(rest, func(c rune) bool { return c == '.' || c == '[' })
			if below && (rest == "" || rest[0] == '.' || rest[0] == '[') && (len(next) == 0 || !slices.Contains(mutable, next[0])) {
				changed = append(changed, fmt.Sprintf("%s from %s to %s", d.Path, compare.Show(d.Is), compare.Show(d.Was)))
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

// In reports whether list has the same kind of refusal, of whichever account, object and namespace. What an informer needs is
// the same: which of it was asked for first is a matter of the moment.
func (r Refusal) In(list []Refusal) bool {
	return slices.ContainsFunc(list, func(o Refusal) bool {
		sameVerb := o.Verb == r.Verb || slices.Contains(informerVerbs, o.Verb) && slices.Contains(informerVerbs, r.Verb)
		return o.Code == r.Code && sameVerb && o.Group == r.Group && o.Resource == r.Resource
	})
}

// OperatorPod is a pod in the operator's namespace.
type OperatorPod struct {
	Release    string // whose manager it runs, "" if that cannot be told
	Deployment string // whose it is, "" for none
	IP         string
}

// operatorPodOf reads it off p.
func operatorPodOf(m lifecycle.Watched, p *corev1.Pod) OperatorPod {
	of := OperatorPod{Deployment: deploymentOf(p)}
	if !p.Spec.HostNetwork {
		of.IP = p.Status.PodIP
	}
	for i := range p.Spec.Containers {
		of.Release = cmp.Or(m.BundleOf(&p.Spec.Containers[i]), of.Release)
	}
	return of
}

// deploymentOf returns the Deployment that a pod is of: its ReplicaSet has that name and a hash.
func deploymentOf(p *corev1.Pod) string {
	hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if c := metav1.GetControllerOf(p); c != nil && c.Kind == "ReplicaSet" && hash != "" {
		if name, ok := strings.CutSuffix(c.Name, "-"+hash); ok {
			return name
		}
	}
	return ""
}

// unauthorized reports whether the API server does not know who asked.
func unauthorized(e auditv1.Event) bool {
	return e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusUnauthorized
}

// Asker returns whose request an event is, if it came from r's pods, or from a pod that nothing is known of, and between
// since and until (the zero time is for ever). The API server does not know who sent a token that it refuses, but from where.
func Asker(r *lifecycle.Release, namespace string, pods map[string]OperatorPod, since, until time.Time) func(auditv1.Event) string {
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
		account := accountOf(e)
		if !slices.Contains(accounts, account) {
			return ""
		}
		if of := e.User.Extra[podNameKey]; len(of) > 0 {
			if p := pods[of[0]]; p.Release != "" && p.Release != r.Name {
				return ""
			}
		}
		return account
	}
}

// accountOf returns the ServiceAccount that sent a request, as namespace/name, "" for others.
func accountOf(e auditv1.Event) string {
	name, is := strings.CutPrefix(e.User.Username, "system:serviceaccount:")
	if !is {
		return ""
	}
	return strings.Replace(name, ":", "/", 1)
}

// Known is account without requests whose token the API server does not know. In an installation that does not come to its end, or in which OLM is
// killed, it makes the ServiceAccount anew while pods have tokens of the old one.
func Known(account func(auditv1.Event) string) func(auditv1.Event) string {
	return func(e auditv1.Event) string {
		if unauthorized(e) {
			return ""
		}
		return account(e)
	}
}

// FaultName is what objects that make faults are called.
const FaultName = "olmkit-fault"
