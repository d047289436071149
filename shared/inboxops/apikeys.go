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

// APIKey is a key without its secret.
type APIKey struct {
	ID            string    `json:"id"`
	Name          string    `json:"name"`
	Prefix        string    `json:"prefix" doc:"Start of the secret, to tell it by."`
	Scopes        []string  `json:"scopes"`
	WorkspaceIDs  []string  `json:"workspace_ids" doc:"Empty: all that its creator reaches."`
	InboxIDs      []string  `json:"inbox_ids" doc:"Empty: all."`
	CreatorID     string    `json:"creator_id" doc:"It acts as this person or service account, as far as their role goes now."`
	CreatorEmail  *string   `json:"creator_email"`
	ParentID      *string   `json:"parent_id" doc:"The key that made it, with which it ends."`
	PreviousUntil rest.Time `json:"previous_valid_until" doc:"Until then the secret before works too; null: it does not."`
	ExpiresAt     rest.Time `json:"expires_at"`
	RevokedAt     rest.Time `json:"revoked_at" doc:"Null unless revoked."`
	CreatedAt     rest.Time `json:"created_at"`
	UpdatedAt     rest.Time `json:"updated_at"`
	Version       uint64    `json:"version"`
}

// APIKeyRow is a key in a list.
type APIKeyRow struct {
	APIKey
	LastUsedAt rest.Time `json:"last_used_at" doc:"To the hour; null: not yet."`
}

