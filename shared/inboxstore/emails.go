package inboxstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// Sort keys of a mail's own partition.
const (
	docSort   = "doc"
	bodySort  = "body"
	countSort = "counts"
)

// Emails implements inbox.EmailStore.
func (s *Store) Emails(ctx context.Context, r inbox.EmailRange) (rows []*inbox.Row, next string, err error) {
	q := store.Query{Table: store.Core, From: r.From, To: r.To, Descending: !r.Ascending, After: r.After, Limit: r.Limit}
	partitions := listPartitions(r)
	rows = make([]*inbox.Row, 0, min(r.Limit, usualPage))
	add := func(item *store.Item) error {
		row, err := s.rows.of(item)
		rows = append(rows, row)
		return err
	}
	if len(partitions) == 1 {
		q.Partition, q.Each = partitions[0], add
		page, err := s.engine.Query(ctx, q)
		if err != nil {
			return nil, "", failed("emails", err)
		}
		return rows, page.Next, nil
	}
	items, next, err := s.merged(ctx, partitions, q)
	for i := 0; i < len(items) && err == nil; i++ {
		err = add(&items[i])
	}
	if err != nil {
		return nil, "", failed("emails", err)
	}
	return rows, next, nil
}

// usualPage is how many rows of a page need no second allocation. Most pages of a large limit are short.
const usualPage = 32

// mailRow is an Email, or what is left of one that was an exact duplicate: its place stays taken for a while, so that a
// fan-out that is repeated does not bring it back.
type mailRow struct {
	inbox.Email
	DuplicateOf string `json:"duplicate_of,omitempty"`
}

// Email implements inbox.EmailStore: one read, with the body too.
func (s *Store) Email(ctx context.Context, ws, id string, body bool) (inbox.Email, *inbox.Body, error) {
	if !body {
		row, _, err := s.mail(ctx, ws, id)
		return row.Email, nil, err
	}
	doc := mailKey(ws, id, docSort)
	page, err := s.engine.Query(ctx, store.Query{
		Table: store.Core, Partition: doc.Partition, From: bodySort, To: docSort + "\x01", Limit: 10,
	})
	if err != nil {
		return inbox.Email{}, nil, failed("email "+id, err)
	}
	var e *inbox.Email
	var b *inbox.Body
	for _, item := range page.Items {
		switch item.Key.Sort {
		case docSort:
			row, err := store.Decode[mailRow](item, format)
			if err != nil {
				return inbox.Email{}, nil, failed("email "+id, err)
			}
			if row.DuplicateOf == "" {
				e = &row.Email
			}
		case bodySort:
			if b, err = decodeBody(item); err != nil {
				return inbox.Email{}, nil, failed("body of "+id, err)
			}
		}
	}
	if e == nil {
		return inbox.Email{}, nil, inbox.NoEmail()
	}
	return *e, b, nil
}

// mail reads the row of a mail; a tombstone is not found.
func (s *Store) mail(ctx context.Context, ws, id string) (mailRow, uint64, error) {
	row, revision, err := get[mailRow](ctx, s, mailKey(ws, id, docSort))
	if err != nil {
		return mailRow{}, 0, missing("email "+id, err, inbox.NoEmail())
	}
	if row.DuplicateOf != "" {
		return mailRow{}, 0, inbox.NoEmail()
	}
	return row, revision, nil
}

// UpdateEmail implements inbox.EmailStore.
func (s *Store) UpdateEmail(
	ctx context.Context, ws, id string, act inbox.Act, change func(*inbox.Email) error,
) (inbox.Email, error) {
	return s.updateEmail(ctx, ws, id, nil, act, change)
}

// updateEmail tries as often as Finish: changes to the mail of one thread meet on the thread's row.
func (s *Store) updateEmail(
	ctx context.Context, ws, id string, use *inbox.LeaseUse, act inbox.Act, change func(*inbox.Email) error,
) (inbox.Email, error) {
	for range finishAttempts {
		row, revision, err := s.mail(ctx, ws, id)
		if err != nil {
			return inbox.Email{}, err
		}
		if err := s.unused(ctx, act); err != nil {
			return inbox.Email{}, err
		}
		next := row.Email
		if err := change(&next); err != nil {
			return inbox.Email{}, err
		}
		same, err := equal(row.Email, next)
		if err != nil {
			return inbox.Email{}, err
		}
		if err := s.stamp(ctx, row.Email, &next); err != nil {
			return inbox.Email{}, err
		}
		var told []string
		if same {
			err = s.useLease(ctx, row.Email, revision, use, act)
		} else {
			told, err = s.replaceMail(ctx, row.Email, next, revision, use, act)
		}
		if err == nil {
			s.told(ctx, told)
			s.countMove(ctx, row.Email, next)
			return next, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return inbox.Email{}, failed("update email "+id, err)
		}
	}
	return inbox.Email{}, inbox.Busy()
}

