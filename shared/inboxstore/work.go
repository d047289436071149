package inboxstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

const leaseSort = "lease"

// leaseRow is who works on a mail. Its place in the work is when the lease ends, so a lease that ends needs no sweeper: from then on
// the mail is among what is free.
type leaseRow struct {
	inbox.Lease
	// Done: the mail was finished under this lease; the holder who repeats a call whose answer was lost is told the same again.
	Done bool `json:"done,omitempty"`
}

// waits reports whether a mail is work for somebody.
func waits(e inbox.Email) bool {
	return e.Status == inbox.StatusProcessed && e.HandledAt.IsZero() && e.DeletedAt.IsZero()
}

// freeAt is since, or from, when a mail is free.
func (r leaseRow) freeAt(e inbox.Email) time.Time {
	if r.Until.IsZero() {
		return e.ReceivedAt
	}
	return r.Until
}

// Work implements inbox.WorkStore.
func (s *Store) Work(ctx context.Context, r inbox.WorkRange) ([]inbox.WorkRow, string, error) {
	page, err := s.engine.Query(ctx, store.Query{
		Table: store.Core, Partition: workPartition(r.Workspace, r.Inbox), To: inbox.Position(r.At.Add(time.Millisecond), ""),
		After: r.After, Limit: r.Limit,
	})
	if err != nil {
		return nil, "", failed("work", err)
	}
	rows, texts := make([]inbox.WorkRow, len(page.Items)), newSummaries(page.Items)
	for i := range page.Items {
		item := &page.Items[i]
		rows[i] = inbox.WorkRow{Workspace: r.Workspace, Key: item.Key.Sort, Revision: item.Revision}
		if err := texts.decode(item, &rows[i].Summary); err != nil {
			return nil, "", failed("work", err)
		}
	}
	return rows, page.Next, nil
}

// Lease implements inbox.WorkStore. The row that was read is what is consumed: whoever asks for it second finds it gone, and so does
// who read it before an operation changed the mail.
func (s *Store) Lease(ctx context.Context, row inbox.WorkRow, l inbox.Lease, act inbox.Act) error {
	e := inbox.Email{ID: row.ID, Workspace: row.Workspace, Inbox: row.Inbox}
	var b batch
	b.drop(key(workPartition(row.Workspace, row.Inbox), row.Key), store.RevisionIs(row.Revision))
	b.work(workKey(e, l.Until), row.Summary, row.Revision+1, store.Condition{})
	b.set(mailKey(row.Workspace, row.ID, leaseSort), leaseRow{Lease: l})
	b.act(act, row.ID, nil, l)
	err := s.commit(ctx, &b)
	if errors.Is(err, store.ErrConflict) {
		return inbox.ErrTaken
	}
	return wrapIf("lease "+row.ID, err)
}

// UpdateLeased implements inbox.WorkStore.
func (s *Store) UpdateLeased(
	ctx context.Context, ws, id string, use inbox.LeaseUse, act inbox.Act, change func(*inbox.Email) error,
) (inbox.Email, error) {
	return s.updateEmail(ctx, ws, id, &use, act, change)
}

// moveWork follows a mail that becomes work, changes, or is none any more, and does with its lease what use says.
func (s *Store) moveWork(ctx context.Context, b *batch, old, next inbox.Email, summary inbox.Summary, use *inbox.LeaseUse) error {
	was, is := waits(old), waits(next)
	if !was && !is && use == nil {
		return nil
	}
	k := mailKey(next.Workspace, next.ID, leaseSort)
	var lease leaseRow
	var read uint64
	if was || use != nil {
		var err error
		if lease, read, _, err = find[leaseRow](ctx, s, k); err != nil {
			return fmt.Errorf("lease on %s: %w", next.ID, err)
		}
	}
	if use != nil && !lease.held(*use, was) {
		return inbox.ErrLeaseLost
	}
	if !was {
		if is { // anew: whatever is left of a lease is over
			b.work(workKey(next, next.ReceivedAt), summary, 1, store.Condition{})
			b.drop(k, store.Condition{})
		}
		return nil
	}
	after := lease
	if use != nil {
		after = lease.used(*use, is)
	}
	b.leased(k, read, lease, after, use != nil, is)
	return s.moveWorkRow(ctx, b, next, summary, lease.freeAt(old), after.freeAt(old), is)
}

// leased writes what becomes of a lease: it goes with the work, unless the work was finished under it.
func (b *batch) leased(k store.Key, read uint64, lease, after leaseRow, used, is bool) {
	switch {
	case read == 0:
	case !used && !is:
		b.drop(k, store.RevisionIs(read))
	case after.ID != lease.ID || after.Done != lease.Done || !after.Until.Equal(lease.Until):
		b.replace(k, read, after)
	}
}

// moveWorkRow rewrites the row, at the place to which its lease moves it. It is written under the revision that was read: a lease
// that was taken in between took the row away.
func (s *Store) moveWorkRow(ctx context.Context, b *batch, e inbox.Email, summary inbox.Summary, from, to time.Time, is bool) error {
	place := workKey(e, from)
	row, err := s.engine.Get(ctx, place)
	missing := errors.Is(err, store.ErrNotFound)
	if err != nil && !missing {
		return fmt.Errorf("work row of %s: %w", e.ID, err)
	}
	target := workKey(e, to)
	cond := store.RevisionIs(row.Revision)
	if missing { // stored before there were such rows
		cond = store.Absent()
	}
	switch {
	case !is && missing:
		b.check(place, cond)
	case !is:
		b.drop(place, cond)
	case target == place:
		b.work(place, summary, row.Revision+1, cond)
	default:
		if missing {
			b.check(place, cond)
		} else {
			b.drop(place, cond)
		}
		b.work(target, summary, row.Revision+1, store.Condition{})
	}
	return nil
}

// work writes a mail's row among what waits.
func (b *batch) work(k store.Key, summary inbox.Summary, revision uint64, cond store.Condition) {
	item := encodeSummary(k, summary)
	item.Revision = revision
	b.ops = append(b.ops, store.Put(item, cond))
}

// held reports whether a mail is held under the lease that use names. Of a mail that is no work any more only who finished it may
// say so again.
func (r leaseRow) held(use inbox.LeaseUse, waits bool) bool {
	if r.ID == "" || r.ID != use.ID {
		return false
	}
	if waits {
		return use.At.Before(r.Until)
	}
	return r.Done
}

// used is what use makes of the lease. One that is given back leaves only since when the mail is free.
func (r leaseRow) used(use inbox.LeaseUse, is bool) leaseRow {
	switch {
	case !is:
		r.Done = true
	case use.Release:
		r = leaseRow{Lease: inbox.Lease{Until: use.At}}
	case !use.Until.IsZero():
		r.Until = use.Until
	}
	return r
}

// useLease does what use says with the lease on a mail that stays as it is.
func (s *Store) useLease(ctx context.Context, e inbox.Email, revision uint64, use *inbox.LeaseUse, act inbox.Act) error {
	if use == nil {
		return nil
	}
	var b batch
	if err := s.moveWork(ctx, &b, e, e, inbox.Summarize(e), use); err != nil {
		return err
	}
	if !waits(e) || use.Until.IsZero() && !use.Release {
		return nil
	}
	b.check(mailKey(e.Workspace, e.ID, docSort), store.RevisionIs(revision))
	b.act(act, e.ID, nil, nil)
	return s.commit(ctx, &b)
}
