// Command bareapi is the api function without its emulation: the whole HTTP side behind the whole edge, over an engine that
// is empty, so that starting it opens no file and loads no sample mails. What it does not link is an engine: neither the
// embedded one nor AWS's.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/buzon-mail/buzon/shared/app/jsonlog"
	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/config"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store"
)

const origin = "https://bench.test"

// empty is a store with nothing in it.
type empty struct{ store.Engine }

// Get finds nothing.
func (empty) Get(context.Context, store.Key) (store.Item, error) {
	return store.Item{}, store.ErrNotFound
}

// nowhere has no blobs and no downloads.
type nowhere struct{}

// Open finds nothing.
func (nowhere) Open(context.Context, string) (io.ReadCloser, error) { return nil, store.ErrNotFound }

// SignedURL has nothing to sign.
func (nowhere) SignedURL(context.Context, inbox.Attachment, time.Duration) (string, time.Time, error) {
	return "", time.Time{}, store.ErrNotFound
}

func main() {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "bareapi:", err)
		os.Exit(1)
	}
}

func start() error {
	cfg, err := config.LoadAPI(os.Getenv)
	if err != nil {
		return err
	}
	rows, err := inboxstore.New(empty{}, time.Now)
	if err != nil {
		return err
	}
	ring, err := seal.New([]seal.Root{{ID: "r1", Secret: make([]byte, 32)}}, seal.Options{Clock: time.Now, Rand: rand.Reader})
	if err != nil {
		return err
	}
	set, err := oauth.NewKeySet(rand.Reader, time.Now())
	if err != nil {
		return err
	}
	log := jsonlog.New(os.Stderr)
	handler, err := web.New(web.Deps{
		Store: rows, Blobs: nowhere{}, Downloads: nowhere{}, Engine: empty{}, Seal: ring, Permanent: ring, Keys: oauth.StaticKeys(set, time.Now), Logger: log,
		Clock: time.Now, Random: rand.Reader,
	}, web.Options{Origin: origin, PerMinute: cfg.Rates.PerMinute, OutwardMinute: cfg.Rates.OutwardPerMinute, Version: "bench"})
	if err != nil {
		return err
	}
	lambdaedge.Start(lambdaedge.New(handler, lambdaedge.Options{Logger: log}))
	return nil
}
