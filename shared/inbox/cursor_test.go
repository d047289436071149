package inbox_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

func (w *world) cursor(a inbox.Actor, q inbox.EmailQuery) string {
	w.tb.Helper()
	page, err := w.services.Emails.List(w.tb.Context(), a, q, inbox.PageRequest{Limit: 1})
	w.must(err)
	if page.Next == "" {
		w.tb.Fatal("no cursor")
	}
	return page.Next
}

func TestCursorIsBound(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "a")
	w.receivedAll(in, 3)
	w.receivedAll(w.inbox(globex(), "a"), 3)
	cursor := w.cursor(acme(), inbox.EmailQuery{})
	sibling, colleague := globex(), acme()
	sibling.Workspace, colleague.Subject = wsOther, "user_b"
	flipped := []byte(cursor)
	flipped[len(flipped)/2] ^= 1
	for _, c := range []struct {
		name   string
		actor  inbox.Actor
		q      inbox.EmailQuery
		cursor string
	}{
		{"another organization", globex(), inbox.EmailQuery{}, cursor},
		{"another workspace", sibling, inbox.EmailQuery{}, w.cursor(globex(), inbox.EmailQuery{})},
		{"another person", colleague, inbox.EmailQuery{}, cursor},
		{"another status", acme(), inbox.EmailQuery{Status: inbox.StatusReceived}, cursor},
		{"another inbox", acme(), inbox.EmailQuery{Inbox: "a"}, cursor},
		{"another text", acme(), inbox.EmailQuery{Q: "x"}, cursor},
		{"with deleted", acme(), inbox.EmailQuery{IncludeDeleted: true}, cursor},
		{"a third state", acme(), inbox.EmailQuery{Handled: no()}, cursor},
		{"tampered", acme(), inbox.EmailQuery{}, string(flipped)},
		{"cut", acme(), inbox.EmailQuery{}, cursor[:len(cursor)-1]},
		{"longer", acme(), inbox.EmailQuery{}, cursor + "A"},
		{"a raw key", acme(), inbox.EmailQuery{}, "email_01ARZ3NDEKTSV4RRFFQ69G5FAV"},
		{"NUL", acme(), inbox.EmailQuery{}, "\x00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := w.services.Emails.List(t.Context(), c.actor, c.q, inbox.PageRequest{Cursor: c.cursor})
			wantKind(t, err, apperr.Invalid, "invalid_cursor")
			if len(apperr.From(err).Fixes) == 0 {
				t.Error("no fixes")
			}
		})
	}
	_, err := w.services.Inboxes.List(t.Context(), acme(), inbox.InboxQuery{}, inbox.PageRequest{Cursor: cursor})
	wantKind(t, err, apperr.Invalid, "invalid_cursor")
	if _, err := w.services.Emails.List(t.Context(), acme(), inbox.EmailQuery{}, inbox.PageRequest{Cursor: cursor, Limit: 50}); err != nil {
		t.Errorf("another limit: %v", err)
	}
	w.advance(24*time.Hour + time.Second)
	_, err = w.services.Emails.List(t.Context(), acme(), inbox.EmailQuery{}, inbox.PageRequest{Cursor: cursor})
	wantKind(t, err, apperr.Invalid, "invalid_cursor")
}

// Rows that come or go between two pages neither repeat nor skip a row that stays.
func TestPagesAreStable(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "a")
	w.inbox(globex(), "a")
	mails := w.receivedAll(in, 10)
	page, err := w.services.Emails.List(t.Context(), acme(), inbox.EmailQuery{}, inbox.PageRequest{Limit: 5})
	w.must(err)
	w.receivedAll(in, 4)
	_, err = w.services.Emails.Delete(t.Context(), acme(), page.Rows[4].ID)
	w.must(err)
	rest, err := w.services.Emails.List(t.Context(), acme(), inbox.EmailQuery{}, inbox.PageRequest{Limit: 100, Cursor: page.Next})
	w.must(err)
	if len(rest.Rows) != 5 || rest.Rows[0].ID != mails[4].ID {
		t.Errorf("the second page: %s", ids(rest.Rows))
	}
}

