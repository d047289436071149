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

// Bounds of work leases.
const (
	DefaultLease = 5 * time.Minute
	MaxLease     = 15 * time.Minute
	MaxClaim     = 10 // mails of one claim

	// maxTries bounds the leases that one claim asks for and others get: whoever meets that many is told to come again.
	maxTries = 60
)

// What a WorkStore answers.
var (
	// ErrTaken: somebody else has the mail, or it waits no longer.
	ErrTaken = errors.New("inbox: taken")
	// ErrLeaseLost: the mail is not, or no longer, held under this lease.
	ErrLeaseLost = errors.New("inbox: lease lost")
)

// Work are the operations by which several share the mail of an inbox.
type Work struct{ d Deps }

// ClaimQuery says which mail is claimed.
type ClaimQuery struct {
	Inbox    string // id or slug
	Q        string // as in EmailQuery
	From     string
	Subject  string
	Label    string
	Category string
	Trust    TrustLevel
	Flag     string
	WithFile *bool // has an attachment
}

// ClaimRequest is how much is claimed and for how long.
type ClaimRequest struct {
	Query  ClaimQuery
	Lease  time.Duration // 0: DefaultLease
	Limit  int           // 0: 1
	Cursor string        // behind what an earlier claim with these filters looked at
}

// Lease is the right to work on a mail. It lies beside the mail and does not move its version.
type Lease struct {
	ID     string    `json:"id"`     // lease_...
	Holder string    `json:"holder"` // subject
	Until  time.Time `json:"until"`
}

// Claim is what a claimer got. All its mails are held under one lease id.
type Claim struct {
	Lease
	Rows   []Summary
	Next   string  // cursor to go on behind what was looked at; empty: start from the front again
	Window *Window // nil without filters
	Masked bool
}

// LeaseUse is what an update does with the lease on a mail. The zero value does nothing.
type LeaseUse struct {
	ID      string    // the lease that the caller holds
	Until   time.Time // extends it; zero: it stays
	Release bool      // gives it back: the mail waits again, behind what waits already
	At      time.Time // now
}

// Claim leases unhandled mail of an inbox that nobody holds, that which waits longest first. A mail whose lease ends, by time or by
// being given back, waits from that moment on, so that mail nobody finishes can't keep the rest from being looked at.
func (s *Work) Claim(ctx context.Context, a Actor, r ClaimRequest) (Claim, error) {
	if err := r.check(); err != nil {
		return Claim{}, err
	}
	c := newCursors(s.d.Cursors, a, "emails_claim", r.Query).in("body.cursor")
	after, err := c.open(r.Cursor)
	if err != nil {
		return Claim{}, err
	}
	in, err := s.d.live(ctx, a, r.Query.Inbox)
	if err != nil {
		return Claim{}, err
	}
	id, err := NewID("lease", s.d.now(), s.d.Rand)
	if err != nil {
		return Claim{}, err
	}
	k := claimer{
		d: s.d, actor: a, limit: r.Limit, match: r.Query.matcher(), after: after,
		claim: Claim{Lease: Lease{ID: id, Holder: a.Subject, Until: s.d.now().Add(r.Lease)}, Masked: !a.ReadCodes},
	}
	if err := k.run(ctx, WorkRange{Workspace: a.Workspace, Inbox: in.ID, At: s.d.now()}); err != nil {
		return Claim{}, fmt.Errorf("claim mail of %s: %w", in.ID, err)
	}
	if k.match != nil {
		k.claim.Window = &Window{Examined: k.examined, Complete: k.complete}
	}
	k.claim.Next, err = c.seal(k.after)
	return k.claim, err
}

func (r *ClaimRequest) check() error {
	if r.Lease == 0 {
		r.Lease = DefaultLease
	}
	if r.Lease < time.Second || r.Lease > MaxLease {
		return invalid("body.lease_s", fmt.Sprintf("1 to %d", MaxLease/time.Second))
	}
	if r.Limit == 0 {
		r.Limit = 1
	}
	if r.Limit < 1 || r.Limit > MaxClaim {
		return invalid("body.limit", fmt.Sprintf("1 to %d", MaxClaim))
	}
	q := r.Query
	if q.Inbox == "" {
		return invalid("body.inbox", "the id or slug of an inbox")
	}
	if q.Trust != "" && !slices.Contains(TrustLevels(), q.Trust) {
		return invalid("body.trust", "trusted, verified, unverified, suspicious or blocked")
	}
	for _, f := range []struct{ location, value string }{
		{"body.q", q.Q}, {"body.from", q.From}, {"body.subject", q.Subject}, {"body.label", q.Label},
		{"body.category", q.Category}, {"body.flag", q.Flag},
	} {
		if err := checkFilter(f.location, f.value); err != nil {
			return err
		}
	}
	return nil
}

