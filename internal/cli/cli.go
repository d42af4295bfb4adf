// Package cli is olmkit's command line: each command parses its flags, calls one function and prints what it returns.
package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
	"github.com/olmkit/olmkit/internal/nearest"
	"github.com/olmkit/olmkit/internal/progress"
	"github.com/olmkit/olmkit/internal/project"
	"github.com/olmkit/olmkit/internal/safetext"
	"github.com/olmkit/olmkit/internal/walk"
)

// Exit codes of every command.
const (
	exitPassed      = 0
	exitFailed      = 1   // the tool or its environment
	exitUsage       = 2   // wrong command line
	exitFindings    = 3   // the thing under test has findings at or above --fail-on
	exitInterrupted = 130 // and cleaned up, or what is left is said
)

// Streams are the command's standard input, output and error output.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// errFindings ends a judging command whose report has findings at or above --fail-on; the report is already printed.
var errFindings = errors.New("findings at or above --fail-on")

// usageError marks an error as the command line's fault.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// leftError is of what could not be taken away after a command, however that ended.
type leftError struct{ error }

func (l leftError) Unwrap() error { return l.error }

// usagef returns an error that ends the command with the exit code for wrong usage.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// wrongUsage marks each of the errors that err joins as the command line's fault.
func wrongUsage(err error) error {
	if err == nil {
		return nil
	}
	var all []error
	for _, one := range hint.Errors(err) {
		all = append(all, usageError{one})
	}
	return errors.Join(all...)
}

// session is what every command has at hand.
type session struct {
	Streams
	quiet, verbose bool
	images         image.Client
	components     embedded.Source
	printing       sync.Mutex
	printer        *progress.Printer
	maxFile        int64
	hooks          Hooks
	collect        func() // called before something else decides when garbage is collected; nil for nothing

	projectFile string        // what --project names
	project     *project.File // the project's settings, nil without any
	configured  []string      // flags that they set
}

// progress prints to standard error, live on a terminal.
func (s *session) progress() *progress.Printer {
	s.printing.Lock()
	defer s.printing.Unlock()
	if s.quiet || s.printer != nil {
		return s.printer
	}
	s.printer = progress.New(s.Err)
	if isTerminal(s.Err) && os.Getenv("TERM") != "dumb" {
		s.printer = progress.Live(s.Err, func() int { return columns(s.Err) })
	}
	return s.printer
}

// columns is how wide the terminal w is; 80 if it does not say.
func columns(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// until does work, which only computes, reads or prints, and is left to itself when ctx ends.
func until(ctx context.Context, work func() error) error {
	_, err := document.Until(ctx, func() (struct{}, error) { return struct{}{}, work() })
	return err
}

// readFile returns the content of a file that is named on the command line, and which may be a FIFO that nobody writes to.
func readFile(ctx context.Context, name string) ([]byte, error) {
	return document.Until(ctx, func() ([]byte, error) { return document.ReadFile(name) })
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// out returns standard output for what ends with ctx, also while nobody reads it.
func (s *session) out(ctx context.Context) io.Writer {
	whole := s.outOfTexts(ctx)
	return writerFunc(func(p []byte) (int, error) { return whole.Write(bytes.Clone(p)) })
}

// outOfTexts is out for who changes nothing of what is written after an error: large texts are not copied.
func (s *session) outOfTexts(ctx context.Context) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		return document.Until(ctx, func() (int, error) { return s.Out.Write(p) })
	})
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// memoryLimit is from how many bytes on the garbage collector works harder, instead of letting the heap grow to twice what is
// used: a catalog of a million entries uses some 2.5 GiB. GOMEMLIMIT sets another.
const memoryLimit = 3 << 30

// Main runs olmkit as a process and returns its exit code. It calls collect before it decides itself when garbage is collected.
func Main(collect func()) int {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(memoryLimit)
	}
	return runProcess(collect, interruptions(), os.Args[1:])
}

// interruptions returns the signals that ask the process to end.
func interruptions() <-chan os.Signal {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return signals
}

