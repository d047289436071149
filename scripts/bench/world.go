package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/buzon-mail/buzon/shared/app/jsonlog"
	"github.com/buzon-mail/buzon/shared/app/web"
	"github.com/buzon-mail/buzon/shared/blob/dir"
	"github.com/buzon-mail/buzon/shared/demo"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

const origin = "https://bench.test"

// perMinute is the highest limit there is. The clock below keeps under it.
const perMinute = 65535

// ticking is a clock that runs a millisecond faster with every look: at full speed a benchmark would be over any rate
// limit, and with the limiter off it would not measure the product.
func ticking() func() time.Time {
	var looks atomic.Int64
	return func() time.Time { return time.Now().Add(time.Duration(looks.Add(1)) * time.Millisecond) }
}

// counted counts what a call asks of the store.
type counted struct {
	store.Engine
	reads atomic.Int64
}

// Get counts.
func (c *counted) Get(ctx context.Context, k store.Key) (store.Item, error) {
	c.reads.Add(1)
	return c.Engine.Get(ctx, k)
}

// Query counts.
func (c *counted) Query(ctx context.Context, q store.Query) (store.Page, error) {
	c.reads.Add(1)
	return c.Engine.Query(ctx, q)
}

// world is the complete product over the embedded engine, in a folder that is thrown away.
type world struct {
	folder string
	engine *embedded.Engine
	reads  *counted
	store  *inboxstore.Store
	api    *web.API
	keys   *oauth.KeyRing
	clock  func() time.Time
	token  string // of the demo's first owner, with every scope
	box    inbox.Inbox
	mails  int
	start  time.Time // when the first of them came; one a second followed
	one    string    // id of a mail with a body of 2.5 KB
}

func newWorld(ctx context.Context, mails int) (w *world, err error) {
	w = &world{clock: ticking()}
	if w.folder, err = os.MkdirTemp("", "buzon-bench-"); err != nil {
		return nil, err
	}
	if err := w.open(); err != nil {
		return nil, err
	}
	if err := demo.Seed(ctx, w.store); err != nil {
		return nil, err
	}
	acme := demo.World()[0]
	w.box = acme.Inboxes[0]
	if err := w.fill(ctx, mails); err != nil {
		return nil, err
	}
	if w.one, err = w.deliver(ctx); err != nil {
		return nil, err
	}
	vocabulary, err := inboxops.Vocabulary()
	if err != nil {
		return nil, err
	}
	w.token, err = w.api.Issuer.Mint(ctx, oauth.Claims{
		Subject: acme.Members[0].User, ClientID: web.CommandLine, Grant: "grant_01KDT00000000000000000BENCH", Organization: acme.Org.ID,
		Workspace: acme.Workspaces[0].ID, Scope: strings.Join(vocabulary.Names(^op.ScopeSet(0)), " "),
	}, oauth.MaxLifetime)
	return w, err
}

func (w *world) open() (err error) {
	if w.engine, err = embedded.Open(filepath.Join(w.folder, "store"), embedded.Options{Clock: w.clock, NoSync: true}); err != nil {
		return err
	}
	w.reads = &counted{Engine: w.engine}
	if w.store, err = inboxstore.New(w.reads, w.clock); err != nil {
		return err
	}
	var root [32]byte
	if _, err := rand.Read(root[:]); err != nil {
		return err
	}
	ring, err := seal.New([]seal.Root{{ID: "r1", Secret: root[:]}}, seal.Options{Clock: w.clock, Rand: rand.Reader})
	if err != nil {
		return err
	}
	set, err := oauth.NewKeySet(rand.Reader, w.clock())
	if err != nil {
		return err
	}
	w.keys = oauth.StaticKeys(set, w.clock)
	blobs, err := dir.Open(filepath.Join(w.folder, "blobs"), dir.Options{BaseURL: origin, Keys: ring, Clock: w.clock, NoSync: true})
	if err != nil {
		return err
	}
	w.api, err = web.New(web.Deps{
		Store: w.store, Blobs: web.Blobs{Opener: blobs}, Downloads: web.Downloads{Signer: blobs}, Serve: blobs.Handler(),
		Engine: w.reads, Seal: ring, Permanent: ring, Keys: w.keys, Logger: jsonlog.New(io.Discard), Clock: w.clock, Random: rand.Reader,
	}, web.Options{Origin: origin, PerMinute: perMinute, OutwardMinute: perMinute, Version: "bench"})
	return err
}

func (w *world) close() error {
	err := w.engine.Close()
	if gone := os.RemoveAll(w.folder); err == nil {
		err = gone
	}
	return err
}

// perCommit mails of seven rows each fit one transaction.
const perCommit = 7

