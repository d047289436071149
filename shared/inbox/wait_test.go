package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// arrives is a mail that is received now, and processed unless a test does it.
func (w *world) arrives(in inbox.Inbox, process bool, fill func(*inbox.Processed)) inbox.Email {
	w.tb.Helper()
	w.mu.Lock()
	w.mails = int(1000*time.Hour/time.Second) - 1 // see receivedAll
	w.mu.Unlock()
	e := w.received(in)
	if process {
		return w.process(e, fill)
	}
	return e
}

func code(value string) func(*inbox.Processed) {
	return func(p *inbox.Processed) {
		p.Email.Codes, p.Email.Content.Subject = []inbox.Code{{Value: value, Kind: "otp"}}, "Your code "+value
	}
}

func (w *world) wait(r inbox.WaitRequest) (inbox.Arrival, error) {
	return w.services.Waits.Wait(w.tb.Context(), acme(), r)
}

func seconds(n int) *time.Duration {
	d := time.Duration(n) * time.Second
	return &d
}

func TestWaitForACode(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	w.arrives(in, true, code("111111")) // of the last minute
	w.advance(2 * time.Minute)
	query := inbox.WaitQuery{Inbox: "support", Want: inbox.WantCode}
	look, err := w.wait(inbox.WaitRequest{Query: query, Timeout: seconds(0)})
	w.must(err)
	if !look.TimedOut || look.Email != nil || look.Next == "" {
		t.Fatalf("an old code was returned: %+v", look)
	}
	ticks := 0
	var want inbox.Email
	w.meanwhile = func() {
		switch ticks++; ticks {
		case 2:
			w.arrives(in, true, nil) // without a code
		case 3:
			w.arrives(in, true, func(p *inbox.Processed) { // forged, held back
				code("666666")(p)
				p.Email.Status = inbox.StatusQuarantined
			})
		case 5:
			want = w.arrives(in, true, code("482913"))
		}
	}
	got, err := w.wait(inbox.WaitRequest{Query: query, After: look.Next})
	w.must(err)
	if got.TimedOut || got.Email == nil || got.Email.ID != want.ID || len(got.Codes) != 1 || got.Codes[0].Value != "482913" || ticks != 5 {
		t.Fatalf("after %d ticks: %+v", ticks, got)
	}
	w.meanwhile = nil
	next, err := w.wait(inbox.WaitRequest{Query: query, After: got.Next, Timeout: seconds(3)})
	w.must(err)
	if !next.TimedOut {
		t.Errorf("the same mail again: %+v", next.Email)
	}
}

// A mail that was received before another and read after it is found all the same, once.
func TestWaitMissesNothing(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	early := w.arrives(in, false, nil)
	w.advance(time.Second)
	late := w.arrives(in, true, nil)
	query := inbox.WaitQuery{Inbox: "support"}
	var seen []string
	cursor := ""
	collect := func() {
		t.Helper()
		for {
			got, err := w.wait(inbox.WaitRequest{Query: query, After: cursor, Timeout: seconds(0)})
			w.must(err)
			if cursor = got.Next; got.TimedOut {
				return
			}
			seen = append(seen, got.Email.ID)
		}
	}
	collect()
	w.process(early, nil)
	collect()
	w.advance(31 * time.Second) // now both lie behind what can still change
	collect()
	last := w.arrives(in, true, nil)
	collect()
	if got, want := fmt.Sprint(seen), fmt.Sprint([]string{late.ID, early.ID, last.ID}); got != want {
		t.Errorf("seen %s, want %s", got, want)
	}
}

// A mail that nobody finishes reading does not hold up the rest, and a flood does not make the cursor grow.
func TestWaitIsBounded(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	w.arrives(in, false, nil)
	query := inbox.WaitQuery{Inbox: "support", Subject: "needle"}
	cursor := ""
	for i := range 130 {
		w.advance(100 * time.Millisecond)
		w.arrives(in, true, nil)
		if i%10 == 9 {
			got, err := w.wait(inbox.WaitRequest{Query: query, After: cursor, Timeout: seconds(0)})
			w.must(err)
			if cursor = got.Next; !got.TimedOut || len(cursor) > 2048 {
				t.Fatalf("a cursor of %d bytes", len(cursor))
			}
		}
	}
	w.advance(100 * time.Millisecond)
	want := w.arrives(in, true, func(p *inbox.Processed) { p.Email.Content.Subject = "A Needle" })
	w.engine.reset()
	got, err := w.wait(inbox.WaitRequest{Query: query, After: cursor, Timeout: seconds(5)})
	w.must(err)
	if got.Email == nil || got.Email.ID != want.ID || w.engine.rows > 101 {
		t.Errorf("%+v, %d rows read", got.Email, w.engine.rows)
	}
}

