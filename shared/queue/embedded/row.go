package embedded

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/buzon-mail/buzon/shared/queue"
	"github.com/buzon-mail/buzon/shared/store"
)

// entry is what a row holds.
type entry struct {
	ID      string `json:"id"`
	Attempt int    `json:"attempt,omitempty"` // deliveries so far
}

const momentLen = 15 // digits: the year 33658

// moment orders rows by time, in milliseconds.
func moment(t time.Time) string { return fmt.Sprintf("%0*d", momentLen, t.UnixMilli()) }

// since is the moment at the head of a sort key.
func since(sort string) time.Time {
	ms, err := strconv.ParseInt(sort[:min(momentLen, len(sort))], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func (q *Queue) key(partition, sort string) store.Key {
	return store.Key{Table: store.Core, Partition: partition, Sort: sort}
}

// later is the moment d after now at which a message becomes visible: not before, though moments count whole milliseconds;
// and at once where d is zero, though the clock stands within a millisecond.
func later(now time.Time, d time.Duration) time.Time {
	if d > 0 {
		d += time.Millisecond - 1
	}
	return now.Add(d)
}

// row makes the op that puts a new row, and its sort key.
func (q *Queue) row(partition string, at time.Time, e entry) (store.Op, string, error) {
	item, err := store.Encode(store.Key{}, rowFormat, 0, e)
	if err != nil {
		return store.Op{}, "", fmt.Errorf("queue: %w", err)
	}
	return q.put(partition, at, item)
}

// put gives a row its key and makes the op that puts it. The random part keeps two messages of one millisecond apart and makes
// each lease a key of its own.
func (q *Queue) put(partition string, at time.Time, item store.Item) (store.Op, string, error) {
	var random [8]byte
	if _, err := io.ReadFull(q.rand, random[:]); err != nil {
		return store.Op{}, "", fmt.Errorf("queue: read randomness: %w", err)
	}
	item.Key = q.key(partition, moment(at)+"."+hex.EncodeToString(random[:]))
	return store.Put(item, store.Absent()), item.Key.Sort, nil
}

// translate turns the store's errors into the queue's; context errors pass as they are.
func translate(step string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrUnavailable):
		return fmt.Errorf("queue: %s: %w: %w", step, queue.ErrUnavailable, err)
	case errors.Is(err, store.ErrInvalid): // a receipt or cursor that is not ours
		return fmt.Errorf("queue: %s: %w: %w", step, queue.ErrInvalid, err)
	}
	return fmt.Errorf("queue: %s: %w", step, err)
}
