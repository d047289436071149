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

// Finish implements pipeline.Mails.
func (s *Store) Finish(ctx context.Context, p inbox.Processed, msgKey string) error {
	if !final(p.Email.Status) {
		return fmt.Errorf("inboxstore: finish %s with status %q", p.Email.ID, p.Email.Status)
	}
	for i := range p.Attachments {
		p.Attachments[i] = bounded(p.Attachments[i])
	}
	for range attempts {
		if _, err := s.outbox(ctx, p.Email.ID); err != nil {
			if apperr.Is(err, apperr.NotFound) {
				return nil // finished before
			}
			return err
		}
		err := s.finishOnce(ctx, p, msgKey)
		if err == nil {
			s.count(ctx, p.Email.Inbox, string(p.Email.Status), 1)
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return failed("finish "+p.Email.ID, err)
		}
	}
	return inbox.Busy()
}

func (s *Store) finishOnce(ctx context.Context, p inbox.Processed, msgKey string) error {
	row, revision, err := s.mail(ctx, p.Email.Workspace, p.Email.ID)
	if err != nil {
		return err
	}
	next := merge(row.Email, p)
	var b batch
	if next.Thread, err = s.thread(ctx, &b, next, p.References); err != nil {
		return fmt.Errorf("thread: %w", err)
	}
	next = fit(next)
	b.replace(mailKey(next.Workspace, next.ID, docSort), revision, next)
	b.drop(outboxKey(next.ID), store.Exists())
	if p.Body != nil {
		b.set(mailKey(next.Workspace, next.ID, bodySort), p.Body)
	}
	if _, _, err := s.claimDigests(ctx, &b, next, msgKey); err != nil {
		return fmt.Errorf("digests: %w", err)
	}
	b.reindex(row.Email, next)
	if err := s.putAttachments(ctx, &b, next, p.Attachments); err != nil {
		return err
	}
	return s.commit(ctx, &b)
}

// merge lays what the pipeline learned over the mail, but for what operations set: deletion, the handled mark, a category.
// Labels of both stay when an operation came between, for it may have set the very labels that are there.
func merge(now inbox.Email, p inbox.Processed) inbox.Email {
	next := p.Email
	next.HandledAt, next.DeletedAt = now.HandledAt, now.DeletedAt
	next.ReceivedAt, next.Organization, next.Inbox = now.ReceivedAt, now.Organization, now.Inbox
	if now.Category != "" {
		next.Category = now.Category
	}
	if now.Version != p.Email.Version {
		next.Labels = append(slices.Clone(now.Labels), p.Email.Labels...)
		slices.Sort(next.Labels)
		next.Labels = slices.Compact(next.Labels)
	}
	next.Version = now.Version
	next.Attachments = max(next.Attachments, len(p.Attachments))
	return next
}

// putAttachments adds the rows of the attachments to b. What does not fit beside the rest goes in transactions before it,
// which can be repeated; nobody sees those rows as long as the mail does not say that it has attachments, or they are listed
// a moment early.
func (s *Store) putAttachments(ctx context.Context, b *batch, e inbox.Email, all []inbox.Attachment) error {
	deleted := !e.DeletedAt.IsZero()
	rows := chunkAttachments(e, all)
	early := len(rows) > rowsInLast
	for i, row := range rows {
		k := key(attsPartition(e.Workspace, e.Inbox, deleted), attsSort(e.ID, i))
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
	var kept []inbox.Attachment
	for _, row := range rows {
		kept = append(kept, row.Attachments...)
	}
	if len(kept) <= pointersInLast {
		b.attachments(e.Workspace, kept)
		return nil
	}
	for chunk := range slices.Chunk(kept, pointersPerTx) {
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

// Bounds of a mail's row; the raw mail has everything.
const (
	fitAddresses = 100
	fitLinks     = 200
	fitURL       = 2048
	fitText      = 1000
	fitList      = 100
)

// fit cuts what a sender can make long, so that the row stays far below the engine's bound, and says so in a warning.
func fit(e inbox.Email) inbox.Email {
	cut := false
	text := func(s *string, n int) {
		if len(*s) > n {
			*s, cut = cutBytes(*s, n), true
		}
	}
	list := func(a []inbox.Address) []inbox.Address {
		if len(a) > fitAddresses {
			a, cut = a[:fitAddresses], true
		}
		a = slices.Clone(a)
		for i := range a {
			text(&a[i].Name, 200)
			text(&a[i].Address, 320)
		}
		return a
	}
	c := &e.Content
	text(&c.Subject, fitText)
	text(&c.MessageID, fitText)
	text(&c.Snippet, fitText)
	c.From, c.ReplyTo, c.To, c.CC = list(c.From), list(c.ReplyTo), list(c.To), list(c.CC)
	if len(e.Links) > fitLinks {
		e.Links, cut = e.Links[:fitLinks], true
	}
	links := make([]inbox.Link, 0, len(e.Links))
	for _, l := range e.Links {
		if len(l.URL) > fitURL { // half a link is worse than none
			cut = true
			continue
		}
		text(&l.Text, 300)
		links = append(links, l)
	}
	e.Links = links
	if len(e.Warnings) > fitList {
		e.Warnings, cut = e.Warnings[:fitList], true
	}
	if cut {
		e.Warnings = append(slices.Clone(e.Warnings), inbox.Warning{
			Code: "row_cut", Detail: "Long names, addresses or links were cut; the raw mail has them.",
		})
	}
	return e
}
