package inbox_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
)

func TestUpsertCreatesThenChanges(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	in, created, err := w.services.Inboxes.Upsert(ctx, acme(), inbox.InboxPatch{Slug: "support", DisplayName: inbox.Set("Support")})
	w.must(err)
	if !created || in.Address != "support@acme.test" || in.State != inbox.StateActive || in.Version != 1 {
		t.Fatalf("created %v %+v", created, in)
	}
	again, created, err := w.services.Inboxes.Upsert(ctx, acme(), inbox.InboxPatch{Slug: "support"})
	w.must(err)
	if created || again != in {
		t.Errorf("an upsert that says nothing changed %+v into %+v", in, again)
	}
	paused, _, err := w.services.Inboxes.Upsert(ctx, acme(), inbox.InboxPatch{ID: in.ID, State: inbox.Set(inbox.StatePaused), Retention: inbox.Set(30)})
	w.must(err)
	if paused.State != inbox.StatePaused || paused.DisplayName != "Support" || paused.Retention != 30 || paused.Version != 2 {
		t.Errorf("absent members did not stay: %+v", paused)
	}
	if r, err := w.store.Recipient(ctx, "SUPPORT@acme.test"); err != nil || r.State != inbox.StatePaused {
		t.Errorf("recipient of a paused inbox: %+v %v", r, err)
	}
	reset, _, err := w.services.Inboxes.Upsert(ctx, acme(), inbox.InboxPatch{
		Slug: "support", State: inbox.Null[inbox.State](), DisplayName: inbox.Null[string](), Retention: inbox.Null[int](),
	})
	w.must(err)
	if reset.State != inbox.StateActive || reset.DisplayName != "" || reset.Retention != 0 {
		t.Errorf("null did not reset: %+v", reset)
	}
	// The other tenant's support is another inbox.
	other, created, err := w.services.Inboxes.Upsert(ctx, globex(), inbox.InboxPatch{Slug: "support"})
	w.must(err)
	if !created || other.ID == in.ID || other.Address != "support@globex.test" {
		t.Errorf("globex got %+v", other)
	}
}

