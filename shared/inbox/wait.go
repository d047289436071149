package inbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Bounds of waiting.
const (
	MaxWait      = 25 * time.Second
	DefaultWait  = 20 * time.Second
	WaitsOfGrant = 2 // at once

	waitTick    = time.Second
	waitMargin  = 2 * time.Second // kept before the call's own deadline, for the reply
	waitGrace   = 5 * time.Second // a place outlives its wait, should nobody give it back
	waitBack    = time.Minute     // mail this old counts for a wait without a cursor
	waitBusyFor = 5 * time.Second // what who finds no place is told to wait
)

// ErrNoPlace is a WaitStore's answer when as many wait as may.
var ErrNoPlace = errors.New("inbox: no place to wait")

// Wanted is what a mail must hold to end a wait.
type Wanted string

// What can be waited for.
const (
	WantAny  Wanted = "any"
	WantCode Wanted = "code"
	WantLink Wanted = "link"
)

// Waits are the operations that wait for mail.
type Waits struct{ d Deps }

// WaitQuery says which mail ends a wait.
type WaitQuery struct {
	Inbox   string // id or slug
	From    string // in an address or a name
	Subject string
	Want    Wanted // empty: any
}

// WaitRequest is where a wait starts and how long it lasts.
type WaitRequest struct {
	Query   WaitQuery
	After   string         // cursor of a wait with this query; empty: mail of the last minute counts too
	Timeout *time.Duration // nil: DefaultWait; 0 looks once
}

// Arrival is what ended a wait: a mail, or time.
type Arrival struct {
	Email    *Summary // nil: nothing came in time
	Codes    []Code   // masked unless the caller may read them
	Links    []Link
	Cut      bool // there are more links
	TimedOut bool
	Next     string // cursor: a wait with it finds what comes after
	Masked   bool
}

// Wait returns the first processed mail that fits, or says that none came. It reads the inbox once a second. Quarantined mail does
// not count: a forged mail with a code would be the first to arrive.
func (s *Waits) Wait(ctx context.Context, a Actor, r WaitRequest) (Arrival, error) {
	timeout, err := r.check(a)
	if err != nil {
		return Arrival{}, err
	}
	c := newCursors(s.d.Cursors, a, "emails_wait", r.Query).in("body.after")
	after, err := c.open(r.After)
	if err != nil {
		return Arrival{}, err
	}
	in, err := s.d.live(ctx, a, r.Query.Inbox)
	if err != nil {
		return Arrival{}, err
	}
	w := waiting{d: s.d, actor: a, query: r.Query, inbox: in.ID, mark: parseMark(after, s.d.now().Add(-waitBack))}
	end, err := s.begin(ctx, a, timeout)
	if err != nil {
		return Arrival{}, err
	}
	defer end()
	found, err := w.run(ctx, s.until(ctx, timeout))
	if err != nil {
		return Arrival{}, fmt.Errorf("wait for mail of %s: %w", in.ID, err)
	}
	out, err := w.arrival(ctx, found)
	if err != nil {
		return Arrival{}, err
	}
	out.Next, err = c.seal(w.mark.String())
	return out, err
}

func (r *WaitRequest) check(a Actor) (time.Duration, error) {
	timeout := DefaultWait
	if r.Timeout != nil {
		timeout = *r.Timeout
	}
	if timeout < 0 || timeout > MaxWait {
		return 0, invalid("body.timeout_s", fmt.Sprintf("0 to %d", MaxWait/time.Second))
	}
	q := &r.Query
	if q.Inbox == "" {
		return 0, invalid("body.inbox", "the id or slug of an inbox")
	}
	switch q.Want {
	case "":
		q.Want = WantAny
	case WantAny:
	case WantCode, WantLink:
		if !a.ReadCodes {
			return 0, CodesHidden("Waiting for a code or a link", "Wait with want any: the email is returned, its codes and links masked.")
		}
	default:
		return 0, invalid("body.want", "any, code or link")
	}
	for _, f := range []struct{ location, value string }{{"body.from", q.From}, {"body.subject", q.Subject}} {
		if err := checkFilter(f.location, f.value); err != nil {
			return 0, err
		}
	}
	return timeout, nil
}

// CodesHidden is the answer to who asks for what would show codes and links and may not see them.
func CodesHidden(what string, fixes ...string) *apperr.Error {
	e := apperr.New(apperr.Forbidden, "codes_hidden", what+" needs the scope codes:read and the role operator.", fixes...)
	e.Fixes = append(e.Fixes, "Reconnect and grant the scope codes:read; a viewer asks an administrator for the role operator.")
	return e
}

// until is when the wait ends: in time for the reply, where the call itself has a deadline, as on Lambda.
func (s *Waits) until(ctx context.Context, timeout time.Duration) time.Time {
	now := s.d.Now()
	end := now.Add(timeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-waitMargin).Before(end) {
		end = deadline.Add(-waitMargin)
	}
	return end
}

