package inboxstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/store"
)

func (w *world) act(yes *inbox.Confirmation, action string) inbox.Act {
	w.t.Helper()
	act, err := inbox.SystemAct(w.clock, rand.Reader, "retention", action, orgA, wsA)
	w.must(err)
	act.Confirmed = yes
	return act
}

func (w *world) audit(r inbox.AuditRange) []inbox.AuditEvent {
	w.t.Helper()
	r.Limit = 100
	rows, _, err := w.Events(w.t.Context(), r)
	w.must(err)
	return rows
}

// A line is written with the change: with what is refused, or changes nothing, there is none.
func TestLineIsPartOfTheAct(t *testing.T) {
	w := newWorld(t)
	own := inbox.AuditRange{Organization: orgA, Workspace: wsA}
	change := func(do func(*inbox.Inbox) error) error {
		_, err := w.UpdateInbox(t.Context(), wsA, boxA, w.act(nil, "x"), do)
		return err
	}
	w.must(change(func(*inbox.Inbox) error { return nil }))
	wantKind(t, change(func(*inbox.Inbox) error { return inbox.NoInbox() }), apperr.NotFound)
	w.engine.left = 0
	wantKind(t, change(rename("lost")), apperr.Unavailable)
	w.engine.left = -1
	if got := w.audit(own); len(got) != 0 {
		t.Fatalf("lines of nothing: %+v", got)
	}
	w.must(change(rename("one")))
	w.must(change(rename("two")))
	rows := w.audit(own)
	if len(rows) != 2 {
		t.Fatalf("%d lines", len(rows))
	}
	if rows[0].Before != rows[1].After && rows[1].Before != rows[0].After {
		t.Errorf("the digests of two changes in a row are no chain: %+v", rows)
	}
	for _, r := range []inbox.AuditRange{{Organization: orgA}, {Organization: orgB, Workspace: wsB}, {Organization: orgB}} {
		if got := w.audit(r); len(got) != 0 {
			t.Errorf("lines of %+v: %+v", r, got)
		}
	}
	w.clock = w.clock.Add(inbox.AuditRetention + time.Second)
	if got := w.audit(own); len(got) != 0 {
		t.Errorf("kept for ever: %+v", got)
	}
}

// The digest of a mail does not depend on what its sender wrote: that of a code of six digits is as good as the code.
func TestDigestOfMail(t *testing.T) {
	digests := map[string]bool{}
	for _, code := range []string{"111111", "222222"} {
		w := newWorld(t)
		e := w.mail()
		e.ID = "email_" + e.ID[6:16] + "0000000000000000" // the same in both worlds
		got := w.run(e, func(p *inbox.Processed) {
			p.Email.Codes, p.Email.Content.Subject = []inbox.Code{{Value: code}}, code
			p.Email.Links, p.Email.OtherCodes = []inbox.Link{{URL: "https://x.test/" + code}}, []string{code}
		})
		_, err := w.UpdateEmail(t.Context(), wsA, got.ID, w.act(nil, "x"), func(e *inbox.Email) error {
			e.RawSHA256, e.RawKey, e.Thread, e.Labels = "", "", "", []string{"label"} // what differs by chance
			return nil
		})
		w.must(err)
		for _, line := range w.audit(inbox.AuditRange{Organization: orgA, Workspace: wsA}) {
			digests[line.After] = true
		}
	}
	if len(digests) != 1 {
		t.Errorf("%d digests of mails that differ in what was written", len(digests))
	}
}

// biggest keeps how many ops the last transaction had.
type biggest struct {
	store.Engine
	ops int
}

func (b *biggest) Transact(ctx context.Context, ops ...store.Op) error {
	b.ops = len(ops)
	return b.Engine.Transact(ctx, ops...)
}

// The worst act leaves room in its transaction: 50 items are the bound, an idempotency key and one more must fit.
func TestWorstActFits(t *testing.T) {
	w := newWorld(t)
	got := w.run(w.mail(), func(p *inbox.Processed) {
		for i := range 2000 {
			p.Attachments = append(p.Attachments, inbox.Attachment{ID: fmt.Sprintf("att_%026d", i)})
		}
	})
	if slices.ContainsFunc(got.Warnings, func(x inbox.Warning) bool { return x.Code == "attachments_cut" }) {
		t.Error("2,000 attachments don't fit")
	}
	engine := &biggest{Engine: w.engine}
	st, err := inboxstore.New(engine, w.now)
	w.must(err)
	act := w.act(&inbox.Confirmation{Nonce: "n", Expires: w.clock.Add(time.Minute)}, "emails_delete")
	_, err = st.UpdateEmail(t.Context(), wsA, got.ID, act, func(e *inbox.Email) error { e.DeletedAt = w.clock; return nil })
	w.must(err)
	if engine.ops < 40 || engine.ops > 48-1 {
		t.Errorf("%d ops", engine.ops)
	}
	if _, err := w.engine.Get(t.Context(), store.Key{Table: store.Ephemeral, Partition: "confirmed/n", Sort: "-"}); err != nil {
		t.Errorf("nonce: %v", err)
	}
}

func TestRecord(t *testing.T) {
	w := newWorld(t)
	act := w.act(nil, "attachments_download_url")
	w.must(w.Record(t.Context(), act, "att_1"))
	if err := w.Record(t.Context(), act, "att_1"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a line written over: %v", err)
	}
	w.must(w.Record(t.Context(), inbox.Act{}, "att_1"))
	rows := w.audit(inbox.AuditRange{Organization: orgA, Workspace: wsA})
	if len(rows) != 1 || !slices.Equal(rows[0].Targets, []string{"att_1"}) || rows[0].Before+rows[0].After != "" ||
		rows[0].Actor != (inbox.AuditActor{Type: inbox.ActorSystem, ID: "retention"}) {
		t.Errorf("lines %+v", rows)
	}
	w.engine.left = 0
	wantKind(t, w.Record(t.Context(), w.act(nil, "x"), "att_1"), apperr.Unavailable)
}