func TestWorkspacesList(t *testing.T) {
	w := newWorld(t)
	rows := []inbox.WorkspaceRow{{ID: wsOther}, {ID: wsAcme}, {ID: wsGlobex}}
	for i, slug := range []string{"second", "third"} {
		id := []string{wsGlobex, wsOther}[i]
		w.must(w.store.CreateWorkspace(t.Context(), inbox.Workspace{ID: id, Organization: orgAcme, Slug: slug, Name: slug}))
	}
	first, next, err := w.services.Workspaces.List(t.Context(), acme(), rows, inbox.PageRequest{Limit: 2})
	w.must(err)
	second, end, err := w.services.Workspaces.List(t.Context(), acme(), rows, inbox.PageRequest{Limit: 2, Cursor: next})
	w.must(err)
	if len(first) != 2 || len(second) != 1 || first[0].ID != wsAcme || second[0].ID != wsOther || end != "" {
		t.Errorf("%v %v %q", first, second, end)
	}
	_, _, err = w.services.Workspaces.List(t.Context(), globex(), rows, inbox.PageRequest{Cursor: next})
	wantKind(t, err, apperr.Invalid, "invalid_cursor")
}

func TestAttachments(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	in := w.inbox(acme(), "a")
	foreign := w.inbox(globex(), "a")
	var want []string
	add := func(p *inbox.Processed, n int) {
		for i := range n {
			a := attachment(p.Email, "file", int64(i))
			if i%10 == 3 {
				a.Kind, a.ContentType, a.DetectedType, a.Filename = "inline", "image/png", "image/png", "Logo.PNG"
			}
			p.Attachments = append(p.Attachments, a)
		}
	}
	for _, n := range []int{3, 130, 1} {
		var of []string
		w.deliver(in, func(p *inbox.Processed) {
			add(p, n)
			for _, a := range p.Attachments {
				of = append(of, a.ID)
			}
		})
		want = append(of, want...)
	}
	theirs := w.deliver(foreign, func(p *inbox.Processed) { add(p, 2) })
	read := func(a inbox.Actor, q inbox.AttachmentQuery, limit int) (got []string) {
		req := inbox.PageRequest{Limit: limit}
		for {
			page, err := w.services.Attachments.List(ctx, a, q, req)
			w.must(err)
			for _, at := range page.Rows {
				got = append(got, at.ID)
			}
			if req.Cursor = page.Next; page.Next == "" {
				return got
			}
		}
	}
	for _, limit := range []int{1, 7, 100} {
		if got := read(acme(), inbox.AttachmentQuery{Inbox: "a"}, limit); !slices.Equal(got, want) {
			t.Errorf("limit %d: %d attachments, want %d in the order of the mails", limit, len(got), len(want))
		}
	}
	middle := w.list(acme(), inbox.EmailQuery{})[1]
	if got := read(acme(), inbox.AttachmentQuery{Email: middle.ID}, 50); !slices.Equal(got, want[1:131]) {
		t.Errorf("of one mail: %d", len(got))
	}
	if got := read(acme(), inbox.AttachmentQuery{Inbox: "a", Kind: "inline", Type: "image/", Name: "logo", MinSize: 50, MaxSize: 80}, 2); len(got) != 3 {
		t.Errorf("filters: %d, want 3", len(got))
	}
	for name, q := range map[string]inbox.AttachmentQuery{
		"neither": {}, "both": {Email: middle.ID, Inbox: "a"}, "sizes crossed": {Inbox: "a", MinSize: 2, MaxSize: 1}, "negative": {Inbox: "a", MinSize: -1},
	} {
		_, err := w.services.Attachments.List(ctx, acme(), q, inbox.PageRequest{})
		if !apperr.Is(err, apperr.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := w.services.Attachments.List(ctx, acme(), inbox.AttachmentQuery{Email: theirs.ID}, inbox.PageRequest{})
	wantKind(t, err, apperr.NotFound, "")
	foreignID := read(globex(), inbox.AttachmentQuery{Inbox: "a"}, 10)[0]
	_, missing := w.services.Attachments.DownloadURL(ctx, acme(), "att_00000000000000000000000009", 0)
	_, err = w.services.Attachments.DownloadURL(ctx, acme(), foreignID, 0)
	sameAnswer(t, "another tenant's attachment", err, missing)
	_, err = w.services.Attachments.Get(ctx, acme(), foreignID)
	sameAnswer(t, "another tenant's metadata", err, missing)
	if one, err := w.services.Attachments.Get(ctx, acme(), want[0]); err != nil || one.ID != want[0] || one.Filename == "" {
		t.Errorf("metadata %+v, %v", one, err)
	}
	d, err := w.services.Attachments.DownloadURL(ctx, acme(), want[0], time.Minute)
	w.must(err)
	if !strings.HasPrefix(d.URL, "https://files.test/blob-") || d.ExpiresAt.Sub(w.now()) != time.Minute {
		t.Errorf("download %+v", d)
	}
	for _, ttl := range []time.Duration{-1, time.Millisecond, 301 * time.Second} {
		_, err := w.services.Attachments.DownloadURL(ctx, acme(), want[0], ttl)
		wantKind(t, err, apperr.Invalid, "")
	}
	_, err = w.services.Emails.Delete(ctx, acme(), w.list(acme(), inbox.EmailQuery{})[0].ID)
	w.must(err)
	_, err = w.services.Attachments.DownloadURL(ctx, acme(), want[0], 0)
	sameAnswer(t, "attachment of a deleted mail", err, missing)
	_, err = w.services.Attachments.Get(ctx, acme(), want[0])
	sameAnswer(t, "metadata in a deleted mail", err, missing)
}

func FuzzCursor(f *testing.F) {
	w := newWorld(f)
	w.receivedAll(w.inbox(acme(), "a"), 3)
	w.receivedAll(w.inbox(globex(), "a"), 3)
	good := w.cursor(acme(), inbox.EmailQuery{})
	f.Add(good)
	f.Add(w.cursor(globex(), inbox.EmailQuery{}))
	f.Add("")
	f.Add(strings.Repeat("A", 3000))
	f.Add(good[:10] + "\x00" + good[10:])
	f.Fuzz(func(t *testing.T, cursor string) {
		page, err := w.services.Emails.List(t.Context(), acme(), inbox.EmailQuery{}, inbox.PageRequest{Cursor: cursor})
		if err != nil {
			wantKind(t, err, apperr.Invalid, "invalid_cursor")
			return
		}
		if cursor != "" && cursor != good {
			t.Errorf("cursor %q was accepted", cursor)
		}
		for _, r := range page.Rows {
			if r.Inbox == "" {
				t.Error("a row of nowhere")
			}
		}
	})
}

func BenchmarkListPage(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		name := "1k"
		if n > 1_000 {
			name = "100k"
		}
		w := newWorld(b)
		in := w.inbox(acme(), "a")
		for range n / 1000 {
			w.receivedAll(in, 1000)
		}
		for _, q := range []struct {
			name string
			q    inbox.EmailQuery
		}{{"workspace", inbox.EmailQuery{}}, {"inbox+status", inbox.EmailQuery{Inbox: in.ID, Status: inbox.StatusReceived}}} {
			b.Run(q.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					// Anywhere in the list, not only at its end.
					q.q.ReceivedBefore = w.now().Add(-1000*time.Hour + time.Duration(30+rand.IntN(n-30))*time.Second)
					page, err := w.services.Emails.List(b.Context(), acme(), q.q, inbox.PageRequest{Limit: 20})
					if err != nil || len(page.Rows) != 20 {
						b.Fatal(len(page.Rows), err)
					}
				}
			})
		}
	}
}
