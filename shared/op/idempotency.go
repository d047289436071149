package op

import "context"

// Codes of the errors about idempotency keys.
const (
	CodeKeyReused   = "idempotency_conflict"  // the key stands for a call with other arguments
	CodeKeyInFlight = "idempotency_in_flight" // the first call with it is not over
	CodeKeyReplayed = "idempotency_replayed"  // it was done; the reply can't be given again, for it held a secret or was not kept
)

// KeyHeader carries a caller's idempotency key, in canonical form; a tool has the argument idempotency_key.
const KeyHeader = "Idempotency-Key"

// IdempotencyKey is what a caller called an act, bound to caller, operation and workspace. It travels in the context to the
// service, which writes it in the transaction of the act itself: kept anywhere else, a process that is killed between the two
// writes would do the act again.
type IdempotencyKey struct {
	ID        string // hex SHA-256 over the caller, the operation, the workspace and the key
	Arguments string // hex SHA-256 of the arguments
}

// Replay is what is known of an act that was done before under the same key.
type Replay struct {
	Outcome string // id of what it made or changed; empty: not known
	Status  int    // of its reply; 0: the reply was not kept
	Body    []byte
}

// WithIdempotencyKey returns a context that carries the key under which the call is to act. WithCaller drops it.
func WithIdempotencyKey(ctx context.Context, k IdempotencyKey) context.Context {
	next := derive(ctx)
	next.key = k
	return next
}

// IdempotencyKeyFrom is the key under which the call is to act; the zero value when its caller named none.
func IdempotencyKeyFrom(ctx context.Context) IdempotencyKey {
	if c := callFrom(ctx); c != nil {
		return c.key
	}
	return IdempotencyKey{}
}
