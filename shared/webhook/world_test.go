package webhook_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/buzon-mail/buzon/shared/app/announce"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/queue"
	embeddedqueue "github.com/buzon-mail/buzon/shared/queue/embedded"
	"github.com/buzon-mail/buzon/shared/safehttp"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
	"github.com/buzon-mail/buzon/shared/webhook"
)

const (
	orgA, wsA = "org_00000000000000000000000001", "ws_00000000000000000000000001"
	orgB, wsB = "org_00000000000000000000000002", "ws_00000000000000000000000002"
	boxA      = "inbox_00000000000000000000000001"
)

// dying fails every write after the first left, as a process that was killed there would have left them undone.
type dying struct {
	store.Engine
	mu   sync.Mutex
	left int // negative: never
}

func (d *dying) spend() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.left == 0:
		return fmt.Errorf("killed: %w", store.ErrUnavailable)
	case d.left > 0:
		d.left--
	}
	return nil
}

func (d *dying) set(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = n
}

func (d *dying) Put(ctx context.Context, i store.Item, c store.Condition) error {
	if err := d.spend(); err != nil {
		return err
	}
	return d.Engine.Put(ctx, i, c)
}

func (d *dying) Delete(ctx context.Context, k store.Key, c store.Condition) error {
	if err := d.spend(); err != nil {
		return err
	}
	return d.Engine.Delete(ctx, k, c)
}

func (d *dying) Transact(ctx context.Context, ops ...store.Op) error {
	if err := d.spend(); err != nil {
		return err
	}
	return d.Engine.Transact(ctx, ops...)
}

// got is a request that a receiver took.
type got struct {
	at     time.Time
	header http.Header
	body   []byte
}

// receiver is a server of somebody else's.
type receiver struct {
	*httptest.Server
	w      *world
	mu     sync.Mutex
	got    []got
	answer http.HandlerFunc // guarded by mu
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.w.t.Error(err)
	}
	r.mu.Lock()
	r.got = append(r.got, got{r.w.now(), req.Header, body})
	answer := r.answer
	r.mu.Unlock()
	answer(w, req)
}

func (r *receiver) then(h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = h
}

func (r *receiver) all() []got {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]got(nil), r.got...)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

type world struct {
	t      *testing.T
	engine *dying
	store  *inboxstore.Store
	queue  *embeddedqueue.Queue
	box    *seal.Sealer
	hooks  *webhook.Engine
	due    *webhook.Due
	client webhook.Client
	log    bytes.Buffer
	logMu  sync.Mutex
	mu     sync.Mutex
	clock  time.Time
	events int
}

func (w *world) Write(p []byte) (int, error) {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.log.Write(p)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, clock: time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)}
	e, err := embedded.Open(filepath.Join(t.TempDir(), "store.db"), embedded.Options{Clock: w.now, NoSync: true})
	w.must(err)
	t.Cleanup(func() { _ = e.Close() })
	w.engine = &dying{Engine: e, left: -1}
	w.store, err = inboxstore.New(w.engine, w.now)
	w.must(err)
	w.queue, err = embeddedqueue.New(e, "test", embeddedqueue.Options{Clock: w.now})
	w.must(err)
	w.store = w.store.Announcing(announce.To(w.queue, slog.New(slog.DiscardHandler)))
	keys, err := seal.New([]seal.Root{{ID: "k", Secret: make([]byte, 32)}}, seal.Options{Clock: w.now})
	w.must(err)
	w.box = keys.Purpose("webhook/secret")
	w.client = safehttp.New(safehttp.Options{Timeout: webhook.Timeout, Loopback: true})
	w.restart()
	return w
}

