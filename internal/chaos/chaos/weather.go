package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/queue"
	"github.com/buzon-mail/buzon/shared/store"
)

// weather decides what becomes of each operation on a store, a blob or a queue.
type weather struct {
	calm                 atomic.Bool
	refused, lost, again atomic.Int64

	mu  sync.Mutex
	rng *rand.Rand // guarded by mu
}

func (w *weather) luck(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// life is a process. Once it has ended nothing that it had begun has an effect any more.
type life struct{ over atomic.Bool }

var errDead = errors.New("the process was killed")

// do does an operation, or refuses it as if throttled, or does it and loses the answer. away is the engine's word for that.
func (w *weather) do(l *life, away error, op func() error) error {
	if l.over.Load() {
		return fmt.Errorf("%w: %w", away, errDead)
	}
	if w.calm.Load() {
		return op()
	}
	switch n := w.luck(1000); {
	case n < 12:
		w.refused.Add(1)
		return fmt.Errorf("%w: throttled", away)
	case n < 18:
		w.lost.Add(1)
		_ = op()
		return fmt.Errorf("%w: connection reset", away)
	case n < 40:
		time.Sleep(time.Duration(n) * 20 * time.Microsecond)
	}
	err := op()
	if l.over.Load() { // the process died before it heard
		return fmt.Errorf("%w: %w", away, errDead)
	}
	return err
}

// rows is a store.Engine in the weather.
type rows struct {
	inner store.Engine
	*weather
	*life
}

var _ store.Engine = rows{}

// Get implements store.Engine.
func (r rows) Get(ctx context.Context, key store.Key) (item store.Item, err error) {
	err = r.do(r.life, store.ErrUnavailable, func() (err error) { item, err = r.inner.Get(ctx, key); return err })
	return item, err
}

// Put implements store.Engine.
func (r rows) Put(ctx context.Context, item store.Item, cond store.Condition) error {
	return r.do(r.life, store.ErrUnavailable, func() error { return r.inner.Put(ctx, item, cond) })
}

// Delete implements store.Engine.
func (r rows) Delete(ctx context.Context, key store.Key, cond store.Condition) error {
	return r.do(r.life, store.ErrUnavailable, func() error { return r.inner.Delete(ctx, key, cond) })
}

// Query implements store.Engine.
func (r rows) Query(ctx context.Context, q store.Query) (page store.Page, err error) {
	err = r.do(r.life, store.ErrUnavailable, func() (err error) { page, err = r.inner.Query(ctx, q); return err })
	return page, err
}

// Transact implements store.Engine.
func (r rows) Transact(ctx context.Context, ops ...store.Op) error {
	return r.do(r.life, store.ErrUnavailable, func() error { return r.inner.Transact(ctx, ops...) })
}

// Add implements store.Engine.
func (r rows) Add(ctx context.Context, key store.Key, field string, delta, most int64, expires time.Time) (n int64, err error) {
	err = r.do(r.life, store.ErrUnavailable, func() (err error) { n, err = r.inner.Add(ctx, key, field, delta, most, expires); return err })
	return n, err
}

// blobs is a blob.Store in the weather.
type blobs struct {
	blob.Store
	*weather
	*life
}

// Put implements blob.Store. A reader can be read once, so an answer that is lost is lost after it was.
func (b blobs) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	return b.do(b.life, blob.ErrUnavailable, func() error { return b.Store.Put(ctx, key, r, size) })
}

// Get implements blob.Store.
func (b blobs) Get(ctx context.Context, key string, most int64) (text []byte, err error) {
	err = b.do(b.life, blob.ErrUnavailable, func() (err error) { text, err = b.Store.Get(ctx, key, most); return err })
	return text, err
}

// Open implements blob.Store.
func (b blobs) Open(ctx context.Context, key string) (body io.ReadCloser, size int64, err error) {
	err = b.do(b.life, blob.ErrUnavailable, func() (err error) { body, size, err = b.Store.Open(ctx, key); return err })
	if err != nil && body != nil {
		_ = body.Close()
		body = nil
	}
	return body, size, err
}

// Delete implements blob.Store.
func (b blobs) Delete(ctx context.Context, key string) error {
	return b.do(b.life, blob.ErrUnavailable, func() error { return b.Store.Delete(ctx, key) })
}

// jobs is a queue in the weather, which is not that of SQS only because it is worse: some messages come twice at once, in any order.
type jobs struct {
	inner interface {
		queue.Queue
		queue.Source
	}
	*weather
	*life
}

// Send implements queue.Queue.
func (j jobs) Send(ctx context.Context, messages ...queue.Message) error {
	return j.do(j.life, queue.ErrUnavailable, func() error {
		if !j.calm.Load() && j.luck(20) == 0 {
			j.again.Add(1)
			_ = j.inner.Send(ctx, messages...)
		}
		return j.inner.Send(ctx, messages...)
	})
}

// Receive implements queue.Source.
func (j jobs) Receive(ctx context.Context, most int, lease time.Duration) (got []queue.Delivery, err error) {
	err = j.do(j.life, queue.ErrUnavailable, func() (err error) { got, err = j.inner.Receive(ctx, most, lease); return err })
	if err != nil || j.calm.Load() {
		return got, err
	}
	for i := range got {
		k := i + j.luck(len(got)-i)
		got[i], got[k] = got[k], got[i]
	}
	if len(got) > 0 && len(got) < most && j.luck(10) == 0 {
		j.again.Add(1)
		got = append(got, got[0])
	}
	return got, nil
}

// Done implements queue.Source.
func (j jobs) Done(ctx context.Context, deliveries ...queue.Delivery) error {
	return j.do(j.life, queue.ErrUnavailable, func() error { return j.inner.Done(ctx, deliveries...) })
}

// Retry implements queue.Source.
func (j jobs) Retry(ctx context.Context, d queue.Delivery, after time.Duration) error {
	return j.do(j.life, queue.ErrUnavailable, func() error { return j.inner.Retry(ctx, d, after) })
}
