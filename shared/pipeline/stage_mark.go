package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/blob"
)

// A mail that kills its worker must be found out, and no other blamed for it. The queue's count of leases says too little: it
// counts for every message of a batch that was given out, and starts anew with each message that the outbox sends. So each
// try leaves a trace in the blob store before the mail is read and takes it away when it ends well. Traces that are found
// are of tries that killed their worker or failed in a way of their own. The first run of a mail with one recipient comes
// straight from its intake, is known to be the first, and leaves none.

// lookBack counts the traces of earlier tries.
func (r *run) lookBack(ctx context.Context) error {
	if r.sole {
		return nil
	}
	for r.tries < r.w.opts.MaxAttempts-1 {
		_, err := r.w.deps.Blobs.Get(ctx, r.trace(r.tries+1), 0)
		if errors.Is(err, blob.ErrNotFound) {
			return nil
		}
		if err != nil {
			return blobFailure(err)
		}
		r.tries++
	}
	r.fail(reasonAttempts)
	return nil
}

// reserve waits for room in memory: a burst of the largest mails must not add up. A mail with traces gets all of it, so it is
// read alone: if the worker dies now, it was this mail.
func (r *run) reserve(ctx context.Context) (release func(), err error) {
	size := r.email.Size
	if r.tries > 0 {
		size = r.w.opts.Memory
	}
	return r.w.room(ctx, size)
}

// room waits for memory, all of it at most.
func (w *Worker) room(ctx context.Context, size int64) (release func(), err error) {
	n := min(max(size, 1), w.opts.Memory)
	if err := w.memory.Acquire(ctx, n); err != nil {
		return nil, err //nolint:wrapcheck // the context's
	}
	return func() { w.memory.Release(n) }, nil
}

// mark leaves the trace of this try.
func (r *run) mark(ctx context.Context) error {
	if r.failed() || r.sole {
		return nil
	}
	if err := r.w.deps.Blobs.Put(ctx, r.trace(r.tries+1), strings.NewReader(""), 0); err != nil {
		return blobFailure(err)
	}
	r.tries++
	r.marked = true
	return nil
}

func (r *run) trace(n int) string {
	return fmt.Sprintf("try/%s/%d", strings.ToLower(r.email.ID), n)
}

// wipe takes the traces away: all of them when the mail is finished, this run's own when something else was at fault. What
// can't be wiped makes a later failure come sooner, and is nothing to a finished mail.
func (r *run) wipe(ctx context.Context, outcome error) {
	if outcome != nil && (!r.marked || apperr.From(wrap(r.stage, r.email.ID, outcome)).Kind == apperr.Internal) {
		return
	}
	for n := r.tries; n >= 1; n-- {
		_ = bounded(ctx, func(ctx context.Context) error { return r.w.deps.Blobs.Delete(ctx, r.trace(n)) })
		if outcome != nil {
			return
		}
	}
}