// restart is a new process over the same rows: nothing of the old one's memory is left.
func (w *world) restart() {
	w.t.Helper()
	var err error
	w.hooks, err = webhook.New(webhook.Deps{
		Events: w.store, Deliveries: w.store, Webhooks: w.store, Queue: w.queue, Client: w.client, Clock: w.now,
		Secrets: func(context.Context) (webhook.Secrets, error) { return w.box, nil },
		Logger:  slog.New(slog.NewJSONHandler(w, nil)),
	}, webhook.Options{Base: "https://mail.test/api/v1"})
	w.must(err)
	w.due = webhook.NewDue(w.hooks)
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(d)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// receiver starts a server that says 200.
func (w *world) receiver() *receiver {
	w.t.Helper()
	r := &receiver{w: w, answer: status(http.StatusOK)}
	r.Server = httptest.NewServer(r)
	w.t.Cleanup(r.Close)
	return r
}

// address is the receiver's, by name: a literal would be refused.
func (r *receiver) address() string {
	return strings.Replace(r.URL, "127.0.0.1", "localhost", 1) + "/hook"
}

func secret(w *world) string {
	var b [32]byte
	_, err := rand.Read(b[:])
	w.must(err)
	return "whsec_" + base64.StdEncoding.EncodeToString(b[:])
}

func (w *world) seal(ws, id, plain string) string {
	w.t.Helper()
	s, err := w.box.Seal([]byte(plain), inbox.WebhookSecretAD(ws, id), time.Duration(math.MaxInt64))
	w.must(err)
	return s
}

// hook makes a webhook and returns its secret.
func (w *world) hook(org, ws, name, url string, events ...inbox.EventType) (inbox.Webhook, string) {
	w.t.Helper()
	id, err := inbox.NewID("webhook", w.now(), rand.Reader)
	w.must(err)
	plain := secret(w)
	h, err := w.store.UpdateWebhook(w.t.Context(), ws, id, inbox.Act{}, func(h *inbox.Webhook) error {
		*h = inbox.Webhook{
			ID: id, Organization: org, Workspace: ws, Name: name, URL: url, Events: events, Enabled: true,
			Secret: w.seal(ws, id, plain), CreatedAt: w.now(), Version: 1,
		}
		return nil
	})
	w.must(err)
	return h, plain
}

func (w *world) change(h inbox.Webhook, change func(*inbox.Webhook)) {
	w.t.Helper()
	_, err := w.store.UpdateWebhook(w.t.Context(), h.Workspace, h.ID, inbox.Act{}, func(h *inbox.Webhook) error {
		change(h)
		h.Version++
		return nil
	})
	w.must(err)
}

// event makes one that no other test of this world makes, without storing it.
func (w *world) event(ws string) inbox.Event {
	w.t.Helper()
	w.mu.Lock()
	w.events++
	n := w.events
	w.mu.Unlock()
	e, err := inbox.JobFailedEvent(ws, fmt.Sprintf("job_%026d", n), "emails_import", "internal", w.now())
	w.must(err)
	return e
}

func (w *world) emit(ws string) inbox.Event {
	w.t.Helper()
	e := w.event(ws)
	w.must(w.store.PutEvent(w.t.Context(), e))
	return e
}

// pump works on every message that is due, in turn, until none is, and returns the failures.
func (w *world) pump() (failures []error) {
	w.t.Helper()
	for range 1000 {
		batch, err := w.queue.Receive(w.t.Context(), queue.MaxBatch, time.Minute)
		w.must(err)
		if len(batch) == 0 {
			return failures
		}
		for _, d := range batch {
			if err := w.hooks.Handle(w.t.Context(), d.ID, d.Attempt); err != nil {
				failures = append(failures, err)
			}
			w.must(w.queue.Done(w.t.Context(), d))
		}
	}
	w.t.Fatal("the queue does not come to rest")
	return nil
}

// lose drops every message.
func (w *world) lose() {
	w.t.Helper()
	for {
		batch, err := w.queue.Receive(w.t.Context(), queue.MaxBatch, time.Minute)
		w.must(err)
		if len(batch) == 0 {
			return
		}
		w.must(w.queue.Done(w.t.Context(), batch...))
	}
}

func (w *world) deliveries(ws, hook string) []inbox.WebhookDelivery {
	w.t.Helper()
	rows, _, err := w.store.Deliveries(w.t.Context(), inbox.DeliveryRange{Workspace: ws, Webhook: hook, Limit: 100})
	w.must(err)
	return rows
}

// one is the only delivery of a webhook, with its attempts.
func (w *world) one(h inbox.Webhook) inbox.WebhookDelivery {
	w.t.Helper()
	rows := w.deliveries(h.Workspace, h.ID)
	if len(rows) != 1 {
		w.t.Fatalf("%d deliveries", len(rows))
	}
	d, err := w.store.Delivery(w.t.Context(), h.Workspace, rows[0].ID)
	w.must(err)
	return d
}

func (w *world) read(h inbox.Webhook) inbox.Webhook {
	w.t.Helper()
	h, err := w.store.Webhook(w.t.Context(), h.Workspace, h.ID)
	w.must(err)
	return h
}

// verify checks a request with the official library, but for its clock: the test's is not the library's.
func verify(secret string, g got) error {
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return wh.VerifyIgnoringTimestamp(g.body, g.header)
}