// fill stores mails as they stand once processed. The rows of lists are the pipeline's own; the work of the pipeline is
// another benchmark's.
func (w *world) fill(ctx context.Context, n int) error {
	work := make(chan []inbox.Email)
	failures := make(chan error, 64)
	var all sync.WaitGroup
	for range cap(failures) {
		all.Go(func() {
			for mails := range work {
				if err := w.store.FanOut(ctx, inbox.Intake{ID: "intake_" + mails[0].ID[len("email_"):]}, mails); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	defer func() { close(work); all.Wait() }()
	w.start = time.Now().Add(-time.Duration(n+1000) * time.Second)
	for at := 0; at < n; at += perCommit {
		mails := make([]inbox.Email, 0, perCommit)
		for i := at; i < min(at+perCommit, n); i++ {
			e, err := w.mail(w.start.Add(time.Duration(i)*time.Second), i)
			if err != nil {
				return err
			}
			mails = append(mails, e)
		}
		select {
		case work <- mails:
		case err := <-failures:
			return fmt.Errorf("fill: %w", err)
		}
	}
	w.mails = n
	return nil
}

func (w *world) mail(at time.Time, i int) (inbox.Email, error) {
	id, err := inbox.NewID("email", at, rand.Reader)
	if err != nil {
		return inbox.Email{}, err
	}
	sum := sha256.Sum256([]byte(id))
	return inbox.Email{
		ID: id, Organization: w.box.Organization, Workspace: w.box.Workspace, Inbox: w.box.ID, Thread: "thread" + id[len("email"):],
		Status: inbox.StatusProcessed, ReceivedAt: at, ProcessedAt: at, UpdatedAt: at, Size: 20480, Version: 1,
		RawSHA256: hex.EncodeToString(sum[:]), RawKey: "raw/" + id, Labels: []string{"ventas"}, Flags: []string{"list"},
		Envelope: inbox.Envelope{From: "lucia@cliente.example", To: w.box.Address, RemoteIP: "192.0.2.25"},
		Content: inbox.Content{
			Subject: fmt.Sprintf("Pedido número %d: cuatro sillas y una mesa", i), MessageID: "<" + id + "@cliente.example>",
			From: []inbox.Address{{Name: "Lucía Gómez", Address: "lucia@cliente.example"}}, To: []inbox.Address{{Address: w.box.Address}},
			Date: at, Snippet: strings.Repeat("Necesitamos cuatro sillas para el lunes por la tarde. ", 3),
		},
	}, nil
}

// deliver takes one mail through the steps of the pipeline's storage, with a body.
func (w *world) deliver(ctx context.Context) (string, error) {
	e, err := w.mail(time.Now(), w.mails)
	if err != nil {
		return "", err
	}
	e.Status, e.Thread = inbox.StatusReceived, ""
	if err := w.store.FanOut(ctx, inbox.Intake{ID: "intake_" + e.ID[len("email_"):]}, []inbox.Email{e}); err != nil {
		return "", err
	}
	if e, err = w.store.ClaimMail(ctx, e.ID); err != nil {
		return "", err
	}
	e.Status = inbox.StatusProcessed
	text := strings.Repeat("Necesitamos cuatro sillas y una mesa para el lunes.\n", 48) // 2.5 KB
	return e.ID, w.store.Finish(ctx, inbox.Processed{
		Email: e, Body: &inbox.Body{Text: text, ReplyText: text, Markdown: text, HTML: "<p>" + text + "</p>", Headers: []inbox.Header{{Name: "Subject", Value: "Pedido"}}},
	}, "")
}

// calls are the requests of the table, by name.
func (w *world) calls() map[string]request {
	call := func(version, name, arguments string) request {
		return request{version: version, method: "tools/call", name: name, arguments: arguments, token: w.token}
	}
	list := `{"inbox":"` + w.box.Slug + `","status":"processed","has_attachment":false,"handled":false,"limit":20}`
	return map[string]request{
		"echo":        call(stateless, "echo_send", `{"text":"hello there, how are you"}`),
		"session_get": call(stateless, "session_get", `{}`), "session_get 2025": call(handshake, "session_get", `{}`),
		"workspaces_list": call(stateless, "workspaces_list", `{}`), "workspaces_list 2025": call(handshake, "workspaces_list", `{}`),
		"emails_list": call(stateless, "emails_list", list), "emails_get": call(stateless, "emails_get", `{"id":"`+w.one+`"}`),
		"tools/list":      {version: stateless, method: "tools/list", token: w.token},
		"tools/list 2025": {version: handshake, method: "tools/list", token: w.token},
	}
}

// roundTrips is how often one warm call reads the store.
func (w *world) roundTrips(q request) (int, error) {
	p, err := newPoster(w.api, q)
	if err != nil {
		return 0, err
	}
	p.send()
	before := w.reads.reads.Load()
	p.send()
	return int(w.reads.reads.Load() - before), nil
}
