package webhook

import "time"

// schedule is what lies between the end of an attempt and the next one, the first entry before the first: Standard Webhooks'
// example. The last attempt comes about 28 hours after the event.
//
//nolint:gochecknoglobals // constant table
var schedule = [...]time.Duration{
	0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
}

// after is the pause behind so many attempts of the schedule; false when there is no further one.
func after(attempts int) (time.Duration, bool) {
	if attempts < 0 || attempts >= len(schedule) {
		return 0, false
	}
	return schedule[attempts], true
}

// disableAfter is how long a receiver may do nothing but fail before its webhook is switched off.
const disableAfter = 5 * 24 * time.Hour