func TestUpsertRefuses(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	in := w.inbox(acme(), "taken")
	theirs := w.inbox(globex(), "theirs")
	long := strings.Repeat("a", 64)
	for _, c := range []struct {
		name  string
		patch inbox.InboxPatch
		kind  apperr.Kind
		code  string
	}{
		{"nothing named", inbox.InboxPatch{}, apperr.Invalid, ""},
		{"slug in capitals", inbox.InboxPatch{Slug: "Support"}, apperr.Invalid, ""},
		{"slug with a slash", inbox.InboxPatch{Slug: "a/b"}, apperr.Invalid, ""},
		{"slug starts with a hyphen", inbox.InboxPatch{Slug: "-a"}, apperr.Invalid, ""},
		{"slug too long", inbox.InboxPatch{Slug: long}, apperr.Invalid, ""},
		{"slug with NUL", inbox.InboxPatch{Slug: "a\x00"}, apperr.Invalid, ""},
		{"address of nobody's domain", inbox.InboxPatch{Slug: "x", Address: "x@example.com"}, apperr.Invalid, ""},
		{"address in the other tenant's domain", inbox.InboxPatch{Slug: "x", Address: "x@globex.test"}, apperr.Invalid, ""},
		{"address in a subdomain", inbox.InboxPatch{Slug: "x", Address: "x@sub.acme.test"}, apperr.Invalid, ""},
		{"address with a plus", inbox.InboxPatch{Slug: "x", Address: "x+y@acme.test"}, apperr.Invalid, ""},
		{"address with two dots", inbox.InboxPatch{Slug: "x", Address: "x..y@acme.test"}, apperr.Invalid, ""},
		{"address with a dot at the end", inbox.InboxPatch{Slug: "x", Address: "x.@acme.test"}, apperr.Invalid, ""},
		{"address quoted", inbox.InboxPatch{Slug: "x", Address: `"x y"@acme.test`}, apperr.Invalid, ""},
		{"address without a local part", inbox.InboxPatch{Slug: "x", Address: "@acme.test"}, apperr.Invalid, ""},
		{"address with two at signs", inbox.InboxPatch{Slug: "x", Address: "a@globex.test@acme.test"}, apperr.Invalid, ""},
		{"address with a line break", inbox.InboxPatch{Slug: "x", Address: "a\r\nb@acme.test"}, apperr.Invalid, ""},
		{"local part too long", inbox.InboxPatch{Slug: "x", Address: long + "a@acme.test"}, apperr.Invalid, ""},
		{"address in use", inbox.InboxPatch{Slug: "x", Address: "taken@acme.test"}, apperr.Conflict, "address_taken"},
		{"address changed", inbox.InboxPatch{Slug: "taken", Address: "new@acme.test"}, apperr.Invalid, ""},
		{"slug changed", inbox.InboxPatch{ID: in.ID, Slug: "other"}, apperr.Invalid, ""},
		{"unknown id", inbox.InboxPatch{ID: "inbox_00000000000000000000000009"}, apperr.NotFound, ""},
		{"the other tenant's id", inbox.InboxPatch{ID: theirs.ID, State: inbox.Set(inbox.StatePaused)}, apperr.NotFound, ""},
		{"stale version", inbox.InboxPatch{Slug: "taken", IfVersion: 7}, apperr.Stale, ""},
		{"version of what is not there", inbox.InboxPatch{Slug: "absent", IfVersion: 1}, apperr.Stale, ""},
		{"unknown state", inbox.InboxPatch{Slug: "taken", State: inbox.Set(inbox.State("off"))}, apperr.Invalid, ""},
		{"retention of 0", inbox.InboxPatch{Slug: "taken", Retention: inbox.Set(0)}, apperr.Invalid, ""},
		{"retention of ages", inbox.InboxPatch{Slug: "taken", Retention: inbox.Set(4000)}, apperr.Invalid, ""},
		{"name with bidi", inbox.InboxPatch{Slug: "taken", DisplayName: inbox.Set("a\u202eb")}, apperr.Invalid, ""},
		{"name too long", inbox.InboxPatch{Slug: "taken", DisplayName: inbox.Set(strings.Repeat("x", 129))}, apperr.Invalid, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := w.services.Inboxes.Upsert(ctx, acme(), c.patch)
			wantKind(t, err, c.kind, c.code)
		})
	}
	// What was refused left nothing behind.
	page, err := w.services.Inboxes.List(ctx, acme(), inbox.InboxQuery{}, inbox.PageRequest{})
	w.must(err)
	if len(page.Rows) != 1 || page.Rows[0] != in {
		t.Errorf("after the refusals: %+v", page.Rows)
	}
	got, err := w.services.Inboxes.Get(ctx, globex(), theirs.ID, false)
	w.must(err)
	if got.State != inbox.StateActive {
		t.Error("the other tenant's inbox was changed")
	}
}

func TestUpsertNamesOwnDomainsOnly(t *testing.T) {
	w := newWorld(t)
	_, _, err := w.services.Inboxes.Upsert(t.Context(), acme(), inbox.InboxPatch{Slug: "x", Address: "x@globex.test"})
	fixes := strings.Join(apperr.From(err).Fixes, " ")
	if !strings.Contains(fixes, "acme.test") || strings.Contains(fixes, "globex") {
		t.Errorf("fixes %q: want the own domains and no others", fixes)
	}
}

func TestConcurrentUpsertsCreateOnce(t *testing.T) {
	w := newWorld(t)
	const n = 16
	var wg sync.WaitGroup
	var mu sync.Mutex
	created, ids := 0, map[string]bool{}
	for range n {
		wg.Go(func() {
			in, fresh, err := w.services.Inboxes.Upsert(t.Context(), acme(), inbox.InboxPatch{Slug: "race", DisplayName: inbox.Set("same")})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if fresh {
				created++
			}
			ids[in.ID] = true
		})
	}
	wg.Wait()
	if created != 1 || len(ids) != 1 {
		t.Errorf("%d created, %d ids, want one of each", created, len(ids))
	}
}

