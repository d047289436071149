package op

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Codes of the errors with which a destructive operation says that its confirmation does not hold. Whoever dispatches the
// call acts on them; over a surface without confirmation only the first can occur.
const (
	CodeUnconfirmed = "confirmation_required" // the act needs a person's yes and has none
	CodeChanged     = "confirmation_outdated" // the target is not what the person was asked about: ask again
	CodeDone        = "already_done"          // this yes was used before; the error's chain holds an Outcome
)

// Absent is the version of a target that must not exist: the natural key of what an act creates.
const Absent = "absent"

// Confirmation is a person's yes to one act. It travels in the context to the service, which compares the targets and writes
// the nonce in the transaction of the act itself: checked anywhere else, two calls at once would both pass, and a process that
// is killed between the two writes would leave one without the other.
type Confirmation struct {
	NonceHash string            // hex SHA-256 of the question's nonce: one yes, one act
	Targets   map[string]string // id, or natural key -> version when the person was asked, or Absent
	Expires   time.Time         // the yes is not accepted from then on: what is kept of the nonce must outlive it
}

// Outcome is in the chain of an error with CodeDone: it names what the act that was done made or changed.
type Outcome interface {
	error
	Outcome() string // an id
}

// Question is what a person is asked before a destructive act.
type Question struct {
	// Text is the service's own words, with {} where a value stands: "Delete inbox {}; restorable until {}".
	Text string
	// Values are our own names, ids, dates, counts and the facts that the act turns on; never text of a mail: whoever wrote
	// it would be speaking to the person in our name.
	Values []string
	// Targets are what the act changes: id, or natural key -> version, or Absent.
	Targets map[string]string
}

const (
	hole     = "{}"
	maxValue = 80 // runes of one value in a question
)

// Message is the text with its values, each made harmless. A value can't bring a hole of its own.
func (q *Question) Message() (string, error) {
	parts := strings.Split(q.Text, hole)
	if len(parts) != len(q.Values)+1 || q.Text == "" || len(q.Targets) == 0 {
		return "", errors.New("op: a question needs words, a value for each hole and a target")
	}
	var b strings.Builder
	for i, part := range parts {
		b.WriteString(part)
		if i < len(q.Values) {
			b.WriteString(harmless(q.Values[i]))
		}
	}
	return b.String(), nil
}

// harmless takes out what could make a person read something else than what stands there: control characters and line ends,
// bidirectional controls and everything else that has no shape (Unicode Cf, among it tags and zero-width characters); and
// cuts the value, for a long one could push the facts out of sight.
func harmless(value string) string {
	value = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError, unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs):
			return -1
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, value)
	if utf8.RuneCountInString(value) <= maxValue {
		return value
	}
	return string([]rune(value)[:maxValue-1]) + "…"
}

// Inquiry asks a route what a person is to be asked before its operation acts, instead of acting. The route fills it in once
// caller, scope, tenant, role and input have passed as they do for the act.
type Inquiry struct {
	Answered bool      // by the operation; false when the route refused before
	Replayed bool      // the act was done before under this idempotency key: the route wrote its reply, and nobody is asked again
	Question *Question // nil: these arguments need no question
}

// WithConfirmation returns a context that carries a person's yes. WithCaller drops it: no request brings one of its own.
func WithConfirmation(ctx context.Context, c *Confirmation) context.Context {
	next := derive(ctx)
	next.confirmation = c
	return next
}

// ConfirmationFrom is the yes that the call rests on; nil: nobody was asked.
func ConfirmationFrom(ctx context.Context) *Confirmation {
	if c := callFrom(ctx); c != nil {
		return c.confirmation
	}
	return nil
}

// WithInquiry returns a context in which a route answers i and does not act. WithCaller drops it.
func WithInquiry(ctx context.Context, i *Inquiry) context.Context {
	next := derive(ctx)
	next.inquiry = i
	return next
}

// InquiryFrom is the inquiry that a route is to answer; nil: it is to act.
func InquiryFrom(ctx context.Context) *Inquiry {
	if c := callFrom(ctx); c != nil {
		return c.inquiry
	}
	return nil
}
