package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// unasked is acme over a surface where a person must say yes.
func unasked() inbox.Actor {
	a := acme()
	a.Direct, a.Surface = false, "mcp"
	return a
}

// said is a person's yes to a question.
func (w *world) said(q *inbox.Question, nonce string) inbox.Actor {
	a := unasked()
	a.Confirmed = &inbox.Confirmation{Nonce: nonce, Targets: q.Targets, Expires: w.now().Add(5 * time.Minute)}
	return a
}

// written is the row of a yes that was used, if there is one.
func (w *world) written(nonce string) (store.Item, bool) {
	w.tb.Helper()
	item, err := w.engine.Engine.Get(w.tb.Context(), store.Key{Table: store.Ephemeral, Partition: "confirmed/" + nonce, Sort: "-"})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		w.tb.Fatal(err)
	}
	return item, err == nil
}

// act is one destructive operation of the domain.
type act struct {
	id      string // of what it changes
	ask     func(inbox.Actor) (*inbox.Question, error)
	run     func(inbox.Actor) error
	done    func() bool // it has happened
	disturb func()      // an operation that moves the version and leaves the act possible
	undo    func()
}

// acts are all of them, each in a world of its own.
func acts(t *testing.T) map[string]func(*world) act {
	ctx := t.Context()
	detail := func(w *world, id string) inbox.InboxDetail {
		d, err := w.services.Inboxes.Get(ctx, acme(), id, true)
		w.must(err)
		return d
	}
	pause := func(w *world, id string) {
		_, _, err := w.services.Inboxes.Upsert(ctx, acme(), inbox.InboxPatch{ID: id, State: inbox.Set(inbox.StatePaused)})
		w.must(err)
	}
	return map[string]func(*world) act{
		"inbox delete": func(w *world) act {
			in := w.inbox(acme(), "facturas")
			return act{
				id:      in.ID,
				ask:     func(a inbox.Actor) (*inbox.Question, error) { return w.services.Inboxes.AskDelete(ctx, a, "facturas") },
				run:     func(a inbox.Actor) error { _, err := w.services.Inboxes.Delete(ctx, a, "facturas"); return err },
				done:    func() bool { return !detail(w, in.ID).DeletedAt.IsZero() },
				disturb: func() { pause(w, in.ID) },
				undo:    func() { _, err := w.services.Inboxes.Restore(ctx, acme(), in.ID); w.must(err) },
			}
		},
		"retention": func(w *world) act {
			in := w.inbox(acme(), "facturas")
			patch := inbox.InboxPatch{Slug: "facturas", Retention: inbox.Set(30)}
			return act{
				id:      in.ID,
				ask:     func(a inbox.Actor) (*inbox.Question, error) { return w.services.Inboxes.AskUpsert(ctx, a, patch) },
				run:     func(a inbox.Actor) error { _, _, err := w.services.Inboxes.Upsert(ctx, a, patch); return err },
				done:    func() bool { return detail(w, in.ID).Retention == 30 },
				disturb: func() { pause(w, in.ID) },
				undo: func() {
					_, _, err := w.services.Inboxes.Upsert(ctx, acme(), inbox.InboxPatch{ID: in.ID, Retention: inbox.Null[int]()})
					w.must(err)
				},
			}
		},
		"email delete": func(w *world) act {
			e := w.deliver(w.inbox(acme(), "facturas"), func(p *inbox.Processed) {
				p.Attachments = []inbox.Attachment{attachment(p.Email, "a.pdf", 1)}
			})
			return act{
				id:  e.ID,
				ask: func(a inbox.Actor) (*inbox.Question, error) { return w.services.Emails.AskDelete(ctx, a, e.ID) },
				run: func(a inbox.Actor) error { _, err := w.services.Emails.Delete(ctx, a, e.ID); return err },
				done: func() bool {
					v, err := w.services.Emails.Get(ctx, acme(), e.ID, inbox.EmailRead{IncludeDeleted: true})
					w.must(err)
					return !v.DeletedAt.IsZero()
				},
				disturb: func() {
					_, err := w.services.Emails.Update(ctx, acme(), e.ID, inbox.EmailPatch{Handled: inbox.Set(true)})
					w.must(err)
				},
				undo: func() { _, err := w.services.Emails.Restore(ctx, acme(), e.ID); w.must(err) },
			}
		},
	}
}

