package inboxstore_test

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

func TestRecipient(t *testing.T) {
	w := newWorld(t)
	r, err := w.Recipient(t.Context(), "IN@Acme.Test")
	w.must(err)
	if r.Inbox != boxA || r.Workspace != wsA || r.Organization != orgA || r.Address != "in@acme.test" {
		t.Errorf("recipient %+v", r)
	}
	for _, address := range []string{"", "absent@acme.test", "in@globex.test ", "in", "in@acme.test\x00", "\xff@acme.test", "in+tag@acme.test", fmt.Sprintf("%0600d@acme.test", 1)} {
		_, err := w.Recipient(t.Context(), address)
		if !apperr.Is(err, apperr.NotFound) {
			t.Errorf("%.20q: %v, want not_found", address, err)
		}
	}
}

func TestOutboxOfAnIntake(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	mails := []inbox.Email{}
	for range 50 {
		mails = append(mails, w.mail())
	}
	in := intake(mails...)
	w.must(w.PutIntake(ctx, in))
	w.must(w.PutIntake(ctx, in))
	got, err := w.Intake(ctx, in.ID)
	w.must(err)
	if len(got.Recipients) != 50 || !slices.Equal(w.pending(), []string{in.ID}) {
		t.Errorf("intake with %d recipients, pending %v", len(got.Recipients), w.pending())
	}
	w.must(w.FanOut(ctx, in, mails))
	_, err = w.Intake(ctx, in.ID)
	wantKind(t, err, apperr.NotFound)
	if n := len(w.list(inbox.EmailRange{})); n != 50 {
		t.Errorf("%d mails", n)
	}
	want := []string{}
	for _, e := range mails {
		want = append(want, e.ID)
	}
	if got := w.pending(); !slices.Equal(got, want) {
		t.Errorf("pending %v, want the mails, oldest first", got)
	}
	some, err := w.Pending(ctx, mails[10].ReceivedAt, 3)
	w.must(err)
	if !slices.Equal(some, want[:3]) {
		t.Errorf("the first three: %v", some)
	}
	if before, err := w.Pending(ctx, mails[2].ReceivedAt, 100); err != nil || !slices.Equal(before, want[:2]) {
		t.Errorf("before the third: %v %v", before, err)
	}
	if len(w.list(inbox.EmailRange{Workspace: wsB})) != 0 {
		t.Error("the other tenant has mail")
	}
}

