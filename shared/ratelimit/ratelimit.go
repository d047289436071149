// Package ratelimit counts requests by key in memory: a sliding window, never more than the limit in any window, bounded in
// memory however many keys there are. It knows no protocol and no tenant; what a key stands for is the caller's business.
// Each process counts for itself: a limit across instances needs shared state behind the same interface.
package ratelimit

import (
	"context"
	"errors"
	"hash/maphash"
	"math"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/mcp"
)

// Options sets a limit.
type Options struct {
	PerMinute int              // requests of one key in any 60 seconds; 0: no limit
	MaxKeys   int              // keys kept at most; 0: 16,384, about 6 MB
	Now       func() time.Time // nil: time.Now
}

const (
	window         = time.Minute
	slots          = 61 // one second each: the 60 whole ones of a window and the one that it cuts
	shardCount     = 16 // locks; a power of two
	defaultMaxKeys = 1 << 14
)

// Limiter is safe for concurrent use.
type Limiter struct {
	limit  int
	now    func() time.Time
	epoch  time.Time // times are counted from here, so that they follow the monotonic clock
	seed   maphash.Seed
	shards [shardCount]shard
}

var _ mcp.Limiter = (*Limiter)(nil)

// shard is a part of the keys with its own lock.
type shard struct {
	mu     sync.Mutex
	keys   map[string]*entry // guarded by mu, like everything below
	max    int
	newest *entry // list by last use
	oldest *entry
}

// entry is the history of one key: how many requests each of the last seconds saw, and when the last of them came.
type entry struct {
	key          string
	newer, older *entry
	used         time.Duration // last Take or Peek
	second       int64         // of the newest slot
	total        int
	last         time.Duration // of the newest counted request
	count        [slots]uint16
	offset       [slots]uint16 // milliseconds into the second, rounded up, of its last request
}

// New makes a limiter.
func New(o Options) (*Limiter, error) {
	if o.PerMinute < 0 || o.PerMinute > math.MaxUint16 {
		return nil, errors.New("ratelimit: PerMinute must be 0 to 65535")
	}
	if o.MaxKeys < 0 {
		return nil, errors.New("ratelimit: MaxKeys can't be negative")
	}
	if o.MaxKeys == 0 {
		o.MaxKeys = defaultMaxKeys
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Limiter{limit: o.PerMinute, now: o.Now, epoch: o.Now().Add(-window), seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].keys = map[string]*entry{}
		l.shards[i].max = (o.MaxKeys + shardCount - 1) / shardCount
	}
	return l, nil
}

// Take counts one request against key. A refused request is not counted, so hammering does not prolong the wait.
func (l *Limiter) Take(_ context.Context, key string) mcp.Limit { return l.state(key, true) }

// Peek returns the state of key without counting.
func (l *Limiter) Peek(_ context.Context, key string) mcp.Limit { return l.state(key, false) }

func (l *Limiter) state(key string, take bool) mcp.Limit {
	if l.limit == 0 {
		return mcp.Limit{Allowed: true}
	}
	s := &l.shards[maphash.String(l.seed, key)%shardCount]
	s.mu.Lock()
	defer s.mu.Unlock()
	now := l.now().Sub(l.epoch)
	s.expire(now)
	e := s.keys[key]
	if e == nil {
		if !take {
			return mcp.Limit{Allowed: true, Limit: l.limit, Remaining: l.limit}
		}
		e = s.add(key)
	} else {
		s.detach(e)
	}
	now = max(now, e.used) // a clock that steps back must not reopen a window
	e.used = now
	s.push(e)
	e.advance(now)
	out := mcp.Limit{Limit: l.limit, Allowed: e.total < l.limit}
	if take && out.Allowed {
		e.add(now)
	}
	out.Remaining = l.limit - e.total
	if e.total > 0 {
		out.Reset = e.last + window - now
	}
	if !out.Allowed {
		out.RetryAfter = e.oldestLeaves() - now
	}
	return out
}

// advance drops what left the window that ends at now.
func (e *entry) advance(now time.Duration) {
	second := int64(now / time.Second)
	for range min(second-e.second, slots) {
		e.second++
		e.drop(e.second % slots) // the slot of 61 seconds ago, which the new second takes over
	}
	e.second = second
	if at := second - (slots - 1); at >= 0 && e.count[at%slots] > 0 && e.leaves(at) <= now {
		e.drop(at % slots)
	}
}

func (e *entry) drop(i int64) {
	e.total -= int(e.count[i])
	e.count[i], e.offset[i] = 0, 0
}

// leaves is when the requests of a second have left the window: all of them count as its last one, so that the window never
// holds more than the limit. Rounding never makes it later than the newest request of all.
func (e *entry) leaves(second int64) time.Duration {
	last := time.Duration(second)*time.Second + time.Duration(e.offset[second%slots])*time.Millisecond
	return min(last, e.last) + window
}

func (e *entry) add(now time.Duration) {
	i := e.second % slots
	e.count[i]++
	e.offset[i] = uint16((now%time.Second + time.Millisecond - 1) / time.Millisecond) //nolint:gosec // at most 1000
	e.last = now
	e.total++
}

// oldestLeaves is when the first requests leave the window. It is called only when there are some.
func (e *entry) oldestLeaves() time.Duration {
	for at := max(e.second-(slots-1), 0); at <= e.second; at++ {
		if e.count[at%slots] > 0 {
			return e.leaves(at)
		}
	}
	return e.last + window
}

// expire forgets at most two keys that were not used for a whole window: each call cleans more than it can add.
func (s *shard) expire(now time.Duration) {
	for range 2 {
		if s.oldest == nil || s.oldest.used+window+time.Second > now {
			return
		}
		s.remove(s.oldest)
	}
}

// add makes room first. When every key is in use the one that was used longest ago is forgotten: whoever wants to be
// forgotten early needs MaxKeys other grants that are busy in the same minute, each with an allowance of its own, and
// a bound on memory matters more.
func (s *shard) add(key string) *entry {
	if len(s.keys) >= s.max {
		s.remove(s.oldest)
	}
	e := &entry{key: key}
	s.keys[key] = e
	return e
}

func (s *shard) remove(e *entry) {
	s.detach(e)
	delete(s.keys, e.key)
}

func (s *shard) push(e *entry) {
	e.older, e.newer = s.newest, nil
	if s.newest != nil {
		s.newest.newer = e
	} else {
		s.oldest = e
	}
	s.newest = e
}

func (s *shard) detach(e *entry) {
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		s.newest = e.older
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		s.oldest = e.newer
	}
	e.newer, e.older = nil, nil
}

// Len is how many keys are kept.
func (l *Limiter) Len() int {
	n := 0
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		n += len(s.keys)
		s.mu.Unlock()
	}
	return n
}