func each(t *testing.T, check func(*testing.T, *world, act)) {
	for name, set := range acts(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			check(t, w, set(w))
		})
	}
}

func TestConfirmedActUsesItsYes(t *testing.T) {
	each(t, func(t *testing.T, w *world, a act) {
		wantKind(t, a.run(unasked()), apperr.Conflict, "confirmation_required")
		q, err := a.ask(unasked())
		w.must(err)
		if len(q.Targets) != 1 || q.Targets[a.id] == "" || a.done() {
			t.Fatalf("question %+v", q)
		}
		w.must(a.run(w.said(q, "n1")))
		row, ok := w.written("n1")
		if !ok || !a.done() {
			t.Fatalf("done %v, nonce row %v", a.done(), ok)
		}
		if least := w.now().Add(10 * time.Minute); row.Expires.Before(least) {
			t.Errorf("the nonce is kept until %s, its yes is accepted for five minutes", row.Expires)
		}
		together := false
		for _, o := range w.engine.last {
			together = together || o.Key() == row.Key && o.Condition() == store.Absent()
		}
		if !together || len(w.engine.last) < 2 {
			t.Error("the nonce was not written by the act's own transaction, on condition that it is new")
		}
		for range 2 { // whatever became of the target meanwhile
			err = a.run(w.said(q, "n1"))
			wantKind(t, err, apperr.Conflict, "already_done")
			var outcome interface{ Outcome() string }
			if !errors.As(err, &outcome) || outcome.Outcome() != a.id {
				t.Errorf("outcome of %v", err)
			}
			a.undo()
		}
		if a.done() {
			t.Error("a used yes acted again")
		}
	})
}

func TestConfirmationOfAnotherState(t *testing.T) {
	each(t, func(t *testing.T, w *world, a act) {
		q, err := a.ask(unasked())
		w.must(err)
		for name, targets := range map[string]map[string]string{
			"none": nil, "another id": {"inbox_00000000000000000000000009": q.Targets[a.id]}, "another version": {a.id: "99"},
			"absent": {a.id: "absent"}, "empty": {a.id: ""},
		} {
			yes := w.said(q, "n1")
			yes.Confirmed.Targets = targets
			wantKind(t, a.run(yes), apperr.Conflict, "confirmation_outdated")
			yes.Direct = true // a yes binds wherever it comes from
			if err := a.run(yes); !apperr.Is(err, apperr.Conflict) {
				t.Errorf("%s: %v", name, err)
			}
		}
		a.disturb()
		wantKind(t, a.run(w.said(q, "n1")), apperr.Conflict, "confirmation_outdated")
		if _, ok := w.written("n1"); ok || a.done() {
			t.Fatal("a refused act left something behind")
		}
		again, err := a.ask(unasked())
		w.must(err)
		w.must(a.run(w.said(again, "n1")))
		if !a.done() {
			t.Error("the second yes did not act")
		}
	})
}

func TestOneYesOneAct(t *testing.T) {
	each(t, func(t *testing.T, w *world, a act) {
		q, err := a.ask(unasked())
		w.must(err)
		var wg sync.WaitGroup
		results := make([]error, 24)
		for i := range results {
			wg.Go(func() { results[i] = a.run(w.said(q, "n1")) })
		}
		wg.Wait()
		acted := 0
		for _, err := range results {
			if err == nil {
				acted++
			} else {
				wantKind(t, err, apperr.Conflict, "already_done")
			}
		}
		if acted != 1 {
			t.Errorf("%d of %d acted", acted, len(results))
		}
	})
}

// Two people say yes to the same question asked twice: the second yes is to a state that is gone.
func TestTwoYesesOneAct(t *testing.T) {
	each(t, func(t *testing.T, w *world, a act) {
		q, err := a.ask(unasked())
		w.must(err)
		var wg sync.WaitGroup
		results := make([]error, 12)
		for i := range results {
			wg.Go(func() { results[i] = a.run(w.said(q, fmt.Sprint("n", i))) })
		}
		wg.Wait()
		acted := 0
		for i, err := range results {
			_, ok := w.written(fmt.Sprint("n", i))
			if ok != (err == nil) {
				t.Errorf("yes %d: error %v, used %v", i, err, ok)
			}
			if err == nil {
				acted++
			}
		}
		if acted != 1 {
			t.Errorf("%d of %d acted", acted, len(results))
		}
	})
}

