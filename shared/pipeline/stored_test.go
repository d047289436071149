package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// held is Holding.
type held struct {
	rows map[string]inbox.Intake
	fail func(method string) error
}

func (h *held) enter(method string) error {
	if h.fail == nil {
		return nil
	}
	return h.fail(method)
}

func (h *held) sorted() []inbox.Intake {
	return slices.SortedFunc(maps.Values(h.rows), func(a, b inbox.Intake) int {
		return cmp.Or(cmp.Compare(a.Recipients[0].Inbox, b.Recipients[0].Inbox), cmp.Compare(a.ID, b.ID))
	})
}

func (h *held) Hold(_ context.Context, in inbox.Intake) error {
	if err := h.enter("Hold"); err != nil {
		return err
	}
	h.rows[in.ID] = in
	return nil
}

func (h *held) NextHeld(_ context.Context, after string) (inbox.Intake, error) {
	if err := h.enter("NextHeld"); err != nil {
		return inbox.Intake{}, err
	}
	for _, in := range h.sorted() {
		if in.Recipients[0].Inbox > after {
			return in, nil
		}
	}
	return inbox.Intake{}, errNotFound
}

func (h *held) Held(_ context.Context, box string, limit int) ([]inbox.Intake, error) {
	if err := h.enter("Held"); err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(h.sorted(), func(in inbox.Intake) bool { return in.Recipients[0].Inbox != box })
	return list[:min(len(list), limit)], nil
}

func (h *held) Unhold(_ context.Context, in inbox.Intake) error {
	if err := h.enter("Unhold"); err != nil {
		return err
	}
	delete(h.rows, in.ID)
	return nil
}

// stream opens what memoryBlobs has; body replaces it.
type stream struct {
	*memoryBlobs
	body io.Reader
	size int64
}

func (s *stream) Open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	if s.body != nil {
		return io.NopCloser(s.body), s.size, nil
	}
	data, err := s.Get(ctx, key, 1<<40)
	return io.NopCloser(bytes.NewReader(data)), int64(len(data)), err
}

const storedKey = "ses/d6iitobk75ur44p8kdnnp7g2n8"

type storedBench struct {
	*bench
	held   *held
	stream *stream
	due    *Due
}

