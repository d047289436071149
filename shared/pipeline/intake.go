package pipeline

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/queue"
)

// The bounds of what is accepted.
const (
	MaxRaw        = 25 << 20 // bytes of one mail
	MaxRecipients = 50
)

// stepTimeout bounds what must be done whether or not the caller is still there.
const stepTimeout = 10 * time.Second

// IntakeDeps is what Intake needs.
type IntakeDeps struct {
	Recipients Recipients
	Outbox     Outbox
	Blobs      Blobs
	Queue      queue.Queue
	Logger     *slog.Logger
	Clock      func() time.Time // time.Now when nil
	NewID      NewID            // MonotonicIDs when nil; fixed ones make demo data repeatable
	Senders    Senders          // nil: everybody may send
	Stored     StoredBlobs      // for AcceptStored alone
	Holding    Holding          // for AcceptStored alone
	Known      Known            // for Import alone
	// Rejected tells of a sender who was refused; its failure is not the sender's. nil: nobody is told.
	Rejected func(ctx context.Context, to inbox.Recipient, from string, at time.Time) error
}

// IntakeOptions bound the intake.
type IntakeOptions struct {
	MaxBytes int64 // of one mail; MaxRaw when 0
	Memory   int64 // bytes of mail that may be on their way at once, over all senders; 256 MiB when 0
}

// Intake accepts mail: the raw bytes first, then the outbox row, and only then may anybody say 250. It parses nothing.
type Intake struct {
	deps   IntakeDeps
	max    int64
	budget *budget
}

// NewIntake checks the dependencies.
func NewIntake(deps IntakeDeps, opts IntakeOptions) (*Intake, error) {
	if deps.Recipients == nil || deps.Outbox == nil || deps.Blobs == nil || deps.Queue == nil || deps.Logger == nil {
		return nil, errors.New("pipeline: Recipients, Outbox, Blobs, Queue and Logger are required")
	}
	if deps.Clock == nil {
		deps.Clock = time.Now
	}
	if deps.NewID == nil {
		deps.NewID = MonotonicIDs(nil)
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = MaxRaw
	}
	if opts.Memory <= 0 {
		opts.Memory = 256 << 20
	}
	return &Intake{deps: deps, max: opts.MaxBytes, budget: &budget{left: opts.Memory}}, nil
}

// Recipient finds the inbox behind an address.
func (n *Intake) Recipient(ctx context.Context, address string) (inbox.Recipient, error) {
	return n.deps.Recipients.Recipient(ctx, address)
}

// Sender reports whether a recipient takes mail of a MAIL FROM at all: *apperr.Error forbidden when not. Two reads.
func (n *Intake) Sender(ctx context.Context, to inbox.Recipient, from string) error {
	refused, err := n.Door(ctx, to, from)
	if err != nil || refused == "" {
		return err
	}
	if tell := n.deps.Rejected; tell != nil {
		if err := bounded(ctx, func(ctx context.Context) error { return tell(ctx, to, from, n.deps.Clock()) }); err != nil {
			n.deps.Logger.Warn("pipeline: nobody was told of a refused sender", slog.String("inbox", to.Inbox))
		}
	}
	return apperr.New(apperr.Forbidden, "sender_refused", "The recipient does not take mail of this sender.")
}

// Door is Sender for a transport that has said yes already: why the recipient would have refused, empty when it would not.
func (n *Intake) Door(ctx context.Context, to inbox.Recipient, from string) (refused string, err error) {
	if n.deps.Senders == nil {
		return "", nil
	}
	entries, err := n.deps.Senders.SendersFor(ctx, to.Workspace, to.Inbox, inbox.SenderAddress(from))
	if err != nil {
		return "", fmt.Errorf("senders of %s: %w", to.Inbox, err)
	}
	policy, unlisted := to.Policy()
	return inbox.AtDoor(from, entries, policy, unlisted, n.deps.Clock()), nil
}

// Accept stores one mail and returns the id of its intake. Nil means that the mail is durable and will be processed; an
// error means that nothing of it is left, or, when the store can't even say which, that a second copy from the sender will
// be recognised as one.
func (n *Intake) Accept(ctx context.Context, in inbox.Incoming) (string, error) {
	if len(in.Recipients) == 0 || len(in.Recipients) > MaxRecipients || in.Body == nil {
		return "", apperr.New(apperr.Invalid, "bad_intake", fmt.Sprintf("A mail needs 1 to %d recipients.", MaxRecipients))
	}
	body, err := n.budget.read(ctx, in.Body, n.max)
	defer body.release()
	if err != nil {
		return "", unavailable("receive the mail", err)
	}
	row, err := n.row(in)
	if err != nil {
		return "", unavailable("choose ids", err)
	}
	if !markTooLarge(row.Recipients, in.Recipients, body.size) {
		return "", apperr.New(apperr.TooLarge, "", "The mail is larger than its recipients take.")
	}
	row.Announced = true
	if err := n.deps.Outbox.AnnounceIntake(ctx, row); err != nil {
		return "", unavailable("announce the raw mail", err)
	}
	if err := n.deps.Blobs.Put(ctx, row.RawKey, body.reader(), body.size); err != nil {
		n.discard(ctx, row.RawKey)
		return "", unavailable("store the raw mail", err)
	}
	row.Size, row.RawSHA256 = body.size, hex.EncodeToString(body.hash.Sum(nil))
	if in.Repairs != nil {
		row.Repairs = in.Repairs()
	}
	if err := n.commit(ctx, row); err != nil {
		return "", err
	}
	// The row is durable, so the mail is accepted whatever becomes of the message.
	if err := n.deps.Queue.Send(ctx, queue.Message{ID: row.ID}); err != nil {
		n.deps.Logger.Warn("pipeline: intake not queued, the outbox will send it", slog.String("intake", row.ID))
	}
	return row.ID, nil
}

