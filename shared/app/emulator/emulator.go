// Package emulator is what stands behind an emulated Lambda function: no AWS at all, an embedded store in a fresh temporary
// folder, the sample world, and the development issuer, whose key is published and which no other mode accepts. The functions
// share it, each with a folder of its own. As on AWS a start asks nothing of what keeps the rows: the folder is made, and the
// sample world loaded, with the first call that needs a row or a blob.
package emulator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/queue/embedded"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store"
)

// Emulation is the engines and the identity of an emulated function. Its methods may be called by many goroutines at once.
type Emulation struct {
	Store  *inboxstore.Store
	Engine store.Engine
	Blobs  *Blobs
	Queue  *embedded.Queue
	Seal   *seal.Keyring
	Keys   *oauth.KeyRing

	Origin, Issuer, Audience string

	clock func() time.Time
	start time.Time // that the age of the sample mails counts from
	fill  func(ctx context.Context, w *World) error

	world  atomic.Pointer[World] // nil until somebody needed it
	mu     sync.Mutex            // held while the world is made, so that a burst makes it once; guards closed
	closed bool
}

// Options are the settings of New; the zero value works.
type Options struct {
	// Fill adds what one function needs beside the sample world. It may run again, on a fresh World, where it failed.
	Fill func(ctx context.Context, w *World) error
}

// New makes an emulation that has no folder yet.
func New(clock func() time.Time, o Options) (*Emulation, error) {
	e := &Emulation{
		Origin: oauth.DevelopmentOrigin, Issuer: oauth.DevelopmentIssuer, Audience: oauth.DevelopmentAudience,
		clock: clock, start: clock(), fill: o.Fill,
	}
	var root [32]byte
	if _, err := rand.Read(root[:]); err != nil {
		return nil, fmt.Errorf("random: %w", err)
	}
	var err error
	if e.Seal, err = seal.New([]seal.Root{{ID: "r1", Secret: root[:]}}, seal.Options{Clock: clock, Rand: rand.Reader}); err != nil {
		return nil, err
	}
	set, err := oauth.DevelopmentKeys()
	if err != nil {
		return nil, err
	}
	e.Keys, e.Engine, e.Blobs = oauth.StaticKeys(set, clock), rows{e}, &Blobs{e}
	if e.Store, err = inboxstore.New(e.Engine, clock); err != nil {
		return nil, err
	}
	if e.Queue, err = embedded.New(e.Engine, "mail", embedded.Options{Clock: clock}); err != nil {
		return nil, err
	}
	return e, nil
}

var errClosed = errors.New("the emulation is closed")

// World is what lies in the folder, made where it is not there yet. A failure is the answer of this call alone and leaves no
// folder behind: the next call tries again.
func (e *Emulation) World(ctx context.Context) (*World, error) {
	if w := e.world.Load(); w != nil {
		return w, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.world.Load(); w != nil {
		return w, nil
	}
	if e.closed {
		return nil, refused(errClosed)
	}
	w, err := e.make(context.WithoutCancel(ctx)) // others wait for it: it does not end with the caller who came first
	if err != nil {
		return nil, refused(err)
	}
	e.world.Store(w)
	return w, nil
}

// refused says to whoever runs the function what to do; the cause is for its log.
func refused(err error) error {
	e := apperr.New(apperr.Unavailable, "", "The emulated function can't make its store.",
		"Give it a temporary folder (TMPDIR) that it may write to, with some megabytes free; its log says what failed.",
		"Send the request again: each one tries anew.")
	e.RetryAfter = time.Second
	return e.Because(err)
}

// Close removes the folder, if there is one, for it is nobody else's.
func (e *Emulation) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	w := e.world.Load()
	if w == nil {
		return nil
	}
	return w.close()
}

// make makes the folder and fills it, or leaves nothing.
func (e *Emulation) make(ctx context.Context) (*World, error) {
	folder, err := os.MkdirTemp("", "buzon-emulator-")
	if err != nil {
		return nil, fmt.Errorf("make the temporary folder: %w", err)
	}
	w := &World{Folder: folder}
	if err := w.open(ctx, e); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}
