// Package embedded is store.Engine in one bbolt file, for the local process and for emulation. Concurrent writers share an
// fsync (commit.go), rows are found by one ordered key (row.go), and rows whose time has come are swept by an index on
// expiry (sweep.go). One process owns the file at a time. It knows nothing of what the rows mean.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/buzon-mail/buzon/shared/store"
)

// ErrLocked is returned by Open when another process has the file open.
var ErrLocked = errors.New("embedded: another process has the store open")

var _ store.Engine = (*Engine)(nil)

// layout is the version of buckets, keys and values in the file.
const layout = 1

const (
	growBy = 4 << 20 // bytes the file grows by: each step costs a truncate and an fsync
	// mapSize is address space, not memory. While the file is smaller, growing it needs no new mapping, and so no writer
	// waits for a long read such as a backup.
	mapSize = 1 << 30
)

// Options are the settings of Open; the zero value works.
type Options struct {
	// Clock tells when rows expire; time.Now if nil.
	Clock func() time.Time
	// MaxBytes bounds the file; writes beyond it are store.ErrUnavailable. 0 is no bound but the disk's.
	MaxBytes int
	// NoSync leaves writes to the operating system: for stores that are thrown away with their process. A crash of the
	// machine, though not of the process, can then destroy the file.
	NoSync bool
}

// Engine is an open file. Its methods may be called by many goroutines at once.
type Engine struct {
	db    *bolt.DB
	clock func() time.Time
	queue committer
	close sync.Once
	shut  error // what Close returned; set once
}

// Open opens or creates the file, readable by its owner alone. The directory must exist. It fails at once, with ErrLocked,
// when another process has the file.
func Open(path string, opts Options) (*Engine, error) {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	_, statErr := os.Stat(path)
	bo := &bolt.Options{
		Timeout:      time.Nanosecond, // zero would wait for ever; less than bbolt's retry interval is one attempt
		FreelistType: bolt.FreelistMapType,
		NoStatistics: true,
		NoSync:       opts.NoSync,
		MaxSize:      opts.MaxBytes,
	}
	if opts.MaxBytes == 0 && strconv.IntSize == 64 && runtime.GOOS != "windows" { // windows would make the file that long
		bo.InitialMmapSize = mapSize
	}
	db, err := openFile(path, bo)
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("open %s: %w", path, ErrLocked)
	}
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	db.AllocSize = growBy
	e := &Engine{db: db, clock: opts.Clock}
	if err := e.prepare(path, os.IsNotExist(statErr) && !opts.NoSync); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	e.queue.start(e)
	return e, nil
}

// ErrDamaged is returned by Open for a file that is not whole: cut short, or overwritten by something else.
var ErrDamaged = errors.New("embedded: the store's file is damaged; restore it from a backup")

// openFile opens the file and reads what bbolt reads of it at first. bbolt trusts a file that it can open: of a damaged one it
// panics, and what lies behind the end of one that was cut short is a fault of memory, which without SetPanicOnFault ends the
// process with a dump of all its stacks.
func openFile(path string, bo *bolt.Options) (db *bolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	if db, err = bolt.Open(path, 0o600, bo); err != nil {
		return nil, err //nolint:wrapcheck // Open says what was opened
	}
	if err := whole(db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// whole reports a file that is shorter than the pages its newest state counts, and reads the pages that everything hangs on.
func whole(db *bolt.DB) error {
	return db.View(func(tx *bolt.Tx) error { //nolint:wrapcheck // our own
		info, err := os.Stat(db.Path())
		if err != nil {
			return fmt.Errorf("look at the file: %w", err)
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("%w: %d bytes of %d", ErrDamaged, info.Size(), tx.Size())
		}
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
			b.Cursor().First()
			return nil
		})
	})
}

