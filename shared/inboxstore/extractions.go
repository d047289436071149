package inboxstore

import (
	"context"
	"errors"
	"strings"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// Extractions implements inbox.ExtractionStore.
func (s *Store) Extractions(ctx context.Context, r inbox.ExtractionRange) ([]inbox.Extraction, string, error) {
	q := store.Query{
		Table: store.Core, Partition: extractionsPartition(r.Workspace, r.Template), Descending: true, After: r.After, Limit: r.Limit,
	}
	if r.Email != "" {
		q.Partition, q.From, q.To = extractionsPartition(r.Workspace, ""), r.Email+"/", r.Email+"0" // 0 is next to /
	}
	page, err := s.engine.Query(ctx, q)
	if err != nil {
		return nil, "", failed("extractions", err)
	}
	items, next := page.Items, page.Next
	if r.Email == "" && len(items) > 0 {
		if items, next, err = s.withoutDeleted(ctx, r.Workspace, items, next); err != nil {
			return nil, "", err
		}
	}
	rows, err := decodeAll[inbox.Extraction](items)
	return rows, next, wrapIf("extractions", err)
}

// withoutDeleted drops what belongs to deleted mails. Both lists are in the order of the mails' positions. If more mails were
// deleted between the first and the last row than one look finds, the page ends where the look ended.
func (s *Store) withoutDeleted(ctx context.Context, ws string, items []store.Item, next string) ([]store.Item, string, error) {
	mail := func(sort string) string { at, _, _ := strings.Cut(sort, "/"); return at }
	newest, oldest := mail(items[0].Key.Sort), mail(items[len(items)-1].Key.Sort)
	gone, err := store.Fill(ctx, s.engine, store.Query{
		Table: store.Core, Partition: "mails/" + ws + deletedSuffix(true), From: oldest, To: newest + "\x01", Descending: true, Limit: store.MaxLimit,
	}, 2)
	if err != nil {
		return nil, "", failed("deleted mails", err)
	}
	deleted := make(map[string]bool, len(gone.Items))
	for _, item := range gone.Items {
		deleted[item.Key.Sort] = true
	}
	kept := make([]store.Item, 0, len(items))
	for i, item := range items {
		at := mail(item.Key.Sort)
		if i > 0 && gone.Next != "" && at < gone.Next { // not known
			return kept, items[i-1].Key.Sort, nil
		}
		if !deleted[at] {
			kept = append(kept, item)
		}
	}
	return kept, next, nil
}

// PutExtraction implements inbox.ExtractionStore and pipeline.Extractions.
func (s *Store) PutExtraction(ctx context.Context, e inbox.Extraction) error {
	at := key(extractionsPartition(e.Workspace, ""), e.Key())
	for range attempts {
		old, revision, found, err := find[inbox.Extraction](ctx, s, at)
		if err != nil {
			return failed("extraction "+e.ID, err)
		}
		if old.Version > e.Version || found && sameExtraction(old, e) { // a run that was repeated
			return nil
		}
		var b batch
		b.check(mailKey(e.Workspace, e.Email, docSort), store.Exists()) // purged meanwhile: nothing may be left of it
		b.upsert(at, revision, e)
		b.set(key(extractionsPartition(e.Workspace, e.Template), e.Key()), e)
		told, err := s.events(ctx, &b, e.Workspace, func() ([]inbox.Event, error) {
			event, err := inbox.ExtractionEvent(e)
			return []inbox.Event{event}, err //nolint:wrapcheck // it names the event
		})
		if err != nil {
			return failed("event of extraction "+e.ID, err)
		}
		err = s.commit(ctx, &b)
		if err == nil {
			s.told(ctx, told)
			return nil
		}
		if conflictAt(err) == 0 {
			return inbox.NoEmail()
		}
		if !errors.Is(err, store.ErrConflict) {
			return failed("store extraction "+e.ID, err)
		}
	}
	return inbox.Busy()
}

// sameExtraction reports whether two differ only in when they were made.
func sameExtraction(a, b inbox.Extraction) bool {
	a.ExtractedAt = b.ExtractedAt
	same, err := equal(a, b)
	return err == nil && same
}
