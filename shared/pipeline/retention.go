package pipeline

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// RetentionStore is what retention reads and writes. Each method may be repeated, also by another process at once.
type RetentionStore interface {
	// PurgeDue lists what is due at a time, the longest due first, from a bounded number of reads.
	PurgeDue(ctx context.Context, now time.Time, limit int) ([]inbox.Due, error)
	// DropDue ends a thing that needed nothing, or no more.
	DropDue(ctx context.Context, d inbox.Due) error
	// Postpone has it come again later.
	Postpone(ctx context.Context, d inbox.Due, until time.Time) error

	// LookAt reads the inbox of a look, also one that is being purged, and the revision of its row; false when another look took the
	// place of this one, or the inbox is gone.
	LookAt(ctx context.Context, d inbox.Due) (in inbox.Inbox, revision uint64, ok bool, err error)
	// LookAgain ends a look and says when the next is; zero: when the inbox is changed. When it was changed meanwhile, the look
	// stays due.
	LookAgain(ctx context.Context, d inbox.Due, in inbox.Inbox, revision uint64, next time.Time) error
	// Emails reads a page of mail.
	Emails(ctx context.Context, r inbox.EmailRange) (rows []*inbox.Row, next string, err error)
	// PurgeEmail removes a mail from everywhere and makes trash of the rest, in one transaction with the line of p, which then counts
	// it. False: it is gone already, or not due (any more).
	PurgeEmail(ctx context.Context, w inbox.EmailPurge, p *inbox.Purge) (bool, error)

	// BeginInboxPurge makes a deleted inbox one that can't be restored; false when it was changed.
	BeginInboxPurge(ctx context.Context, in inbox.Inbox, revision uint64) (bool, error)
	// SweepInbox drops up to about limit rows that are left of an inbox without mail, and tells how many; 0 is the end.
	SweepInbox(ctx context.Context, in inbox.Inbox, limit int) (int, error)
	// EndInboxPurge drops the inbox itself.
	EndInboxPurge(ctx context.Context, d inbox.Due, in inbox.Inbox, act inbox.Act) error

	// GiveUpIntake decides that the outbox row of an announced mail does not follow any more; false when it has.
	GiveUpIntake(ctx context.Context, d inbox.Due) (inbox.Due, bool, error)
	// EndTrash drops the rows that a thing of trash names and then its own.
	EndTrash(ctx context.Context, d inbox.Due) error
}

// RetentionDeps is what Retention needs.
type RetentionDeps struct {
	Store  RetentionStore
	Blobs  Blobs
	Logger *slog.Logger
	Clock  func() time.Time // time.Now when nil
	Rand   io.Reader        // of ids in the audit; crypto/rand when nil
}

// RetentionOptions bound one run. A zero field takes the default.
type RetentionOptions struct {
	Limit int           // things that one run does: a mail, its trash, a look, 25 rows; 1,000
	Time  time.Duration // after which a run begins nothing new; 12 s
	Chunk int           // mails of one inbox before others have their turn; 100
	Lanes int           // inboxes at once; 8
}

// Retention removes for good what was deleted 30 days ago and what an inbox keeps no longer: a part of it each run, what is longest due
// first. A run may be killed at any point, and any number may run at once: what is to be done stands in the store until it is done, and
// what is done is decided by the transaction that does it. Rows go first and leave a row that names what they named, its blobs go
// then, and that row last: so no mail that can still be read, or restored, lacks its bytes, and no bytes are forgotten.
type Retention struct {
	deps RetentionDeps
	opts RetentionOptions
}

const (
	// lookSoonest and lookLatest bound when retention looks at an inbox again. Mail that waited for a paused inbox comes with a time
	// in the past, so no inbox is left alone for longer than a day.
	lookSoonest = 10 * time.Minute
	lookLatest  = 24 * time.Hour
	// putOff is how long a thing that failed is in nobody's way.
	putOff = time.Hour

	retentionPart = "retention" // in the audit
	maxSearch     = 2000        // blobs of one mail that no row named
)

// NewRetention checks the dependencies.
func NewRetention(deps RetentionDeps, opts RetentionOptions) (*Retention, error) {
	if deps.Store == nil || deps.Blobs == nil || deps.Logger == nil {
		return nil, errors.New("pipeline: Store, Blobs and Logger are required")
	}
	if deps.Clock == nil {
		deps.Clock = time.Now
	}
	if deps.Rand == nil {
		deps.Rand = rand.Reader
	}
	if opts.Time <= 0 {
		opts.Time = 12 * time.Second
	}
	for _, d := range []struct {
		n    *int
		here int
	}{{&opts.Limit, 1000}, {&opts.Chunk, 100}, {&opts.Lanes, 8}} {
		if *d.n <= 0 {
			*d.n = d.here
		}
	}
	return &Retention{deps: deps, opts: opts}, nil
}

// sweepRows is how many rows without a mail count as one thing.
const sweepRows = 25

// purging is one run.
type purging struct {
	*Retention
	until time.Time
	left  atomic.Int64
	count struct{ emails, inboxes, trash atomic.Int64 }

	mu     sync.Mutex
	purges map[string]*inbox.Purge // by inbox; each belongs to the one lane of its inbox
	errs   []error
}