// begin takes a place to wait; the function that it returns gives it back, also when the caller is gone. Who only looks needs none.
func (s *Waits) begin(ctx context.Context, a Actor, timeout time.Duration) (func(), error) {
	if timeout < waitTick {
		return func() {}, nil
	}
	end, err := s.d.beginWait(ctx, a, timeout)
	if errors.Is(err, ErrNoPlace) {
		e := apperr.New(apperr.RateLimited, "too_many_waits",
			fmt.Sprintf("As many calls wait as may: %d for one grant, %d for one organization, and %d in all.",
				WaitsOfGrant, WaitSlot{All: s.d.MaxWaits}.Reach(), s.d.MaxWaits),
			fmt.Sprintf("Repeat the call in %d seconds, or end another wait first.", waitBusyFor/time.Second),
			"Call with timeout_s 0 to look once without waiting.")
		e.RetryAfter = waitBusyFor
		return nil, e
	}
	return end, err
}

// beginWait takes a place for a call that waits for whatever it may be: each holds one of the calls that are served at once, and
// those who wait must not take all of them from everybody else.
func (d Deps) beginWait(ctx context.Context, a Actor, timeout time.Duration) (end func(), err error) {
	var ticket [8]byte
	if _, err := io.ReadFull(d.Rand, ticket[:]); err != nil {
		return nil, fmt.Errorf("ticket of a wait: %w", err)
	}
	place, err := d.Waiting.BeginWait(ctx, WaitSlot{
		Organization: a.Organization, Grant: a.grant(), PerGrant: WaitsOfGrant, All: d.MaxWaits, Until: d.now().Add(timeout + waitGrace),
		Ticket: binary.BigEndian.Uint64(ticket[:])>>1 | 1, // never 0, and within what every engine counts
	})
	if err != nil {
		return nil, fmt.Errorf("begin a wait: %w", err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitMargin/2)
		defer cancel()
		_ = d.Waiting.EndWait(ctx, place) // else it ends by itself
	}, nil
}

// grant is what waits are counted by.
func (a Actor) grant() string {
	if a.By.Grant != "" {
		return a.By.Grant
	}
	return a.Subject
}

// waiting is one run of Wait.
type waiting struct {
	d     Deps
	actor Actor
	query WaitQuery
	inbox string
	mark  mark
}

// run looks once a second until a mail fits; nil when the time is over. It also counts: a clock that is set back must not make it
// wait for ever.
func (w *waiting) run(ctx context.Context, until time.Time) (*Summary, error) {
	for range int(MaxWait/waitTick) + 1 {
		found, err := w.look(ctx)
		if found != nil || err != nil {
			return found, err
		}
		left := until.Sub(w.d.Now())
		if left <= 0 {
			return nil, nil //nolint:nilnil // time is over is an answer
		}
		if err := w.d.Sleep(ctx, min(left, waitTick)); err != nil {
			return nil, err //nolint:wrapcheck // the caller is gone
		}
	}
	return nil, nil //nolint:nilnil // as above
}

// look reads one page of what came behind the mark and moves the mark.
func (w *waiting) look(ctx context.Context) (*Summary, error) {
	rows, _, err := w.d.Emails.Emails(ctx, EmailRange{
		Workspace: w.actor.Workspace, Inbox: w.inbox, After: w.mark.floor, Limit: windowPage, Ascending: true,
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the step
	}
	var found *Summary
	w.mark = w.mark.pass(rows, w.d.now(), func(row *Row) bool {
		if e := &row.shown(w.actor).Summary; w.fits(e) {
			found = e
		}
		return found == nil
	})
	return found, nil
}

func (w *waiting) fits(e *Summary) bool {
	if e.Status != StatusProcessed || w.query.Want == WantCode && e.Codes == 0 || w.query.Want == WantLink && e.Links == 0 {
		return false
	}
	m := EmailQuery{From: w.query.From, Subject: w.query.Subject}.matcher(EmailRange{})
	return m == nil || m(e)
}

// arrival reads the codes and links of the mail that ended the wait.
func (w *waiting) arrival(ctx context.Context, found *Summary) (Arrival, error) {
	out := Arrival{Email: found, TimedOut: found == nil, Masked: !w.actor.ReadCodes}
	if found == nil || found.Codes == 0 && found.Links == 0 {
		return out, nil
	}
	e, _, err := w.d.Emails.Email(ctx, w.actor.Workspace, found.ID, false)
	if err != nil {
		return Arrival{}, fmt.Errorf("email %s: %w", found.ID, err)
	}
	v := view(w.actor, e)
	v.bound(0, DefaultChars)
	out.Codes, out.Links, out.Cut = v.Codes, v.Links, slices.ContainsFunc(v.Texts, func(t TextView) bool { return t.Name == ViewLinks })
	return out, nil
}