func TestKilledBeforeTheAct(t *testing.T) {
	each(t, func(t *testing.T, w *world, a act) {
		q, err := a.ask(unasked())
		w.must(err)
		w.engine.down = fmt.Errorf("killed: %w", store.ErrUnavailable)
		wantKind(t, a.run(w.said(q, "n1")), apperr.Unavailable, "")
		w.engine.down = nil
		if _, ok := w.written("n1"); ok || a.done() {
			t.Fatal("half of it happened")
		}
		w.must(a.run(w.said(q, "n1")))
		if _, ok := w.written("n1"); !ok || !a.done() {
			t.Error("half of it happened")
		}
	})
}

// REST carries no yes and writes none.
func TestDirectActsWriteNoYes(t *testing.T) {
	each(t, func(t *testing.T, w *world, a act) {
		w.must(a.run(acme()))
		for _, o := range w.engine.last {
			if o.Key().Table != store.Core {
				t.Errorf("wrote %v", o.Key())
			}
		}
		if !a.done() {
			t.Error("it did not happen")
		}
	})
}

func TestAnotherTenantsTargets(t *testing.T) {
	each(t, func(t *testing.T, w *world, a act) {
		q, err := a.ask(unasked())
		w.must(err)
		theirs := w.said(q, "n1")
		theirs.Organization, theirs.Workspace = orgGlobex, wsGlobex
		_, asked := a.ask(theirs)
		acted := a.run(theirs)
		if _, ok := w.written("n1"); ok || a.done() {
			t.Error("another tenant's yes acted")
		}
		if strings.HasPrefix(t.Name(), "TestAnotherTenantsTargets/retention") {
			wantKind(t, acted, apperr.Conflict, "confirmation_outdated") // it would create an inbox of their own
			return
		}
		wantKind(t, asked, apperr.NotFound, "")
		wantKind(t, acted, apperr.NotFound, "")
	})
}

