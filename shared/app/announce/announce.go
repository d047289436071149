// Package announce tells the worker's queue of events that were just written.
package announce

import (
	"context"
	"log/slog"
	"time"

	"github.com/buzon-mail/buzon/shared/queue"
)

// timeout bounds what a caller waits for whose change has happened already.
const timeout = 3 * time.Second

// To is what a store calls (inboxstore.Store.Announcing). It outlives its caller and never fails it: what is not told now is found in
// the outbox.
func To(q queue.Queue, log *slog.Logger) func(ctx context.Context, ids []string) {
	return func(ctx context.Context, ids []string) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		messages := make([]queue.Message, 0, len(ids))
		for _, id := range ids {
			messages = append(messages, queue.Message{ID: id})
		}
		for len(messages) > 0 {
			n := min(len(messages), queue.MaxBatch)
			if err := q.Send(ctx, messages[:n]...); err != nil {
				log.LogAttrs(ctx, slog.LevelWarn, "events not queued, the outbox will send them", slog.Int("count", len(messages)))
				return
			}
			messages = messages[n:]
		}
	}
}