// matcher is nil when any mail will do.
func (q ClaimQuery) matcher() func(*Summary) bool {
	return EmailQuery{
		Q: q.Q, From: q.From, Subject: q.Subject, Label: q.Label, Category: q.Category, Trust: q.Trust, Flag: q.Flag,
		HasAttachment: q.WithFile,
	}.matcher(EmailRange{})
}

// claimer is one run of Claim.
type claimer struct {
	d        Deps
	actor    Actor
	limit    int
	match    func(*Summary) bool
	claim    Claim
	after    string // the page that is looked at lies behind it; empty: the first
	complete bool   // all that waits was looked at
	examined int
	tries    int // leases that others got
}

// run reads a window of what waits. Leases that were got are kept when a later step fails: they are the caller's, and would
// be nobody's until they end if it did not learn of them.
func (k *claimer) run(ctx context.Context, r WorkRange) error {
	r.Limit = windowPage
	for range windowPages {
		r.After = k.after
		rows, next, err := k.d.Work.Work(ctx, r)
		if err != nil {
			return k.unlessGot(err)
		}
		enough, err := k.page(ctx, rows)
		if enough || err != nil {
			return k.unlessGot(err)
		}
		if k.after = next; next == "" {
			k.complete = true
			break
		}
	}
	if k.tries > 0 {
		return k.unlessGot(Busy()) // there was mail, and others were faster each time
	}
	return nil
}

func (k *claimer) unlessGot(err error) error {
	if len(k.claim.Rows) > 0 {
		return nil
	}
	return err
}

// page leases what it can of one page; enough when no more is wanted. The first row is asked for first, so that what waits longest
// goes first whoever asks. From a refusal on it goes on at a random place, for all who came at the same time read the same rows
// and would meet again at each of them.
func (k *claimer) page(ctx context.Context, rows []WorkRow) (enough bool, err error) {
	k.examined += len(rows)
	fit := slices.DeleteFunc(rows, func(row WorkRow) bool { return k.match != nil && !k.match(k.shown(row)) })
	for at := 0; len(fit) > 0; {
		row := fit[at]
		fit = slices.Delete(fit, at, at+1)
		switch err := k.lease(ctx, row); {
		case errors.Is(err, ErrTaken):
			if k.tries++; k.tries == maxTries {
				return true, Busy()
			}
			if at, err = k.place(len(fit)); err != nil {
				return true, err
			}
		case err != nil:
			return true, err
		case len(k.claim.Rows) == k.limit:
			return true, nil
		}
		if at >= len(fit) {
			at = 0
		}
	}
	return false, nil
}

func (k *claimer) lease(ctx context.Context, row WorkRow) error {
	act, err := k.d.act(k.actor)
	if err != nil {
		return err
	}
	if err := k.d.Work.Lease(ctx, row, k.claim.Lease, act); err != nil {
		return fmt.Errorf("lease %s: %w", row.ID, err)
	}
	k.claim.Rows = append(k.claim.Rows, *k.shown(row))
	return nil
}

// shown is a row as the caller may see it; filters look at nothing else.
func (k *claimer) shown(row WorkRow) *Summary {
	s := row.Summary
	if !k.actor.ReadCodes {
		s = s.masked()
	}
	return &s
}

// place is a random index of n things.
func (k *claimer) place(n int) (int, error) {
	if n < 2 {
		return 0, nil
	}
	var b [2]byte
	if _, err := io.ReadFull(k.d.Rand, b[:]); err != nil {
		return 0, fmt.Errorf("random place: %w", err)
	}
	return int(binary.BigEndian.Uint16(b[:])) % n, nil
}

// leaseUse is what an update says of a lease; nil when it says nothing.
func (p EmailPatch) leaseUse(now time.Time) *LeaseUse {
	if p.Lease == "" {
		return nil
	}
	u := &LeaseUse{ID: p.Lease, At: now}
	if l := p.LeaseFor; l.Present {
		if u.Release = l.Value == 0; !u.Release {
			u.Until = now.Add(l.Value)
		}
	}
	return u
}

func (p EmailPatch) checkLease() error {
	switch l := p.LeaseFor; {
	case p.Lease != "" && !validID("lease", p.Lease):
		return leaseLost()
	case l.Present && p.Lease == "":
		return invalid("body.lease_id", "the lease that lease_s is about", "Send the lease_id of emails_claim.")
	case l.Value < 0 || l.Value > MaxLease:
		return invalid("body.lease_s", fmt.Sprintf("0 to %d", MaxLease/time.Second))
	}
	return nil
}

func leaseLost() *apperr.Error {
	return apperr.New(apperr.Conflict, "lease_lost", "You do not hold this email under that lease: it ended, was given back, or somebody else finished the email. Nothing was changed.",
		"Stop working on it. Call emails_claim for work that is free.",
		"To change the email all the same, leave lease_id out.")
}
