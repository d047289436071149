package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/inbox"
)

const sample = "Subject: hello\nMessage-ID: <1@x>\nFrom: s@example.com\nFile: a.txt\nFile: b.txt\n\ntext"

func (b *bench) handle(t testing.TB, id string, attempt int) {
	t.Helper()
	if err := b.worker.Handle(t.Context(), id, attempt); err != nil {
		t.Fatalf("handle %s: %v", id, err)
	}
}

func TestOneRecipientIsProcessedAtOnce(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	in := b.accept(t, sample, "agent")
	b.handle(t, in.ID, 1)
	p := b.store.outcome(in.Recipients[0].Email)
	e := p.Email
	if e.Status != inbox.StatusProcessed || e.Content.Subject != "hello" || e.Envelope.To != "agent@acme.test" || e.Pipeline != Version ||
		e.ReceivedAt != in.ReceivedAt || e.ProcessedAt.IsZero() || e.Reason != "" || e.RawKey != in.RawKey {
		t.Errorf("mail %+v", e)
	}
	if p.Body == nil || p.Body.Text != "text" || e.BodyKey != "" {
		t.Errorf("body %+v, key %q", p.Body, e.BodyKey)
	}
	if len(p.Attachments) != 2 || e.Attachments != 2 {
		t.Fatalf("attachments %+v", p.Attachments)
	}
	a := p.Attachments[1]
	if string(b.blobs.data[a.BlobKey]) != "bytes of b.txt" || a.Size != 14 || a.Email != e.ID || a.Inbox != e.Inbox || a.Workspace != e.Workspace || !strings.HasPrefix(a.ID, "att_") {
		t.Errorf("attachment %+v", a)
	}
	if b.store.left() != 0 || len(b.queue.sent) != 1 {
		t.Errorf("%d outbox rows left, sent %v", b.store.left(), b.queue.sent)
	}
}

func TestManyRecipients(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	var to []string
	for i := range 50 {
		to = append(to, fmt.Sprintf("n%d", i))
	}
	in := b.accept(t, sample, to...)
	b.handle(t, in.ID, 1)
	if len(b.queue.sent) != 51 {
		t.Fatalf("%d messages, want one for each mail and the intake's", len(b.queue.sent))
	}
	for _, id := range b.queue.sent[1:] {
		b.handle(t, id, 1)
	}
	for i, d := range in.Recipients {
		if e := b.store.outcome(d.Email).Email; e.Status != inbox.StatusProcessed || e.Inbox != "inbox_"+to[i] || e.Envelope.To != to[i]+"@acme.test" {
			t.Fatalf("mail %d: %+v", i, e)
		}
	}
}

// Every step of the store and the blobs fails once, before or after it took effect, for one recipient and for several. The
// second run ends where an undisturbed one does.
func TestInterruptedAnywhere(t *testing.T) {
	for _, method := range []string{"Intake", "FanOut", "ClaimMail", "Get", "Duplicate", "Put", "Finish"} {
		for _, after := range []bool{false, true} {
			for _, to := range [][]string{{"agent"}, {"agent", "second", "third"}} {
				t.Run(fmt.Sprintf("%s after=%v recipients=%d", method, after, len(to)), func(t *testing.T) {
					b := newBench(t, WorkerOptions{MaxBody: 1})
					in := b.accept(t, sample, to...)
					var once sync.Once
					fail := func(m string) (err error) {
						if m == method {
							once.Do(func() {
								err = apperr.New(apperr.Unavailable, "", "")
								if after {
									err = errAfter
								}
							})
						}
						return err
					}
					b.store.setFail(fail)
					b.blobs.setFail(fail)
					ids := append([]string{in.ID}, b.queue.sent...)
					failures := 0
					for range 2 {
						for _, d := range in.Recipients {
							ids = append(ids, d.Email)
						}
						ids = append(ids, in.ID)
					}
					for _, id := range ids {
						if err := b.worker.Handle(t.Context(), id, 1); err != nil {
							failures++
							if a := DispositionOf(err, 1).Action; a != Wait && a != Retry {
								t.Errorf("disposition %d of %v", a, err)
							}
						}
					}
					// The failure shows as an error, or as a message for the mail alone.
					if again := strings.Count(b.log.String(), "to be tried again"); failures+again != 1 {
						t.Errorf("%d failures and %d retries, want the one injected", failures, again)
					}
					for _, d := range in.Recipients {
						if e := b.store.outcome(d.Email).Email; e.Status != inbox.StatusProcessed || e.BodyKey == "" || e.Attachments != 2 {
							t.Errorf("mail %+v", e)
						}
					}
					if b.store.left() != 0 || b.store.finishes != len(to) {
						t.Errorf("%d rows left, %d finished", b.store.left(), b.store.finishes)
					}
					if want := 1 + len(to)*3; len(b.blobs.keys()) != want {
						t.Errorf("blobs %v, want %d", b.blobs.keys(), want)
					}
				})
			}
		}
	}
}

