package observe

import (
	"slices"
	"strings"
)

// address matches a host and a port in a text.
var address = Compiled(`[a-zA-Z][-a-zA-Z0-9.]*:[0-9]{1,5}`)

// Addresses are what in text has the form host:port, in its order. What stands before an @ is no address: it may be a user and a password.
func Addresses(text string) []string {
	var found []string
	for _, at := range address().FindAllStringIndex(text, -1) {
		before, after := text[:at[0]], text[at[1]:]
		alone := !strings.ContainsAny(before[max(0, len(before)-1):], "_.%-") && !strings.ContainsAny(after[:min(1, len(after))], "_.:@-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
		if host := text[at[0]:at[1]]; alone && !strings.HasPrefix(host, "localhost:") {
			found = append(found, host)
		}
	}
	return found
}

// addressesOnly are the addresses in what a Secret says of which the rest of it shows that they are no user and password.
func addressesOnly(text string) []string {
	return slices.DeleteFunc(Addresses(text), func(address string) bool {
		return text != address && !strings.Contains(text, "//"+address) && !strings.Contains(text, "@"+address)
	})
}
