package web

import (
	"context"

	"github.com/buzon-mail/buzon/shared/queue"
)

// jobQueue is the worker's queue as the domain asks for it.
type jobQueue struct{ queue.Queue }

// SendJob sends a job's id.
func (q jobQueue) SendJob(ctx context.Context, id string) error {
	return q.Send(ctx, queue.Message{ID: id})
}
