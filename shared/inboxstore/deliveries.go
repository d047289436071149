package inboxstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// deliveriesPerTx are made in one transaction: four rows each, and the event's two.
const deliveriesPerTx = 10

// keptEvent is what deliveries of an event carry, as it was when they were made: an attempt sends the very bytes of the one before.
type keptEvent struct {
	Body []byte `json:"body"`
}

// GiveOut implements webhook.Events: the event's body, its deliveries, and the end of its outbox row last. A delivery that is there
// already stays as it is.
func (s *Store) GiveOut(ctx context.Context, e inbox.Event, body []byte, list []inbox.WebhookDelivery) error {
	expires := s.now().Add(inbox.DeliveryRetention)
	for chunk := range slices.Chunk(list, deliveriesPerTx) {
		if err := s.giveOut(ctx, e, body, chunk, expires); err != nil {
			return failed("give out "+e.ID, err)
		}
	}
	if err := s.engine.Delete(ctx, outboxKey(e.ID), store.Condition{}); err != nil {
		return failed("drop event "+e.ID, err)
	}
	return nil
}

// giveOut is GiveOut for what fits into a transaction. A delivery's own row is first among its ops, so a conflict says which one
// is there.
func (s *Store) giveOut(ctx context.Context, e inbox.Event, body []byte, list []inbox.WebhookDelivery, expires time.Time) error {
	list = slices.Clone(list)
	for len(list) > 0 {
		var b batch
		owner := []int{}
		for i, d := range list {
			b.expiring(deliveryKey(d.Workspace, d.ID), 1, d, store.Absent(), expires)
			b.deliveryIndex(d, expires)
			b.expiring(dueKey(d), 1, dueRow{d.Workspace, d.ID}, store.Condition{}, expires)
			for len(owner) < len(b.ops) {
				owner = append(owner, i)
			}
		}
		b.expiring(keptEventKey(e.Workspace, e.ID), 1, keptEvent{body}, store.Condition{}, expires)
		err := s.commit(ctx, &b)
		at := conflictAt(err)
		if at < 0 || at >= len(owner) {
			return err
		}
		list = slices.Delete(list, owner[at], owner[at]+1)
	}
	return nil
}

// deliveryIndex writes a delivery's rows in the lists, without its attempts.
func (b *batch) deliveryIndex(d inbox.WebhookDelivery, expires time.Time) {
	d.Attempts = nil
	b.expiring(key(deliveriesPartition(d.Workspace, ""), d.ID), 1, d, store.Condition{}, expires)
	b.expiring(key(deliveriesPartition(d.Workspace, d.Webhook), d.ID), 1, d, store.Condition{}, expires)
}

// dueRow names a delivery that waits.
type dueRow struct {
	Workspace string `json:"workspace"`
	Delivery  string `json:"delivery"`
}

// dueKey orders by when the next attempt is due.
func dueKey(d inbox.WebhookDelivery) store.Key {
	return key(duePartition(shardOf(d.ID)), inbox.Position(d.NextAt, d.ID))
}

// KeptEvent implements webhook.Deliveries.
func (s *Store) KeptEvent(ctx context.Context, ws, id string) ([]byte, error) {
	row, _, err := get[keptEvent](ctx, s, keptEventKey(ws, id))
	if err != nil {
		return nil, missing("event "+id, err, noOutbox())
	}
	return row.Body, nil
}

// Delivery implements inbox.DeliveryStore and webhook.Deliveries.
func (s *Store) Delivery(ctx context.Context, ws, id string) (inbox.WebhookDelivery, error) {
	d, _, err := get[inbox.WebhookDelivery](ctx, s, deliveryKey(ws, id))
	if err != nil {
		return inbox.WebhookDelivery{}, missing("delivery "+id, err, inbox.NoDelivery())
	}
	return d, nil
}

// Deliveries implements inbox.DeliveryStore.
func (s *Store) Deliveries(ctx context.Context, r inbox.DeliveryRange) ([]inbox.WebhookDelivery, string, error) {
	page, err := s.engine.Query(ctx, store.Query{
		Table: store.Core, Partition: deliveriesPartition(r.Workspace, r.Webhook), From: r.From, To: r.To, After: r.After,
		Limit: r.Limit, Descending: true,
	})
	if err != nil {
		return nil, "", failed("deliveries", err)
	}
	rows, err := decodeAll[inbox.WebhookDelivery](page.Items)
	if err != nil {
		return nil, "", failed("deliveries", err)
	}
	return rows, page.Next, nil
}

// Claim implements webhook.Deliveries. It leaves the lists alone: they show what came of attempts.
func (s *Store) Claim(ctx context.Context, ws, id string, change func(*inbox.WebhookDelivery) error) (inbox.WebhookDelivery, error) {
	return s.changeDelivery(ctx, ws, id, false, change)
}

