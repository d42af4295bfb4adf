// Package docs holds those of the pages that commands print.
package docs

import _ "embed"

// Glossary is glossary.md: tables of words and their meanings.
//
//go:embed glossary.md
var Glossary string
