package inboxstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// A mail that is processed at once is stored as such: who claims it writes nothing, and whoever is told of it hears that it came.
func TestFanOutOfAMailThatIsProcessedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.hook(inbox.EventTypes()...)
	e := w.mail()
	e.Status = inbox.StatusProcessing
	w.accept(e)
	events := w.wantEvents("accepted", "email.received")
	if len(events) != 1 || !strings.Contains(string(events[0].Data), `"status":"received"`) {
		t.Errorf("told of %+v", events)
	}
	if n := len(w.list(inbox.EmailRange{Status: inbox.StatusProcessing})); n != 1 {
		t.Errorf("%d mails are listed as processing", n)
	}
	if n := len(w.list(inbox.EmailRange{Status: inbox.StatusReceived})); n != 0 {
		t.Error("listed as received")
	}
	claimed, err := w.ClaimMail(t.Context(), e.ID)
	w.must(err)
	if claimed.Status != inbox.StatusProcessing || claimed.Version != 1 {
		t.Errorf("claimed as %s, version %d", claimed.Status, claimed.Version)
	}
	if c, err := w.Counts(t.Context(), boxA); err != nil || c.Received != 1 {
		t.Errorf("counts %+v %v", c, err)
	}
	// A worker that read the intake before it was dropped comes late, while the mail is in work and once it is finished.
	w.must(w.FanOut(t.Context(), intake(e), []inbox.Email{e}))
	w.must(w.Finish(t.Context(), result(claimed), ""))
	w.wantEvents("finished", "email.processed")
	w.must(w.FanOut(t.Context(), intake(e), []inbox.Email{e}))
	w.wantEvents("finished, fanned out again")
	if got := w.stored(e); got.Status != inbox.StatusProcessed || len(w.pending()) != 0 {
		t.Errorf("%s, pending %v", got.Status, w.pending())
	}
	if c, err := w.Counts(t.Context(), boxA); err != nil || c.Received != 1 || c.Processed != 1 {
		t.Errorf("counts %+v %v", c, err)
	}
}

// Whatever part of an intake's mails is there already, the run that comes to the end drops the intake's row.
func TestFanOutDropsTheIntake(t *testing.T) {
	for _, n := range []int{1, 7, 8, 50} {
		for _, there := range []int{0, 1, n - 1, n} {
			t.Run(fmt.Sprintf("%d of %d", there, n), func(t *testing.T) {
				w := newWorld(t)
				var mails []inbox.Email
				for range n {
					mails = append(mails, w.mail())
				}
				in := intake(mails...)
				if there > 0 {
					other := in
					other.ID = "intake_" + w.mail().ID[len("email_"):]
					w.must(w.FanOut(t.Context(), other, mails[n-there:]))
				}
				w.must(w.PutIntake(t.Context(), in))
				w.must(w.FanOut(t.Context(), in, mails))
				_, err := w.Intake(t.Context(), in.ID)
				wantKind(t, err, apperr.NotFound)
				var want []string
				for _, e := range mails {
					want = append(want, e.ID)
				}
				if got := w.pending(); !slices.Equal(got, want) || len(w.list(inbox.EmailRange{})) != n {
					t.Errorf("pending %v, %d mails; want %v", got, len(w.list(inbox.EmailRange{})), want)
				}
				if c, err := w.Counts(t.Context(), boxA); err != nil || c.Received != int64(n) {
					t.Errorf("counts %+v %v", c, err)
				}
			})
		}
	}
}

// A run that comes late must not write the attachments of a mail that is finished, also not those that go before the last
// transaction: the mail may have been read again since.
func TestFinishedAttachmentsStay(t *testing.T) {
	for _, n := range []int{1, 2, 3, 25, 300} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t)
			e := w.mail()
			w.accept(e)
			claimed, err := w.ClaimMail(t.Context(), e.ID)
			w.must(err)
			finish := func(name string) {
				p := result(claimed)
				for i := range n {
					p.Attachments = append(p.Attachments, inbox.Attachment{
						ID: fmt.Sprintf("att_%026d", i), Workspace: wsA, Inbox: boxA, Email: e.ID, Filename: name,
					})
				}
				w.must(w.Finish(t.Context(), p, ""))
			}
			finish("first")
			finish("second")
			for i := range n {
				a, err := w.Attachment(t.Context(), wsA, fmt.Sprintf("att_%026d", i))
				w.must(err)
				if a.Filename != "first" {
					t.Fatalf("attachment %d is of the %s run", i, a.Filename)
				}
			}
			rows, _, err := w.Attachments(t.Context(), inbox.AttachmentRange{Workspace: wsA, Inbox: boxA, Limit: 10})
			w.must(err)
			for _, row := range rows {
				if row.Filename != "first" {
					t.Fatalf("a listed one is of the %s run", row.Filename)
				}
			}
		})
	}
}
