package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/ratelimit"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// counter is the embedded engine, counted, and failing as told.
type counter struct {
	engine *embedded.Engine

	mu     sync.Mutex
	asked  int
	away   bool
	lost   bool // it adds, and the answer is lost
	onAdd  func()
	broken error
}

func newCounter(t *testing.T, clock func() time.Time) *counter {
	t.Helper()
	e, err := embedded.Open(filepath.Join(t.TempDir(), "store"), embedded.Options{Clock: clock, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return &counter{engine: e, broken: store.ErrUnavailable}
}

// Add counts.
func (c *counter) Add(ctx context.Context, key store.Key, field string, delta, max int64, expires time.Time) (int64, error) {
	c.mu.Lock()
	c.asked++
	away, lost, hook := c.away, c.lost, c.onAdd
	c.mu.Unlock()
	if hook != nil {
		hook()
	}
	if away {
		return 0, c.broken
	}
	sum, err := c.engine.Add(ctx, key, field, delta, max, expires)
	if lost && err == nil {
		return 0, context.DeadlineExceeded
	}
	return sum, err
}

func (c *counter) fail(away, lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away, c.lost = away, lost
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

func newShared(t *testing.T, c *counter, perMinute int, now func() time.Time) *ratelimit.Shared {
	t.Helper()
	s, err := ratelimit.NewShared(ratelimit.SharedOptions{Counter: c, Name: "calls", PerMinute: perMinute, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instance is one of several that share a limit; its clock is skew off.
type instance struct {
	*ratelimit.Shared
	clock *clock
	skew  time.Duration
}

func (i *instance) now() time.Time { return i.clock.now().Add(i.skew) }

func fleet(t *testing.T, c *counter, at *clock, n, perMinute int, skew func() time.Duration) []*instance {
	t.Helper()
	out := make([]*instance, n)
	for i := range out {
		out[i] = &instance{clock: at, skew: skew()}
		out[i].Shared = newShared(t, c, perMinute, out[i].now)
	}
	return out
}

func noSkew() time.Duration { return 0 }

// end is when the minute that an instance goes by is over: every answer says it.
func end(i *instance, l mcp.Limit) int64 { return i.now().Add(l.Reset).Unix() }

// TestSharedUnderLoad drives instances with a little less, and with far more, than the limit for three minutes and more: what is allowed in a minute never
// passes the limit and ends within one batch of it for each other instance, Remaining never promises what is not there, a refusal
// is one for everybody, and the counter is asked for at most a tenth of the requests.
func TestSharedUnderLoad(t *testing.T) {
	for _, c := range []struct {
		limit, instances int
		load             float64 // requests, of the limit
	}{{600, 1, 0.9}, {600, 5, 0.9}, {600, 20, 0.9}, {600, 2, 2}, {600, 20, 2}, {6000, 50, 0.9}, {6000, 50, 3}, {200, 3, 2}} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%.1f of %d a minute on %d, seed %d", c.load, c.limit, c.instances, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 7))
				at := newClock()
				counter := newCounter(t, at.now)
				all := fleet(t, counter, at, c.instances, c.limit, noSkew)
				allowed, requests := map[int64]int{}, 0
				batch := max(c.limit/20, 10)
				for range int(4 * c.load * float64(c.limit)) {
					at.add(time.Duration(rng.Int64N(int64(2 * float64(time.Minute) / float64(c.limit) / c.load))))
					i := all[rng.IntN(len(all))]
					got := i.Take(t.Context(), "g")
					requests++
					minute := end(i, got)
					if got.Allowed {
						allowed[minute]++
					} else if low := c.limit - batch*(c.instances-1); allowed[minute] < low {
						t.Fatalf("refused after %d, want at least %d", allowed[minute], low)
					}
					judge(t, got, c.limit, allowed[minute])
				}
				if len(allowed) < 3 {
					t.Fatalf("%d minutes were seen", len(allowed))
				}
				if writes := counter.count(); writes*10 > requests {
					t.Errorf("%d writes for %d requests", writes, requests)
				}
			})
		}
	}
}

// judge holds an answer against what was truly allowed in its minute.
func judge(t *testing.T, got mcp.Limit, limit, allowed int) {
	t.Helper()
	switch {
	case got.Limit != limit:
		t.Fatalf("limit %d", got.Limit)
	case allowed > limit:
		t.Fatalf("%d were allowed in a minute, limit %d", allowed, limit)
	case got.Remaining < 0 || got.Remaining > limit-allowed:
		t.Fatalf("Remaining %d, true remainder %d", got.Remaining, limit-allowed)
	case got.Reset <= 0 || got.Reset > time.Minute:
		t.Fatalf("Reset %v", got.Reset)
	case got.Allowed != (got.RetryAfter == 0), !got.Allowed && (got.RetryAfter != got.Reset || got.Remaining != 0):
		t.Fatalf("%+v", got)
	}
}

// TestSharedWithSkewAndFaults: clocks that are up to three seconds off and step, a counter that goes away or loses answers. Without
// an outage the limit holds whatever the clocks say; with one it may be passed by what was allowed meanwhile and no more,
// and nobody is refused because of it.
func TestSharedWithSkewAndFaults(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 11))
			limit, n := 100+rng.IntN(900), 1+rng.IntN(12)
			at := newClock()
			counter := newCounter(t, at.now)
			faulty := seed%2 == 1
			all := fleet(t, counter, at, n, limit, func() time.Duration { return time.Duration(rng.Int64N(int64(6*time.Second))) - 3*time.Second })
			allowed, open := map[int64]int{}, map[int64]int{}
			for step := range 6 * limit {
				at.add(time.Duration(rng.Int64N(int64(time.Minute) / int64(limit))))
				i := all[rng.IntN(n)]
				if rng.IntN(200) == 0 {
					i.skew += time.Duration(rng.Int64N(int64(2*time.Second))) - time.Second
				}
				if faulty && step%400 == 0 {
					counter.fail(rng.IntN(3) == 0, rng.IntN(3) == 0)
				}
				got := i.Take(t.Context(), "g")
				minute := end(i, got)
				if !got.Allowed {
					continue
				}
				allowed[minute]++
				if got.Remaining == 0 {
					open[minute]++ // it failed open, or took the last
				}
				if over := allowed[minute] - limit; over > 0 && (!faulty || over > open[minute]) {
					t.Fatalf("%d were allowed in a minute, %d of them open, limit %d", allowed[minute], open[minute], limit)
				}
			}
		})
	}
}

