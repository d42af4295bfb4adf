package observe

import (
	"testing"
	"time"

	"github.com/olmkit/olmkit/internal/managerlog"
)

func TestPersists(t *testing.T) {
	at := time.Now()
	timed := managerlog.Group{Count: 5, First: at, Last: at.Add(4 * time.Second), Gap: 2 * time.Second}
	more := timed
	more.Count++
	for name, test := range map[string]struct {
		was, is           managerlog.Group
		waited, age       time.Duration
		goesOn, isDecided bool
	}{
		"logged again":                         {timed, more, time.Second, 0, true, true},
		"its next time is still to come":       {timed, timed, time.Second, 3 * time.Second, false, false},
		"its next time has passed":             {timed, timed, logAnswer + 1, 6 * time.Second, false, true},
		"it may be logged at once again":       {timed, timed, 0, 6 * time.Second, false, false},
		"its next time is long after the wait": {timed, timed, logWatch + 1, 3 * time.Second, true, true},
		"lines without a time":                 {managerlog.Group{Count: 3}, managerlog.Group{Count: 3}, time.Second, 1 << 60, false, false},
		"lines without a time, and no more":    {managerlog.Group{Count: 3}, managerlog.Group{Count: 3}, logWatch + 1, 1 << 60, false, true},
	} {
		if goesOn, decided := persists(test.was, test.is, test.waited, test.age); goesOn != test.goesOn || decided != test.isDecided {
			t.Errorf("%s: goes on %v, decided %v", name, goesOn, decided)
		}
	}
}
