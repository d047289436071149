package inboxstore

import (
	"context"
	"errors"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// UpdateWorkspace implements inbox.OrganizationStore. A new one is counted under the organization's revision, so that their number is
// bounded exactly.
func (s *Store) UpdateWorkspace(
	ctx context.Context, org, slug string, act inbox.Act, change func(*inbox.Workspace) error,
) (inbox.Workspace, error) {
	for range attempts {
		old, revision, err := s.workspaceBySlug(ctx, org, slug)
		if err != nil {
			return inbox.Workspace{}, err
		}
		if err := s.unused(ctx, act); err != nil {
			return inbox.Workspace{}, err
		}
		next := old
		if err := change(&next); err != nil {
			return inbox.Workspace{}, err
		}
		if next == old {
			return old, nil
		}
		var b batch
		if old.Version > 0 {
			b.replace(orgKey(org, "ws/"+next.ID), revision, next)
		} else if err := s.newWorkspaceOps(ctx, &b, next); err != nil {
			return inbox.Workspace{}, err
		}
		b.act(act, next.ID, existing(old, old.Version), next)
		err = s.commit(ctx, &b)
		if err == nil {
			return next, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return inbox.Workspace{}, failed("update workspace "+next.ID, err)
		}
	}
	return inbox.Workspace{}, inbox.Busy()
}

// workspaceBySlug finds one; a zero one when there is none.
func (s *Store) workspaceBySlug(ctx context.Context, org, slug string) (inbox.Workspace, uint64, error) {
	id, _, ok, err := find[idRow](ctx, s, orgKey(org, "ws-slug/"+slug))
	if err != nil || !ok {
		return inbox.Workspace{}, 0, wrapIf("workspace by slug", err)
	}
	w, revision, err := get[inbox.Workspace](ctx, s, orgKey(org, "ws/"+id.ID))
	if err != nil {
		return inbox.Workspace{}, 0, failed("workspace "+id.ID, err)
	}
	w.Version = max(w.Version, 1) // stored before workspaces had versions
	return w, revision, nil
}

func (s *Store) newWorkspaceOps(ctx context.Context, b *batch, w inbox.Workspace) error {
	row, read, err := s.organization(ctx, w.Organization)
	if err != nil {
		return err
	}
	if row.Workspaces++; row.Workspaces > MaxWorkspaces {
		return inbox.ErrTooManyWorkspaces
	}
	b.create(orgKey(w.Organization, "ws-slug/"+w.Slug), idRow{w.ID})
	b.create(orgKey(w.Organization, "ws/"+w.ID), w)
	b.replace(orgKey(w.Organization, "meta"), read, row)
	return nil
}
