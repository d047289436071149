package inboxstore

import (
	"context"
	"fmt"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// Threads implements inbox.ThreadStore.
func (s *Store) Threads(ctx context.Context, r inbox.ThreadRange) ([]inbox.Thread, string, error) {
	page, err := s.engine.Query(ctx, store.Query{
		Table: store.Core, Partition: threadsPartition(r.Workspace, r.Inbox), From: r.From, After: r.After, Descending: true, Limit: r.Limit,
	})
	if err != nil {
		return nil, "", failed("threads", err)
	}
	rows, err := decodeAll[inbox.Thread](page.Items)
	if err != nil {
		return nil, "", failed("threads", err)
	}
	return rows, page.Next, nil
}

// Thread implements inbox.ThreadStore.
func (s *Store) Thread(ctx context.Context, ws, id string) (inbox.Thread, error) {
	t, _, err := get[inbox.Thread](ctx, s, threadKey(ws, id))
	if err != nil {
		return inbox.Thread{}, missing("thread "+id, err, inbox.NoThread())
	}
	return t, nil
}

// moveThread follows a mail that joins, leaves or changes what its thread counts. The thread's own row is written under the revision
// that was read, so changes to one thread come one after the other, and what is read of its mails after it is as it will be.
func (s *Store) moveThread(ctx context.Context, b *batch, old, next inbox.Email) error {
	was, is := inThread(old), inThread(next)
	if !was && !is || was && is && counted(old) == counted(next) {
		return nil
	}
	k := threadKey(next.Workspace, next.Thread)
	if !is {
		k = threadKey(old.Workspace, old.Thread)
	}
	t, revision, ok, err := find[inbox.Thread](ctx, s, k)
	if err != nil {
		return fmt.Errorf("thread %s: %w", k.Sort, err)
	}
	place := t.Position()
	switch {
	case !was:
		t.Add(next)
	case !ok: // it was begun before threads had rows: the next mail makes it one
		return nil
	case is:
		t.Recount(old, next)
	default:
		empty, err := s.leaveThread(ctx, &t, old)
		if err != nil {
			return err
		}
		if empty {
			b.drop(k, store.RevisionIs(revision))
			b.dropThread(t, place)
			return nil
		}
	}
	return b.putThread(k, t, revision, ok, place)
}

// inThread: deleted mail is in none.
func inThread(e inbox.Email) bool { return e.Thread != "" && e.DeletedAt.IsZero() }

type inThreadAs struct{ unhandled, quarantined bool }

func counted(e inbox.Email) inThreadAs {
	return inThreadAs{e.HandledAt.IsZero(), e.Status == inbox.StatusQuarantined}
}

// leaveThread takes a mail out; empty when it was the last.
func (s *Store) leaveThread(ctx context.Context, t *inbox.Thread, e inbox.Email) (empty bool, err error) {
	place := inbox.Position(e.ReceivedAt, e.ID)
	last, err := s.threadEnd(ctx, e, false)
	if err != nil || last == nil {
		return last == nil, err
	}
	var first *inbox.Summary
	if place <= t.First {
		if first, err = s.threadEnd(ctx, e, true); err != nil {
			return false, err
		}
	}
	if place < t.Last {
		last = nil
	}
	t.Remove(e, first, last)
	return false, nil
}

// threadEnd is the first or the last mail of a thread without e; nil when there is none.
func (s *Store) threadEnd(ctx context.Context, e inbox.Email, first bool) (*inbox.Summary, error) {
	rows, _, err := s.Emails(ctx, inbox.EmailRange{Workspace: e.Workspace, Thread: e.Thread, Limit: 2, Ascending: first})
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if rows[i].ID != e.ID {
			return &rows[i].Summary, nil
		}
	}
	return nil, nil //nolint:nilnil // a thread without mail has no end
}

// putThread writes the thread and its row in each list; place is where they stood.
func (b *batch) putThread(k store.Key, t inbox.Thread, revision uint64, existed bool, place string) error {
	item, err := store.Encode(k, format, revision+1, t)
	if err != nil {
		return fmt.Errorf("thread %s: %w", t.ID, err)
	}
	cond := store.Absent()
	if existed {
		cond = store.RevisionIs(revision)
	}
	b.ops = append(b.ops, store.Put(item, cond))
	now := t.Position()
	if existed && now != place {
		b.dropThread(t, place)
	}
	for _, in := range []string{"", t.Inbox} {
		item.Key = key(threadsPartition(t.Workspace, in), now)
		b.ops = append(b.ops, store.Put(item, store.Condition{}))
	}
	return nil
}

func (b *batch) dropThread(t inbox.Thread, place string) {
	for _, in := range []string{"", t.Inbox} {
		b.drop(key(threadsPartition(t.Workspace, in), place), store.Condition{})
	}
}
