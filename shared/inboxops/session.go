package inboxops

import (
	"context"
	"net/http"

	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// Session is who is calling and what the call may do.
type Session struct {
	Subject          string       `json:"subject" doc:"Id of the person or service account."`
	Kind             string       `json:"kind" enum:"person,service,key" doc:"A person, a service account, or an API key, which acts as subject."`
	Email            *string      `json:"email" doc:"Of the person, or of who made the key."`
	Key              *SessionKey  `json:"key" doc:"The API key; null: an access token."`
	Client           string       `json:"client,omitempty" doc:"Id of the client that acts for the person."`
	Organization     string       `json:"organization" doc:"Id of the organization."`
	OrganizationSlug string       `json:"organization_slug"`
	OrganizationName string       `json:"organization_name"`
	Role             string       `json:"role" doc:"The greatest of the caller's roles: viewer, operator, admin or owner."`
	Scopes           []string     `json:"scopes" doc:"What the token allows; x:write includes x:read."`
	Workspaces       []Workspace  `json:"workspaces" doc:"The first 50 of them; workspaces_list has all."`
	DefaultWorkspace *string      `json:"default_workspace" doc:"Used when a request has no X-Workspace-Id header; null: send the header."`
	ExpiresAt        rest.Time    `json:"expires_at" doc:"When the token expires."`
	HiddenTools      []HiddenTool `json:"hidden_tools" doc:"Tools that the role allows and the token does not."`
	Reconnect        string       `json:"reconnect,omitempty" doc:"How to get at the hidden tools."`
	ConfirmedTools   []string     `json:"confirmed_tools" doc:"Tools that can ask a person to confirm the call. Over MCP this needs protocol 2026-07-28 and a client with elicitation; REST asks nobody."`
}

// SessionKey is the API key that the caller shows.
type SessionKey struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	InboxIDs []string `json:"inbox_ids" doc:"What it is confined to; empty: nothing. Other tools are hidden from a confined key."`
}

// HiddenTool is a tool that is left out of lists for want of a scope.
type HiddenTool struct {
	Name  string `json:"name"`
	Scope string `json:"scope" doc:"The scope it needs."`
}

const sessionWorkspaces = 50

type sessionInput struct{}

// SessionOutput is the reply of session_get.
type SessionOutput struct{ Body SessionBody }

// SessionBody is its JSON.
type SessionBody struct {
	Data Session  `json:"data"`
	Meta ItemMeta `json:"meta"`

	opened *opened // what Data's scopes and tools were made of; nil: they are its own
}

func (o *operations) session() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "session_get", Method: http.MethodGet, Path: "/session",
			Title: "Who am I",
			Description: "Your role, scopes, workspaces and their ids, and which tools are hidden for want of scope or ask a person to confirm. " +
				"Call it first, or when a tool you expect is missing.",
			Role: op.Viewer, Effect: op.Read, Confines: true, Idempotent: true, AnyTenant: true,
		}, o.sessionGet),
	}
}

func (o *operations) sessionGet(ctx context.Context, _ *sessionInput) (*SessionOutput, error) {
	c := op.CallerFrom(ctx)
	has := o.opened(c)
	out := &SessionOutput{SessionBody{opened: has, Meta: ItemMeta{Masked: has.masked}, Data: Session{
		Subject: c.Subject, Kind: "service", Client: c.Client, Organization: c.Organization, Role: string(roleOf(c.Role)),
		Scopes: has.scopes, HiddenTools: has.hidden, Reconnect: has.reconnect, ConfirmedTools: has.confirmed,
		Workspaces: mapped(c.Workspaces[:min(len(c.Workspaces), sessionWorkspaces)], workspace),
		ExpiresAt:  at(c.Expires),
	}}}
	s := &out.Body.Data
	if err := s.whose(ctx, c); err != nil {
		return nil, err
	}
	if w, err := c.Workspace(""); err == nil {
		s.DefaultWorkspace = &w.ID
	}
	return out, nil
}

// whose says in words who calls and for whom.
func (s *Session) whose(ctx context.Context, c *op.Caller) (err error) {
	s.Email = orNull(c.Email)
	switch {
	case c.Key != "":
		s.Kind, s.Key = "key", &SessionKey{c.Key, c.KeyName, list(c.Within)}
	case c.Person:
		s.Kind = "person"
	}
	if c.Called != nil {
		s.OrganizationSlug, s.OrganizationName, err = c.Called(ctx)
	}
	return err
}
