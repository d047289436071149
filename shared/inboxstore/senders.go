package inboxstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// MaxZone is how many entries for domains that end alike one inbox has: they stand in one row, which every mail from such a
// domain reads.
const MaxZone = 500

// zoneRow holds the live entries for domains of one zone, without their notes.
type zoneRow struct {
	Entries []inbox.AllowedSender `json:"entries"`
}

func (z *zoneRow) set(e inbox.AllowedSender) {
	z.Entries = slices.DeleteFunc(z.Entries, func(old inbox.AllowedSender) bool { return old.ID == e.ID })
	if e.DeletedAt.IsZero() {
		e.Note = ""
		z.Entries = append(z.Entries, e)
	}
}

// Senders implements inbox.SenderStore: one page of the entries, and one of the hits, whose rows have the same order.
func (s *Store) Senders(ctx context.Context, r inbox.SenderRange) ([]inbox.SenderRow, string, error) {
	page, err := s.engine.Query(ctx, store.Query{
		Table: store.Core, Partition: sendersPartition(r.Workspace, r.Inbox, false), After: r.After, Limit: r.Limit,
	})
	if err != nil {
		return nil, "", failed("senders", err)
	}
	entries, err := decodeAll[inbox.AllowedSender](page.Items)
	if err != nil || len(entries) == 0 {
		return nil, page.Next, wrapIf("senders", err)
	}
	hits, err := store.Fill(ctx, s.engine, store.Query{
		Table: store.Core, Partition: hitsPartition(r.Workspace, r.Inbox), From: entries[0].ID,
		To: entries[len(entries)-1].ID + "\x01", Limit: min(2*len(entries), store.MaxLimit), // those of deleted entries lie between
	}, 2)
	if err != nil {
		return nil, "", failed("hits of senders", err)
	}
	counts := map[string]int64{}
	for _, item := range hits.Items {
		counts[item.Key.Sort] = item.Counters[hitsCounter]
	}
	rows := make([]inbox.SenderRow, 0, len(entries))
	for _, e := range entries {
		rows = append(rows, inbox.SenderRow{AllowedSender: e, Hits: counts[e.ID]})
	}
	return rows, page.Next, nil
}

// Sender implements inbox.SenderStore.
func (s *Store) Sender(ctx context.Context, ws, in, id string) (inbox.AllowedSender, error) {
	e, _, _, err := s.sender(ctx, ws, in, id)
	if err == nil && e.Version == 0 {
		return inbox.AllowedSender{}, inbox.NoSender()
	}
	return e, err
}

// sender looks among the live ones first; one that moves between the two reads is looked for once more. None is a zero entry.
func (s *Store) sender(ctx context.Context, ws, in, id string) (e inbox.AllowedSender, revision uint64, at store.Key, err error) {
	for range 2 {
		for _, deleted := range []bool{false, true} {
			at = senderKey(ws, in, id, deleted)
			e, revision, ok, err := find[inbox.AllowedSender](ctx, s, at)
			if err != nil {
				return inbox.AllowedSender{}, 0, at, failed("sender "+id, err)
			}
			if ok {
				return e, revision, at, nil
			}
		}
	}
	return inbox.AllowedSender{}, 0, store.Key{}, nil
}

// SendersFor implements inbox.SenderStore.
func (s *Store) SendersFor(ctx context.Context, ws, in, address string) ([]inbox.AllowedSender, error) {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return nil, nil
	}
	var out []inbox.AllowedSender
	own, _, ok, err := find[inbox.AllowedSender](ctx, s, senderKey(ws, in, inbox.SenderID(ws, in, inbox.KindAddress, address), false))
	if err != nil {
		return nil, failed("sender by address", err)
	}
	if ok {
		out = append(out, own)
	}
	zone, _, _, err := find[zoneRow](ctx, s, zoneKey(ws, in, address[at+1:]))
	if err != nil {
		return nil, failed("senders by domain", err)
	}
	return append(out, zone.Entries...), nil
}

// UpdateSender implements inbox.SenderStore.
func (s *Store) UpdateSender(
	ctx context.Context, ws, in, id string, act inbox.Act, change func(*inbox.AllowedSender) error,
) (inbox.AllowedSender, error) {
	for range attempts {
		old, revision, at, err := s.sender(ctx, ws, in, id)
		if err != nil {
			return inbox.AllowedSender{}, err
		}
		if err := s.unused(ctx, act); err != nil {
			return inbox.AllowedSender{}, err
		}
		next := old
		if err := change(&next); err != nil {
			return inbox.AllowedSender{}, err
		}
		if next == old {
			return old, nil
		}
		b, err := s.senderOps(ctx, at, revision, ws, in, next)
		if err != nil {
			return inbox.AllowedSender{}, err
		}
		told, err := s.events(ctx, b, ws, func() ([]inbox.Event, error) { return senderEvents(old, next) })
		if err != nil {
			return inbox.AllowedSender{}, failed("events of "+id, err)
		}
		b.act(act, id, existing(old, old.Version), next)
		err = s.commit(ctx, b)
		if err == nil {
			s.told(ctx, told)
			return next, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return inbox.AllowedSender{}, failed("update sender "+id, err)
		}
		// The inbox itself may have been deleted meanwhile: then nothing may be added to it.
		if _, _, ok, err := find[inbox.Inbox](ctx, s, key(inboxesPartition(ws, false), in)); err != nil || !ok {
			return inbox.AllowedSender{}, orElse(err, inbox.NoInbox())
		}
	}
	return inbox.AllowedSender{}, inbox.Busy()
}

// senderEvents tells of who may send, not of a new note.
func senderEvents(old, next inbox.AllowedSender) ([]inbox.Event, error) {
	noted := next
	noted.Note, noted.UpdatedAt, noted.Version = old.Note, old.UpdatedAt, old.Version
	if noted == old {
		return nil, nil
	}
	e, err := inbox.SenderEvent(old, next)
	return []inbox.Event{e}, err //nolint:wrapcheck // it names the event
}

// senderOps writes the entry and, for a domain, its zone. A deletion or restoration moves the row; that the place it moves to,
// or is made at, is free is a condition of the transaction, as is the inbox.
func (s *Store) senderOps(ctx context.Context, from store.Key, revision uint64, ws, in string, next inbox.AllowedSender) (*batch, error) {
	var b batch
	to := senderKey(ws, in, next.ID, !next.DeletedAt.IsZero())
	if from == to {
		b.replace(to, revision, next)
	} else {
		b.put(to, revision+1, next, store.Absent())
		if revision > 0 {
			b.drop(from, store.RevisionIs(revision))
		} else {
			b.check(senderKey(ws, in, next.ID, next.DeletedAt.IsZero()), store.Absent())
		}
	}
	b.check(key(inboxesPartition(ws, false), in), store.Exists())
	if next.Kind == inbox.KindAddress {
		return &b, nil
	}
	k := zoneKey(ws, in, next.Value)
	row, read, _, err := find[zoneRow](ctx, s, k)
	if err != nil {
		return nil, failed("senders by domain", err)
	}
	if row.set(next); len(row.Entries) > MaxZone {
		return nil, inbox.ErrZoneFull
	}
	b.upsert(k, read, row)
	return &b, nil
}

const hitsCounter = "hits"

// HitSender implements pipeline.Senders. Approximate, like every counter: see count.
func (s *Store) HitSender(ctx context.Context, ws, in, id string) {
	_, _ = s.engine.Add(ctx, key(hitsPartition(ws, in), id), hitsCounter, 1, 0, time.Time{})
}
