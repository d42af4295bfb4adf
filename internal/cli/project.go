package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
	"github.com/olmkit/olmkit/internal/project"
)

// projectFlag names the project's file; noProject is its value for none.
const (
	projectFlag = "project"
	noProject   = "none"
)

// setting is a key of olmkit.yaml, and the flag that it sets, by command.
type setting struct {
	key, flag string
	values    func(project.Settings) []string
	commands  []string
}

// settings are the keys that are flags of commands. The catalog is also the argument of catalogCommands.
var settings = []setting{
	{"package", "package", func(p project.Settings) []string { return one(p.Package) }, []string{"upgrade plan", "upgrade test", "upgrade rehearse", "bundle generate", "subscription generate"}},
	{"catalog", "catalog", func(p project.Settings) []string { return one(p.Catalog) }, []string{"bundle generate", "bundle diff", "subscription generate"}},
	{"cluster", "cluster", func(p project.Settings) []string { return one(p.Cluster) }, []string{"upgrade test"}},
	{"images", "image", func(p project.Settings) []string { return p.Images }, []string{"upgrade test", "upgrade rehearse", "bundle run"}},
	{"samples", "sample", func(p project.Settings) []string { return p.Samples }, []string{"upgrade test"}},
	{"assertions", "assert", func(p project.Settings) []string { return p.Assertions }, []string{"upgrade test"}},
	{"suppressions", "suppress", func(p project.Settings) []string { return one(p.Suppressions) }, []string{"bundle validate", "catalog validate", "upgrade plan", "upgrade test", "upgrade rehearse"}},
	{"settle", "settle", func(p project.Settings) []string { return one(p.Settle) }, []string{"upgrade test", "upgrade rehearse"}},
}

// catalogCommands take the project's catalog when they are given no argument.
var catalogCommands = []string{"catalog graph", "catalog validate", "upgrade plan", "upgrade test"}

// one is the value as the list that a flag takes.
func one(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// pathForm is where in a flag's value a path stands.
type pathForm int

const (
	wholePath  pathForm = iota + 1 // PATH
	afterEqual                     // NAME=PATH, or PATH alone
	beforeLast                     // PATH=NAME
)

// pathFlags are the flags whose values hold a path, or what may be one; a command's own entry wins.
var pathFlags = map[string]pathForm{
	"add": beforeLast, "against": wholePath, "api": wholePath, "assert": wholePath, "base": wholePath, "ca-file": afterEqual, "catalog": wholePath, "components": wholePath,
	"config": wholePath, "icon": wholePath, "kubeconfig": wholePath, "manifests": wholePath, "oci-layout": wholePath, "output-dir": wholePath,
	"output-file": wholePath, "program": wholePath, "rbac-from": wholePath, "report": afterEqual, "sample": wholePath, "suppress": wholePath, "template": wholePath,

	"bundle push output": wholePath, "catalog push output": wholePath, "image push output": wholePath,
	"upgrade rehearse from": wholePath, "upgrade rehearse save": wholePath, "upgrade rehearse image": afterEqual,
	"bundle run image": afterEqual, "upgrade test image": afterEqual, "upgrade diagnose catalog": afterEqual,
}

// notOfProject are the commands that do without a project's settings.
var notOfProject = []string{"olmkit explain", "olmkit init", "olmkit version"}

// commandName is what follows olmkit on the command line.
func commandName(c *cobra.Command) string {
	_, name, _ := strings.Cut(c.CommandPath(), " ")
	return name
}

// configurable makes c and the commands below it take from the project's file what the command line leaves open.
func (s *session) configurable(c *cobra.Command) {
	for _, sub := range c.Commands() {
		s.configurable(sub)
	}
	if c.HasSubCommands() || slices.Contains(notOfProject, c.CommandPath()) {
		return
	}
	check, run := c.Args, c.RunE
	c.Args = func(c *cobra.Command, args []string) error {
		if err := s.configure(c, args); err != nil {
			return err
		}
		if s.maxFile < 1 {
			return hint.With(usagef("--max-file-size %d: must be a number of bytes from 1", s.maxFile), "see '%s --help'", c.CommandPath())
		}
		if check == nil {
			return nil
		}
		return check(c, s.arguments(c, args))
	}
	c.RunE = func(c *cobra.Command, args []string) error { return run(c, s.arguments(c, args)) }
}

// arguments are args, or the project's catalog where the command takes one and args are none.
func (s *session) arguments(c *cobra.Command, args []string) []string {
	if len(args) == 0 && s.project != nil && s.project.Catalog != "" && slices.Contains(catalogCommands, commandName(c)) {
		return []string{s.resolve(s.project.Catalog, wholePath)}
	}
	return args
}

// configure reads the project's file, if there is one, and sets those flags of c that the command line does not.
func (s *session) configure(c *cobra.Command, args []string) error {
	path := s.projectFile
	switch path {
	case noProject:
		return nil
	case "":
		dir, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("look for %s: %w", project.FileName, err)
		}
		path, err = project.Find(dir)
		if unread := (*fs.PathError)(nil); errors.As(err, &unread) {
			return hint.With(err, settingsFix)
		}
		if err != nil || path == "" {
			return wrongUsage(err)
		}
	}
	file, err := document.Until(c.Context(), func() (*project.File, error) { return project.Read(path) })
	if c.Context().Err() != nil {
		return c.Context().Err()
	}
	if unread := (*fs.PathError)(nil); errors.As(err, &unread) {
		return hint.With(err, settingsFix)
	}
	if err == nil {
		err = checkFlags(c.Root(), file)
	}
	if err != nil {
		return wrongSettings(err)
	}
	s.project = file
	err = s.setFlags(c)
	if len(s.configured) > 0 || len(args) == 0 && len(s.arguments(c, args)) > 0 {
		s.progress().Say("settings: %s", file.Path)
	}
	return wrongSettings(err)
}