// runProcess runs olmkit on the process's streams until it ends, or signals interrupt it.
func runProcess(collect func(), signals <-chan os.Signal, args []string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &session{Streams: Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, collect: collect}
	go s.heed(signals, cancel, os.Exit)
	return s.run(ctx, args)
}

// heed ends the command at the first of signals, says at the second what is still being undone, and leaves it at that at the
// third: exit ends the process.
func (s *session) heed(signals <-chan os.Signal, cancel func(), exit func(code int)) {
	<-signals
	cancel()
	<-signals
	s.printing.Lock()
	doing := s.printer.Doing()
	s.printing.Unlock()
	if len(doing) == 0 {
		doing = []string{"cleaning up"}
	}
	fmt.Fprintf(s.Err, "\nstill under way: %s. Interrupt once more to exit now; then 'olmkit cleanup' removes what is left on an existing cluster, and 'olmkit cluster status' shows kind clusters that are left\n",
		safetext.Line(strings.Join(doing, ", ")))
	<-signals
	fmt.Fprintln(s.Err, "interrupted, and not all is cleaned up")
	exit(exitInterrupted)
}

// Run runs the command line args, without the program's name, and returns the exit code.
func Run(ctx context.Context, streams Streams, args []string) int {
	return RunWith(ctx, streams, Hooks{}, args)
}

// Hooks are functions that commands call while they run.
type Hooks struct {
	AfterHop walk.AfterHop // of 'upgrade test'
}

// RunWith is Run with hooks.
func RunWith(ctx context.Context, streams Streams, hooks Hooks, args []string) int {
	return (&session{Streams: streams, hooks: hooks}).run(ctx, args)
}

func (s *session) run(ctx context.Context, args []string) int {
	root := newRoot(s)
	shown := &firstError{w: s.Out}
	root.SetOut(shown)
	refuseUnknown(root) // cobra's completion keeps the output that there is now
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil && shown.err != nil {
		err = fmt.Errorf("print to standard output: %w", shown.err)
	}
	s.printer.Close()
	return complain(s.Err, withRoom(err), ctx.Err() != nil)
}

// firstError is a writer that keeps the first error of w: cobra prints help and completions, and returns no error of that.
type firstError struct {
	w   io.Writer
	err error
}

func (f *firstError) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	f.err = cmp.Or(f.err, err)
	return n, err
}

// withRoom adds a fix to an error of a disk that is full, if it has none.
func withRoom(err error) error {
	if hint.Of(err) == "" && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
		return hint.With(err, "make room where the output goes, or choose another place")
	}
	return err
}

// say tells w of an error, with its fix if there is one.
func say(w io.Writer, severity string, err error, fix string) {
	fmt.Fprintf(w, "%s: %s\n", severity, safetext.Text(err.Error()))
	if fix != "" {
		fmt.Fprintf(w, "  fix: %s\n", safetext.Text(fix))
	}
}

// complain tells w what went wrong, and returns the exit code for it.
func complain(w io.Writer, err error, interrupted bool) int {
	switch {
	case err == nil:
		return exitPassed
	case errors.Is(err, errFindings):
		return exitFindings
	case interrupted:
		var left leftError
		if errors.As(err, &left) {
			fmt.Fprintf(w, "interrupted, and not all is cleaned up: %s\n", safetext.Text(left.Error()))
		} else {
			fmt.Fprintln(w, "interrupted; cleaned up")
		}
		return exitInterrupted
	}
	all := hint.Errors(err)
	for i, err := range all {
		fix := hint.Of(err)
		if i+1 < len(all) && hint.Of(all[i+1]) == fix {
			fix = "" // the last one of those that it mends tells it
		}
		say(w, "error", err, fix)
	}
	switch {
	case errors.As(err, &usageError{}), errors.As(err, &bundle.OptionError{}), image.IsWrongReference(err):
		return exitUsage
	case errors.As(err, &catalog.Flaw{}):
		return exitFindings
	}
	return exitFailed
}

