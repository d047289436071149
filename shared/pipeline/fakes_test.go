package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/queue"
)

var errNotFound = apperr.New(apperr.NotFound, "", "No such row.") //nolint:gochecknoglobals // constant

// clock is the tests' time.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// memory is Recipients, Outbox and Mails. fail, when set, is asked before each call with the method's name.
type memory struct {
	clock *clock

	mu       sync.Mutex
	fail     func(method string) error
	intakes  map[string]inbox.Intake
	pending  map[string]time.Time    // outbox rows
	rows     map[string]inbox.Intake // every intake there ever was
	mails    map[string]inbox.Email
	finished map[string]inbox.Processed
	raw      map[string]string // inbox + digest -> mail that claims it
	keys     map[string]string // inbox + key -> mail
	dropped  map[string]string // discarded mail -> the one it copies
	finishes int
}

func newMemory(c *clock) *memory {
	return &memory{
		clock: c, rows: map[string]inbox.Intake{}, intakes: map[string]inbox.Intake{}, pending: map[string]time.Time{}, mails: map[string]inbox.Email{},
		finished: map[string]inbox.Processed{}, raw: map[string]string{}, keys: map[string]string{}, dropped: map[string]string{},
	}
}

// enter locks; the caller unlocks.
func (m *memory) enter(ctx context.Context, method string) error {
	m.mu.Lock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.fail != nil {
		return m.fail(method)
	}
	return nil
}

func (m *memory) setFail(f func(string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = f
}

func (m *memory) Recipient(_ context.Context, address string) (inbox.Recipient, error) {
	local, domain, _ := strings.Cut(address, "@")
	if domain != "acme.test" {
		return inbox.Recipient{}, errNotFound
	}
	return recipient(local), nil
}

func recipient(local string) inbox.Recipient {
	return inbox.Recipient{Address: local + "@acme.test", Organization: "org_1", Workspace: "ws_1", Inbox: "inbox_" + local, State: inbox.StateActive}
}

func (m *memory) AnnounceIntake(ctx context.Context, _ inbox.Intake) error {
	defer m.mu.Unlock()
	return m.enter(ctx, "AnnounceIntake")
}

func (m *memory) NameRaw(ctx context.Context, _ string, _ []string) error {
	defer m.mu.Unlock()
	return m.enter(ctx, "NameRaw")
}

func (m *memory) PutIntake(ctx context.Context, in inbox.Intake) error {
	defer m.mu.Unlock()
	err := m.enter(ctx, "PutIntake")
	if err != nil && !errors.Is(err, errAfter) {
		return err
	}
	m.intakes[in.ID], m.pending[in.ID], m.rows[in.ID] = in, m.clock.Now(), in
	return err
}

// errAfter fails a write that happened all the same.
var errAfter = errors.New("connection lost after the write") //nolint:gochecknoglobals // constant

func (m *memory) Intake(ctx context.Context, id string) (inbox.Intake, error) {
	defer m.mu.Unlock()
	if err := m.enter(ctx, "Intake"); err != nil {
		return inbox.Intake{}, err
	}
	in, ok := m.intakes[id]
	if !ok {
		return inbox.Intake{}, errNotFound
	}
	return in, nil
}

func (m *memory) FanOut(ctx context.Context, in inbox.Intake, mails []inbox.Email) error {
	defer m.mu.Unlock()
	err := m.enter(ctx, "FanOut")
	if err != nil && !errors.Is(err, errAfter) {
		return err
	}
	if _, ok := m.intakes[in.ID]; !ok {
		return nil // another run was faster
	}
	for i, e := range mails {
		if _, ok := m.mails[e.ID]; ok {
			continue
		}
		m.mails[e.ID], m.pending[e.ID] = e, m.clock.Now()
		if err != nil && i == 0 && len(mails) > 1 {
			return err // half-way
		}
	}
	if err == nil {
		delete(m.intakes, in.ID)
		delete(m.pending, in.ID)
	}
	return err
}

func (m *memory) Pending(ctx context.Context, before time.Time, limit int) ([]string, error) {
	defer m.mu.Unlock()
	if err := m.enter(ctx, "Pending"); err != nil {
		return nil, err
	}
	ids := slices.SortedFunc(maps.Keys(m.pending), func(a, b string) int { return cmp.Or(m.pending[a].Compare(m.pending[b]), cmp.Compare(a, b)) })
	ids = slices.DeleteFunc(ids, func(id string) bool { return !m.pending[id].Before(before) })
	return ids[:min(len(ids), limit)], nil
}

func (m *memory) ClaimMail(ctx context.Context, id string) (inbox.Email, error) {
	defer m.mu.Unlock()
	if err := m.enter(ctx, "ClaimMail"); err != nil {
		return inbox.Email{}, err
	}
	if _, ok := m.pending[id]; !ok {
		return inbox.Email{}, errNotFound
	}
	e := m.mails[id]
	e.Status = inbox.StatusProcessing
	m.mails[id] = e
	return e, nil
}

func (m *memory) Duplicate(ctx context.Context, of inbox.Email, key string) (string, string, error) {
	defer m.mu.Unlock()
	if err := m.enter(ctx, "Duplicate"); err != nil {
		return "", "", err
	}
	digest := of.Inbox + of.RawSHA256
	if other, ok := m.raw[digest]; ok && other != of.ID {
		return other, "raw", nil
	}
	m.raw[digest] = of.ID
	if other, ok := m.keys[of.Inbox+key]; ok && key != "" && other != of.ID {
		return other, "message", nil
	}
	return "", "", errNotFound
}

func (m *memory) Finish(ctx context.Context, p inbox.Processed, key string) error {
	defer m.mu.Unlock()
	err := m.enter(ctx, "Finish")
	if err != nil && !errors.Is(err, errAfter) {
		return err
	}
	if _, ok := m.pending[p.Email.ID]; !ok {
		return err
	}
	m.finishes++
	m.finished[p.Email.ID], m.mails[p.Email.ID] = p, p.Email
	if key != "" {
		m.keys[p.Email.Inbox+key] = p.Email.ID
	}
	delete(m.pending, p.Email.ID)
	return err
}

func (m *memory) Discard(ctx context.Context, id, duplicateOf string) error {
	defer m.mu.Unlock()
	if err := m.enter(ctx, "Discard"); err != nil {
		return err
	}
	if _, ok := m.pending[id]; ok {
		delete(m.pending, id)
		delete(m.mails, id)
		m.dropped[id] = duplicateOf
	}
	return nil
}

func (m *memory) outcome(id string) inbox.Processed {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.finished[id]
}

func (m *memory) accepted(id string) inbox.Intake {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rows[id]
}

func (m *memory) left() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pending)
}

