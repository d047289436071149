// Package emulator is what stands behind an emulated Lambda function: no AWS at all, an embedded store in a fresh temporary
// folder, the sample world, and the development issuer, whose key is published and which no other mode accepts. The functions
// share it, each with a folder of its own.
package emulator

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/buzon-mail/buzon/shared/blob/dir"
	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/queue/embedded"
	"github.com/buzon-mail/buzon/shared/seal"
	store "github.com/buzon-mail/buzon/shared/store/embedded"
)

// Emulation is the engines and the identity of an emulated function.
type Emulation struct {
	Store *inboxstore.Store
	Blobs *dir.Store
	Queue *embedded.Queue
	Seal  *seal.Keyring
	Keys  *oauth.KeyRing

	Origin, Issuer, Audience string

	folder string
	Engine *store.Engine
}

// Open makes the folder and fills it.
func Open(ctx context.Context, clock func() time.Time) (*Emulation, error) {
	folder, err := os.MkdirTemp("", "buzon-emulator-")
	if err != nil {
		return nil, fmt.Errorf("make the temporary folder: %w", err)
	}
	e := &Emulation{
		folder: folder, Origin: oauth.DevelopmentOrigin, Issuer: oauth.DevelopmentIssuer, Audience: oauth.DevelopmentAudience,
	}
	if err := e.open(ctx, clock); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Emulation) open(ctx context.Context, clock func() time.Time) (err error) {
	var root [32]byte
	if _, err := rand.Read(root[:]); err != nil {
		return fmt.Errorf("random: %w", err)
	}
	if e.Seal, err = seal.New([]seal.Root{{ID: "r1", Secret: root[:]}}, seal.Options{Clock: clock, Rand: rand.Reader}); err != nil {
		return err
	}
	set, err := oauth.DevelopmentKeys()
	if err != nil {
		return err
	}
	e.Keys = oauth.StaticKeys(set, clock)
	if e.Engine, err = store.Open(filepath.Join(e.folder, "store"), store.Options{Clock: clock, NoSync: true}); err != nil {
		return err
	}
	if e.Store, err = inboxstore.New(e.Engine, clock); err != nil {
		return err
	}
	if e.Queue, err = embedded.New(e.Engine, "mail", embedded.Options{Clock: clock}); err != nil {
		return err
	}
	e.Blobs, err = dir.Open(filepath.Join(e.folder, "blobs"), dir.Options{BaseURL: e.Origin, Keys: e.Seal, Clock: clock, NoSync: true})
	if err != nil {
		return err
	}
	if err := demo.Seed(ctx, e.Store); err != nil {
		return err
	}
	return demo.LoadMails(ctx, e.Store, e.Put, clock())
}

// Put stores a blob.
func (e *Emulation) Put(ctx context.Context, key string, text []byte) error {
	return e.Blobs.Put(ctx, key, bytes.NewReader(text), int64(len(text)))
}

// Folder is where everything lies, until Close.
func (e *Emulation) Folder() string { return e.folder }

// Close removes the folder, for it is nobody else's.
func (e *Emulation) Close() error {
	var err error
	if e.Engine != nil {
		err = e.Engine.Close()
	}
	return errors.Join(err, os.RemoveAll(e.folder))
}