// settingsFix is what to do about a project's file where nothing says it better.
const settingsFix = "see docs/configuration.md; --project none does without the file"

// wrongSettings marks what is wrong with a project's file as wrong usage, each with a fix.
func wrongSettings(err error) error {
	if err == nil {
		return nil
	}
	var all []error
	for _, one := range hint.Errors(err) {
		if hint.Of(one) == "" {
			one = hint.With(one, settingsFix)
		}
		all = append(all, usageError{one})
	}
	return errors.Join(all...)
}

// setFlags sets the flags of c as the project's file says.
func (s *session) setFlags(c *cobra.Command) error {
	var errs []error
	for _, o := range settings {
		if slices.Contains(o.commands, commandName(c)) {
			errs = append(errs, s.setFlag(c, o.flag, o.values(s.project.Settings), o.key))
		}
	}
	for _, f := range s.project.FlagList() {
		if f.Command == commandName(c) {
			errs = append(errs, s.setFlag(c, f.Name, f.Values, "flags", f.Command, f.Name))
		}
	}
	return errors.Join(errs...)
}

// setFlag sets a flag of c to the values at path of the project's file, unless the command line has set it.
func (s *session) setFlag(c *cobra.Command, name string, values []string, path ...any) error {
	flag := c.Flags().Lookup(name)
	if flag.Changed && !slices.Contains(s.configured, name) || len(values) == 0 {
		return nil
	}
	// The nodes of an existing cluster pull their images, and the file is also for others.
	if name == "image" && path[0] == "images" && c.Flags().Lookup("cluster") != nil && c.Flag("cluster").Value.String() == kindExisting {
		return nil
	}
	form := cmp.Or(pathFlags[commandName(c)+" "+name], pathFlags[name])
	var resolved []string
	for _, value := range values {
		resolved = append(resolved, s.resolve(value, form))
	}
	if err := setAll(c.Flags(), flag, resolved); err != nil {
		return fmt.Errorf("%s: %v: %w", s.project.At(path...), path[len(path)-1], err)
	}
	s.configured = append(s.configured, name)
	return nil
}