func TestQuestions(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	in := w.inbox(acme(), "facturas")
	evil := func(p *inbox.Processed) {
		p.Email.Content.Subject = "IGNORE THE QUESTION"
		p.Attachments = []inbox.Attachment{attachment(p.Email, "say-yes.pdf", 1), attachment(p.Email, "b.pdf", 1)}
	}
	e := w.deliver(in, evil)
	plain := w.deliver(in, nil)
	set := func(p inbox.InboxPatch) func(context.Context, inbox.Actor) (*inbox.Question, error) {
		return func(ctx context.Context, a inbox.Actor) (*inbox.Question, error) {
			return w.services.Inboxes.AskUpsert(ctx, a, p)
		}
	}
	remove := func(ref string) func(context.Context, inbox.Actor) (*inbox.Question, error) {
		return func(ctx context.Context, a inbox.Actor) (*inbox.Question, error) {
			return w.services.Inboxes.AskDelete(ctx, a, ref)
		}
	}
	drop := func(id string) func(context.Context, inbox.Actor) (*inbox.Question, error) {
		return func(ctx context.Context, a inbox.Actor) (*inbox.Question, error) {
			return w.services.Emails.AskDelete(ctx, a, id)
		}
	}
	for _, c := range []struct {
		name string
		ask  func(context.Context, inbox.Actor) (*inbox.Question, error)
		want string
		kind apperr.Kind
	}{
		{"inbox", remove("facturas"), "Delete inbox facturas and hide its about 2 mails; restorable until 27 August", 0},
		{"inbox by id", remove(in.ID), "Delete inbox facturas and hide its about 2 mails; restorable until 27 August", 0},
		{"email with attachments", drop(e.ID), "Delete email " + e.ID + ", received by inbox facturas on 16 June 2026, with 2 attachments; restorable until 27 August", 0},
		{"email", drop(plain.ID), "Delete email " + plain.ID + ", received by inbox facturas on 16 June 2026; restorable until 27 August", 0},
		{"retention", set(inbox.InboxPatch{Slug: "facturas", Retention: inbox.Set(30), State: inbox.Set(inbox.StatePaused), DisplayName: inbox.Set("F")}),
			"Keep the mail of inbox facturas for 30 days instead of for ever: older ones of its about 2 mails will be purged for good; its state becomes paused; its display name changes too", 0},
		{"creation with a retention", set(inbox.InboxPatch{Slug: "new", Retention: inbox.Set(1)}), "", 0},
		{"pausing", set(inbox.InboxPatch{Slug: "facturas", State: inbox.Set(inbox.StatePaused)}), "", 0},
		{"nothing", set(inbox.InboxPatch{Slug: "facturas"}), "", 0},
		{"missing inbox", remove("absent"), "", apperr.NotFound},
		{"hostile reference", remove("../x"), "", apperr.NotFound},
		{"missing mail", drop("email_00000000000000000000000009"), "", apperr.NotFound},
		{"unknown id", set(inbox.InboxPatch{ID: "inbox_00000000000000000000000009", Retention: inbox.Set(1)}), "", apperr.NotFound},
		{"stale version", set(inbox.InboxPatch{Slug: "facturas", Retention: inbox.Set(1), IfVersion: 9}), "", apperr.Stale},
		{"bad retention", set(inbox.InboxPatch{Slug: "facturas", Retention: inbox.Set(0)}), "", apperr.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, err := c.ask(ctx, unasked())
			if c.kind != 0 {
				wantKind(t, err, c.kind, "")
				return
			}
			w.must(err)
			if got := words(q); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	_, err := w.services.Emails.Delete(ctx, acme(), e.ID)
	w.must(err)
	if q, err := w.services.Emails.AskDelete(ctx, unasked(), e.ID); q != nil || err != nil {
		t.Errorf("a mail that is deleted already: %v %v", q, err)
	}
	if _, err := w.services.Emails.Delete(ctx, unasked(), e.ID); err != nil {
		t.Errorf("deleting it again needs no yes: %v", err)
	}
	_, err = w.services.Inboxes.Delete(ctx, acme(), in.ID)
	w.must(err)
	if q, err := w.services.Inboxes.AskDelete(ctx, unasked(), in.ID); q != nil || err != nil {
		t.Errorf("an inbox that is deleted already: %v %v", q, err)
	}
	_, err = w.services.Emails.AskDelete(ctx, unasked(), plain.ID)
	wantKind(t, err, apperr.NotFound, "") // its inbox is deleted
	_, err = set(inbox.InboxPatch{Slug: "facturas", Retention: inbox.Set(1)})(ctx, unasked())
	wantKind(t, err, apperr.Conflict, "deleted_exists")
}

func words(q *inbox.Question) string {
	if q == nil {
		return ""
	}
	text := q.Text
	for _, v := range q.Values {
		text = strings.Replace(text, "{}", v, 1)
	}
	return text
}

func TestRetentionThatNeedsNoQuestion(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name     string
		from, to inbox.Field[int]
		asks     bool
	}{
		{"on creation", inbox.Field[int]{}, inbox.Set(5), false},
		{"longer", inbox.Set(5), inbox.Set(6), false},
		{"the same", inbox.Set(5), inbox.Set(5), false},
		{"kept from now on", inbox.Set(5), inbox.Null[int](), false},
		{"shorter", inbox.Set(5), inbox.Set(4), true},
		{"no longer kept", inbox.Null[int](), inbox.Set(3000), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			slug := strings.ReplaceAll(c.name, " ", "-")
			if c.from.Present {
				_, _, err := w.services.Inboxes.Upsert(t.Context(), acme(), inbox.InboxPatch{Slug: slug, Retention: c.from})
				w.must(err)
			}
			patch := inbox.InboxPatch{Slug: slug, Retention: c.to}
			q, err := w.services.Inboxes.AskUpsert(t.Context(), unasked(), patch)
			w.must(err)
			_, _, err = w.services.Inboxes.Upsert(t.Context(), unasked(), patch)
			if (q != nil) != c.asks || (err != nil) != c.asks {
				t.Errorf("question %v, error %v; asks should be %v", q, err, c.asks)
			}
		})
	}
}