// Run does what is due, within the bounds of the options.
func (r *Retention) Run(ctx context.Context) error {
	p := &purging{Retention: r, until: r.deps.Clock().Add(r.opts.Time), purges: map[string]*inbox.Purge{}}
	p.left.Store(int64(r.opts.Limit))
	for p.goesOn(ctx) {
		list, err := r.deps.Store.PurgeDue(ctx, r.now(), 4*r.opts.Chunk)
		if err != nil {
			p.errs = append(p.errs, fmt.Errorf("read what is due: %w", err))
			break
		}
		if len(list) == 0 {
			break
		}
		if before := p.left.Load(); !p.pass(ctx, list) || p.left.Load() == before {
			break // failing, or all of it in other hands
		}
	}
	c := &p.count
	if n := c.emails.Load() + c.inboxes.Load() + c.trash.Load(); n > 0 {
		r.deps.Logger.Info("pipeline: retention", slog.Int64("emails", c.emails.Load()), slog.Int64("inboxes", c.inboxes.Load()),
			slog.Int64("trash", c.trash.Load()))
	}
	return errors.Join(p.errs...)
}

func (r *Retention) now() time.Time { return r.deps.Clock().UTC().Truncate(time.Millisecond) }

func (p *purging) goesOn(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	soon := ok && time.Until(deadline) < jobMargin // the caller's own end, by the machine's clock
	return ctx.Err() == nil && !soon && p.left.Load() > 0 && p.deps.Clock().Before(p.until)
}

// spend takes a thing from what the run may do.
func (p *purging) spend(ctx context.Context) bool { return p.goesOn(ctx) && p.left.Add(-1) >= 0 }

// pass does each thing of a list once, the inboxes beside each other and what is of one inbox in turn: it shares a line of the audit.
func (p *purging) pass(ctx context.Context, list []inbox.Due) bool {
	lanes := make([][]inbox.Due, p.opts.Lanes)
	for _, d := range list {
		name, n := d.Inbox, 0
		if name == "" {
			name = d.ID
		}
		for _, c := range []byte(name) {
			n = (31*n + int(c)) % len(lanes)
		}
		lanes[n] = append(lanes[n], d)
	}
	var team sync.WaitGroup
	var failed atomic.Bool
	for _, lane := range lanes {
		if len(lane) == 0 {
			continue
		}
		team.Go(func() {
			for _, d := range lane {
				if !p.goesOn(ctx) {
					return
				}
				if err := p.do(ctx, d); err != nil {
					failed.Store(true)
					p.fail(ctx, d, err)
				}
			}
		})
	}
	team.Wait()
	return !failed.Load()
}

// fail keeps the error and puts the thing off, so that what can't be done never keeps the rest from its turn.
func (p *purging) fail(ctx context.Context, d inbox.Due, err error) {
	err = fmt.Errorf("%s %s: %w", d.Kind, d.ID, err)
	if ctx.Err() == nil {
		err = errors.Join(err, p.deps.Store.Postpone(ctx, d, p.now().Add(putOff)))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, err)
	delete(p.purges, d.Inbox) // what it counted may be one mail short, so that line stays as it is
}

func (p *purging) do(ctx context.Context, d inbox.Due) error {
	switch d.Kind {
	case inbox.DueEmail:
		return p.email(ctx, d)
	case inbox.DueInbox:
		return p.look(ctx, d)
	case inbox.DueTrash, inbox.DueImport:
		return p.trash(ctx, d)
	}
	return errors.New("this version does not know how") // a newer one will
}

// of is what this run takes out of an inbox, with its line in the audit.
func (p *purging) of(org, ws, box string) (*inbox.Purge, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.purges[box]; known != nil {
		return known, nil
	}
	act, err := inbox.SystemAct(p.now(), p.deps.Rand, retentionPart, "emails_purge", org, ws)
	if err != nil {
		return nil, err
	}
	made := &inbox.Purge{Inbox: box, Line: *act.Audit}
	p.purges[box] = made
	return made, nil
}

// email purges a mail that was deleted 30 days ago.
func (p *purging) email(ctx context.Context, d inbox.Due) error {
	if !p.spend(ctx) {
		return nil
	}
	of, err := p.of(d.Organization, d.Workspace, d.Inbox)
	if err != nil {
		return err
	}
	purged, err := p.deps.Store.PurgeEmail(ctx, inbox.EmailPurge{
		Workspace: d.Workspace, ID: d.ID,
		Due: func(e inbox.Email) (bool, bool) { return !e.DeletedAt.IsZero() && e.DeletedAt.Equal(d.Since), false },
	}, of)
	if err != nil {
		return err //nolint:wrapcheck // the store names the step
	}
	if purged { // what said so went with it
		p.count.emails.Add(1)
		return nil
	}
	return p.deps.Store.DropDue(ctx, d) //nolint:wrapcheck // the same
}

// trash removes what nothing names any more.
func (p *purging) trash(ctx context.Context, d inbox.Due) error {
	if d.Trash == nil {
		return p.deps.Store.DropDue(ctx, d) //nolint:wrapcheck // the store names the step
	}
	if !p.spend(ctx) {
		return nil
	}
	if d.Trash.Intake {
		given, ok, err := p.deps.Store.GiveUpIntake(ctx, d)
		if err != nil || !ok {
			return err //nolint:wrapcheck // the same
		}
		d = given
	}
	// The search counts blobs from below until one is missing, so it comes before those that are named are removed.
	if d.Trash.Search != "" {
		if err := removeUnnamed(ctx, p.deps.Blobs, d.Trash.Search); err != nil {
			return err
		}
	}
	for _, key := range d.Trash.Blobs {
		if err := p.deps.Blobs.Delete(ctx, key); err != nil {
			return blobFailure(err)
		}
	}
	p.count.trash.Add(1)
	return p.deps.Store.EndTrash(ctx, d) //nolint:wrapcheck // the same
}
