package embedded

import (
	"context"
	"errors"
	"time"

	"github.com/buzon-mail/buzon/shared/store"
)

// Fill runs fill on an engine whose writes are one commit, all of them or none: many small transactions of one goroutine that
// nobody waits for cost a commit once and not each. fill sees what it wrote; nobody else does before it ends, and no other write is
// done meanwhile, so it is for a file that serves nobody yet. Its engine is for one goroutine, and not for use after it ended; fill
// must not call the Engine itself.
func (e *Engine) Fill(ctx context.Context, fill func(store.Engine) error) error {
	var failed error
	err := e.queue.do(ctx, 0, func(t *tables) error {
		if failed = fill(filling{t}); failed != nil && t.broken == nil {
			t.broken = errUnfilled
		}
		return nil
	})
	if failed != nil {
		return failed
	}
	return err
}

// errUnfilled undoes the transaction of a fill that failed.
var errUnfilled = errors.New("embedded: the fill failed")

var _ store.Engine = filling{}

// filling is the engine within one transaction. A file that fails shows when the transaction ends.
type filling struct{ t *tables }

// Get implements store.Engine.
func (f filling) Get(ctx context.Context, key store.Key) (store.Item, error) {
	if err := ctx.Err(); err != nil {
		return store.Item{}, err
	}
	if err := key.Validate(); err != nil {
		return store.Item{}, err
	}
	found, err := f.t.find(key)
	if err != nil {
		return store.Item{}, err
	}
	if !found.live {
		return store.Item{}, store.ErrNotFound
	}
	found.row.data = append([]byte(nil), found.row.data...)
	return found.row.item(key), nil
}

// Put implements store.Engine.
func (f filling) Put(ctx context.Context, item store.Item, cond store.Condition) error {
	return f.Transact(ctx, store.Put(item, cond))
}

// Delete implements store.Engine.
func (f filling) Delete(ctx context.Context, key store.Key, cond store.Condition) error {
	return f.Transact(ctx, store.Delete(key, cond))
}

// Query implements store.Engine.
func (f filling) Query(ctx context.Context, q store.Query) (store.Page, error) {
	q, some, err := q.Ready(ctx)
	if !some || err != nil {
		return store.Page{}, err
	}
	return newScan(f.t.tx.Bucket(bucketOf(q.Table)).Cursor(), q).page(q, f.t.now)
}

// Transact implements store.Engine.
func (f filling) Transact(ctx context.Context, ops ...store.Op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := store.ValidateOps(ops); err != nil {
		return err
	}
	return f.t.transact(ops)
}

// Add implements store.Engine.
func (f filling) Add(ctx context.Context, key store.Key, field string, delta, max int64, expires time.Time) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := store.ValidateAdd(key, field, max, expires); err != nil {
		return 0, err
	}
	return f.t.add(key, field, delta, max, store.Seconds(expires))
}