// markTooLarge marks the deliveries to those recipients that take no mail of this size, and reports whether any is left that does. Once the
// bytes are there SMTP has one answer for all recipients (RFC 5321 section 4.2.5), and the others' mail is not to be lost for these; nor
// is theirs after a 250: it is kept, in quarantine.
func markTooLarge(deliveries []inbox.Delivery, to []inbox.Recipient, size int64) (some bool) {
	for i, r := range to {
		if r.TooLarge(size) {
			deliveries[i].Door = inbox.HeldTooLarge
		} else {
			some = true
		}
	}
	return some
}

// row makes the outbox row, but for what the bytes tell. All ids are chosen here, so that the worker can run twice, and only
// once the last byte is there, which may be minutes after the first: rows whose ids look old are sent to the queue again.
func (n *Intake) row(in inbox.Incoming) (inbox.Intake, error) {
	now := n.deps.Clock().UTC()
	id, err := n.deps.NewID(prefixIntake, now)
	if err != nil {
		return inbox.Intake{}, err
	}
	row := inbox.Intake{
		ID: id, ReceivedAt: now, RawKey: "raw/" + now.Format("2006/01/02/") + strings.ToLower(id) + ".eml",
		From: in.From, RemoteIP: in.RemoteIP, HELO: in.HELO, Recipients: make([]inbox.Delivery, 0, len(in.Recipients)),
	}
	for _, r := range in.Recipients {
		email, err := n.deps.NewID(prefixEmail, now)
		if err != nil {
			return inbox.Intake{}, err
		}
		row.Recipients = append(row.Recipients, inbox.Delivery{
			Email: email, Address: r.Address, Organization: r.Organization, Workspace: r.Workspace, Inbox: r.Inbox,
		})
	}
	return row, nil
}

// commit stores the row. An error of a store can hide a write that happened, and neither answer may be given on a guess: a
// row without its bytes would be a mail that nobody can read, and bytes without a row, after 250, a lost one.
func (n *Intake) commit(ctx context.Context, row inbox.Intake) error {
	err := bounded(ctx, func(ctx context.Context) error { return n.deps.Outbox.PutIntake(ctx, row) })
	if err == nil {
		return nil
	}
	look := bounded(ctx, func(ctx context.Context) error {
		_, err := n.deps.Outbox.Intake(ctx, row.ID)
		return err
	})
	// A row that is not found was not written, or a worker has finished it. No message names it yet, so a worker can only have
	// it from the outbox, which gives out no row before it is old.
	young := n.deps.Clock().Sub(row.ReceivedAt) < resendAge
	switch {
	case look == nil:
		return nil
	case apperr.Is(look, apperr.NotFound) && young:
		n.discard(ctx, row.RawKey)
	default:
		// Unknown: the bytes stay, in case the row is there. The sender comes again, and dedupe knows the second copy.
		n.deps.Logger.Warn("pipeline: outcome of an intake unknown", slog.String("intake", row.ID))
	}
	return unavailable("store the outbox row", err)
}

// bounded runs a step that must come to its end even when the caller has gone.
func bounded(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	return step(ctx)
}

// discard removes the bytes of a mail that was not accepted.
func (n *Intake) discard(ctx context.Context, key string) {
	if err := bounded(ctx, func(ctx context.Context) error { return n.deps.Blobs.Delete(ctx, key) }); err != nil {
		n.deps.Logger.Warn("pipeline: bytes of a refused mail were left behind", slog.String("key", key))
	}
}

// unavailable names the step. A failure that is not of our vocabulary is the store's and temporary: the sender has the
// mail still.
func unavailable(step string, err error) error {
	err = blobFailure(err)
	if _, ok := errors.AsType[*apperr.Error](err); ok {
		return fmt.Errorf("%s: %w", step, err)
	}
	return apperr.New(apperr.Unavailable, "", "The mail can't be stored now.").Because(fmt.Errorf("%s: %w", step, err))
}