func TestDeleteHidesAndRestoreBringsBack(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	in, keep := w.inbox(acme(), "gone"), w.inbox(acme(), "keep")
	other := w.inbox(globex(), "gone")
	mail := w.deliver(in, func(p *inbox.Processed) {
		p.Attachments = []inbox.Attachment{attachment(p.Email, "a.pdf", 5)}
	})
	kept, theirs := w.deliver(keep, nil), w.deliver(other, nil)
	atts, err := w.services.Attachments.List(ctx, acme(), inbox.AttachmentQuery{Email: mail.ID}, inbox.PageRequest{})
	w.must(err)

	deleted, err := w.services.Inboxes.Delete(ctx, acme(), "gone")
	w.must(err)
	if deleted.DeletedAt.IsZero() || inbox.PurgeAt(deleted.DeletedAt).Sub(deleted.DeletedAt) != inbox.Retention {
		t.Fatalf("deleted: %+v", deleted)
	}
	w.advance(1e9)
	if again, err := w.services.Inboxes.Delete(ctx, acme(), in.ID); err != nil || again != deleted {
		t.Errorf("deleting again: %+v %v", again, err)
	}
	_, missing := w.services.Inboxes.Get(ctx, acme(), "absent", false)
	hidden := map[string]func() error{
		"inbox by slug": func() error { _, err := w.services.Inboxes.Get(ctx, acme(), "gone", false); return err },
		"inbox by id":   func() error { _, err := w.services.Inboxes.Get(ctx, acme(), in.ID, false); return err },
		"mail by inbox": func() error {
			_, err := w.services.Emails.List(ctx, acme(), inbox.EmailQuery{Inbox: "gone"}, inbox.PageRequest{})
			return err
		},
		"attachments by inbox": func() error {
			_, err := w.services.Attachments.List(ctx, acme(), inbox.AttachmentQuery{Inbox: in.ID}, inbox.PageRequest{})
			return err
		},
	}
	for name, call := range hidden {
		sameAnswer(t, name, call(), missing)
	}
	_, missing = w.services.Emails.Get(ctx, acme(), "email_00000000000000000000000009", inbox.EmailRead{})
	_, err = w.services.Emails.Get(ctx, acme(), mail.ID, inbox.EmailRead{IncludeDeleted: true})
	sameAnswer(t, "mail", err, missing)
	_, err = w.services.Emails.Update(ctx, acme(), mail.ID, inbox.EmailPatch{Handled: inbox.Set(true)})
	sameAnswer(t, "update of mail", err, missing)
	_, err = w.services.Attachments.DownloadURL(ctx, acme(), atts.Rows[0].ID, 0)
	wantKind(t, err, apperr.NotFound, "")
	if rows := w.list(acme(), inbox.EmailQuery{IncludeDeleted: true}); len(rows) != 1 || rows[0].ID != kept.ID {
		t.Errorf("the workspace shows %d mails, want the one of the other inbox", len(rows))
	}
	if rows := w.list(globex(), inbox.EmailQuery{}); len(rows) != 1 || rows[0].ID != theirs.ID {
		t.Error("the other tenant's mail was hidden too")
	}
	if _, err := w.store.Recipient(ctx, in.Address); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("recipient of a deleted inbox: %v", err)
	}

	// Slug and address stay guarded, so a restore has nothing to collide with.
	_, _, err = w.services.Inboxes.Upsert(ctx, acme(), inbox.InboxPatch{Slug: "gone"})
	wantKind(t, err, apperr.Conflict, "deleted_exists")
	if fixes := strings.Join(apperr.From(err).Fixes, " "); !strings.Contains(fixes, "inboxes_restore") || !strings.Contains(fixes, in.ID) {
		t.Errorf("fixes %q don't say how to restore", fixes)
	}
	_, _, err = w.services.Inboxes.Upsert(ctx, acme(), inbox.InboxPatch{Slug: "new", Address: in.Address})
	wantKind(t, err, apperr.Conflict, "address_taken")

	restored, err := w.services.Inboxes.Restore(ctx, acme(), in.ID)
	w.must(err)
	if !restored.DeletedAt.IsZero() || restored.Version != deleted.Version+1 {
		t.Errorf("restored: %+v", restored)
	}
	if again, err := w.services.Inboxes.Restore(ctx, acme(), "gone"); err != nil || again != restored {
		t.Errorf("restoring again: %+v %v", again, err)
	}
	if rows := w.list(acme(), inbox.EmailQuery{}); len(rows) != 2 {
		t.Errorf("after the restore %d mails, want 2", len(rows))
	}
	if _, err := w.store.Recipient(ctx, in.Address); err != nil {
		t.Error(err)
	}
}

