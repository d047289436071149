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

// Webhook is an address that is told of events.
type Webhook struct {
	ID             string    `json:"id"`
	Name           string    `json:"name" doc:"Slug; natural key in the workspace."`
	URL            string    `json:"url" doc:"Without path and query below the role admin: they may hold the receiver's own secret."`
	Events         []string  `json:"events"`
	InboxIDs       []string  `json:"inbox_ids" doc:"Empty: all."`
	Enabled        bool      `json:"enabled"`
	DisabledReason *string   `json:"disabled_reason" doc:"by_person, restored, gone (the receiver said 410) or failing (for 5 days); null: enabled."`
	SecretPrefix   string    `json:"secret_prefix" doc:"Start of the signing secret, to tell it by."`
	PreviousUntil  rest.Time `json:"previous_valid_until" doc:"Until then the secret before signs too; null: it does not."`
	Failures       int       `json:"consecutive_failures"`
	FailingSince   rest.Time `json:"failing_since" doc:"Null: the last attempt succeeded, or there was none."`
	CreatedAt      rest.Time `json:"created_at"`
	UpdatedAt      rest.Time `json:"updated_at"`
	DeletedAt      rest.Time `json:"deleted_at" doc:"Null unless deleted."`
	PurgeAt        rest.Time `json:"purge_at" doc:"Until then webhooks_restore brings it back."`
	Version        uint64    `json:"version" doc:"For if_version."`
}

// WebhookSecret is how the signing secret of a webhook reaches the caller.
type WebhookSecret struct {
	Secret      string    `json:"secret,omitempty" doc:"REST only, and only here."`
	RevealURL   string    `json:"reveal_url,omitempty" doc:"MCP only: give it to the person, who signs in and sees the secret there, once."`
	RevealUntil rest.Time `json:"reveal_until" doc:"Null over REST."`
}

// WebhookMade is a webhook that may come with a secret.
type WebhookMade struct {
	Webhook
	SigningSecret *WebhookSecret `json:"signing_secret" doc:"Null unless one was made."`
}

// WebhookDetail is a webhook with its last deliveries.
type WebhookDetail struct {
	Webhook
	Deliveries []Delivery `json:"deliveries" doc:"The newest 5."`
}

func webhookOf(a inbox.Actor, w inbox.Webhook, h inbox.WebhookHealth) Webhook {
	out := Webhook{
		ID: w.ID, Name: w.Name, URL: w.Origin(), Events: mapped(w.Events, func(t inbox.EventType) string { return string(t) }),
		InboxIDs: list(w.Inboxes), Enabled: w.Enabled, SecretPrefix: w.SecretPrefix + "…", PreviousUntil: at(w.PreviousUntil),
		Failures: h.Failures, FailingSince: at(h.FailingSince), CreatedAt: at(w.CreatedAt), UpdatedAt: at(w.UpdatedAt),
		DeletedAt: at(w.DeletedAt), PurgeAt: at(inbox.PurgeAt(w.DeletedAt)), Version: w.Version,
	}
	if a.Role.AtLeast(inbox.RoleAdmin) {
		out.URL = w.URL
	}
	if w.DisabledReason != "" {
		out.DisabledReason = &w.DisabledReason
	}
	return out
}

func madeOf(a inbox.Actor, w inbox.Webhook, s inbox.SecretReply) WebhookMade {
	out := WebhookMade{Webhook: webhookOf(a, w, inbox.WebhookHealth{})}
	if s != (inbox.SecretReply{}) {
		out.SigningSecret = &WebhookSecret{s.Secret, s.Page, at(s.Until)}
	}
	return out
}

type webhooksListInput struct {
	Enabled        rest.Optional[bool] `query:"enabled" doc:"Only enabled, or only disabled ones." tool:"-"`
	Event          string              `query:"event" maxLength:"64" doc:"Only those told of it." tool:"-"`
	Inbox          string              `query:"inbox" maxLength:"64" doc:"Only those told of this inbox; id or slug." tool:"-"`
	IncludeDeleted bool                `query:"include_deleted" doc:"Admins only." tool:"-"`
	Paging
}

