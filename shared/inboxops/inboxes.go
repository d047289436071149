package inboxops

import (
	"context"
	"net/http"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// Inbox is an address that receives mail.
type Inbox struct {
	ID            string    `json:"id"`
	Slug          string    `json:"slug" doc:"Its name in the workspace; usable instead of the id."`
	Address       string    `json:"address" doc:"Where mail is sent to."`
	DisplayName   string    `json:"display_name"`
	State         string    `json:"state" enum:"active,paused" doc:"A paused inbox takes no mail; senders retry."`
	RetentionDays *int      `json:"retention_days" doc:"Mail older than this is purged; null: kept."`
	SenderPolicy  string    `json:"sender_policy" enum:"open,listed,listed_authenticated" doc:"Whose mail it takes; inboxes_set_sender_policy."`
	OnUnlisted    string    `json:"on_unlisted" enum:"reject,quarantine,label" doc:"What becomes of other mail."`
	Template      string    `json:"default_template,omitempty" doc:"Extraction template that every mail is read by."`
	CreatedAt     rest.Time `json:"created_at"`
	UpdatedAt     rest.Time `json:"updated_at"`
	DeletedAt     rest.Time `json:"deleted_at" doc:"Null unless deleted."`
	PurgeAt       rest.Time `json:"purge_at" doc:"Until then inboxes_restore brings a deleted inbox back."`
	Version       uint64    `json:"version" doc:"For if_version."`
}

// InboxCounts are approximate: they are moved beside the mail, not with it.
type InboxCounts struct {
	Approximate bool  `json:"approximate" doc:"Always true: never decide anything by these numbers alone."`
	Received    int64 `json:"received" doc:"Accepted, and not purged since."`
	Processed   int64 `json:"processed"`
	Failed      int64 `json:"failed"`
	Quarantined int64 `json:"quarantined"`
	Deleted     int64 `json:"deleted"`
}

// InboxDetail is an inbox with its counts.
type InboxDetail struct {
	Inbox
	Counts InboxCounts `json:"counts"`
}

func inboxOf(in inbox.Inbox) Inbox {
	out := Inbox{
		ID: in.ID, Slug: in.Slug, Address: in.Address, DisplayName: in.DisplayName, State: string(in.State),
		Template: in.Template, CreatedAt: at(in.CreatedAt), UpdatedAt: at(in.UpdatedAt), DeletedAt: at(in.DeletedAt),
		PurgeAt: at(inbox.PurgeAt(in.DeletedAt)), Version: in.Version,
	}
	policy, unlisted := in.Policy()
	out.SenderPolicy, out.OnUnlisted = string(policy), string(unlisted)
	if in.Retention > 0 {
		out.RetentionDays = &in.Retention
	}
	return out
}

type inboxesListInput struct {
	State          string `query:"state" enum:"active,paused" doc:"Only inboxes in this state." tool:"-"`
	Q              string `query:"q" maxLength:"256" doc:"Text in slug, address or display name." tool:"-"`
	IncludeDeleted bool   `query:"include_deleted" doc:"Deleted inboxes too; admins only." tool:"-"`
	Paging
}

type inboxesGetInput struct {
	ID             string `path:"id" doc:"Id or slug of the inbox." tool:"Id or slug."`
	IncludeDeleted bool   `query:"include_deleted" doc:"A deleted inbox too; admins only." tool:"-"`
}

type inboxInput struct {
	ID string `path:"id" doc:"Id or slug of the inbox." tool:"Id or slug."`
}

// InboxPatch is the body of inboxes_upsert.
type InboxPatch struct {
	ID            string             `json:"id,omitempty" maxLength:"64" doc:"Of the inbox to change; the slug does as well." tool:"-"`
	Slug          string             `json:"slug,omitempty" maxLength:"63" doc:"Natural key: changes the inbox that has it, or creates one. Lower-case letters, digits, hyphens." tool:"a-z, 0-9, hyphens."`
	Address       string             `json:"address,omitempty" maxLength:"254" doc:"On creation only: an address in one of the organization's domains. Left out: slug@ the first domain." tool:"On creation only; default: slug@ the first domain."`
	DisplayName   rest.Patch[string] `json:"display_name,omitempty" maxLength:"128" doc:"Null: none." tool:"-"`
	State         rest.Patch[string] `json:"state,omitempty" maxLength:"16" doc:"active, or paused to take no mail for now. Null: active." tool:"active or paused."`
	RetentionDays rest.Patch[int]    `json:"retention_days,omitempty" minimum:"1" maximum:"3650" doc:"Purge mail older than this. Null: keep it. Shortening it for an inbox that exists purges mail; over MCP the person is asked first." tool:"Older mail is purged; null: none."`
	Template      rest.Patch[string] `json:"default_template,omitempty" maxLength:"63" doc:"Slug of an extraction template that every mail is read by. Null: none." tool:"Slug of the extraction template for all mail."`
	IfVersion     uint64             `json:"if_version,omitempty" minimum:"1" doc:"Refuse unless this is the inbox's version." tool:"-"`
}

type inboxesUpsertInput struct{ Body InboxPatch }

// InboxesOutput is the reply of inboxes_list.
type InboxesOutput struct{ Body InboxesBody }

// InboxesBody is its JSON.
type InboxesBody struct {
	Data []Inbox  `json:"data"`
	Meta ListMeta `json:"meta"`
}

// InboxDetailOutput is the reply of inboxes_get.
type InboxDetailOutput struct{ Body InboxDetailBody }

// InboxDetailBody is its JSON.
type InboxDetailBody struct {
	Data InboxDetail `json:"data"`
	Meta ItemMeta    `json:"meta"`
}

// InboxUpsertOutput is the reply of inboxes_upsert: 201 when it created, else 200.
type InboxUpsertOutput struct {
	Status int
	Body   InboxUpsertBody
}

// InboxUpsertBody is its JSON.
type InboxUpsertBody struct {
	Data Inbox      `json:"data"`
	Meta UpsertMeta `json:"meta"`
}

// UpsertMeta tells a creation from a change.
type UpsertMeta struct {
	Created bool `json:"created" doc:"True: it is new. False: it was there and is as you asked now."`
}

// InboxOutput is the reply of what changes one inbox.
type InboxOutput struct{ Body InboxBody }

// InboxBody is its JSON.
type InboxBody struct {
	Data Inbox    `json:"data"`
	Meta ItemMeta `json:"meta"`
}

func (o *operations) inboxes() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "inboxes_list", Method: http.MethodGet, Path: "/inboxes",
			Title:       "List inboxes",
			Description: "The inboxes with address and state, oldest first. Their mail: emails_list.",
			Scope:       scopeInboxesRead, Role: op.Viewer, Effect: op.Read, Confines: true, Idempotent: true,
		}, o.inboxesList),
		rest.Define(op.Spec{
			Name: "inboxes_get", Method: http.MethodGet, Path: "/inboxes/{id}",
			Title:       "Get an inbox",
			Description: "One inbox by id or slug, with approximate counts of its mail by status.",
			Scope:       scopeInboxesRead, Role: op.Viewer, Effect: op.Read, Confines: true, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound},
		}, o.inboxesGet),
		rest.DefineDestructive(op.Spec{
			Name: "inboxes_upsert", Method: http.MethodPut, Path: "/inboxes",
			Title: "Create or change an inbox",
			Description: "Creates the inbox of this slug, or changes it; what is left out stays, null resets. state paused stops new mail. A " +
				"person confirms a shorter retention, for it purges mail.",
			Scope: scopeInboxesWrite, Role: op.Admin, Effect: op.Destructive, Confines: true, Idempotent: true, Creates: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict, apperr.Stale},
		}, o.inboxesAskUpsert, o.inboxesUpsert),
		rest.DefineDestructive(op.Spec{
			Name: "inboxes_delete", Method: http.MethodDelete, Path: "/inboxes/{id}",
			Title: "Delete an inbox",
			Description: "Deletes an inbox: it takes no more mail and all its mail is hidden at once; for 30 days inboxes_restore undoes it. A " +
				"person confirms. To stop mail for a while, pause it with inboxes_upsert.",
			Scope: scopeInboxesWrite, Role: op.Admin, Effect: op.Destructive, Confines: true, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.inboxesAskDelete, o.inboxesDelete),
		rest.Define(op.Spec{
			Name: "inboxes_restore", Method: http.MethodPost, Path: "/inboxes/{id}/restore",
			Title:       "Restore an inbox",
			Description: "Brings a deleted inbox back with its address and all its mail.",
			Scope:       scopeInboxesWrite, Role: op.Admin, Effect: op.Write, Confines: true, Idempotent: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.inboxesRestore),
	}
}

