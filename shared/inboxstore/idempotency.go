package inboxstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// idempotencyRow is a key that a call has taken, and what came of it. Revision 1 is a call that is at it; the transaction of its act writes
// revision 2, so whoever took a key that somebody else has taken since, its time being over, does not act. Revision 3 has the reply.
type idempotencyRow struct {
	Arguments string `json:"arguments"`
	Done      bool   `json:"done,omitempty"`
	Outcome   string `json:"outcome,omitempty"`
	Status    int    `json:"status,omitempty"`
	Reply     []byte `json:"reply,omitempty"`
}

const (
	revisionTaken = 1
	revisionDone  = 2
)

func idempotencyKey(k inbox.IdempotencyKey) store.Key {
	return store.Key{Table: store.Ephemeral, Partition: "idempotency/" + k.ID, Sort: only}
}

// LookKey returns what was done under a key, nil for nothing. KeyReused and KeyInFlight are its refusals.
func (s *Store) LookKey(ctx context.Context, k inbox.IdempotencyKey) (*inbox.DoneUnder, error) {
	row, _, ok, err := find[idempotencyRow](ctx, s, idempotencyKey(k))
	switch {
	case err != nil:
		return nil, failed("look for an idempotency key", err)
	case !ok:
		return nil, nil //nolint:nilnil // nothing is the common case
	case row.Arguments != k.Arguments:
		return nil, inbox.KeyReused()
	case !row.Done:
		return nil, inbox.KeyInFlight()
	}
	return &inbox.DoneUnder{Outcome: row.Outcome, Status: row.Status, Reply: row.Reply}, nil
}

// TakeKey is LookKey, but that it takes a key under which nothing was done.
func (s *Store) TakeKey(ctx context.Context, k inbox.IdempotencyKey) (*inbox.DoneUnder, error) {
	item, err := store.Encode(idempotencyKey(k), format, revisionTaken, idempotencyRow{Arguments: k.Arguments})
	if err != nil {
		return nil, failed("take an idempotency key", err)
	}
	item.Expires = s.now().Add(inbox.KeyFlight)
	for range attempts {
		err := s.engine.Put(ctx, item, store.Absent())
		if err == nil {
			return nil, nil //nolint:nilnil // it is taken
		}
		if !errors.Is(err, store.ErrConflict) {
			return nil, failed("take an idempotency key", err)
		}
		if done, err := s.LookKey(ctx, k); done != nil || err != nil {
			return done, err
		}
	}
	return nil, inbox.KeyInFlight()
}

// key makes the key of an act done, in the act's transaction. It fails, with nothing done, when somebody else holds the key by now.
func (b *batch) key(k inbox.IdempotencyKey, outcome string) {
	if k.ID == "" {
		return
	}
	item, err := store.Encode(idempotencyKey(k), format, revisionDone, idempotencyRow{Arguments: k.Arguments, Done: true, Outcome: outcome})
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("idempotency key: %w", err)
	}
	item.Expires = k.Until
	b.ops = append(b.ops, store.Put(item, store.RevisionIs(revisionTaken)))
}

// holdsKey refuses an act whose key is not its own any more. Like unused it tells why a transaction fails, which alone decides.
func (s *Store) holdsKey(ctx context.Context, k inbox.IdempotencyKey) error {
	if k.ID == "" {
		return nil
	}
	_, revision, ok, err := find[idempotencyRow](ctx, s, idempotencyKey(k))
	if err != nil {
		return failed("look for an idempotency key", err)
	}
	if !ok || revision != revisionTaken {
		return inbox.KeyInFlight()
	}
	return nil
}

// KeepReply keeps the reply to what was done under a key, and makes it done where the act wrote nothing. A zero Status keeps none.
func (s *Store) KeepReply(ctx context.Context, k inbox.IdempotencyKey, reply inbox.DoneUnder) error {
	row, revision, err := get[idempotencyRow](ctx, s, idempotencyKey(k))
	if err != nil {
		return failed("keep a reply", err)
	}
	if row.Arguments != k.Arguments || row.Done && reply.Status == 0 {
		return nil
	}
	row.Done, row.Status, row.Reply = true, reply.Status, reply.Reply
	item, err := store.Encode(idempotencyKey(k), format, revision+1, row)
	if err != nil {
		return failed("keep a reply", err)
	}
	item.Expires = s.now().Add(inbox.KeyLife)
	return wrapIf("keep a reply", s.engine.Put(ctx, item, store.RevisionIs(revision)))
}

// DropKey lets a key go under which nothing was done.
func (s *Store) DropKey(ctx context.Context, k inbox.IdempotencyKey) error {
	err := s.engine.Delete(ctx, idempotencyKey(k), store.RevisionIs(revisionTaken))
	if errors.Is(err, store.ErrConflict) {
		return nil // it was done all the same, or its time is over
	}
	return wrapIf("drop an idempotency key", err)
}