// A wait reads the inbox once a second and nothing else.
func TestWaitReadsOnceASecond(t *testing.T) {
	w := newWorld(t)
	w.inbox(acme(), "support")
	start := w.now()
	w.engine.reset()
	got, err := w.wait(inbox.WaitRequest{Query: inbox.WaitQuery{Inbox: "support"}, Timeout: seconds(25)})
	w.must(err)
	if waited := w.now().Sub(start); !got.TimedOut || waited != 25*time.Second {
		t.Errorf("timed out %t after %s", got.TimedOut, waited)
	}
	if w.engine.reads > 27 {
		t.Errorf("%d reads in 25 seconds, want the inbox and one a second", w.engine.reads)
	}
}

// A clock that stands still does not make a wait endless.
func TestWaitCounts(t *testing.T) {
	w := newWorld(t)
	w.inbox(acme(), "support")
	start, ticks := w.now(), 0
	w.meanwhile = func() {
		ticks++
		w.advance(start.Sub(w.now()))
	}
	got, err := w.wait(inbox.WaitRequest{Query: inbox.WaitQuery{Inbox: "support"}})
	if err != nil || !got.TimedOut || ticks > 26 {
		t.Errorf("%v, %d ticks", err, ticks)
	}
}

// A call with a deadline, as every one on Lambda, answers before it.
func TestWaitEndsBeforeTheDeadline(t *testing.T) {
	w := newWorld(t)
	w.inbox(acme(), "support")
	w.mu.Lock()
	w.clock = time.Now() // the deadline of a context is one of the real clock
	w.mu.Unlock()
	ctx, cancel := context.WithDeadline(t.Context(), w.now().Add(time.Hour+10*time.Second))
	defer cancel()
	w.advance(time.Hour)
	start := w.now()
	got, err := w.services.Waits.Wait(ctx, acme(), inbox.WaitRequest{Query: inbox.WaitQuery{Inbox: "support"}, Timeout: seconds(25)})
	if waited := w.now().Sub(start); err != nil || !got.TimedOut || waited != 8*time.Second {
		t.Errorf("%v after %s, want 2 seconds before the deadline", err, waited)
	}
}

func TestWaitPlaces(t *testing.T) {
	w := newWorld(t) // 3 in all
	w.inbox(acme(), "support")
	w.inbox(globex(), "support")
	r := inbox.WaitRequest{Query: inbox.WaitQuery{Inbox: "support"}, Timeout: seconds(5)}
	as := func(a inbox.Actor, grant string) inbox.Actor {
		a.By.Grant = grant
		return a
	}
	run := func(a inbox.Actor) error {
		_, err := w.services.Waits.Wait(t.Context(), a, r)
		return err
	}
	var outcomes []error
	depth := 0
	callers := []inbox.Actor{as(acme(), "g1"), as(acme(), "g1"), as(acme(), "g1"), as(globex(), "g2"), as(globex(), "g3")}
	// Each wait starts the next one while it sleeps for the first time: all of them are under way at once.
	w.meanwhile = func() {
		for depth+1 < len(callers) {
			depth++
			outcomes = append(outcomes, run(callers[depth]))
		}
	}
	w.must(run(callers[0]))
	full := func(err error) bool { return err != nil && apperr.From(err).Code == "too_many_waits" }
	// The order is that in which they end: the third wait of g1 and the fourth in all are refused at once.
	var refused int
	for _, err := range outcomes {
		if full(err) {
			refused++
			if e := apperr.From(err); e.Kind != apperr.RateLimited || e.RetryAfter <= 0 {
				t.Errorf("refusal %+v", e)
			}
		} else if err != nil {
			t.Error(err)
		}
	}
	if refused != 2 {
		t.Errorf("%d of 5 were refused, want the third of one grant and the fourth in all: %v", refused, outcomes)
	}
	// All places are free again.
	w.meanwhile = nil
	for _, a := range callers {
		w.must(run(a))
	}
}

// One organization with however many grants never has all places, and what it leaves another finds.
func TestWaitPlacesOfOrganizations(t *testing.T) {
	w := newWorld(t)
	ticket := uint64(0)
	take := func(org string, all int) (n int, places []inbox.WaitPlace) {
		for range 4 * all {
			ticket += 0x301
			p, err := w.store.BeginWait(t.Context(), inbox.WaitSlot{
				Organization: org, Grant: fmt.Sprint(org, ticket), PerGrant: 2, All: all, Until: w.now().Add(time.Minute), Ticket: ticket | 1,
			})
			if err == nil {
				n, places = n+1, append(places, p)
			} else if !errors.Is(err, inbox.ErrNoPlace) {
				t.Fatal(err)
			}
		}
		return n, places
	}
	for all, want := range map[int]int{1: 1, 4: 4, 5: 4, 10: 8, 12: 10} {
		n, places := take(acme().Organization, all)
		others, more := take(globex().Organization, all)
		if n != want || others != all-want {
			t.Errorf("of %d: %d, want %d, and %d for another, want the rest", all, n, want, others)
		}
		for _, p := range append(places, more...) {
			w.must(w.store.EndWait(t.Context(), p))
		}
	}
}

