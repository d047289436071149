package inbox

import (
	"context"
	"slices"
)

// Workspaces lists what a caller reaches.
type Workspaces struct{ sealer Sealer }

// WorkspaceRow is a workspace as a caller's grant carries it.
type WorkspaceRow struct {
	ID, Slug, Name string
	Role           Role
}

// List pages through the workspaces that the caller's grant already carries, in their order: it reads nothing.
func (s *Workspaces) List(_ context.Context, a Actor, all []WorkspaceRow, p PageRequest) ([]WorkspaceRow, string, error) {
	limit, err := p.limit()
	if err != nil {
		return nil, "", err
	}
	a.Workspace = "" // the list is the organization's: the same whichever workspace the request names
	c := newCursors(s.sealer, a, "workspaces_list", nil)
	after, err := c.open(p.Cursor)
	if err != nil {
		return nil, "", err
	}
	rows := slices.Clone(all)
	slices.SortFunc(rows, func(x, y WorkspaceRow) int {
		if x.ID < y.ID {
			return -1
		}
		return 1
	})
	// By key and not by position: the grant can have changed since.
	rows = slices.DeleteFunc(rows, func(w WorkspaceRow) bool { return w.ID <= after })
	if len(rows) <= limit {
		return rows, "", nil
	}
	next, err := c.seal(rows[limit-1].ID)
	return rows[:limit], next, err
}
