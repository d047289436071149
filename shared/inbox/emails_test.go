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

func yes() *bool { b := true; return &b }

func no() *bool { b := false; return &b }

func ids(rows []*inbox.Row) string {
	var out []string
	for _, r := range rows {
		out = append(out, r.ID)
	}
	return strings.Join(out, " ")
}

func TestEmailFilters(t *testing.T) {
	w := newWorld(t)
	a, b, foreign := w.inbox(acme(), "a"), w.inbox(acme(), "b"), w.inbox(globex(), "a")
	plain := w.deliver(a, nil)
	invoice := w.deliver(a, func(p *inbox.Processed) {
		p.Email.Content.Subject, p.Email.Content.Snippet = "Factura ÁRBOL", "please pay"
		p.Email.Content.From = []inbox.Address{{Name: "Billing", Address: "Billing@Shop.test"}}
		p.Email.Labels, p.Email.Category, p.Email.Flags = []string{"invoice"}, "billing", []string{"list"}
		p.Attachments = []inbox.Attachment{attachment(p.Email, "f.pdf", 9)}
	})
	failed := w.deliver(b, func(p *inbox.Processed) { p.Email.Status = inbox.StatusFailed })
	reply := w.deliver(a, func(p *inbox.Processed) { p.References = []string{plain.ID + "@remote.test"} })
	waiting := w.received(b)
	secret := w.deliver(foreign, func(p *inbox.Processed) { p.Email.Content.Subject = "Factura" })
	_, err := w.services.Emails.Update(t.Context(), acme(), failed.ID, inbox.EmailPatch{Handled: inbox.Set(true)})
	w.must(err)
	thread := w.list(acme(), inbox.EmailQuery{Inbox: "a"})[2].Thread

	for _, c := range []struct {
		name string
		q    inbox.EmailQuery
		want []inbox.Email
	}{
		{"workspace", inbox.EmailQuery{}, []inbox.Email{waiting, reply, failed, invoice, plain}},
		{"inbox by slug", inbox.EmailQuery{Inbox: "a"}, []inbox.Email{reply, invoice, plain}},
		{"inbox by id", inbox.EmailQuery{Inbox: b.ID}, []inbox.Email{waiting, failed}},
		{"status", inbox.EmailQuery{Status: inbox.StatusProcessed}, []inbox.Email{reply, invoice, plain}},
		{"inbox and status", inbox.EmailQuery{Inbox: "b", Status: inbox.StatusReceived}, []inbox.Email{waiting}},
		{"thread", inbox.EmailQuery{Thread: thread}, []inbox.Email{reply, plain}},
		{"thread in another inbox", inbox.EmailQuery{Thread: thread, Inbox: "b"}, nil},
		{"q in subject, any case", inbox.EmailQuery{Q: "árbol"}, []inbox.Email{invoice}},
		{"q in snippet", inbox.EmailQuery{Q: "PLEASE"}, []inbox.Email{invoice}},
		{"q in address", inbox.EmailQuery{Q: "shop.test"}, []inbox.Email{invoice}},
		{"from", inbox.EmailQuery{From: "billing"}, []inbox.Email{invoice}},
		{"to", inbox.EmailQuery{To: "b@acme.test"}, []inbox.Email{failed}},
		{"subject", inbox.EmailQuery{Subject: "factura"}, []inbox.Email{invoice}},
		{"label", inbox.EmailQuery{Label: "invoice"}, []inbox.Email{invoice}},
		{"category", inbox.EmailQuery{Category: "billing"}, []inbox.Email{invoice}},
		{"flag", inbox.EmailQuery{Flag: "list"}, []inbox.Email{invoice}},
		{"with attachment", inbox.EmailQuery{HasAttachment: yes()}, []inbox.Email{invoice}},
		{"handled", inbox.EmailQuery{Handled: yes()}, []inbox.Email{failed}},
		{"unhandled, with status", inbox.EmailQuery{Handled: no(), Status: inbox.StatusProcessed}, []inbox.Email{reply, invoice, plain}},
		{"after is exclusive", inbox.EmailQuery{ReceivedAfter: reply.ReceivedAt}, []inbox.Email{waiting}},
		{"before is exclusive", inbox.EmailQuery{ReceivedBefore: invoice.ReceivedAt}, []inbox.Email{plain}},
		{"between", inbox.EmailQuery{ReceivedAfter: plain.ReceivedAt, ReceivedBefore: waiting.ReceivedAt}, []inbox.Email{reply, failed, invoice}},
		{"between nothing", inbox.EmailQuery{ReceivedAfter: waiting.ReceivedAt, ReceivedBefore: plain.ReceivedAt}, nil},
		{"two filters", inbox.EmailQuery{Label: "invoice", Subject: "hello"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []string
			for _, e := range c.want {
				want = append(want, e.ID)
			}
			if got := ids(w.list(acme(), c.q)); got != strings.Join(want, " ") {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	if got := ids(w.list(globex(), inbox.EmailQuery{})); got != secret.ID {
		t.Errorf("globex sees %s", got)
	}
}

func TestEmailListRefuses(t *testing.T) {
	w := newWorld(t)
	theirs := w.inbox(globex(), "theirs")
	for _, c := range []struct {
		name string
		q    inbox.EmailQuery
		p    inbox.PageRequest
		kind apperr.Kind
		code string
	}{
		{"unknown status", inbox.EmailQuery{Status: "ready"}, inbox.PageRequest{}, apperr.Invalid, ""},
		{"limit negative", inbox.EmailQuery{}, inbox.PageRequest{Limit: -1}, apperr.Invalid, ""},
		{"limit huge", inbox.EmailQuery{}, inbox.PageRequest{Limit: 101}, apperr.Invalid, ""},
		{"q huge", inbox.EmailQuery{Q: strings.Repeat("q", 5000)}, inbox.PageRequest{}, apperr.Invalid, ""},
		{"thread with a slash", inbox.EmailQuery{Thread: "thread_/../x"}, inbox.PageRequest{}, apperr.Invalid, ""},
		{"inbox unknown", inbox.EmailQuery{Inbox: "absent"}, inbox.PageRequest{}, apperr.NotFound, ""},
		{"inbox of the other tenant", inbox.EmailQuery{Inbox: theirs.ID}, inbox.PageRequest{}, apperr.NotFound, ""},
		{"slug of the other tenant", inbox.EmailQuery{Inbox: "theirs"}, inbox.PageRequest{}, apperr.NotFound, ""},
		{"inbox hostile", inbox.EmailQuery{Inbox: "../x"}, inbox.PageRequest{}, apperr.NotFound, ""},
		{"cursor junk", inbox.EmailQuery{}, inbox.PageRequest{Cursor: "junk"}, apperr.Invalid, "invalid_cursor"},
		{"cursor huge", inbox.EmailQuery{}, inbox.PageRequest{Cursor: strings.Repeat("c", 9000)}, apperr.Invalid, "invalid_cursor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := w.services.Emails.List(t.Context(), acme(), c.q, c.p)
			wantKind(t, err, c.kind, c.code)
		})
	}
}

func TestHostileIDs(t *testing.T) {
	w := newWorld(t)
	theirs := w.deliver(w.inbox(globex(), "x"), nil)
	_, missing := w.services.Emails.Get(t.Context(), acme(), "email_00000000000000000000000009", inbox.EmailRead{})
	for _, id := range []string{
		theirs.ID, "", ".", "..", "../x", "wait", "%2e", "/", "email_\x00", strings.Repeat("e", 5000), "email_" + strings.Repeat("/", 26),
		strings.ToLower(theirs.ID), "inbox" + theirs.ID[5:], theirs.ID + " ",
	} {
		_, err := w.services.Emails.Get(t.Context(), acme(), id, inbox.EmailRead{})
		sameAnswer(t, fmt.Sprintf("get %.40q", id), err, missing)
		_, err = w.services.Emails.Delete(t.Context(), acme(), id)
		sameAnswer(t, fmt.Sprintf("delete %.40q", id), err, missing)
		_, err = w.services.Emails.Restore(t.Context(), acme(), id)
		sameAnswer(t, fmt.Sprintf("restore %.40q", id), err, missing)
		_, err = w.services.Attachments.List(t.Context(), acme(), inbox.AttachmentQuery{Email: id, Inbox: ""}, inbox.PageRequest{})
		if id != "" {
			sameAnswer(t, fmt.Sprintf("attachments %.40q", id), err, missing)
		}
	}
	if v, err := w.services.Emails.Get(t.Context(), globex(), theirs.ID, inbox.EmailRead{}); err != nil || !v.DeletedAt.IsZero() {
		t.Errorf("the other tenant's mail was touched: %v", err)
	}
}

func TestPagesAndTies(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "a")
	w.inbox(globex(), "a")
	var want []string
	for _, e := range w.receivedAll(in, 30) {
		want = append(want, e.ID)
	}
	slices.Reverse(want)
	for _, limit := range []int{1, 7, 10, 30, 100} {
		var got []string
		req := inbox.PageRequest{Limit: limit}
		for pages := 0; ; pages++ {
			page, err := w.services.Emails.List(t.Context(), acme(), inbox.EmailQuery{}, req)
			w.must(err)
			for _, r := range page.Rows {
				got = append(got, r.ID)
			}
			if req.Cursor = page.Next; page.Next == "" {
				if pages != (30-1)/limit {
					t.Errorf("limit %d: %d pages: a page after the last", limit, pages+1)
				}
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %d rows in another order", limit, len(got))
		}
	}
}

// A list whose filters the keys serve reads one page, however much mail there is.
func TestCostOfAList(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "a")
	foreign := w.inbox(globex(), "a")
	for range 12 {
		w.receivedAll(in, 100)
		w.receivedAll(foreign, 10)
	}
	for name, q := range map[string]inbox.EmailQuery{
		"workspace": {}, "workspace and status": {Status: inbox.StatusReceived},
		"inbox": {Inbox: "a"}, "inbox and status": {Inbox: in.ID, Status: inbox.StatusReceived},
	} {
		w.engine.reset()
		page, err := w.services.Emails.List(t.Context(), acme(), q, inbox.PageRequest{Limit: 20})
		w.must(err)
		if len(page.Rows) != 20 || page.Window != nil || w.engine.reads > 2 || w.engine.rows > 21 {
			t.Errorf("%s: %d rows in %d reads of %d rows, window %v", name, len(page.Rows), w.engine.reads, w.engine.rows, page.Window)
		}
	}
	mail := w.deliver(in, nil)
	w.engine.reset()
	_, err := w.services.Emails.Get(t.Context(), acme(), mail.ID, inbox.EmailRead{Include: []string{"text", "html", "headers"}})
	if w.must(err); w.engine.reads > 2 {
		t.Errorf("emails_get: %d reads", w.engine.reads)
	}
}

func TestWindow(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "a")
	w.receivedAll(w.inbox(globex(), "a"), 5)
	needle := w.deliver(in, func(p *inbox.Processed) { p.Email.Content.Subject = "needle" })
	for range 11 {
		w.receivedAll(in, 100)
	}
	q := inbox.EmailQuery{Subject: "needle"}
	req := inbox.PageRequest{}
	seen, total := 0, 0
	for {
		w.engine.reset()
		page, err := w.services.Emails.List(t.Context(), acme(), q, req)
		w.must(err)
		if page.Window == nil || page.Window.Examined > 400 || w.engine.reads > 5 {
			t.Fatalf("window %+v in %d reads", page.Window, w.engine.reads)
		}
		total += page.Window.Examined
		seen += len(page.Rows)
		if page.Next == "" {
			if !page.Window.Complete || !page.Window.Oldest.Equal(needle.ReceivedAt) {
				t.Errorf("last window %+v, want complete and the oldest mail", page.Window)
			}
			break
		}
		if page.Window.Complete || len(page.Rows) != 0 || page.Window.Oldest.IsZero() {
			t.Errorf("window %+v with %d rows is not the last", page.Window, len(page.Rows))
		}
		req.Cursor = page.Next
	}
	if seen != 1 || total != 1101 {
		t.Errorf("%d found, %d examined; want 1 of 1101", seen, total)
	}
}

// A window that finds more than a page stops at the page and goes on exactly there.
func TestWindowFindsMuch(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "a")
	w.inbox(globex(), "a")
	for range 11 {
		w.receivedAll(in, 100)
	}
	var got []string
	req := inbox.PageRequest{Limit: 70}
	for {
		page, err := w.services.Emails.List(t.Context(), acme(), inbox.EmailQuery{Handled: no()}, req)
		w.must(err)
		for _, r := range page.Rows {
			got = append(got, r.ID)
		}
		if req.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	if !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) || len(got) != 1100 || len(slices.Compact(got)) != 1100 {
		t.Errorf("%d rows, want 1100, each once and in order", len(got))
	}
}