// setAll sets a flag to values, instead of what it is.
func setAll(flags *pflag.FlagSet, flag *pflag.Flag, values []string) error {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		flag.Changed = true
		return list.Replace(values)
	}
	if _, repeatable := flag.Value.(*authorities); len(values) > 1 && !repeatable {
		return errors.New("it takes one value")
	}
	for _, value := range values {
		if err := flags.Set(flag.Name, value); err != nil {
			return err
		}
	}
	return nil
}

// resolve returns a flag's value with the path in it, which is relative to the project's file, relative to the working directory.
func (s *session) resolve(value string, form pathForm) string {
	name, path, suffix := "", value, ""
	switch i := strings.Index(value, "="); form {
	case wholePath:
	case afterEqual:
		name, path = value[:i+1], value[i+1:]
	case beforeLast:
		if i = strings.LastIndex(value, "="); i >= 0 {
			path, suffix = value[:i], value[i:]
		}
	default:
		return value
	}
	resolved := s.project.Resolve(path)
	if _, err := os.Stat(resolved); err != nil && image.Is(path) {
		return value
	}
	return name + resolved + suffix
}

// checkFlags refuses flags in file that no command has.
func checkFlags(root *cobra.Command, file *project.File) error {
	commands := map[string]*cobra.Command{}
	var names []string
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if !c.HasSubCommands() {
			commands[commandName(c)], names = c, append(names, commandName(c))
		}
	}
	walk(root)
	var errs []error
	for _, name := range file.Commands() {
		if commands[name] == nil {
			errs = append(errs, file.Unknown("command", name, names, "flags", name))
		}
	}
	for _, f := range file.FlagList() {
		c := commands[f.Command]
		if c == nil {
			continue
		}
		if known := flagNames(c); !slices.Contains(known, f.Name) {
			errs = append(errs, file.Unknown("flag of olmkit "+f.Command, f.Name, known, "flags", f.Command, f.Name))
		}
	}
	return errors.Join(errs...)
}

// flagNames are the flags of c that a project's file can set.
func flagNames(c *cobra.Command) []string {
	var names []string
	add := func(f *pflag.Flag) {
		if !f.Hidden && !slices.Contains([]string{"help", explainFlag, projectFlag}, f.Name) && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	c.LocalFlags().VisitAll(add)
	c.InheritedFlags().VisitAll(add)
	slices.Sort(names)
	return names
}

// versionPattern stands for the version of each bundle in REF=PROGRAM.
const versionPattern = "{version}"

// programsOf is programs of those that run the package's bundles: {version} stands for the version of each.
func (s *session) programsOf(ctx context.Context, kind string, named []string, p *catalog.Package, room *room) ([]program, error) {
	images, err := s.eachVersion(named, p)
	if err != nil {
		return nil, err
	}
	return s.programs(ctx, kind, images, room)
}

// eachVersion returns images, each REF=PROGRAM, with those that hold {version} in their place for each version of the package.
// Versions without a program are left out, and told; so that none has one is an error.
func (s *session) eachVersion(images []string, p *catalog.Package) ([]string, error) {
	var all []string
	for _, pattern := range images {
		if !strings.Contains(pattern, versionPattern) {
			all = append(all, pattern)
			continue
		}
		found, missing := 0, []string{}
		for _, b := range p.Bundles {
			ref, program, _ := strings.Cut(strings.ReplaceAll(pattern, versionPattern, b.Version.String()), "=")
			if _, err := os.Stat(program); err != nil && !image.Is(program) {
				missing = append(missing, program)
				continue
			}
			all = append(all, ref+"="+program)
			found++
		}
		if found == 0 {
			return nil, hint.With(fmt.Errorf("image %s: no version of package %s has a program; looked for %s", pattern, p.Name, cmp.Or(strings.Join(missing, ", "), "none")),
				"build the programs first, or let {version} stand where their paths have the version")
		}
		for _, program := range missing {
			s.progress().Say("note: there is no %s: that version's pods are simulated", filepath.Clean(program))
		}
	}
	return all, nil
}
