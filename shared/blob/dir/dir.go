// Package dir is blob.Store in a directory, for the local process: one file for each blob, named by the hash of its key, so
// that no key can name a path, be another's folder or be too long. Links are sealed text that Handler answers. One process
// owns the directory at a time (the embedded store's lock sees to it). It knows nothing of what the bytes are.
package dir

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/seal"
)

var (
	_ blob.Store    = (*Store)(nil)
	_ blob.Uploader = (*Store)(nil)
)

// Options are the settings of Open. Without Keys and BaseURL there are no links.
type Options struct {
	BaseURL string           // origin under which Handler is served at /downloads/
	Keys    *seal.Keyring    // seals the links
	Clock   func() time.Time // the keyring's clock; time.Now if nil
	NoSync  bool             // leave writes to the operating system: for directories that are thrown away with their process
	Log     *slog.Logger     // why a link could not be served; nowhere if nil
}

// Store is an open directory. Its methods may be called by many goroutines at once.
type Store struct {
	temp, objects string
	base          string
	links         *seal.Sealer // nil without links
	puts          *seal.Sealer // nil without links
	clock         func() time.Time
	noSync        bool
	log           *slog.Logger
}

// Open opens or creates the directory, for its owner alone, and removes what a killed process left half written.
func Open(path string, opts Options) (*Store, error) {
	s := &Store{
		temp: filepath.Join(path, "tmp"), objects: filepath.Join(path, "objects"),
		base: strings.TrimSuffix(opts.BaseURL, "/"), clock: opts.Clock, noSync: opts.NoSync, log: opts.Log,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if opts.Keys != nil && s.base != "" {
		s.links, s.puts = opts.Keys.Purpose("blob/dir/download"), opts.Keys.Purpose("blob/dir/upload")
	}
	if err := os.RemoveAll(s.temp); err != nil {
		return nil, fmt.Errorf("clean blob directory %s: %w", path, err)
	}
	for _, d := range []string{path, s.temp, s.objects} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("make blob directory %s: %w", d, err)
		}
		if err := os.Chmod(d, 0o700); err != nil { //nolint:gosec // a directory needs x
			return nil, fmt.Errorf("restrict blob directory %s: %w", d, err)
		}
	}
	if err := s.probe(); err != nil {
		return nil, fmt.Errorf("blob directory %s: %w", path, err)
	}
	return s, errors.Join(s.syncDir(path), s.syncDir(filepath.Dir(path)))
}

// probe fails at the start, and not at the first mail, on a file system without hard links: they are what makes publishing a
// blob atomic and exclusive (a rename would replace the first blob by the second).
func (s *Store) probe() error {
	a, b := filepath.Join(s.temp, "probe"), filepath.Join(s.temp, "probe.link")
	if err := os.WriteFile(a, nil, 0o600); err != nil {
		return fmt.Errorf("write a file: %w", err)
	}
	if err := os.Link(a, b); err != nil {
		return fmt.Errorf("link a file: %w", err)
	}
	return errors.Join(os.Remove(a), os.Remove(b))
}

// path returns the file of a key, in one of 256 folders.
func (s *Store) path(key string) string {
	sum := sha256.Sum256([]byte(key))
	name := hex.EncodeToString(sum[:])
	return filepath.Join(s.objects, name[:2], name[2:])
}

// Put implements blob.Store: write a temporary file, sync it, link it to its name, sync the folder.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := blob.CheckPut(key, size); err != nil {
		return err
	}
	final := s.path(key)
	if _, err := os.Lstat(final); err == nil {
		// The one who put it may not have synced the folder yet, or have been killed before.
		return s.syncDir(filepath.Dir(final))
	}
	f, err := os.CreateTemp(s.temp, "put-") // 0600
	if err != nil {
		return unavailable("make a temporary file", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // what stays is removed by the next Open
	err = s.write(ctx, f, r, size)
	if cerr := f.Close(); err == nil && cerr != nil {
		err = unavailable("close", cerr)
	}
	if err != nil {
		return err
	}
	return s.publish(f.Name(), final)
}

// write copies exactly size bytes. A failure to write is ours, a failure to read is the caller's own error.
func (s *Store) write(ctx context.Context, f *os.File, r io.Reader, size int64) error {
	if err := s.copy(ctx, f, r, size); err != nil || s.noSync {
		return err
	}
	if err := f.Sync(); err != nil {
		return unavailable("sync", err)
	}
	return nil
}

func (s *Store) copy(ctx context.Context, f *os.File, r io.Reader, size int64) error {
	if held, ok := r.(*bytes.Reader); ok && int64(held.Len()) == size { // most mails and attachments: no copy, one call
		if _, err := held.WriteTo(f); err != nil {
			return unavailable("write", err)
		}
		return ctx.Err()
	}
	buf := make([]byte, min(size+1, 64<<10))
	for n := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		got, err := r.Read(buf)
		if n += int64(got); n > size {
			return blob.ErrSize
		}
		if _, werr := f.Write(buf[:got]); werr != nil {
			return unavailable("write", werr)
		}
		if errors.Is(err, io.EOF) && ctx.Err() == nil {
			if n < size {
				return blob.ErrSize
			}
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("read the blob to put: %w", err)
		}
	}
}

// publish gives a complete file its name, unless the name is taken.
func (s *Store) publish(temp, final string) error {
	folder := filepath.Dir(final)
	err := os.Link(temp, final)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return unavailable("make a folder", err)
		}
		if err := s.syncDir(s.objects); err != nil {
			return err
		}
		err = os.Link(temp, final)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return unavailable("publish", err)
	}
	return s.syncDir(folder)
}

// syncDir makes names in a folder survive a power cut.
func (s *Store) syncDir(path string) error {
	if s.noSync || runtime.GOOS == "windows" { // which can't sync directories
		return nil
	}
	d, err := os.Open(path) //nolint:gosec // our own folder
	if err != nil {
		return unavailable("open a folder", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return unavailable("sync a folder", err)
	}
	return nil
}

func unavailable(step string, err error) error {
	return fmt.Errorf("blob directory: %s: %w: %w", step, blob.ErrUnavailable, err)
}

// Open implements blob.Store.
func (s *Store) Open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	f, size, err := s.open(ctx, key)
	if err != nil {
		return nil, 0, err // a nil *os.File would be a ReadCloser that is not nil
	}
	return f, size, nil
}

func (s *Store) open(ctx context.Context, key string) (*os.File, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if err := blob.CheckKey(key); err != nil {
		return nil, 0, err
	}
	f, err := os.Open(s.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, blob.ErrNotFound
	}
	if err != nil {
		return nil, 0, unavailable("open", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(unavailable("stat", err), f.Close())
	}
	return f, info.Size(), nil
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, key string, max int64) ([]byte, error) {
	f, size, err := s.open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	if size > max {
		return nil, fmt.Errorf("%w: %d bytes, want at most %d", blob.ErrTooLarge, size, max)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, unavailable("read", err)
	}
	return b, nil
}

// Delete implements blob.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := blob.CheckKey(key); err != nil {
		return err
	}
	final := s.path(key)
	err := os.Remove(final)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unavailable("delete", err)
	}
	return s.syncDir(filepath.Dir(final)) // or a power cut could bring back what a person had erased
}
