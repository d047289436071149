package inboxstore

import (
	"context"
	"errors"
	"strings"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// heldPartition holds the intakes of paused inboxes, by inbox: a look at one inbox with held mail costs one row, however much
// is held for it.
const heldPartition = "held"

func heldKey(in inbox.Intake) store.Key {
	_, ulid, _ := strings.Cut(in.ID, "_")
	return key(heldPartition, in.Recipients[0].Inbox+"/"+ulid)
}

// Hold implements pipeline.Holding.
func (s *Store) Hold(ctx context.Context, in inbox.Intake) error {
	if len(in.Recipients) != 1 {
		return errors.New("inboxstore: an intake of one recipient can be held")
	}
	item, err := store.Encode(heldKey(in), format, 1, outboxRow{Intake: &in})
	if err != nil {
		return failed("hold "+in.ID, err)
	}
	if err := s.engine.Put(ctx, item, store.Absent()); err != nil && !errors.Is(err, store.ErrConflict) {
		return failed("hold "+in.ID, err)
	}
	return nil
}

// NextHeld implements pipeline.Holding.
func (s *Store) NextHeld(ctx context.Context, after string) (inbox.Intake, error) {
	from := ""
	if after != "" {
		_, from = store.Prefix(after + "/")
	}
	list, err := s.held(ctx, from, "", 1)
	if err != nil {
		return inbox.Intake{}, err
	}
	if len(list) == 0 {
		return inbox.Intake{}, noOutbox()
	}
	return list[0], nil
}

// Held implements pipeline.Holding.
func (s *Store) Held(ctx context.Context, in string, limit int) ([]inbox.Intake, error) {
	from, to := store.Prefix(in + "/")
	return s.held(ctx, from, to, min(max(limit, 1), store.MaxLimit))
}

func (s *Store) held(ctx context.Context, from, to string, limit int) ([]inbox.Intake, error) {
	page, err := store.Fill(ctx, s.engine, store.Query{Table: store.Core, Partition: heldPartition, From: from, To: to, Limit: limit}, 4)
	if err != nil {
		return nil, failed("held", err)
	}
	rows, err := decodeAll[outboxRow](page.Items)
	if err != nil {
		return nil, failed("held", err)
	}
	list := make([]inbox.Intake, 0, len(rows))
	for _, r := range rows {
		if r.Intake != nil && len(r.Intake.Recipients) == 1 {
			list = append(list, *r.Intake)
		}
	}
	return list, nil
}

// Unhold implements pipeline.Holding.
func (s *Store) Unhold(ctx context.Context, in inbox.Intake) error {
	if len(in.Recipients) != 1 {
		return errors.New("inboxstore: an intake of one recipient can be held")
	}
	return wrapIf("unhold "+in.ID, s.engine.Delete(ctx, heldKey(in), store.Condition{}))
}
