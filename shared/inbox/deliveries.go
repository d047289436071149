package inbox

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Deliveries are the operations on what was sent to webhooks.
type Deliveries struct{ d Deps }

// DeliveryQuery filters a list of deliveries.
type DeliveryQuery struct {
	Webhook       string // id
	Status        DeliveryStatus
	Event         EventType
	Email         string // id
	After, Before time.Time
}

// DeliveryPage is one page of deliveries.
type DeliveryPage struct {
	Rows   []WebhookDelivery
	Next   string  // cursor
	Window *Window // nil when the keys serve the list
}

// List returns deliveries, those of the newest events first.
func (s *Deliveries) List(ctx context.Context, a Actor, q DeliveryQuery, p PageRequest) (DeliveryPage, error) {
	limit, err := p.limit()
	if err != nil {
		return DeliveryPage{}, err
	}
	if err := q.check(); err != nil {
		return DeliveryPage{}, err
	}
	c := newCursors(s.d.Cursors, a, "webhook_deliveries_list", q)
	after, err := c.open(p.Cursor)
	if err != nil {
		return DeliveryPage{}, err
	}
	r := DeliveryRange{Workspace: a.Workspace, Webhook: q.Webhook}
	if !q.After.IsZero() {
		r.From = IDFloor("delivery", q.After.Add(time.Millisecond))
	}
	if !q.Before.IsZero() {
		r.To = IDFloor("delivery", q.Before)
	}
	l := lister[WebhookDelivery]{
		after: after, limit: limit, match: q.matcher(),
		key: func(d *WebhookDelivery) string { return d.ID },
		read: func(ctx context.Context, after string, n int) ([]WebhookDelivery, string, error) {
			r.After, r.Limit = after, n
			return s.d.Deliveries.Deliveries(ctx, r)
		},
	}
	rows, next, err := l.collect(ctx)
	if err != nil {
		return DeliveryPage{}, fmt.Errorf("list deliveries of %s: %w", a.Workspace, err)
	}
	page := DeliveryPage{Rows: rows}
	if l.match != nil {
		page.Window = &Window{Examined: l.examined, Complete: next == "", Oldest: IDTime(l.last)}
	}
	page.Next, err = c.seal(next)
	return page, err
}

func (q DeliveryQuery) check() error {
	switch {
	case q.Webhook != "" && !validID("webhook", q.Webhook):
		return invalid("query.webhook", "the id of a webhook", "Call webhooks_list for ids.")
	case q.Status != "" && !slices.Contains(DeliveryStatuses(), q.Status):
		return invalid("query.status", "pending, succeeded, failed or dead")
	case q.Event != "" && !slices.Contains(EventTypes(), q.Event):
		return invalid("query.event", eventNames())
	case q.Email != "" && !validID("email", q.Email):
		return invalid("query.email_id", "the id of an email")
	}
	return nil
}

func (q DeliveryQuery) matcher() func(*WebhookDelivery) bool {
	if q.Status == "" && q.Event == "" && q.Email == "" {
		return nil
	}
	return func(d *WebhookDelivery) bool {
		return (q.Status == "" || d.Status == q.Status) && (q.Event == "" || d.Type == q.Event) && (q.Email == "" || d.Email == q.Email)
	}
}

// Get returns one delivery with its attempts.
func (s *Deliveries) Get(ctx context.Context, a Actor, id string) (WebhookDelivery, error) {
	if !validID("delivery", id) {
		return WebhookDelivery{}, NoDelivery()
	}
	return s.d.Deliveries.Delivery(ctx, a.Workspace, id) //nolint:wrapcheck // the store names the step
}