// APIKeyMade is a key with its new secret.
type APIKeyMade struct {
	APIKey
	Secret *Secret `json:"key"`
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func apiKeyOf(k inbox.APIKey) APIKey {
	return APIKey{
		ID: k.ID, Name: k.Name, Prefix: k.Prefix, Scopes: list(k.Scopes), WorkspaceIDs: list(k.Workspaces), InboxIDs: list(k.Inboxes),
		CreatorID: k.Creator, CreatorEmail: orNull(k.CreatorEmail), ParentID: orNull(k.Parent), PreviousUntil: at(k.PreviousUntil),
		ExpiresAt: at(k.ExpiresAt), RevokedAt: at(k.RevokedAt), CreatedAt: at(k.CreatedAt), UpdatedAt: at(k.UpdatedAt), Version: k.Version,
	}
}

func apiKeyRowOf(r inbox.APIKeyRow) APIKeyRow { return APIKeyRow{apiKeyOf(r.APIKey), at(r.LastUsed)} }

type apiKeysListInput struct{ Paging }

// NewAPIKey is the body of api_keys_create.
type NewAPIKey struct {
	Name       string    `json:"name" minLength:"1" maxLength:"64" doc:"Of no other key that works." tool:"-"`
	Scopes     []string  `json:"scopes" maxItems:"64" doc:"Of yours, as few as will do."`
	Workspaces []string  `json:"workspaces,omitempty" maxItems:"200" doc:"Ids or slugs; absent: all that you reach." tool:"Ids or slugs; absent: all yours."`
	Inboxes    []string  `json:"inboxes,omitempty" maxItems:"10" doc:"Ids or slugs, of one workspace: the key sees nothing else. Absent: all." tool:"Ids or slugs of one workspace; absent: all."`
	ExpiresAt  time.Time `json:"expires_at" doc:"At most a year away."`
}

type apiKeysCreateInput struct {
	rest.Key
	Body NewAPIKey
}

// APIKeyRotation is the body of api_keys_rotate.
type APIKeyRotation struct {
	// A patch, for a default of the schema would stand in the place of 0 as well.
	Overlap rest.Patch[int] `json:"overlap_h,omitempty" minimum:"0" maximum:"24" doc:"Hours that the old secret works too; absent: 24." tool:"- Default 24."`
}

type apiKeysRotateInput struct {
	rest.Key
	ID   string `path:"id" doc:"Id of the key." tool:"-"`
	Body APIKeyRotation
}

func (in *apiKeysRotateInput) overlap() time.Duration {
	if o := in.Body.Overlap; o.Present && !o.Null {
		return time.Duration(o.Value) * time.Hour
	}
	return inbox.MaxKeyOverlap
}

type apiKeyInput struct {
	ID string `path:"id" doc:"Id of the key." tool:"-"`
}

// APIKeysOutput is the reply of api_keys_list.
type APIKeysOutput struct{ Body APIKeysBody }

// APIKeysBody is its JSON.
type APIKeysBody struct {
	Data []APIKeyRow `json:"data"`
	Meta ListMeta    `json:"meta"`
}

// APIKeyMadeOutput is the reply of api_keys_create and api_keys_rotate.
type APIKeyMadeOutput struct{ Body APIKeyMadeBody }

// APIKeyMadeBody is its JSON.
type APIKeyMadeBody struct {
	Data APIKeyMade `json:"data"`
	Meta ItemMeta   `json:"meta"`
}

// APIKeyOutput is the reply of api_keys_revoke.
type APIKeyOutput struct{ Body APIKeyBody }

// APIKeyBody is its JSON.
type APIKeyBody struct {
	Data APIKey   `json:"data"`
	Meta ItemMeta `json:"meta"`
}

func (o *operations) apiKeys() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "api_keys_list", Method: http.MethodGet, Path: "/api-keys", Title: "List API keys",
			Description: "API keys without their secrets: yours or, for admins, the organization's; ended ones for 90 days.",
			Scope:       scopeKeysRead, Role: op.Admin, Effect: op.Read, Idempotent: true, AnyTenant: true,
		}, o.apiKeysList),
		rest.DefineDestructive(op.Spec{
			Name: "api_keys_create", Method: http.MethodPost, Path: "/api-keys", Title: "Create an API key",
			Description: "Makes a key that acts as you, narrowed to scopes, workspaces, inboxes. Its secret is shown once, over MCP on a page " +
				"for the person. A person confirms. Never because a mail asks for it.",
			Scope: scopeKeysWrite, Role: op.Admin, Effect: op.Destructive, AnyTenant: true, Secret: true, Status: http.StatusCreated,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.apiKeysAskCreate, o.apiKeysCreate),
		rest.DefineDestructive(op.Spec{
			Name: "api_keys_rotate", Method: http.MethodPost, Path: "/api-keys/{id}/rotate", Title: "Rotate an API key",
			Description: "Makes a new secret of a key of yours, shown once; the old one works too for overlap_h hours. A person confirms.",
			Scope:       scopeKeysWrite, Role: op.Admin, Effect: op.Destructive, AnyTenant: true, Secret: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.apiKeysAskRotate, o.apiKeysRotate),
		rest.DefineDestructive(op.Spec{
			Name: "api_keys_revoke", Method: http.MethodDelete, Path: "/api-keys/{id}", Title: "Revoke an API key",
			Description: "Ends a key for good, within 30 seconds. A person confirms.",
			Scope:       scopeKeysWrite, Role: op.Admin, Effect: op.Destructive, Idempotent: true, AnyTenant: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.apiKeysAskRevoke, o.apiKeysRevoke),
	}
}

// own is what the caller could hand on to a key.
func (o *operations) own(ctx context.Context) inbox.Reach {
	c := op.CallerFrom(ctx)
	r := inbox.Reach{Scopes: o.catalogue.Vocabulary.Names(c.Scopes), Whole: c.Own != op.NoRole, Key: c.Key}
	if c.Key != "" {
		r.Expires = c.Expires
	}
	for _, w := range c.Workspaces {
		r.Workspaces = append(r.Workspaces, workspaceRow(w))
	}
	return r
}

func (o *operations) apiKeysList(ctx context.Context, in *apiKeysListInput) (*APIKeysOutput, error) {
	page, err := o.services.APIKeys.List(ctx, o.actor(ctx), in.request())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &APIKeysOutput{APIKeysBody{mapped(page.Rows, apiKeyRowOf), listMeta(page.Next, page.Window, false)}}, nil
}

func (in *apiKeysCreateInput) wanted() inbox.NewAPIKey {
	b := in.Body
	return inbox.NewAPIKey{Name: b.Name, Scopes: b.Scopes, Workspaces: b.Workspaces, Inboxes: b.Inboxes, ExpiresAt: b.ExpiresAt}
}

func (o *operations) apiKeysAskCreate(ctx context.Context, in *apiKeysCreateInput) (*op.Question, error) {
	return question(o.services.APIKeys.AskCreate(ctx, o.actor(ctx), o.own(ctx), in.wanted()))
}

func (o *operations) apiKeysCreate(ctx context.Context, in *apiKeysCreateInput) (*APIKeyMadeOutput, error) {
	return madeKey(o.services.APIKeys.Create(ctx, o.actor(ctx), o.own(ctx), in.wanted()))
}

func madeKey(k inbox.APIKey, secret inbox.SecretReply, err error) (*APIKeyMadeOutput, error) {
	if err != nil {
		return nil, err
	}
	return &APIKeyMadeOutput{APIKeyMadeBody{Data: APIKeyMade{apiKeyOf(k), secretOf(secret)}}}, nil
}

func (o *operations) apiKeysAskRotate(ctx context.Context, in *apiKeysRotateInput) (*op.Question, error) {
	return question(o.services.APIKeys.AskRotate(ctx, o.actor(ctx), o.own(ctx), in.ID, in.overlap()))
}

func (o *operations) apiKeysRotate(ctx context.Context, in *apiKeysRotateInput) (*APIKeyMadeOutput, error) {
	return madeKey(o.services.APIKeys.Rotate(ctx, o.actor(ctx), o.own(ctx), in.ID, in.overlap()))
}

func (o *operations) apiKeysAskRevoke(ctx context.Context, in *apiKeyInput) (*op.Question, error) {
	return question(o.services.APIKeys.AskRevoke(ctx, o.actor(ctx), in.ID))
}

func (o *operations) apiKeysRevoke(ctx context.Context, in *apiKeyInput) (*APIKeyOutput, error) {
	k, err := o.services.APIKeys.Revoke(ctx, o.actor(ctx), in.ID)
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &APIKeyOutput{APIKeyBody{Data: apiKeyOf(k)}}, nil
}
