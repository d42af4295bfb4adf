package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/image"
)

// reaching adds to every command of a group the flags that say how registries are reached.
func reaching(s *session, g *cobra.Command) *cobra.Command {
	for _, c := range g.Commands() {
		reachingOne(s, c)
	}
	return g
}

// reachingOne is reaching for one command.
func reachingOne(s *session, c *cobra.Command) *cobra.Command {
	f := c.Flags()
	f.StringSliceVar(&s.images.PlainHTTP, "plain-http", nil, "reach registries without TLS where they have none: all, or only `HOST` with --plain-http=HOST (repeatable)")
	f.Lookup("plain-http").NoOptDefVal = image.AnyHost
	f.DurationVar(&s.images.Timeout, "registry-timeout", image.DefaultTimeout, "timeout of one image's push or pull")
	f.Var((*authorities)(&s.images.Authorities), "ca-file", "PEM `FILE` with certificate authorities to trust beside the system's; HOST=FILE for that registry alone (repeatable)")
	return c
}

// authorities is the value of --ca-file.
type authorities []image.Authority

func (a *authorities) String() string {
	var files []string
	for _, one := range *a {
		files = append(files, strings.TrimPrefix(one.Host+"="+one.File, "="))
	}
	return strings.Join(files, ",")
}

// Set adds FILE or HOST=FILE. A path that holds a = is told from the latter by the slash before it.
func (a *authorities) Set(text string) error {
	host, file, ok := strings.Cut(text, "=")
	if !ok || strings.ContainsAny(host, `/\`) {
		host, file = "", text
	}
	*a = append(*a, image.Authority{Host: host, File: file})
	return nil
}

func (a *authorities) Type() string { return "file" }