// TestSharedFailsOpen: while the counter is away every instance allows up to the limit by itself without asking for each request, and what
// it allowed counts once the counter is back.
func TestSharedFailsOpen(t *testing.T) {
	for name, broken := range map[string]error{"away": store.ErrUnavailable, "slow": context.DeadlineExceeded, "odd": errors.New("odd")} {
		t.Run(name, func(t *testing.T) {
			at := newClock()
			counter := newCounter(t, at.now)
			counter.broken = broken
			counter.fail(true, false)
			l := newShared(t, counter, 100, at.now)
			for range 40 {
				if got := l.Take(t.Context(), "g"); !got.Allowed || got.Remaining != 0 || got.Limit != 100 {
					t.Fatalf("while away: %+v", got)
				}
			}
			if n := counter.count(); n != 1 {
				t.Errorf("asked %d times within the pause", n)
			}
			if got := l.Peek(t.Context(), "g"); !got.Allowed || got.Remaining != 0 {
				t.Errorf("peek while away: %+v", got)
			}
			counter.fail(false, false)
			at.add(2 * time.Second)
			passed := 40
			for range 100 {
				if l.Take(t.Context(), "g").Allowed {
					passed++
				}
			}
			if passed != 100 {
				t.Errorf("%d passed in the minute, want 100: what was allowed meanwhile counts", passed)
			}
		})
	}
	t.Run("bounded", func(t *testing.T) {
		at := newClock()
		counter := newCounter(t, at.now)
		counter.fail(true, false)
		l := newShared(t, counter, 5, at.now)
		for i := range 8 {
			got := l.Take(t.Context(), "g")
			if got.Allowed != (i < 5) || !got.Allowed && got.RetryAfter != got.Reset {
				t.Errorf("request %d: %+v", i+1, got)
			}
		}
	})
}

