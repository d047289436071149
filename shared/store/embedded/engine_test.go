package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
	"github.com/buzon-mail/buzon/shared/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T, clock func() time.Time) store.Engine {
		return open(t, filepath.Join(t.TempDir(), "store.db"), embedded.Options{Clock: clock})
	})
}

func open(t *testing.T, path string, opts embedded.Options) *embedded.Engine {
	t.Helper()
	e, err := embedded.Open(path, opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

func key(sort string) store.Key {
	return store.Key{Table: store.Core, Partition: "p", Sort: sort}
}

func item(sort, data string) store.Item {
	return store.Item{Key: key(sort), Format: 1, Data: []byte(data)}
}

func count(t *testing.T, e store.Engine, table store.Table, partition string) int {
	t.Helper()
	q, n := store.Query{Table: table, Partition: partition, Limit: store.MaxLimit}, 0
	for {
		page, err := e.Query(t.Context(), q)
		if err != nil {
			t.Fatalf("query: %v", err)
		}
		n += len(page.Items)
		if q.After = page.Next; q.After == "" {
			return n
		}
	}
}

func TestOpenRefusesASecondOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	first := open(t, path, embedded.Options{})
	began := time.Now()
	if _, err := embedded.Open(path, embedded.Options{}); !errors.Is(err, embedded.ErrLocked) {
		t.Fatalf("second open: %v, want ErrLocked", err)
	}
	if d := time.Since(began); d > 5*time.Second { // it would wait for ever
		t.Errorf("second open took %v", d)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path, embedded.Options{})
}

func TestOpenRefusals(t *testing.T) {
	dir := t.TempDir()
	noise := filepath.Join(dir, "noise")
	if err := os.WriteFile(noise, bytes.Repeat([]byte("mail"), 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(dir, "newer")
	db, err := bolt.Open(newer, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("meta"))
		if err != nil {
			return err
		}
		return b.Put([]byte("layout"), []byte{2})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"no directory": filepath.Join(dir, "no", "store"), "a directory": dir, "another file": noise} {
		if e, err := embedded.Open(path, embedded.Options{}); err == nil || e != nil {
			t.Errorf("%s: opened", name)
		}
	}
	if _, err := embedded.Open(newer, embedded.Options{}); !errors.Is(err, store.ErrFormat) {
		t.Errorf("newer layout: %v, want ErrFormat", err)
	}
}

func TestFileIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	for range 2 {
		e := open(t, path, embedded.Options{})
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode = %v, %v", info.Mode(), err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o644); err != nil { // as a careless copy would leave it
			t.Fatal(err)
		}
	}
}

func TestReopenKeepsEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	e := open(t, path, embedded.Options{})
	want := item("a", "data")
	want.Revision, want.Expires = 7, time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	if err := e.Put(t.Context(), want, store.Absent()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Add(t.Context(), want.Key, "n", -3, 0, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := open(t, path, embedded.Options{}).Get(t.Context(), want.Key)
	want.Counters = map[string]int64{"n": -3}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func TestClosed(t *testing.T) {
	e := open(t, filepath.Join(t.TempDir(), "store.db"), embedded.Options{})
	if err := errors.Join(e.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	_, get := e.Get(t.Context(), key("a"))
	_, query := e.Query(t.Context(), store.Query{Table: store.Core, Partition: "p", Limit: 1})
	_, add := e.Add(t.Context(), key("a"), "n", 1, 0, time.Time{})
	_, sweep := e.Sweep(t.Context(), 1)
	for name, err := range map[string]error{
		"get": get, "query": query, "add": add, "sweep": sweep,
		"put":    e.Put(t.Context(), item("a", ""), store.Condition{}),
		"backup": e.Backup(t.Context(), io.Discard),
	} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
}

// Close while writers are busy: each learns the truth about its own write.
func TestCloseFinishesWhatItAccepted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	e := open(t, path, embedded.Options{})
	var acked sync.Map
	var wg sync.WaitGroup
	started := make(chan struct{}, 64)
	for i := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				sort := fmt.Sprintf("%d.%d", i, n)
				err := e.Put(t.Context(), item(sort, ""), store.Absent())
				if err != nil {
					if !errors.Is(err, store.ErrUnavailable) {
						t.Errorf("put: %v", err)
					}
					return
				}
				acked.Store(sort, true)
				select {
				case started <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 32 {
		<-started
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	again := open(t, path, embedded.Options{})
	acked.Range(func(sort, _ any) bool {
		if _, err := again.Get(t.Context(), key(sort.(string))); err != nil {
			t.Errorf("acknowledged %s: %v", sort, err)
		}
		return true
	})
}

func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	e := open(t, path, embedded.Options{MaxBytes: 1 << 20})
	data := strings.Repeat("x", 100<<10)
	written := 0
	var err error
	for ; written < 100 && err == nil; written++ {
		err = e.Put(t.Context(), item(fmt.Sprint(written), data), store.Absent())
	}
	if !errors.Is(err, store.ErrUnavailable) || written < 2 {
		t.Fatalf("after %d writes: %v, want ErrUnavailable", written, err)
	}
	if got := count(t, e, store.Core, "p"); got != written-1 {
		t.Errorf("%d rows, want the %d that were acknowledged", got, written-1)
	}
	// Room that is freed is used: nothing is stuck.
	for i := range written - 1 {
		if err := e.Delete(t.Context(), key(fmt.Sprint(i)), store.Exists()); err != nil {
			t.Fatalf("delete on a full disk: %v", err)
		}
	}
	if err := e.Put(t.Context(), item("again", data), store.Absent()); err != nil {
		t.Errorf("put after making room: %v", err)
	}
}

func TestSweep(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	e := open(t, filepath.Join(t.TempDir(), "store.db"), embedded.Options{Clock: func() time.Time { return now }})
	put := func(table store.Table, sort string, expires time.Time) {
		t.Helper()
		i := item(sort, "x")
		i.Key.Table, i.Expires = table, expires
		if err := e.Put(t.Context(), i, store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		put(store.Core, fmt.Sprint(i), now.Add(time.Duration(i)*time.Second))
		put(store.Ephemeral, fmt.Sprint(i), now.Add(time.Duration(i)*time.Second))
	}
	put(store.Core, "never", time.Time{})
	put(store.Core, "moved", now.Add(time.Second))
	put(store.Core, "moved", now.Add(time.Hour))
	put(store.Core, "kept", now.Add(time.Second))
	put(store.Core, "kept", time.Time{})
	put(store.Core, "deleted", now.Add(time.Second))
	if err := e.Delete(t.Context(), key("deleted"), store.Exists()); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Second) // rows 0, 1, 2 of both tables are due
	for _, c := range []struct{ limit, want int }{{4, 4}, {4, 2}, {4, 0}} {
		if got, err := e.Sweep(t.Context(), c.limit); err != nil || got != c.want {
			t.Fatalf("Sweep(%d) = %d, %v, want %d", c.limit, got, err, c.want)
		}
	}
	now = now.Add(-time.Hour) // shows what was really removed
	if got := count(t, e, store.Core, "p"); got != 5 {
		t.Errorf("core has %d rows, want 3, 4, never, moved, kept", got)
	}
	if got := count(t, e, store.Ephemeral, "p"); got != 2 {
		t.Errorf("ephemeral has %d rows, want 3, 4", got)
	}
	for _, limit := range []int{-1, 0, store.MaxLimit + 1} {
		if _, err := e.Sweep(t.Context(), limit); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Sweep(%d): %v, want ErrInvalid", limit, err)
		}
	}
}

// A backup taken amid transactions that keep two rows equal holds two equal rows.
func TestBackupIsConsistent(t *testing.T) {
	dir := t.TempDir()
	e := open(t, filepath.Join(dir, "store.db"), embedded.Options{})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	first := make(chan struct{})
	wg.Go(func() {
		for n := uint64(1); ctx.Err() == nil; n++ {
			a, b := item("a", ""), item("b", "")
			a.Revision, b.Revision = n, n
			if err := e.Transact(ctx, store.Put(a, store.Condition{}), store.Put(b, store.Condition{})); err != nil && ctx.Err() == nil {
				t.Errorf("transact: %v", err)
			}
			if n == 1 {
				close(first)
			}
		}
	})
	<-first
	var copied bytes.Buffer
	err := e.Backup(t.Context(), &copied)
	stop()
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "copy.db")
	if err := os.WriteFile(path, copied.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	again := open(t, path, embedded.Options{})
	a, errA := again.Get(t.Context(), key("a"))
	b, errB := again.Get(t.Context(), key("b"))
	if err := errors.Join(errA, errB); err != nil || a.Revision == 0 || a.Revision != b.Revision {
		t.Errorf("copy holds revisions %d and %d, %v", a.Revision, b.Revision, err)
	}
	if err := e.Backup(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("backup with a done context: %v", err)
	}
}

// A damaged file is an error that says so, at Open; not a panic, nor a fault of memory that no one can catch.
func TestDamagedFile(t *testing.T) {
	sound := filepath.Join(t.TempDir(), "store")
	e, err := embedded.Open(sound, embedded.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		item := store.Item{Key: store.Key{Table: store.Core, Partition: "p", Sort: fmt.Sprint(i)}, Format: 1, Revision: 1, Data: make([]byte, 4096)}
		if err := e.Put(t.Context(), item, store.Absent()); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sound) //nolint:gosec // of this test
	if err != nil {
		t.Fatal(err)
	}
	noise := bytes.Repeat([]byte{0x5a, 0x17, 0xe3}, len(text))
	for name, damaged := range map[string][]byte{
		"cut to half":            text[:len(text)/2],
		"cut to the first pages": text[:16<<10],
		"cut in a page":          text[:len(text)/3+100],
		"noise behind the meta":  append(append([]byte{}, text[:8192]...), noise[8192:len(text)]...),
		"noise alone":            noise[:len(text)],
		"not a store":            []byte("garbage"),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store")
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			e, err := embedded.Open(path, embedded.Options{})
			if err == nil {
				_ = e.Close()
				t.Fatal("opened")
			}
		})
	}
}
