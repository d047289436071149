package inbox_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/safehttp"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

const (
	orgAcme   = "org_00000000000000000000000001"
	orgGlobex = "org_00000000000000000000000002"
	wsAcme    = "ws_00000000000000000000000001"
	wsGlobex  = "ws_00000000000000000000000002"
	wsOther   = "ws_00000000000000000000000003" // globex's second
)

// counting counts what the services cost.
type counting struct {
	store.Engine
	mu    sync.Mutex
	reads int
	rows  int
	last  []store.Op // of the last transaction
	down  error      // of the next ones
	after func()     // runs after each transaction
}

func (c *counting) Transact(ctx context.Context, ops ...store.Op) error {
	c.mu.Lock()
	c.last = ops
	down := c.down
	c.mu.Unlock()
	if down != nil {
		return down
	}
	err := c.Engine.Transact(ctx, ops...)
	if c.after != nil {
		c.after()
	}
	return err
}

func (c *counting) Get(ctx context.Context, k store.Key) (store.Item, error) {
	c.mu.Lock()
	c.reads++
	c.mu.Unlock()
	return c.Engine.Get(ctx, k)
}

func (c *counting) Query(ctx context.Context, q store.Query) (store.Page, error) {
	handed := 0
	if each := q.Each; each != nil {
		q.Each = func(item *store.Item) error { handed++; return each(item) }
	}
	p, err := c.Engine.Query(ctx, q)
	c.mu.Lock()
	c.reads, c.rows = c.reads+1, c.rows+len(p.Items)+handed
	c.mu.Unlock()
	return p, err
}

func (c *counting) reset() { c.reads, c.rows = 0, 0 }

type blobs map[string]string