// TestExact: no more than the limit on all instances together, to the request, one write each; closed while the counter is away; and
// hammering costs nothing.
func TestExact(t *testing.T) {
	at := newClock()
	counter := newCounter(t, at.now)
	var all []*ratelimit.Exact
	for range 3 {
		e, err := ratelimit.NewExact(ratelimit.SharedOptions{Counter: counter, Name: "outward", PerMinute: 20, Now: at.now})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	for n := range 20 {
		got, err := all[n%3].Take(t.Context(), "g")
		if err != nil || !got.Allowed || got.Remaining != 19-n {
			t.Fatalf("operation %d: %+v, %v", n+1, got, err)
		}
	}
	if n := counter.count(); n != 20 {
		t.Errorf("%d writes for 20 operations", n)
	}
	for n := range 300 {
		got, err := all[n%3].Take(t.Context(), "g")
		if err != nil || got.Allowed || got.RetryAfter != got.Reset || got.Reset <= 0 {
			t.Fatalf("beyond the limit: %+v, %v", got, err)
		}
	}
	if n := counter.count(); n != 23 {
		t.Errorf("%d writes, want one more for each instance", n)
	}
	counter.fail(true, false)
	if got, err := all[0].Take(t.Context(), "other"); err == nil || got.Allowed || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("while away: %+v, %v", got, err)
	}
	counter.fail(false, true)
	if got, err := all[0].Take(t.Context(), "other"); err == nil || got.Allowed {
		t.Errorf("an answer was lost: %+v, %v", got, err)
	}
	counter.fail(false, false)
	at.add(time.Minute)
	if got, err := all[0].Take(t.Context(), "g"); err != nil || !got.Allowed {
		t.Errorf("in the next minute: %+v, %v", got, err)
	}
}

// TestSharedPeek: free requests are shown the state, count nothing, and ask at most once for a batch that is used afterwards.
func TestSharedPeek(t *testing.T) {
	at := newClock()
	counter := newCounter(t, at.now)
	l := newShared(t, counter, 600, at.now)
	first := l.Peek(t.Context(), "g")
	for range 50 {
		if got := l.Peek(t.Context(), "g"); got != first || !got.Allowed || got.Remaining == 0 || got.Remaining > 600 {
			t.Fatalf("peek: %+v, first %+v", got, first)
		}
	}
	if got := l.Take(t.Context(), "g"); got.Remaining != first.Remaining-1 {
		t.Errorf("take after peek: %+v", got)
	}
	if n := counter.count(); n != 1 {
		t.Errorf("%d writes", n)
	}
}

// TestSharedBurst: a client that calls twenty times at once wakes twenty instances; what they keep must not starve the next calls.
func TestSharedBurst(t *testing.T) {
	at := newClock()
	counter := newCounter(t, at.now)
	all := fleet(t, counter, at, 20, 600, noSkew)
	for _, i := range all {
		if !i.Take(t.Context(), "g").Allowed {
			t.Fatal("refused")
		}
	}
	passed := 20
	for all[0].Take(t.Context(), "g").Allowed {
		passed++
	}
	if passed < 480 {
		t.Errorf("one instance passed %d after a burst on twenty, want 480 at least", passed)
	}
}