// Killed at every single write, then run again to the end: the result is the one of a run that was never killed.
func TestKilledAnywhere(t *testing.T) {
	scenario := func(w *world, mails []inbox.Email, atts []inbox.Attachment) error {
		ctx := t.Context()
		in := intake(mails...)
		if _, err := w.Intake(ctx, in.ID); err == nil {
			if err := w.FanOut(ctx, in, mails); err != nil {
				return err
			}
		} else if !apperr.Is(err, apperr.NotFound) {
			return err
		}
		for i, e := range mails {
			claimed, err := w.ClaimMail(ctx, e.ID)
			if apperr.Is(err, apperr.NotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if of, _, err := w.Duplicate(ctx, claimed, ""); err == nil {
				if err := w.Discard(ctx, e.ID, of); err != nil {
					return err
				}
				continue
			} else if !apperr.Is(err, apperr.NotFound) {
				return err
			}
			p := result(claimed)
			if i == 0 {
				p.Attachments = atts
			}
			if err := w.Finish(ctx, p, "key"+e.ID); err != nil {
				return err
			}
		}
		return nil
	}
	var want []inbox.Summary
	for kill := -1; ; kill++ {
		w := newWorld(t)
		mails := make([]inbox.Email, 0, 10)
		for i := range 10 {
			e := w.mail()
			e.ID = fmt.Sprintf("email_01KYMAAAAA%016d", i)
			e.RawSHA256 = fmt.Sprint(i / 2 * 2) // every other one is a duplicate
			mails = append(mails, e)
		}
		var atts []inbox.Attachment
		for i := range 250 {
			atts = append(atts, inbox.Attachment{ID: fmt.Sprintf("att_%026d", i), Workspace: wsA, Inbox: boxA, Email: mails[0].ID, Filename: "f"})
		}
		w.must(w.PutIntake(t.Context(), intake(mails...)))
		w.engine.left = kill
		err := scenario(w, mails, atts)
		w.engine.left = -1
		died := err != nil
		for range 2 { // and once more, for a redelivery after the end
			w.must(scenario(w, mails, atts))
		}
		got := w.list(inbox.EmailRange{})
		if kill < 0 {
			if want = got; len(want) != 5 {
				t.Fatalf("%d mails are left of 10 with 5 duplicates", len(want))
			}
			continue
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("killed at write %d: %v, want %v", kill, got, want)
		}
		if p := w.pending(); len(p) != 0 {
			t.Fatalf("killed at write %d: %v is pending", kill, p)
		}
		rows, _, err := w.Attachments(t.Context(), inbox.AttachmentRange{Workspace: wsA, Inbox: boxA, Limit: 500})
		if err != nil || len(rows) != 250 {
			t.Fatalf("killed at write %d: %d attachments, %v", kill, len(rows), err)
		}
		if !died {
			return
		}
	}
}

func TestClaimAndFinish(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	e := w.mail()
	_, err := w.ClaimMail(ctx, e.ID)
	wantKind(t, err, apperr.NotFound)
	w.accept(e)
	first, err := w.ClaimMail(ctx, e.ID)
	w.must(err)
	second, err := w.ClaimMail(ctx, e.ID)
	w.must(err)
	if first.Status != inbox.StatusProcessing || second.Status != inbox.StatusProcessing {
		t.Errorf("claimed as %s, again as %s", first.Status, second.Status)
	}
	if n := len(w.list(inbox.EmailRange{Status: inbox.StatusReceived})); n != 0 {
		t.Error("still listed as received")
	}
	// Meanwhile an operation labels, handles and deletes it.
	_, err = w.UpdateEmail(ctx, wsA, e.ID, inbox.Act{}, func(e *inbox.Email) error {
		e.Labels, e.Category, e.HandledAt, e.DeletedAt = []string{"mine"}, "mine", w.clock, w.clock
		e.Version++
		return nil
	})
	w.must(err)
	p := result(first)
	p.Email.Labels, p.Email.Category = []string{"rule"}, "rule"
	p.Attachments = []inbox.Attachment{{ID: "att_00000000000000000000000001", Email: e.ID}}
	w.must(w.Finish(ctx, p, ""))
	p.Email.Content.Subject = "another run"
	w.must(w.Finish(ctx, p, ""))
	got := w.stored(e)
	if !slices.Equal(got.Labels, []string{"mine", "rule"}) || got.Category != "mine" || got.HandledAt.IsZero() || got.DeletedAt.IsZero() ||
		got.Version != 2 || got.Status != inbox.StatusProcessed || got.Content.Subject != "Hello" {
		t.Errorf("finished: %+v", got)
	}
	if n := len(w.list(inbox.EmailRange{Status: inbox.StatusProcessed})); n != 0 {
		t.Error("a deleted mail came back into a list")
	}
	if rows := w.list(inbox.EmailRange{Deleted: true}); len(rows) != 1 || rows[0].Subject != "Hello" {
		t.Errorf("deleted list: %+v", rows)
	}
	_, err = w.ClaimMail(ctx, e.ID)
	wantKind(t, err, apperr.NotFound)
	_, body, err := w.Email(ctx, wsA, e.ID, true)
	w.must(err)
	if body == nil || body.Text != "text of "+e.ID {
		t.Errorf("body %+v", body)
	}
	_, _, err = w.Email(ctx, wsB, e.ID, true)
	wantKind(t, err, apperr.NotFound)
	if c, err := w.Counts(ctx, boxA); err != nil || c.Received != 1 || c.Processed != 0 || c.Deleted != 1 {
		t.Errorf("counts %+v %v", c, err)
	}
	if err := w.Finish(ctx, inbox.Processed{Email: first}, ""); err == nil {
		t.Error("finished without a final status")
	}
}

func TestTwoWorkersFinishOneMail(t *testing.T) {
	w := newWorld(t)
	e := w.mail()
	w.accept(e)
	claimed, err := w.ClaimMail(t.Context(), e.ID)
	w.must(err)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			p := result(claimed)
			p.Email.Content.Snippet = fmt.Sprint(i)
			if err := w.Finish(t.Context(), p, "key"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(w.list(inbox.EmailRange{})); n != 1 || len(w.pending()) != 0 {
		t.Errorf("%d rows, pending %v", n, w.pending())
	}
	if c, err := w.Counts(t.Context(), boxA); err != nil || c.Processed != 1 {
		t.Errorf("counts %+v %v", c, err)
	}
}

func TestDuplicate(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	first := w.mail()
	w.run(first, nil)
	_, _, err := w.Duplicate(ctx, first, "k1")
	wantKind(t, err, apperr.NotFound) // itself does not count
	same, resent, elsewhere := w.mail(), w.mail(), w.mail()
	same.RawSHA256 = first.RawSHA256
	elsewhere.RawSHA256, elsewhere.Inbox, elsewhere.Workspace = first.RawSHA256, boxB, wsB
	w.accept(same, resent)
	if id, how, err := w.Duplicate(ctx, same, "other"); err != nil || id != first.ID || how != "raw" {
		t.Errorf("same bytes: %s %s %v", id, how, err)
	}
	if id, how, err := w.Duplicate(ctx, resent, "k1"); err != nil || id != first.ID || how != "message" {
		t.Errorf("same message: %s %s %v", id, how, err)
	}
	_, _, err = w.Duplicate(ctx, elsewhere, "k1")
	wantKind(t, err, apperr.NotFound)

	if err := w.Discard(ctx, resent.ID, resent.ID); err == nil {
		t.Error("a mail was discarded as a duplicate of itself")
	}
	w.must(w.Discard(ctx, resent.ID, first.ID))
	w.must(w.Discard(ctx, resent.ID, first.ID))
	blank, other := w.mail(), w.mail()
	blank.RawSHA256, other.RawSHA256 = "", ""
	for _, e := range []inbox.Email{blank, other} {
		_, _, err = w.Duplicate(ctx, e, "")
		wantKind(t, err, apperr.NotFound)
	}
	_, _, err = w.Email(ctx, wsA, resent.ID, true)
	wantKind(t, err, apperr.NotFound)
	// The discarded mail's bytes lead to the one that was kept.
	third := w.mail()
	third.RawSHA256 = resent.RawSHA256
	if id, how, err := w.Duplicate(ctx, third, ""); err != nil || id != first.ID || how != "raw" {
		t.Errorf("bytes of a discarded mail: %s %s %v", id, how, err)
	}
	// A fan-out that is repeated does not bring it back.
	w.must(w.FanOut(ctx, intake(resent), []inbox.Email{resent}))
	_, err = w.ClaimMail(ctx, resent.ID)
	wantKind(t, err, apperr.NotFound)
	if rows := w.list(inbox.EmailRange{}); len(rows) != 2 {
		t.Errorf("%d mails, want the first and the one not discarded yet", len(rows))
	}
	// Deleted mail counts.
	_, err = w.UpdateEmail(ctx, wsA, first.ID, inbox.Act{}, func(e *inbox.Email) error { e.DeletedAt = w.clock; return nil })
	w.must(err)
	if id, _, err := w.Duplicate(ctx, same, ""); err != nil || id != first.ID {
		t.Errorf("of a deleted mail: %s %v", id, err)
	}
}

func TestEqualMailsAtOnce(t *testing.T) {
	w := newWorld(t)
	const n = 12
	mails := []inbox.Email{}
	for range n {
		e := w.mail()
		e.RawSHA256 = "same"
		mails = append(mails, e)
	}
	w.accept(mails...)
	var wg sync.WaitGroup
	var mu sync.Mutex
	firsts, of := []string{}, map[string]bool{}
	for _, e := range mails {
		wg.Go(func() {
			id, _, err := w.Duplicate(t.Context(), e, "key")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				of[id] = true
			case apperr.Is(err, apperr.NotFound):
				firsts = append(firsts, e.ID)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(firsts) != 1 || len(of) != 1 || !of[firsts[0]] {
		t.Errorf("first: %v, duplicates of %v; want one, and all others of it", firsts, of)
	}
}

// What a sender can make long must not make a row that no engine takes, or the mail would fail for ever.
func TestHostileSizes(t *testing.T) {
	w := newWorld(t)
	long := string(make([]byte, 5000))
	got := w.run(w.mail(), func(p *inbox.Processed) {
		c := &p.Email.Content
		c.Subject, c.MessageID, c.Snippet = long+long, long, long
		for range 1000 {
			c.To = append(c.To, inbox.Address{Name: long, Address: long})
			p.Email.Links = append(p.Email.Links, inbox.Link{URL: "https://x/" + long[:1000], Text: long})
			p.Email.Warnings = append(p.Email.Warnings, inbox.Warning{Code: "w"})
			p.References = append(p.References, long)
		}
		for i := range 2000 {
			p.Attachments = append(p.Attachments, inbox.Attachment{
				ID: fmt.Sprintf("att_%026d", i), Filename: long, FilenameOriginal: long, ContentID: long, ContentType: long,
			})
		}
	})
	if got.Status != inbox.StatusProcessed || !slices.ContainsFunc(got.Warnings, func(x inbox.Warning) bool { return x.Code == "row_cut" }) {
		t.Errorf("status %s, no warning", got.Status)
	}
	_, err := w.UpdateEmail(t.Context(), wsA, got.ID, yes(w, got.ID), func(e *inbox.Email) error { e.DeletedAt = w.clock; return nil })
	w.must(err)
	if _, err = w.UpdateEmail(t.Context(), wsA, got.ID, inbox.Act{}, func(e *inbox.Email) error { e.DeletedAt = time.Time{}; return nil }); err != nil {
		t.Error(err)
	}
	rows, _, err := w.Attachments(t.Context(), inbox.AttachmentRange{Workspace: wsA, Inbox: boxA, Limit: 1000})
	if err != nil || len(rows) != 1000 {
		t.Errorf("%d attachments, %v", len(rows), err)
	}
	// Names of the most expensive characters: not all fit, and the mail says so.
	got = w.run(w.mail(), func(p *inbox.Processed) {
		dear := strings.Repeat("<", 5000)
		for i := range 2000 {
			p.Attachments = append(p.Attachments, inbox.Attachment{ID: fmt.Sprintf("att_1%025d", i), Filename: dear, FilenameOriginal: dear, ContentID: dear})
		}
		for range 1000 {
			p.Email.Links = append(p.Email.Links, inbox.Link{URL: "https://x/" + dear[:2000], Text: dear})
			p.Email.Content.CC = append(p.Email.Content.CC, inbox.Address{Name: dear, Address: dear})
		}
	})
	if !slices.ContainsFunc(got.Warnings, func(x inbox.Warning) bool { return x.Code == "attachments_cut" }) {
		t.Errorf("warnings %v", got.Warnings)
	}
	_, err = w.UpdateEmail(t.Context(), wsA, got.ID, yes(w, got.ID), func(e *inbox.Email) error { e.DeletedAt = w.clock; return nil })
	w.must(err)
}

func TestEngineDown(t *testing.T) {
	w := newWorld(t)
	e := w.mail()
	w.accept(e)
	w.engine.left = 0
	for name, err := range map[string]error{
		"intake": w.PutIntake(t.Context(), intake(w.mail())),
		"update": func() error {
			_, err := w.UpdateEmail(t.Context(), wsA, e.ID, inbox.Act{}, func(e *inbox.Email) error { e.Labels = []string{"x"}; return nil })
			return err
		}(),
		"claim":   func() error { _, err := w.ClaimMail(t.Context(), e.ID); return err }(),
		"discard": w.Discard(t.Context(), e.ID, "email_other"),
		"domain":  func() error { _, err := w.AddDomain(t.Context(), orgA, "x.test"); return err }(),
	} {
		if a := apperr.From(err); a.Kind != apperr.Unavailable || a.RetryAfter == 0 {
			t.Errorf("%s: %v, want unavailable with a time to come again", name, err)
		}
	}
	w.engine.left = -1
	if got := w.stored(e); got.Status != inbox.StatusReceived || len(got.Labels) != 0 {
		t.Errorf("what failed changed the mail: %+v", got)
	}
	// A row that no engine takes is the worker's to give up on.
	claimed, err := w.ClaimMail(t.Context(), e.ID)
	w.must(err)
	p := result(claimed)
	p.Body.Text = strings.Repeat("x", 400<<10)
	wantKind(t, w.Finish(t.Context(), p, ""), apperr.TooLarge)
}
