package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/queue"
)

// resender puts the ids of old outbox rows on the queue: their messages were lost, or were given up while something was away.
// What it remembers spares messages and decides nothing. It belongs to one goroutine.
type resender struct {
	outbox Outbox
	queue  queue.Queue
	clock  func() time.Time
	age    time.Duration // of a row that is sent again
	limit  int           // rows of one look

	resent map[string]time.Time
	more   bool // the outbox has more old rows than one look showed
}

// forget makes an id one that was not sent again.
func (r *resender) forget(id string) { delete(r.resent, id) }

// resend looks once and tells how many messages it sent.
func (r *resender) resend(ctx context.Context) (sent int, err error) {
	now := r.clock()
	ids, err := r.outbox.Pending(ctx, now.Add(-r.age), r.limit)
	if err != nil {
		return 0, fmt.Errorf("read the outbox: %w", err)
	}
	r.more = len(ids) >= r.limit
	for id, at := range r.resent {
		if now.Sub(at) >= resendAgain || now.Before(at) {
			delete(r.resent, id)
		}
	}
	var messages []queue.Message
	for _, id := range ids {
		if _, waiting := r.resent[id]; waiting {
			continue
		}
		messages = append(messages, queue.Message{ID: id})
	}
	for len(messages) > 0 && ctx.Err() == nil {
		n := min(len(messages), queue.MaxBatch)
		if err := r.queue.Send(ctx, messages[:n]...); err != nil {
			return sent, fmt.Errorf("queue the outbox: %w", err)
		}
		for _, m := range messages[:n] {
			r.resent[m.ID] = now
		}
		sent += n
		messages = messages[n:]
	}
	return sent, nil
}

// DueDeps is what Due needs.
type DueDeps struct {
	Recipients Recipients
	Outbox     Outbox
	Holding    Holding
	Queue      queue.Queue
	Logger     *slog.Logger
	Clock      func() time.Time // time.Now when nil
}

// DueOptions bound one run. A zero field takes the default.
type DueOptions struct {
	// ResendAge is how old an outbox row must be to be sent again; 30 s. Where the queue's messages are out of sight while they
	// are in work, it is that time: a younger row is in work as a rule.
	ResendAge   time.Duration
	ResendLimit int // outbox rows of one look; 500
	Inboxes     int // with held mail that one run looks at; 500
	Release     int // held mails of one inbox that one run lets go; 500
}

// Due does what a clock has to drive where no Runner lives: it sends again what the outbox holds and no message names, and lets
// go what was held for inboxes that are no longer paused. Repeating it is harmless, also in two processes at once. Run may be
// called by one goroutine at a time.
type Due struct {
	deps   DueDeps
	opts   DueOptions
	resend *resender
	after  string // the inbox at which the last look at held mail stopped
}

// NewDue checks the dependencies.
func NewDue(deps DueDeps, opts DueOptions) (*Due, error) {
	if deps.Recipients == nil || deps.Outbox == nil || deps.Holding == nil || deps.Queue == nil || deps.Logger == nil {
		return nil, errors.New("pipeline: Recipients, Outbox, Holding, Queue and Logger are required")
	}
	if deps.Clock == nil {
		deps.Clock = time.Now
	}
	if opts.ResendAge <= 0 {
		opts.ResendAge = resendAge
	}
	for _, n := range []*int{&opts.ResendLimit, &opts.Inboxes, &opts.Release} {
		if *n <= 0 {
			*n = 500
		}
	}
	return &Due{deps: deps, opts: opts, resend: &resender{
		outbox: deps.Outbox, queue: deps.Queue, clock: deps.Clock, age: opts.ResendAge, limit: opts.ResendLimit,
		resent: map[string]time.Time{},
	}}, nil
}

// Run does what is due now. One part's failure does not keep the other from its turn.
func (d *Due) Run(ctx context.Context) error {
	sent, first := d.resend.resend(ctx)
	released, second := d.release(ctx)
	if sent > 0 || released > 0 {
		d.deps.Logger.Info("pipeline: due", slog.Int("resent", sent), slog.Int("released", released))
	}
	return errors.Join(first, second)
}

// release looks at the inboxes with held mail, beginning where it stopped the last time.
func (d *Due) release(ctx context.Context) (released int, err error) {
	for range d.opts.Inboxes {
		held, err := d.deps.Holding.NextHeld(ctx, d.after)
		if apperr.Is(err, apperr.NotFound) {
			d.after = ""
			return released, nil
		}
		if err != nil {
			return released, fmt.Errorf("read what is held: %w", err)
		}
		to := held.Recipients[0]
		d.after = to.Inbox
		r, err := d.deps.Recipients.Recipient(ctx, to.Address)
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			return released, fmt.Errorf("look at %s: %w", to.Inbox, err)
		}
		// A deleted inbox gets its mail too: it was accepted, and nothing that was is dropped here.
		if err == nil && r.Inbox == to.Inbox && r.State == inbox.StatePaused {
			continue
		}
		n, err := d.letGo(ctx, to.Inbox)
		released += n
		if err != nil {
			return released, err
		}
	}
	return released, nil
}

// letGo moves held intakes to the outbox: the row first, so that a crash in between makes it twice, which is harmless.
func (d *Due) letGo(ctx context.Context, box string) (n int, err error) {
	list, err := d.deps.Holding.Held(ctx, box, d.opts.Release)
	if err != nil {
		return 0, fmt.Errorf("read what is held for %s: %w", box, err)
	}
	for _, in := range list {
		if err := d.deps.Outbox.PutIntake(ctx, in); err != nil {
			return n, fmt.Errorf("release %s: %w", in.ID, err)
		}
		if err := d.deps.Queue.Send(ctx, queue.Message{ID: in.ID}); err != nil {
			return n, fmt.Errorf("queue %s: %w", in.ID, err)
		}
		if err := d.deps.Holding.Unhold(ctx, in); err != nil {
			return n, fmt.Errorf("unhold %s: %w", in.ID, err)
		}
		n++
	}
	return n, nil
}
