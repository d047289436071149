package inboxstore_test

import (
	"slices"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// heldIntake is an intake of one mail for an inbox.
func heldIntake(w *world, box string) inbox.Intake {
	e := w.mail()
	e.Inbox = box
	return intake(e)
}

func TestHeldMail(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	const later = "inbox_00000000000000000000000009"
	first, second, other := heldIntake(w, boxA), heldIntake(w, boxA), heldIntake(w, later)
	for _, in := range []inbox.Intake{other, second, first, first} { // the last is a repetition
		w.must(w.Hold(ctx, in))
	}
	ids := func(box string, limit int) (out []string) {
		t.Helper()
		list, err := w.Held(ctx, box, limit)
		w.must(err)
		for _, in := range list {
			out = append(out, in.ID)
		}
		return out
	}
	if got := ids(boxA, 10); !slices.Equal(got, []string{first.ID, second.ID}) {
		t.Errorf("held %v, want the older first", got)
	}
	if got := ids(boxA, 1); !slices.Equal(got, []string{first.ID}) {
		t.Errorf("the first: %v", got)
	}
	if got := ids(boxB, 10); len(got) != 0 {
		t.Errorf("another inbox: %v", got)
	}
	if got := w.pending(); len(got) != 0 {
		t.Errorf("held mail is in the outbox: %v", got)
	}
	walk := []string{}
	for after := ""; ; {
		in, err := w.NextHeld(ctx, after)
		if apperr.Is(err, apperr.NotFound) {
			break
		}
		w.must(err)
		walk, after = append(walk, in.ID), in.Recipients[0].Inbox
	}
	if !slices.Equal(walk, []string{first.ID, other.ID}) {
		t.Errorf("inboxes with held mail: %v", walk)
	}
	w.must(w.Unhold(ctx, first))
	w.must(w.Unhold(ctx, first))
	if got := ids(boxA, 10); !slices.Equal(got, []string{second.ID}) {
		t.Errorf("after one was let go: %v", got)
	}
}

func TestOnlyOneRecipientIsHeld(t *testing.T) {
	w := newWorld(t)
	for _, in := range []inbox.Intake{{ID: "intake_1"}, intake(w.mail(), w.mail())} {
		if w.Hold(t.Context(), in) == nil || w.Unhold(t.Context(), in) == nil {
			t.Errorf("%d recipients were held", len(in.Recipients))
		}
	}
}
