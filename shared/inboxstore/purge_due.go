package inboxstore

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

func purgePartition(shard int) string { return "due/" + strconv.Itoa(shard) }

// purgeKey follows from what is due and when, so that who knows both can drop it without a look.
func purgeKey(d inbox.Due) store.Key {
	return key(purgePartition(shardOf(d.ID)), inbox.Position(d.At, "/"+string(d.Kind)+"/"+d.ID))
}

func (b *batch) due(d inbox.Due) { b.set(purgeKey(d), d) }

func placeOf(k store.Key) inbox.RowKey { return inbox.RowKey{Partition: k.Partition, Sort: k.Sort} }

func keyOf(k inbox.RowKey) store.Key { return key(k.Partition, k.Sort) }

// dueEmail says when a deleted mail goes for good. A restoration leaves it: a mail that was restored, or deleted anew, is not meant.
func dueEmail(e inbox.Email) inbox.Due {
	return inbox.Due{
		Kind: inbox.DueEmail, Organization: e.Organization, Workspace: e.Workspace, Inbox: e.Inbox, ID: e.ID, Since: e.DeletedAt, At: e.PurgesAt(),
	}
}

// PurgeDue implements pipeline.RetentionStore.
func (s *Store) PurgeDue(ctx context.Context, now time.Time, limit int) ([]inbox.Due, error) {
	items, err := s.earliest(ctx, purgePartition, inbox.Position(now.Add(time.Millisecond), ""), limit)
	if err != nil {
		return nil, failed("what is due", err)
	}
	all := make([]inbox.Due, 0, len(items))
	for _, item := range items {
		d, err := store.Decode[inbox.Due](item, format)
		if err != nil {
			return nil, failed("what is due", err)
		}
		d.At, d.Place, d.Revision = inbox.PositionTime(item.Key.Sort), placeOf(item.Key), item.Revision
		all = append(all, d)
	}
	return all, nil
}

// DropDue implements pipeline.RetentionStore.
func (s *Store) DropDue(ctx context.Context, d inbox.Due) error {
	return wrapIf("drop what was due", s.engine.Delete(ctx, keyOf(d.Place), store.Condition{}))
}

// lookRow is when retention looks at an inbox next.
type lookRow struct {
	At time.Time `json:"at"`
}

func lookKey(in string) store.Key { return key("retention/"+in, only) }

func dueLook(in inbox.Inbox, at time.Time) inbox.Due {
	return inbox.Due{Kind: inbox.DueInbox, Organization: in.Organization, Workspace: in.Workspace, Inbox: in.ID, ID: in.ID, At: at}
}

// firstLook is that at a new inbox.
func (b *batch) firstLook(in inbox.Inbox, at time.Time) {
	at = at.UTC().Truncate(time.Millisecond)
	b.create(lookKey(in.ID), lookRow{at})
	b.due(dueLook(in, at))
}

// lookSooner has retention look at an inbox in time for what changed: at once where it is to keep mail for another time, and at the
// end of its 30 days where it was deleted. A look that comes for nothing finds that out, so none is ever put off here.
func (s *Store) lookSooner(ctx context.Context, b *batch, old, next inbox.Inbox) error {
	var at time.Time
	switch {
	case next.Retention > 0 && next.Retention != old.Retention:
		at = s.now()
	case old.DeletedAt.IsZero() && !next.DeletedAt.IsZero():
		at = inbox.PurgeAt(next.DeletedAt)
	default:
		return nil
	}
	at = at.UTC().Truncate(time.Millisecond)
	row, read, ok, err := find[lookRow](ctx, s, lookKey(next.ID))
	if err != nil {
		return failed("next look at "+next.ID, err)
	}
	if ok && !at.Before(row.At) {
		return nil
	}
	if ok {
		b.drop(purgeKey(dueLook(next, row.At)), store.Condition{})
	}
	b.upsert(lookKey(next.ID), read, lookRow{at})
	b.due(dueLook(next, at))
	return nil
}

// LookAt implements pipeline.RetentionStore.
func (s *Store) LookAt(ctx context.Context, d inbox.Due) (in inbox.Inbox, revision uint64, ok bool, err error) {
	row, _, ok, err := find[lookRow](ctx, s, lookKey(d.ID))
	if err != nil || !ok || !row.At.Equal(d.At) {
		return inbox.Inbox{}, 0, false, wrapIf("next look at "+d.ID, err)
	}
	for range 2 { // it may move between the two reads
		for _, deleted := range []bool{false, true} {
			in, revision, ok, err = find[inbox.Inbox](ctx, s, key(inboxesPartition(d.Workspace, deleted), d.ID))
			if err != nil || ok {
				return in, revision, ok, wrapIf("inbox "+d.ID, err)
			}
		}
	}
	return inbox.Inbox{}, 0, false, nil
}

// LookAgain implements pipeline.RetentionStore. Whoever asked for another look meanwhile keeps theirs.
func (s *Store) LookAgain(ctx context.Context, d inbox.Due, in inbox.Inbox, revision uint64, next time.Time) error {
	row, read, ok, err := find[lookRow](ctx, s, lookKey(d.ID))
	if err != nil {
		return failed("next look at "+d.ID, err)
	}
	if !ok || !row.At.Equal(d.At) {
		return s.DropDue(ctx, d)
	}
	var b batch
	b.check(inboxKey(in), store.RevisionIs(revision)) // what it says is what the next look was reckoned from
	b.drop(keyOf(d.Place), store.Condition{})
	if next.IsZero() {
		b.drop(lookKey(d.ID), store.RevisionIs(read))
	} else {
		next = next.UTC().Truncate(time.Millisecond)
		b.replace(lookKey(d.ID), read, lookRow{next})
		b.due(dueLook(in, next))
	}
	if err := s.commit(ctx, &b); err != nil && !errors.Is(err, store.ErrConflict) {
		return failed("next look at "+d.ID, err)
	}
	return nil
}

// Postpone implements pipeline.RetentionStore.
func (s *Store) Postpone(ctx context.Context, d inbox.Due, until time.Time) error {
	later := d
	later.At = until.UTC().Truncate(time.Millisecond)
	var b batch
	b.drop(keyOf(d.Place), store.RevisionIs(d.Revision))
	if d.Kind == inbox.DueInbox {
		row, read, ok, err := find[lookRow](ctx, s, lookKey(d.ID))
		if err != nil {
			return failed("next look at "+d.ID, err)
		}
		if !ok || !row.At.Equal(d.At) {
			return s.DropDue(ctx, d)
		}
		b.replace(lookKey(d.ID), read, lookRow{later.At})
	}
	b.put(purgeKey(later), d.Revision, later, store.Condition{})
	if err := s.commit(ctx, &b); err != nil && !errors.Is(err, store.ErrConflict) {
		return failed("put off "+d.ID, err)
	}
	return nil
}
