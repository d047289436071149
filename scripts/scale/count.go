package main

import (
	"context"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/blob/dir"
	"github.com/buzon-mail/buzon/shared/queue"
	"github.com/buzon-mail/buzon/shared/store"
)

// usage is what some piece of work asked for.
type usage struct {
	trips         float64            // requests to DynamoDB
	reads, writes float64            // its units
	gets, puts    float64            // requests to S3
	sends         float64            // to SQS
	by            map[string]float64 // write units by partition
}

// counter adds up what passes the wrappers below.
type counter struct {
	mu sync.Mutex
	u  usage // guarded by mu
}

// taken is the usage since the last time.
func (c *counter) taken() usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.u
	c.u = usage{}
	return u
}

func (c *counter) add(f func(*usage)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.u)
}

func (c *counter) read(bytes int) {
	c.add(func(u *usage) { u.trips++; u.reads += float64(max((bytes+4095)/4096, 1)) })
}

func (c *counter) write(key store.Key, bytes, times int) {
	c.add(func(u *usage) {
		units := float64(max((bytes+1023)/1024, 1) * times)
		u.writes += units
		if u.by == nil {
			u.by = map[string]float64{}
		}
		u.by[key.Partition] += units
	})
}

//nolint:gochecknoglobals // constants
var (
	id    = regexp.MustCompile(`[a-z]+_[0-9A-HJKMNP-TV-Z]{26}`)
	shard = regexp.MustCompile(`/[0-9]$`)
	blob  = regexp.MustCompile(`^raw/.+`)
)

// kind is a partition without the ids, the number of a shard, and the key of a blob, in it.
func kind(partition string) string {
	partition = blob.ReplaceAllString(partition, "raw/{blob}")
	return shard.ReplaceAllString(id.ReplaceAllString(partition, "{id}"), "/{shard}")
}

// counted is an engine whose requests are counted as DynamoDB would charge them.
type counted struct {
	store.Engine
	c *counter
}

func (e counted) Get(ctx context.Context, key store.Key) (store.Item, error) {
	item, err := e.Engine.Get(ctx, key)
	e.c.read(size(item, err))
	return item, err
}

func size(item store.Item, err error) int {
	if err != nil {
		return 0
	}
	return item.Size()
}

func (e counted) Query(ctx context.Context, q store.Query) (store.Page, error) {
	n := 0
	if each := q.Each; each != nil {
		q.Each = func(item *store.Item) error {
			n += item.Size()
			return each(item)
		}
	}
	page, err := e.Engine.Query(ctx, q)
	for _, item := range page.Items {
		n += item.Size()
	}
	e.c.read(n)
	return page, err
}

func (e counted) trip() { e.c.add(func(u *usage) { u.trips++ }) }

func (e counted) Put(ctx context.Context, item store.Item, cond store.Condition) error {
	e.trip()
	e.c.write(item.Key, item.Size(), 1)
	return e.Engine.Put(ctx, item, cond)
}

func (e counted) Delete(ctx context.Context, key store.Key, cond store.Condition) error {
	old, err := e.Engine.Get(ctx, key)
	e.trip()
	e.c.write(key, size(old, err), 1)
	return e.Engine.Delete(ctx, key, cond)
}

func (e counted) Transact(ctx context.Context, ops ...store.Op) error {
	e.trip()
	for _, op := range ops {
		n := op.Item().Size()
		if op.Kind() == store.OpDelete {
			old, err := e.Engine.Get(ctx, op.Key())
			n = size(old, err)
		}
		e.c.write(op.Key(), n, 2)
	}
	return e.Engine.Transact(ctx, ops...)
}

func (e counted) Add(ctx context.Context, key store.Key, field string, delta, max int64, expires time.Time) (int64, error) {
	e.trip()
	e.c.write(key, 0, 1)
	return e.Engine.Add(ctx, key, field, delta, max, expires)
}

// bucket is a folder whose requests are counted as S3 would.
type bucket struct {
	*dir.Store
	c *counter
}

func (b bucket) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	b.c.add(func(u *usage) { u.puts++ })
	return b.Store.Put(ctx, key, r, size)
}

func (b bucket) Get(ctx context.Context, key string, max int64) ([]byte, error) {
	b.c.add(func(u *usage) { u.gets++ })
	return b.Store.Get(ctx, key, max)
}

func (b bucket) Open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	b.c.add(func(u *usage) { u.gets++ })
	return b.Store.Open(ctx, key)
}

// sender is a queue of which only the sending is counted; SQS has rows of its own, which nobody here pays.
type sender struct{ c *counter }

func (s sender) Send(context.Context, ...queue.Message) error {
	s.c.add(func(u *usage) { u.sends++ })
	return nil
}
