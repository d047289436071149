package inboxstore_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// hook makes a webhook of workspace A that is told of these events.
func (w *world) hook(events ...inbox.EventType) inbox.Webhook {
	w.t.Helper()
	id, err := inbox.NewID("webhook", w.now(), rand.Reader)
	w.must(err)
	h, err := w.UpdateWebhook(w.t.Context(), wsA, id, inbox.Act{}, func(h *inbox.Webhook) error {
		*h = inbox.Webhook{ID: id, Organization: orgA, Workspace: wsA, Name: strings.ToLower(id[20:]), Events: events, Enabled: true, Version: 1}
		return nil
	})
	w.must(err)
	return h
}

// happened takes the events out of the outbox and names their types in the order of their ids.
func (w *world) happened() (types []string, events []inbox.Event) {
	w.t.Helper()
	for _, id := range w.pending() {
		if !strings.HasPrefix(id, "event_") {
			continue
		}
		e, err := w.Event(w.t.Context(), id)
		w.must(err)
		types, events = append(types, string(e.Type)), append(events, e)
		w.must(w.GiveOut(w.t.Context(), e, nil, nil))
	}
	slices.Sort(types)
	return types, events
}

func (w *world) wantEvents(step string, want ...string) []inbox.Event {
	w.t.Helper()
	got, events := w.happened()
	if !slices.Equal(got, want) && len(got)+len(want) > 0 {
		w.t.Errorf("%s: %v, want %v", step, got, want)
	}
	return events
}

// TestEventsOfAMail: each step of a mail's life, with a webhook that wants everything.
func TestEventsOfAMail(t *testing.T) {
	w := newWorld(t)
	w.hook(inbox.EventTypes()...)
	var told []string
	w.Store = w.Announcing(func(_ context.Context, ids []string) { told = append(told, ids...) })
	e := w.mail()
	w.accept(e)
	w.wantEvents("accepted", "email.received")
	if len(told) != 1 {
		t.Errorf("told of %v", told)
	}
	in := intake(e)
	w.must(w.FanOut(t.Context(), in, []inbox.Email{e})) // a redelivery
	w.wantEvents("accepted again")
	e = w.process(e, func(p *inbox.Processed) {
		p.Email.Codes = []inbox.Code{{Value: "482913"}}
		p.Email.Links = []inbox.Link{{URL: "https://remote.test/reset?t=778899"}}
		p.Email.Content.Subject, p.Email.Content.Snippet = "Code 482913", "Go to https://remote.test/reset?t=778899 now\u202e"
	})
	for _, event := range w.wantEvents("processed", "email.processed") {
		text := string(event.Data)
		if strings.Contains(text, "482913") || strings.Contains(text, "778899") || strings.Contains(text, "\u202e") || !strings.Contains(text, inbox.Masked) || !strings.Contains(text, `"codes":1`) {
			t.Errorf("event %s", text)
		}
		if event.Path != "/emails/"+e.ID || event.Inbox != boxA || event.Workspace != wsA || event.Email != e.ID {
			t.Errorf("event %+v", event)
		}
	}
	change := func(step string, change func(*inbox.Email), want ...string) {
		t.Helper()
		_, err := w.UpdateEmail(t.Context(), wsA, e.ID, inbox.Act{}, func(e *inbox.Email) error {
			change(e)
			e.Version++
			e.UpdatedAt = w.now()
			return nil
		})
		w.must(err)
		w.wantEvents(step, want...)
	}
	change("labelled", func(e *inbox.Email) { e.Labels = []string{"x"} })
	change("handled", func(e *inbox.Email) { e.HandledAt = w.now() }, "email.handled")
	change("handled again", func(e *inbox.Email) { e.HandledAt = w.now().Add(time.Hour) })
	change("not handled", func(e *inbox.Email) { e.HandledAt = time.Time{} })
	change("handled anew", func(e *inbox.Email) { e.HandledAt = w.now() }, "email.handled")
	change("deleted", func(e *inbox.Email) { e.DeletedAt = w.now() })
	change("restored", func(e *inbox.Email) { e.DeletedAt = time.Time{} })
	for status, want := range map[inbox.Status]string{inbox.StatusQuarantined: "email.quarantined", inbox.StatusFailed: "email.failed"} {
		w.run(w.mail(), func(p *inbox.Processed) { p.Email.Status, p.Email.Reason = status, "reason" })
		w.wantEvents(string(status), want, "email.received")
	}
	change("held", func(e *inbox.Email) { e.Status = inbox.StatusQuarantined }, "email.quarantined")
	change("released", func(e *inbox.Email) { e.Status = inbox.StatusProcessed }, "email.processed")
}

