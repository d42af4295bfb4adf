// Package sandbox runs programs in Linux namespaces: what a container runtime does for a pod, with nothing installed and
// as any user. A program that uses it must call Main first thing, since it starts itself again to do its work inside.
package sandbox
