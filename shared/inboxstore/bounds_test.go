package inboxstore_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// The largest transactions, with all that a mail can bring: its thread moves, it waits for work under somebody's lease, its
// attachments fill every row, the act was confirmed and stands in the audit. One row is left for an idempotency key.
func TestLargestTransactions(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	first := w.run(w.mail(), func(p *inbox.Processed) { p.Email.Content.Subject = "Talk" })
	w.run(w.mail(), func(p *inbox.Processed) { p.References = []string{"<" + first.ID + ">"} })
	audited := func() inbox.Act {
		act, err := inbox.SystemAct(w.clock, rand.Reader, "test", "emails_delete", orgA, wsA)
		w.must(err)
		id, err := inbox.NewID("n", w.clock, rand.Reader)
		w.must(err)
		act.Confirmed = yes(w, id).Confirmed
		return act
	}
	var big inbox.Email
	for _, n := range []int{20, 21, 2000} {
		t.Run(fmt.Sprintf("%d attachments", n), func(t *testing.T) {
			e := w.mail()
			w.accept(e)
			claimed, err := w.ClaimMail(ctx, e.ID)
			w.must(err)
			p := result(claimed)
			p.Email.Content.Subject = "Re: Talk"
			p.References = []string{"<unknown-1>", "<" + first.ID + ">", "<unknown-2>"}
			dear := strings.Repeat("<", 100)
			for i := range n {
				p.Attachments = append(p.Attachments, inbox.Attachment{
					ID: fmt.Sprintf("att_%08d%018d", n, i), Email: e.ID, Inbox: boxA, Workspace: wsA, Filename: dear, FilenameOriginal: dear,
				})
			}
			w.engine.most = 0
			w.must(w.Finish(ctx, p, "key of "+e.ID))
			if w.engine.most > store.MaxTransactionItems-5 {
				t.Errorf("finish: %d rows in one transaction", w.engine.most)
			}
			big = w.stored(e)
			row := w.work(e.ID)
			w.must(w.Lease(ctx, row, inbox.Lease{ID: "lease_1", Until: w.clock.Add(10000 * time.Hour)}, audited()))
			for _, at := range []time.Time{w.clock, {}, w.clock} { // deleted, restored, deleted
				w.engine.most = 0
				_, err := w.UpdateEmail(ctx, wsA, e.ID, audited(), func(e *inbox.Email) error { e.DeletedAt = at; return nil })
				w.must(err)
				if w.engine.most > store.MaxTransactionItems-1 {
					t.Errorf("delete or restore: %d rows in one transaction", w.engine.most)
				}
			}
		})
	}
	if rows, _, err := w.Attachments(ctx, inbox.AttachmentRange{Workspace: wsA, Inbox: boxA, Limit: 1000}); err != nil || len(rows) != 0 {
		t.Errorf("%d attachments of deleted mail, %v", len(rows), err)
	}
	if big.Attachments != 2000 {
		t.Errorf("%d attachments", big.Attachments)
	}
}

// work is a mail as it waits for work.
func (w *world) work(id string) inbox.WorkRow {
	w.t.Helper()
	rows, _, err := w.Work(w.t.Context(), inbox.WorkRange{Workspace: wsA, Inbox: boxA, At: w.clock.Add(1000 * time.Hour), Limit: 1000})
	w.must(err)
	for _, row := range rows {
		if row.ID == id {
			return row
		}
	}
	w.t.Fatalf("%s does not wait", id)
	return inbox.WorkRow{}
}

