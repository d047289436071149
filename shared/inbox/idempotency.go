package inbox

import (
	"context"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// IdempotencyKey names an act that its caller may repeat: it is bound to the caller, the operation and the workspace already.
type IdempotencyKey struct {
	ID        string    // hex digest
	Arguments string    // hex digest: the same key with others is a mistake
	Until     time.Time // how long an act that is done under it is remembered
}

// DoneUnder is what is known of an act that was done under a key.
type DoneUnder struct {
	Outcome string // id of what it made or changed; empty: not known
	Status  int    // of its reply; 0: not kept
	Reply   []byte
}

const (
	// KeyLife is how long a key stands for the act that was done under it.
	KeyLife = 24 * time.Hour
	// KeyFlight is how long a call may be at it before the key is free again: longer than any call lives.
	KeyFlight = 2 * time.Minute
)

// KeyReused is the answer to a key that stands for another call.
func KeyReused() *apperr.Error {
	return apperr.New(apperr.Conflict, "idempotency_conflict", "This idempotency key was used for a call with other arguments.",
		"Use a new key for a new act; to repeat the first call, send its arguments unchanged.")
}

// KeyInFlight is the answer to a key whose first call is not over.
func KeyInFlight() *apperr.Error {
	return apperr.New(apperr.Conflict, "idempotency_in_flight", "A call with this idempotency key is being done.",
		"Wait 2 seconds, then repeat the call with the same key and arguments.")
}

// KeyStore keeps idempotency keys. What was done under one is written by the store method that acts, through Act.Key.
type KeyStore interface {
	// LookKey returns what was done under a key, nil for nothing; KeyReused, KeyInFlight.
	LookKey(ctx context.Context, k IdempotencyKey) (*DoneUnder, error)
	// TakeKey is LookKey, but that a key under which nothing was done is in flight from then on, for KeyFlight. Of two at once one takes it.
	TakeKey(ctx context.Context, k IdempotencyKey) (*DoneUnder, error)
	// KeepReply keeps the reply, and makes the key done where the act wrote nothing. A zero Status keeps none.
	KeepReply(ctx context.Context, k IdempotencyKey, reply DoneUnder) error
	// DropKey lets a key go under which nothing was done; one that is done stays.
	DropKey(ctx context.Context, k IdempotencyKey) error
}
