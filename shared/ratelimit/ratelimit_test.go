package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/ratelimit"
)

// clock is moved by hand.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 11, 30, 12, 0, 0, 250e6, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func newLimiter(t *testing.T, perMinute, maxKeys int) (*ratelimit.Limiter, *clock) {
	t.Helper()
	c := newClock()
	l, err := ratelimit.New(ratelimit.Options{PerMinute: perMinute, MaxKeys: maxKeys, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	return l, c
}

func TestBurst(t *testing.T) {
	l, c := newLimiter(t, 600, 0)
	for i := range 600 {
		got := l.Take(t.Context(), "g")
		want := mcp.Limit{Allowed: true, Limit: 600, Remaining: 599 - i, Reset: time.Minute}
		if got != want {
			t.Fatalf("request %d: %+v, want %+v", i+1, got, want)
		}
	}
	c.add(1500 * time.Millisecond)
	want := mcp.Limit{Limit: 600, Reset: 58500 * time.Millisecond, RetryAfter: 58500 * time.Millisecond}
	if got := l.Take(t.Context(), "g"); got != want {
		t.Errorf("request 601: %+v, want %+v", got, want)
	}
	if got := l.Peek(t.Context(), "g"); got != want {
		t.Errorf("peek: %+v, want %+v", got, want)
	}
	if got := l.Take(t.Context(), "other"); !got.Allowed || got.Remaining != 599 {
		t.Errorf("another key shares the limit: %+v", got)
	}
	c.add(want.RetryAfter - 1)
	if got := l.Take(t.Context(), "g"); got.Allowed {
		t.Error("allowed before the time that RetryAfter named")
	}
	c.add(1)
	if got := l.Take(t.Context(), "g"); !got.Allowed || got.Remaining != 599 {
		t.Errorf("at the time that RetryAfter named: %+v, want allowed with 599 left", got)
	}
}

func TestRefusedIsNotCounted(t *testing.T) {
	l, c := newLimiter(t, 1, 0)
	l.Take(t.Context(), "g")
	for range 59 {
		c.add(time.Second)
		if l.Take(t.Context(), "g").Allowed {
			t.Fatal("allowed within the window")
		}
	}
	c.add(time.Second)
	if !l.Take(t.Context(), "g").Allowed {
		t.Error("hammering prolonged the wait")
	}
}

func TestPeekDoesNotCount(t *testing.T) {
	l, _ := newLimiter(t, 2, 0)
	for range 10 {
		if got := l.Peek(t.Context(), "g"); got != (mcp.Limit{Allowed: true, Limit: 2, Remaining: 2}) {
			t.Fatalf("peek of an unused key: %+v", got)
		}
	}
	l.Take(t.Context(), "g")
	if got := l.Peek(t.Context(), "g"); got.Remaining != 1 || !got.Allowed {
		t.Errorf("peek after one: %+v", got)
	}
}

func TestOff(t *testing.T) {
	l, _ := newLimiter(t, 0, 0)
	for range 2000 {
		if got := l.Take(t.Context(), "g"); got != (mcp.Limit{Allowed: true}) {
			t.Fatalf("without a limit: %+v", got)
		}
	}
}

func TestClockStepsBack(t *testing.T) {
	l, c := newLimiter(t, 3, 0)
	for range 3 {
		l.Take(t.Context(), "g")
	}
	c.add(-10 * time.Minute)
	if l.Take(t.Context(), "g").Allowed {
		t.Error("a clock that steps back reopened the window")
	}
}

// TestSlidingWindow holds random traffic against the log of what was allowed: never more than the limit in any 60 seconds,
// Remaining never above the true remainder, and a client that waits as told is let in.
func TestSlidingWindow(t *testing.T) {
	for seed := range uint64(15) {
		rng := rand.New(rand.NewPCG(seed, 1))
		limit := 1 + rng.IntN(20)
		l, c := newLimiter(t, limit, 0)
		var allowed []time.Time
		for range 800 {
			c.add(time.Duration(rng.Int64N(int64(1 + rng.IntN(8_000_000_000)))))
			now := c.now()
			got := l.Take(t.Context(), "g")
			if got.Allowed {
				allowed = append(allowed, now)
			}
			inWindow := 0
			for _, at := range allowed {
				if now.Sub(at) < time.Minute {
					inWindow++
				}
			}
			if inWindow > limit {
				t.Fatalf("seed %d: %d requests within 60 s, limit %d", seed, inWindow, limit)
			}
			if got.Remaining > limit-inWindow || got.Remaining < 0 {
				t.Fatalf("seed %d: Remaining %d, true remainder %d", seed, got.Remaining, limit-inWindow)
			}
			if got.Reset > time.Minute || got.Reset < 0 || got.RetryAfter > time.Minute {
				t.Fatalf("seed %d: %+v is beyond the window", seed, got)
			}
			if !got.Allowed {
				if got.RetryAfter <= 0 {
					t.Fatalf("seed %d: refused without a time: %+v", seed, got)
				}
				c.add(got.RetryAfter)
				if p := l.Peek(t.Context(), "g"); !p.Allowed {
					t.Fatalf("seed %d: still refused after the time that was named: %+v", seed, p)
				}
			}
		}
		if len(allowed) == 0 {
			t.Fatalf("seed %d: nothing was allowed", seed)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	l, c := newLimiter(t, 5, 64)
	for i := range 100_000 {
		l.Take(t.Context(), fmt.Sprint("grant", i))
	}
	if n := l.Len(); n > 64 {
		t.Errorf("%d keys are kept, want at most 64", n)
	}
	c.add(2 * time.Minute)
	for i := range 1000 {
		l.Peek(t.Context(), fmt.Sprint("late", i))
	}
	if n := l.Len(); n != 0 {
		t.Errorf("%d keys are kept although all are stale", n)
	}
}

func TestBusyKeySurvivesEviction(t *testing.T) {
	l, _ := newLimiter(t, 1000, 64)
	for i := range 500 {
		if got := l.Take(t.Context(), "busy"); got.Remaining != 999-i {
			t.Fatalf("after %d strangers the history is lost: %+v", i, got)
		}
		l.Take(t.Context(), fmt.Sprint("stranger", i))
	}
}

func TestConcurrentNeverOver(t *testing.T) {
	l, _ := newLimiter(t, 600, 0)
	var wg sync.WaitGroup
	allowed := make([]int, 8)
	for g := range allowed {
		wg.Go(func() {
			for range 200 {
				if l.Take(t.Context(), "g").Allowed {
					allowed[g]++
				}
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range allowed {
		sum += n
	}
	if sum != 600 {
		t.Errorf("%d of 1600 were allowed, want exactly 600", sum)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]ratelimit.Options{
		"negative limit": {PerMinute: -1},
		"limit too big":  {PerMinute: 1_000_001},
		"negative keys":  {PerMinute: 1, MaxKeys: -1},
	} {
		if _, err := ratelimit.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	l, err := ratelimit.New(ratelimit.Options{PerMinute: 60000})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Take(b.Context(), "grant_01")
	}
}
