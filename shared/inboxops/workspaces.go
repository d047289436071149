package inboxops

import (
	"context"
	"net/http"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// Workspace is one tenant that the caller reaches.
type Workspace struct {
	ID   string `json:"id" doc:"Send it in the X-Workspace-Id header."`
	Slug string `json:"slug"`
	Name string `json:"name"`
	Role string `json:"role" doc:"The caller's role there."`
}

// WorkspaceDetail is a workspace with its settings.
type WorkspaceDetail struct {
	Workspace
	Retention *int      `json:"retention_days" doc:"Of new inboxes that name none; null: mail is kept."`
	Timezone  string    `json:"timezone" doc:"IANA name, in which its people read times."`
	MaxBytes  int64     `json:"max_message_bytes" doc:"Of one email."`
	CreatedAt rest.Time `json:"created_at"`
	UpdatedAt rest.Time `json:"updated_at"`
	Version   uint64    `json:"version" doc:"For if_version."`
}

func workspace(w op.Workspace) Workspace {
	return Workspace{w.ID, w.Slug, w.Name, string(roleOf(w.Role))}
}

func workspaceRow(w op.Workspace) inbox.WorkspaceRow {
	return inbox.WorkspaceRow{ID: w.ID, Slug: w.Slug, Name: w.Name, Role: roleOf(w.Role)}
}

func workspaceDetail(w inbox.WorkspaceDetail) WorkspaceDetail {
	out := WorkspaceDetail{
		Workspace: Workspace{w.ID, w.Slug, w.Name, string(w.Role)}, Timezone: w.Timezone, MaxBytes: w.EmailBytes(), CreatedAt: at(w.CreatedAt), UpdatedAt: at(w.UpdatedAt),
		Version: w.Version,
	}
	if w.Retention > 0 {
		out.Retention = &w.Retention
	}
	if out.Timezone == "" {
		out.Timezone = "UTC"
	}
	if w.UpdatedAt.IsZero() {
		out.UpdatedAt = out.CreatedAt
	}
	return out
}

type workspacesListInput struct{ Paging }

// WorkspacePatch is the body of workspaces_upsert.
type WorkspacePatch struct {
	Slug      string             `json:"slug" minLength:"1" maxLength:"63" doc:"The natural key; it does not change." tool:"-"`
	Name      rest.Patch[string] `json:"name,omitempty" maxLength:"128" doc:"Null: the slug." tool:"-"`
	Retention rest.Patch[int]    `json:"retention_days,omitempty" minimum:"1" maximum:"3650" doc:"Of inboxes made from now on that name none. Null: kept." tool:"-"`
	Timezone  rest.Patch[string] `json:"timezone,omitempty" maxLength:"64" doc:"IANA name, such as Europe/Madrid. Null: UTC." tool:"-"`
	MaxBytes  rest.Patch[int64]  `json:"max_message_bytes,omitempty" minimum:"65536" maximum:"26214400" doc:"Larger email is refused, or quarantined where it can't be. Null: the most." tool:"-"`
	IfVersion uint64             `json:"if_version,omitempty" minimum:"1" doc:"Refuse unless this is the workspace's version." tool:"-"`
}

type workspacesUpsertInput struct{ Body WorkspacePatch }

// WorkspacesOutput is the reply of workspaces_list.
type WorkspacesOutput struct{ Body WorkspacesBody }

// WorkspacesBody is its JSON.
type WorkspacesBody struct {
	Data []WorkspaceDetail `json:"data"`
	Meta ListMeta          `json:"meta"`
}

// WorkspaceUpsertOutput is the reply of workspaces_upsert: 201 when it created, else 200.
type WorkspaceUpsertOutput struct {
	Status int
	Body   WorkspaceUpsertBody
}

// WorkspaceUpsertBody is its JSON.
type WorkspaceUpsertBody struct {
	Data WorkspaceDetail `json:"data"`
	Meta UpsertMeta      `json:"meta"`
}

func (o *operations) workspaces() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "workspaces_list", Method: http.MethodGet, Path: "/workspaces",
			Title:       "List workspaces",
			Description: "The workspaces that you reach, with your role in each. Inboxes and emails belong to one; name it in X-Workspace-Id.",
			Scope:       scopeWorkspacesRead, Role: op.Viewer, Effect: op.Read, Idempotent: true, AnyTenant: true, Confines: true,
		}, o.workspacesList),
		rest.Define(op.Spec{
			Name: "workspaces_upsert", Method: http.MethodPut, Path: "/workspaces", Title: "Create or change a workspace",
			Description: "Creates a workspace, or changes its name, time zone, email size and the retention of new inboxes. Connections to all workspaces " +
				"reach a new one within 30 seconds.",
			Scope: scopeWorkspacesWrite, Role: op.Owner, Effect: op.Write, Idempotent: true, Creates: true, AnyTenant: true,
			Errors: []apperr.Kind{apperr.Conflict, apperr.Stale},
		}, o.workspacesUpsert),
	}
}

func (o *operations) workspacesList(ctx context.Context, in *workspacesListInput) (*WorkspacesOutput, error) {
	rows, next, err := o.services.Workspaces.List(ctx, o.actor(ctx), mapped(op.CallerFrom(ctx).Workspaces, workspaceRow), in.request())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &WorkspacesOutput{WorkspacesBody{mapped(rows, workspaceDetail), listMeta(next, nil, false)}}, nil
}

func (in *workspacesUpsertInput) patch() inbox.WorkspacePatch {
	b := in.Body
	return inbox.WorkspacePatch{Slug: b.Slug, Name: field(b.Name), Retention: field(b.Retention), Timezone: field(b.Timezone), MaxBytes: field(b.MaxBytes), IfVersion: b.IfVersion}
}

func (o *operations) workspacesUpsert(ctx context.Context, in *workspacesUpsertInput) (*WorkspaceUpsertOutput, error) {
	a := o.actor(ctx)
	got, created, err := o.services.Workspaces.Upsert(ctx, a, in.patch())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	role := a.OrganizationRole
	for _, w := range op.CallerFrom(ctx).Workspaces {
		if w.ID == got.ID {
			role = roleOf(w.Role)
		}
	}
	out := &WorkspaceUpsertOutput{Status: http.StatusOK, Body: WorkspaceUpsertBody{workspaceDetail(inbox.WorkspaceDetail{Workspace: got, Role: role}), UpsertMeta{created}}}
	if created {
		out.Status = http.StatusCreated
	}
	return out, nil
}
