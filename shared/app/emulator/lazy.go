package emulator

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/blob/dir"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

var (
	_ store.Engine  = rows{}
	_ blob.Store    = (*Blobs)(nil)
	_ blob.Uploader = (*Blobs)(nil)
)

// rows is the engine of a world that the first call makes.
type rows struct{ e *Emulation }

func (r rows) engine(ctx context.Context) (*embedded.Engine, error) {
	w, err := r.e.World(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return w.engine, nil
}

// Get implements store.Engine.
func (r rows) Get(ctx context.Context, key store.Key) (store.Item, error) {
	e, err := r.engine(ctx)
	if err != nil {
		return store.Item{}, err
	}
	return e.Get(ctx, key)
}

// Put implements store.Engine.
func (r rows) Put(ctx context.Context, item store.Item, cond store.Condition) error {
	e, err := r.engine(ctx)
	if err != nil {
		return err
	}
	return e.Put(ctx, item, cond)
}

// Delete implements store.Engine.
func (r rows) Delete(ctx context.Context, key store.Key, cond store.Condition) error {
	e, err := r.engine(ctx)
	if err != nil {
		return err
	}
	return e.Delete(ctx, key, cond)
}

// Query implements store.Engine.
func (r rows) Query(ctx context.Context, q store.Query) (store.Page, error) {
	e, err := r.engine(ctx)
	if err != nil {
		return store.Page{}, err
	}
	return e.Query(ctx, q)
}

// Transact implements store.Engine.
func (r rows) Transact(ctx context.Context, ops ...store.Op) error {
	e, err := r.engine(ctx)
	if err != nil {
		return err
	}
	return e.Transact(ctx, ops...)
}

// Add implements store.Engine.
func (r rows) Add(ctx context.Context, key store.Key, field string, delta, max int64, expires time.Time) (int64, error) {
	e, err := r.engine(ctx)
	if err != nil {
		return 0, err
	}
	return e.Add(ctx, key, field, delta, max, expires)
}

// Blobs is the blobs of a world that the first call makes.
type Blobs struct{ e *Emulation }

func (b *Blobs) world(ctx context.Context) (*World, error) {
	w, err := b.e.World(ctx)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", blob.ErrUnavailable, err)
	}
	return w, err
}

// Put implements blob.Store.
func (b *Blobs) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	w, err := b.world(ctx)
	if err != nil {
		return err
	}
	return w.Blobs.Put(ctx, key, r, size)
}

// Get implements blob.Store.
func (b *Blobs) Get(ctx context.Context, key string, max int64) ([]byte, error) {
	w, err := b.world(ctx)
	if err != nil {
		return nil, err
	}
	return w.Blobs.Get(ctx, key, max)
}

// Open implements blob.Store.
func (b *Blobs) Open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	w, err := b.world(ctx)
	if err != nil {
		return nil, 0, err
	}
	return w.Blobs.Open(ctx, key)
}

// Delete implements blob.Store.
func (b *Blobs) Delete(ctx context.Context, key string) error {
	w, err := b.world(ctx)
	if err != nil {
		return err
	}
	return w.Blobs.Delete(ctx, key)
}

// SignedURL implements blob.Store.
func (b *Blobs) SignedURL(ctx context.Context, key string, o blob.DownloadOptions) (string, time.Time, error) {
	w, err := b.world(ctx)
	if err != nil {
		return "", time.Time{}, err
	}
	return w.Blobs.SignedURL(ctx, key, o)
}

// UploadURL implements blob.Uploader.
func (b *Blobs) UploadURL(ctx context.Context, key string, o blob.UploadOptions) (blob.UploadLink, error) {
	w, err := b.world(ctx)
	if err != nil {
		return blob.UploadLink{}, err
	}
	return w.Blobs.UploadURL(ctx, key, o)
}

// Handler answers the links of SignedURL.
func (b *Blobs) Handler() http.Handler { return b.served((*dir.Store).Handler) }

// TakeHandler takes what is put by the links of UploadURL.
func (b *Blobs) TakeHandler() http.Handler { return b.served((*dir.Store).TakeHandler) }

// served answers by links. They are sealed under a secret of this process, by a world: before there is one no link is valid.
func (b *Blobs) served(handler func(*dir.Store) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if made := b.e.world.Load(); made != nil {
			handler(made.Blobs).ServeHTTP(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "not found", http.StatusNotFound)
	})
}
