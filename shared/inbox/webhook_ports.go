package inbox

import (
	"context"
)

// WebhookStore keeps webhooks. Everything is found under its workspace, so another tenant's id is a missing one.
type WebhookStore interface {
	// Webhooks reads one page by id, behind r.After, with how their receivers answer; next is empty at the end.
	Webhooks(ctx context.Context, r WebhookRange) (rows []WebhookRow, next string, err error)
	// Webhook finds one, deleted or not; not_found when there is none.
	Webhook(ctx context.Context, workspace, id string) (Webhook, error)
	// WebhookNamed finds one by its name, deleted or not; not_found when there is none.
	WebhookNamed(ctx context.Context, workspace, name string) (Webhook, error)
	// Health is how a webhook's receiver answers.
	Health(ctx context.Context, workspace, id string) (WebhookHealth, error)
	// UpdateWebhook works like InboxStore.UpdateInbox, but that change is called with a zero webhook when there is none and makes it
	// by giving it a version. ErrWebhookName, ErrTooManyWebhooks, ErrTooManyDeleted.
	UpdateWebhook(ctx context.Context, workspace, id string, act Act, change func(*Webhook) error) (Webhook, error)
	// StartWebhookJob works like EmailStore.StartEmailJob; start is called with a zero webhook when there is none.
	StartWebhookJob(ctx context.Context, workspace, id string, act Act, start func(Webhook) (Job, error)) (Job, error)
}

// WebhookRange is one page of a workspace's webhooks.
type WebhookRange struct {
	Workspace string
	Deleted   bool // with the deleted ones
	After     string
	Limit     int
}

// WebhookRow is a webhook with how its receiver answers.
type WebhookRow struct {
	Webhook
	Health WebhookHealth
}

// DeliveryStore keeps what was sent to webhooks, for a while.
type DeliveryStore interface {
	// Deliveries reads one page, newest first, behind r.After, without attempts; next is empty at the end.
	Deliveries(ctx context.Context, r DeliveryRange) (rows []WebhookDelivery, next string, err error)
	// Delivery finds one with its attempts; not_found when there is none.
	Delivery(ctx context.Context, workspace, id string) (WebhookDelivery, error)
}

// DeliveryRange is one page of deliveries.
type DeliveryRange struct {
	Workspace string
	Webhook   string // empty: those of all
	From, To  string // ids: inclusive, exclusive; empty is open
	After     string // id
	Limit     int
}

// Receivers judges addresses that webhooks are to be sent to.
type Receivers interface {
	// Check tells whether an address has the form that is sent to, and asks no network. Its error is for logs.
	Check(address string) error
}
