package inboxstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// remake makes of a mail, and of what was extracted from it, what they are to be.
type remake = func(now inbox.Email, was []inbox.Extraction) (inbox.Remade, error)

// Reprocess implements pipeline.Reprocessing. Mail, index rows, body, attachments, extractions and the job's end are one transaction; the
// attachments by id, which nobody sees without the mail's list, come before it.
func (s *Store) Reprocess(ctx context.Context, held inbox.Job, r inbox.Reread, merge remake) error {
	r.Attachments = slices.Clone(r.Attachments)
	for i := range r.Attachments {
		r.Attachments[i] = bounded(r.Attachments[i])
	}
	for range finishAttempts {
		job, read, err := s.job(ctx, held.Workspace, held.ID)
		if apperr.Is(err, apperr.NotFound) {
			return inbox.ErrJobLost
		}
		if err != nil {
			return err
		}
		if err := job.HeldBy(held.Lease); err != nil {
			return err
		}
		old, next, err := s.reprocessOnce(ctx, job, read, r, merge)
		if err == nil {
			s.countMove(ctx, old, next)
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return failed("reprocess "+held.Target, err)
		}
	}
	return inbox.Busy()
}

func (s *Store) reprocessOnce(ctx context.Context, job inbox.Job, read uint64, r inbox.Reread, merge remake) (old, next inbox.Email, err error) {
	row, revision, err := s.mail(ctx, job.Workspace, job.Target)
	if err != nil {
		return old, next, err
	}
	old = row.Email
	was, revisions, err := s.extracted(ctx, r.Extractions)
	if err != nil {
		return old, next, err
	}
	made, err := merge(old, was)
	if err != nil {
		return old, next, err
	}
	next = made.Email
	var b batch
	if r.Content {
		if next, err = s.rereadOps(ctx, &b, old, next, r.Processed, r.MessageKey); err != nil {
			return old, next, err
		}
	}
	b.replace(mailKey(next.Workspace, next.ID, docSort), revision, next)
	for _, e := range made.Extractions {
		b.upsert(key(extractionsPartition(e.Workspace, ""), e.Key()), revisions[e.Template], e)
		b.set(key(extractionsPartition(e.Workspace, e.Template), e.Key()), e)
	}
	if err := s.reindex(ctx, &b, old, next, nil); err != nil {
		return old, next, fmt.Errorf("index: %w", err)
	}
	encoded, err := json.Marshal(made.Result)
	if err != nil {
		return old, next, fmt.Errorf("result of %s: %w", job.ID, err)
	}
	job.Finish(inbox.JobSucceeded, s.now().UTC().Truncate(time.Millisecond))
	job.Result, job.Progress = encoded, inbox.JobProgress{Done: 1, Total: 1}
	b.changeJob(job, read)
	return old, next, s.commit(ctx, &b)
}

// extracted reads what each of some extractions would lie over, and the revisions by template.
func (s *Store) extracted(ctx context.Context, list []inbox.Extraction) ([]inbox.Extraction, map[string]uint64, error) {
	was, revisions := make([]inbox.Extraction, 0, len(list)), make(map[string]uint64, len(list))
	for _, e := range list {
		old, revision, _, err := find[inbox.Extraction](ctx, s, key(extractionsPartition(e.Workspace, ""), e.Key()))
		if err != nil {
			return nil, nil, fmt.Errorf("extraction %s: %w", e.ID, err)
		}
		was, revisions[e.Template] = append(was, old), revision
	}
	return was, revisions, nil
}

// rereadOps writes what the new reading found beside the mail's row. The mail stays in its conversation; one that could not be read
// before takes the digests of its message.
func (s *Store) rereadOps(ctx context.Context, b *batch, old, next inbox.Email, p inbox.Processed, msgKey string) (inbox.Email, error) {
	var err error
	if next.Thread == "" {
		if next.Thread, next.Claims, err = s.thread(ctx, b, next, p.References); err != nil {
			return next, fmt.Errorf("thread: %w", err)
		}
	}
	if old.Status == inbox.StatusFailed {
		if _, _, err := s.claimDigests(ctx, b, next, msgKey); err != nil {
			return next, fmt.Errorf("digests: %w", err)
		}
		next.Claims = withMessage(next.Claims, msgKey)
	}
	rows := chunkAttachments(next, p.Attachments)
	next = fit(next, kept(rows) < len(p.Attachments))
	body := mailKey(next.Workspace, next.ID, bodySort)
	if p.Body != nil {
		b.ops = append(b.ops, store.Put(encodeBody(body, p.Body), store.Condition{}))
	} else {
		b.drop(body, store.Condition{})
	}
	return next, s.replaceAttachments(ctx, b, next, rows)
}

// replaceAttachments writes the rows of the new list over those of the old one, and drops what is left of that.
func (s *Store) replaceAttachments(ctx context.Context, b *batch, e inbox.Email, rows []attsRow) error {
	partition := attsPartition(e.Workspace, e.Inbox, false)
	stale := map[store.Key]bool{}
	lo, hi := store.Prefix(inbox.Position(e.ReceivedAt, e.ID) + "/")
	page, err := store.Fill(ctx, s.engine, store.Query{Table: store.Core, Partition: partition, From: lo, To: hi, Limit: 2 * maxAttRows}, 4)
	if err != nil {
		return fmt.Errorf("attachments of %s: %w", e.ID, err)
	}
	for _, item := range page.Items {
		stale[item.Key] = true
	}
	var all []inbox.Attachment
	for i, row := range rows {
		k := key(partition, attsSort(e, i))
		delete(stale, k)
		all = append(all, row.Attachments...)
		if len(rows) <= rowsInLast {
			b.set(k, row)
			continue
		}
		// As many as do not fit are written before: until the mail's row follows, the list is a moment ahead of it.
		var own batch
		own.set(k, row)
		if err := s.commit(ctx, &own); err != nil {
			return fmt.Errorf("attachment rows: %w", err)
		}
	}
	for chunk := range slices.Chunk(all, pointersPerTx) {
		var own batch
		own.attachments(e.Workspace, chunk)
		if err := s.commit(ctx, &own); err != nil {
			return fmt.Errorf("attachments by id: %w", err)
		}
	}
	for k := range stale {
		b.drop(k, store.Condition{})
	}
	return nil
}
