package inbox_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// said makes a mail of a conversation: from whom, about what, in answer to which.
func said(from, subject string, answers ...inbox.Email) func(*inbox.Processed) {
	return func(p *inbox.Processed) {
		p.Email.Content.From, p.Email.Content.Subject = []inbox.Address{{Address: from}}, subject
		p.Email.Content.Snippet = "snippet of " + subject
		for _, e := range answers {
			p.References = append(p.References, "<"+e.ID+"@remote.test>")
		}
	}
}

func (w *world) threads(a inbox.Actor, q inbox.ThreadQuery) inbox.ThreadPage {
	w.tb.Helper()
	page, err := w.services.Threads.List(w.tb.Context(), a, q, inbox.PageRequest{Limit: 100})
	w.must(err)
	return page
}

// told is what a list says, a line a thread.
func told(rows []inbox.Thread) string {
	var lines []string
	for _, t := range rows {
		lines = append(lines, fmt.Sprintf("%s %d/%d/%d", t.Subject, t.Emails, t.Unhandled, t.Quarantined))
	}
	return strings.Join(lines, "; ")
}

func TestThreadsMove(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	all := func(step, want string) {
		t.Helper()
		if got := told(w.threads(acme(), inbox.ThreadQuery{}).Rows); got != want {
			t.Fatalf("%s: %s, want %s", step, got, want)
		}
		if got := told(w.threads(acme(), inbox.ThreadQuery{Inbox: "support"}).Rows); got != want {
			t.Fatalf("%s, of the inbox: %s, want %s", step, got, want)
		}
	}
	a := w.deliver(in, said("alice@remote.test", "Offer"))
	w.deliver(in, said("bob@remote.test", "Order"))
	all("two", "Order 1/1/0; Offer 1/1/0")
	a2 := w.deliver(in, said("carol@remote.test", "Re: Offer", a))
	all("an answer", "Offer 2/2/0; Order 1/1/0")
	thread := w.threads(acme(), inbox.ThreadQuery{}).Rows[0]
	if thread.Newest() != a2.ID || thread.Snippet != "snippet of Re: Offer" || !thread.StartedAt().Equal(a.ReceivedAt) ||
		!thread.UpdatedAt().Equal(a2.ReceivedAt) || len(thread.Participants) != 2 {
		t.Errorf("thread %+v", thread)
	}
	_, err := w.services.Emails.Update(t.Context(), acme(), a.ID, inbox.EmailPatch{Handled: inbox.Set(true), AddLabels: []string{"x"}})
	w.must(err)
	all("one handled", "Offer 2/1/0; Order 1/1/0")
	_, err = w.services.Emails.Delete(t.Context(), acme(), a2.ID)
	w.must(err)
	all("the newest deleted", "Order 1/1/0; Offer 1/0/0")
	if got := w.threads(acme(), inbox.ThreadQuery{}).Rows[1]; got.Newest() != a.ID || got.Snippet != "snippet of Offer" {
		t.Errorf("after the deletion %+v", got)
	}
	_, err = w.services.Emails.Delete(t.Context(), acme(), a.ID)
	w.must(err)
	all("the last deleted", "Order 1/1/0")
	_, err = w.services.Threads.Get(t.Context(), acme(), thread.ID, inbox.ThreadRead{})
	wantKind(t, err, apperr.NotFound, "")
	_, err = w.services.Emails.Restore(t.Context(), acme(), a2.ID)
	w.must(err)
	all("one restored", "Re: Offer 1/1/0; Order 1/1/0")
	_, err = w.services.Emails.Restore(t.Context(), acme(), a.ID)
	w.must(err)
	all("both restored", "Offer 2/1/0; Order 1/1/0")
	_, err = w.services.Emails.Delete(t.Context(), acme(), a.ID)
	w.must(err)
	all("the first deleted", "Re: Offer 1/1/0; Order 1/1/0")
}

// A mail that is held counts until it is released.
func TestThreadsCountWhatIsHeld(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	held := w.deliver(in, func(p *inbox.Processed) {
		said("eve@remote.test", "Prize")(p)
		p.Email.Status = inbox.StatusQuarantined
	})
	if got := told(w.threads(acme(), inbox.ThreadQuery{}).Rows); got != "Prize 1/1/1" {
		t.Errorf("held: %s", got)
	}
	_, err := w.services.Emails.Release(t.Context(), acme(), held.ID)
	w.must(err)
	if got := told(w.threads(acme(), inbox.ThreadQuery{}).Rows); got != "Prize 1/1/0" {
		t.Errorf("released: %s", got)
	}
}