func (o *operations) inboxesList(ctx context.Context, in *inboxesListInput) (*InboxesOutput, error) {
	q := inbox.InboxQuery{State: inbox.State(in.State), Q: in.Q, IncludeDeleted: in.IncludeDeleted}
	page, err := o.services.Inboxes.List(ctx, o.actor(ctx), q, in.request())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &InboxesOutput{InboxesBody{mapped(page.Rows, inboxOf), listMeta(page.Next, page.Window, false)}}, nil
}

func (o *operations) inboxesGet(ctx context.Context, in *inboxesGetInput) (*InboxDetailOutput, error) {
	d, err := o.services.Inboxes.Get(ctx, o.actor(ctx), in.ID, in.IncludeDeleted)
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	c := d.Counts
	counts := InboxCounts{true, c.Received, c.Processed, c.Failed, c.Quarantined, c.Deleted}
	return &InboxDetailOutput{InboxDetailBody{Data: InboxDetail{inboxOf(d.Inbox), counts}}}, nil
}

func (in *inboxesUpsertInput) patch() inbox.InboxPatch {
	b := in.Body
	state := field(b.State)
	return inbox.InboxPatch{
		ID: b.ID, Slug: b.Slug, Address: b.Address, DisplayName: field(b.DisplayName),
		State:     inbox.Field[inbox.State]{Present: state.Present, Null: state.Null, Value: inbox.State(state.Value)},
		Retention: field(b.RetentionDays), Template: field(b.Template), IfVersion: b.IfVersion,
	}
}

