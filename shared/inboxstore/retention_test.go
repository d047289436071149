package inboxstore_test

import (
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
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
