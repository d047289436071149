package embedded

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/buzon-mail/buzon/shared/store"
)

// A commit costs an fsync however little it writes, so writers who arrive during one commit share the next: nobody waits
// for a timer (bbolt's own Batch delays a lone writer by 10 ms), and a refused condition disturbs none of the others, since
// every step checks all before it changes anything (Batch would roll back and run the others again).
const (
	maxBatchWrites = 256
	maxBatchBytes  = 8 << 20 // one write may exceed it, alone
)

// step is one atomic write. It returns an error only while it has changed nothing; a failure of the file itself goes to
// tables.broken, which undoes the whole batch.
type step func(t *tables) error

type write struct {
	step  step
	size  int
	err   error         // valid once done is closed
	done  chan struct{} // closed when the outcome is on disk
	taken bool          // guarded by committer.mu; a taken write can't be withdrawn
}

// committer collects writes for the one goroutine that commits them.
type committer struct {
	mu      sync.Mutex
	pending []*write // guarded by mu
	closed  bool     // guarded by mu
	wake    chan struct{}
	gone    chan struct{} // closed when the goroutine has ended
}

func (c *committer) start(e *Engine) {
	c.wake, c.gone = make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(c.gone)
		for {
			// A writer's wake-up puts this goroutine before all that are ready to run, and so would a processor's only writer of
			// the moment get a commit of its own. Those who are about to write get their turn first and share it; a lone writer
			// waits for nothing.
			runtime.Gosched()
			batch, open := c.take()
			if len(batch) == 0 {
				if !open {
					return
				}
				<-c.wake
				continue
			}
			e.commit(batch)
		}
	}()
}

// stop lets the goroutine drain what was accepted and waits for its end.
func (c *committer) stop() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.signal()
	<-c.gone
}

func (c *committer) signal() {
	select {
	case c.wake <- struct{}{}:
	default: // a wake-up is already waiting
	}
}

// do hands a write over and waits for its outcome. A context that ends before the write is taken withdraws it; after that
// the outcome is milliseconds away and is what the caller gets, so a context error always means that nothing changed.
func (c *committer) do(ctx context.Context, size int, s step) error {
	w := &write{step: s, size: size, done: make(chan struct{})}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return unavailable("write", berrors.ErrDatabaseNotOpen)
	}
	c.pending = append(c.pending, w)
	c.mu.Unlock()
	c.signal()
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
	}
	if c.withdraw(w) {
		return ctx.Err()
	}
	<-w.done
	return w.err
}

func (c *committer) withdraw(w *write) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.taken {
		return false
	}
	for i, p := range c.pending {
		if p == w {
			c.pending = append(c.pending[:i], c.pending[i+1:]...)
			break
		}
	}
	return true
}

// take cuts the next batch off the queue.
func (c *committer) take() (batch []*write, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, bytes := 0, 0
	for n < len(c.pending) && n < maxBatchWrites && (n == 0 || bytes+c.pending[n].size <= maxBatchBytes) {
		bytes += c.pending[n].size
		c.pending[n].taken = true
		n++
	}
	batch = c.pending[:n:n]
	c.pending = c.pending[n:]
	return batch, !c.closed
}

// commit applies a batch in one bbolt transaction and tells each writer. If the file fails nobody's write happened, or, when
// it was the last fsync that failed, nobody can know.
func (e *Engine) commit(batch []*write) {
	err := e.update(func(t *tables) {
		for _, w := range batch {
			if w.err = w.step(t); t.broken != nil {
				return
			}
		}
	})
	for _, w := range batch {
		if err != nil {
			w.err = err
		}
		close(w.done)
	}
}

var errUnchanged = errors.New("embedded: nothing to commit")

// update runs one bbolt transaction. bbolt panics when it meets a damaged page; that fails the writers, not the process.
func (e *Engine) update(apply func(*tables)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = unavailable("write", fmt.Errorf("panic: %v", p))
		}
	}()
	err = e.db.Update(func(tx *bolt.Tx) error {
		t := &tables{tx: tx, now: e.clock().Unix()}
		apply(t)
		if t.broken == nil && !t.changed {
			return errUnchanged // a batch of refusals needs no fsync
		}
		return t.broken
	})
	switch {
	case err == nil || errors.Is(err, errUnchanged):
		return nil
	case errors.Is(err, store.ErrUnavailable):
		return err
	}
	return unavailable("commit", err)
}
