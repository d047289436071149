package inboxstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// A deleted entry for a sender ends by itself after 30 days, and can be made anew.
func TestDeletedSenderEnds(t *testing.T) {
	w := newWorld(t)
	id := inbox.SenderID(wsA, boxA, inbox.KindDomain, "old.test")
	set := func(deleted time.Time) error {
		_, err := w.UpdateSender(t.Context(), wsA, boxA, id, inbox.Act{}, func(e *inbox.AllowedSender) error {
			e.ID, e.Kind, e.Value, e.DeletedAt = id, inbox.KindDomain, "old.test", deleted
			e.Version++
			return nil
		})
		return err
	}
	w.must(set(time.Time{}))
	w.must(set(w.clock))
	w.clock = w.clock.Add(inbox.Retention - time.Second)
	if e, err := w.Sender(t.Context(), wsA, boxA, id); err != nil || e.DeletedAt.IsZero() {
		t.Fatalf("a second before: %+v, %v", e, err)
	}
	w.clock = w.clock.Add(time.Second)
	if _, err := w.Sender(t.Context(), wsA, boxA, id); err == nil {
		t.Error("it is there still")
	}
	w.must(set(time.Time{}))
	if e, err := w.Sender(t.Context(), wsA, boxA, id); err != nil || e.Version != 1 {
		t.Errorf("anew: %+v, %v", e, err)
	}
}

// The largest purge, of a mail with all that it can have, is one transaction that every engine takes, and leaves nothing.
func TestLargestPurge(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	first := w.run(w.mail(), func(p *inbox.Processed) { p.Email.Content.Subject = "Talk" })
	w.run(w.mail(), func(p *inbox.Processed) { p.References = []string{"<" + first.ID + ">"} })
	e := w.mail()
	w.accept(e)
	claimed, err := w.ClaimMail(ctx, e.ID)
	w.must(err)
	p := result(claimed)
	p.Email.Content.Subject = "Re: Talk"
	p.References = []string{"<unknown-1>", "<" + first.ID + ">", "<unknown-2>"}
	for i := range 2000 {
		p.Attachments = append(p.Attachments, inbox.Attachment{
			ID: fmt.Sprintf("att_%026d", i), Email: e.ID, Inbox: boxA, Workspace: wsA, BlobKey: fmt.Sprintf("att/%s/1/%d", strings.ToLower(e.ID), i),
		})
	}
	w.must(w.Finish(ctx, p, "key of "+e.ID))
	for i := range 6 {
		w.must(w.PutExtraction(ctx, extractionOf(w.stored(e), fmt.Sprintf("t%d", i))))
	}
	w.must(w.Lease(ctx, w.work(e.ID), inbox.Lease{ID: "lease_1", Until: w.clock.Add(10000 * time.Hour)}, inbox.Act{}))
	in, err := w.Inbox(ctx, wsA, boxA)
	w.must(err)
	item, err := w.engine.Get(ctx, store.Key{Table: store.Core, Partition: "inboxes/" + wsA, Sort: boxA})
	w.must(err)
	run := inbox.Purge{Inbox: boxA, Line: inbox.Audit{ID: "aud_00000000000000000000000001", At: w.clock, Organization: orgA, Workspace: wsA}}
	w.engine.most = 0
	purged, err := w.PurgeEmail(ctx, inbox.EmailPurge{
		Workspace: wsA, ID: e.ID, Inbox: &in, Revision: item.Revision, Due: func(inbox.Email) (bool, bool) { return true, true },
	}, &run)
	if err != nil || !purged || run.Emails() != 1 || run.Attachments != 2000 {
		t.Fatalf("purged %v, %+v, %v", purged, run, err)
	}
	if w.engine.most > store.MaxTransactionItems-2 { // by SES its bytes have a row, and a line of the audit is there
		t.Errorf("%d rows in one transaction", w.engine.most)
	}
	due, err := w.PurgeDue(ctx, w.clock.Add(time.Hour), 10)
	if err != nil || len(due) != 1 || len(due[0].Trash.Blobs) != 2000 || len(due[0].Trash.Attachments) != 2000 || len(due[0].Trash.Extractions) != 3 {
		t.Fatalf("%d due, %v", len(due), err)
	}
	w.must(w.EndTrash(ctx, due[0]))
	if rows, _, err := w.Extractions(ctx, inbox.ExtractionRange{Workspace: wsA, Limit: 10}); err != nil || len(rows) != 0 {
		t.Errorf("%d extractions, %v", len(rows), err)
	}
	for _, id := range []string{p.Attachments[0].ID, p.Attachments[1999].ID} {
		_, err := w.Attachment(ctx, wsA, id)
		wantKind(t, err, apperr.NotFound)
	}
	wantKind(t, w.PutExtraction(ctx, extractionOf(e, "late")), apperr.NotFound)
	if thread, err := w.Thread(ctx, wsA, first.Thread); err != nil || thread.Emails != 2 {
		t.Errorf("its thread: %+v, %v", thread, err)
	}
}

func extractionOf(e inbox.Email, template string) inbox.Extraction {
	return inbox.Extraction{
		ID: "extraction_" + template, Workspace: e.Workspace, Inbox: e.Inbox, Email: e.ID, ReceivedAt: e.ReceivedAt, Template: template, Version: 1,
		Status: "ok", Data: []byte("{}"),
	}
}

// The rules of an inbox go with it, and no others.
func TestPurgeOfRules(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for i, box := range []string{boxA, "", boxA} {
		rule := inbox.Rule{ID: fmt.Sprintf("rule_%d", i), Workspace: wsA, Inbox: box, Slug: fmt.Sprintf("r%d", i), Version: 1}
		w.must(w.UpdateRules(ctx, wsA, rule.ID, inbox.Act{}, func(book *inbox.Rulebook, gone *inbox.Rule) error {
			*gone = inbox.Rule{}
			book.Rules = append(book.Rules, rule)
			return nil
		}))
		w.HitRules(ctx, wsA, []inbox.RuleRef{{Rule: rule.ID}})
	}
	in, err := w.Inbox(ctx, wsA, boxA)
	w.must(err)
	for n := 1; n > 0; {
		n, err = w.SweepInbox(ctx, in, 25)
		w.must(err)
	}
	book, _, err := w.Rulebook(ctx, wsA, 0)
	if err != nil || len(book.Rules) != 1 || book.Rules[0].ID != "rule_1" {
		t.Errorf("rules %+v, %v", book.Rules, err)
	}
	if counts, err := w.RuleMatches(ctx, wsA); err != nil || len(counts) != 1 || counts["rule_1"] != 1 {
		t.Errorf("matches %v, %v", counts, err)
	}
}
