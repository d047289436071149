package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/queue"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/dynamo"
	"github.com/buzon-mail/buzon/shared/store/embedded"
	"github.com/buzon-mail/buzon/shared/testkit/minidyn"
)

// killer ends a process at a call: everything after it fails. late: the call itself still happens, and its answer is lost.
type killer struct {
	mu    sync.Mutex
	armed bool
	left  int
	late  bool
	calls int
}

var errCut = fmt.Errorf("killed: %w", store.ErrUnavailable)

func (k *killer) call(do func() error) error {
	k.mu.Lock()
	k.calls++
	here := k.armed && k.left == 0
	dead := k.armed && k.left < 0
	k.left--
	late := k.late
	k.mu.Unlock()
	switch {
	case dead, here && !late:
		return errCut
	case here:
		_ = do()
		return errCut
	}
	return do()
}

func (k *killer) arm(n int, late bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed, k.left, k.late = n >= 0, n, late
}

// ledger is an engine that remembers every key, so that a test can look at all there is.
type ledger struct {
	store.Engine
	*killer
	keys *sync.Map
}

func (l ledger) Get(ctx context.Context, k store.Key) (item store.Item, err error) {
	return item, errors.Join(l.call(func() error { item, err = l.Engine.Get(ctx, k); return nil }), err)
}

func (l ledger) Query(ctx context.Context, q store.Query) (page store.Page, err error) {
	return page, errors.Join(l.call(func() error { page, err = l.Engine.Query(ctx, q); return nil }), err)
}

func (l ledger) Put(ctx context.Context, i store.Item, c store.Condition) error {
	l.keys.Store(i.Key, true)
	return l.call(func() error { return l.Engine.Put(ctx, i, c) })
}

func (l ledger) Delete(ctx context.Context, k store.Key, c store.Condition) error {
	return l.call(func() error { return l.Engine.Delete(ctx, k, c) })
}

func (l ledger) Transact(ctx context.Context, ops ...store.Op) error {
	for _, op := range ops {
		l.keys.Store(op.Key(), true)
	}
	return l.call(func() error { return l.Engine.Transact(ctx, ops...) })
}

func (l ledger) Add(ctx context.Context, k store.Key, field string, delta, most int64, expires time.Time) (n int64, err error) {
	l.keys.Store(k, true)
	return n, errors.Join(l.call(func() error { n, err = l.Engine.Add(ctx, k, field, delta, most, expires); return nil }), err)
}

func (l ledger) all() (keys []store.Key) {
	l.keys.Range(func(k, _ any) bool {
		keys = append(keys, k.(store.Key))
		return true
	})
	return keys
}

// rows are all that there are, as text.
func (l ledger) rows(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, key := range l.all() {
		item, err := l.Engine.Get(context.Background(), key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out[key.Table.String()+" "+key.Partition+" "+key.Sort] = fmt.Sprintf("%s %v", item.Data, item.Counters)
	}
	return out
}

// shelf is blobs in memory.
type shelf struct {
	*killer
	mu   sync.Mutex
	data map[string][]byte
}

func (s *shelf) Put(_ context.Context, key string, r io.Reader, _ int64) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return s.call(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, taken := s.data[key]; !taken {
			s.data[key] = text
		}
		return nil
	})
}

func (s *shelf) Get(_ context.Context, key string, most int64) (text []byte, err error) {
	return text, errors.Join(s.call(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		var ok bool
		if text, ok = s.data[key]; !ok {
			err = blob.ErrNotFound
		} else if int64(len(text)) > most {
			text, err = nil, blob.ErrTooLarge
		}
		return nil
	}), err)
}

func (s *shelf) Open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	text, err := s.Get(ctx, key, 1<<40)
	return io.NopCloser(bytes.NewReader(text)), int64(len(text)), err
}

func (s *shelf) Delete(_ context.Context, key string) error {
	return s.call(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.data, key)
		return nil
	})
}

func (s *shelf) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.data))
}

// note is the raw mail of these tests.
type note struct {
	Subject, ID string
	Refs, Files []string
	Large       bool // its body does not fit in a row
	Bad         bool // it can't be read
}

func parseLetter(_ context.Context, raw []byte) (pipeline.Reading, error) {
	var l note
	if err := json.Unmarshal(raw, &l); err != nil || l.Bad {
		return pipeline.Reading{}, errors.New("unreadable")
	}
	r := pipeline.Reading{
		Content: inbox.Content{Subject: l.Subject, MessageID: l.ID, From: []inbox.Address{{Address: "ana@remote.test"}}},
		Body:    inbox.Body{Text: "text of " + l.Subject}, References: l.Refs,
	}
	if l.Large {
		r.Body.Text = strings.Repeat("large ", 40_000)
	}
	for _, f := range l.Files {
		r.Files = append(r.Files, pipeline.File{Meta: inbox.Attachment{Kind: "file", Filename: f}, Data: []byte(f)})
	}
	return r, nil
}