func newRoot(s *session) *cobra.Command {
	root := group("olmkit", "Package an operator for OLM, and test every upgrade before users get it", commands(s)...)
	root.Long = root.Short + `.

Exit codes: 0 passed, 1 the tool or its environment failed, 2 wrong command line, 3 what was tested has findings at or above
--fail-on, 130 interrupted.`
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetIn(s.In)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{hint.With(err, "%ssee '%s --help'", flagMeant(c, err), c.CommandPath())}
	})
	root.PersistentFlags().BoolVarP(&s.quiet, "quiet", "q", false, "print no progress")
	root.PersistentFlags().BoolVarP(&s.verbose, "verbose", "v", false, "print more detail")
	root.PersistentFlags().Int64Var(&s.maxFile, "max-file-size", document.MaxText, "refuse catalog files larger than this many `BYTES`")
	root.PersistentFlags().StringVar(&s.projectFile, projectFlag, "", "settings `FILE` of the project, or none (default: the nearest olmkit.yaml, from the working directory upwards)")
	s.versioned(root)
	markUsage(root)
	s.configurable(root)
	s.completable(root)
	explainable(root, s.Out)
	return root
}

// markUsage makes wrong arguments of c and the commands below it errors of the command line.
func markUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				if hint.Of(err) != "" && errors.As(err, &usageError{}) {
					return err
				}
				return usageError{hint.With(err, "see '%s --help'", c.CommandPath())}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		markUsage(sub)
	}
}

// require has c refuse a command line that lacks one of the flags called names.
func require(c *cobra.Command, names ...string) {
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		for _, name := range names {
			if !c.Flags().Changed(name) {
				return hint.With(usagef("--%s is missing", name), "see '%s --help'", c.CommandPath())
			}
		}
		return nil
	}
}

// ofFlag is err, by which reading what a flag names ended: of the environment if that cannot be read, else of the command line.
func ofFlag(flag string, err error) error {
	err = fmt.Errorf("%s: %w", flag, err)
	if unread := (*fs.PathError)(nil); errors.As(err, &unread) {
		return err
	}
	return usageError{err}
}

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ArbitraryArgs,
		RunE:  helpAlone,
	}
	c.AddCommand(commands...)
	return c
}

// helpAlone prints the help of a command that is there for those below it, and refuses the name of one that there is not.
func helpAlone(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	var known []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	return hint.With(usagef("%s has no command %q", c.CommandPath(), args[0]), "%ssee '%s --help'", didYouMean("'%s'", args[0], known), c.CommandPath())
}

// didYouMean begins the fix of an error of a name that is none of known: it asks for the one that is like it, written by format, if there is one.
func didYouMean(format, name string, known []string) string {
	if near := nearest.Meant(name, known); near != "" {
		return fmt.Sprintf("did you mean "+format+"? ", near)
	}
	return ""
}

// flagMeant begins the fix of an error of c's flags: if it is of one that there is not, it asks for the one that is like it.
func flagMeant(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	return didYouMean("--%s", unknown.GetSpecifiedName(), known)
}

// refuseUnknown has the commands that cobra adds refuse names that they do not know, of shells and of commands.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Args, c.RunE = cobra.ArbitraryArgs, helpAlone
		case "help":
			c.RunE = func(c *cobra.Command, args []string) error {
				of, rest, err := c.Root().Find(args)
				if err != nil {
					return usageError{hint.With(err, "see '%s --help'", c.Root().Name())}
				}
				of.InitDefaultHelpFlag()
				if !of.HasSubCommands() {
					rest = nil
				}
				return helpAlone(of, rest)
			}
		}
	}
}

// failOn is the value of --fail-on.
type failOn string

func (f failOn) check() error {
	switch f {
	case "error", "warning", "never":
		return nil
	}
	return usagef("--fail-on %s: must be error, warning or never", f)
}

// verdict returns errFindings if any of findings reaches f.
func (f failOn) verdict(findings []finding.Finding) error {
	worst, any := finding.Worst(findings)
	if any && f != "never" && worst.AtLeast(finding.Severity(f)) {
		return errFindings
	}
	return nil
}
