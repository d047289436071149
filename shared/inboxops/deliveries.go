package inboxops

import (
	"context"
	"net/http"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// Delivery is one event on its way to one webhook.
type Delivery struct {
	ID         string    `json:"id" doc:"The webhook-id header of every attempt."`
	WebhookID  string    `json:"webhook_id"`
	EventID    string    `json:"event_id"`
	Event      string    `json:"event"`
	EmailID    *string   `json:"email_id"`
	Status     string    `json:"status" enum:"pending,succeeded,failed,dead" doc:"failed: another attempt follows at next_attempt_at."`
	Reason     *string   `json:"reason" doc:"Of a dead one: exhausted, webhook_disabled, gone or event_expired."`
	Attempt    int       `json:"attempt" doc:"How many were made."`
	HTTPStatus *int      `json:"http_status" doc:"Of the last one; null: no answer."`
	DurationMS int64     `json:"duration_ms"`
	NextAt     rest.Time `json:"next_attempt_at" doc:"Null: none."`
	CreatedAt  rest.Time `json:"created_at"`
	UpdatedAt  rest.Time `json:"updated_at"`
}

// DeliveryDetail is a delivery with its attempts.
type DeliveryDetail struct {
	Delivery
	Attempts []Attempt `json:"attempts" doc:"The last 20, oldest first."`
}

// Attempt is one try.
type Attempt struct {
	At         rest.Time         `json:"at"`
	HTTPStatus *int              `json:"http_status" doc:"Null: no answer."`
	DurationMS int64             `json:"duration_ms"`
	Error      *string           `json:"error" doc:"no_answer: none in 10 s, or not HTTPS at a public address; interrupted: the receiver may have it."`
	Manual     bool              `json:"manual" doc:"Asked for, outside of the schedule."`
	Headers    map[string]string `json:"request_headers" doc:"But for the signature."`
	Untrusted  UntrustedResponse `json:"untrusted"`
}

// UntrustedResponse is what a receiver answered.
type UntrustedResponse struct {
	Notice   string `json:"notice"`
	Response string `json:"response_excerpt" doc:"At most 1 KiB."`
}

func orNil[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func deliveryOf(d inbox.WebhookDelivery) Delivery {
	return Delivery{
		ID: d.ID, WebhookID: d.Webhook, EventID: d.Event, Event: string(d.Type), EmailID: orNil(d.Email), Status: string(d.Status),
		Reason: orNil(d.Reason), Attempt: d.Attempt, HTTPStatus: orNil(d.HTTPStatus), DurationMS: d.Duration, NextAt: at(d.NextAt),
		CreatedAt: at(d.CreatedAt), UpdatedAt: at(d.UpdatedAt),
	}
}

func deliveryDetailOf(d inbox.WebhookDelivery) DeliveryDetail {
	return DeliveryDetail{deliveryOf(d), mapped(d.Attempts, func(a inbox.DeliveryAttempt) Attempt {
		return Attempt{
			At: at(a.At), HTTPStatus: orNil(a.HTTPStatus), DurationMS: a.Duration, Error: orNil(a.Error), Manual: a.Manual,
			Headers: d.Headers(a), Untrusted: UntrustedResponse{notice, a.Response},
		}
	})}
}

type deliveriesListInput struct {
	Webhook string    `query:"webhook" maxLength:"64" doc:"Id." tool:"-"`
	Status  string    `query:"status" enum:"pending,succeeded,failed,dead"`
	Event   string    `query:"event" maxLength:"64"`
	EmailID string    `query:"email_id" maxLength:"64"`
	After   time.Time `query:"after" doc:"Events after this time." tool:"-"`
	Before  time.Time `query:"before" doc:"Events before this time." tool:"-"`
	Paging
}

type deliveryInput struct {
	ID string `path:"id" doc:"Id of the delivery." tool:"-"`
}

type deliveriesRetryInput struct {
	rest.RequiredKey
	ID string `path:"id" doc:"Id of the delivery." tool:"-"`
}

// DeliveriesOutput is the reply of webhook_deliveries_list.
type DeliveriesOutput struct{ Body DeliveriesBody }

// DeliveriesBody is its JSON.
type DeliveriesBody struct {
	Data []Delivery `json:"data"`
	Meta ListMeta   `json:"meta"`
}

// DeliveryOutput is the reply of webhook_deliveries_get.
type DeliveryOutput struct{ Body DeliveryBody }

// DeliveryBody is its JSON.
type DeliveryBody struct {
	Data DeliveryDetail `json:"data"`
	Meta ItemMeta       `json:"meta"`
}

func (o *operations) deliveries() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "webhook_deliveries_list", Method: http.MethodGet, Path: "/webhook-deliveries",
			Title: "List deliveries", Description: "What was sent to webhooks in the last 30 days, newest events first.",
			Scope: scopeWebhooksRead, Role: op.Viewer, Effect: op.Read, Confines: true, Idempotent: true,
		}, o.deliveriesList),
		rest.Define(op.Spec{
			Name: "webhook_deliveries_get", Method: http.MethodGet, Path: "/webhook-deliveries/{id}",
			Title: "Get a delivery", Description: "One delivery with its last 20 attempts and the start of what the receiver answered.",
			Scope: scopeWebhooksRead, Role: op.Viewer, Effect: op.Read, Confines: true, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound},
		}, o.deliveriesGet),
		rest.DefineDestructive(op.Spec{
			Name: inbox.KindDeliveryRetry, Method: http.MethodPost, Path: "/webhook-deliveries/{id}/retry",
			Title: "Send a delivery again", Description: "Starts a job that sends a delivery again at once, under the same webhook-id. A person confirms.",
			Scope: scopeWebhooksSend, Role: op.Operator, Effect: op.Destructive, Confines: true, Outward: true, Job: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.deliveriesAskRetry, o.deliveriesRetry),
	}
}

func (o *operations) deliveriesList(ctx context.Context, in *deliveriesListInput) (*DeliveriesOutput, error) {
	q := inbox.DeliveryQuery{
		Webhook: in.Webhook, Status: inbox.DeliveryStatus(in.Status), Event: inbox.EventType(in.Event), Email: in.EmailID,
	}
	q.After, q.Before = in.After, in.Before
	page, err := o.services.Deliveries.List(ctx, o.actor(ctx), q, in.request())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &DeliveriesOutput{DeliveriesBody{mapped(page.Rows, deliveryOf), listMeta(page.Next, page.Window, false)}}, nil
}

func (o *operations) deliveriesGet(ctx context.Context, in *deliveryInput) (*DeliveryOutput, error) {
	got, err := o.services.Deliveries.Get(ctx, o.actor(ctx), in.ID)
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &DeliveryOutput{DeliveryBody{Data: deliveryDetailOf(got)}}, nil
}

func (o *operations) deliveriesAskRetry(ctx context.Context, in *deliveriesRetryInput) (*op.Question, error) {
	return question(o.services.Deliveries.AskRetry(ctx, o.actor(ctx), in.ID))
}

func (o *operations) deliveriesRetry(ctx context.Context, in *deliveriesRetryInput) (*rest.StartedOutput, error) {
	return started(o.services.Deliveries.Retry(ctx, o.actor(ctx), in.ID))
}
