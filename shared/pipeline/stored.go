package pipeline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/queue"
)

// MaxStored is a little over the largest mail that SES takes, 40 MB. A transport that has said yes already can't be refused, so
// it is more than MaxRaw; the parser reads the first MaxRaw of it and says so.
const MaxStored = 48 << 20

// StoredBlobs reads a blob as a stream.
type StoredBlobs interface {
	Open(ctx context.Context, key string) (io.ReadCloser, int64, error)
}

var _ StoredBlobs = blob.Store(nil)

// AcceptStored takes a mail whose bytes are in the blob store already and returns the ids of its intakes: one for each 50
// recipients, and one for each inbox that is paused, which is held. The blob stays where it is and is what the mails will be
// read from; it is read once, in a stream, for its digest. Nil means that the mail is durable and will be processed. After an
// error, and after success, doing it again changes nothing that is there: every id follows from Source and the inboxes.
func (n *Intake) AcceptStored(ctx context.Context, in inbox.Stored) ([]string, error) {
	if n.deps.Stored == nil || n.deps.Holding == nil {
		return nil, errors.New("pipeline: AcceptStored needs Stored and Holding")
	}
	if len(in.Recipients) == 0 || in.Source == "" || in.ReceivedAt.IsZero() || blob.CheckKey(in.Key) != nil {
		return nil, apperr.New(apperr.Invalid, "bad_intake", "A stored mail needs its source, its time, its key and recipients.")
	}
	row := inbox.Intake{
		ReceivedAt: in.ReceivedAt.UTC(), RawKey: in.Key, From: in.From, Authentication: in.Authentication,
		Shared: true, // a second notice may name an inbox more
	}
	now, later, err := storedRows(row, in)
	if err != nil {
		return nil, err
	}
	if done, err := n.read(ctx, in.Key, now, later); done || err != nil {
		return nil, err
	}
	for _, rows := range [][]inbox.Intake{now, later} { // its transport has said yes to all
		for i := range rows {
			markStored(&rows[i], in.Recipients)
		}
	}
	for _, row := range later {
		if err := bounded(ctx, func(ctx context.Context) error { return n.deps.Holding.Hold(ctx, row) }); err != nil {
			return nil, unavailable("hold the mail of a paused inbox", err)
		}
	}
	for _, row := range now {
		if err := bounded(ctx, func(ctx context.Context) error { return n.deps.Outbox.PutIntake(ctx, row) }); err != nil {
			return nil, unavailable("store the outbox row", err)
		}
	}
	ids := make([]string, 0, len(now)+len(later))
	for _, row := range now {
		if err := n.deps.Queue.Send(ctx, queue.Message{ID: row.ID}); err != nil {
			n.deps.Logger.Warn("pipeline: intake not queued, the outbox will send it", slog.String("intake", row.ID))
		}
		ids = append(ids, row.ID)
	}
	for _, row := range later {
		ids = append(ids, row.ID)
	}
	return ids, nil
}

// markStored is markTooLarge for rows whose deliveries are some of the recipients. Who refused the sender keeps that reason.
func markStored(row *inbox.Intake, to []inbox.Recipient) {
	for i := range row.Recipients {
		d := &row.Recipients[i]
		for _, r := range to {
			if r.Inbox == d.Inbox && d.Door == "" && r.TooLarge(row.Size) {
				d.Door = inbox.HeldTooLarge
			}
		}
	}
}

// read names the bytes, so that nobody removes them from here on, and then reads them. done: a notice that comes again when all of its
// mails have come and gone.
func (n *Intake) read(ctx context.Context, key string, lists ...[]inbox.Intake) (done bool, err error) {
	var mails []string
	for _, list := range lists {
		for _, row := range list {
			for _, d := range row.Recipients {
				mails = append(mails, d.Email)
			}
		}
	}
	err = bounded(ctx, func(ctx context.Context) error { return n.deps.Outbox.NameRaw(ctx, key, mails) })
	if errors.Is(err, inbox.ErrRawDone) {
		return true, nil
	}
	if err != nil {
		return false, unavailable("name the stored mail", err)
	}
	size, digest, err := n.digest(ctx, key)
	if err != nil {
		return false, fmt.Errorf("read the stored mail: %w", err)
	}
	for _, list := range lists {
		for i := range list {
			list[i].Size, list[i].RawSHA256 = size, digest
		}
	}
	return false, nil
}

// digest reads the blob to its end without keeping it. A blob that is missing is not not_found: that would tell a queue that
// the work is done, where the mail may be lost.
func (n *Intake) digest(ctx context.Context, key string) (int64, string, error) {
	body, size, err := n.deps.Stored.Open(ctx, key)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return 0, "", fmt.Errorf("the bytes of %s are missing: %w", key, err)
	case err != nil:
		return 0, "", unavailable("open", err)
	}
	defer body.Close() //nolint:errcheck // read only
	if size > MaxStored {
		return 0, "", apperr.New(apperr.TooLarge, "", fmt.Sprintf("A mail may have %d bytes.", MaxStored))
	}
	h := sha256.New()
	read, err := io.Copy(h, io.LimitReader(body, MaxStored+1))
	if err == nil && read != size {
		err = fmt.Errorf("%d bytes of %d", read, size)
	}
	if err != nil {
		return 0, "", unavailable("read", err)
	}
	return size, hex.EncodeToString(h.Sum(nil)), nil
}

// storedRows makes the intakes: those that go on now and those that are held. The id of a mail follows from the source and its
// inbox, that of an intake from its mails, so that neither depends on who else is among the recipients.
func storedRows(row inbox.Intake, in inbox.Stored) (now, held []inbox.Intake, err error) {
	seen := map[string]bool{}
	var active, paused []inbox.Delivery
	for _, r := range in.Recipients {
		if seen[r.Inbox] {
			continue
		}
		seen[r.Inbox] = true
		email, err := fixedID(prefixEmail, row.ReceivedAt, in.Source, r.Inbox)
		if err != nil {
			return nil, nil, err
		}
		d := inbox.Delivery{Email: email, Address: r.Address, Organization: r.Organization, Workspace: r.Workspace, Inbox: r.Inbox, Door: r.Door}
		if r.State == inbox.StatePaused {
			paused = append(paused, d)
		} else {
			active = append(active, d)
		}
	}
	slices.SortFunc(active, func(a, b inbox.Delivery) int { return cmp.Compare(a.Email, b.Email) })
	var parts [][]inbox.Delivery
	for chunk := range slices.Chunk(active, MaxRecipients) {
		parts = append(parts, chunk)
	}
	for _, d := range paused {
		parts = append(parts, []inbox.Delivery{d})
	}
	for i, part := range parts {
		row.Recipients = part
		names := []string{in.Source}
		for _, d := range part {
			names = append(names, d.Email)
		}
		if row.ID, err = fixedID(prefixIntake, row.ReceivedAt, names...); err != nil {
			return nil, nil, err
		}
		if i < len(parts)-len(paused) {
			now = append(now, row)
		} else {
			held = append(held, row)
		}
	}
	return now, held, nil
}