func newStoredBench(t *testing.T) *storedBench {
	t.Helper()
	b := newBench(t, WorkerOptions{})
	s := &storedBench{bench: b, held: &held{rows: map[string]inbox.Intake{}}, stream: &stream{memoryBlobs: b.blobs}}
	b.blobs.data[storedKey] = []byte(sample)
	log := slog.New(slog.DiscardHandler)
	var err error
	b.intake, err = NewIntake(IntakeDeps{
		Recipients: b.store, Outbox: b.store, Blobs: b.blobs, Queue: b.queue, Logger: log, Clock: b.clock.Now, Stored: s.stream, Holding: s.held,
	}, IntakeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.due, err = NewDue(DueDeps{
		Recipients: s, Outbox: b.store, Holding: s.held, Queue: b.queue, Logger: log, Clock: b.clock.Now,
	}, DueOptions{ResendAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Recipient knows inboxes by their names: those that begin with paused are.
func (s *storedBench) Recipient(_ context.Context, address string) (inbox.Recipient, error) {
	local, _, _ := strings.Cut(address, "@")
	if strings.HasPrefix(local, "gone") {
		return inbox.Recipient{}, errNotFound
	}
	return storedRecipient(local), nil
}

func storedRecipient(local string) inbox.Recipient {
	r := recipient(local)
	if strings.HasPrefix(local, "paused") {
		r.State = inbox.StatePaused
	}
	return r
}

func (s *storedBench) stored(to ...string) inbox.Stored {
	in := inbox.Stored{
		Source: "ses/d6iitobk75ur44p8kdnnp7g2n8", Key: storedKey, ReceivedAt: s.clock.Now().Add(-time.Minute), From: "s@example.com",
		Authentication: []inbox.Authentication{{Method: "spf", Result: "fail", From: "ses"}},
	}
	for _, t := range to {
		in.Recipients = append(in.Recipients, storedRecipient(t))
	}
	return in
}

func (s *storedBench) mustAccept(t *testing.T, in inbox.Stored) []string {
	t.Helper()
	ids, err := s.intake.AcceptStored(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// drain lets the worker do all that is queued.
func (s *storedBench) drain(t *testing.T) {
	t.Helper()
	for len(s.queue.sent) > 0 {
		ids := slices.Clone(s.queue.sent)
		s.queue.sent = nil
		for _, id := range ids {
			if err := s.worker.Handle(t.Context(), id, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAcceptStored(t *testing.T) {
	s := newStoredBench(t)
	ids := s.mustAccept(t, s.stored("agent"))
	if len(ids) != 1 || !slices.Equal(s.queue.sent, ids) {
		t.Fatalf("ids %v, sent %v", ids, s.queue.sent)
	}
	row, sum := s.store.accepted(ids[0]), sha256.Sum256([]byte(sample))
	if row.RawKey != storedKey || row.Size != int64(len(sample)) || row.RawSHA256 != hex.EncodeToString(sum[:]) || !row.Shared ||
		!row.ReceivedAt.Equal(s.clock.Now().Add(-time.Minute)) {
		t.Errorf("row %+v", row)
	}
	s.drain(t)
	got := s.store.outcome(row.Recipients[0].Email).Email
	if got.Status != inbox.StatusProcessed || got.Envelope.From != "s@example.com" || got.Envelope.To != "agent@acme.test" ||
		!reflect.DeepEqual(got.Authentication, []inbox.Authentication{{Method: "spf", Result: "fail", From: "ses"}}) {
		t.Errorf("mail %+v", got)
	}
	if keys := s.blobs.keys(); !slices.Contains(keys, storedKey) {
		t.Errorf("the raw mail is gone: %v", keys)
	}
}

// A notice comes twice, at any time between the two, and the recipients in another order and spelling.
func TestAcceptStoredTwiceMakesOneMail(t *testing.T) {
	for _, when := range []string{"at once", "after the worker"} {
		t.Run(when, func(t *testing.T) {
			s := newStoredBench(t)
			first := s.mustAccept(t, s.stored("agent", "second", "agent"))
			if when == "after the worker" {
				s.drain(t)
			}
			second := s.mustAccept(t, s.stored("second", "agent"))
			s.drain(t)
			if !slices.Equal(first, second) || len(s.store.mails) != 2 || s.store.finishes != 2 || s.store.left() != 0 {
				t.Errorf("%v, then %v: %d mails, %d finishes, %d rows", first, second, len(s.store.mails), s.store.finishes, s.store.left())
			}
		})
	}
}

// An inbox that was made between two notices gets its mail with the second, and the others none twice.
func TestAcceptStoredWithOneRecipientMore(t *testing.T) {
	s := newStoredBench(t)
	s.mustAccept(t, s.stored("agent"))
	s.mustAccept(t, s.stored("agent", "second"))
	s.drain(t)
	if len(s.store.mails) != 2 || s.store.finishes != 2 {
		t.Errorf("%d mails, %d finishes", len(s.store.mails), s.store.finishes)
	}
}

func TestAcceptStoredSplitsManyRecipients(t *testing.T) {
	s := newStoredBench(t)
	var to []string
	for i := range 101 {
		to = append(to, fmt.Sprintf("box%03d", i))
	}
	ids := s.mustAccept(t, s.stored(to...))
	if len(ids) != 3 {
		t.Fatalf("%d intakes", len(ids))
	}
	s.drain(t)
	if len(s.store.mails) != 101 || s.store.finishes != 101 {
		t.Errorf("%d mails, %d finishes", len(s.store.mails), s.store.finishes)
	}
}

// An exact copy is dropped, but the bytes are of more than one intake.
func TestAcceptStoredKeepsTheBytesOfADuplicate(t *testing.T) {
	s := newStoredBench(t)
	s.mustAccept(t, s.stored("agent"))
	again := s.stored("agent")
	again.Source, again.Key = "ses/other", "ses/other"
	s.blobs.data[again.Key] = []byte(sample)
	s.mustAccept(t, again)
	s.drain(t)
	if len(s.store.dropped) != 1 {
		t.Fatalf("dropped %v", s.store.dropped)
	}
	if keys := s.blobs.keys(); !slices.Contains(keys, storedKey) || !slices.Contains(keys, again.Key) {
		t.Errorf("blobs %v", keys)
	}
}

func TestPausedInboxKeepsAndProcessesOnResume(t *testing.T) {
	s := newStoredBench(t)
	ids := s.mustAccept(t, s.stored("agent", "paused-a", "paused-b", "gone-c"))
	if len(ids) != 3 || len(s.held.rows) != 2 || len(s.queue.sent) != 1 {
		t.Fatalf("%d intakes, %d held, sent %v", len(ids), len(s.held.rows), s.queue.sent)
	}
	s.drain(t)
	if s.store.finishes != 2 { // agent's, and that of the inbox that will be deleted
		t.Fatalf("%d mails are finished", s.store.finishes)
	}
	if err := s.due.Run(t.Context()); err != nil || len(s.held.rows) != 2 {
		t.Fatalf("while they are paused: %v, %d held", err, len(s.held.rows))
	}
	resumed := map[string]inbox.Intake{}
	for id, in := range s.held.rows { // paused-b is resumed, and so named otherwise
		if in.Recipients[0].Address == "paused-b@acme.test" {
			in.Recipients[0].Address = "b@acme.test"
		}
		resumed[id] = in
	}
	s.held.rows = resumed
	for range 2 {
		if err := s.due.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.drain(t)
	if len(s.held.rows) != 1 || s.store.finishes != 3 {
		t.Errorf("%d held, %d finished", len(s.held.rows), s.store.finishes)
	}
	// The notice comes once more: what was held already goes the same way, and makes nothing new.
	s.mustAccept(t, s.stored("agent", "paused-a"))
	s.drain(t)
	if len(s.held.rows) != 1 || s.store.finishes != 3 {
		t.Errorf("after a second notice: %d held, %d finished", len(s.held.rows), s.store.finishes)
	}
}

// A deleted inbox's mail is let go, and failures leave it held.
func TestReleaseFailures(t *testing.T) {
	boom := errors.New("boom")
	for _, method := range []string{"NextHeld", "Held", "Unhold", "PutIntake", "Send"} {
		t.Run(method, func(t *testing.T) {
			s := newStoredBench(t)
			s.mustAccept(t, s.stored("paused-a"))
			for id, in := range s.held.rows {
				in.Recipients[0].Address = "gone@acme.test"
				s.held.rows[id] = in
			}
			fail := func(m string) error {
				if m == method {
					return boom
				}
				return nil
			}
			s.held.fail, s.queue.fail = fail, fail
			s.store.setFail(fail)
			if err := s.due.Run(t.Context()); !errors.Is(err, boom) || len(s.held.rows) != 1 {
				t.Errorf("run = %v, %d held", err, len(s.held.rows))
			}
			s.held.fail, s.queue.fail = nil, nil
			s.store.setFail(nil)
			for range 2 { // the look goes on where it stopped, then from the start
				if err := s.due.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			s.drain(t)
			if len(s.held.rows) != 0 || s.store.finishes != 1 {
				t.Errorf("%d held, %d finished", len(s.held.rows), s.store.finishes)
			}
		})
	}
}

func TestDueResends(t *testing.T) {
	s := newStoredBench(t)
	s.queue.fail = func(string) error { return errors.New("away") }
	ids := s.mustAccept(t, s.stored("agent"))
	s.queue.fail = nil
	for _, step := range []struct {
		wait time.Duration
		want int
	}{{time.Minute, 0}, {time.Hour, 1}, {time.Minute, 1}, {resendAgain, 2}} {
		s.clock.add(step.wait)
		if err := s.due.Run(t.Context()); err != nil || len(s.queue.sent) != step.want {
			t.Fatalf("after %v: sent %v, %v", step.wait, s.queue.sent, err)
		}
	}
	if s.queue.sent[0] != ids[0] {
		t.Errorf("sent %v", s.queue.sent)
	}
	s.store.setFail(func(string) error { return errors.New("boom") })
	if s.due.Run(t.Context()) == nil {
		t.Error("an outbox that can't be read is no error")
	}
}

func TestAcceptStoredFailures(t *testing.T) {
	boom := errors.New("secret-canary")
	tests := []struct {
		name  string
		setup func(*storedBench, *inbox.Stored)
		kind  apperr.Kind
		rows  int // left behind; nothing is lost by them
	}{
		{"missing", func(s *storedBench, in *inbox.Stored) { in.Key = "ses/absent" }, apperr.Internal, 0},
		{"store away", func(s *storedBench, _ *inbox.Stored) {
			s.blobs.fail = func(string) error { return blob.ErrUnavailable }
		}, apperr.Unavailable, 0},
		{"shorter than it said", func(s *storedBench, _ *inbox.Stored) {
			s.stream.body, s.stream.size = strings.NewReader("short"), 40
		}, apperr.Unavailable, 0},
		{"longer than it said", func(s *storedBench, _ *inbox.Stored) {
			s.stream.body, s.stream.size = strings.NewReader("longer"), 2
		}, apperr.Unavailable, 0},
		{"cut off", func(s *storedBench, _ *inbox.Stored) {
			s.stream.body, s.stream.size = io.MultiReader(strings.NewReader("x"), iotest.ErrReader(boom)), 2
		}, apperr.Unavailable, 0},
		{"too large", func(s *storedBench, _ *inbox.Stored) {
			s.stream.body, s.stream.size = iotest.ErrReader(boom), MaxStored+1
		}, apperr.TooLarge, 0},
		{"row refused", func(s *storedBench, _ *inbox.Stored) { s.store.setFail(func(string) error { return boom }) }, apperr.Unavailable, 0},
		{"hold refused", func(s *storedBench, in *inbox.Stored) {
			in.Recipients[0].State = inbox.StatePaused
			s.held.fail = func(string) error { return boom }
		}, apperr.Unavailable, 0},
		{"no recipients", func(_ *storedBench, in *inbox.Stored) { in.Recipients = nil }, apperr.Invalid, 0},
		{"no source", func(_ *storedBench, in *inbox.Stored) { in.Source = "" }, apperr.Invalid, 0},
		{"no time", func(_ *storedBench, in *inbox.Stored) { in.ReceivedAt = time.Time{} }, apperr.Invalid, 0},
		{"no key", func(_ *storedBench, in *inbox.Stored) { in.Key = "" }, apperr.Invalid, 0},
		{"a key that climbs", func(_ *storedBench, in *inbox.Stored) { in.Key = "ses/../raw/x" }, apperr.Invalid, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStoredBench(t)
			in := s.stored("agent")
			tt.setup(s, &in)
			ids, err := s.intake.AcceptStored(t.Context(), in)
			if e := apperr.From(err); err == nil || ids != nil || e.Kind != tt.kind || strings.Contains(e.Public, "canary") {
				t.Fatalf("accept = %v %v, want %s", ids, err, tt.kind)
			}
			if DispositionOf(err, 1).Action == Drop {
				t.Error("the queue would drop it")
			}
			if s.store.left() != tt.rows || len(s.queue.sent) != 0 || len(s.held.rows) != 0 {
				t.Errorf("%d rows, %v sent, %d held", s.store.left(), s.queue.sent, len(s.held.rows))
			}
			if !slices.Contains(s.blobs.keys(), storedKey) {
				t.Error("the raw mail is gone")
			}
		})
	}
	b := newBench(t, WorkerOptions{})
	if _, err := b.intake.AcceptStored(t.Context(), inbox.Stored{}); err == nil {
		t.Error("an intake without stored blobs accepted one")
	}
	if _, err := NewDue(DueDeps{}, DueOptions{}); err == nil {
		t.Error("NewDue accepted nothing")
	}
}

// SES gives us an empty object: it is a mail, which nothing can be read of, and it is not dropped.
func TestAcceptStoredEmpty(t *testing.T) {
	s := newStoredBench(t)
	s.blobs.data[storedKey] = nil
	ids := s.mustAccept(t, s.stored("agent"))
	s.drain(t)
	row := s.store.accepted(ids[0])
	if row.Size != 0 || s.store.outcome(row.Recipients[0].Email).Email.Status == "" {
		t.Errorf("row %+v has no outcome", row)
	}
}

func TestFixedIDs(t *testing.T) {
	at := time.Date(2026, 11, 30, 10, 15, 4, 0, time.UTC)
	seen := map[string]bool{}
	for _, parts := range [][]string{{"a", "bc"}, {"ab", "c"}, {"abc"}, {"abc", ""}, {"", "abc"}} {
		id, err := fixedID(prefixEmail, at, parts...)
		again, _ := fixedID(prefixEmail, at, parts...)
		if err != nil || id != again || seen[id] || !inbox.IDTime(id).Equal(at) {
			t.Errorf("%q: %s, %s, %v", parts, id, again, err)
		}
		seen[id] = true
	}
	if _, err := fixedID(prefixEmail, time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), "x"); err == nil {
		t.Error("a time that no id can hold was taken")
	}
}
