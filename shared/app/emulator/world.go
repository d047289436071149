package emulator

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/buzon-mail/buzon/shared/blob/dir"
	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// World is the engines in their folder.
type World struct {
	Folder string // where everything lies, until Close
	Store  *inboxstore.Store
	Blobs  *dir.Store
	engine *embedded.Engine
}

func (w *World) open(ctx context.Context, e *Emulation) (err error) {
	if w.engine, err = embedded.Open(filepath.Join(w.Folder, "store"), embedded.Options{Clock: e.clock, NoSync: true}); err != nil {
		return err
	}
	w.Blobs, err = dir.Open(filepath.Join(w.Folder, "blobs"), dir.Options{BaseURL: e.Origin, Keys: e.Seal, Clock: e.clock, NoSync: true})
	if err != nil {
		return err
	}
	err = w.engine.Fill(ctx, func(rows store.Engine) error { return w.load(ctx, e, rows) })
	if err != nil {
		return err
	}
	w.Store, err = inboxstore.New(w.engine, e.clock)
	return err
}

// load writes the sample world and what the function adds; meanwhile w.Store is within their transaction.
func (w *World) load(ctx context.Context, e *Emulation, rows store.Engine) (err error) {
	if w.Store, err = inboxstore.New(rows, e.clock); err != nil {
		return err
	}
	if err := demo.Seed(ctx, w.Store); err != nil {
		return err
	}
	if err := demo.LoadMails(ctx, w.Store, w.Put, e.start); err != nil || e.fill == nil {
		return err
	}
	return e.fill(ctx, w)
}

// Put stores a blob.
func (w *World) Put(ctx context.Context, key string, text []byte) error {
	return w.Blobs.Put(ctx, key, bytes.NewReader(text), int64(len(text)))
}

func (w *World) close() error {
	var err error
	if w.engine != nil {
		err = w.engine.Close()
	}
	return errors.Join(err, os.RemoveAll(w.Folder))
}
