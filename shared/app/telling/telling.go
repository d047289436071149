// Package telling joins what tells webhooks of events with the worker that it runs in, for every process that has one. It chooses no
// engine.
package telling

import (
	"context"
	"log/slog"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxstore"
	"github.com/buzon-mail/buzon/shared/pipeline"
	"github.com/buzon-mail/buzon/shared/queue"
	"github.com/buzon-mail/buzon/shared/safehttp"
	"github.com/buzon-mail/buzon/shared/webhook"
)

// BasePath is where the REST routes lie; package inboxops has it too, and with it every route, which no worker is to link.
const BasePath = "/api/v1"

// Deps is what telling stands on.
type Deps struct {
	Store   *inboxstore.Store
	Queue   queue.Queue
	Secrets func(context.Context) (webhook.Secrets, error)
	Logger  *slog.Logger
	Clock   func() time.Time
}

// Options say where and how much. The zero value works.
type Options struct {
	Origin   string // public origin of the API; empty: what is sent names paths alone
	Loopback bool   // receivers on this machine, by name: only where nobody beyond it reaches the service
	Parallel int    // see webhook.Options
}

// Hooks tells.
type Hooks struct {
	*webhook.Engine
	Due   *webhook.Due
	store *inboxstore.Store
}

// New makes it.
func New(d Deps, o Options) (*Hooks, error) {
	engine, err := webhook.New(webhook.Deps{
		Events: d.Store, Deliveries: d.Store, Webhooks: d.Store, Queue: d.Queue, Secrets: d.Secrets, Logger: d.Logger, Clock: d.Clock,
		Client: safehttp.New(safehttp.Options{Timeout: webhook.Timeout, Loopback: o.Loopback}),
	}, webhook.Options{Base: o.Origin + BasePath, Parallel: o.Parallel})
	if err != nil {
		return nil, err
	}
	return &Hooks{engine, webhook.NewDue(engine), d.Store}, nil
}

// Join gives a worker what it needs to tell.
func (h *Hooks) Join(d *pipeline.WorkerDeps) {
	d.Tell = h.Handle
	d.JobFailed = h.jobFailed
	d.Notify = h.notify
	if d.Handlers == nil {
		d.Handlers = map[string]pipeline.JobHandler{}
	}
	d.Handlers[inbox.KindWebhookTest] = pipeline.JobFunc(func(ctx context.Context, r *pipeline.JobRun) (any, error) {
		return h.Test(ctx, r.Job, r.Authorized)
	})
	d.Handlers[inbox.KindDeliveryRetry] = pipeline.JobFunc(func(ctx context.Context, r *pipeline.JobRun) (any, error) {
		return h.Retry(ctx, r.Job, r.Authorized)
	})
}

func (h *Hooks) jobFailed(ctx context.Context, j inbox.Job) error {
	code := ""
	if j.Error != nil {
		code = j.Error.Code
	}
	// The time is the job's start: a second telling of the same failure is the same event.
	e, err := inbox.JobFailedEvent(j.Workspace, j.ID, j.Kind, code, j.CreatedAt)
	if err != nil {
		return err
	}
	return h.store.PutEvent(ctx, e)
}

// Rejected tells of a sender who was refused at the door, of one inbox once a second at most.
func (h *Hooks) Rejected(ctx context.Context, to inbox.Recipient, from string, at time.Time) error {
	e, err := inbox.RejectedEvent(to, from, at)
	if err != nil {
		return err
	}
	return h.store.PutEvent(ctx, e)
}

func (h *Hooks) notify(ctx context.Context, e inbox.Email, job string) error {
	event, err := inbox.EmailEventAgain(e, job)
	if err != nil || event.ID == "" {
		return err
	}
	return h.store.PutEvent(ctx, event)
}
