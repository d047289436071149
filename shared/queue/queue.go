// Package queue is the interface to work that must happen at least once: ids go in, leases come out. A message carries an id
// and nothing else, since what it names lives in the store and is read anew when the work is done. The semantics are those of
// SQS, which an engine may be; the other keeps its messages in a store.Engine. Both pass queue/queuetest unchanged. The package
// knows nothing of the work. It depends on the standard library only.
//
// What holds: a message that was sent is delivered, after its delay, until some delivery is done; while a lease runs no one
// else gets the message; a lease that ends gives it back; after MaxAttempts deliveries it is set aside as dead. What does not:
// any order, or that a message comes only once. Consumers are idempotent by id.
package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// What queues return, wrapped with the step.
var (
	ErrInvalid     = errors.New("queue: invalid")
	ErrNotFound    = errors.New("queue: no such dead message")
	ErrUnavailable = errors.New("queue: unavailable")
)

// The bounds, which are those of SQS where it has any.
const (
	MaxID    = 256 // bytes of UTF-8 without NUL
	MaxDelay = 15 * time.Minute
	MaxLease = 12 * time.Hour // also of a retry
	MaxBatch = 25             // messages of one Send or Done, and what one Receive returns at most
	MaxDead  = 100            // one page of dead messages

	// MaxAttempts is how often a message is delivered by default before it is dead.
	MaxAttempts = 5
)

// Message is an id on its way.
type Message struct {
	ID    string
	Delay time.Duration // not delivered before; 0 to 15 minutes, in whole milliseconds (SQS: seconds, rounded up)
}

// Delivery is a message under a lease.
type Delivery struct {
	ID      string
	Attempt int    // 1 on the first delivery
	Receipt string // names this lease; opaque
}

// Dead is a message that was delivered too often and never done.
type Dead struct {
	ID      string
	Attempt int       // how often it was delivered
	Since   time.Time // when it was set aside
	Handle  string    // names it to Redrive; opaque
}

// Queue takes messages.
type Queue interface {
	// Send makes messages durable before it returns: all of them, or, with an error, any part; sending again is harmless. An
	// id that is already waiting may then be delivered once or twice. 1 to 25 messages.
	Send(ctx context.Context, messages ...Message) error
}

// Source gives messages out. A context that is already done changes nothing and its error is returned.
type Source interface {
	// Receive leases up to max messages (1 to 25, and an engine may give fewer) for 1 second to 12 hours each. It does not
	// wait: nothing to do is an empty slice.
	Receive(ctx context.Context, max int, lease time.Duration) ([]Delivery, error)

	// Done ends messages for good: 1 to 25 deliveries. A receipt whose lease ended and that someone else now holds is no
	// error and changes nothing.
	Done(ctx context.Context, deliveries ...Delivery) error

	// Retry gives a message back before its lease ends, to be delivered after 0 to 12 hours. A receipt that is no longer
	// valid is no error and changes nothing.
	Retry(ctx context.Context, d Delivery, after time.Duration) error
}

// DeadLetters shows what was set aside.
type DeadLetters interface {
	// Dead lists dead messages, oldest first, 1 to 100 of them, from behind the handle after ("" is the start). next is the
	// after of the next page, "" at the end.
	Dead(ctx context.Context, after string, limit int) (dead []Dead, next string, err error)

	// Redrive sends a dead message again, with its attempts at zero. ErrNotFound if it is not (any longer) dead.
	Redrive(ctx context.Context, d Dead) error
}

// CheckSend checks the arguments of Send.
func CheckSend(messages []Message) error {
	if err := checkBatch(len(messages)); err != nil {
		return err
	}
	for i, m := range messages {
		if err := checkID(m.ID); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		if m.Delay < 0 || m.Delay > MaxDelay {
			return fmt.Errorf("message %d: %w: delay %v, want 0 to %v", i, ErrInvalid, m.Delay, MaxDelay)
		}
	}
	return nil
}

// CheckReceive checks the arguments of Receive.
func CheckReceive(max int, lease time.Duration) error {
	if err := checkBatch(max); err != nil {
		return err
	}
	if lease < time.Second || lease > MaxLease {
		return fmt.Errorf("%w: lease of %v, want 1 s to %v", ErrInvalid, lease, MaxLease)
	}
	return nil
}

// CheckDone checks the arguments of Done.
func CheckDone(deliveries []Delivery) error {
	if err := checkBatch(len(deliveries)); err != nil {
		return err
	}
	for i, d := range deliveries {
		if err := checkDelivery(d); err != nil {
			return fmt.Errorf("delivery %d: %w", i, err)
		}
	}
	return nil
}

// CheckRetry checks the arguments of Retry.
func CheckRetry(d Delivery, after time.Duration) error {
	if after < 0 || after > MaxLease {
		return fmt.Errorf("%w: retry after %v, want 0 to %v", ErrInvalid, after, MaxLease)
	}
	return checkDelivery(d)
}

// CheckDead checks the arguments of Dead.
func CheckDead(limit int) error {
	if limit < 1 || limit > MaxDead {
		return fmt.Errorf("%w: %d dead messages, want 1 to %d", ErrInvalid, limit, MaxDead)
	}
	return nil
}

func checkBatch(n int) error {
	if n < 1 || n > MaxBatch {
		return fmt.Errorf("%w: %d messages, want 1 to %d", ErrInvalid, n, MaxBatch)
	}
	return nil
}

func checkDelivery(d Delivery) error {
	if d.Receipt == "" {
		return fmt.Errorf("%w: delivery without a receipt", ErrInvalid)
	}
	return checkID(d.ID)
}

func checkID(id string) error {
	if len(id) < 1 || len(id) > MaxID || !utf8.ValidString(id) || strings.IndexByte(id, 0) >= 0 {
		return fmt.Errorf("%w: id of %d bytes, want 1 to %d of UTF-8 without NUL", ErrInvalid, len(id), MaxID)
	}
	return nil
}
