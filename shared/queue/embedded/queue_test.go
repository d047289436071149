package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/queue"
	"github.com/buzon-mail/buzon/shared/queue/queuetest"
	"github.com/buzon-mail/buzon/shared/store"
	engine "github.com/buzon-mail/buzon/shared/store/embedded"
)

type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newClock() *fakeClock {
	return &fakeClock{now: time.Date(2026, 8, 1, 1, 2, 3, 456_789_012, time.UTC)}
}

func openEngine(tb testing.TB, path string, opts engine.Options) *engine.Engine {
	tb.Helper()
	e, err := engine.Open(path, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return e
}

func newQueue(tb testing.TB, e store.Engine, opts Options) *Queue {
	tb.Helper()
	q, err := New(e, "jobs", opts)
	if err != nil {
		tb.Fatal(err)
	}
	return q
}

func newTest(t *testing.T, opts Options) (*Queue, *fakeClock) {
	t.Helper()
	clock := newClock()
	opts.Clock = clock.Now
	return newQueue(t, openEngine(t, filepath.Join(t.TempDir(), "q.db"), engine.Options{Clock: clock.Now, NoSync: true}), opts), clock
}

func TestContract(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) queuetest.Harness {
		q, clock := newTest(t, Options{})
		return queuetest.Harness{Queue: q, Source: q, Dead: q, Pass: clock.pass}
	})
}

func send(tb testing.TB, q *Queue, ids ...string) {
	tb.Helper()
	for _, id := range ids {
		if err := q.Send(tb.Context(), queue.Message{ID: id}); err != nil {
			tb.Fatalf("send %s: %v", id, err)
		}
	}
}

func receive(tb testing.TB, q *Queue, max int) []queue.Delivery {
	tb.Helper()
	got, err := q.Receive(tb.Context(), max, time.Minute)
	if err != nil {
		tb.Fatalf("receive: %v", err)
	}
	return got
}

func TestMessagesSurviveARestart(t *testing.T) {
	clock := newClock()
	path := filepath.Join(t.TempDir(), "q.db")
	e := openEngine(t, path, engine.Options{Clock: clock.Now})
	q := newQueue(t, e, Options{Clock: clock.Now})
	send(t, q, "leased")
	receive(t, q, 1)
	send(t, q, "waiting")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	q = newQueue(t, openEngine(t, path, engine.Options{Clock: clock.Now}), Options{Clock: clock.Now})
	if got := receive(t, q, 10); len(got) != 1 || got[0].ID != "waiting" {
		t.Errorf("at once: %v", got)
	}
	clock.pass(time.Minute + time.Millisecond)
	got := receive(t, q, 10)
	if len(got) != 2 || got[0].Attempt != 2 && got[1].Attempt != 2 {
		t.Errorf("after the lease: %v", got)
	}
}

