package inboxstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// finishAttempts is greater than attempts: many mails of one subject that are finished at once meet on the subject's row,
// and each round only one of them gets on.
const finishAttempts = 32

// Finish implements pipeline.Mails.
func (s *Store) Finish(ctx context.Context, p inbox.Processed, msgKey string) error {
	if !final(p.Email.Status) {
		return fmt.Errorf("inboxstore: finish %s with status %q", p.Email.ID, p.Email.Status)
	}
	p.Attachments = slices.Clone(p.Attachments)
	for i := range p.Attachments {
		p.Attachments[i] = bounded(p.Attachments[i])
	}
	if len(p.Attachments) > rowsInLast { // some may go in transactions of their own
		if over, err := s.finished(ctx, p.Email.ID); over || err != nil {
			return err
		}
	}
	for range finishAttempts {
		done, told, err := s.finishOnce(ctx, p, msgKey)
		if err == nil {
			s.told(ctx, told)
			if done.DeletedAt.IsZero() { // else its restoration counts it
				s.count(ctx, done.Inbox, string(done.Status), 1)
			}
			s.countUse(ctx, done.Workspace, string(done.Status))
			return nil
		}
		gone := apperr.Is(err, apperr.NotFound)
		if !gone && !errors.Is(err, store.ErrConflict) {
			return failed("finish "+p.Email.ID, err)
		}
		switch over, look := s.finished(ctx, p.Email.ID); {
		case look != nil:
			return look
		case over:
			return nil
		case gone:
			return failed("finish "+p.Email.ID, err)
		}
	}
	return inbox.Busy()
}

// finished reports whether a mail was brought to its end before. The transaction that ends it asks the same, so whoever writes
// nothing before that need not look first.
func (s *Store) finished(ctx context.Context, id string) (bool, error) {
	_, err := s.outbox(ctx, id)
	if apperr.Is(err, apperr.NotFound) {
		return true, nil
	}
	return false, err
}

func (s *Store) finishOnce(ctx context.Context, p inbox.Processed, msgKey string) (inbox.Email, []string, error) {
	row, revision, err := s.mail(ctx, p.Email.Workspace, p.Email.ID)
	if err != nil {
		return inbox.Email{}, nil, err
	}
	next := merge(row.Email, p)
	var b batch
	// A mail that is read again stays in its conversation.
	if next.Thread = row.Thread; next.Thread == "" {
		if next.Thread, next.Claims, err = s.thread(ctx, &b, next, p.References); err != nil {
			return inbox.Email{}, nil, fmt.Errorf("thread: %w", err)
		}
	}
	next.Claims = withMessage(next.Claims, msgKey)
	rows := chunkAttachments(next, p.Attachments)
	next = fit(next, kept(rows) < len(p.Attachments))
	b.replace(mailKey(next.Workspace, next.ID, docSort), revision, next)
	b.drop(outboxKey(next.ID), store.Exists())
	if p.Body != nil {
		b.ops = append(b.ops, store.Put(encodeBody(mailKey(next.Workspace, next.ID, bodySort), p.Body), store.Condition{}))
	}
	if _, _, err := s.claimDigests(ctx, &b, next, msgKey); err != nil {
		return inbox.Email{}, nil, fmt.Errorf("digests: %w", err)
	}
	if err := s.reindex(ctx, &b, row.Email, next, nil); err != nil {
		return inbox.Email{}, nil, fmt.Errorf("index: %w", err)
	}
	if err := s.putAttachments(ctx, &b, next, rows); err != nil {
		return inbox.Email{}, nil, err
	}
	told, err := s.emailEvents(ctx, &b, row.Email, next)
	if err != nil {
		return inbox.Email{}, nil, err
	}
	return next, told, s.commit(ctx, &b)
}

// merge lays what the pipeline learned over the mail, but for what operations set: deletion, the handled mark, a category. A rule's
// handled mark stands unless an operation came between, for it may have been the one that took the mark off.
// Labels of both stay, but for those that an operation took off meanwhile.
func merge(now inbox.Email, p inbox.Processed) inbox.Email {
	next := p.Email
	next.DeletedAt, next.Settled = now.DeletedAt, now.Settled
	if now.Version != p.Email.Version || !now.HandledAt.IsZero() || now.Settled.Handled {
		next.HandledAt, next.RuleHandled = now.HandledAt, now.RuleHandled
	}
	next.ReceivedAt, next.Organization, next.Inbox = now.ReceivedAt, now.Organization, now.Inbox
	next.PurgeAt, next.RawOwn, next.Claims = now.PurgeAt, now.RawOwn, now.Claims
	if now.OwnCategory() {
		next.Category, next.CategoryBy = now.Category, now.CategoryBy
	}
	own := slices.Clone(now.Labels)
	for _, l := range p.Email.OwnLabels() { // had before this run, and taken off meanwhile, or not
		if !slices.Contains(own, l) && !slices.Contains(now.Settled.Unlabeled, l) {
			own = append(own, l)
		}
	}
	next.SetLabels(own, p.Email.RuleLabels)
	next.Version = now.Version
	next.Attachments = max(next.Attachments, len(p.Attachments))
	return next
}

// putAttachments adds the rows of the attachments to b. What does not fit beside the rest goes in transactions before it,
// which can be repeated; nobody sees those rows as long as the mail does not say that it has attachments, or they are listed
// a moment early.
func (s *Store) putAttachments(ctx context.Context, b *batch, e inbox.Email, rows []attsRow) error {
	deleted := !e.DeletedAt.IsZero()
	early := len(rows) > rowsInLast
	for i, row := range rows {
		k := key(attsPartition(e.Workspace, e.Inbox, deleted), attsSort(e, i))
		if !early {
			b.set(k, row)
			continue
		}
		var own batch
		own.set(k, row)
		// A run before this one may have put it on the other side of a deletion.
		own.drop(key(attsPartition(e.Workspace, e.Inbox, !deleted), k.Sort), store.Condition{})
		if err := s.commit(ctx, &own); err != nil {
			return fmt.Errorf("attachment rows: %w", err)
		}
	}
	var all []inbox.Attachment
	for _, row := range rows {
		all = append(all, row.Attachments...)
	}
	if len(all) <= pointersInLast {
		b.attachments(e.Workspace, all)
		return nil
	}
	for chunk := range slices.Chunk(all, pointersPerTx) {
		var own batch
		own.attachments(e.Workspace, chunk)
		if err := s.commit(ctx, &own); err != nil {
			return fmt.Errorf("attachments by id: %w", err)
		}
	}
	return nil
}

func (b *batch) attachments(ws string, list []inbox.Attachment) {
	for _, a := range list {
		b.set(attKey(ws, a.ID), a)
	}
}
