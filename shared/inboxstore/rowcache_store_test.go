package inboxstore_test

import (
	"fmt"
	"testing"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// What operations change is seen at once: the bytes of the row are others then.
func TestCachedRowsAreNeverOld(t *testing.T) {
	w := newWorld(t)
	in := inbox.Inbox{ID: boxA, Workspace: wsA, Slug: "in"}
	for i := range 3 {
		name := fmt.Sprint("name ", i)
		_, err := w.UpdateInbox(t.Context(), in.Workspace, in.ID, inbox.Act{}, func(in *inbox.Inbox) error {
			in.DisplayName = name
			in.Version++
			return nil
		})
		w.must(err)
		for _, ref := range []string{in.ID, in.Slug} {
			for range 2 {
				got, err := w.Inbox(t.Context(), in.Workspace, ref)
				if err != nil || got.DisplayName != name {
					t.Fatalf("%s is %q, %v; want %q", ref, got.DisplayName, err, name)
				}
				got.DisplayName = "changed by a caller"
			}
		}
	}
}

// A list shows a mail as it is now, however often it was listed before.
func TestListedRowsAreNeverOld(t *testing.T) {
	w := newWorld(t)
	e := w.mail()
	w.accept(e)
	e = w.run(e, nil)
	for i := range 3 {
		label := fmt.Sprint("label-", i)
		_, err := w.UpdateEmail(t.Context(), wsA, e.ID, inbox.Act{}, func(e *inbox.Email) error {
			e.Labels = []string{label}
			return nil
		})
		w.must(err)
		for range 2 {
			if rows := w.list(inbox.EmailRange{Inbox: boxA}); len(rows) != 1 || rows[0].Labels[0] != label {
				t.Fatalf("%v, want one with %s", rows, label)
			}
		}
	}
}