// Two processes on one engine have no lock in common: the store's conditions keep their leases apart.
func TestTwoProcesses(t *testing.T) {
	clock := newClock()
	e := openEngine(t, filepath.Join(t.TempDir(), "q.db"), engine.Options{Clock: clock.Now, NoSync: true})
	send(t, newQueue(t, e, Options{Clock: clock.Now}), strings.Split(strings.Repeat("x", 300), "")...)
	var mu sync.Mutex
	receipts, total := map[string]bool{}, 0
	var wg sync.WaitGroup
	for range 4 {
		q := newQueue(t, e, Options{Clock: clock.Now})
		wg.Go(func() {
			for {
				got, err := q.Receive(context.Background(), 7, time.Minute)
				if err != nil {
					t.Errorf("receive: %v", err)
					return
				}
				mu.Lock()
				for _, d := range got {
					receipts[d.Receipt] = true
					total++
				}
				done := total >= 300
				mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	wg.Wait()
	if total != 300 || len(receipts) != 300 {
		t.Errorf("%d deliveries, %d receipts, want 300", total, len(receipts))
	}
}

func TestNamesShareNothing(t *testing.T) {
	q, _ := newTest(t, Options{})
	for _, name := range []string{"job", "jobs2", "jobs-dead"} {
		other, err := New(q.engine, name, Options{Clock: q.clock})
		if err != nil {
			t.Fatal(err)
		}
		send(t, other, name)
	}
	if got := receive(t, q, 10); len(got) != 0 {
		t.Errorf("received %v", got)
	}
	for _, bad := range []string{"", "jobs#dead", "Jobs", "a b", "a\x00", strings.Repeat("x", maxName+1)} {
		if _, err := New(q.engine, bad, Options{}); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("name %q: %v", bad, err)
		}
	}
	if _, err := New(q.engine, "ok", Options{MaxAttempts: -1}); !errors.Is(err, queue.ErrInvalid) {
		t.Errorf("attempts: %v", err)
	}
}

func TestMaxAttempts(t *testing.T) {
	q, _ := newTest(t, Options{MaxAttempts: 1})
	send(t, q, "a")
	if err := q.Retry(t.Context(), receive(t, q, 1)[0], 0); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, q, 1); len(got) != 0 {
		t.Errorf("received %v after the only attempt", got)
	}
	if dead, _, err := q.Dead(t.Context(), "", 10); err != nil || len(dead) != 1 || !dead[0].Since.Equal(q.clock().Truncate(time.Millisecond)) {
		t.Errorf("dead = %v, %v", dead, err)
	}
}

// Dead messages at the head must not look like an empty queue, or the living behind them would wait for a timer.
func TestDeadDontHideTheLiving(t *testing.T) {
	q, clock := newTest(t, Options{MaxAttempts: 1})
	for i := range 12 {
		send(t, q, fmt.Sprint(i))
	}
	for len(receive(t, q, 10)) > 0 {
	}
	clock.pass(time.Minute + time.Millisecond)
	send(t, q, "alive")
	if got := receive(t, q, 5); len(got) != 1 || got[0].ID != "alive" {
		t.Errorf("received %v", got)
	}
}

func TestNewerRowsStandAside(t *testing.T) {
	q, clock := newTest(t, Options{})
	newer := store.Item{Key: q.key(q.live, moment(clock.Now())+".0"), Format: rowFormat + 1, Data: []byte("{}")}
	if err := q.engine.Put(t.Context(), newer, store.Absent()); err != nil {
		t.Fatal(err)
	}
	send(t, q, "mine")
	if got := receive(t, q, 1); len(got) != 1 || got[0].ID != "mine" {
		t.Errorf("received %v", got)
	}
	page, err := q.engine.Query(t.Context(), store.Query{Table: store.Core, Partition: q.live, Limit: 10})
	if err != nil || !slices.ContainsFunc(page.Items, func(i store.Item) bool { return i.Format == rowFormat+1 && string(i.Data) == "{}" }) {
		t.Errorf("the newer row is lost: %v, %v", page.Items, err)
	}
}

func signalled(q *Queue) bool {
	select {
	case <-q.Wake():
		return true
	default:
		return false
	}
}

func TestWake(t *testing.T) {
	q, _ := newTest(t, Options{MaxAttempts: 2})
	if signalled(q) {
		t.Error("signalled from the start")
	}
	if err := q.Send(t.Context(), queue.Message{ID: "later", Delay: time.Second}); err != nil || signalled(q) {
		t.Errorf("a delayed message woke: %v", err)
	}
	send(t, q, "a", "b", "c")
	if !signalled(q) || signalled(q) {
		t.Error("three messages must leave one signal")
	}
	got := receive(t, q, 2)
	if !signalled(q) {
		t.Error("a full batch must wake the next consumer")
	}
	if last := receive(t, q, 2); len(last) != 1 || signalled(q) {
		t.Errorf("the last batch woke again: %v", last)
	}
	if err := q.Retry(t.Context(), got[0], time.Second); err != nil || signalled(q) {
		t.Errorf("a retry later woke: %v", err)
	}
	if err := q.Retry(t.Context(), got[1], 0); err != nil || !signalled(q) {
		t.Errorf("a retry at once didn't wake: %v", err)
	}
}

func TestClosedEngine(t *testing.T) {
	e := openEngine(t, filepath.Join(t.TempDir(), "q.db"), engine.Options{})
	q := newQueue(t, e, Options{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	_, recv := q.Receive(t.Context(), 1, time.Minute)
	_, _, dead := q.Dead(t.Context(), "", 1)
	d := queue.Delivery{ID: "a", Receipt: "r"}
	for name, err := range map[string]error{
		"send": q.Send(t.Context(), queue.Message{ID: "a"}), "receive": recv, "dead": dead,
		"done": q.Done(t.Context(), d), "retry": q.Retry(t.Context(), d, 0), "redrive": q.Redrive(t.Context(), queue.Dead{Handle: "h"}),
	} {
		if !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
}

// Receipts and handles come back from callers: what isn't ours is refused or does nothing.
func TestForeignReceipts(t *testing.T) {
	q, _ := newTest(t, Options{})
	send(t, q, "a")
	for _, receipt := range []string{"x", "\xff", "a\x00", strings.Repeat("x", 2000)} {
		for name, err := range map[string]error{
			"done":    q.Done(t.Context(), queue.Delivery{ID: "a", Receipt: receipt}),
			"retry":   q.Retry(t.Context(), queue.Delivery{ID: "a", Receipt: receipt}, 0),
			"redrive": q.Redrive(t.Context(), queue.Dead{Handle: receipt}),
		} {
			if err != nil && !errors.Is(err, queue.ErrInvalid) && !errors.Is(err, queue.ErrNotFound) {
				t.Errorf("%s of %.10q: %v", name, receipt, err)
			}
		}
	}
	if got := receive(t, q, 10); len(got) != 1 || got[0].ID != "a" {
		t.Errorf("received %v", got)
	}
}

// One message through the whole queue, in batches as a worker has them, on a synced file.
func BenchmarkMessage(b *testing.B) {
	q := newQueue(b, openEngine(b, filepath.Join(b.TempDir(), "q.db"), engine.Options{}), Options{})
	var producers sync.WaitGroup
	const batch = 16
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		if n++; n%batch != 0 {
			continue
		}
		for i := range batch {
			producers.Go(func() {
				if err := q.Send(context.Background(), queue.Message{ID: fmt.Sprint(i)}); err != nil {
					b.Error(err)
				}
			})
		}
		producers.Wait()
		got := receive(b, q, batch)
		if len(got) != batch {
			b.Fatalf("received %d", len(got))
		}
		if err := q.Done(b.Context(), got...); err != nil {
			b.Fatal(err)
		}
	}
}
