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

// mailsPerTx recipients are fanned out in one transaction: six rows each, and an event; beside them goes the intake's row.
const mailsPerTx = 7

// outboxRow is what is left to do: an accepted mail to fan out, a received one to process, or an event to give out.
type outboxRow struct {
	Intake *inbox.Intake `json:"intake,omitempty"`
	// Where the mail lies, for a row under a mail's id.
	Workspace string `json:"workspace,omitempty"`
	Inbox     string `json:"inbox,omitempty"`
	// Event is one to give out, under its own id.
	Event *inbox.Event `json:"event,omitempty"`
}

func noOutbox() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "Nothing is waiting under this id.")
}

// PutIntake implements pipeline.Outbox. Repeating it is fine.
func (s *Store) PutIntake(ctx context.Context, in inbox.Intake) error {
	if in.Announced && in.Imported {
		return s.putImport(ctx, in)
	}
	item, err := store.Encode(outboxKey(in.ID), format, 1, outboxRow{Intake: &in})
	if err != nil {
		return failed("intake "+in.ID, err)
	}
	if in.Announced {
		err = s.engine.Transact(ctx, store.Put(item, store.Absent()), store.Delete(purgeKey(dueIntake(in)), store.RevisionIs(1)))
		if conflictAt(err) == 1 {
			return tooLate().Because(err)
		}
	} else {
		err = s.engine.Put(ctx, item, store.Absent())
	}
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return failed("intake "+in.ID, err)
	}
	return nil
}

// Intake implements pipeline.Outbox.
func (s *Store) Intake(ctx context.Context, id string) (inbox.Intake, error) {
	row, err := s.outbox(ctx, id)
	if err != nil {
		return inbox.Intake{}, err
	}
	if row.Intake == nil {
		return inbox.Intake{}, noOutbox()
	}
	return *row.Intake, nil
}

func (s *Store) outbox(ctx context.Context, id string) (outboxRow, error) {
	row, _, err := get[outboxRow](ctx, s, outboxKey(id))
	if err != nil {
		return outboxRow{}, missing("outbox row "+id, err, noOutbox())
	}
	return row, nil
}

// FanOut implements pipeline.Outbox. The intake's row goes in the transaction of the last mails.
func (s *Store) FanOut(ctx context.Context, in inbox.Intake, mails []inbox.Email) error {
	for first := 0; ; first += mailsPerTx {
		end := min(first+mailsPerTx, len(mails))
		var after batch
		if end == len(mails) {
			after.drop(outboxKey(in.ID), store.Condition{})
		}
		made, told, err := s.putReceived(ctx, mails[first:end], after)
		if err != nil {
			return failed("fan out "+in.ID, err)
		}
		for _, e := range made {
			s.count(ctx, e.Inbox, countReceived, 1)
		}
		s.told(ctx, told)
		if end == len(mails) {
			return nil
		}
	}
}

// putReceived stores the mails that are not there yet, and in the same transaction what is in after, which has no conditions. A
// mail's own row is first among its ops, so a conflict says which one is there already, whatever became of it since.
func (s *Store) putReceived(ctx context.Context, mails []inbox.Email, after batch) (made []inbox.Email, told []string, err error) {
	mails = slices.Clone(mails)
	for len(mails) > 0 || len(after.ops) > 0 {
		var b batch
		owner := []int{}
		for i, e := range mails {
			e.Version = max(e.Version, 1)
			b.create(mailKey(e.Workspace, e.ID, docSort), e)
			b.set(outboxKey(e.ID), outboxRow{Workspace: e.Workspace, Inbox: e.Inbox})
			summary := inbox.Summarize(e)
			for _, k := range indexKeys(e) {
				b.index(k, summary)
			}
			e.Status = inbox.StatusReceived // whoever is told of it: it has just come
			ids, err := s.emailEvents(ctx, &b, inbox.Email{}, e)
			if err != nil {
				return nil, nil, err
			}
			told = append(told, ids...)
			for len(owner) < len(b.ops) {
				owner = append(owner, i)
			}
		}
		b.ops = append(b.ops, after.ops...)
		err := s.commit(ctx, &b)
		if err == nil {
			return mails, told, nil
		}
		at := conflictAt(err)
		if at < 0 || at >= len(owner) {
			return nil, nil, fmt.Errorf("store %d received mails: %w", len(mails), err)
		}
		mails, told = slices.Delete(mails, owner[at], owner[at]+1), nil
	}
	return nil, nil, nil
}

// Pending implements pipeline.Outbox. A row's age is that of its id.
func (s *Store) Pending(ctx context.Context, before time.Time, limit int) ([]string, error) {
	items, err := s.earliest(ctx, outboxPartition, strings.TrimPrefix(inbox.IDFloor("x", before), "x_"), limit)
	if err != nil {
		return nil, failed("pending", err)
	}
	ids := make([]string, 0, len(items))
	for _, item := range items {
		ids = append(ids, outboxID(item.Key.Sort))
	}
	return ids, nil
}