// A row that was read before the mail changed leases nothing, and neither does one that somebody leased.
func TestLeaseOfWhatWasRead(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	l := inbox.Lease{ID: "lease_1", Until: w.clock.Add(2000 * time.Hour)}
	e := w.run(w.mail(), nil)
	row := w.work(e.ID)
	_, err := w.UpdateEmail(ctx, wsA, e.ID, inbox.Act{}, func(e *inbox.Email) error { e.Labels = []string{"x"}; return nil })
	w.must(err)
	if err := w.Lease(ctx, row, l, inbox.Act{}); !errors.Is(err, inbox.ErrTaken) {
		t.Errorf("changed since: %v", err)
	}
	row = w.work(e.ID)
	if len(row.Labels) != 1 {
		t.Errorf("the row still says %v", row.Labels)
	}
	w.must(w.Lease(ctx, row, l, inbox.Act{}))
	if err := w.Lease(ctx, row, l, inbox.Act{}); !errors.Is(err, inbox.ErrTaken) {
		t.Errorf("leased: %v", err)
	}
	_, err = w.UpdateEmail(ctx, wsA, e.ID, inbox.Act{}, func(e *inbox.Email) error { e.HandledAt = w.clock; return nil })
	w.must(err)
	for _, k := range []store.Key{
		{Table: store.Core, Partition: "work/" + wsA + "/" + boxA, Sort: inbox.Position(l.Until, e.ID)},
		{Table: store.Core, Partition: "mail/" + wsA + "/" + e.ID, Sort: "lease"},
	} {
		if _, err := w.engine.Get(ctx, k); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s %s is left of a mail that is done: %v", k.Partition, k.Sort, err)
		}
	}
}

// Mail that was stored before threads and work had rows can be changed, and waits for work from then on.
func TestRowsOfBefore(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	e := w.run(w.mail(), nil)
	place := inbox.Position(e.ReceivedAt, e.ID)
	for _, k := range []store.Key{
		{Partition: "work/" + wsA + "/" + boxA, Sort: place}, {Partition: "thread/" + wsA, Sort: e.Thread},
		{Partition: "threads/" + wsA, Sort: inbox.Position(e.ReceivedAt, e.Thread)}, {Partition: "threads/" + wsA + "/i/" + boxA, Sort: inbox.Position(e.ReceivedAt, e.Thread)},
	} {
		k.Table = store.Core
		w.must(w.engine.Delete(ctx, k, store.Exists()))
	}
	_, err := w.UpdateEmail(ctx, wsA, e.ID, inbox.Act{}, func(e *inbox.Email) error { e.Labels = []string{"x"}; return nil })
	w.must(err)
	w.work(e.ID)
	_, err = w.UpdateEmail(ctx, wsA, e.ID, inbox.Act{}, func(e *inbox.Email) error { e.HandledAt = w.clock; return nil })
	w.must(err)
	next := w.run(w.mail(), func(p *inbox.Processed) { p.References = []string{"<" + e.ID + ">"} })
	got, err := w.Thread(ctx, wsA, next.Thread)
	if err != nil || next.Thread != e.Thread || got.Emails != 1 {
		t.Errorf("the thread's next mail: %+v, %v", got, err)
	}
	// The mail that was not counted leaves; the row stays for the one that was.
	_, err = w.UpdateEmail(ctx, wsA, e.ID, inbox.Act{}, func(e *inbox.Email) error { e.DeletedAt = w.clock; return nil })
	w.must(err)
	if got, err := w.Thread(ctx, wsA, next.Thread); err != nil || got.Emails != 1 || got.Newest() != next.ID {
		t.Errorf("after it left: %+v, %v", got, err)
	}
}

// A killed process leaves a mail with its thread and its work, or none of the three.
func TestFinishIsWhole(t *testing.T) {
	for left := range 6 {
		w := newWorld(t)
		e := w.mail()
		w.accept(e)
		claimed, err := w.ClaimMail(t.Context(), e.ID)
		w.must(err)
		w.engine.left = left
		_ = w.Finish(t.Context(), result(claimed), "")
		w.engine.left = -1
		got := w.stored(e)
		threads, _, err := w.Threads(t.Context(), inbox.ThreadRange{Workspace: wsA, Limit: 10})
		w.must(err)
		work, _, err := w.Work(t.Context(), inbox.WorkRange{Workspace: wsA, Inbox: boxA, At: w.clock.Add(time.Hour), Limit: 10})
		w.must(err)
		done := 0
		if got.Status == inbox.StatusProcessed {
			done = 1
		}
		if len(threads) != done || len(work) != done {
			t.Errorf("after %d writes: %s, %d threads, %d waiting", left, got.Status, len(threads), len(work))
		}
	}
}
