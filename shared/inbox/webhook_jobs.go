package inbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// The kinds of jobs that have something sent to a webhook.
const (
	KindWebhookTest   = "webhooks_test"
	KindDeliveryRetry = "webhook_deliveries_retry"
)

const scopeWebhooksSend = "webhooks:send"

// WebhookTestParams is what the job of a test keeps.
type WebhookTestParams struct {
	Event EventType `json:"event"`
}

// DeliveryJobResult is the result of both kinds of jobs: what was begun. What comes of it, the delivery tells.
type DeliveryJobResult struct {
	Delivery string `json:"delivery_id"`
}

// WebhookOff is the answer to what would have something sent to a webhook that is disabled.
func WebhookOff() *apperr.Error {
	return apperr.New(apperr.Conflict, "webhook_disabled", "This webhook is disabled: nothing is sent to it.",
		"Enable it with webhooks_upsert, enabled true, then repeat this call.")
}

// sendable reports why nothing can be sent to a webhook.
func sendable(w Webhook) error {
	switch {
	case w.Version == 0, !w.DeletedAt.IsZero():
		return NoWebhook()
	case !w.Enabled:
		return WebhookOff()
	}
	return nil
}

func checkTest(t EventType) (EventType, error) {
	if t == "" {
		return EventTest, nil
	}
	if !slices.Contains(EventTypes(), t) {
		return "", invalid("body.event", eventNames())
	}
	return t, nil
}

// AskTest says what a person is asked before Test.
func (s *Webhooks) AskTest(ctx context.Context, a Actor, id string, t EventType) (*Question, error) {
	t, err := checkTest(t)
	if err != nil {
		return nil, err
	}
	w, err := s.live(ctx, a, id)
	if err == nil {
		err = sendable(w)
	}
	if err != nil {
		return nil, err
	}
	return &Question{
		Text: "Send a test ({}) to webhook {} at {}", Values: []string{string(t), w.Name, w.Host()},
		Targets: map[string]string{w.ID: Version(w.Version)},
	}, nil
}

// Test starts the job that sends one event to a webhook, marked as a test, whatever it subscribes to.
func (s *Webhooks) Test(ctx context.Context, a Actor, id string, t EventType) (Job, error) {
	t, err := checkTest(t)
	if err != nil {
		return Job{}, err
	}
	if !validID("webhook", id) {
		return Job{}, NoWebhook()
	}
	return s.d.startWebhookJob(ctx, a, id, JobSpec{
		Kind: KindWebhookTest, Scope: scopeWebhooksSend, Role: RoleOperator, Target: id, Params: WebhookTestParams{t},
	})
}

// startWebhookJob starts a job for a webhook as it is: one that is switched off, deleted or led elsewhere meanwhile refuses it.
func (d Deps) startWebhookJob(ctx context.Context, a Actor, webhook string, spec JobSpec) (Job, error) {
	j, err := d.newJob(a, spec)
	if err != nil {
		return Job{}, err
	}
	act, err := d.act(a)
	if err != nil {
		return Job{}, err
	}
	j, err = d.Webhooks.StartWebhookJob(ctx, a.Workspace, webhook, act, func(w Webhook) (Job, error) {
		if err := sendable(w); err != nil {
			return Job{}, err
		}
		return j, a.confirm(w.ID, w.Version, true)
	})
	if err != nil {
		return Job{}, fmt.Errorf("start %s: %w", spec.Kind, err)
	}
	return d.started(ctx, j), nil
}

// AskRetry says what a person is asked before Retry.
func (s *Deliveries) AskRetry(ctx context.Context, a Actor, id string) (*Question, error) {
	d, err := s.Get(ctx, a, id)
	if err != nil {
		return nil, err
	}
	w, err := s.d.Webhooks.Webhook(ctx, a.Workspace, d.Webhook)
	if err == nil {
		err = sendable(w)
	}
	if err != nil {
		return nil, err
	}
	return &Question{
		Text:    "Send delivery {} ({}; {} so far, {}) again to webhook {} at {}",
		Values:  []string{d.ID, string(d.Type), about(int64(d.Attempt), "attempt", "attempts"), string(d.Status), w.Name, w.Host()},
		Targets: map[string]string{w.ID: Version(w.Version)},
	}, nil
}

// Retry starts the job that has a delivery sent again at once. One whose schedule is over is sent once more and no further; the
// schedule of another goes on behind it.
func (s *Deliveries) Retry(ctx context.Context, a Actor, id string) (Job, error) {
	d, err := s.Get(ctx, a, id)
	if err != nil {
		return Job{}, err
	}
	return s.d.startWebhookJob(ctx, a, d.Webhook, JobSpec{
		Kind: KindDeliveryRetry, Scope: scopeWebhooksSend, Role: RoleOperator, Target: d.ID, Params: struct{}{},
	})
}
