package inboxstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// stamp says when a deleted mail goes for good, which depends on how long its inbox keeps mail.
func (s *Store) stamp(ctx context.Context, old inbox.Email, next *inbox.Email) error {
	if next.DeletedAt.IsZero() {
		next.PurgeAt = time.Time{}
		return nil
	}
	if !old.DeletedAt.IsZero() {
		return nil
	}
	in, _, err := s.inboxByID(ctx, next.Workspace, next.Inbox)
	if err != nil && !apperr.Is(err, apperr.NotFound) { // one that is being purged takes its mail along
		return err
	}
	next.PurgeAt = inbox.PurgeOf(*next, in, next.DeletedAt)
	return nil
}

// PurgeEmail implements pipeline.RetentionStore. Everything by which a mail can be found goes in one transaction under the mail's
// revision, so a restoration, a new reading or another purge that comes between starts this one again, and one that comes after finds
// nothing. What is left (its blobs, its attachments by id, which nobody gets at without it) is named by the row of its trash, written in
// the same transaction. The other order, blobs first, could lose a mail: it would be restored without them.
func (s *Store) PurgeEmail(ctx context.Context, w inbox.EmailPurge, p *inbox.Purge) (bool, error) {
	for range finishAttempts {
		row, revision, err := s.mail(ctx, w.Workspace, w.ID)
		if apperr.Is(err, apperr.NotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		due, expired := w.Due(row.Email)
		if !due {
			return false, nil
		}
		after := *p
		after.Count(row.Email, expired)
		b, err := s.purgeOps(ctx, row.Email, revision)
		if err == nil {
			if w.Inbox != nil {
				b.check(inboxKey(*w.Inbox), store.RevisionIs(w.Revision))
			}
			b.purgeLine(after)
			err = s.commit(ctx, b)
		}
		if err == nil {
			*p = after
			if !w.WithInbox {
				s.uncount(ctx, row.Email)
			}
			return true, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return false, failed("purge "+w.ID, err)
		}
		if w.Inbox != nil && !s.same(ctx, *w.Inbox, w.Revision) {
			return false, nil // what is too old is to be reckoned anew
		}
	}
	return false, inbox.Busy()
}

func (s *Store) same(ctx context.Context, in inbox.Inbox, revision uint64) bool {
	item, err := s.engine.Get(ctx, inboxKey(in))
	return err == nil && item.Revision == revision
}

func (s *Store) purgeOps(ctx context.Context, e inbox.Email, revision uint64) (*batch, error) {
	var b batch
	b.drop(mailKey(e.Workspace, e.ID, docSort), store.RevisionIs(revision))
	b.drop(mailKey(e.Workspace, e.ID, bodySort), store.Condition{})
	b.drop(mailKey(e.Workspace, e.ID, countSort), store.Condition{})
	b.drop(outboxKey(e.ID), store.Condition{}) // of one that was never finished: its worker finds nothing to do
	if !e.DeletedAt.IsZero() {
		b.drop(purgeKey(dueEmail(e)), store.Condition{})
	}
	if err := s.unindex(ctx, &b, e); err != nil {
		return nil, err
	}
	if err := s.dropClaims(ctx, &b, e); err != nil {
		return nil, err
	}
	t := inbox.Trash{}
	if err := s.dropAttachments(ctx, &b, e, &t); err != nil {
		return nil, err
	}
	if err := s.dropExtractions(ctx, &b, e, &t); err != nil {
		return nil, err
	}
	raw, err := s.leaveRaw(ctx, &b, e.RawKey, e.ID, e.RawOwn)
	if err != nil {
		return nil, err
	}
	for _, k := range []string{raw, e.BodyKey} {
		if k != "" {
			t.Blobs = append(t.Blobs, k)
		}
	}
	at := s.now().UTC().Truncate(time.Millisecond)
	t.Search = e.ID
	if !final(e.Status) {
		at = at.Add(inbox.AcceptTime) // a worker that has it now may still store blobs
	}
	b.due(inbox.Due{Kind: inbox.DueTrash, Workspace: e.Workspace, ID: e.ID, Trash: &t, At: at})
	return &b, nil
}

// dropClaims drops the rows by which later mail would find this one, as far as they still lead to it.
func (s *Store) dropClaims(ctx context.Context, b *batch, e inbox.Email) error {
	sorts := slices.Clone(e.Claims)
	if e.RawSHA256 != "" {
		sorts = append(sorts, "raw/"+e.RawSHA256)
	}
	for _, sort := range sorts {
		k, want := dupKey(e.Workspace, e.Inbox, sort), e.ID
		if strings.HasPrefix(sort, "msg/") {
			k, want = key("threading/"+e.Workspace+"/"+e.Inbox, sort), e.Thread
		}
		row, read, ok, err := find[struct { // of either kind
			claimRow
			threadRow
		}](ctx, s, k)
		if err != nil {
			return fmt.Errorf("claims of %s: %w", e.ID, err)
		}
		if ok && want != "" && (row.Email == want || row.Thread == want) {
			b.drop(k, store.RevisionIs(read))
		}
	}
	return nil
}

// dropAttachments drops the rows of a mail's attachments and leaves what they name to its trash.
func (s *Store) dropAttachments(ctx context.Context, b *batch, e inbox.Email, t *inbox.Trash) error {
	if e.Attachments == 0 && final(e.Status) {
		return nil
	}
	lo, hi := store.Prefix(inbox.Position(e.ReceivedAt, e.ID) + "/")
	page, err := store.Fill(ctx, s.engine, store.Query{
		Table: store.Core, Partition: attsPartition(e.Workspace, e.Inbox, !e.DeletedAt.IsZero()), From: lo, To: hi, Limit: 2 * maxAttRows,
	}, 4)
	if err != nil {
		return fmt.Errorf("attachments of %s: %w", e.ID, err)
	}
	for _, item := range page.Items {
		row, err := store.Decode[attsRow](item, format)
		if err != nil {
			return fmt.Errorf("attachments of %s: %w", e.ID, err)
		}
		b.drop(item.Key, store.Condition{})
		for _, a := range row.Attachments {
			t.Attachments = append(t.Attachments, a.ID)
			if a.BlobKey != "" {
				t.Blobs = append(t.Blobs, a.BlobKey)
			}
		}
	}
	return nil
}

// extractionsInPurge fit into the transaction of a purge beside everything else, two rows each. What a mail has more goes with its trash.
const extractionsInPurge = 3

// dropExtractions drops what was read out of a mail. A list shows an extraction whose mail it does not find among the deleted ones, so
// it may not stay behind.
func (s *Store) dropExtractions(ctx context.Context, b *batch, e inbox.Email, t *inbox.Trash) error {
	lo, hi := store.Prefix(inbox.Position(e.ReceivedAt, e.ID) + "/")
	page, err := store.Fill(ctx, s.engine, store.Query{
		Table: store.Core, Partition: extractionsPartition(e.Workspace, ""), From: lo, To: hi, Limit: store.MaxLimit,
	}, 4)
	if err != nil {
		return fmt.Errorf("extractions of %s: %w", e.ID, err)
	}
	for i, item := range page.Items {
		if i >= extractionsInPurge {
			t.Extractions = append(t.Extractions, item.Key.Sort)
			continue
		}
		for _, k := range extractionKeys(e.Workspace, item.Key.Sort) {
			b.drop(k, store.Condition{})
		}
	}
	return nil
}

// extractionKeys are the rows of an extraction, by its place, at whose end the slug of its template stands.
func extractionKeys(ws, sort string) []store.Key {
	slug := sort[strings.LastIndexByte(sort, '/')+1:]
	return []store.Key{key(extractionsPartition(ws, slug), sort), key(extractionsPartition(ws, ""), sort)}
}

// purgeLine writes the line of a run in the audit, with the counts so far, over that of the mail before.
func (b *batch) purgeLine(p inbox.Purge) {
	act := inbox.Act{Audit: &p.Line}
	p.Line.Reason = p.Reason()
	item, err := lineOf(act, nil, nil, []string{p.Inbox})
	if err != nil && b.err == nil {
		b.err = err
	}
	b.ops = append(b.ops, store.Put(item, store.Condition{}))
}

// uncount follows a purge in the counters, which are of what is there. Approximate, like every counter: see count. A row that is not
// there any more went with its inbox, and one that comes too late for it ends by itself.
func (s *Store) uncount(ctx context.Context, e inbox.Email) {
	names := []string{countReceived}
	switch {
	case !e.DeletedAt.IsZero():
		names = append(names, countDeleted)
	case final(e.Status):
		names = append(names, string(e.Status))
	}
	for _, name := range names {
		_, _ = s.engine.Add(ctx, countsKey(e.Inbox), name, -1, 0, s.now().Add(24*time.Hour))
	}
}

// EndTrash implements pipeline.RetentionStore.
func (s *Store) EndTrash(ctx context.Context, d inbox.Due) error {
	var keys []store.Key
	for _, id := range d.Trash.Attachments {
		keys = append(keys, attKey(d.Workspace, id))
	}
	for _, sort := range d.Trash.Extractions {
		keys = append(keys, extractionKeys(d.Workspace, sort)...)
	}
	if d.Trash.Raw != "" {
		keys = append(keys, rawKey(d.Trash.Raw))
	}
	if err := s.dropAll(ctx, keys); err != nil {
		return failed("trash "+d.ID, err)
	}
	return s.DropDue(ctx, d)
}

// dropAll drops rows, a bounded number at a time.
func (s *Store) dropAll(ctx context.Context, keys []store.Key) error {
	for chunk := range slices.Chunk(keys, pointersPerTx) {
		var b batch
		for _, k := range chunk {
			b.drop(k, store.Condition{})
		}
		if err := s.commit(ctx, &b); err != nil {
			return err
		}
	}
	return nil
}

// GiveUpIntake implements pipeline.RetentionStore. PutIntake drops the very row that this rewrites, so one of the two happens.
func (s *Store) GiveUpIntake(ctx context.Context, d inbox.Due) (inbox.Due, bool, error) {
	if d.Kind == inbox.DueImport {
		return s.giveUpImport(ctx, d)
	}
	t := *d.Trash
	t.Intake = false
	next := d
	next.Trash, next.Revision = &t, d.Revision+1
	item, err := store.Encode(keyOf(d.Place), format, next.Revision, next)
	if err != nil {
		return d, false, failed("give up "+d.ID, err)
	}
	err = s.engine.Put(ctx, item, store.RevisionIs(d.Revision))
	if errors.Is(err, store.ErrConflict) {
		return d, false, nil
	}
	return next, err == nil, wrapIf("give up "+d.ID, err)
}
