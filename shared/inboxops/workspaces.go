package inboxops

import (
	"context"
	"net/http"

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

func workspace(w op.Workspace) Workspace {
	return Workspace{w.ID, w.Slug, w.Name, string(roleOf(w.Role))}
}

type workspacesListInput struct{ Paging }

// WorkspacesOutput is the reply of workspaces_list.
type WorkspacesOutput struct{ Body WorkspacesBody }

// WorkspacesBody is its JSON.
type WorkspacesBody struct {
	Data []Workspace `json:"data"`
	Meta ListMeta    `json:"meta"`
}

func (o *operations) workspaces() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "workspaces_list", Method: http.MethodGet, Path: "/workspaces",
			Title: "List workspaces",
			Description: "The workspaces that this connection reaches, with your role in each. Inboxes and emails belong to one workspace; " +
				"use the id in X-Workspace-Id.",
			Scope: scopeWorkspacesRead, Role: op.Viewer, Effect: op.Read, Idempotent: true, AnyTenant: true,
		}, o.workspacesList),
	}
}

func (o *operations) workspacesList(ctx context.Context, in *workspacesListInput) (*WorkspacesOutput, error) {
	all := mapped(op.CallerFrom(ctx).Workspaces, func(w op.Workspace) inbox.WorkspaceRow {
		return inbox.WorkspaceRow{ID: w.ID, Slug: w.Slug, Name: w.Name, Role: roleOf(w.Role)}
	})
	rows, next, err := o.services.Workspaces.List(ctx, o.actor(ctx), all, in.request())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	data := mapped(rows, func(w inbox.WorkspaceRow) Workspace { return Workspace{w.ID, w.Slug, w.Name, string(w.Role)} })
	return &WorkspacesOutput{WorkspacesBody{data, listMeta(next, nil, false)}}, nil
}