// Settle implements webhook.Deliveries.
func (s *Store) Settle(ctx context.Context, ws, id string, change func(*inbox.WebhookDelivery) error) (inbox.WebhookDelivery, error) {
	return s.changeDelivery(ctx, ws, id, true, change)
}

func (s *Store) changeDelivery(
	ctx context.Context, ws, id string, listed bool, change func(*inbox.WebhookDelivery) error,
) (inbox.WebhookDelivery, error) {
	for range attempts {
		old, revision, err := get[inbox.WebhookDelivery](ctx, s, deliveryKey(ws, id))
		if err != nil {
			return inbox.WebhookDelivery{}, missing("delivery "+id, err, inbox.NoDelivery())
		}
		next := old
		next.Attempts = slices.Clone(old.Attempts)
		if err := change(&next); err != nil {
			return inbox.WebhookDelivery{}, err
		}
		var b batch
		b.delivery(old, next, revision, listed)
		err = s.commit(ctx, &b)
		if err == nil {
			return next, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return inbox.WebhookDelivery{}, failed("change delivery "+id, err)
		}
	}
	return inbox.WebhookDelivery{}, inbox.Busy()
}

// delivery writes a changed delivery and moves its place among those that wait. Its rows end when they would have.
func (b *batch) delivery(old, next inbox.WebhookDelivery, revision uint64, listed bool) {
	expires := next.CreatedAt.Add(inbox.DeliveryRetention)
	b.expiring(deliveryKey(next.Workspace, next.ID), revision+1, next, store.RevisionIs(revision), expires)
	if listed {
		b.deliveryIndex(next, expires)
	}
	if !old.NextAt.IsZero() && !old.NextAt.Equal(next.NextAt) {
		b.drop(dueKey(old), store.Condition{})
	}
	if !next.NextAt.IsZero() {
		b.expiring(dueKey(next), 1, dueRow{next.Workspace, next.ID}, store.Condition{}, expires)
	}
}

// Due implements webhook.Deliveries.
func (s *Store) Due(ctx context.Context, before time.Time, limit int) ([]string, error) {
	items, err := s.earliest(ctx, duePartition, inbox.Position(before, ""), limit)
	if err != nil {
		return nil, failed("due deliveries", err)
	}
	rows, err := decodeAll[dueRow](items)
	if err != nil {
		return nil, failed("due deliveries", err)
	}
	ids := make([]string, 0, len(rows))
	for _, row := range rows {
		ids = append(ids, inbox.DeliveryMessage(row.Workspace, row.Delivery))
	}
	return ids, nil
}

// Occupy implements webhook.Receivers. A slot that is not given back, because its holder died, is free again after a while.
func (s *Store) Occupy(ctx context.Context, receiver string, slots int, until time.Time) (free func(context.Context), err error) {
	for n := range slots {
		k := store.Key{Table: store.Ephemeral, Partition: "webhook-slots/" + receiver, Sort: strconv.Itoa(n)}
		mine := uint64(until.UnixNano()) //nolint:gosec // a time to come; as good as unique, so nobody frees the slot of the next
		err := s.engine.Put(ctx, store.Item{Key: k, Format: format, Revision: mine, Expires: until}, store.Absent())
		if err == nil {
			return func(ctx context.Context) { _ = s.engine.Delete(ctx, k, store.RevisionIs(mine)) }, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return nil, failed("slot of "+receiver, err)
		}
	}
	return nil, nil //nolint:nilnil // none is free, as the interface says
}

// Health implements webhook.Receivers and inbox.WebhookStore.
func (s *Store) Health(ctx context.Context, ws, id string) (inbox.WebhookHealth, error) {
	h, _, _, err := find[inbox.WebhookHealth](ctx, s, healthKey(ws, id))
	return h, wrapIf("health of "+id, err)
}

// Failed implements webhook.Receivers.
func (s *Store) Failed(ctx context.Context, ws, id string, at time.Time) (inbox.WebhookHealth, error) {
	for range attempts {
		h, revision, _, err := find[inbox.WebhookHealth](ctx, s, healthKey(ws, id))
		if err != nil {
			return h, failed("health of "+id, err)
		}
		h.Failures++
		if h.FailingSince.IsZero() || at.Before(h.FailingSince) {
			h.FailingSince = at
		}
		var b batch
		b.upsert(healthKey(ws, id), revision, h)
		if err = s.commit(ctx, &b); err == nil {
			return h, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return h, failed("health of "+id, err)
		}
	}
	return inbox.WebhookHealth{}, inbox.Busy()
}

// Succeeded implements webhook.Receivers: one read while all is well.
func (s *Store) Succeeded(ctx context.Context, ws, id string) error {
	_, _, bad, err := find[inbox.WebhookHealth](ctx, s, healthKey(ws, id))
	if err != nil || !bad {
		return wrapIf("health of "+id, err)
	}
	if err := s.engine.Delete(ctx, healthKey(ws, id), store.Condition{}); err != nil {
		return failed("health of "+id, fmt.Errorf("forget: %w", err))
	}
	return nil
}