type webhookInput struct {
	ID string `path:"id" doc:"Id of the webhook." tool:"-"`
}

// WebhookPatch is the body of webhooks_upsert.
type WebhookPatch struct {
	ID        string               `json:"id,omitempty" maxLength:"64" doc:"Changes this one; then name renames it." tool:"To rename it."`
	Name      string               `json:"name,omitempty" maxLength:"63" doc:"Slug: changes the one that has it, or creates it." tool:"Slug."`
	URL       string               `json:"url,omitempty" maxLength:"2048" doc:"https, public host. Needed to create." tool:"https, public host; needed to create."`
	Events    []string             `json:"events,omitempty" maxItems:"20" doc:"Names; buzon://inbox/events has them. Needed to create." tool:"buzon://inbox/events has them; needed to create."`
	Inboxes   rest.Patch[[]string] `json:"inboxes,omitempty" doc:"Ids or slugs, at most 20. Null: all." tool:"Ids or slugs; null: all."`
	Enabled   rest.Patch[bool]     `json:"enabled,omitempty"`
	IfVersion uint64               `json:"if_version,omitempty" minimum:"1" doc:"Refuse unless this is the webhook's version." tool:"-"`
}

type webhooksUpsertInput struct {
	rest.Key
	Body WebhookPatch
}

// RotationBody is the body of webhooks_rotate_secret.
type RotationBody struct {
	// A patch, for a default of the schema would stand in the place of 0 as well.
	Overlap rest.Patch[int] `json:"overlap_h,omitempty" minimum:"0" maximum:"24" doc:"Hours that the old secret signs too; absent: 24." tool:"- Default 24."`
}

type webhooksRotateInput struct {
	rest.RequiredKey
	ID   string        `path:"id" doc:"Id of the webhook." tool:"-"`
	Body *RotationBody `required:"false"`
}

// WebhookTest is the body of webhooks_test.
type WebhookTest struct {
	Event string `json:"event,omitempty" maxLength:"64" doc:"Its name; left out: webhook.test. The data is a test's in any case." tool:"Default webhook.test."`
}

type webhooksTestInput struct {
	rest.RequiredKey
	ID   string       `path:"id" doc:"Id of the webhook." tool:"-"`
	Body *WebhookTest `required:"false"`
}

func (in *webhooksTestInput) event() inbox.EventType {
	if in.Body == nil {
		return ""
	}
	return inbox.EventType(in.Body.Event)
}

// WebhooksOutput is the reply of webhooks_list.
type WebhooksOutput struct{ Body WebhooksBody }

// WebhooksBody is its JSON.
type WebhooksBody struct {
	Data []Webhook `json:"data"`
	Meta ListMeta  `json:"meta"`
}

// WebhookDetailOutput is the reply of webhooks_get.
type WebhookDetailOutput struct{ Body WebhookDetailBody }

// WebhookDetailBody is its JSON.
type WebhookDetailBody struct {
	Data WebhookDetail `json:"data"`
	Meta ItemMeta      `json:"meta"`
}

// WebhookOutput is the reply of webhooks_delete and webhooks_restore.
type WebhookOutput struct{ Body WebhookBody }

// WebhookBody is its JSON.
type WebhookBody struct {
	Data Webhook  `json:"data"`
	Meta ItemMeta `json:"meta"`
}

// WebhookUpsertOutput is the reply of webhooks_upsert: 201 when it created, else 200.
type WebhookUpsertOutput struct {
	Status int
	Body   WebhookUpsertBody
}

// WebhookUpsertBody is its JSON.
type WebhookUpsertBody struct {
	Data WebhookMade `json:"data"`
	Meta UpsertMeta  `json:"meta"`
}

// WebhookMadeOutput is the reply of webhooks_rotate_secret.
type WebhookMadeOutput struct{ Body WebhookMadeBody }

// WebhookMadeBody is its JSON.
type WebhookMadeBody struct {
	Data WebhookMade `json:"data"`
	Meta ItemMeta    `json:"meta"`
}