type silent struct{}

func (silent) Send(context.Context, ...queue.Message) error { return nil }

// estate is two organizations, and retention over them.
type estate struct {
	t      testing.TB
	mu     sync.Mutex
	at     time.Time // guarded by mu
	rows   ledger
	blobs  *shelf
	store  *inboxstore.Store
	intake *pipeline.Intake
	worker *pipeline.Worker
	path   string // of the embedded engine
	close  func() error
}

func (e *estate) now() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at
}

func (e *estate) wait(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at = e.at.Add(d)
}

func (e *estate) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// engines are what the tests run on.
var engines = map[string]func(t testing.TB, path string, clock func() time.Time) store.Engine{ //nolint:gochecknoglobals // constant
	"embedded": func(t testing.TB, path string, clock func() time.Time) store.Engine {
		t.Helper()
		e, err := embedded.Open(path, embedded.Options{Clock: clock, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e
	},
	"dynamo": func(t testing.TB, _ string, clock func() time.Time) store.Engine {
		t.Helper()
		server := httptest.NewServer(minidyn.New())
		t.Cleanup(server.Close)
		if err := minidyn.Tables(t.Context(), minidyn.At(server.URL), "core", "ephemeral"); err != nil {
			t.Fatal(err)
		}
		e, err := dynamo.New(dynamo.Options{AWS: minidyn.At(server.URL), Core: "core", Ephemeral: "ephemeral", Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		return e
	},
}

func newEstate(t testing.TB, engine func(testing.TB, string, func() time.Time) store.Engine) *estate {
	t.Helper()
	e := &estate{t: t, at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), path: filepath.Join(t.TempDir(), "db")}
	k := &killer{}
	e.blobs = &shelf{killer: k, data: map[string][]byte{}}
	e.rows = ledger{engine(t, e.path, e.now), k, &sync.Map{}}
	e.wire()
	return e
}

// snapshot is an estate on the embedded engine as it is now, of which there can be any number of copies.
type snapshot struct {
	at    time.Time
	file  []byte
	blobs map[string][]byte
	keys  *sync.Map
}

func (e *estate) snapshot() snapshot {
	e.t.Helper()
	file, err := os.ReadFile(e.path)
	e.must(err)
	return snapshot{e.now(), file, maps.Clone(e.blobs.data), e.rows.keys}
}

func (s snapshot) estate(t testing.TB) *estate {
	t.Helper()
	e := &estate{t: t, at: s.at, path: filepath.Join(t.TempDir(), "db")}
	e.must(os.WriteFile(e.path, s.file, 0o600))
	engine, err := embedded.Open(e.path, embedded.Options{Clock: e.now, NoSync: true})
	e.must(err)
	k := &killer{}
	e.close = engine.Close
	e.blobs = &shelf{killer: k, data: maps.Clone(s.blobs)}
	e.rows = ledger{engine, k, s.keys}
	e.wire()
	return e
}

// wire makes a process on what is stored.
func (e *estate) wire() {
	e.t.Helper()
	var err error
	e.store, err = inboxstore.New(e.rows, e.now)
	e.must(err)
	log := slog.New(slog.DiscardHandler)
	e.intake, err = pipeline.NewIntake(pipeline.IntakeDeps{
		Recipients: e.store, Outbox: e.store, Blobs: e.blobs, Queue: silent{}, Logger: log, Clock: e.now, Stored: e.blobs, Holding: e.store,
	}, pipeline.IntakeOptions{})
	e.must(err)
	e.worker, err = pipeline.NewWorker(pipeline.WorkerDeps{
		Outbox: e.store, Mails: e.store, Blobs: e.blobs, Queue: silent{}, Parse: parseLetter, Logger: log, Clock: e.now, Senders: e.store,
		Jobs: e.store, Reprocess: e.store, Orphan: e.retention(pipeline.RetentionOptions{}).Orphan,
	}, pipeline.WorkerOptions{})
	e.must(err)
}

func (e *estate) retention(opts pipeline.RetentionOptions) *pipeline.Retention {
	e.t.Helper()
	r, err := pipeline.NewRetention(pipeline.RetentionDeps{Store: e.store, Blobs: e.blobs, Logger: slog.New(slog.DiscardHandler), Clock: e.now}, opts)
	e.must(err)
	return r
}

// purge runs retention until nothing is due.
func (e *estate) purge() {
	e.t.Helper()
	r := e.retention(pipeline.RetentionOptions{Lanes: 1})
	for range 50 {
		e.must(r.Run(e.t.Context()))
		if due, err := e.store.PurgeDue(e.t.Context(), e.now(), 1); err != nil || len(due) == 0 {
			e.must(err)
			return
		}
	}
	e.t.Fatal("something stays due")
}

// organization makes one with a workspace and inboxes.
func (e *estate) organization(n int, name string, boxes ...inbox.Inbox) {
	e.t.Helper()
	ctx := e.t.Context()
	org, ws := fmt.Sprintf("org_%026d", n), fmt.Sprintf("ws_%026d", n)
	e.must(e.store.CreateOrganization(ctx, inbox.Organization{ID: org, Slug: name, Name: name}))
	e.must(e.store.CreateWorkspace(ctx, inbox.Workspace{ID: ws, Organization: org, Slug: "main", Name: "Main"}))
	_, err := e.store.AddDomain(ctx, org, name+".test")
	e.must(err)
	for _, in := range boxes {
		in.ID = fmt.Sprintf("inbox_%02d%024d", n, len(in.Slug)*1000+int(in.Slug[0]))
		in.Organization, in.Workspace, in.Address, in.Version = org, ws, in.Slug+"@"+name+".test", 1
		in.State, in.CreatedAt, in.UpdatedAt = inbox.StateActive, e.now(), e.now()
		e.must(e.store.CreateInbox(ctx, in, inbox.Act{}))
	}
}

func (e *estate) box(address string) inbox.Recipient {
	e.t.Helper()
	r, err := e.store.Recipient(e.t.Context(), address)
	e.must(err)
	return r
}

// drain does all that the outbox holds.
func (e *estate) drain() {
	e.t.Helper()
	for range 20 {
		ids, err := e.store.Pending(e.t.Context(), e.now().Add(time.Hour), 1000)
		e.must(err)
		if len(ids) == 0 {
			return
		}
		for _, id := range ids {
			e.must(e.worker.Handle(e.t.Context(), id, 1))
		}
	}
	e.t.Fatal("the outbox stays full")
}

// send accepts and processes a letter, and returns the mails in the order of the recipients.
func (e *estate) send(l note, to ...string) []inbox.Email {
	e.t.Helper()
	raw, err := json.Marshal(l)
	e.must(err)
	in := inbox.Incoming{From: "ana@remote.test", Body: bytes.NewReader(raw)}
	for _, address := range to {
		in.Recipients = append(in.Recipients, e.box(address))
	}
	e.wait(time.Second)
	id, err := e.intake.Accept(e.t.Context(), in)
	e.must(err)
	return e.arrived(id)
}

// arrived processes an intake and returns its mails.
func (e *estate) arrived(id string) []inbox.Email {
	e.t.Helper()
	row, err := e.store.Intake(e.t.Context(), id)
	e.must(err)
	e.drain()
	var out []inbox.Email
	for _, d := range row.Recipients {
		m, _, err := e.store.Email(e.t.Context(), d.Workspace, d.Email, false)
		e.must(err)
		out = append(out, m)
	}
	return out
}

func (e *estate) change(m inbox.Email, f func(*inbox.Email)) error {
	_, err := e.store.UpdateEmail(e.t.Context(), m.Workspace, m.ID, inbox.Act{}, func(m *inbox.Email) error { f(m); m.Version++; return nil })
	return err
}

func (e *estate) deleteMail(m inbox.Email) {
	e.t.Helper()
	e.must(e.change(m, func(m *inbox.Email) { m.DeletedAt = e.now() }))
}

func (e *estate) changeBox(r inbox.Recipient, f func(*inbox.Inbox)) error {
	_, err := e.store.UpdateInbox(e.t.Context(), r.Workspace, r.Inbox, inbox.Act{}, func(in *inbox.Inbox) error { f(in); in.Version++; return nil })
	return err
}

func (e *estate) gone(m inbox.Email) bool {
	e.t.Helper()
	_, _, err := e.store.Email(e.t.Context(), m.Workspace, m.ID, false)
	return err != nil
}

// traces are the rows that name something, but for those that are meant to stay: the audit, and the row of shared bytes, by whose ids a
// notice that comes again is known, and a counter that came too late for its row and ends in a day.
func (e *estate) traces(names ...string) []string {
	e.t.Helper()
	var out []string
	for place, data := range e.rows.rows(e.t) {
		if strings.HasPrefix(place, "core audit/") || strings.HasPrefix(place, "core raw/") ||
			strings.HasPrefix(place, "core counts/") && strings.Contains(data, ":-") {
			continue
		}
		for _, name := range names {
			if strings.Contains(place, name) || strings.Contains(data, name) {
				out = append(out, place)
				break
			}
		}
	}
	slices.Sort(out)
	return out
}
