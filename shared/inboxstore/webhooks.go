package inboxstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// MaxWebhooks is how many webhooks a workspace has at most, and as many deleted ones: their entries stand in one row, which every
// mail of the workspace reads.
const MaxWebhooks = 50

// Webhooks implements inbox.WebhookStore. There are so few that a page may hold all of them.
func (s *Store) Webhooks(ctx context.Context, r inbox.WebhookRange) ([]inbox.WebhookRow, string, error) {
	partitions := []string{webhooksPartition(r.Workspace, false)}
	if r.Deleted {
		partitions = append(partitions, webhooksPartition(r.Workspace, true))
	}
	items, next, err := s.merged(ctx, partitions, store.Query{Table: store.Core, After: r.After, Limit: r.Limit})
	if err != nil {
		return nil, "", failed("webhooks", err)
	}
	list, err := decodeAll[inbox.Webhook](items)
	if err != nil || len(list) == 0 {
		return nil, next, wrapIf("webhooks", err)
	}
	page, err := store.Fill(ctx, s.engine, store.Query{
		Table: store.Core, Partition: "webhook-health/" + r.Workspace, Limit: 2 * MaxWebhooks,
	}, 2)
	if err != nil {
		return nil, "", failed("health of webhooks", err)
	}
	health := map[string]inbox.WebhookHealth{}
	for _, item := range page.Items {
		if health[item.Key.Sort], err = store.Decode[inbox.WebhookHealth](item, format); err != nil {
			return nil, "", failed("health of webhooks", err)
		}
	}
	rows := make([]inbox.WebhookRow, 0, len(list))
	for _, w := range list {
		rows = append(rows, inbox.WebhookRow{Webhook: w, Health: health[w.ID]})
	}
	return rows, next, nil
}

// Webhook implements inbox.WebhookStore and webhook.Deliveries.
func (s *Store) Webhook(ctx context.Context, ws, id string) (inbox.Webhook, error) {
	w, _, _, err := s.webhook(ctx, ws, id)
	if err == nil && w.Version == 0 {
		return inbox.Webhook{}, inbox.NoWebhook()
	}
	return w, err
}

// webhook looks among the live ones first; one that moves between the two reads is looked for once more. None is a zero webhook.
func (s *Store) webhook(ctx context.Context, ws, id string) (w inbox.Webhook, revision uint64, at store.Key, err error) {
	for range 2 {
		for _, deleted := range []bool{false, true} {
			at = key(webhooksPartition(ws, deleted), id)
			w, revision, ok, err := find[inbox.Webhook](ctx, s, at)
			if err != nil {
				return inbox.Webhook{}, 0, at, failed("webhook "+id, err)
			}
			if ok {
				return w, revision, at, nil
			}
		}
	}
	return inbox.Webhook{}, 0, store.Key{}, nil
}

// WebhookNamed implements inbox.WebhookStore.
func (s *Store) WebhookNamed(ctx context.Context, ws, name string) (inbox.Webhook, error) {
	set, _, _, err := find[webhookSet](ctx, s, webhookSetKey(ws))
	if err != nil {
		return inbox.Webhook{}, failed("webhooks of "+ws, err)
	}
	for _, e := range set.Entries {
		if e.Name == name {
			return s.Webhook(ctx, ws, e.ID)
		}
	}
	return inbox.Webhook{}, inbox.NoWebhook()
}

// UpdateWebhook implements inbox.WebhookStore.
func (s *Store) UpdateWebhook(
	ctx context.Context, ws, id string, act inbox.Act, change func(*inbox.Webhook) error,
) (inbox.Webhook, error) {
	return s.changeWebhook(ctx, ws, id, act, func(_, next *inbox.Webhook) ([]inbox.Event, error) { return nil, change(next) })
}

// Disable implements webhook.Receivers. The version stays: no operation has happened.
func (s *Store) Disable(ctx context.Context, ws, id, reason string, at time.Time) (bool, error) {
	done := false
	_, err := s.changeWebhook(ctx, ws, id, inbox.Act{}, func(_, next *inbox.Webhook) ([]inbox.Event, error) {
		if done = next.Version > 0 && next.Enabled && next.DeletedAt.IsZero(); !done {
			return nil, nil
		}
		next.Enabled, next.DisabledReason, next.UpdatedAt = false, reason, at.UTC().Truncate(time.Millisecond)
		e, err := inbox.DisabledEvent(*next, next.UpdatedAt)
		return []inbox.Event{e}, err //nolint:wrapcheck // it names the event
	})
	return done && err == nil, err
}