// TestNoEventWithoutWebhook: nothing is written for nobody, nor for another workspace's webhook.
func TestNoEventWithoutWebhook(t *testing.T) {
	w := newWorld(t)
	w.run(w.mail(), nil)
	w.wantEvents("nobody")
	h := w.hook(inbox.EventFailed)
	w.run(w.mail(), nil)
	w.wantEvents("not wanted")
	_, err := w.UpdateWebhook(t.Context(), wsA, h.ID, inbox.Act{}, func(h *inbox.Webhook) error {
		h.Events, h.Enabled, h.Version = inbox.EventTypes(), false, 2
		return nil
	})
	w.must(err)
	w.run(w.mail(), nil)
	w.wantEvents("disabled")
	e, err := inbox.JobFailedEvent(wsB, "job_1", "k", "c", w.now())
	w.must(err)
	w.must(w.PutEvent(t.Context(), e))
	w.wantEvents("of another workspace")
}

// TestEventsFit: with the most of everything the transactions stay within the engine's bounds.
func TestEventsFit(t *testing.T) {
	w := newWorld(t)
	w.hook(inbox.EventTypes()...)
	var mails []inbox.Email
	for range 20 {
		mails = append(mails, w.mail())
	}
	w.accept(mails...)
	if got, _ := w.happened(); len(got) != 20 {
		t.Errorf("%d events of 20 recipients", len(got))
	}
	for _, n := range []int{1, 18, 19, 30} {
		e := w.mail()
		w.accept(e)
		_, _ = w.happened()
		w.process(e, func(p *inbox.Processed) {
			p.Email.Content.Subject = strings.Repeat("ä", 5000)
			p.Email.Content.From = slices.Repeat([]inbox.Address{{Name: strings.Repeat("n", 5000), Address: "a@remote.test"}}, 50)
			for i := range 12 {
				p.References = append(p.References, fmt.Sprintf("<%d-%d@remote.test>", n, i))
			}
			for i := range n {
				p.Attachments = append(p.Attachments, inbox.Attachment{ID: fmt.Sprintf("att_%026d", 100*n+i), Email: e.ID, Inbox: boxA, Workspace: wsA, Filename: "x"})
			}
		})
		for _, event := range w.wantEvents("processed", "email.processed") {
			if body, err := event.Body("https://mail.test/api/v1"); err != nil || len(body) > 16<<10 {
				t.Errorf("%d attachments: %d bytes, %v", n, len(body), err)
			}
		}
	}
}

// TestEventsOfSenders: who may send, not a note.
func TestEventsOfSenders(t *testing.T) {
	w := newWorld(t)
	w.hook(inbox.EventSendersChanged)
	id := inbox.SenderID(wsA, boxA, inbox.KindAddress, "a@remote.test")
	for _, c := range []struct {
		step   string
		change func(*inbox.AllowedSender)
		want   string
	}{
		{"created", func(e *inbox.AllowedSender) {
			*e = inbox.AllowedSender{ID: id, Workspace: wsA, Inbox: boxA, Kind: inbox.KindAddress, Value: "a@remote.test", Effect: inbox.EffectAllow}
		}, "created"},
		{"noted", func(e *inbox.AllowedSender) { e.Note = "x" }, ""},
		{"updated", func(e *inbox.AllowedSender) { e.Effect = inbox.EffectBlock }, "updated"},
		{"deleted", func(e *inbox.AllowedSender) { e.DeletedAt = w.now() }, "deleted"},
		{"restored", func(e *inbox.AllowedSender) { e.DeletedAt = time.Time{} }, "restored"},
	} {
		_, err := w.UpdateSender(t.Context(), wsA, boxA, id, inbox.Act{}, func(e *inbox.AllowedSender) error {
			c.change(e)
			e.Version++
			e.UpdatedAt = w.now()
			return nil
		})
		w.must(err)
		_, events := w.happened()
		switch {
		case c.want == "" && len(events) > 0, c.want != "" && len(events) != 1:
			t.Errorf("%s: %d events", c.step, len(events))
		case c.want != "" && !strings.Contains(string(events[0].Data), `"change":"`+c.want+`"`):
			t.Errorf("%s: %s", c.step, events[0].Data)
		}
	}
}

// TestRejectedAreBounded: a flood at the door tells once a second.
func TestRejectedAreBounded(t *testing.T) {
	w := newWorld(t)
	w.hook(inbox.EventRejected)
	to := inbox.Recipient{Workspace: wsA, Inbox: boxA}
	for i := range 50 {
		e, err := inbox.RejectedEvent(to, fmt.Sprintf("s%d@remote.test", i), w.now().Add(time.Duration(i)*30*time.Millisecond))
		w.must(err)
		w.must(w.PutEvent(t.Context(), e))
	}
	w.wantEvents("a flood", "email.rejected", "email.rejected")
}
