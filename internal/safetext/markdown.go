package safetext

import (
	"regexp"
	"strings"
)

// Markdown makes s, in one line, fit an item or a cell of a table, where it is no link, picture, element, emphasis or mention
// of anybody.
func Markdown(s string) string {
	s = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "[", `\[`, "]", `\]`, "`", "\\`").Replace(strings.TrimSpace(s))
	return strings.ReplaceAll(HTML(s), "\n", "<br>")
}

// mention matches what code hosts take for the name of a person or of an issue, and tell them of.
var mention = regexp.MustCompile(`(^|[^0-9A-Za-z_])([@#])([0-9A-Za-z])`)

// HTML makes s fit the text of an element in Markdown.
func HTML(s string) string {
	s = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
	return mention.ReplaceAllString(s, "$1$2<!-- -->$3")
}