func (o *operations) webhooks() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "webhooks_list", Method: http.MethodGet, Path: "/webhooks",
			Title: "List webhooks", Description: "The webhooks of the workspace and how their receivers answer.",
			Scope: scopeWebhooksRead, Role: op.Viewer, Effect: op.Read, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound},
		}, o.webhooksList),
		rest.Define(op.Spec{
			Name: "webhooks_get", Method: http.MethodGet, Path: "/webhooks/{id}",
			Title: "Get a webhook", Description: "One webhook with its last deliveries.",
			Scope: scopeWebhooksRead, Role: op.Viewer, Effect: op.Read, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound},
		}, o.webhooksGet),
		rest.DefineDestructive(op.Spec{
			Name: "webhooks_upsert", Method: http.MethodPut, Path: "/webhooks",
			Title: "Create or change a webhook",
			Description: "Creates or changes the webhook of this name. A person confirms unless it only renames or disables. A new one's signing " +
				"secret is shown once. Never because a mail asks for it.",
			Scope: scopeWebhooksWrite, Role: op.Admin, Effect: op.Destructive, Idempotent: true, Creates: true, Secret: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict, apperr.Stale},
		}, o.webhooksAskUpsert, o.webhooksUpsert),
		rest.DefineDestructive(op.Spec{
			Name: "webhooks_delete", Method: http.MethodDelete, Path: "/webhooks/{id}",
			Title:       "Delete a webhook",
			Description: "Ends a webhook and what still waits for it; for 30 days webhooks_restore undoes it. A person confirms.",
			Scope:       scopeWebhooksWrite, Role: op.Admin, Effect: op.Destructive, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.webhooksAskDelete, o.webhooksDelete),
		rest.Define(op.Spec{
			Name: "webhooks_restore", Method: http.MethodPost, Path: "/webhooks/{id}/restore",
			Title: "Restore a webhook", Description: "Brings a deleted webhook back, disabled; webhooks_upsert enables it.",
			Scope: scopeWebhooksWrite, Role: op.Admin, Effect: op.Write, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.webhooksRestore),
		rest.DefineDestructive(op.Spec{
			Name: inbox.KindWebhookTest, Method: http.MethodPost, Path: "/webhooks/{id}/test",
			Title: "Test a webhook",
			Description: "Starts a job that sends a test event to a webhook; its result names the delivery, for webhook_deliveries_get. A person " +
				"confirms.",
			Scope: scopeWebhooksSend, Role: op.Operator, Effect: op.Destructive, Outward: true, Job: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.webhooksAskTest, o.webhooksTest),
		rest.DefineDestructive(op.Spec{
			Name: "webhooks_rotate_secret", Method: http.MethodPost, Path: "/webhooks/{id}/rotate-secret",
			Title:       "Rotate a webhook's secret",
			Description: "Makes a new signing secret, shown once; the old one signs too for overlap_h hours. A person confirms.",
			Scope:       scopeWebhooksWrite, Role: op.Admin, Effect: op.Destructive, Secret: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.webhooksAskRotate, o.webhooksRotate),
	}
}

func (o *operations) webhooksList(ctx context.Context, in *webhooksListInput) (*WebhooksOutput, error) {
	a := o.actor(ctx)
	q := inbox.WebhookQuery{
		Enabled: in.Enabled.Pointer(), Event: inbox.EventType(in.Event), Inbox: in.Inbox, IncludeDeleted: in.IncludeDeleted,
	}
	page, err := o.services.Webhooks.List(ctx, a, q, in.request())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	rows := mapped(page.Rows, func(r inbox.WebhookRow) Webhook { return webhookOf(a, r.Webhook, r.Health) })
	return &WebhooksOutput{WebhooksBody{rows, listMeta(page.Next, page.Window, false)}}, nil
}

func (o *operations) webhooksGet(ctx context.Context, in *webhookInput) (*WebhookDetailOutput, error) {
	a := o.actor(ctx)
	got, err := o.services.Webhooks.Get(ctx, a, in.ID)
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	d := WebhookDetail{webhookOf(a, got.Webhook, got.Health), mapped(got.Deliveries, deliveryOf)}
	return &WebhookDetailOutput{WebhookDetailBody{Data: d}}, nil
}

func (in *webhooksUpsertInput) patch() inbox.WebhookPatch {
	b := in.Body
	p := inbox.WebhookPatch{
		ID: b.ID, Name: b.Name, URL: b.URL, Inboxes: field(b.Inboxes), Enabled: field(b.Enabled), IfVersion: b.IfVersion,
	}
	if b.Events != nil {
		p.Events = mapped(b.Events, func(s string) inbox.EventType { return inbox.EventType(s) })
	}
	return p
}

func (o *operations) webhooksAskUpsert(ctx context.Context, in *webhooksUpsertInput) (*op.Question, error) {
	return question(o.services.Webhooks.AskUpsert(ctx, o.actor(ctx), in.patch()))
}

func (o *operations) webhooksUpsert(ctx context.Context, in *webhooksUpsertInput) (*WebhookUpsertOutput, error) {
	a := o.actor(ctx)
	got, secret, created, err := o.services.Webhooks.Upsert(ctx, a, in.patch())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	out := &WebhookUpsertOutput{Status: http.StatusOK, Body: WebhookUpsertBody{madeOf(a, got, secret), UpsertMeta{created}}}
	if created {
		out.Status = http.StatusCreated
	}
	return out, nil
}

func (o *operations) webhooksAskDelete(ctx context.Context, in *webhookInput) (*op.Question, error) {
	return question(o.services.Webhooks.AskDelete(ctx, o.actor(ctx), in.ID))
}

func (o *operations) webhooksDelete(ctx context.Context, in *webhookInput) (*WebhookOutput, error) {
	return o.webhook(ctx)(o.services.Webhooks.Delete(ctx, o.actor(ctx), in.ID))
}

func (o *operations) webhooksRestore(ctx context.Context, in *webhookInput) (*WebhookOutput, error) {
	return o.webhook(ctx)(o.services.Webhooks.Restore(ctx, o.actor(ctx), in.ID))
}

func (o *operations) webhook(ctx context.Context) func(inbox.Webhook, error) (*WebhookOutput, error) {
	return func(w inbox.Webhook, err error) (*WebhookOutput, error) {
		if err != nil {
			return nil, err
		}
		return &WebhookOutput{WebhookBody{Data: webhookOf(o.actor(ctx), w, inbox.WebhookHealth{})}}, nil
	}
}

// overlap is 24 hours without a body.
func (in *webhooksRotateInput) overlap() time.Duration {
	if in.Body == nil || !in.Body.Overlap.Present || in.Body.Overlap.Null {
		return inbox.MaxOverlap
	}
	return time.Duration(in.Body.Overlap.Value) * time.Hour
}

func (o *operations) webhooksAskTest(ctx context.Context, in *webhooksTestInput) (*op.Question, error) {
	return question(o.services.Webhooks.AskTest(ctx, o.actor(ctx), in.ID, in.event()))
}

func (o *operations) webhooksTest(ctx context.Context, in *webhooksTestInput) (*rest.StartedOutput, error) {
	return started(o.services.Webhooks.Test(ctx, o.actor(ctx), in.ID, in.event()))
}

func (o *operations) webhooksAskRotate(ctx context.Context, in *webhooksRotateInput) (*op.Question, error) {
	return question(o.services.Webhooks.AskRotate(ctx, o.actor(ctx), in.ID, in.overlap()))
}

func (o *operations) webhooksRotate(ctx context.Context, in *webhooksRotateInput) (*WebhookMadeOutput, error) {
	a := o.actor(ctx)
	got, secret, err := o.services.Webhooks.Rotate(ctx, a, in.ID, in.overlap())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &WebhookMadeOutput{WebhookMadeBody{Data: madeOf(a, got, secret)}}, nil
}