// memoryBlobs is Blobs.
type memoryBlobs struct {
	mu   sync.Mutex
	fail func(method string) error
	data map[string][]byte
}

func newMemoryBlobs() *memoryBlobs { return &memoryBlobs{data: map[string][]byte{}} }

func (b *memoryBlobs) enter(ctx context.Context, method string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.fail != nil {
		return b.fail(method)
	}
	return nil
}

func (b *memoryBlobs) setFail(f func(string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = f
}

func (b *memoryBlobs) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if int64(len(data)) != size {
		return blob.ErrSize
	}
	if err := blob.CheckKey(key); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	err = b.enter(ctx, "Put")
	if err != nil && !errors.Is(err, errAfter) {
		return err
	}
	if _, ok := b.data[key]; !ok {
		b.data[key] = data
	}
	return err
}

func (b *memoryBlobs) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter(ctx, "Get"); err != nil {
		return nil, err
	}
	data, ok := b.data[key]
	if !ok {
		return nil, blob.ErrNotFound
	}
	if int64(len(data)) > limit {
		return nil, blob.ErrTooLarge
	}
	return bytes.Clone(data), nil
}

func (b *memoryBlobs) Delete(ctx context.Context, key string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter(ctx, "Delete"); err != nil {
		return err
	}
	delete(b.data, key)
	return nil
}

func (b *memoryBlobs) keys() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.data))
}

// memoryQueue is queue.Queue and queue.Source.
type memoryQueue struct {
	clock *clock
	wake  chan struct{}

	mu      sync.Mutex
	fail    func(method string) error
	rows    []*message
	receipt int
	sent    []string
}

type message struct {
	queue.Delivery
	at time.Time
}

func newMemoryQueue(c *clock) *memoryQueue {
	return &memoryQueue{clock: c, wake: make(chan struct{}, 1)}
}

