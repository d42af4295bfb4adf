package managerlog

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// entry is an error that one line tells, with the lines of its stack trace.
type entry struct {
	Message string
	Error   string
	Panic   bool
	At      time.Time
	Fields  map[string]string // what else was logged with it
	Line    string            // as it was read, where it is short and says it best
	Trace   []string

	console bool // the trace follows below
	crash   bool // the process ended: all that follows belongs to it until something else begins
}

var (
	escapes  = regexp.MustCompile(`\x1b(\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_])`)
	frameAt  = regexp.MustCompile(`^\t.*\.go:\d+`)
	frameOf  = regexp.MustCompile(`^[\w./~%-]+\.[\w.()*\[\]{}·/,-]+(\(.*\))?$`)
	kindLike = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	nameLike = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(/[a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$`)
	crashed  = regexp.MustCompile(`^(goroutine \d+|created by |\[signal |\[recovered\]|\t|exit status|panic: |main\.|$)`)

	volatile = []struct {
		is *regexp.Regexp
		as string
	}{
		{regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`), "UID"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`), "TIME"},
		{regexp.MustCompile(`(\b|-)[a-z0-9]{8,10}-[a-z0-9]{5}\b`), "POD"},
		{regexp.MustCompile(`\bNAME-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "NAME"},
		{regexp.MustCompile(`\b0x[0-9a-fA-F]+`), "HEX"},
		{regexp.MustCompile(`\b[0-9a-f]*(?:[0-9][a-f]|[a-f][0-9])[0-9a-f]{6,}\b`), "HEX"},
		{regexp.MustCompile(`\b(\d+(\.\d+)?(ns|µs|us|ms|s|m|h))+\b`), "DURATION"},
		{regexp.MustCompile(`\d+`), "N"},
	}
)

// continues reports whether line belongs to e.
func (e *entry) continues(line string) bool {
	switch {
	case e.crash:
		return crashed.MatchString(line) || frameOf.MatchString(line)
	case e.console:
		return frameAt.MatchString(line) || frameOf.MatchString(line)
	}
	return false
}

// key is the same for the same error with other names and numbers.
func (e *entry) key() string {
	kind, said := "error: ", e.Message+": "+e.Error
	if e.Panic {
		kind, said = "panic: ", e.value()
	}
	for _, name := range e.names() {
		said = replaceWord(said, name, "NAME")
	}
	for _, v := range volatile {
		said = v.is.ReplaceAllString(said, v.as)
	}
	return kind + Cut(said, maxExcerpt)
}

// value is what e panicked with.
func (e *entry) value() string {
	said := e.Error
	if said == "" {
		said = e.Message
	}
	said = strings.TrimPrefix(strings.TrimPrefix(said, "panic: "), "fatal error: ")
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(said), "[recovered]"))
}

// names returns the names that were logged with e, the longest first.
func (e *entry) names() []string {
	var names []string
	for _, key := range []string{"name", "namespace", "object.name", "object.namespace"} {
		if v := e.Fields[key]; len(v) > 2 {
			names = append(names, v)
		}
	}
	for part := range strings.SplitSeq(e.ofKind(), "/") {
		if len(part) > 2 {
			names = append(names, part)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	return names
}

// object is what e was logged for, as namespace/name, or "".
func (e *entry) object() string {
	name, namespace := e.Fields["name"], e.Fields["namespace"]
	if v := e.Fields["object.name"]; v != "" {
		name, namespace = v, e.Fields["object.namespace"]
	}
	if name == "" {
		return e.ofKind()
	}
	return strings.TrimPrefix(namespace+"/"+name, "/")
}

// ofKind is what e names as controllers name what they reconcile, by its kind: namespace/name, or name.
func (e *entry) ofKind() string {
	for _, key := range slices.Sorted(maps.Keys(e.Fields)) {
		if kindLike.MatchString(key) && nameLike.MatchString(e.Fields[key]) {
			return e.Fields[key]
		}
	}
	return ""
}

// replaceWord puts with in the place of each word of s that is old, or begins with it as names of operands do.
func replaceWord(s, old, with string) string {
	var out strings.Builder
	for {
		i := strings.Index(s, old)
		if i < 0 {
			out.WriteString(s)
			return out.String()
		}
		end := i + len(old)
		if i > 0 && letter(s[i-1]) || end < len(s) && letter(s[end]) {
			out.WriteString(s[:end])
		} else {
			out.WriteString(s[:i] + with)
		}
		s = s[end:]
	}
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }

// Fields that say nothing about the error.
var dull = map[string]bool{
	"level": true, "severity": true, "lvl": true, "v": true, "ts": true, "time": true, "timestamp": true, "msg": true, "message": true, "error": true,
	"err": true, "stacktrace": true, "stack": true, "errorVerbose": true, "reconcileID": true, "caller": true, "source": true, "panicGoValue": true, "panic": true,
	"controllerGroup": true, "controllerKind": true, "object.name": true, "object.namespace": true, "logger": true, "worker count": true,
}

// excerpt is e in a line, and the first frames of the user's own code below.
func (e *entry) excerpt() string {
	said := e.Line
	if said == "" {
		said = strings.TrimSuffix(e.Message+": "+e.Error, ": ")
		var more []string
		for _, key := range slices.Sorted(maps.Keys(e.Fields)) {
			if !dull[key] {
				more = append(more, key+"="+e.Fields[key])
			}
		}
		if len(more) > 0 {
			said += " (" + strings.Join(more, ", ") + ")"
		}
	}
	said = Cut(said, maxExcerpt/2)
	for _, f := range ownFrames(e.Trace) {
		said += "\n  " + Cut(f, maxFrame)
	}
	return said
}

// ownFrameCount is how many frames of a stack an excerpt has.
const ownFrameCount = 3

// libraries are the packages whose frames nobody looks for an operator's mistake in.
var libraries = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(runtime|panic|sigs\.k8s\.io|k8s\.io|go\.uber\.org|google\.golang\.org|golang\.org|github\.com/go-logr|created by|goroutine)\b`)
})

// ownFrames returns the first frames of trace that are in the user's own code, each the function and the place.
func ownFrames(trace []string) []string {
	var own []string
	for i, line := range trace {
		if !frameOf.MatchString(line) {
			continue
		}
		f := line
		if j := strings.LastIndexByte(f, '('); j > 0 && strings.HasSuffix(f, ")") && !strings.HasSuffix(f[:j], ".") {
			f = f[:j] // without its arguments
		}
		if i+1 < len(trace) && frameAt.MatchString(trace[i+1]) {
			place, _, _ := strings.Cut(strings.TrimSpace(trace[i+1]), " +0x")
			if len(f)+len(place) > maxFrame-len(" ()") {
				place = path.Base(place) // the function names the package, and nothing else the line
			}
			f = fmt.Sprintf("%s (%s)", f, place)
		}
		first, _, _ := strings.Cut(f, "/")
		if !libraries().MatchString(f) && (strings.Contains(first, ".") || strings.HasPrefix(f, "main.")) && !standard(first) {
			own = append(own, f)
		}
	}
	return own[:min(len(own), ownFrameCount)]
}

// standard reports whether a function whose path begins with first is of Go's library: those paths have no dot before their
// first slash, and one before the function where there is no slash.
func standard(first string) bool {
	name, _, _ := strings.Cut(first, ".")
	return slices.Contains([]string{"reflect", "sync", "testing", "sort", "slices", "strings", "bytes", "fmt", "errors", "time", "context", "os", "io"}, name)
}