func TestTooManyDeleted(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "last")
	for i := range inboxstore.MaxHidden {
		slug := "d" + strings.Repeat("x", i%20) + string(rune('a'+i/20%26)) + string(rune('a'+i/520))
		x := w.inbox(acme(), slug)
		_, err := w.services.Inboxes.Delete(t.Context(), acme(), x.ID)
		w.must(err)
	}
	_, err := w.services.Inboxes.Delete(t.Context(), acme(), in.ID)
	wantKind(t, err, apperr.Conflict, "too_many_deleted")
	if _, err := w.services.Inboxes.Get(t.Context(), acme(), in.ID, false); err != nil {
		t.Errorf("the refused delete changed something: %v", err)
	}
}

func TestIncludeDeletedIsForAdmins(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	in := w.inbox(acme(), "a")
	w.advance(1e6)
	w.inbox(acme(), "b")
	w.inbox(globex(), "c")
	_, err := w.services.Inboxes.Delete(ctx, acme(), in.ID)
	w.must(err)
	page, err := w.services.Inboxes.List(ctx, acme(), inbox.InboxQuery{IncludeDeleted: true}, inbox.PageRequest{})
	w.must(err)
	if len(page.Rows) != 2 || page.Rows[0].ID != in.ID {
		t.Errorf("with deleted: %+v", page.Rows)
	}
	page, err = w.services.Inboxes.List(ctx, acme(), inbox.InboxQuery{}, inbox.PageRequest{})
	w.must(err)
	if len(page.Rows) != 1 {
		t.Errorf("without deleted: %+v", page.Rows)
	}
	for _, role := range []inbox.Role{inbox.RoleViewer, inbox.RoleOperator, "", "root"} {
		a := acme()
		a.Role = role
		_, err := w.services.Inboxes.List(ctx, a, inbox.InboxQuery{IncludeDeleted: true}, inbox.PageRequest{})
		wantKind(t, err, apperr.Forbidden, "")
		_, err = w.services.Inboxes.Get(ctx, a, in.ID, true)
		wantKind(t, err, apperr.Forbidden, "")
		_, err = w.services.Emails.List(ctx, a, inbox.EmailQuery{IncludeDeleted: true}, inbox.PageRequest{})
		wantKind(t, err, apperr.Forbidden, "")
		_, err = w.services.Emails.Get(ctx, a, "email_00000000000000000000000009", inbox.EmailRead{IncludeDeleted: true})
		wantKind(t, err, apperr.Forbidden, "")
	}
}

func TestInboxPages(t *testing.T) {
	w := newWorld(t)
	var want []string
	for i := range 7 {
		in := w.inbox(acme(), "box"+string(rune('a'+i)))
		w.inbox(globex(), "box"+string(rune('a'+i)))
		want = append(want, in.ID)
		w.advance(1e6)
	}
	var got []string
	req := inbox.PageRequest{Limit: 3}
	for range 4 {
		page, err := w.services.Inboxes.List(t.Context(), acme(), inbox.InboxQuery{}, req)
		w.must(err)
		for _, in := range page.Rows {
			got = append(got, in.ID)
		}
		if req.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("pages %v, want %v", got, want)
	}
	page, err := w.services.Inboxes.List(t.Context(), acme(), inbox.InboxQuery{Q: "BOXC@"}, inbox.PageRequest{})
	w.must(err)
	if len(page.Rows) != 1 || page.Rows[0].ID != want[2] || page.Window == nil || !page.Window.Complete {
		t.Errorf("q: %+v", page)
	}
}
