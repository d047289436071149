package inboxstore

import (
	"context"
	"errors"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// Usage implements inbox.UsageStore.
func (s *Store) Usage(ctx context.Context, ws, month string) (inbox.UsageCounts, error) {
	item, err := s.engine.Get(ctx, usageKey(ws, month))
	if errors.Is(err, store.ErrNotFound) {
		return inbox.UsageCounts{}, nil
	}
	if err != nil {
		return inbox.UsageCounts{}, failed("usage", err)
	}
	n := func(name inbox.Status) int64 { return max(item.Counters[string(name)], 0) }
	return inbox.UsageCounts{
		Processed: n(inbox.StatusProcessed), Failed: n(inbox.StatusFailed), Quarantined: n(inbox.StatusQuarantined),
	}, nil
}

// countUse counts for the month that it is; see count.
func (s *Store) countUse(ctx context.Context, ws, name string) {
	_, _ = s.engine.Add(ctx, usageKey(ws, s.now().UTC().Format(inbox.MonthFormat)), name, 1, 0, time.Time{})
}