func (b blobs) Open(_ context.Context, key string) (io.ReadCloser, error) {
	text, ok := b[key]
	if !ok {
		return nil, errors.New("no such blob")
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

type downloads struct{ now func() time.Time }

func (d downloads) SignedURL(_ context.Context, a inbox.Attachment, ttl time.Duration) (string, time.Time, error) {
	return "https://files.test/" + a.BlobKey, d.now().Add(ttl), nil
}

type pages struct{}

func (pages) Keep(context.Context, string, string, string) (string, time.Time, error) {
	return "", time.Time{}, errors.New("no pages")
}

type world struct {
	tb       testing.TB
	engine   *counting
	store    *inboxstore.Store
	services *inbox.Services
	blobs    blobs
	mu       sync.Mutex
	clock    time.Time
	mails    int

	ended, invited []string
	signInsDown    error

	// meanwhile runs whenever a service sleeps.
	meanwhile func()
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{tb: tb, blobs: blobs{}, clock: time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)}
	e, err := embedded.Open(filepath.Join(tb.TempDir(), "store.db"), embedded.Options{Clock: w.now, NoSync: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close() })
	w.start(e)
	return w
}

// start opens the services over an engine.
func (w *world) start(e store.Engine) {
	tb := w.tb
	tb.Helper()
	w.engine = &counting{Engine: e}
	var err error
	if w.store, err = inboxstore.New(w.engine, w.now); err != nil {
		tb.Fatal(err)
	}
	secret := make([]byte, 32) // another one in each process: a fuzzer's workers must not accept each other's cursors
	if _, err := rand.Read(secret); err != nil {
		tb.Fatal(err)
	}
	keys, err := seal.New([]seal.Root{{ID: "k1", Secret: secret}}, seal.Options{Clock: w.now})
	if err != nil {
		tb.Fatal(err)
	}
	w.services, err = inbox.New(inbox.Deps{
		Organizations: w.store, Members: w.store, Keys: w.store, SignIns: w,
		Inboxes: w.store, Domains: w.store, Counts: w.store, Emails: w.store, Attachments: w.store, Senders: w.store, Rules: w.store, Templates: w.store, Extractions: w.store, Audit: w.store, Jobs: w.store, Threads: w.store, Work: w.store, Waiting: w.store, Usage: w.store, Blobs: w.blobs, People: w.store, Uploads: w.store, Puts: downloads{w.now},
		Downloads: downloads{w.now}, Cursors: keys.Purpose("cursor"), Now: w.now, Rand: rand.Reader,
		MaxWaits: 3, Sleep: w.sleep,
		Webhooks: w.store, Deliveries: w.store, WebhookSecrets: keys.Purpose("webhook/secret"), Receivers: safehttp.New(safehttp.Options{Loopback: true}), SecretPages: pages{},
	})
	if err != nil {
		tb.Fatal(err)
	}
	w.tenants()
}

// sleep lets the time pass at once, and what a test does meanwhile.
func (w *world) sleep(ctx context.Context, d time.Duration) error {
	w.advance(d)
	if w.meanwhile != nil {
		w.meanwhile()
	}
	return ctx.Err()
}

// Disconnect and Invite are what the authorization server does for who is let in.
func (w *world) Disconnect(_ context.Context, _, person string, by inbox.AuditActor) error {
	if w.signInsDown != nil {
		return w.signInsDown
	}
	w.ended = append(w.ended, person+" by "+by.ID)
	return nil
}

func (w *world) Invite(_ context.Context, _, person string, by inbox.AuditActor) (string, time.Time, error) {
	w.invited = append(w.invited, person+" by "+by.ID)
	return "https://buzon.test/sign-in?link=" + person, w.now().Add(72 * time.Hour), nil
}

func (w *world) tenants() {
	ctx := w.tb.Context()
	for _, o := range []struct{ id, slug string }{{orgAcme, "acme"}, {orgGlobex, "globex"}} {
		w.must(w.store.CreateOrganization(ctx, inbox.Organization{ID: o.id, Slug: o.slug, Name: o.slug, CreatedAt: w.now()}))
		_, err := w.store.AddDomain(ctx, o.id, o.slug+".test")
		w.must(err)
	}
	for _, x := range []struct{ id, org, slug string }{{wsAcme, orgAcme, "main"}, {wsGlobex, orgGlobex, "main"}, {wsOther, orgGlobex, "other"}} {
		w.must(w.store.CreateWorkspace(ctx, inbox.Workspace{ID: x.id, Organization: x.org, Slug: x.slug, Name: x.slug, CreatedAt: w.now()}))
	}
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(d)
}

func (w *world) must(err error) {
	w.tb.Helper()
	if err != nil {
		w.tb.Fatal(err)
	}
}

func acme() inbox.Actor {
	return inbox.Actor{Organization: orgAcme, Workspace: wsAcme, Subject: "user_a", Role: inbox.RoleAdmin, OrganizationRole: inbox.RoleAdmin, ReadCodes: true, Surface: "rest", Direct: true}
}

func globex() inbox.Actor {
	return inbox.Actor{Organization: orgGlobex, Workspace: wsGlobex, Subject: "user_g", Role: inbox.RoleAdmin, OrganizationRole: inbox.RoleAdmin, ReadCodes: true, Surface: "rest", Direct: true}
}

func (w *world) inbox(a inbox.Actor, slug string) inbox.Inbox {
	w.tb.Helper()
	in, _, err := w.services.Inboxes.Upsert(w.tb.Context(), a, inbox.InboxPatch{Slug: slug})
	w.must(err)
	return in
}

// received fans one mail out without processing it, a minute after the one before.
func (w *world) received(in inbox.Inbox) inbox.Email { return w.receivedAll(in, 1)[0] }

func (w *world) receivedAll(in inbox.Inbox, n int) []inbox.Email {
	w.tb.Helper()
	var mails []inbox.Email
	for range n {
		w.mu.Lock()
		w.mails++
		i := w.mails
		w.mu.Unlock()
		at := w.now().Add(-1000*time.Hour + time.Duration(i)*time.Second)
		id, err := inbox.NewID("email", at, rand.Reader)
		w.must(err)
		sum := sha256.Sum256([]byte(id))
		mails = append(mails, inbox.Email{
			ID: id, Organization: in.Organization, Workspace: in.Workspace, Inbox: in.ID, Status: inbox.StatusReceived,
			ReceivedAt: at, Size: 10, RawSHA256: hex.EncodeToString(sum[:]), RawKey: "raw/" + id,
			Envelope: inbox.Envelope{From: "sender@remote.test", To: in.Address}, UpdatedAt: at, Version: 1,
		})
	}
	w.must(w.store.FanOut(w.tb.Context(), inbox.Intake{ID: "intake_" + mails[0].ID[6:]}, mails))
	return mails
}

// deliver takes a mail through the pipeline's steps.
func (w *world) deliver(in inbox.Inbox, fill func(*inbox.Processed)) inbox.Email {
	w.tb.Helper()
	return w.process(w.received(in), fill)
}

func (w *world) process(e inbox.Email, fill func(*inbox.Processed)) inbox.Email {
	w.tb.Helper()
	ctx := w.tb.Context()
	claimed, err := w.store.ClaimMail(ctx, e.ID)
	w.must(err)
	p := inbox.Processed{Email: claimed}
	p.Email.Status, p.Email.ProcessedAt = inbox.StatusProcessed, w.now()
	p.Email.Content = inbox.Content{
		Subject: "Hello " + e.ID[len(e.ID)-4:], From: []inbox.Address{{Name: "Sender", Address: "sender@remote.test"}},
		To: []inbox.Address{{Address: e.Envelope.To}}, MessageID: "<" + e.ID + "@remote.test>", Snippet: "a snippet",
	}
	p.Body = &inbox.Body{Text: "the text", Markdown: "the *text*", HTML: "<p>the text</p>"}
	if fill != nil {
		fill(&p)
	}
	w.must(w.store.Finish(ctx, p, ""))
	return p.Email
}

func attachment(e inbox.Email, name string, size int64) inbox.Attachment {
	id, _ := inbox.NewID("att", e.ReceivedAt, rand.Reader)
	return inbox.Attachment{
		ID: id, Workspace: e.Workspace, Inbox: e.Inbox, Email: e.ID, PartPath: "1", Kind: "file", Filename: name,
		ContentType: "application/pdf", DetectedType: "application/pdf", Size: size, SHA256: "00", BlobKey: "blob-" + id,
	}
}

func (w *world) list(a inbox.Actor, q inbox.EmailQuery) []*inbox.Row {
	w.tb.Helper()
	page, err := w.services.Emails.List(w.tb.Context(), a, q, inbox.PageRequest{Limit: 100})
	w.must(err)
	return page.Rows
}

// wantKind checks the kind and, when given, the code of a failure.
func wantKind(t *testing.T, err error, kind apperr.Kind, code string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s %s", kind, code)
	}
	e := apperr.From(err)
	if e.Kind != kind || (code != "" && e.Code != code) {
		t.Fatalf("error %v, want %s %s", err, kind, code)
	}
}

// sameAnswer proves that two failures can't be told apart by whoever gets them.
func sameAnswer(t *testing.T, what string, a, b error) {
	t.Helper()
	x, y := apperr.From(a), apperr.From(b)
	if a == nil || b == nil || x.Kind != y.Kind || x.Name() != y.Name() || x.Public != y.Public ||
		fmt.Sprint(x.Fixes) != fmt.Sprint(y.Fixes) || fmt.Sprint(x.Details) != fmt.Sprint(y.Details) {
		t.Errorf("%s: %v differs from %v", what, a, b)
	}
}

func (d downloads) PutURL(_ context.Context, u inbox.Upload, ttl time.Duration) (string, map[string]string, time.Time, error) {
	return "https://files.test/" + u.Key, map[string]string{}, d.now().Add(ttl), nil
}
