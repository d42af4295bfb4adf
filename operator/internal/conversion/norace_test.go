//go:build !race

package conversion

const unhurried = 1000