func (o *operations) inboxesAskUpsert(ctx context.Context, in *inboxesUpsertInput) (*op.Question, error) {
	return question(o.services.Inboxes.AskUpsert(ctx, o.actor(ctx), in.patch()))
}

func (o *operations) inboxesUpsert(ctx context.Context, in *inboxesUpsertInput) (*InboxUpsertOutput, error) {
	got, created, err := o.services.Inboxes.Upsert(ctx, o.actor(ctx), in.patch())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	out := &InboxUpsertOutput{Status: http.StatusOK, Body: InboxUpsertBody{inboxOf(got), UpsertMeta{created}}}
	if created {
		out.Status = http.StatusCreated
	}
	return out, nil
}

func (o *operations) inboxesAskDelete(ctx context.Context, in *inboxInput) (*op.Question, error) {
	return question(o.services.Inboxes.AskDelete(ctx, o.actor(ctx), in.ID))
}

func (o *operations) inboxesDelete(ctx context.Context, in *inboxInput) (*InboxOutput, error) {
	got, err := o.services.Inboxes.Delete(ctx, o.actor(ctx), in.ID)
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &InboxOutput{InboxBody{Data: inboxOf(got)}}, nil
}

func (o *operations) inboxesRestore(ctx context.Context, in *inboxInput) (*InboxOutput, error) {
	got, err := o.services.Inboxes.Restore(ctx, o.actor(ctx), in.ID)
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &InboxOutput{InboxBody{Data: inboxOf(got)}}, nil
}