// A place of an instance that died is free once the wait would be over.
func TestWaitPlaceOfTheDead(t *testing.T) {
	w := newWorld(t)
	slot := inbox.WaitSlot{Grant: "g", PerGrant: 1, All: 1, Until: w.now().Add(30 * time.Second), Ticket: 7}
	place, err := w.store.BeginWait(t.Context(), slot)
	w.must(err)
	if _, err := w.store.BeginWait(t.Context(), slot); !errors.Is(err, inbox.ErrNoPlace) {
		t.Fatalf("taken twice: %v", err)
	}
	w.advance(30 * time.Second)
	slot.Ticket, slot.Until = 8, w.now().Add(30*time.Second)
	_, err = w.store.BeginWait(t.Context(), slot)
	w.must(err)
	w.must(w.store.EndWait(t.Context(), place)) // the dead one comes back: the place is another's
	if _, err := w.store.BeginWait(t.Context(), slot); !errors.Is(err, inbox.ErrNoPlace) {
		t.Errorf("another's place was given back: %v", err)
	}
}

func TestWaitEndsWithItsCaller(t *testing.T) {
	w := newWorld(t)
	w.inbox(acme(), "support")
	ctx, cancel := context.WithCancel(t.Context())
	w.meanwhile = cancel
	r := inbox.WaitRequest{Query: inbox.WaitQuery{Inbox: "support"}}
	for range 3 { // each gives its place back
		if _, err := w.services.Waits.Wait(ctx, acme(), r); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		w.meanwhile = cancel
	}
	w.meanwhile = nil
	_, err := w.wait(r)
	w.must(err)
}

func TestWaitRefused(t *testing.T) {
	w := newWorld(t)
	in := w.inbox(acme(), "support")
	theirs := w.inbox(globex(), "theirs")
	w.arrives(in, true, func(p *inbox.Processed) {
		code("482913")(p)
		p.Email.Links = []inbox.Link{{URL: "https://remote.test/reset/482913", Kind: "reset"}}
	})
	blind := acme()
	blind.ReadCodes = false
	for _, want := range []inbox.Wanted{inbox.WantCode, inbox.WantLink} {
		_, err := w.services.Waits.Wait(t.Context(), blind, inbox.WaitRequest{Query: inbox.WaitQuery{Inbox: "support", Want: want}})
		wantKind(t, err, apperr.Forbidden, "codes_hidden")
	}
	got, err := w.services.Waits.Wait(t.Context(), blind, inbox.WaitRequest{Query: inbox.WaitQuery{Inbox: "support"}, Timeout: seconds(0)})
	w.must(err)
	if got.Email == nil || !got.Masked || got.Codes[0].Value != inbox.Masked || got.Links[0].URL != inbox.Masked || got.Email.Subject != "Your code "+inbox.Masked {
		t.Errorf("masked: %+v", got)
	}
	got, err = w.services.Waits.Wait(t.Context(), blind, inbox.WaitRequest{Query: inbox.WaitQuery{Inbox: "support", Subject: "4829"}, Timeout: seconds(0)})
	w.must(err)
	if !got.TimedOut {
		t.Error("a filter told a hidden digit")
	}
	for name, r := range map[string]inbox.WaitRequest{
		"no inbox":   {},
		"26 seconds": {Query: inbox.WaitQuery{Inbox: "support"}, Timeout: seconds(26)},
		"below 0":    {Query: inbox.WaitQuery{Inbox: "support"}, Timeout: seconds(-1)},
		"want":       {Query: inbox.WaitQuery{Inbox: "support", Want: "money"}},
		"cursor":     {Query: inbox.WaitQuery{Inbox: "support"}, After: "x"},
		"cursor of another query": {
			Query: inbox.WaitQuery{Inbox: "support"}, After: got.Next,
		},
	} {
		_, err := w.wait(r)
		if !apperr.Is(err, apperr.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, ref := range []string{"absent", theirs.ID, theirs.Slug} {
		_, err := w.wait(inbox.WaitRequest{Query: inbox.WaitQuery{Inbox: ref}})
		wantKind(t, err, apperr.NotFound, "")
	}
}
