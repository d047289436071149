package pipeline

import (
	"context"
	"io"
	"time"
)

// Blobs holds the bytes.
type Blobs interface {
	// Put stores what r gives under key, durable when it returns, replacing what was there. An error of r fails the Put and
	// stores nothing.
	Put(ctx context.Context, key string, r io.Reader) error
	// Get opens a blob: *apperr.Error not_found when there is none.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	// Delete removes a blob; one that is not there is fine.
	Delete(ctx context.Context, key string) error
}

// Sender puts ids on the queue. A message may be lost, doubled or come early: the outbox row is the truth, and the message
// only a nudge.
type Sender interface {
	Send(ctx context.Context, id string, delay time.Duration) error
}
