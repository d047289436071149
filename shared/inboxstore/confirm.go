package inboxstore

import (
	"context"
	"fmt"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// confirmedMargin is how much longer than a yes is accepted its row lives: clocks of instances differ, and a row that goes
// first would let the yes be used again.
const confirmedMargin = time.Hour

// confirmedRow is a person's yes that was used.
type confirmedRow struct {
	Outcome string `json:"outcome"` // id of what was changed
}

func confirmedKey(nonce string) store.Key {
	return store.Key{Table: store.Ephemeral, Partition: "confirmed/" + nonce, Sort: only}
}

// unused refuses a yes that was used before, and an idempotency key that is not the act's own any more. It looks after the target was read and before the act judges the target: whoever reads
// what the first use left behind finds its row too, and is told so instead of that the target has changed. Only the transaction
// decides: of two uses at once both pass here.
func (s *Store) unused(ctx context.Context, act inbox.Act) error {
	yes := act.Confirmed
	if yes == nil {
		return s.holdsKey(ctx, act.Key)
	}
	row, _, used, err := find[confirmedRow](ctx, s, confirmedKey(yes.Nonce))
	if err != nil {
		return failed("look for a confirmation", err)
	}
	if used {
		return inbox.AlreadyDone(row.Outcome)
	}
	return s.holdsKey(ctx, act.Key)
}

// confirm uses a yes up in the transaction of the act that it is for.
func (b *batch) confirm(yes *inbox.Confirmation, outcome string) {
	if yes == nil {
		return
	}
	item, err := store.Encode(confirmedKey(yes.Nonce), format, 1, confirmedRow{outcome})
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("confirmation: %w", err)
	}
	item.Expires = yes.Expires.Add(confirmedMargin)
	b.ops = append(b.ops, store.Put(item, store.Absent()))
}
