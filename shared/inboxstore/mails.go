package inboxstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// tombstoneTTL outlives every redelivery of an intake whose fan-out was interrupted.
const tombstoneTTL = 30 * 24 * time.Hour

// How Duplicate found a mail.
const (
	sameRaw     = "raw"
	sameMessage = "message"
)

// ClaimMail implements pipeline.Mails.
func (s *Store) ClaimMail(ctx context.Context, id string) (inbox.Email, error) {
	for range attempts {
		place, err := s.outbox(ctx, id)
		if err != nil {
			return inbox.Email{}, err
		}
		row, revision, err := s.mail(ctx, place.Workspace, id)
		if err != nil {
			return inbox.Email{}, err
		}
		if row.Status != inbox.StatusReceived {
			return row.Email, nil
		}
		next := row.Email
		next.Status = inbox.StatusProcessing
		var b batch
		b.replace(mailKey(next.Workspace, id, docSort), revision, next)
		b.check(outboxKey(id), store.Exists())
		if err := s.reindex(ctx, &b, row.Email, next, nil); err != nil {
			return inbox.Email{}, failed("claim "+id, err)
		}
		err = s.commit(ctx, &b)
		if err == nil {
			return next, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return inbox.Email{}, failed("claim "+id, err)
		}
	}
	return inbox.Email{}, inbox.Busy()
}

type claimRow struct {
	Email string `json:"email"`
}

// Duplicate implements pipeline.Mails. A mail that finds its digests free takes them in the same transaction: of two equal
// mails that are processed at once exactly one is the first, and the other one's Duplicate says so.
func (s *Store) Duplicate(ctx context.Context, of inbox.Email, msgKey string) (id, how string, err error) {
	for range attempts {
		var b batch
		id, how, err = s.claimDigests(ctx, &b, of, msgKey)
		if err != nil {
			return "", "", failed("digests of "+of.ID, err)
		}
		if len(b.ops) > 0 {
			if err = s.commit(ctx, &b); errors.Is(err, store.ErrConflict) {
				continue
			}
			if err != nil {
				return "", "", failed("claim the digests of "+of.ID, err)
			}
		}
		if id != "" {
			return id, how, nil
		}
		return "", "", apperr.New(apperr.NotFound, "", "There is no earlier mail like this one.")
	}
	return "", "", inbox.Busy()
}

// claimDigests looks at both digests and adds to b what takes the free ones. Raw bytes win over the message's key.
func (s *Store) claimDigests(
	ctx context.Context, b *batch, of inbox.Email, msgKey string,
) (id, how string, err error) {
	type digest struct{ sort, how string }
	var digests []digest
	if of.RawSHA256 != "" { // without this, all mails without a digest would be one
		digests = append(digests, digest{"raw/" + of.RawSHA256, sameRaw})
	}
	if msgKey != "" {
		digests = append(digests, digest{"key/" + msgKey, sameMessage})
	}
	for _, d := range digests {
		k := dupKey(of.Workspace, of.Inbox, d.sort)
		row, _, ok, err := find[claimRow](ctx, s, k)
		switch {
		case err != nil:
			return "", "", err
		case !ok:
			b.create(k, claimRow{of.ID})
		case row.Email != of.ID && id == "":
			id, how = row.Email, d.how
		}
		if how == sameRaw {
			return id, how, nil // an exact duplicate takes nothing
		}
	}
	return id, how, nil
}

// Discard implements pipeline.Mails. The mail's row becomes a tombstone that expires.
func (s *Store) Discard(ctx context.Context, id, duplicateOf string) error {
	if id == duplicateOf {
		return fmt.Errorf("inboxstore: discard %s as a duplicate of itself", id)
	}
	for range attempts {
		place, err := s.outbox(ctx, id)
		if apperr.Is(err, apperr.NotFound) {
			return nil // done before, or finished by another worker
		}
		if err != nil {
			return err
		}
		row, revision, err := s.mail(ctx, place.Workspace, id)
		if err != nil {
			return err
		}
		b, err := s.discardOps(ctx, row.Email, revision, duplicateOf)
		if err != nil {
			return failed("discard "+id, err)
		}
		err = s.commit(ctx, b)
		if err == nil {
			s.count(ctx, row.Inbox, countReceived, -1)
			// Approximate, like every counter: see count.
			_, _ = s.engine.Add(ctx, mailKey(row.Workspace, duplicateOf, countSort), "duplicates", 1, 0, time.Time{})
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return failed("discard "+id, err)
		}
	}
	return inbox.Busy()
}

func (s *Store) discardOps(ctx context.Context, e inbox.Email, revision uint64, duplicateOf string) (*batch, error) {
	doc := mailKey(e.Workspace, e.ID, docSort)
	item, err := store.Encode(doc, format, revision+1, mailRow{DuplicateOf: duplicateOf})
	if err != nil {
		return nil, fmt.Errorf("tombstone: %w", err)
	}
	item.Expires = s.now().Add(tombstoneTTL)
	var b batch
	b.ops = append(b.ops, store.Put(item, store.RevisionIs(revision)))
	b.drop(outboxKey(e.ID), store.Exists())
	for _, k := range indexKeys(e) {
		b.drop(k, store.Condition{})
	}
	// A mail that was found by its message's key had taken its raw bytes: they now lead to the mail that is kept.
	raw := dupKey(e.Workspace, e.Inbox, "raw/"+e.RawSHA256)
	claim, claimed, ok, err := find[claimRow](ctx, s, raw)
	if err != nil {
		return nil, err
	}
	if ok && claim.Email == e.ID {
		b.replace(raw, claimed, claimRow{duplicateOf})
	}
	return &b, nil
}
