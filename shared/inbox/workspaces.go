package inbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Workspaces are the operations on workspaces, and on the organization that holds them.
type Workspaces struct{ d Deps }

// WorkspaceRow is a workspace as a caller's grant carries it.
type WorkspaceRow struct {
	ID, Slug, Name string
	Role           Role
}

// WorkspaceDetail is a workspace as it is now, with the caller's role there.
type WorkspaceDetail struct {
	Workspace
	Role Role
}

// List pages through the workspaces that the caller's grant carries, by id.
func (s *Workspaces) List(ctx context.Context, a Actor, all []WorkspaceRow, p PageRequest) ([]WorkspaceDetail, string, error) {
	limit, err := p.limit()
	if err != nil {
		return nil, "", err
	}
	a.Workspace = "" // the list is the organization's: the same whichever workspace the request names
	c := newCursors(s.d.Cursors, a, "workspaces_list", nil)
	after, err := c.open(p.Cursor)
	if err != nil {
		return nil, "", err
	}
	stored, err := s.d.Organizations.Workspaces(ctx, a.Organization)
	if err != nil {
		return nil, "", fmt.Errorf("workspaces of %s: %w", a.Organization, err)
	}
	rows := make([]WorkspaceDetail, 0, len(all))
	for _, w := range all {
		i := slices.IndexFunc(stored, func(x Workspace) bool { return x.ID == w.ID })
		if i >= 0 && w.ID > after { // by key and not by position: the grant can have changed since
			rows = append(rows, WorkspaceDetail{stored[i], w.Role})
		}
	}
	slices.SortFunc(rows, func(x, y WorkspaceDetail) int { return strings.Compare(x.ID, y.ID) })
	if len(rows) <= limit {
		return rows, "", nil
	}
	next, err := c.seal(rows[limit-1].ID)
	return rows[:limit], next, err
}

// settings is the caller's workspace as it is now; a zero one when it is gone.
func (d Deps) settings(ctx context.Context, a Actor) (Workspace, error) {
	all, err := d.Organizations.Workspaces(ctx, a.Organization)
	if err != nil {
		return Workspace{}, fmt.Errorf("workspaces of %s: %w", a.Organization, err)
	}
	for _, w := range all {
		if w.ID == a.Workspace {
			return w, nil
		}
	}
	return Workspace{}, nil
}