func TestTwoWorkersOnOneID(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	in := b.accept(t, sample, "agent")
	other, err := NewWorker(b.worker.deps, WorkerOptions{}) // of another process
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		for _, w := range []*Worker{b.worker, other} {
			for _, id := range []string{in.ID, in.Recipients[0].Email} {
				all.Go(func() {
					if err := w.Handle(t.Context(), id, 1); err != nil && apperr.From(err).Code != "in_work" {
						t.Errorf("handle %s: %v", id, err)
					}
				})
			}
		}
	}
	all.Wait()
	if keys := b.blobs.keys(); slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, "try/") }) {
		t.Errorf("traces are left: %v", keys)
	}
	if e := b.store.outcome(in.Recipients[0].Email).Email; e.Status != inbox.StatusProcessed || b.store.finishes != 1 || len(b.store.dropped) != 0 {
		t.Errorf("mail %s, %d finishes, dropped %v", e.Status, b.store.finishes, b.store.dropped)
	}
	b.handle(t, in.ID, 1)
	b.handle(t, in.Recipients[0].Email, 9) // a late delivery must not fail what is finished
	if e := b.store.outcome(in.Recipients[0].Email).Email; e.Status != inbox.StatusProcessed || b.store.finishes != 1 {
		t.Errorf("after redelivery: %s, %d finishes", e.Status, b.store.finishes)
	}
}

// What can't be read is kept, marked with a reason, and over.
func TestUnreadable(t *testing.T) {
	tests := []struct {
		name   string
		parse  Parse
		damage func(*bench, inbox.Intake)
		reason string
	}{
		{name: "parser panics", parse: func(context.Context, []byte) (Reading, error) { panic("secret-canary") }, reason: reasonPanic},
		{name: "parser gives up", parse: func(context.Context, []byte) (Reading, error) { return Reading{}, errors.New("secret-canary") }, reason: reasonUnreadable},
		{name: "parser takes too long", parse: func(ctx context.Context, _ []byte) (Reading, error) {
			<-ctx.Done()
			return Reading{}, fmt.Errorf("scan: %w", ctx.Err())
		}, reason: reasonTimeout},
		{name: "bytes are gone", damage: func(b *bench, in inbox.Intake) { delete(b.blobs.data, in.RawKey) }, reason: reasonRawMissing},
		{name: "bytes were changed", damage: func(b *bench, in inbox.Intake) { b.blobs.data[in.RawKey][0] ^= 1 }, reason: reasonRawDamaged},
		{name: "bytes were cut", damage: func(b *bench, in inbox.Intake) { b.blobs.data[in.RawKey] = nil }, reason: reasonRawDamaged},
		{name: "bytes have grown", damage: func(b *bench, in inbox.Intake) { b.blobs.data[in.RawKey] = append(b.blobs.data[in.RawKey], 'x') }, reason: reasonRawDamaged},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, WorkerOptions{ParseTimeout: time.Millisecond})
			in := b.accept(t, sample, "agent")
			if tt.parse != nil {
				b.parse = tt.parse
			}
			if tt.damage != nil {
				tt.damage(b, in)
			}
			b.handle(t, in.ID, 1)
			e := b.store.outcome(in.Recipients[0].Email).Email
			if e.Status != inbox.StatusFailed || e.Reason != tt.reason || e.RawKey != in.RawKey || e.Pipeline != Version {
				t.Errorf("mail %+v, want failed for %s", e, tt.reason)
			}
			if b.store.left() != 0 {
				t.Error("it would be tried again")
			}
			if strings.Contains(b.log.String(), "canary") {
				t.Errorf("the log quotes the mail: %s", b.log)
			}
		})
	}
}