// TestSharedKeys: keys do not share a limit, two limits do not share a counter, and minutes do not begin together.
func TestSharedKeys(t *testing.T) {
	at := newClock()
	counter := newCounter(t, at.now)
	l := newShared(t, counter, 3, at.now)
	other, err := ratelimit.NewShared(ratelimit.SharedOptions{Counter: counter, Name: "other", PerMinute: 3, Now: at.now})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		l.Take(t.Context(), "a")
	}
	if l.Take(t.Context(), "a").Allowed || !l.Take(t.Context(), "b").Allowed || !other.Take(t.Context(), "a").Allowed {
		t.Error("keys or limits share a counter")
	}
	resets := map[time.Duration]bool{}
	for i := range 40 {
		resets[l.Take(t.Context(), fmt.Sprint("grant_", i)).Reset] = true
	}
	if len(resets) < 15 {
		t.Errorf("forty keys have %d beginnings of their minutes", len(resets))
	}
}

func TestSharedClockStepsBack(t *testing.T) {
	at := newClock()
	l := newShared(t, newCounter(t, at.now), 3, at.now)
	for range 4 {
		l.Take(t.Context(), "g")
	}
	at.add(-10 * time.Minute)
	if got := l.Take(t.Context(), "g"); got.Allowed || got.Reset > time.Minute {
		t.Errorf("a clock that steps back reopened a minute: %+v", got)
	}
}

func TestSharedLeaverCostsNobody(t *testing.T) {
	at := newClock()
	l := newShared(t, newCounter(t, at.now), 60, at.now)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got := l.Take(gone, "g"); !got.Allowed || got.Remaining == 0 {
		t.Errorf("a caller that has left made the counter look away: %+v", got)
	}
}

func TestSharedConcurrent(t *testing.T) {
	at := newClock()
	counter := newCounter(t, at.now)
	all := fleet(t, counter, at, 3, 600, noSkew)
	var wg sync.WaitGroup
	passed := make([]int, 12)
	for g := range passed {
		wg.Go(func() {
			for range 100 {
				if all[g%3].Take(t.Context(), "g").Allowed {
					passed[g]++
				}
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range passed {
		sum += n
	}
	if sum > 600 || sum < 600-2*30 {
		t.Errorf("%d of 1200 passed, want 540 to 600", sum)
	}
}

func TestSharedOffAndRefusals(t *testing.T) {
	at := newClock()
	counter := newCounter(t, at.now)
	off := newShared(t, counter, 0, at.now)
	if got := off.Take(t.Context(), "g"); got != (mcp.Limit{Allowed: true}) || off.Peek(t.Context(), "g") != got || counter.count() != 0 {
		t.Errorf("off: %+v", got)
	}
	for name, o := range map[string]ratelimit.SharedOptions{
		"no counter": {Name: "n", PerMinute: 1}, "no name": {Counter: counter, PerMinute: 1},
		"negative": {Counter: counter, Name: "n", PerMinute: -1}, "too much": {Counter: counter, Name: "n", PerMinute: 1_000_001},
		"negative keys": {Counter: counter, Name: "n", MaxKeys: -1},
	} {
		if _, err := ratelimit.NewShared(o); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := ratelimit.NewExact(o); err == nil {
			t.Errorf("%s: no error of Exact", name)
		}
	}
}

func TestSharedMemoryIsBounded(t *testing.T) {
	at := newClock()
	counter := newCounter(t, at.now)
	counter.fail(true, false)
	l, err := ratelimit.NewShared(ratelimit.SharedOptions{Counter: counter, Name: "n", PerMinute: 5, MaxKeys: 64, Now: at.now})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		l.Take(t.Context(), fmt.Sprint("grant", i))
	}
	if n := l.Len(); n > 64 {
		t.Errorf("%d keys are kept, want at most 64", n)
	}
}

func BenchmarkSharedTake(b *testing.B) {
	l, err := ratelimit.NewShared(ratelimit.SharedOptions{Counter: endless{}, Name: "n", PerMinute: 1_000_000})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Take(b.Context(), "grant_01")
	}
}

// endless is a counter that is always at its beginning.
type endless struct{}

// Add returns delta.
func (endless) Add(_ context.Context, _ store.Key, _ string, delta, _ int64, _ time.Time) (int64, error) {
	return delta, nil
}
