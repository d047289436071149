package inboxstore

import (
	"context"
	"errors"
	"slices"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// BeginInboxPurge implements pipeline.RetentionStore. It writes the row that a restoration would move, under the revision that was
// read: one of the two happens, and no restoration after this, so that mail can go a part at a time. The slug is free from now on.
func (s *Store) BeginInboxPurge(ctx context.Context, in inbox.Inbox, revision uint64) (bool, error) {
	next := in
	next.Purging = true
	var b batch
	b.replace(inboxKey(in), revision, next)
	b.drop(slugKey(in.Workspace, in.Slug), store.Condition{})
	err := s.commit(ctx, &b)
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	return err == nil, wrapIf("begin to purge "+in.ID, err)
}

// partitionsOf are what an inbox leaves when its mail is gone: rows that no operation can reach any more.
func partitionsOf(in inbox.Inbox) []string {
	ws, id := in.Workspace, in.ID
	mails := "mails/" + ws + "/i/" + id
	list := []string{
		mails, mails + "/deleted", attsPartition(ws, id, false), attsPartition(ws, id, true), "dup/" + ws + "/" + id, "threading/" + ws + "/" + id,
		sendersPartition(ws, id, false), sendersPartition(ws, id, true), "sender-zones/" + ws + "/" + id, hitsPartition(ws, id), workPartition(ws, id),
	}
	for _, status := range inbox.Statuses() {
		list = append(list, mails+"/s/"+string(status))
	}
	return list
}

// SweepInbox implements pipeline.RetentionStore.
func (s *Store) SweepInbox(ctx context.Context, in inbox.Inbox, limit int) (int, error) {
	if n, err := s.dropRules(ctx, in); n > 0 || err != nil {
		return n, err
	}
	dropped := 0
	for _, q := range sweeps(in) {
		q.Table, q.Limit = store.Core, min(max(limit-dropped, 1), store.MaxLimit)
		page, err := store.Fill(ctx, s.engine, q, 4)
		if err != nil {
			return dropped, failed("sweep "+in.ID, err)
		}
		if err := s.sweepPage(ctx, in, q.Partition, page.Items); err != nil {
			return dropped, failed("sweep "+in.ID, err)
		}
		if dropped += len(page.Items); dropped >= limit || page.Next != "" {
			return max(dropped, 1), nil
		}
	}
	return dropped, nil
}

func sweeps(in inbox.Inbox) []store.Query {
	from, to := store.Prefix(in.ID + "/")
	list := []store.Query{
		{Partition: heldPartition, From: from, To: to}, {Partition: threadsPartition(in.Workspace, in.ID)},
	}
	for _, p := range partitionsOf(in) {
		list = append(list, store.Query{Partition: p})
	}
	return list
}

func (s *Store) sweepPage(ctx context.Context, in inbox.Inbox, partition string, items []store.Item) error {
	if partition == heldPartition {
		return s.dropHeld(ctx, items)
	}
	var keys []store.Key
	for _, item := range items {
		if partition == threadsPartition(in.Workspace, in.ID) {
			t, err := store.Decode[inbox.Thread](item, format)
			if err != nil {
				return err //nolint:wrapcheck // the caller names the step
			}
			keys = append(keys, threadKey(in.Workspace, t.ID), key(threadsPartition(in.Workspace, ""), item.Key.Sort))
		}
		keys = append(keys, item.Key) // last: as long as it is there, the others are found
	}
	return s.dropAll(ctx, keys)
}

// dropRules takes the rules of an inbox out of the workspace's, with their counters. Those that were deleted end by themselves.
func (s *Store) dropRules(ctx context.Context, in inbox.Inbox) (int, error) {
	book, read, err := s.Rulebook(ctx, in.Workspace, 0)
	if err != nil {
		return 0, err
	}
	var b batch
	book.Rules = slices.DeleteFunc(book.Rules, func(r inbox.Rule) bool {
		if r.Inbox != in.ID || len(b.ops) == pointersPerTx {
			return false
		}
		b.drop(key(ruleMatchesPartition(in.Workspace), r.ID), store.Condition{})
		return true
	})
	n := len(b.ops)
	if n == 0 {
		return 0, nil
	}
	b.replace(rulesKey(in.Workspace), read, book)
	err = s.commit(ctx, &b)
	if errors.Is(err, store.ErrConflict) {
		return n, nil // it is looked at again
	}
	return n, wrapIf("rules of "+in.ID, err)
}

// dropHeld drops mail that waited for the inbox to be resumed, with its bytes.
func (s *Store) dropHeld(ctx context.Context, items []store.Item) error {
	rows, err := decodeAll[outboxRow](items)
	if err != nil {
		return err
	}
	for i, row := range rows {
		var b batch
		b.drop(items[i].Key, store.Exists())
		if row.Intake != nil && len(row.Intake.Recipients) == 1 {
			e := inbox.Email{ID: row.Intake.Recipients[0].Email, RawKey: row.Intake.RawKey}
			if err := s.trashRaw(ctx, &b, e); err != nil {
				return err
			}
		}
		if err := s.commit(ctx, &b); err != nil && !errors.Is(err, store.ErrConflict) { // in conflict it is gone, or looked at again
			return err
		}
	}
	return nil
}

// EndInboxPurge implements pipeline.RetentionStore. The guard of the address stays for good, with nothing but whose it was.
func (s *Store) EndInboxPurge(ctx context.Context, d inbox.Due, in inbox.Inbox, act inbox.Act) error {
	for range attempts {
		_, revision, ok, err := find[inbox.Inbox](ctx, s, inboxKey(in))
		if err != nil {
			return failed("purge "+in.ID, err)
		}
		if !ok {
			return s.DropDue(ctx, d) // another run was faster
		}
		hidden, read, _, err := find[hiddenRow](ctx, s, hiddenKey(in.Workspace))
		if err != nil {
			return failed("hidden inboxes", err)
		}
		hidden.Inboxes = slices.DeleteFunc(hidden.Inboxes, func(id string) bool { return id == in.ID })
		var b batch
		b.drop(inboxKey(in), store.RevisionIs(revision))
		b.upsert(hiddenKey(in.Workspace), read, hidden)
		b.drop(countsKey(in.ID), store.Condition{})
		b.drop(lookKey(in.ID), store.Condition{})
		b.drop(keyOf(d.Place), store.Condition{})
		b.set(addressKey(in.Address), addressRow{
			Recipient: inbox.Recipient{Address: in.Address, Organization: in.Organization}, Deleted: true,
		})
		b.act(act, in.ID, in, nil)
		err = s.commit(ctx, &b)
		if err == nil || !errors.Is(err, store.ErrConflict) {
			return wrapIf("purge "+in.ID, err)
		}
	}
	return inbox.Busy()
}