// A mail that kills its worker at once is given up although each new process meets it as a fresh message of the outbox.
func TestMailThatKillsItsWorkers(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	in := b.accept(t, sample, "agent")
	mail := in.Recipients[0].Email
	tries := 0
	for range 10 {
		dead := make(chan struct{})
		b.parse = func(context.Context, []byte) (Reading, error) {
			tries++
			close(dead)
			<-t.Context().Done() // the process is gone, and never cleans up
			return Reading{}, errors.New("long gone")
		}
		w, err := NewWorker(b.worker.deps, WorkerOptions{ParseTimeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		over := make(chan error, 1)
		go func() {
			err := w.Handle(context.Background(), in.ID, 1)
			if err == nil {
				err = w.Handle(context.Background(), mail, 1)
			}
			over <- err
		}()
		select {
		case <-dead:
		case err := <-over:
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if e := b.store.outcome(mail).Email; e.Status != inbox.StatusFailed || e.Reason != reasonAttempts || tries != 5 {
		t.Errorf("mail %s %s after %d tries, want given up after 5", e.Status, e.Reason, tries)
	}
	if keys := b.blobs.keys(); len(keys) != 1 {
		t.Errorf("blobs %v, want the raw mail alone", keys)
	}
}

// What a batch shares is no mail's fault: neither leases that were used up beside a mail that kills, nor outages, count.
func TestInnocentMail(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	mail := b.accept(t, sample, "agent", "second")
	b.handle(t, mail.ID, 1)
	id := mail.Recipients[0].Email
	b.store.setFail(func(m string) error {
		if m == "Finish" {
			return apperr.New(apperr.Unavailable, "", "")
		}
		return nil
	})
	for attempt := range 20 {
		if err := b.worker.Handle(t.Context(), id, attempt+1); DispositionOf(err, 1).Action != Wait {
			t.Fatalf("handle: %v", err)
		}
	}
	b.store.setFail(nil)
	b.handle(t, id, 50)
	if e := b.store.outcome(id).Email; e.Status != inbox.StatusProcessed {
		t.Errorf("mail %s %s", e.Status, e.Reason)
	}
}

// A mail that failed before is read alone, so that what happens next is known to be its doing.
func TestSuspectIsReadAlone(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	in := b.accept(t, sample, "agent", "second")
	b.handle(t, in.ID, 1)
	suspect, other := in.Recipients[0].Email, in.Recipients[1].Email
	b.blobs.data["try/"+strings.ToLower(suspect)+"/1"] = nil
	alone := false
	b.parse = func(ctx context.Context, raw []byte) (Reading, error) {
		if alone = !b.worker.memory.TryAcquire(1); !alone {
			b.worker.memory.Release(1)
		}
		return plain(ctx, raw)
	}
	b.handle(t, other, 1)
	if alone {
		t.Error("an ordinary mail holds up the others")
	}
	b.handle(t, suspect, 1)
	if !alone {
		t.Error("a suspect was read beside others")
	}
}

func TestEmptyMail(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	in := b.accept(t, "", "agent")
	b.handle(t, in.ID, 1)
	if e := b.store.outcome(in.Recipients[0].Email).Email; e.Status != inbox.StatusProcessed || e.Size != 0 {
		t.Errorf("mail %+v", e)
	}
}

// A worker that is told to stop leaves the mail to the next, and does not mark it.
func TestStoppedWhileReading(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	in := b.accept(t, sample, "agent")
	ctx, cancel := context.WithCancel(t.Context())
	b.parse = func(ctx context.Context, _ []byte) (Reading, error) {
		cancel()
		return Reading{}, ctx.Err()
	}
	err := b.worker.Handle(ctx, in.ID, 1)
	if DispositionOf(err, 1).Action != Wait {
		t.Errorf("Handle = %v, want something to wait for", err)
	}
	b.parse = plain
	b.handle(t, in.Recipients[0].Email, 1)
	if e := b.store.outcome(in.Recipients[0].Email).Email; e.Status != inbox.StatusProcessed {
		t.Errorf("mail %s", e.Status)
	}
}

func TestDuplicates(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	first := b.accept(t, sample, "agent")
	b.handle(t, first.ID, 1)
	mail := first.Recipients[0].Email

	again := b.accept(t, sample, "agent")
	b.handle(t, again.ID, 1)
	if b.store.dropped[again.Recipients[0].Email] != mail {
		t.Errorf("the same bytes were not recognised: %v", b.store.dropped)
	}
	if slices.Contains(b.blobs.keys(), again.RawKey) || !slices.Contains(b.blobs.keys(), first.RawKey) {
		t.Errorf("blobs %v: the copy's bytes must go, the first one's stay", b.blobs.keys())
	}
	b.handle(t, again.ID, 2)

	other := b.accept(t, sample, "second")
	b.handle(t, other.ID, 1)
	if e := b.store.outcome(other.Recipients[0].Email).Email; e.Status != inbox.StatusProcessed || len(e.Warnings) != 0 {
		t.Errorf("another inbox's mail: %+v", e)
	}

	forged := b.accept(t, strings.Replace(sample, "text", "evil", 1), "agent")
	b.handle(t, forged.ID, 1)
	e := b.store.outcome(forged.Recipients[0].Email).Email
	if e.Status != inbox.StatusProcessed || len(e.Warnings) != 1 || e.Warnings[0].Code != "duplicate_message_id" || !strings.Contains(e.Warnings[0].Detail, mail) {
		t.Errorf("same message id, other text: %+v", e)
	}

	both := b.accept(t, sample, "agent", "third")
	b.handle(t, both.ID, 1)
	for _, d := range both.Recipients {
		b.handle(t, d.Email, 1)
	}
	if e := b.store.outcome(both.Recipients[1].Email).Email; e.Status != inbox.StatusProcessed || !slices.Contains(b.blobs.keys(), both.RawKey) {
		t.Errorf("a copy of one recipient took the other's bytes away: %+v", e)
	}
}

// Two copies at once: exactly one is kept.
func TestDuplicatesAtOnce(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	var all sync.WaitGroup
	for range 8 {
		in := b.accept(t, sample, "agent")
		all.Go(func() { b.handle(t, in.ID, 1) })
	}
	all.Wait()
	if b.store.finishes != 1 || len(b.store.dropped) != 7 {
		t.Errorf("%d kept, %d dropped", b.store.finishes, len(b.store.dropped))
	}
}

func TestMessageKey(t *testing.T) {
	base := func() inbox.Email {
		return inbox.Email{Size: 1000, Content: inbox.Content{MessageID: "a", From: []inbox.Address{{Address: "x@y"}}, Date: time.Unix(5, 0)}}
	}
	key := func(change func(*inbox.Email)) string {
		e := base()
		change(&e)
		return (&run{email: e, reading: &Reading{}}).messageKey()
	}
	same := key(func(*inbox.Email) {})
	for name, change := range map[string]func(*inbox.Email){
		"id":   func(e *inbox.Email) { e.Content.MessageID = "b" },
		"from": func(e *inbox.Email) { e.Content.From[0].Address = "z@y" },
		"date": func(e *inbox.Email) { e.Content.Date = time.Unix(6, 0) },
		"size": func(e *inbox.Email) { e.Size = 9000 },
		"text moved from one part to the next": func(e *inbox.Email) {
			e.Content.MessageID, e.Content.From[0].Address = "a3:x", "@y"
		},
	} {
		if key(change) == same {
			t.Errorf("another %s, the same key", name)
		}
	}
	if key(func(e *inbox.Email) { e.Size = 1010; e.Content.From[0].Address = "X@Y" }) != same {
		t.Error("near in size and other in case: another key")
	}
	if key(func(e *inbox.Email) { e.Content.MessageID = "" }) != "" {
		t.Error("no message id: a key")
	}
}

func TestFlags(t *testing.T) {
	tests := []struct {
		name, body, from string
		want             []string
	}{
		{"plain", sample, "s@example.com", nil},
		{"null sender", sample, "", []string{"auto_reply"}},
		{"from itself", "From: AGENT@acme.test\n\n", "s@example.com", []string{"loop"}},
		{"envelope from itself", sample, "agent@ACME.test", []string{"loop"}},
		{"51 hops", strings.Repeat("Received: x\n", 51) + "\n", "s@example.com", []string{"loop"}},
		{"50 hops", strings.Repeat("received: x\n", 50) + "\n", "s@example.com", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, WorkerOptions{})
			in := b.incoming(strings.NewReader(tt.body), "agent")
			in.From = tt.from
			id, err := b.intake.Accept(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			row, _ := b.store.Intake(t.Context(), id)
			b.handle(t, id, 1)
			if got := b.store.outcome(row.Recipients[0].Email).Email.Flags; !slices.Equal(got, tt.want) {
				t.Errorf("flags %v, want %v", got, tt.want)
			}
		})
	}
}

func TestLargeBodyGoesToABlob(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	in := b.accept(t, sample+strings.Repeat("long ", 30000), "agent")
	b.handle(t, in.ID, 1)
	p := b.store.outcome(in.Recipients[0].Email)
	if p.Body != nil || p.Email.BodyKey != "body/"+strings.ToLower(p.Email.ID)+"/1" || !strings.Contains(string(b.blobs.data[p.Email.BodyKey]), "long long") {
		t.Errorf("body %v, key %q", p.Body != nil, p.Email.BodyKey)
	}
}

// However much a sender writes, the row fits, and the mail says that it was cut.
func TestEverythingTooMuch(t *testing.T) {
	b := newBench(t, WorkerOptions{MaxFiles: 3})
	b.parse = func(context.Context, []byte) (Reading, error) {
		long := strings.Repeat("é", 5000)
		r := Reading{Content: inbox.Content{Subject: long, Snippet: long, Sender: &inbox.Address{Name: long}}}
		for range 5000 {
			r.Content.To = append(r.Content.To, inbox.Address{Name: long, Address: long})
			r.Content.CC = append(r.Content.CC, inbox.Address{Name: long, Address: long})
			r.Links = append(r.Links, inbox.Link{URL: "https://example.com/" + long, Text: long})
			r.Warnings = append(r.Warnings, inbox.Warning{Code: "x"})
			r.References = append(r.References, "<1@x>")
			r.Files = append(r.Files, File{})
		}
		r.References[4999] = "<last@x>"
		return r, nil
	}
	in := b.accept(t, sample, "agent")
	b.handle(t, in.ID, 1)
	p := b.store.outcome(in.Recipients[0].Email)
	if n := len(jsonOf(t, p.Email)); n > maxRow+1000 {
		t.Errorf("the row has %d bytes", n)
	}
	if !slices.Contains(p.Email.Flags, "truncated") || len(p.Attachments) != 3 || len(p.References) != maxParent || p.References[maxParent-1] != "<last@x>" {
		t.Errorf("flags %v, %d attachments, %d references", p.Email.Flags, len(p.Attachments), len(p.References))
	}
	if w := p.Email.Warnings; w[len(w)-1].Code != "fields_cut" {
		t.Errorf("last warning %v", w[len(w)-1])
	}
	if s := p.Email.Content.Subject; len(s) > maxText || !strings.HasSuffix(s, "é") {
		t.Errorf("subject of %d bytes", len(s))
	}
}

func TestRowThatTheStoreRefuses(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	in := b.accept(t, sample, "agent")
	first := true
	b.store.setFail(func(m string) error {
		if m == "Finish" && first {
			first = false
			return apperr.New(apperr.TooLarge, "", "")
		}
		return nil
	})
	b.handle(t, in.ID, 1)
	if e := b.store.outcome(in.Recipients[0].Email).Email; e.Status != inbox.StatusFailed || e.Reason != reasonRefused || e.Content.Subject != "" {
		t.Errorf("mail %+v", e)
	}
}

func TestStrangeMessages(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	for _, id := range []string{"", "x", "job_1", "../email_1"} {
		if err := b.worker.Handle(t.Context(), id, 1); DispositionOf(err, 1).Action != DeadLetter {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"intake_unknown", "email_unknown"} {
		b.handle(t, id, 1)
	}
}

func TestPanicOutsideTheParser(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	in := b.accept(t, sample, "agent")
	b.store.setFail(func(m string) error {
		if m == "Duplicate" {
			panic("secret-canary")
		}
		return nil
	})
	if err := b.worker.Handle(t.Context(), in.Recipients[0].Email, 1); err != nil {
		t.Errorf("before the fan-out: %v", err)
	}
	if err := b.worker.Handle(t.Context(), in.ID, 1); DispositionOf(err, 1).Action != Retry {
		t.Errorf("Handle = %v, want a retry that counts", err)
	}
	if strings.Contains(b.log.String(), "canary") {
		t.Error("the log quotes the panic")
	}
}

// The log has ids and kinds, and nothing that a sender or a person wrote.
func TestLogIsDull(t *testing.T) {
	b := newBench(t, WorkerOptions{})
	in := b.accept(t, sample, "agent")
	b.handle(t, in.ID, 1)
	log := b.log.String()
	if !strings.Contains(log, in.Recipients[0].Email) || !strings.Contains(log, "outcome=processed") {
		t.Errorf("log %s", log)
	}
	for _, never := range []string{"@", "hello", "192.0.2.1", "a.txt", "client.example"} {
		if strings.Contains(log, never) {
			t.Errorf("the log has %q: %s", never, log)
		}
	}
}

func TestDispositionOfEveryKind(t *testing.T) {
	for _, k := range apperr.Kinds() {
		if d := DispositionOf(apperr.New(k, "", ""), 1); d.Action < Drop || d.Action > DeadLetter || (d.Action == Retry) != (d.After > 0) {
			t.Errorf("%s: %+v", k, d)
		}
	}
	if DispositionOf(nil, 1).Action != Drop || DispositionOf(errors.New("x"), 1).Action != Retry || DispositionOf(blob.ErrInvalid, 1).Action != Retry {
		t.Error("success is not dropped, or the unknown not retried")
	}
	if a, b := DispositionOf(errors.New("x"), 1).After, DispositionOf(errors.New("x"), 4).After; a != 2*time.Second || b != 16*time.Second {
		t.Errorf("backoff %v, %v", a, b)
	}
	if d := DispositionOf(errors.New("x"), 1<<40).After; d > 10*time.Minute {
		t.Errorf("backoff %v", d)
	}
}
