package pipeline

import (
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Action is what becomes of a queue message.
type Action uint8

// The actions.
const (
	// Drop ends the message: there is nothing left to do.
	Drop Action = iota + 1
	// Retry gives the message back for later. Its attempts go on counting, so it comes to an end.
	Retry
	// Wait ends the message too: the work is not at fault, something it needs is away. The outbox row stays and is sent
	// again, with its attempts at zero, so that an outage of an hour never uses up a good mail's attempts.
	Wait
	// DeadLetter ends the message and asks for a person: it can never succeed as it is.
	DeadLetter
)

// Disposition is an Action and, for Retry, when.
type Disposition struct {
	Action Action
	After  time.Duration
}

// DispositionOf is the queue's table over the kinds of failure; nil is Drop. attempt spaces the retries: 2, 4, 8, 16 s.
func DispositionOf(err error, attempt int) Disposition {
	if err == nil {
		return Disposition{Action: Drop}
	}
	later := Disposition{Retry, time.Second << min(max(attempt, 1), 8)}
	switch apperr.From(err).Kind {
	case apperr.NotFound: // what the message names is gone: another run has finished it
		return Disposition{Action: Drop}
	case apperr.Unavailable, apperr.RateLimited:
		return Disposition{Action: Wait}
	case apperr.Internal, apperr.Conflict, apperr.Stale:
		return later
	case apperr.Invalid, apperr.Unauthenticated, apperr.Forbidden, apperr.MethodNotAllowed, apperr.UnsupportedMedia, apperr.TooLarge:
		return Disposition{Action: DeadLetter}
	}
	return later
}
