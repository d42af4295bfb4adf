package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
)

func newImage(s *session) *cobra.Command {
	return reaching(s, group("image", "Build and publish an operator's image", newImagePush(s)))
}

func newImagePush(s *session) *cobra.Command {
	f := &pushFlags{}
	var programs, labels, files []string
	var o image.ProgramOptions
	c := &cobra.Command{
		Use:   "push --program FILE [REF]",
		Short: "Push a program to a registry as an image that runs it",
		Long: `Push a program to a registry as an image that runs it.

The image holds a statically linked program for Linux, as Go builds it with CGO_ENABLED=0, and nothing else: no shell, no
certificates, no time zones, unless they are added. It runs as a user who is not root. With a program for each of several
platforms, which olmkit reads from the programs themselves, the image is one for all of them.

` + pushHelp,
		Example: `  olmkit image push --program bin/manager quay.io/team/my-operator:v1.2.0
  olmkit image push --program bin/amd64/manager --program bin/arm64/manager --output my-operator.tar \
      --label org.opencontainers.image.version=v1.2.0
  olmkit image push --program bin/manager --add charts=/charts \
      --add /etc/ssl/certs/ca-certificates.crt=/etc/ssl/certs/ca-certificates.crt quay.io/team/my-operator:v1.2.0`,
	}
	f.add(c)
	flags := c.Flags()
	flags.StringArrayVar(&programs, "program", nil, "`FILE` of the program for one platform (repeatable)")
	flags.StringVar(&o.Entrypoint, "entrypoint", "/manager", "the program's `PATH` in the image")
	flags.StringVar(&o.User, "user", "65532:65532", "`UID[:GID]` that it runs as")
	flags.StringArrayVar(&files, "add", nil, "file or folder to add to the image, as `SOURCE=PATH` (repeatable)")
	flags.StringArrayVar(&o.Env, "env", nil, "variable that it runs with, as `KEY=VALUE` (repeatable)")
	flags.StringArrayVar(&labels, "label", nil, "label of the image, as `KEY=VALUE` (repeatable)")
	c.Args = func(c *cobra.Command, args []string) error {
		switch {
		case len(args) > 1:
			return usagef("%s takes a reference, not %d arguments", c.CommandPath(), len(args))
		case len(programs) == 0:
			return usagef("%s: no program is named with --program", c.CommandPath())
		}
		return f.whereTo(c, args)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := readPairs(&o, files, labels); err != nil {
			return err
		}
		if err := f.ask(c.Context(), s, args); err != nil {
			return err
		}
		step := s.progress().Start("pack %s", strings.Join(programs, ", "))
		what, err := document.Until(c.Context(), func() (image.Artifact, error) { return image.Programs(programs, o) })
		if step.End(err) != nil {
			return err
		}
		return f.send(c.Context(), s, args, what)
	}
	return c
}

// readPairs reads into o what the flags --add, --label and --env say.
func readPairs(o *image.ProgramOptions, files, labels []string) error {
	o.Labels, o.Files = map[string]string{}, map[string]string{}
	for _, file := range files {
		source, at, ok := strings.Cut(file, "=")
		if !ok || source == "" {
			return hint.With(usagef("--add %s: must be SOURCE=PATH", file), "write for example charts=/charts")
		}
		if other, twice := o.Files[at]; twice {
			return usagef("--add: both %s and %s are to be at %s", other, source, at)
		}
		o.Files[at] = source
	}
	for _, label := range labels {
		key, value, ok := strings.Cut(label, "=")
		if !ok || key == "" {
			return hint.With(usagef("--label %s: must be KEY=VALUE", label), "write for example org.opencontainers.image.version=v1.2.0")
		}
		o.Labels[key] = value
	}
	for _, variable := range o.Env {
		if key, _, ok := strings.Cut(variable, "="); !ok || key == "" {
			return hint.With(usagef("--env %s: must be KEY=VALUE", variable), "write for example WATCH_NAMESPACE=")
		}
	}
	return nil
}