func (q *memoryQueue) Send(_ context.Context, messages ...queue.Message) error {
	if err := queue.CheckSend(messages); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail != nil {
		if err := q.fail("Send"); err != nil {
			return err
		}
	}
	for _, m := range messages {
		q.rows = append(q.rows, &message{Delivery: queue.Delivery{ID: m.ID}, at: q.clock.Now().Add(m.Delay)})
		q.sent = append(q.sent, m.ID)
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

func (q *memoryQueue) Receive(_ context.Context, limit int, lease time.Duration) ([]queue.Delivery, error) {
	if err := queue.CheckReceive(limit, lease); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []queue.Delivery
	for _, m := range q.rows {
		if len(out) < limit && !m.at.After(q.clock.Now()) {
			q.receipt++
			m.at, m.Receipt = q.clock.Now().Add(lease), string(rune('A'+q.receipt))
			m.Attempt++
			out = append(out, m.Delivery)
		}
	}
	return out, nil
}

func (q *memoryQueue) Done(_ context.Context, ds ...queue.Delivery) error {
	if err := queue.CheckDone(ds); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range ds {
		q.rows = slices.DeleteFunc(q.rows, func(m *message) bool { return m.Receipt == d.Receipt })
	}
	return nil
}

func (q *memoryQueue) Retry(_ context.Context, d queue.Delivery, after time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.rows {
		if m.Receipt == d.Receipt {
			m.at, m.Receipt = q.clock.Now().Add(after), ""
		}
	}
	return nil
}

func (q *memoryQueue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.rows)
}

var (
	_ Recipients   = (*memory)(nil)
	_ Outbox       = (*memory)(nil)
	_ Mails        = (*memory)(nil)
	_ Blobs        = (*memoryBlobs)(nil)
	_ queue.Queue  = (*memoryQueue)(nil)
	_ queue.Source = (*memoryQueue)(nil)
)

// bench is everything at once, on fakes.
type bench struct {
	clock  *clock
	store  *memory
	blobs  *memoryBlobs
	queue  *memoryQueue
	intake *Intake
	worker *Worker
	log    *bytes.Buffer
	parse  Parse // may be changed between mails
}

func newBench(t testing.TB, opts WorkerOptions) *bench {
	t.Helper()
	c := &clock{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	b := &bench{clock: c, store: newMemory(c), blobs: newMemoryBlobs(), queue: newMemoryQueue(c), log: &bytes.Buffer{}, parse: plain}
	logger := slog.New(slog.NewTextHandler(&lockedWriter{w: b.log}, nil))
	var err error
	b.intake, err = NewIntake(IntakeDeps{Recipients: b.store, Outbox: b.store, Blobs: b.blobs, Queue: b.queue, Logger: logger, Clock: c.Now}, IntakeOptions{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	b.worker, err = NewWorker(WorkerDeps{
		Outbox: b.store, Mails: b.store, Blobs: b.blobs, Queue: b.queue, Logger: logger, Clock: c.Now,
		Parse: func(ctx context.Context, raw []byte) (Reading, error) { return b.parse(ctx, raw) },
	}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// accept takes one mail in and returns the intake.
func (b *bench) accept(t testing.TB, body string, to ...string) inbox.Intake {
	t.Helper()
	id, err := b.intake.Accept(t.Context(), b.incoming(strings.NewReader(body), to...))
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	return b.store.accepted(id)
}

func (b *bench) incoming(body io.Reader, to ...string) inbox.Incoming {
	in := inbox.Incoming{From: "s@example.com", RemoteIP: "192.0.2.1", HELO: "client.example", Body: body}
	for _, t := range to {
		in.Recipients = append(in.Recipients, recipient(t))
	}
	return in
}

// plain is a parser good enough for tests: "Name: value" lines, an empty line, text.
func plain(_ context.Context, raw []byte) (Reading, error) {
	head, text, _ := strings.Cut(string(raw), "\n\n")
	r := Reading{Body: inbox.Body{Text: text}}
	for line := range strings.SplitSeq(head, "\n") {
		name, value, _ := strings.Cut(line, ": ")
		r.Body.Headers = append(r.Body.Headers, inbox.Header{Name: name, Value: value})
		switch name {
		case "Subject":
			r.Content.Subject = value
		case "Message-ID":
			r.Content.MessageID = value
		case "From":
			r.Content.From = append(r.Content.From, inbox.Address{Address: value})
		case "File":
			r.Files = append(r.Files, File{Meta: inbox.Attachment{Filename: value}, Data: []byte("bytes of " + value)})
		}
	}
	return r, nil
}

func jsonOf(t testing.TB, v any) []byte {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
