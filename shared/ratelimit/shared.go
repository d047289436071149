package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/store"
)

// Counter is the state that instances share; store.Engine is one.
type Counter interface {
	// Add adds delta to a counter and returns the sum. Where the sum would be over max nothing changes, and the present value
	// comes with store.ErrLimit. A row that is absent starts anew and expires then.
	Add(ctx context.Context, key store.Key, field string, delta, max int64, expires time.Time) (int64, error)
}

// SharedOptions sets a limit across instances.
type SharedOptions struct {
	Counter   Counter
	Name      string           // keeps the counters of several limits apart
	PerMinute int              // requests of one key in a minute; 0: no limit
	MaxKeys   int              // keys kept at most; 0: 16,384, about 3 MB
	Now       func() time.Time // nil: time.Now
}

const (
	// patience is how long a caller waits for the counter. A write takes some milliseconds; whoever waits longer is better
	// served without.
	patience = 500 * time.Millisecond
	// pause is how long the counter is left alone after it failed: while it is away requests must not wait for it one by one.
	pause = 2 * time.Second
	// keep is how long a counter outlives its minute: no instance whose clock is in that minute may find it expired.
	keep = 2 * time.Minute
	// turns bounds the writes of one batch near the limit, where others take what was just seen to be left.
	turns = 6

	field = "n"
)

// Shared is a limit across instances: minutes that begin at a second of the key's own (so that not all counters start at once),
// one counter for each in table ephemeral, and never more than the limit out of one counter. What an instance has taken and not
// spent when the minute ends is lost, so that a key may be refused that much below the limit: at most one batch for each other
// instance that served it in this minute. A batch is a twentieth of the limit at most, begins small, and grows with what
// the instance spends.
//
// While the counter is away it fails open: each instance counts for itself, up to the limit, and pays it to the counter later.
//
// Remaining is what the instance holds, for nothing else is certain: what is left on the counter may be another's by now. It is 0
// only where nothing is left, or while the counter is away.
type Shared struct{ pool }

var _ mcp.Limiter = (*Shared)(nil)

// NewShared makes a limit across instances.
func NewShared(o SharedOptions) (*Shared, error) {
	s := &Shared{}
	return s, s.init(o)
}

