package api

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
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// emulation is the function with no AWS at all: an embedded store in a folder of its own, the sample world, and the
// development issuer, whose key is published and which no other mode accepts.
type emulation struct {
	folder string
	engine *embedded.Engine
	store  *inboxstore.Store
	blobs  *dir.Store
	seal   *seal.Keyring // the process and its clients end together, so one root serves for all
	keys   *oauth.KeyRing

	origin, issuer, audience string
}

func emulate(ctx context.Context, clock func() time.Time) (*emulation, error) {
	folder, err := os.MkdirTemp("", "buzon-emulator-")
	if err != nil {
		return nil, fmt.Errorf("make the temporary folder: %w", err)
	}
	e := &emulation{
		folder: folder, origin: oauth.DevelopmentOrigin, issuer: oauth.DevelopmentIssuer, audience: oauth.DevelopmentAudience,
	}
	if err := e.open(ctx, clock); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *emulation) open(ctx context.Context, clock func() time.Time) (err error) {
	var root [32]byte
	if _, err := rand.Read(root[:]); err != nil {
		return fmt.Errorf("random: %w", err)
	}
	if e.seal, err = seal.New([]seal.Root{{ID: "r1", Secret: root[:]}}, seal.Options{Clock: clock, Rand: rand.Reader}); err != nil {
		return err
	}
	set, err := oauth.DevelopmentKeys()
	if err != nil {
		return err
	}
	e.keys = oauth.StaticKeys(set, clock)
	if e.engine, err = embedded.Open(filepath.Join(e.folder, "store"), embedded.Options{Clock: clock, NoSync: true}); err != nil {
		return err
	}
	if e.store, err = inboxstore.New(e.engine, clock); err != nil {
		return err
	}
	e.blobs, err = dir.Open(filepath.Join(e.folder, "blobs"), dir.Options{BaseURL: e.origin, Keys: e.seal, Clock: clock, NoSync: true})
	if err != nil {
		return err
	}
	if err := demo.Seed(ctx, e.store); err != nil {
		return err
	}
	return demo.LoadMails(ctx, e.store, func(ctx context.Context, key string, text []byte) error {
		return e.blobs.Put(ctx, key, bytes.NewReader(text), int64(len(text)))
	}, clock())
}

// close removes the folder, for it is nobody else's.
func (e *emulation) close() error {
	var err error
	if e.engine != nil {
		err = e.engine.Close()
	}
	return errors.Join(err, os.RemoveAll(e.folder))
}