func equal(a, b any) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("encode a row: %w", err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		return false, fmt.Errorf("encode a row: %w", err)
	}
	return bytes.Equal(x, y), nil
}

// replaceMail writes the mail with its index rows and events, whose ids it returns, and takes its attachment rows along when it is
// deleted or restored.
func (s *Store) replaceMail(
	ctx context.Context, old, next inbox.Email, revision uint64, use *inbox.LeaseUse, act inbox.Act,
) ([]string, error) {
	var b batch
	b.replace(mailKey(next.Workspace, next.ID, docSort), revision, next)
	if err := s.reindex(ctx, &b, old, next, use); err != nil {
		return nil, err
	}
	if old.DeletedAt.IsZero() != next.DeletedAt.IsZero() && next.Attachments > 0 {
		if err := s.moveAttachments(ctx, &b, old, next); err != nil {
			return nil, err
		}
	}
	if old.DeletedAt.IsZero() && !next.DeletedAt.IsZero() {
		b.due(dueEmail(next))
	}
	told, err := s.emailEvents(ctx, &b, old, next)
	if err != nil {
		return nil, err
	}
	b.act(act, next.ID, ownFields(old), ownFields(next))
	return told, s.commit(ctx, &b)
}

// reindex moves a mail from the lists of its old state to those of its new one, and its thread and its place in the work along.
// Every write of a mail that had been processed, or now is, goes through here.
func (s *Store) reindex(ctx context.Context, b *batch, old, next inbox.Email, use *inbox.LeaseUse) error {
	keep := map[store.Key]bool{}
	summary := inbox.Summarize(next)
	for _, k := range indexKeys(next) {
		keep[k] = true
		b.index(k, summary)
	}
	for _, k := range indexKeys(old) {
		if !keep[k] {
			b.drop(k, store.Condition{})
		}
	}
	if err := s.moveWork(ctx, b, old, next, summary, use); err != nil {
		return err
	}
	return s.moveThread(ctx, b, old, next)
}

// unindex is reindex of a mail that is purged: it leaves every list, its thread, and the work with its lease.
func (s *Store) unindex(ctx context.Context, b *batch, e inbox.Email) error {
	for _, k := range indexKeys(e) {
		b.drop(k, store.Condition{})
	}
	if !waits(e) { // what is left of one
		b.drop(mailKey(e.Workspace, e.ID, leaseSort), store.Condition{})
	}
	gone := e
	if gone.DeletedAt.IsZero() {
		gone.DeletedAt = s.now()
	}
	if err := s.moveWork(ctx, b, e, gone, inbox.Summarize(gone), nil); err != nil {
		return err
	}
	return s.moveThread(ctx, b, e, gone)
}

// index writes a mail's row in one of its lists.
func (b *batch) index(k store.Key, s inbox.Summary) {
	b.ops = append(b.ops, store.Put(encodeSummary(k, s), store.Condition{}))
}

// countMove follows a deletion, a restoration or a release in the counters.
func (s *Store) countMove(ctx context.Context, old, next inbox.Email) {
	before, after := !old.DeletedAt.IsZero(), !next.DeletedAt.IsZero()
	if !before && !after && old.Status != next.Status {
		s.count(ctx, next.Inbox, string(old.Status), -1)
		s.count(ctx, next.Inbox, string(next.Status), 1)
	}
	if before == after {
		return
	}
	delta := int64(1)
	if before {
		delta = -1
	}
	s.count(ctx, next.Inbox, countDeleted, delta)
	if final(next.Status) {
		s.count(ctx, next.Inbox, string(next.Status), -delta)
	}
}

func final(s inbox.Status) bool {
	return s == inbox.StatusProcessed || s == inbox.StatusFailed || s == inbox.StatusQuarantined
}