// prepare makes the buckets and checks that this program understands the file. keep: its name is new and must survive a power cut.
func (e *Engine) prepare(path string, keep bool) error {
	// A file copied from elsewhere may be readable by others, and it holds everyone's mail.
	if err := os.Chmod(path, 0o600); err != nil {
		return fmt.Errorf("restrict store %s: %w", path, err)
	}
	err := e.db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{coreBucket, ephemeralBucket, expiryBucket} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return fmt.Errorf("make bucket %s: %w", name, err)
			}
		}
		meta, err := tx.CreateBucketIfNotExists(metaBucket)
		if err != nil {
			return fmt.Errorf("make bucket %s: %w", metaBucket, err)
		}
		found := meta.Get(layoutKey)
		if found == nil {
			return meta.Put(layoutKey, []byte{layout})
		}
		if len(found) != 1 || found[0] > layout {
			return fmt.Errorf("%w: layout %x, this program knows %d", store.ErrFormat, found, layout)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("prepare store %s: %w", path, err)
	}
	if keep {
		return syncDir(filepath.Dir(path))
	}
	return nil
}

// syncDir makes a new file's name survive a power cut; bbolt syncs only the file.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the operator chose the path
	if err != nil {
		return fmt.Errorf("open directory %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil && runtime.GOOS != "windows" { // which can't sync directories
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// Close finishes the writes it has accepted, waits for readers and releases the file. Calls after it are
// store.ErrUnavailable.
func (e *Engine) Close() error {
	e.close.Do(func() {
		e.queue.stop()
		if err := e.db.Close(); err != nil {
			e.shut = fmt.Errorf("close store: %w", err)
		}
	})
	return e.shut
}

// unavailable translates what bbolt or the disk said.
func unavailable(step string, err error) error {
	return fmt.Errorf("embedded: %s: %w: %w", step, store.ErrUnavailable, err)
}

// Get implements store.Engine.
func (e *Engine) Get(ctx context.Context, key store.Key) (store.Item, error) {
	if err := ctx.Err(); err != nil {
		return store.Item{}, err
	}
	if err := key.Validate(); err != nil {
		return store.Item{}, err
	}
	tx, err := e.db.Begin(false)
	if err != nil {
		return store.Item{}, unavailable("read", err)
	}
	defer tx.Rollback() //nolint:errcheck // ends a read; it can't fail
	var buf [keyRoom]byte
	value := tx.Bucket(bucketOf(key.Table)).Get(appendKey(buf[:0], key.Partition, key.Sort))
	if value == nil {
		return store.Item{}, store.ErrNotFound
	}
	row, err := parseRow(value)
	if err != nil {
		return store.Item{}, err
	}
	if store.Expired(row.expires, e.clock().Unix()) {
		return store.Item{}, store.ErrNotFound
	}
	row.data = append([]byte(nil), row.data...)
	return row.item(key), nil
}

// Put implements store.Engine.
func (e *Engine) Put(ctx context.Context, item store.Item, cond store.Condition) error {
	return e.Transact(ctx, store.Put(item, cond))
}

// Delete implements store.Engine.
func (e *Engine) Delete(ctx context.Context, key store.Key, cond store.Condition) error {
	return e.Transact(ctx, store.Delete(key, cond))
}

// Transact implements store.Engine.
func (e *Engine) Transact(ctx context.Context, ops ...store.Op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := store.ValidateOps(ops); err != nil {
		return err
	}
	size := 0
	for i := range ops {
		item := ops[i].Item()
		size += item.Size()
	}
	return e.queue.do(ctx, size, func(t *tables) error { return t.transact(ops) })
}

// Add implements store.Engine.
func (e *Engine) Add(ctx context.Context, key store.Key, field string, delta, max int64, expires time.Time) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := store.ValidateAdd(key, field, max, expires); err != nil {
		return 0, err
	}
	var sum int64
	err := e.queue.do(ctx, len(key.Partition)+len(key.Sort), func(t *tables) (err error) {
		sum, err = t.add(key, field, delta, max, store.Seconds(expires))
		return err
	})
	if err != nil && !errors.Is(err, store.ErrLimit) {
		return 0, err
	}
	return sum, err
}
