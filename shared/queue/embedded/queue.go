// Package embedded is a queue whose messages are rows of a store.Engine, so that a message is as durable as what it names.
//
// A message is one row; its sort key is the moment it becomes visible and a random part. Taking a lease moves the row to the
// end of the lease under a new random part, which is the receipt: whoever holds the receipt of an older lease names a row that
// is no longer there, and so can't end or move what someone else holds. One Receive claims its whole batch in one transaction.
//
//	partition            sort key                          row
//	queue#<name>         <ms, 15 digits>.<random>          waiting or leased
//	queue#<name>#dead    <ms, 15 digits>.<random>          dead since
//
// Cost of a message that goes well: one put, one delete and put, one delete; reads are one page for each Receive. The package
// depends on store and queue and knows nothing of the work.
package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/queue"
	"github.com/buzon-mail/buzon/shared/store"
)

var (
	_ queue.Queue       = (*Queue)(nil)
	_ queue.Source      = (*Queue)(nil)
	_ queue.DeadLetters = (*Queue)(nil)
)

const (
	rowFormat = 1
	maxName   = 64
	passes    = 4 // pages that one Receive looks at, when all it finds is dead or taken by others
)

// Options are the settings of New; the zero value works.
type Options struct {
	Clock       func() time.Time // the engine's clock; time.Now if nil
	Rand        io.Reader        // crypto/rand if nil
	MaxAttempts int              // deliveries before a message is dead; queue.MaxAttempts if 0
}

// Queue is one named queue. Its methods may be called by many goroutines at once, and several processes may share the engine.
type Queue struct {
	engine      store.Engine
	clock       func() time.Time
	rand        io.Reader
	maxAttempts int
	live, dead  string // partitions
	claim       sync.Mutex
	wake        chan struct{}
}

// New makes a queue by this name (1 to 64 of a-z, 0-9, '-') on the engine. Names share nothing.
func New(engine store.Engine, name string, opts Options) (*Queue, error) {
	if name == "" || len(name) > maxName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return nil, fmt.Errorf("%w: queue name %q", queue.ErrInvalid, name)
	}
	if opts.MaxAttempts < 0 {
		return nil, fmt.Errorf("%w: %d attempts", queue.ErrInvalid, opts.MaxAttempts)
	}
	q := &Queue{
		engine: engine, clock: opts.Clock, rand: opts.Rand, maxAttempts: opts.MaxAttempts,
		live: "queue#" + name, dead: "queue#" + name + "#dead", wake: make(chan struct{}, 1),
	}
	if q.clock == nil {
		q.clock = time.Now
	}
	if q.rand == nil {
		q.rand = rand.Reader
	}
	if q.maxAttempts == 0 {
		q.maxAttempts = queue.MaxAttempts
	}
	return q, nil
}

// Wake is signalled when a message may have become visible at once, for consumers of this process that found nothing: they
// wait for it beside a timer, which is what finds delayed messages, ended leases and what other processes sent. One signal
// wakes one consumer, and a Receive that fills its batch passes it on.
func (q *Queue) Wake() <-chan struct{} { return q.wake }

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default: // one is waiting already
	}
}

// Send implements queue.Queue: one transaction. Each call makes rows of its own, so an id sent twice while it waits is
// delivered twice.
func (q *Queue) Send(ctx context.Context, messages ...queue.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := queue.CheckSend(messages); err != nil {
		return err
	}
	now := q.clock()
	ops := make([]store.Op, 0, len(messages))
	soon := false
	for _, m := range messages {
		put, _, err := q.row(q.live, later(now, m.Delay), entry{ID: m.ID})
		if err != nil {
			return err
		}
		ops = append(ops, put)
		soon = soon || m.Delay == 0
	}
	if err := q.engine.Transact(ctx, ops...); err != nil {
		return translate("send", err)
	}
	if soon {
		q.signal()
	}
	return nil
}

// Receive implements queue.Source.
func (q *Queue) Receive(ctx context.Context, max int, lease time.Duration) ([]queue.Delivery, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := queue.CheckReceive(max, lease); err != nil {
		return nil, err
	}
	// Consumers of one process would pick the same rows and make each other's transactions fail.
	q.claim.Lock()
	defer q.claim.Unlock()
	for range passes {
		page, err := q.engine.Query(ctx, store.Query{
			Table: store.Core, Partition: q.live, To: moment(q.clock().Add(time.Millisecond)), Limit: max,
		})
		if err != nil {
			return nil, translate("look for messages", err)
		}
		got, err := q.take(ctx, page.Items, lease)
		if err != nil {
			return nil, err
		}
		if len(got) > 0 {
			if page.Next != "" || len(got) == max {
				q.signal()
			}
			return got, nil
		}
		if len(page.Items) == 0 && page.Next == "" {
			return nil, nil
		}
	}
	q.signal() // there may be more behind what could not be taken
	return nil, nil
}

// move is what a claim does with one row.
type move struct {
	ops   [2]store.Op
	lease *queue.Delivery // nil where nobody gets the message
}

