//go:build race

package conversion

// The race detector makes a round take ten times as long; 'make test' runs all of them without it.
const unhurried = 100
