package inboxstore

import (
	"context"
	"errors"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// Templates implements inbox.TemplateStore.
func (s *Store) Templates(ctx context.Context, r inbox.TemplateRange) ([]inbox.ExtractionTemplate, string, error) {
	page, err := s.engine.Query(ctx, store.Query{
		Table: store.Core, Partition: templatesPartition(r.Workspace, false), After: r.After, Limit: r.Limit,
	})
	if err != nil {
		return nil, "", failed("templates", err)
	}
	rows, err := decodeAll[inbox.ExtractionTemplate](page.Items)
	return rows, page.Next, wrapIf("templates", err)
}

// Template implements inbox.TemplateStore.
func (s *Store) Template(ctx context.Context, ws, id string) (inbox.ExtractionTemplate, error) {
	t, _, _, err := s.template(ctx, ws, id)
	if err == nil && t.Version == 0 {
		return inbox.ExtractionTemplate{}, inbox.NoTemplate()
	}
	return t, err
}

// template looks among the live ones first; one that moves between the two reads is looked for once more. None is a zero one.
func (s *Store) template(ctx context.Context, ws, id string) (t inbox.ExtractionTemplate, revision uint64, at store.Key, err error) {
	for range 2 {
		for _, deleted := range []bool{false, true} {
			at = key(templatesPartition(ws, deleted), id)
			t, revision, ok, err := find[inbox.ExtractionTemplate](ctx, s, at)
			if err != nil {
				return inbox.ExtractionTemplate{}, 0, at, failed("template "+id, err)
			}
			if ok {
				return t, revision, at, nil
			}
		}
	}
	return inbox.ExtractionTemplate{}, 0, store.Key{}, nil
}

// UpdateTemplate implements inbox.TemplateStore.
func (s *Store) UpdateTemplate(
	ctx context.Context, ws, id string, act inbox.Act, change func(*inbox.ExtractionTemplate) error,
) (inbox.ExtractionTemplate, error) {
	for range attempts {
		old, revision, from, err := s.template(ctx, ws, id)
		if err != nil {
			return inbox.ExtractionTemplate{}, err
		}
		if err := s.unused(ctx, act); err != nil {
			return inbox.ExtractionTemplate{}, err
		}
		next := old
		if err := change(&next); err != nil {
			return inbox.ExtractionTemplate{}, err
		}
		if next.Version == old.Version {
			return old, nil
		}
		var b batch
		to := key(templatesPartition(ws, !next.DeletedAt.IsZero()), id)
		switch {
		case from == to:
			b.forgetful(to, revision, next, inbox.PurgeAt(next.DeletedAt))
		case revision > 0: // a deleted one ends by itself
			b.expiring(to, revision+1, next, store.Absent(), inbox.PurgeAt(next.DeletedAt))
			b.drop(from, store.RevisionIs(revision))
		default:
			b.create(to, next)
			b.check(key(templatesPartition(ws, next.DeletedAt.IsZero()), id), store.Absent())
		}
		b.act(act, id, existing(old, old.Version), next)
		err = s.commit(ctx, &b)
		if err == nil {
			return next, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return inbox.ExtractionTemplate{}, failed("update template "+id, err)
		}
	}
	return inbox.ExtractionTemplate{}, inbox.Busy()
}
