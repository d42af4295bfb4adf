//go:build race

package check

func init() { raceDetector = true }