// Take counts one request against key. A refused request is not counted and writes nothing.
func (s *Shared) Take(ctx context.Context, key string) mcp.Limit {
	if s.limit == 0 {
		return mcp.Limit{Allowed: true}
	}
	l, now := s.lease(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.roll(s.start(key, now), now, s.limit)
	s.fill(ctx, key, l, now)
	switch {
	case l.left > 0:
		l.left--
		l.spent++
		s.fill(ctx, key, l, now) // now and not at the next request, so that Remaining says 0 only where nothing is left
	case l.full || l.spent >= s.limit:
		return l.answer(s.limit, now, false)
	default: // the counter is away
		l.spent++
		l.owed++
	}
	return l.answer(s.limit, now, true)
}

// Peek returns the state of key without counting. An instance that holds no tokens takes a batch first: what is left it can't
// know otherwise.
func (s *Shared) Peek(ctx context.Context, key string) mcp.Limit {
	if s.limit == 0 {
		return mcp.Limit{Allowed: true}
	}
	l, now := s.lease(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.roll(s.start(key, now), now, s.limit)
	s.fill(ctx, key, l, now)
	return l.answer(s.limit, now, l.left > 0 || !l.full && l.spent < s.limit)
}

// Len is how many keys are kept.
func (s *Shared) Len() int { return s.keys.len() }

// Exact is a limit across instances that asks the counter for every request, for operations that must not be allowed by mistake:
// it fails closed. What it refuses once it refuses for the rest of the minute without asking.
type Exact struct{ pool }

// NewExact makes one.
func NewExact(o SharedOptions) (*Exact, error) {
	e := &Exact{}
	return e, e.init(o)
}

// Take counts one request against key. On an error nothing may be allowed: whether it was counted is not known.
func (e *Exact) Take(ctx context.Context, key string) (mcp.Limit, error) {
	if e.limit == 0 {
		return mcp.Limit{Allowed: true}, nil
	}
	l, now := e.lease(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.roll(e.start(key, now), now, e.limit)
	if l.full {
		return l.answer(e.limit, now, false), nil
	}
	sum, err := e.add(ctx, key, l, 1)
	switch {
	case errors.Is(err, store.ErrLimit):
		l.full = true
		return l.answer(e.limit, now, false), nil
	case err != nil:
		return mcp.Limit{}, fmt.Errorf("ratelimit: count: %w", err)
	}
	l.left = e.limit - int(sum)
	return l.answer(e.limit, now, true), nil
}

// pool is what the two kinds have in common.
type pool struct {
	counter Counter
	name    string
	limit   int
	now     func() time.Time
	epoch   time.Time
	keys    table[*lease]
}

func (p *pool) init(o SharedOptions) error {
	if err := check(o.PerMinute, o.MaxKeys); err != nil {
		return err
	}
	if o.Counter == nil || o.Name == "" {
		return errors.New("ratelimit: Counter and Name are missing")
	}
	p.counter, p.name, p.limit, p.now = o.Counter, o.Name, o.PerMinute, o.Now
	if p.now == nil {
		p.now = time.Now
	}
	p.epoch = p.now().Add(-window)
	p.keys.init(o.MaxKeys)
	return nil
}

// lease finds what this instance holds of a key.
func (p *pool) lease(key string) (*lease, time.Time) {
	s := p.keys.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := p.now()
	since := now.Sub(p.epoch)
	s.expire(since)
	e := s.use(key)
	if e.value == nil {
		e.value = &lease{}
	}
	e.used = max(e.used, since)
	return e.value, now
}

// start is the first second of the minute of key that holds now. Every instance must find the same one.
func (p *pool) start(key string, now time.Time) int64 {
	const seconds = int64(window / time.Second)
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // it never fails
	offset := int64(h.Sum32()) % seconds
	second := now.Unix() - offset
	return second - ((second%seconds)+seconds)%seconds + offset
}

// add asks the counter. The caller's leaving does not end it: the outcome would be unknown, and others wait for it too.
func (p *pool) add(ctx context.Context, key string, l *lease, n int) (int64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	row := store.Key{Table: store.Ephemeral, Partition: "rate/" + p.name + "/" + key, Sort: strconv.FormatInt(l.start, 10)}
	return p.counter.Add(ctx, row, field, int64(n), int64(p.limit), time.Unix(l.start, 0).Add(window+keep))
}

// fill takes a batch where nothing is left of the last. The lease is locked.
func (p *pool) fill(ctx context.Context, key string, l *lease, now time.Time) {
	if l.left > 0 || l.full || now.Before(l.retry) {
		return
	}
	want := l.next(p.limit) + l.owed
	for turn := range turns {
		if turn == turns-1 {
			want = 1 // it is refused only when nothing is left at all
		}
		sum, err := p.add(ctx, key, l, want)
		switch {
		case err == nil:
			l.credit(want, int(sum), p.limit)
			return
		case !errors.Is(err, store.ErrLimit):
			l.retry = now.Add(pause)
			return
		case int(sum) >= p.limit:
			l.full = true
			return
		}
		l.seen = int(sum)
		want = min(want, p.limit-l.seen)
	}
	l.full = true
}

// lease is what an instance holds of one key in one minute.
type lease struct {
	mu sync.Mutex // guards all below; held while the counter is asked, so that who shares the key waits for one batch

	start int64     // of the minute, in seconds of the epoch; 0: none yet
	left  int       // taken and not spent
	spent int       // allowed in this minute, by this instance
	owed  int       // of them, allowed while the counter was away and not yet counted
	size  int       // of the last batch
	seen  int       // the counter, when it was last asked
	full  bool      // the counter has reached the limit, and stays there until the minute ends
	retry time.Time // the counter failed and is not asked before
}

// roll begins a new minute where one has begun, and returns the time to go by: a clock that steps back must not reopen a minute.
// The first batch of a minute follows what the last minute needed.
func (l *lease) roll(start int64, now time.Time, limit int) time.Time {
	if l.start == 0 || start > l.start {
		l.size = min(l.spent/8, limit)
		if start-l.start > int64(window/time.Second) {
			l.size = 0
		}
		l.start, l.left, l.spent, l.owed, l.seen, l.full = start, 0, 0, 0, 0, false
	}
	if begin := time.Unix(l.start, 0); now.Before(begin) {
		return begin
	}
	return now
}

// next is the size of the next batch. The first is small, for a client that calls twenty times at once wakes twenty instances, and
// what each keeps nobody else can spend; it grows with what the instance spends, and shrinks when little is left.
func (l *lease) next(limit int) int {
	first := max(limit/100, 1)
	grown := max(4*l.size, first)
	if l.spent == 0 {
		grown = max(l.size, first)
	}
	most := max(limit/20, min(10, limit/4))
	rest := limit - l.seen
	tapered := max(rest/4, min(max(limit/60, 1), 10))
	return max(min(grown, most, tapered, rest-l.owed), 1)
}

// credit books a batch: first what is owed.
func (l *lease) credit(n, sum, limit int) {
	paid := min(l.owed, n)
	l.owed -= paid
	l.left = n - paid
	l.size = max(l.left, 1)
	l.seen = sum
	l.full = sum >= limit
}

// answer is the state after a request at now.
func (l *lease) answer(limit int, now time.Time, allowed bool) mcp.Limit {
	out := mcp.Limit{Allowed: allowed, Limit: limit, Remaining: l.left, Reset: time.Unix(l.start, 0).Add(window).Sub(now)}
	if !allowed {
		out.Remaining, out.RetryAfter = 0, out.Reset
	}
	return out
}