func TestHiddenInboxesMakeAWindow(t *testing.T) {
	w := newWorld(t)
	a, b := w.inbox(acme(), "a"), w.inbox(acme(), "b")
	w.receivedAll(w.inbox(globex(), "a"), 3)
	old := w.received(a)
	for range 6 {
		w.receivedAll(b, 100)
	}
	_, err := w.services.Inboxes.Delete(t.Context(), acme(), b.ID)
	w.must(err)
	page, err := w.services.Emails.List(t.Context(), acme(), inbox.EmailQuery{}, inbox.PageRequest{})
	w.must(err)
	if len(page.Rows) != 0 || page.Next == "" || page.Window == nil || page.Window.Complete {
		t.Fatalf("first window: %d rows, %+v", len(page.Rows), page.Window)
	}
	page, err = w.services.Emails.List(t.Context(), acme(), inbox.EmailQuery{}, inbox.PageRequest{Cursor: page.Next})
	w.must(err)
	if ids(page.Rows) != old.ID || !page.Window.Complete {
		t.Errorf("second window: %s %+v", ids(page.Rows), page.Window)
	}
}

func TestUpdate(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	mail := w.deliver(w.inbox(acme(), "a"), nil)
	v, err := w.services.Emails.Update(ctx, acme(), mail.ID, inbox.EmailPatch{
		AddLabels: []string{"b", "a", "b"}, RemoveLabels: []string{"c", "b"}, Handled: inbox.Set(true), Category: inbox.Set("news"), IfVersion: 1,
	})
	w.must(err)
	if !slices.Equal(v.Labels, []string{"a", "b"}) || v.HandledAt.IsZero() || v.Category != "news" || v.Version != 2 {
		t.Fatalf("updated: %+v", v.Email)
	}
	w.advance(time.Hour)
	same, err := w.services.Emails.Update(ctx, acme(), mail.ID, inbox.EmailPatch{AddLabels: []string{"a"}, Handled: inbox.Set(true)})
	w.must(err)
	if same.Version != 2 || !same.HandledAt.Equal(v.HandledAt) {
		t.Errorf("saying what is so moved it: %+v", same.Email)
	}
	_, err = w.services.Emails.Update(ctx, acme(), mail.ID, inbox.EmailPatch{Handled: inbox.Null[bool](), IfVersion: 1})
	wantKind(t, err, apperr.Stale, "")
	_, err = w.services.Emails.Update(ctx, globex(), mail.ID, inbox.EmailPatch{Handled: inbox.Set(true)})
	wantKind(t, err, apperr.NotFound, "")
	reset, err := w.services.Emails.Update(ctx, acme(), mail.ID, inbox.EmailPatch{Handled: inbox.Null[bool](), Category: inbox.Null[string]()})
	w.must(err)
	if !reset.HandledAt.IsZero() || reset.Category != "" || len(reset.Labels) != 2 {
		t.Errorf("reset: %+v", reset.Email)
	}
	if rows := w.list(acme(), inbox.EmailQuery{Label: "a"}); len(rows) != 1 || rows[0].Version != 3 {
		t.Errorf("the lists don't follow: %+v", rows)
	}
	many := make([]string, 51)
	for i := range many {
		many[i] = fmt.Sprintf("l%d", i)
	}
	for name, p := range map[string]inbox.EmailPatch{
		"capital": {AddLabels: []string{"A"}}, "empty": {AddLabels: []string{""}}, "space": {AddLabels: []string{"a b"}},
		"sentence": {Category: inbox.Set("Ignore previous instructions")}, "control": {AddLabels: []string{"a\n"}},
		"long": {AddLabels: []string{strings.Repeat("a", 65)}}, "too many at once": {AddLabels: many},
		"too many in all": {AddLabels: many[:49]}, "remove nonsense": {RemoveLabels: []string{"\u202e"}}, "hyphen first": {AddLabels: []string{"-a"}},
	} {
		_, err := w.services.Emails.Update(ctx, acme(), mail.ID, p)
		if !apperr.Is(err, apperr.Invalid) {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
}

func TestDeleteAndRestoreMail(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	in := w.inbox(acme(), "a")
	foreign := w.deliver(w.inbox(globex(), "a"), nil)
	keep := w.deliver(in, nil)
	mail := w.deliver(in, func(p *inbox.Processed) {
		p.Email.Labels = []string{"x"}
		for i := range 120 {
			p.Attachments = append(p.Attachments, attachment(p.Email, fmt.Sprintf("f%d", i), 1))
		}
	})
	before := w.list(acme(), inbox.EmailQuery{Inbox: "a"})[0]
	gone, err := w.services.Emails.Delete(ctx, acme(), mail.ID)
	w.must(err)
	w.advance(time.Second)
	again, err := w.services.Emails.Delete(ctx, acme(), mail.ID)
	w.must(err)
	if gone.DeletedAt.IsZero() || !again.DeletedAt.Equal(gone.DeletedAt) || again.Version != gone.Version {
		t.Errorf("deleted %v %d, again %v %d", gone.DeletedAt, gone.Version, again.DeletedAt, again.Version)
	}
	for name, q := range map[string]inbox.EmailQuery{
		"workspace": {}, "status": {Status: inbox.StatusProcessed}, "inbox": {Inbox: "a"},
		"inbox and status": {Inbox: "a", Status: inbox.StatusProcessed}, "label": {Label: "x"}, "thread": {Thread: before.Thread},
	} {
		if got := ids(w.list(acme(), q)); strings.Contains(got, mail.ID) {
			t.Errorf("%s still shows it", name)
		}
		q.IncludeDeleted = true
		if got := ids(w.list(acme(), q)); !strings.Contains(got, mail.ID) {
			t.Errorf("%s with deleted does not show it", name)
		}
	}
	if got := ids(w.list(acme(), inbox.EmailQuery{IncludeDeleted: true, Status: inbox.StatusFailed})); got != "" {
		t.Errorf("deleted mail passes the status filter: %s", got)
	}
	if got := ids(w.list(acme(), inbox.EmailQuery{IncludeDeleted: true})); got != mail.ID+" "+keep.ID {
		t.Errorf("merged order %s", got)
	}
	_, err = w.services.Emails.Get(ctx, acme(), mail.ID, inbox.EmailRead{})
	wantKind(t, err, apperr.NotFound, "")
	_, err = w.services.Emails.Update(ctx, acme(), mail.ID, inbox.EmailPatch{Handled: inbox.Set(true)})
	wantKind(t, err, apperr.NotFound, "")
	atts, err := w.services.Attachments.List(ctx, acme(), inbox.AttachmentQuery{Inbox: "a"}, inbox.PageRequest{})
	w.must(err)
	if len(atts.Rows) != 0 {
		t.Errorf("%d attachments of a deleted mail are listed", len(atts.Rows))
	}
	back, err := w.services.Emails.Restore(ctx, acme(), mail.ID)
	w.must(err)
	if after := w.list(acme(), inbox.EmailQuery{Inbox: "a"})[0]; after.ID != before.ID || after.Thread != before.Thread ||
		!slices.Equal(after.Labels, before.Labels) || after.Attachments != 120 || back.Version != gone.Version+1 {
		t.Errorf("restored %+v, was %+v", after, before)
	}
	counts, err := w.services.Inboxes.Get(ctx, acme(), "a", false)
	w.must(err)
	if c := counts.Counts; c.Processed != 2 || c.Deleted != 0 || c.Received != 2 {
		t.Errorf("counts %+v", c)
	}
	if got := ids(w.list(globex(), inbox.EmailQuery{})); got != foreign.ID {
		t.Errorf("globex sees %s", got)
	}
}

func TestConcurrentUpdates(t *testing.T) {
	w := newWorld(t)
	w.inbox(globex(), "a")
	mail := w.deliver(w.inbox(acme(), "a"), nil)
	const n = 8
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			_, errs[i] = w.services.Emails.Update(t.Context(), acme(), mail.ID, inbox.EmailPatch{AddLabels: []string{fmt.Sprintf("l%d", i)}, IfVersion: 1})
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !apperr.Is(err, apperr.Stale) && !apperr.Is(err, apperr.Conflict):
			t.Error(err)
		}
	}
	rows := w.list(acme(), inbox.EmailQuery{})
	if won != 1 || len(rows[0].Labels) != 1 || rows[0].Version != 2 {
		t.Errorf("%d won, the mail is %+v", won, rows[0])
	}
}
