package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/blob"
	"github.com/buzon-mail/buzon/shared/inbox"
)

// look looks at an inbox: it goes when it was deleted 30 days ago, else what is too old of its mail does, deleted or not. What does not
// fit into the run leaves the look due.
func (p *purging) look(ctx context.Context, d inbox.Due) error {
	in, revision, ok, err := p.deps.Store.LookAt(ctx, d)
	if err != nil {
		return err //nolint:wrapcheck // the store names the step
	}
	if !p.spend(ctx) {
		return nil
	}
	if !ok {
		return p.deps.Store.DropDue(ctx, d) //nolint:wrapcheck // the same
	}
	now := p.now()
	if in.Purging || inbox.Expired(in.DeletedAt, now) {
		return p.inbox(ctx, d, in, revision)
	}
	var next time.Time
	if in.Retention > 0 {
		oldest, done, err := p.tooOld(ctx, in, revision)
		if err != nil || !done {
			return err
		}
		next = now.Add(lookLatest)
		if end := oldest.Add(in.Keeps()); !oldest.IsZero() && end.Before(next) {
			next = end
		}
		if soonest := now.Add(lookSoonest); next.Before(soonest) {
			next = soonest
		}
	}
	if end := inbox.PurgeAt(in.DeletedAt); !end.IsZero() && (next.IsZero() || end.Before(next)) {
		next = end
	}
	return p.deps.Store.LookAgain(ctx, d, in, revision, next) //nolint:wrapcheck // the same
}

// tooOld purges what the inbox keeps no longer and returns when the oldest mail that is left was received. Mail that is in work is left
// to its worker: it has its end in sight, or will be a failed one.
func (p *purging) tooOld(ctx context.Context, in inbox.Inbox, revision uint64) (oldest time.Time, done bool, err error) {
	rows, _, err := p.deps.Store.Emails(ctx, inbox.EmailRange{Workspace: in.Workspace, Inbox: in.ID, Deleted: true, Ascending: true, Limit: p.opts.Chunk})
	if err != nil {
		return oldest, false, fmt.Errorf("oldest mail: %w", err)
	}
	of, err := p.of(in.Organization, in.Workspace, in.ID)
	if err != nil {
		return oldest, false, err
	}
	cut := p.now().Add(-in.Keeps())
	some := false
	for _, row := range rows {
		if row.ReceivedAt.After(cut) {
			return row.ReceivedAt, true, nil
		}
		if !p.spend(ctx) {
			return oldest, false, nil
		}
		purged, err := p.deps.Store.PurgeEmail(ctx, inbox.EmailPurge{
			Workspace: in.Workspace, ID: row.ID, Inbox: &in, Revision: revision,
			Due: func(e inbox.Email) (bool, bool) {
				return e.Inbox == in.ID && !e.ReceivedAt.After(cut) && e.Status != inbox.StatusReceived && e.Status != inbox.StatusProcessing, true
			},
		}, of)
		if err != nil {
			return oldest, false, err //nolint:wrapcheck // the store names the step
		}
		if purged {
			p.count.emails.Add(1)
			some = true
		}
	}
	// A whole page of mail in work keeps nobody busy: the next look comes soon enough.
	return oldest, len(rows) < p.opts.Chunk || !some, nil
}

// inbox purges a deleted inbox: it is missing from here on, then its mail goes, then all that is left of it, and it itself last.
func (p *purging) inbox(ctx context.Context, d inbox.Due, in inbox.Inbox, revision uint64) error {
	if !in.Purging {
		began, err := p.deps.Store.BeginInboxPurge(ctx, in, revision)
		if err != nil || !began {
			return err //nolint:wrapcheck // the store names the step
		}
	}
	of, err := p.of(in.Organization, in.Workspace, in.ID)
	if err != nil {
		return err
	}
	rows, _, err := p.deps.Store.Emails(ctx, inbox.EmailRange{Workspace: in.Workspace, Inbox: in.ID, Deleted: true, Ascending: true, Limit: p.opts.Chunk})
	if err != nil {
		return fmt.Errorf("its mail: %w", err)
	}
	some := false
	for _, row := range rows {
		if !p.spend(ctx) {
			return nil
		}
		purged, err := p.deps.Store.PurgeEmail(ctx, inbox.EmailPurge{
			Workspace: in.Workspace, ID: row.ID, WithInbox: true, Due: func(e inbox.Email) (bool, bool) { return e.Inbox == in.ID, false },
		}, of)
		if err != nil {
			return err //nolint:wrapcheck // the same
		}
		if purged {
			p.count.emails.Add(1)
			some = true
		}
	}
	if some { // there may be more of it
		return nil
	}
	return p.sweep(ctx, d, in)
}

// sweep drops what is left of an inbox without mail.
func (p *purging) sweep(ctx context.Context, d inbox.Due, in inbox.Inbox) error {
	for p.spend(ctx) {
		n, err := p.deps.Store.SweepInbox(ctx, in, sweepRows)
		if err != nil {
			return err //nolint:wrapcheck // the store names the step
		}
		if n > 0 {
			continue
		}
		act, err := inbox.SystemAct(p.now(), p.deps.Rand, retentionPart, "inboxes_purge", in.Organization, in.Workspace)
		if err != nil {
			return err
		}
		p.count.inboxes.Add(1)
		return p.deps.Store.EndInboxPurge(ctx, d, in, act) //nolint:wrapcheck // the same
	}
	return nil
}

// Orphan purges a mail whose inbox was purged while it waited: it was accepted before, and came to its worker long after.
func (r *Retention) Orphan(ctx context.Context, e inbox.Email) error {
	act, err := inbox.SystemAct(r.now(), r.deps.Rand, retentionPart, "emails_purge", e.Organization, e.Workspace)
	if err != nil {
		return err
	}
	_, err = r.deps.Store.PurgeEmail(ctx, inbox.EmailPurge{
		Workspace: e.Workspace, ID: e.ID, WithInbox: true, Due: func(inbox.Email) (bool, bool) { return true, false },
	}, &inbox.Purge{Inbox: e.Inbox, Line: *act.Audit})
	return err //nolint:wrapcheck // the store names the step
}

// removeUnnamed removes the blobs of a mail that no row may have named: its run was interrupted, or its rows were refused. They are
// numbered without a gap, so they are counted from below and removed from above: a run that is killed leaves none that the next one
// would not find.
func removeUnnamed(ctx context.Context, blobs Blobs, email string) error {
	id := strings.ToLower(email)
	for v := 1; v <= Version; v++ {
		if err := blobs.Delete(ctx, fmt.Sprintf("body/%s/%d", id, v)); err != nil {
			return blobFailure(err)
		}
		if err := removeNumbered(ctx, blobs, fmt.Sprintf("att/%s/%d/", id, v), 0); err != nil {
			return err
		}
	}
	return removeNumbered(ctx, blobs, "try/"+id+"/", 1)
}

func removeNumbered(ctx context.Context, blobs Blobs, prefix string, from int) error {
	n := from
	for ; n < maxSearch; n++ {
		_, err := blobs.Get(ctx, fmt.Sprint(prefix, n), 0)
		if errors.Is(err, blob.ErrNotFound) {
			break
		}
		if err != nil && !errors.Is(err, blob.ErrTooLarge) {
			return blobFailure(err)
		}
	}
	for n--; n >= from; n-- {
		if err := blobs.Delete(ctx, fmt.Sprint(prefix, n)); err != nil {
			return blobFailure(err)
		}
	}
	return nil
}
