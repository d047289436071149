package inboxstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// Announcing returns a store that tells of the ids of events that it has just written, so that they need not wait until the outbox
// is looked through. announce must not fail the write that has happened: what it can't tell is found in the outbox.
func (s *Store) Announcing(announce func(ctx context.Context, ids []string)) *Store {
	next := *s
	next.announce = announce
	return &next
}

func (s *Store) told(ctx context.Context, ids []string) {
	if s.announce != nil && len(ids) > 0 {
		s.announce(ctx, ids)
	}
}

// webhookSet is the entries of all webhooks of a workspace, deleted ones too: one row, so that a mail whose workspace has none
// costs one look, and so that two webhooks can't take one name at once.
type webhookSet struct {
	Entries []inbox.WebhookEntry `json:"entries"`
}

// events adds to b those events that a webhook of the workspace wants: one read, and no event is made where there is no
// webhook. It returns their ids, to be told when the transaction has happened. Who wants an event is decided once more when it is
// given out: a webhook that is made or switched off in between is no reason to refuse the transaction.
func (s *Store) events(ctx context.Context, b *batch, ws string, make func() ([]inbox.Event, error)) ([]string, error) {
	set, _, _, err := find[webhookSet](ctx, s, webhookSetKey(ws))
	if err != nil {
		return nil, fmt.Errorf("webhooks of %s: %w", ws, err)
	}
	if len(set.Entries) == 0 {
		return nil, nil
	}
	events, err := make()
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the event
	}
	var ids []string
	for _, e := range events {
		if set.wants(e) {
			b.set(outboxKey(e.ID), outboxRow{Event: &e})
			ids = append(ids, e.ID)
		}
	}
	return ids, nil
}

func (set webhookSet) wants(e inbox.Event) bool {
	for _, w := range set.Entries {
		if w.Wants(e) {
			return true
		}
	}
	return false
}

// emailEvents is events for a change of a mail.
func (s *Store) emailEvents(ctx context.Context, b *batch, old, next inbox.Email) ([]string, error) {
	if old.Status == next.Status && old.HandledAt.Equal(next.HandledAt) {
		return nil, nil // none, whoever wants what
	}
	return s.events(ctx, b, next.Workspace, func() ([]inbox.Event, error) { return inbox.EmailEvents(old, next) })
}

// PutEvent stores an event of something that is stored nowhere else, if a webhook wants it. An event that is there already is
// the same one.
func (s *Store) PutEvent(ctx context.Context, e inbox.Event) error {
	var b batch
	ids, err := s.events(ctx, &b, e.Workspace, func() ([]inbox.Event, error) { return []inbox.Event{e}, nil })
	if err != nil || len(ids) == 0 {
		return err
	}
	item := b.ops[0].Item()
	if err := s.engine.Put(ctx, item, store.Absent()); err != nil {
		if errors.Is(err, store.ErrConflict) {
			return nil
		}
		return failed("event "+e.ID, err)
	}
	s.told(ctx, ids)
	return nil
}

// Event implements webhook.Events.
func (s *Store) Event(ctx context.Context, id string) (inbox.Event, error) {
	row, err := s.outbox(ctx, id)
	if err != nil {
		return inbox.Event{}, err
	}
	if row.Event == nil {
		return inbox.Event{}, noOutbox()
	}
	return *row.Event, nil
}

// Subscribers implements webhook.Events.
func (s *Store) Subscribers(ctx context.Context, ws string) ([]inbox.WebhookEntry, error) {
	set, _, _, err := find[webhookSet](ctx, s, webhookSetKey(ws))
	if err != nil {
		return nil, failed("webhooks of "+ws, err)
	}
	return set.Entries, nil
}