// Mail of one thread that is finished, handled and deleted at once leaves the counts right.
func TestThreadRaces(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	root := w.deliver(in, said("a@remote.test", "Talk"))
	mails := w.receivedAll(in, 16)
	var all sync.WaitGroup
	for i, e := range mails {
		all.Go(func() {
			w.process(e, said("a@remote.test", "Re: Talk", root))
			var err error
			switch i % 3 {
			case 0:
				_, err = w.services.Emails.Update(t.Context(), acme(), e.ID, inbox.EmailPatch{Handled: inbox.Set(true)})
			case 1:
				_, err = w.services.Emails.Delete(t.Context(), acme(), e.ID)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	rows := w.threads(acme(), inbox.ThreadQuery{}).Rows
	if got := told(rows); got != "Talk 12/6/0" {
		t.Errorf("%s, want 17 - 5 deleted, of them 6 handled", got)
	}
	if rows[0].Newest() != mails[15].ID {
		t.Errorf("the newest is %s, want %s", rows[0].Newest(), mails[15].ID)
	}
}

func TestThreadFilters(t *testing.T) {
	w := newWorld(t)
	in, other := w.inbox(acme(), "support"), w.inbox(acme(), "sales")
	theirs := w.inbox(globex(), "support")
	w.deliver(theirs, said("alice@remote.test", "Foreign"))
	a := w.deliver(in, said("alice@remote.test", "Offer"))
	b := w.deliver(other, said("bob@remote.test", "Order"))
	_, err := w.services.Emails.Update(t.Context(), acme(), b.ID, inbox.EmailPatch{Handled: inbox.Set(true)})
	w.must(err)
	yes, no := true, false
	for name, c := range map[string]struct {
		q    inbox.ThreadQuery
		want string
	}{
		"all":         {inbox.ThreadQuery{}, "Order Offer"},
		"inbox":       {inbox.ThreadQuery{Inbox: "sales"}, "Order"},
		"participant": {inbox.ThreadQuery{Participant: "ALICE"}, "Offer"},
		"own address": {inbox.ThreadQuery{Participant: "acme.test"}, ""},
		"subject":     {inbox.ThreadQuery{Q: "offer"}, "Offer"},
		"snippet":     {inbox.ThreadQuery{Q: "snippet of o"}, "Order Offer"},
		"unhandled":   {inbox.ThreadQuery{Unhandled: &yes}, "Offer"},
		"done":        {inbox.ThreadQuery{Unhandled: &no}, "Order"},
		"after a":     {inbox.ThreadQuery{UpdatedAfter: a.ReceivedAt}, "Order"},
		"after b":     {inbox.ThreadQuery{UpdatedAfter: b.ReceivedAt}, ""},
		"before a":    {inbox.ThreadQuery{UpdatedAfter: a.ReceivedAt.Add(-time.Millisecond)}, "Order Offer"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, row := range w.threads(acme(), c.q).Rows {
				got = append(got, row.Subject)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%v, want %s", got, c.want)
			}
		})
	}
	_, err = w.services.Inboxes.Delete(t.Context(), acme(), "sales")
	w.must(err)
	page := w.threads(acme(), inbox.ThreadQuery{})
	if told(page.Rows) != "Offer 1/1/0" || page.Window == nil {
		t.Errorf("a deleted inbox: %s, %v", told(page.Rows), page.Window)
	}
	for _, thread := range []string{w.stored(b).Thread, "thread_00000000000000000000000001", "x", w.threads(globex(), inbox.ThreadQuery{}).Rows[0].ID} {
		_, err := w.services.Threads.Get(t.Context(), acme(), thread, inbox.ThreadRead{})
		sameAnswer(t, thread, err, inbox.NoThread())
	}
}

func (w *world) stored(e inbox.Email) inbox.Email {
	w.tb.Helper()
	got, _, err := w.store.Email(w.tb.Context(), e.Workspace, e.ID, false)
	w.must(err)
	return got
}

func TestThreadPages(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	var first inbox.Email
	for i := range 7 {
		e := w.deliver(in, said("a@remote.test", fmt.Sprintf("S%d", i)))
		if i == 0 {
			first = e
		}
	}
	var got []string
	p := inbox.PageRequest{Limit: 3}
	for range 4 {
		page, err := w.services.Threads.List(t.Context(), acme(), inbox.ThreadQuery{}, p)
		w.must(err)
		for _, row := range page.Rows {
			got = append(got, row.Subject)
		}
		if p.Cursor = page.Next; p.Cursor == "" {
			break
		}
		w.deliver(in, said("a@remote.test", "Re: S0", first)) // moves to the front, where it was not looked for yet
	}
	if want := "S6 S5 S4 S3 S2 S1"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s: pages that stay as they were", got, want)
	}
	_, err := w.services.Threads.List(t.Context(), acme(), inbox.ThreadQuery{Q: "x"}, inbox.PageRequest{Cursor: "nobody's"})
	wantKind(t, err, apperr.Invalid, "invalid_cursor")
}

func TestThreadGet(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	var mails []inbox.Email
	for i := range 4 {
		fill := said("a@remote.test", "Talk", mails...)
		mails = append(mails, w.deliver(in, func(p *inbox.Processed) {
			fill(p)
			p.Body = &inbox.Body{Text: fmt.Sprintf("%d quoted and all", i), ReplyText: strings.Repeat(fmt.Sprint(i), 10)}
			if i == 0 {
				p.Body.ReplyText = ""
			}
		}))
	}
	_, err := w.services.Emails.Delete(t.Context(), acme(), mails[2].ID)
	w.must(err)
	id := w.stored(mails[0]).Thread
	get := func(r inbox.ThreadRead) inbox.ThreadView {
		t.Helper()
		v, err := w.services.Threads.Get(t.Context(), acme(), id, r)
		w.must(err)
		return v
	}
	texts := func(v inbox.ThreadView) string {
		var out []string
		for _, e := range v.Mail {
			out = append(out, fmt.Sprintf("%s:%s:%t", e.Text.Name, e.Text.Text, e.Text.Truncated || e.Withheld))
		}
		return strings.Join(out, " ")
	}
	v := get(inbox.ThreadRead{})
	if got := texts(v); got != "text:0 quoted and all:false reply_text:1111111111:false reply_text:3333333333:false" || v.Next != "" {
		t.Errorf("all of it: %s", got)
	}
	// 16 characters: 6 for the first of three, then 5 and 5.
	if got := texts(get(inbox.ThreadRead{MaxChars: 16})); got != "text:0 quot:true reply_text:11111:true reply_text:33333:true" {
		t.Errorf("shares: %s", got)
	}
	if got := texts(get(inbox.ThreadRead{MaxChars: 2})); got != "text:0:true reply_text:1:true ::true" {
		t.Errorf("nothing left: %s", got)
	}
	v = get(inbox.ThreadRead{MaxEmails: 2})
	if len(v.Mail) != 2 || v.Next == "" {
		t.Fatalf("two of three: %d, next %q", len(v.Mail), v.Next)
	}
	if v = get(inbox.ThreadRead{MaxEmails: 2, Cursor: v.Next}); len(v.Mail) != 1 || v.Mail[0].ID != mails[3].ID || v.Next != "" {
		t.Errorf("the rest: %d", len(v.Mail))
	}
	for _, r := range []inbox.ThreadRead{{MaxEmails: 51}, {MaxEmails: -1}, {MaxChars: inbox.MaxChars + 1}, {MaxChars: -1}, {Cursor: "x"}} {
		_, err := w.services.Threads.Get(t.Context(), acme(), id, r)
		wantKind(t, err, apperr.Invalid, "")
	}
}

func TestThreadsMasked(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	e := w.deliver(in, func(p *inbox.Processed) {
		said("a@remote.test", "Code 482913")(p)
		p.Email.Codes, p.Email.Content.Snippet = []inbox.Code{{Value: "482913"}}, "use 48 29 13"
		p.Body = &inbox.Body{Text: "482913"}
	})
	w.deliver(in, func(p *inbox.Processed) {
		said("a@remote.test", "Re: Code 482913", e)(p)
		p.Email.Codes, p.Email.Content.Snippet = []inbox.Code{{Value: "771204"}}, "or 771204"
	})
	blind := acme()
	blind.ReadCodes = false
	row := w.threads(blind, inbox.ThreadQuery{}).Rows[0]
	v, err := w.services.Threads.Get(t.Context(), blind, row.ID, inbox.ThreadRead{})
	w.must(err)
	for _, text := range []string{row.Subject, row.Snippet, v.Subject, v.Snippet, v.Mail[0].Subject, v.Mail[0].Text.Text} {
		if strings.Contains(text, "482913") || strings.Contains(text, "771204") || !strings.Contains(text, inbox.Masked) {
			t.Errorf("a code: %q", text)
		}
	}
	if len(row.Secrets)+len(v.Secrets) != 0 || !v.Masked {
		t.Error("the secrets themselves are there")
	}
	if got := w.threads(blind, inbox.ThreadQuery{Q: "4829"}).Rows; len(got) != 0 {
		t.Error("a search told hidden digits")
	}
	if open := w.threads(acme(), inbox.ThreadQuery{Q: "4829"}).Rows; len(open) != 1 || !slices.Contains(open[0].Secrets, "771204") {
		t.Errorf("with codes:read: %+v", open)
	}
}
