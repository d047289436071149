package webhook

import (
	"context"
	"log/slog"
	"time"

	"github.com/buzon-mail/buzon/shared/queue"
)

// announceTimeout bounds what a caller waits for whose change has happened already.
const announceTimeout = 3 * time.Second

// Announce tells a queue of events that were just written. It outlives its caller and never fails it: what is not told now is found in
// the outbox.
func Announce(q queue.Queue, log *slog.Logger) func(ctx context.Context, ids []string) {
	return func(ctx context.Context, ids []string) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), announceTimeout)
		defer cancel()
		messages := make([]queue.Message, 0, len(ids))
		for _, id := range ids {
			messages = append(messages, queue.Message{ID: id})
		}
		for len(messages) > 0 {
			n := min(len(messages), queue.MaxBatch)
			if err := q.Send(ctx, messages[:n]...); err != nil {
				log.LogAttrs(ctx, slog.LevelWarn, "webhook: events not queued, the outbox will send them", slog.Int("count", len(messages)))
				return
			}
			messages = messages[n:]
		}
	}
}
