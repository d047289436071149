package inboxstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// yes is a person's yes that is accepted for five minutes.
func yes(w *world, nonce string) inbox.Act {
	return inbox.Act{Confirmed: &inbox.Confirmation{Nonce: nonce, Expires: w.clock.Add(5 * time.Minute)}}
}

func rename(to string) func(*inbox.Inbox) error {
	return func(in *inbox.Inbox) error {
		in.DisplayName, in.Version = to, in.Version+1
		return nil
	}
}

// A yes is remembered for longer than it is accepted, then forgotten.
func TestConfirmationIsKeptLongEnough(t *testing.T) {
	w := newWorld(t)
	first := yes(w, "n1")
	_, err := w.UpdateInbox(t.Context(), wsA, boxA, first, rename("one"))
	w.must(err)
	key := store.Key{Table: store.Ephemeral, Partition: "confirmed/n1", Sort: "-"}
	for _, after := range []time.Duration{0, 5 * time.Minute, time.Hour} {
		w.clock = first.Confirmed.Expires.Add(after - time.Minute)
		_, err = w.UpdateInbox(t.Context(), wsA, boxA, first, func(*inbox.Inbox) error { t.Error("judged the target"); return nil })
		wantKind(t, err, apperr.Conflict)
	}
	w.clock = first.Confirmed.Expires.Add(2 * time.Hour)
	if _, err := w.engine.Get(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("kept for ever: %v", err)
	}
	in, err := w.Inbox(t.Context(), wsA, boxA)
	if err != nil || in.DisplayName != "one" || in.Version != 2 {
		t.Errorf("inbox %+v, %v", in, err)
	}
}

// What changes nothing uses no yes, and neither does what is refused.
func TestConfirmationOfNothing(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*inbox.Inbox) error{
		"no change": func(*inbox.Inbox) error { return nil },
		"refused":   func(*inbox.Inbox) error { return inbox.NoInbox() },
	} {
		_, _ = w.UpdateInbox(t.Context(), wsA, boxA, yes(w, "n1"), change)
		if _, err := w.engine.Get(t.Context(), store.Key{Table: store.Ephemeral, Partition: "confirmed/n1", Sort: "-"}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: used up: %v", name, err)
		}
	}
	if _, err := w.UpdateInbox(t.Context(), wsA, boxA, yes(w, "n1"), rename("one")); err != nil {
		t.Error(err)
	}
}

// Somebody else's write between reading and committing costs a second look, and the yes is still good.
func TestConfirmationSurvivesAConflict(t *testing.T) {
	w := newWorld(t)
	once := true
	got, err := w.UpdateInbox(t.Context(), wsA, boxA, yes(w, "n1"), func(in *inbox.Inbox) error {
		if once {
			once = false
			_, err := w.UpdateInbox(t.Context(), wsA, boxA, inbox.Act{}, rename("other"))
			w.must(err)
		}
		in.State = inbox.StatePaused
		return nil
	})
	if err != nil || got.DisplayName != "other" || got.State != inbox.StatePaused {
		t.Errorf("%+v, %v", got, err)
	}
}
