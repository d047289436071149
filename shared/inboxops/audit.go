package inboxops

import (
	"context"
	"net/http"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// AuditEvent is one act: who did what, when, how they came. Nothing of what was changed is in it.
type AuditEvent struct {
	ID           string         `json:"id"`
	At           rest.Time      `json:"at"`
	Action       string         `json:"action" doc:"Name of the operation, or of the event of the authorization server, as grant.created."`
	Actor        AuditActor     `json:"actor"`
	Targets      []string       `json:"targets" doc:"Ids of what it was about."`
	WorkspaceID  string         `json:"workspace_id,omitempty" doc:"Absent: an act on the organization."`
	BeforeSHA256 string         `json:"before_sha256,omitempty" doc:"Of the row as canonical JSON; absent when it was created, or nothing was changed."`
	AfterSHA256  string         `json:"after_sha256,omitempty"`
	Reason       string         `json:"reason,omitempty"`
	Surface      string         `json:"surface,omitempty" doc:"rest or mcp; absent: the service itself."`
	RequestID    string         `json:"request_id,omitempty"`
	SourceIP     string         `json:"source_ip,omitempty" doc:"As the edge of the service knows it."`
	Untrusted    AuditUntrusted `json:"untrusted"`
}

// AuditActor is who acted.
type AuditActor struct {
	Type   string `json:"type" enum:"person,service,key,system"`
	ID     string `json:"id" doc:"Of the person, the service account, the API key; of the system: which part."`
	Email  string `json:"email,omitempty" doc:"Of the person, or of the key's maker, at that time."`
	Client string `json:"client,omitempty" doc:"Id of the OAuth client."`
	Grant  string `json:"grant,omitempty"`
}

// AuditUntrusted is what somebody outside said of themselves.
type AuditUntrusted struct {
	Notice   string `json:"notice"`
	Software string `json:"software,omitempty" doc:"Name and version that the MCP client declares."`
}

type auditListInput struct {
	Organization bool      `query:"organization" doc:"Acts on the organization instead: members, grants, keys, sign-ins. For its admins." tool:"Members, grants, keys and sign-ins instead."`
	Actor        string    `query:"actor" maxLength:"256" doc:"Id, or a person's e-mail address." tool:"Id or e-mail address."`
	Action       string    `query:"action" maxLength:"64" doc:"Name of an operation, as emails_delete." tool:"As emails_delete."`
	Target       string    `query:"target" maxLength:"64" doc:"Id of what it was about." tool:"-"`
	After        time.Time `query:"after" doc:"RFC 3339, exclusive." tool:"-"`
	Before       time.Time `query:"before" doc:"RFC 3339, exclusive." tool:"-"`
	Paging
}

// AuditEventsOutput is the reply of audit_events_list.
type AuditEventsOutput struct{ Body AuditEventsBody }

// AuditEventsBody is its JSON.
type AuditEventsBody struct {
	Data []AuditEvent `json:"data"`
	Meta ListMeta     `json:"meta"`
}

func (o *operations) audit() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "audit_events_list", Method: http.MethodGet, Path: "/audit-events",
			Title: "Read the audit",
			Description: "Who changed what in the workspace, newest first, for 400 days; downloads too. Only the times are fast; with other " +
				"filters follow next_cursor while meta.window.complete is false.",
			Scope: scopeAuditRead, Role: op.Admin, Effect: op.Read, Idempotent: true,
		}, o.auditList),
	}
}

func (o *operations) auditList(ctx context.Context, in *auditListInput) (*AuditEventsOutput, error) {
	page, err := o.services.Audits.List(ctx, o.actor(ctx), inbox.AuditQuery{
		Organization: in.Organization, Actor: in.Actor, Action: in.Action, Target: in.Target, After: in.After, Before: in.Before,
	}, in.request())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &AuditEventsOutput{AuditEventsBody{mapped(page.Rows, auditEventOf), listMeta(page.Next, page.Window, false)}}, nil
}

func auditEventOf(e inbox.AuditEvent) AuditEvent {
	return AuditEvent{
		ID: e.ID, At: at(e.At), Action: e.Action, Targets: list(e.Targets), WorkspaceID: e.Workspace,
		Actor: AuditActor{
			Type: string(e.Actor.Type), ID: e.Actor.ID, Email: e.Actor.Email, Client: e.Actor.Client, Grant: e.Actor.Grant,
		},
		BeforeSHA256: e.Before, AfterSHA256: e.After, Reason: e.Reason, Surface: e.Surface, RequestID: e.Request, SourceIP: e.Source,
		Untrusted: AuditUntrusted{notice, e.Actor.Software},
	}
}
