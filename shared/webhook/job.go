package webhook

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/queue"
)

// Test does a job of inbox.KindWebhookTest: one delivery to the webhook that it is for. authorized is asked before anything may
// leave. What it makes follows from the job, so a second run makes nothing new.
func (e *Engine) Test(ctx context.Context, j inbox.Job, authorized func(context.Context) error) (any, error) {
	var params inbox.WebhookTestParams
	if err := json.Unmarshal(j.Params, &params); err != nil {
		return nil, fmt.Errorf("parameters of %s: %w", j.ID, err)
	}
	if err := authorized(ctx); err != nil {
		return nil, err
	}
	w, err := e.open(ctx, j.Workspace, j.Target)
	if err != nil {
		return nil, err
	}
	event, err := inbox.TestEvent(w, params.Event, j.CreatedAt, j.ID)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the event
	}
	body, err := event.Body(e.opts.Base)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the event
	}
	d := inbox.NewDelivery(event, w.ID, e.now())
	if err := e.deps.Events.GiveOut(ctx, event, body, []inbox.WebhookDelivery{d}); err != nil {
		return nil, fmt.Errorf("give out %s: %w", event.ID, err)
	}
	e.send(ctx, queue.Message{ID: inbox.DeliveryMessage(d.Workspace, d.ID)})
	return inbox.DeliveryJobResult{Delivery: d.ID}, nil
}

// Retry does a job of inbox.KindDeliveryRetry, on the same terms.
func (e *Engine) Retry(ctx context.Context, j inbox.Job, authorized func(context.Context) error) (any, error) {
	if err := authorized(ctx); err != nil {
		return nil, err
	}
	d, err := e.deps.Deliveries.Delivery(ctx, j.Workspace, j.Target)
	if err != nil {
		return nil, fmt.Errorf("delivery of %s: %w", j.ID, err)
	}
	if _, err := e.open(ctx, j.Workspace, d.Webhook); err != nil {
		return nil, err
	}
	d, err = e.deps.Deliveries.Settle(ctx, j.Workspace, d.ID, func(d *inbox.WebhookDelivery) error {
		d.Retry(j.ID, e.now())
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("retry %s: %w", j.Target, err)
	}
	e.send(ctx, queue.Message{ID: inbox.DeliveryMessage(d.Workspace, d.ID)})
	return inbox.DeliveryJobResult{Delivery: d.ID}, nil
}

// open is a webhook that something can be sent to.
func (e *Engine) open(ctx context.Context, ws, id string) (inbox.Webhook, error) {
	w, err := e.deps.Webhooks.Webhook(ctx, ws, id)
	switch {
	case err != nil && !apperr.Is(err, apperr.NotFound):
		return w, fmt.Errorf("webhook %s: %w", id, err)
	case err != nil, !w.DeletedAt.IsZero():
		return w, inbox.NoWebhook()
	case !w.Enabled:
		return w, inbox.WebhookOff()
	}
	return w, nil
}