func (s *Store) changeWebhook(
	ctx context.Context, ws, id string, act inbox.Act, change func(old, next *inbox.Webhook) ([]inbox.Event, error),
) (inbox.Webhook, error) {
	for range attempts {
		old, revision, at, err := s.webhook(ctx, ws, id)
		if err != nil {
			return inbox.Webhook{}, err
		}
		if err := s.unused(ctx, act); err != nil {
			return inbox.Webhook{}, err
		}
		next := old
		next.Events, next.Inboxes = slices.Clone(old.Events), slices.Clone(old.Inboxes)
		events, err := change(&old, &next)
		if err != nil {
			return inbox.Webhook{}, err
		}
		if same, err := alike(old, next); err != nil || same {
			return old, err
		}
		b, told, err := s.webhookOps(ctx, at, revision, old, next, events)
		if err != nil {
			return inbox.Webhook{}, err
		}
		b.act(act, id, existing(old, old.Version), next)
		err = s.commit(ctx, b)
		if err == nil {
			s.told(ctx, told)
			return next, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return inbox.Webhook{}, failed("update webhook "+id, err)
		}
	}
	return inbox.Webhook{}, inbox.Busy()
}

// alike compares rows as they are stored.
func alike(a, b inbox.Webhook) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("encode webhook: %w", err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		return false, fmt.Errorf("encode webhook: %w", err)
	}
	return string(x) == string(y), nil
}

// webhookOps writes the webhook, its entry, and what is to be told of it. A deletion moves the row to where it ends by itself.
func (s *Store) webhookOps(
	ctx context.Context, from store.Key, revision uint64, old, next inbox.Webhook, events []inbox.Event,
) (*batch, []string, error) {
	var b batch
	to := key(webhooksPartition(next.Workspace, !next.DeletedAt.IsZero()), next.ID)
	cond := store.RevisionIs(revision)
	if from != to {
		cond = store.Absent()
		if revision > 0 {
			b.drop(from, store.RevisionIs(revision))
		}
	}
	b.expiring(to, revision+1, next, cond, inbox.PurgeAt(next.DeletedAt))
	k := webhookSetKey(next.Workspace)
	set, read, _, err := find[webhookSet](ctx, s, k)
	if err != nil {
		return nil, nil, failed("webhooks of "+next.Workspace, err)
	}
	if err := set.put(next, s.now()); err != nil {
		return nil, nil, err
	}
	b.upsert(k, read, set)
	if next.Enabled && !old.Enabled { // it starts anew: what failed before does not count against it
		b.drop(healthKey(next.Workspace, next.ID), store.Condition{})
	}
	var told []string
	for _, e := range events {
		if set.wants(e) {
			b.set(outboxKey(e.ID), outboxRow{Event: &e})
			told = append(told, e.ID)
		}
	}
	return &b, told, nil
}

// put replaces the entry of a webhook, and drops those of webhooks that are gone for good.
func (set *webhookSet) put(w inbox.Webhook, now time.Time) error {
	live, deleted := 0, 0
	set.Entries = slices.DeleteFunc(set.Entries, func(e inbox.WebhookEntry) bool {
		return e.ID == w.ID || !e.DeletedAt.IsZero() && !now.Before(inbox.PurgeAt(e.DeletedAt))
	})
	for _, e := range set.Entries {
		if e.Name == w.Name {
			return inbox.ErrWebhookName
		}
		if e.DeletedAt.IsZero() {
			live++
		} else {
			deleted++
		}
	}
	if w.DeletedAt.IsZero() && live >= MaxWebhooks {
		return inbox.ErrTooManyWebhooks
	}
	if !w.DeletedAt.IsZero() && deleted >= MaxWebhooks {
		return inbox.ErrTooManyDeleted
	}
	set.Entries = append(set.Entries, w.Entry())
	return nil
}

// StartWebhookJob implements inbox.WebhookStore.
func (s *Store) StartWebhookJob(
	ctx context.Context, ws, id string, act inbox.Act, start func(inbox.Webhook) (inbox.Job, error),
) (inbox.Job, error) {
	for range attempts {
		w, revision, at, err := s.webhook(ctx, ws, id)
		if err != nil {
			return inbox.Job{}, err
		}
		if err := s.unused(ctx, act); err != nil {
			return inbox.Job{}, err
		}
		j, err := start(w)
		if err != nil {
			return inbox.Job{}, err
		}
		var b batch
		b.startJob(j)
		b.check(at, store.RevisionIs(revision))
		b.act(act, j.ID, nil, j, targetsOf(j)...)
		err = s.commit(ctx, &b)
		if err == nil {
			return j, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return inbox.Job{}, failed("start job "+j.ID, err)
		}
	}
	return inbox.Job{}, inbox.Busy()
}
