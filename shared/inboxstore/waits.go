package inboxstore

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// maxProbes is how many places one wait asks for: with a tenth of them free, twelve find one seven times in ten, and whoever
// finds none is told to come again.
const maxProbes = 12

func waitKey(grant string, place int) store.Key {
	return store.Key{Table: store.Ephemeral, Partition: "waits/" + grant, Sort: strconv.Itoa(place)}
}

func waitAllKey(place int) store.Key {
	return store.Key{Table: store.Ephemeral, Partition: "waits-all", Sort: strconv.Itoa(place)}
}

type waitRow struct{}

// BeginWait implements inbox.WaitStore. Places are rows and not a counter, so that those of an instance that died come free by
// themselves.
func (s *Store) BeginWait(ctx context.Context, slot inbox.WaitSlot) (inbox.WaitPlace, error) {
	if slot.PerGrant < 1 || slot.All < 1 {
		return inbox.WaitPlace{}, inbox.ErrNoPlace
	}
	reach := slot.Reach()
	first, start := firstPlace(slot), int(slot.Ticket>>8)%reach
	own, among := 0, 0
	for range slot.PerGrant + min(reach, maxProbes) {
		place := inbox.WaitPlace{Grant: slot.Grant, Own: own, Among: (first + (start+among)%reach) % slot.All, Ticket: slot.Ticket}
		var b batch
		b.take(waitKey(slot.Grant, place.Own), slot)
		b.take(waitAllKey(place.Among), slot)
		err := s.commit(ctx, &b)
		if err == nil {
			return place, nil
		}
		switch conflictAt(err) {
		case 0:
			own++
		case 1:
			among++
		default:
			return inbox.WaitPlace{}, failed("begin a wait", err)
		}
		if own == slot.PerGrant || among == min(reach, maxProbes) {
			break
		}
	}
	return inbox.WaitPlace{}, inbox.ErrNoPlace
}

// firstPlace is where the places of an organization begin. Those of two begin apart, but for one pair in as many as there are places, so
// what one can't reach another can; a row that counts an organization's would cost each wait a write more.
func firstPlace(slot inbox.WaitSlot) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(slot.Organization)) // it never fails
	return int(h.Sum32() % uint32(slot.All))  //nolint:gosec // All is at least 1, and far below
}

func (b *batch) take(k store.Key, slot inbox.WaitSlot) {
	item, err := store.Encode(k, format, slot.Ticket, waitRow{})
	if err != nil && b.err == nil {
		b.err = err
	}
	item.Expires = slot.Until
	b.ops = append(b.ops, store.Put(item, store.Absent()))
}

// EndWait implements inbox.WaitStore. A place that has expired may be another's by now: the ticket tells.
func (s *Store) EndWait(ctx context.Context, p inbox.WaitPlace) error {
	for _, k := range []store.Key{waitKey(p.Grant, p.Own), waitAllKey(p.Among)} {
		if err := s.engine.Delete(ctx, k, store.RevisionIs(p.Ticket)); err != nil && !errors.Is(err, store.ErrConflict) {
			return failed("end a wait", err)
		}
	}
	return nil
}