// take leases rows, or sets them aside, in one transaction. A row that another process took meanwhile is left out, so each
// conflict shortens the list and it ends.
func (q *Queue) take(ctx context.Context, rows []store.Item, lease time.Duration) ([]queue.Delivery, error) {
	now := q.clock()
	moves := make([]move, 0, len(rows))
	for _, item := range rows {
		m, err := q.move(item, now, lease)
		if err != nil {
			return nil, err
		}
		moves = append(moves, m)
	}
	for len(moves) > 0 {
		ops := make([]store.Op, 0, 2*len(moves))
		for _, m := range moves {
			ops = append(ops, m.ops[:]...)
		}
		err := q.engine.Transact(ctx, ops...)
		if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
			i := conflict.Index / 2
			moves = append(moves[:i], moves[i+1:]...)
			continue
		}
		if err != nil {
			return nil, translate("lease messages", err)
		}
		break
	}
	var got []queue.Delivery
	for _, m := range moves {
		if m.lease != nil {
			got = append(got, *m.lease)
		}
	}
	return got, nil
}

func (q *Queue) move(item store.Item, now time.Time, lease time.Duration) (m move, err error) {
	m.ops[0] = store.Delete(item.Key, store.Exists())
	e, err := store.Decode[entry](item, rowFormat)
	switch {
	case err != nil:
		// A newer program wrote it. It must not stand in the way of the others, nor be lost: it is put off as it is.
		m.ops[1], _, err = q.put(q.live, later(now, lease), item)
	case e.Attempt >= q.maxAttempts:
		m.ops[1], _, err = q.row(q.dead, now, e)
	default:
		e.Attempt++
		m.lease = &queue.Delivery{ID: e.ID, Attempt: e.Attempt}
		m.ops[1], m.lease.Receipt, err = q.row(q.live, later(now, lease), e)
	}
	return m, err
}

// Done implements queue.Source: one transaction.
func (q *Queue) Done(ctx context.Context, deliveries ...queue.Delivery) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := queue.CheckDone(deliveries); err != nil {
		return err
	}
	ops := make([]store.Op, 0, len(deliveries))
	seen := make(map[string]bool, len(deliveries))
	for _, d := range deliveries {
		if !seen[d.Receipt] { // a transaction may name a row once
			seen[d.Receipt] = true
			ops = append(ops, store.Delete(q.key(q.live, d.Receipt), store.Condition{}))
		}
	}
	return translate("end messages", q.engine.Transact(ctx, ops...))
}

// Retry implements queue.Source.
func (q *Queue) Retry(ctx context.Context, d queue.Delivery, after time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := queue.CheckRetry(d, after); err != nil {
		return err
	}
	put, _, err := q.row(q.live, later(q.clock(), after), entry{ID: d.ID, Attempt: d.Attempt})
	if err != nil {
		return err
	}
	err = q.engine.Transact(ctx, store.Delete(q.key(q.live, d.Receipt), store.Exists()), put)
	if errors.Is(err, store.ErrConflict) {
		return nil // done, or someone else's by now
	}
	if err == nil && after == 0 {
		q.signal()
	}
	return translate("give a message back", err)
}

// Dead implements queue.DeadLetters.
func (q *Queue) Dead(ctx context.Context, after string, limit int) ([]queue.Dead, string, error) {
	if err := queue.CheckDead(limit); err != nil {
		return nil, "", err
	}
	page, err := q.engine.Query(ctx, store.Query{Table: store.Core, Partition: q.dead, After: after, Limit: limit})
	if err != nil {
		return nil, "", translate("list dead messages", err)
	}
	dead := make([]queue.Dead, 0, len(page.Items))
	for _, item := range page.Items {
		e, err := store.Decode[entry](item, rowFormat)
		if err != nil {
			continue // a newer program wrote it, and lists it
		}
		dead = append(dead, queue.Dead{ID: e.ID, Attempt: e.Attempt, Since: since(item.Key.Sort), Handle: item.Key.Sort})
	}
	return dead, page.Next, nil
}

// Redrive implements queue.DeadLetters.
func (q *Queue) Redrive(ctx context.Context, d queue.Dead) error {
	item, err := q.engine.Get(ctx, q.key(q.dead, d.Handle))
	if errors.Is(err, store.ErrNotFound) {
		return queue.ErrNotFound
	}
	if err != nil {
		return translate("read a dead message", err)
	}
	e, err := store.Decode[entry](item, rowFormat)
	if err != nil {
		return fmt.Errorf("queue: read a dead message: %w", err)
	}
	put, _, err := q.row(q.live, q.clock(), entry{ID: e.ID})
	if err != nil {
		return err
	}
	err = q.engine.Transact(ctx, store.Delete(item.Key, store.Exists()), put)
	if errors.Is(err, store.ErrConflict) {
		return queue.ErrNotFound // someone else was faster
	}
	if err != nil {
		return translate("redrive a message", err)
	}
	q.signal()
	return nil
}
