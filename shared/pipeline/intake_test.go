package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/inbox"
)

func TestAcceptStoresBytesThenRowThenMessage(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	body := strings.Repeat("Subject: x\r\n", 20000) // several pieces
	in := b.incoming(iotest.OneByteReader(strings.NewReader(body)), "agent", "second")
	in.Repairs = func() []inbox.Warning { return []inbox.Warning{{Code: "bare_lf"}} }
	id, err := b.intake.Accept(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	row, err := b.store.Intake(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(body))
	if row.Size != int64(len(body)) || row.RawSHA256 != hex.EncodeToString(sum[:]) || string(b.blobs.data[row.RawKey]) != body {
		t.Errorf("row %+v does not fit the bytes", row)
	}
	if want := "raw/2026/11/30/" + strings.ToLower(id) + ".eml"; row.RawKey != want {
		t.Errorf("key %s, want %s", row.RawKey, want)
	}
	format := regexp.MustCompile(`^[a-z]+_[0-9A-HJKMNP-TV-Z]{26}$`)
	for _, s := range []string{id, row.Recipients[0].Email, row.Recipients[1].Email} {
		if !format.MatchString(s) {
			t.Errorf("id %s", s)
		}
	}
	if row.Recipients[0].Email >= row.Recipients[1].Email || row.Recipients[1].Inbox != "inbox_second" {
		t.Errorf("deliveries %+v", row.Recipients)
	}
	if row.From != "s@example.com" || row.RemoteIP != "192.0.2.1" || row.HELO != "client.example" || len(row.Repairs) != 1 || !row.ReceivedAt.Equal(b.clock.now) {
		t.Errorf("row %+v", row)
	}
	if len(b.queue.sent) != 1 || b.queue.sent[0] != id {
		t.Errorf("sent %v", b.queue.sent)
	}
}

// What can go wrong before the row: a temporary error, no bytes, no row. After it: accepted, whatever else fails.
func TestAcceptFailures(t *testing.T) {
	boom := errors.New("secret-canary")
	only := func(method string, err error) func(string) error {
		return func(m string) error {
			if m == method {
				return err
			}
			return nil
		}
	}
	tests := []struct {
		name  string
		setup func(*bench)
		body  io.Reader
		kind  apperr.Kind
		code  string
		ok    bool
		kept  bool // bytes stay although nothing was accepted
	}{
		{name: "reader breaks", body: io.MultiReader(strings.NewReader("half"), iotest.ErrReader(boom)), kind: apperr.Unavailable},
		{name: "reader ends unexpectedly", body: io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF)), kind: apperr.Unavailable},
		{name: "too large", body: io.LimitReader(zeros{}, 1<<20+1), kind: apperr.TooLarge},
		{name: "endless", body: zeros{}, kind: apperr.TooLarge},
		{name: "blob store away", setup: func(b *bench) { b.blobs.fail = only("Put", blob.ErrUnavailable) }, kind: apperr.Unavailable},
		{name: "disk full", setup: func(b *bench) {
			b.blobs.fail = only("Put", fmt.Errorf("%w: %w", blob.ErrUnavailable, syscall.ENOSPC))
		}, kind: apperr.Unavailable, code: inbox.CodeStorageFull},
		{name: "bytes stored, answer lost", setup: func(b *bench) { b.blobs.fail = only("Put", errAfter) }, kind: apperr.Unavailable},
		{name: "row refused", setup: func(b *bench) { b.store.fail = only("PutIntake", boom) }, kind: apperr.Unavailable},
		{name: "row refused for want of room", setup: func(b *bench) { b.store.fail = only("PutIntake", syscall.ENOSPC) }, kind: apperr.Unavailable, code: inbox.CodeStorageFull},
		{name: "row stored, answer lost", setup: func(b *bench) { b.store.fail = only("PutIntake", errAfter) }, ok: true},
		{name: "not announced", setup: func(b *bench) { b.store.fail = only("AnnounceIntake", boom) }, kind: apperr.Unavailable},
		{name: "row unknown", setup: func(b *bench) {
			b.store.fail = func(m string) error {
				if m == "AnnounceIntake" {
					return nil
				}
				return boom
			}
		}, kind: apperr.Unavailable, kept: true},
		{name: "row refused, late", setup: func(b *bench) {
			b.store.fail = func(m string) error {
				if m == "PutIntake" {
					b.clock.add(resendAge) // by now a worker may have taken and finished the row
					return boom
				}
				return nil
			}
		}, kind: apperr.Unavailable, kept: true},
		{name: "queue away", setup: func(b *bench) { b.queue.fail = only("Send", boom) }, ok: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, WorkerOptions{})
			if tt.setup != nil {
				tt.setup(b)
			}
			if tt.body == nil {
				tt.body = strings.NewReader("Subject: x\n\nhello")
			}
			_, err := b.intake.Accept(t.Context(), b.incoming(tt.body, "agent"))
			b.blobs.setFail(nil)
			b.store.setFail(nil)
			if tt.ok {
				if err != nil || len(b.blobs.keys()) != 1 || b.store.left() != 1 {
					t.Fatalf("accept = %v; %d blobs, %d rows", err, len(b.blobs.keys()), b.store.left())
				}
				return
			}
			if e := apperr.From(err); err == nil || e.Kind != tt.kind || e.Code != tt.code {
				t.Fatalf("accept = %v, want %s %s", err, tt.kind, tt.code)
			} else if strings.Contains(e.Public, "canary") {
				t.Errorf("public text leaks: %s", e.Public)
			}
			if n := len(b.blobs.keys()); (n == 1) != tt.kept {
				t.Errorf("%d blobs left", n)
			}
			if b.store.left() != 0 || len(b.queue.sent) != 0 {
				t.Errorf("%d rows, %d messages left", b.store.left(), len(b.queue.sent))
			}
			if left := b.intake.budget.left; left != 256<<20 {
				t.Errorf("budget leaks: %d left", left)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestAcceptGoesOnWhenTheCallerLeaves(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	in := b.incoming(strings.NewReader("x"), "agent")
	in.Repairs = func() []inbox.Warning { cancel(); return nil } // after the bytes, before the row
	if _, err := b.intake.Accept(ctx, in); err != nil {
		t.Errorf("accept = %v: the bytes were complete", err)
	}
	if _, err := b.intake.Accept(ctx, b.incoming(strings.NewReader("y"), "agent")); err == nil {
		t.Error("a context that had ended was ignored")
	}
}

func TestAcceptRefusesBadRecipients(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	for _, n := range []int{0, 51} {
		if _, err := b.intake.Accept(t.Context(), b.incoming(strings.NewReader("x"), make([]string, n)...)); !apperr.Is(err, apperr.Invalid) {
			t.Errorf("%d recipients: %v", n, err)
		}
	}
	if len(b.blobs.keys()) != 0 {
		t.Error("bytes were stored")
	}
}

// The memory of all mails that are on their way in is bounded.
func TestAcceptBudget(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	b.intake.budget.left = 40 << 10
	if _, err := b.intake.Accept(t.Context(), b.incoming(strings.NewReader(strings.Repeat("x", 50<<10)), "agent")); apperr.From(err).Code != "busy" {
		t.Errorf("over the budget: %v", err)
	}
	if _, err := b.intake.Accept(t.Context(), b.incoming(strings.NewReader("x"), "agent")); err != nil {
		t.Errorf("within the budget: %v", err)
	}
	if left := b.intake.budget.left; left != 40<<10 {
		t.Errorf("budget leaks: %d left", left)
	}
}

func TestIDsAscend(t *testing.T) {
	ids := MonotonicIDs(nil)
	at, last := time.UnixMilli(1e12), ""
	for range 1000 {
		id, err := ids("email_", at)
		if err != nil {
			t.Fatal(err)
		}
		if id <= last {
			t.Fatalf("%s after %s", id, last)
		}
		last = id
	}
	a, _ := MonotonicIDs(zeros{})("x_", at)
	b, _ := MonotonicIDs(zeros{})("x_", at)
	if a != b {
		t.Errorf("the same entropy gives %s and %s", a, b)
	}
}

func TestNewRefusesMissingDeps(t *testing.T) {
	if _, err := NewIntake(IntakeDeps{}, IntakeOptions{}); err == nil {
		t.Error("NewIntake accepted nothing")
	}
	if _, err := NewWorker(WorkerDeps{Logger: slog.New(slog.DiscardHandler)}, WorkerOptions{}); err == nil {
		t.Error("NewWorker accepted nothing")
	}
	if _, err := NewRunner(RunnerDeps{}, RunnerOptions{}); err == nil {
		t.Error("NewRunner accepted nothing")
	}
}
