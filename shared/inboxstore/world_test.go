package inboxstore_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

var (
	_ pipeline.Recipients   = (*inboxstore.Store)(nil)
	_ pipeline.Outbox       = (*inboxstore.Store)(nil)
	_ pipeline.Mails        = (*inboxstore.Store)(nil)
	_ pipeline.Holding      = (*inboxstore.Store)(nil)
	_ pipeline.Jobs         = (*inboxstore.Store)(nil)
	_ pipeline.Reprocessing = (*inboxstore.Store)(nil)
)

const (
	orgA = "org_00000000000000000000000001"
	orgB = "org_00000000000000000000000002"
	wsA  = "ws_00000000000000000000000001"
	wsB  = "ws_00000000000000000000000002"
	boxA = "inbox_00000000000000000000000001"
	boxB = "inbox_00000000000000000000000002"
)

// dying fails every write after the first n, as a process that was killed there would have left them undone.
type dying struct {
	store.Engine
	mu   sync.Mutex
	left int // writes; negative: never dies
	most int // rows of the largest transaction
}

// spend counts one write of so many rows.
func (d *dying) spend(rows int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.left == 0:
		return fmt.Errorf("killed: %w", store.ErrUnavailable)
	case d.left > 0:
		d.left--
	}
	d.most = max(d.most, rows)
	return nil
}

func (d *dying) Put(ctx context.Context, i store.Item, c store.Condition) error {
	if err := d.spend(1); err != nil {
		return err
	}
	return d.Engine.Put(ctx, i, c)
}

func (d *dying) Delete(ctx context.Context, k store.Key, c store.Condition) error {
	if err := d.spend(1); err != nil {
		return err
	}
	return d.Engine.Delete(ctx, k, c)
}

func (d *dying) Transact(ctx context.Context, ops ...store.Op) error {
	if err := d.spend(len(ops)); err != nil {
		return err
	}
	return d.Engine.Transact(ctx, ops...)
}

type world struct {
	t      testing.TB
	engine *dying
	*inboxstore.Store
	clock time.Time
	mails int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, clock: time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)}
	e, err := embedded.Open(filepath.Join(t.TempDir(), "store.db"), embedded.Options{Clock: w.now, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	w.engine = &dying{Engine: e, left: -1}
	w.Store, err = inboxstore.New(w.engine, w.now)
	w.must(err)
	for _, x := range []struct{ org, ws, box, name string }{{orgA, wsA, boxA, "acme"}, {orgB, wsB, boxB, "globex"}} {
		w.must(w.CreateOrganization(t.Context(), inbox.Organization{ID: x.org, Slug: x.name, Name: x.name}))
		w.must(w.CreateWorkspace(t.Context(), inbox.Workspace{ID: x.ws, Organization: x.org, Slug: "main", Name: "Main"}))
		_, err := w.AddDomain(t.Context(), x.org, x.name+".test")
		w.must(err)
		w.must(w.CreateInbox(t.Context(), inbox.Inbox{
			ID: x.box, Organization: x.org, Workspace: x.ws, Slug: "in", Address: "in@" + x.name + ".test", State: inbox.StateActive, Version: 1,
		}, inbox.Act{}))
	}
	return w
}

func (w *world) now() time.Time { return w.clock }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// mail makes a received mail of box A, a minute after the one before.
func (w *world) mail() inbox.Email {
	w.mails++
	at := w.clock.Add(time.Duration(w.mails) * time.Minute)
	id, err := inbox.NewID("email", at, rand.Reader)
	w.must(err)
	sum := sha256.Sum256([]byte(id))
	return inbox.Email{
		ID: id, Organization: orgA, Workspace: wsA, Inbox: boxA, Status: inbox.StatusReceived, ReceivedAt: at,
		RawSHA256: hex.EncodeToString(sum[:]), RawKey: "raw", Envelope: inbox.Envelope{To: "in@acme.test"}, Version: 1,
	}
}

func intake(mails ...inbox.Email) inbox.Intake {
	in := inbox.Intake{ID: "intake_" + mails[0].ID[len("email_"):], ReceivedAt: mails[0].ReceivedAt}
	for _, e := range mails {
		in.Recipients = append(in.Recipients, inbox.Delivery{Email: e.ID, Inbox: e.Inbox, Workspace: e.Workspace})
	}
	return in
}

func (w *world) accept(mails ...inbox.Email) {
	w.t.Helper()
	in := intake(mails...)
	w.must(w.PutIntake(w.t.Context(), in))
	w.must(w.FanOut(w.t.Context(), in, mails))
}

// result is what the pipeline would have learned of a claimed mail.
func result(e inbox.Email) inbox.Processed {
	e.Status = inbox.StatusProcessed
	e.Content = inbox.Content{
		Subject: "Hello", MessageID: "<" + e.ID + ">", From: []inbox.Address{{Address: "alice@remote.test"}},
		To: []inbox.Address{{Address: "in@acme.test"}},
	}
	return inbox.Processed{Email: e, Body: &inbox.Body{Text: "text of " + e.ID}}
}

// run takes a mail through all steps and returns it as it is stored.
func (w *world) run(e inbox.Email, fill func(*inbox.Processed)) inbox.Email {
	w.t.Helper()
	w.accept(e)
	return w.process(e, fill)
}

func (w *world) process(e inbox.Email, fill func(*inbox.Processed)) inbox.Email {
	w.t.Helper()
	claimed, err := w.ClaimMail(w.t.Context(), e.ID)
	w.must(err)
	p := result(claimed)
	if fill != nil {
		fill(&p)
	}
	w.must(w.Finish(w.t.Context(), p, ""))
	return w.stored(e)
}

func (w *world) stored(e inbox.Email) inbox.Email {
	w.t.Helper()
	got, _, err := w.Email(w.t.Context(), e.Workspace, e.ID, false)
	w.must(err)
	return got
}

func (w *world) list(r inbox.EmailRange) (all []inbox.Summary) {
	w.t.Helper()
	r.Limit = 1000
	if r.Workspace == "" {
		r.Workspace = wsA
	}
	rows, next, err := w.Emails(w.t.Context(), r)
	w.must(err)
	if next != "" {
		w.t.Fatal("more than a page")
	}
	for _, row := range rows {
		all = append(all, row.Summary)
	}
	return all
}

func (w *world) pending() []string {
	w.t.Helper()
	ids, err := w.Pending(w.t.Context(), w.clock.Add(1000*time.Hour), 100)
	w.must(err)
	return ids
}

func wantKind(t testing.TB, err error, kind apperr.Kind) {
	t.Helper()
	if !apperr.Is(err, kind) {
		t.Fatalf("error %v, want %s", err, kind)
	}
}
