package inbox

import (
	"strconv"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Question is what a person is asked before a destructive act: words of ours with {} where a value stands, our own values for
// them, and what the act changes, by id and version. Nothing of a mail is ever among the values.
type Question struct {
	Text    string
	Values  []string
	Targets map[string]string
}

// Confirmation is a person's yes to one act.
type Confirmation struct {
	Nonce   string            // hex digest, written with the act: one yes, one act
	Targets map[string]string // id -> version when the person was asked
	Expires time.Time         // the yes is not accepted from then on
}

// The codes of refusals that whoever asked the person acts on.
const (
	codeUnconfirmed = "confirmation_required"
	codeOutdated    = "confirmation_outdated"
	codeDone        = "already_done"
)

// Version is a version as targets name it.
func Version(n uint64) string { return strconv.FormatUint(n, 10) }

// confirm lets a change of the thing at this version happen, or says why not. It is called with what the transaction replaces,
// so nothing comes between this look and the act. A yes holds for exactly what the person was told of, whether or not the change
// still destroys anything; without one, only those may destroy whose surface asks nobody.
func (a Actor) confirm(id string, version uint64, destructive bool) error {
	return a.confirmState(id, Version(version), destructive)
}

// absent is the version, as targets name it, of what an act creates.
const absent = "absent"

func (a Actor) confirmState(id, state string, destructive bool) error {
	if c := a.Confirmed; c != nil {
		if c.Targets[id] != state {
			return outdated()
		}
		return nil
	}
	if destructive && !a.Direct {
		return apperr.New(apperr.Conflict, codeUnconfirmed, "This act needs the confirmation of a person. Nothing was done.",
			"Call again with a client that can ask the person, or ask the person to do it over REST.")
	}
	return nil
}

func outdated() *apperr.Error {
	return apperr.New(apperr.Conflict, codeOutdated, "This has changed since the person was asked. Nothing was done.",
		"Call again without the confirmation, so that the person is asked about the present state.")
}

// doneError names what a yes that was used before did.
type doneError struct{ outcome string }

// Error is for logs.
func (e doneError) Error() string { return "inbox: the confirmation was used for " + e.outcome }

// Outcome is the id of what was changed.
func (e doneError) Outcome() string { return e.outcome }

// AlreadyDone is a store's answer to a yes that was used before; outcome is the id of what it changed.
func AlreadyDone(outcome string) *apperr.Error {
	return apperr.New(apperr.Conflict, codeDone, "This confirmation was used already, and what it confirmed was done.",
		"Read "+outcome+" to see how it stands.").Because(doneError{outcome})
}

// about is an approximate count in words: two digits count, the rest is not known that well.
func about(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	unit := int64(1)
	for n/unit >= 100 {
		unit *= 10
	}
	digits := strconv.FormatInt((n+unit/2)/unit*unit, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String() + " " + many
}

// until is the last day of a deadline that is at most weeks away.
func until(t time.Time) string { return t.UTC().Format("2 January") }

// day names a day of any year.
func day(t time.Time) string { return t.UTC().Format("2 January 2006") }

// days is a retention in words.
func days(n int) string {
	switch n {
	case 0:
		return "for ever"
	case 1:
		return "1 day"
	}
	return strconv.Itoa(n) + " days"
}
