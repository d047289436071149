// Package ratelimit counts requests by key and never allows more than the limit. Limiter counts in memory, for one process: a
// sliding window, exact. Shared counts for all instances of a function: each takes tokens in batches from one counter in the
// store and spends them by itself, so that most requests write nothing. Exact asks that counter each time, for what must not be
// allowed by mistake. All are bounded in memory however many keys there are. The package knows no protocol and no tenant; what
// a key stands for is the caller's business.
package ratelimit

import (
	"context"
	"errors"
	"time"

	"github.com/buzon-mail/buzon/shared/mcp"
)

// Options sets a limit of one process.
type Options struct {
	PerMinute int              // requests of one key in any 60 seconds; 0: no limit
	MaxKeys   int              // keys kept at most; 0: 16,384, about 8 MB
	Now       func() time.Time // nil: time.Now
}

const (
	window = time.Minute
	slots  = 61 // one second each: the 60 whole ones of a window and the one that it cuts
	// maxPerMinute is the most that the configuration takes.
	maxPerMinute = 1_000_000
)

// Limiter counts for one process. It is safe for concurrent use.
type Limiter struct {
	limit int
	now   func() time.Time
	epoch time.Time // times are counted from here, so that they follow the monotonic clock
	keys  table[history]
}

var _ mcp.Limiter = (*Limiter)(nil)

// history is that of one key: how many requests each of the last seconds saw, and when the last of them came.
type history struct {
	second int64 // of the newest slot
	total  int
	last   time.Duration // of the newest counted request
	count  [slots]uint32
	offset [slots]uint16 // milliseconds into the second, rounded up, of its last request
}

// New makes a limiter.
func New(o Options) (*Limiter, error) {
	if err := check(o.PerMinute, o.MaxKeys); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Limiter{limit: o.PerMinute, now: o.Now, epoch: o.Now().Add(-window)}
	l.keys.init(o.MaxKeys)
	return l, nil
}

func check(perMinute, maxKeys int) error {
	if perMinute < 0 || perMinute > maxPerMinute {
		return errors.New("ratelimit: PerMinute must be 0 to 1,000,000")
	}
	if maxKeys < 0 {
		return errors.New("ratelimit: MaxKeys can't be negative")
	}
	return nil
}

// Take counts one request against key. A refused request is not counted, so hammering does not prolong the wait.
func (l *Limiter) Take(_ context.Context, key string) mcp.Limit { return l.state(key, true) }

// Peek returns the state of key without counting.
func (l *Limiter) Peek(_ context.Context, key string) mcp.Limit { return l.state(key, false) }

func (l *Limiter) state(key string, take bool) mcp.Limit {
	if l.limit == 0 {
		return mcp.Limit{Allowed: true}
	}
	s := l.keys.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := l.now().Sub(l.epoch)
	s.expire(now)
	if !take && s.keys[key] == nil {
		return mcp.Limit{Allowed: true, Limit: l.limit, Remaining: l.limit}
	}
	e := s.use(key)
	now = max(now, e.used) // a clock that steps back must not reopen a window
	e.used = now
	h := &e.value
	h.advance(now)
	out := mcp.Limit{Limit: l.limit, Allowed: h.total < l.limit}
	if take && out.Allowed {
		h.add(now)
	}
	out.Remaining = l.limit - h.total
	if h.total > 0 {
		out.Reset = h.last + window - now
	}
	if !out.Allowed {
		out.RetryAfter = h.oldestLeaves() - now
	}
	return out
}

// advance drops what left the window that ends at now.
func (h *history) advance(now time.Duration) {
	second := int64(now / time.Second)
	for range min(second-h.second, slots) {
		h.second++
		h.drop(h.second % slots) // the slot of 61 seconds ago, which the new second takes over
	}
	h.second = second
	if at := second - (slots - 1); at >= 0 && h.count[at%slots] > 0 && h.leaves(at) <= now {
		h.drop(at % slots)
	}
}

func (h *history) drop(i int64) {
	h.total -= int(h.count[i])
	h.count[i], h.offset[i] = 0, 0
}

// leaves is when the requests of a second have left the window: all of them count as its last one, so that the window never
// holds more than the limit. Rounding never makes it later than the newest request of all.
func (h *history) leaves(second int64) time.Duration {
	last := time.Duration(second)*time.Second + time.Duration(h.offset[second%slots])*time.Millisecond
	return min(last, h.last) + window
}

func (h *history) add(now time.Duration) {
	i := h.second % slots
	h.count[i]++
	h.offset[i] = uint16((now%time.Second + time.Millisecond - 1) / time.Millisecond) //nolint:gosec // at most 1000
	h.last = now
	h.total++
}

// oldestLeaves is when the first requests leave the window. It is called only when there are some.
func (h *history) oldestLeaves() time.Duration {
	for at := max(h.second-(slots-1), 0); at <= h.second; at++ {
		if h.count[at%slots] > 0 {
			return h.leaves(at)
		}
	}
	return h.last + window
}

// Len is how many keys are kept.
func (l *Limiter) Len() int { return l.keys.len() }
