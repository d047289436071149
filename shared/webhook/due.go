package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/queue"
)

const (
	// dueGrace is how long a delivery is left to its own message before Due sends another.
	dueGrace = 30 * time.Second
	// dueAgain is how long one that Due has sent is left alone while its message may be in the queue still.
	dueAgain = 5 * time.Minute
	// dueLimit is how many deliveries one look finds.
	dueLimit = 500
)

// Due sends messages about deliveries whose time has come: pauses longer than a queue's have no message of their own, and messages are
// lost. A clock calls Run, each minute where nothing else lives. Repeating it is harmless, also in two processes at once.
type Due struct {
	engine *Engine
	mu     sync.Mutex
	sent   map[string]time.Time // guarded by mu; it spares messages and decides nothing
}

// NewDue makes one for an engine.
func NewDue(e *Engine) *Due { return &Due{engine: e, sent: map[string]time.Time{}} }

// Run looks once.
func (d *Due) Run(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.engine
	now := e.now()
	ids, err := e.deps.Deliveries.Due(ctx, now.Add(-dueGrace), dueLimit)
	if err != nil {
		return fmt.Errorf("due deliveries: %w", err)
	}
	for id, at := range d.sent {
		if now.Sub(at) >= dueAgain || now.Before(at) {
			delete(d.sent, id)
		}
	}
	var messages []queue.Message
	for _, id := range ids {
		if _, waiting := d.sent[id]; !waiting {
			messages = append(messages, queue.Message{ID: id})
		}
	}
	total := len(messages)
	for len(messages) > 0 && ctx.Err() == nil {
		n := min(len(messages), queue.MaxBatch)
		if err := e.deps.Queue.Send(ctx, messages[:n]...); err != nil {
			return fmt.Errorf("queue deliveries: %w", err)
		}
		for _, m := range messages[:n] {
			d.sent[m.ID] = now
		}
		messages = messages[n:]
	}
	if total > 0 {
		e.deps.Logger.LogAttrs(ctx, slog.LevelInfo, "webhook: due", slog.Int("deliveries", total))
	}
	return nil
}
