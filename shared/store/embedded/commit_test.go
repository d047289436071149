package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/buzon-mail/buzon/shared/store"
)

func newEngine(tb testing.TB, opts Options) *Engine {
	tb.Helper()
	e, err := Open(filepath.Join(tb.TempDir(), "store.db"), opts)
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

func put(sort string, cond store.Condition) store.Op {
	return store.Put(store.Item{Key: store.Key{Table: store.Core, Partition: "p", Sort: sort}, Format: 1}, cond)
}

// hold keeps the committing goroutine inside a step until release is called, so that writes queue up behind it.
func (e *Engine) hold(t *testing.T) (release func()) {
	t.Helper()
	entered, gate := make(chan struct{}), make(chan struct{})
	go e.queue.do(context.Background(), 0, func(*tables) error { //nolint:errcheck // changes nothing
		close(entered)
		<-gate
		return nil
	})
	<-entered
	return func() { close(gate) }
}

func (e *Engine) waiting() int {
	e.queue.mu.Lock()
	defer e.queue.mu.Unlock()
	return len(e.queue.pending)
}

func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Writers of one batch keep their own outcomes: a conflict among them disturbs none, and later ones see earlier ones.
func TestBatchKeepsOutcomesApart(t *testing.T) {
	e := newEngine(t, Options{})
	release := e.hold(t)
	outcomes := make([]error, 20)
	var wg sync.WaitGroup
	for i := range outcomes {
		// Rows 0 to 9, each twice: within the batch the second must conflict.
		wg.Go(func() { outcomes[i] = e.Transact(context.Background(), put(fmt.Sprint(i/2), store.Absent())) })
	}
	until(t, "all writes wait", func() bool { return e.waiting() == len(outcomes) })
	release()
	wg.Wait()
	for i := 0; i < len(outcomes); i += 2 {
		a, b := outcomes[i], outcomes[i+1]
		if (a == nil) == (b == nil) || !errors.Is(errors.Join(a, b), store.ErrConflict) {
			t.Errorf("row %d: %v and %v, want one success and one conflict", i/2, a, b)
		}
	}
}

// Writers that are ready to run share a commit, also where one processor runs them and the committing goroutine: without that
// each wake-up would be a commit of its own, for it puts that goroutine before all others.
func TestWritersOfOneProcessorShareCommits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	e := newEngine(t, Options{NoSync: true})
	before := e.commits(t)
	const writers, each = 16, 20
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := range each {
				if err := e.Transact(t.Context(), put(fmt.Sprint(i, "/", n), store.Absent())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := e.commits(t) - before; n > writers*each/4 {
		t.Errorf("%d writes of %d writers at once took %d commits", writers*each, writers, n)
	}
}

// commits is the number of transactions that have changed the file.
func (e *Engine) commits(t *testing.T) (n int) {
	t.Helper()
	if err := e.db.View(func(tx *bolt.Tx) error {
		n = tx.ID()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// A waiting write can be withdrawn; one that is being committed reports what happened.
func TestContextEndsWhileWaiting(t *testing.T) {
	e := newEngine(t, Options{})
	release := e.hold(t)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- e.Transact(ctx, put("withdrawn", store.Absent())) }()
	until(t, "the write waits", func() bool { return e.waiting() == 1 })
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("withdrawn write: %v", err)
	}
	release()
	if _, err := e.Get(t.Context(), store.Key{Table: store.Core, Partition: "p", Sort: "withdrawn"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("withdrawn write happened: %v", err)
	}

	ctx, cancel = context.WithCancel(t.Context())
	err := e.queue.do(ctx, 0, func(tb *tables) error {
		cancel()
		return tb.transact([]store.Op{put("taken", store.Absent())})
	})
	if err != nil {
		t.Errorf("write whose context ended during the commit: %v, want what happened: success", err)
	}
	if _, err := e.Get(t.Context(), store.Key{Table: store.Core, Partition: "p", Sort: "taken"}); err != nil {
		t.Errorf("taken write: %v", err)
	}
}

// A panic below (bbolt on a damaged page) fails the batch, undoes it and leaves the engine working.
func TestPanicFailsTheBatchOnly(t *testing.T) {
	e := newEngine(t, Options{})
	err := e.queue.do(t.Context(), 0, func(tb *tables) error {
		if err := tb.transact([]store.Op{put("half", store.Absent())}); err != nil {
			return err
		}
		panic("damaged page")
	})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("panic: %v, want ErrUnavailable", err)
	}
	if err := e.Transact(t.Context(), put("half", store.Absent())); err != nil {
		t.Errorf("after the panic: %v", err)
	}
}

// A write that the file refuses takes the whole batch with it: no writer is told of a success that isn't on disk.
func TestBrokenFileFailsTheBatch(t *testing.T) {
	e := newEngine(t, Options{})
	release := e.hold(t)
	outcomes := make([]error, 3)
	var wg sync.WaitGroup
	for i := range outcomes {
		wg.Go(func() {
			outcomes[i] = e.queue.do(context.Background(), 0, func(tb *tables) error {
				if err := tb.transact([]store.Op{put(fmt.Sprint(i), store.Absent())}); err != nil {
					return err
				}
				if i == 1 {
					tb.must(errors.New("i/o error"))
				}
				return nil
			})
		})
	}
	until(t, "all writes wait", func() bool { return e.waiting() == len(outcomes) })
	release()
	wg.Wait()
	for i, err := range outcomes {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("writer %d: %v, want ErrUnavailable", i, err)
		}
	}
	page, err := e.Query(t.Context(), store.Query{Table: store.Core, Partition: "p", Limit: 9})
	if err != nil || len(page.Items) != 0 {
		t.Errorf("rows = %v, %v, want none", page.Items, err)
	}
}

func TestAddKeepsRowsBounded(t *testing.T) {
	e := newEngine(t, Options{NoSync: true})
	item := store.Item{Key: store.Key{Table: store.Core, Partition: "p", Sort: "s"}, Format: 1}
	item.Data = make([]byte, store.MaxItemSize-item.Size())
	if err := e.Put(t.Context(), item, store.Absent()); err != nil {
		t.Fatal(err)
	}
	var err error
	n := 0
	for ; err == nil && n < 2000; n++ {
		_, err = e.Add(t.Context(), item.Key, fmt.Sprintf("%064d", n), 1, 0, time.Time{})
	}
	if !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("after %d counters: %v, want ErrTooLarge", n, err)
	}
}

func TestDamagedRowIsAnError(t *testing.T) {
	e := newEngine(t, Options{})
	key := store.Key{Table: store.Core, Partition: "p", Sort: "s"}
	err := e.queue.do(t.Context(), 0, func(tb *tables) error {
		tb.must(tb.tx.Bucket(coreBucket).Put(appendKey(nil, "p", "s"), []byte("\x01short")))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, get := e.Get(t.Context(), key)
	_, query := e.Query(t.Context(), store.Query{Table: store.Core, Partition: "p", Limit: 1})
	put := e.Put(t.Context(), store.Item{Key: key, Format: 1}, store.Absent())
	for name, err := range map[string]error{"get": get, "query": query, "put": put} {
		if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v, want an error of its own", name, err)
		}
	}
}

func FuzzRow(f *testing.F) {
	f.Add([]byte{})
	f.Add(row{format: 1, revision: 9, expires: 5, counters: map[string]int64{"n": -1, "m": 7}, data: []byte("x")}.append(nil))
	f.Add(row{format: 255}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRow(b)
		if err != nil {
			return
		}
		again, err := parseRow(r.append(nil))
		if err != nil {
			t.Fatalf("printed row does not parse: %v", err)
		}
		if again.format != r.format || again.revision != r.revision || again.expires != r.expires ||
			string(again.data) != string(r.data) || len(again.counters) != len(r.counters) {
			t.Fatalf("%+v became %+v", r, again)
		}
	})
}

func BenchmarkWriteAlone(b *testing.B) {
	e := newEngine(b, Options{})
	for i := 0; b.Loop(); i++ {
		if err := e.Transact(b.Context(), put(fmt.Sprint(i), store.Absent())); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite64(b *testing.B) {
	e := newEngine(b, Options{})
	var n sync.Map
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		id := new(int)
		n.Store(id, true)
		for pb.Next() {
			*id++
			if err := e.Transact(context.Background(), put(fmt.Sprintf("%p.%d", id, *id), store.Absent())); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkGet(b *testing.B) {
	e := newEngine(b, Options{})
	if err := e.Transact(b.Context(), put("a", store.Absent())); err != nil {
		b.Fatal(err)
	}
	key := store.Key{Table: store.Core, Partition: "p", Sort: "a"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Get(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
}

// The file outlives the program: these bytes may only change together with layout or rowLayout.
func TestLayout(t *testing.T) {
	r := row{format: 2, revision: 3, expires: 4, counters: map[string]int64{"b": -1, "a": 300}, data: []byte("data")}
	const wantRow = "\x01\x02" + "\x00\x00\x00\x00\x00\x00\x00\x03" + "\x00\x00\x00\x00\x00\x00\x00\x04" + "\x02" + "\x01a\xd8\x04" + "\x01b\x01" + "data"
	if got := string(r.append(nil)); got != wantRow {
		t.Errorf("row = %q, want %q", got, wantRow)
	}
	key := appendKey(nil, "part", "sort")
	if want := "\x00\x04partsort"; string(key) != want {
		t.Errorf("key = %q, want %q", key, want)
	}
	if got, want := string(appendExpiry(nil, 5, store.Ephemeral, key)), "\x00\x00\x00\x00\x00\x00\x00\x05\x02\x00\x04partsort"; got != want {
		t.Errorf("expiry key = %q, want %q", got, want)
	}
}
