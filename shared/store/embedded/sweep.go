package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/buzon-mail/buzon/shared/store"
)

// Sweep frees the space of up to limit rows whose time has come, oldest first, and returns how many it removed: fewer than
// limit means that none are left. Nothing but space depends on it.
func (e *Engine) Sweep(ctx context.Context, limit int) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if limit < 1 || limit > store.MaxLimit {
		return 0, fmt.Errorf("%w: sweep of %d rows, want 1 to %d", store.ErrInvalid, limit, store.MaxLimit)
	}
	removed := 0
	err := e.queue.do(ctx, 0, func(t *tables) error {
		removed = t.sweep(limit)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

func (t *tables) sweep(limit int) int {
	index := t.tx.Bucket(expiryBucket)
	due := make([][]byte, 0, limit) // collected first: deleting would move the cursor
	cursor := index.Cursor()
	for k, _ := cursor.First(); k != nil && len(due) < limit; k, _ = cursor.Next() {
		if int64(binary.BigEndian.Uint64(k)) > t.now { //nolint:gosec // what appendExpiry wrote
			break
		}
		due = append(due, bytes.Clone(k))
	}
	for _, k := range due {
		t.must(index.Delete(k))
		t.must(t.tx.Bucket(bucketOf(store.Table(k[expiryHead-1]))).Delete(k[expiryHead:]))
	}
	return len(due)
}

// Backup writes a consistent copy of the file, itself a store, while others read and write.
func (e *Engine) Backup(ctx context.Context, w io.Writer) error {
	tx, err := e.db.Begin(false)
	if err != nil {
		return unavailable("backup", err)
	}
	defer tx.Rollback() //nolint:errcheck // ends a read; it can't fail
	// A long copy ends with its context.
	guarded := writerFunc(func(b []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return w.Write(b)
	})
	_, err = tx.WriteTo(guarded)
	if ctx.Err() != nil { // bbolt flattens errors to text
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
