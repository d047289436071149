// Package inboxstore keeps the inbox in rows of store.Engine: its keys, its index rows and the transactions that change them
// together. ACCESS.md beside this file says who reads what by which key at what cost. It implements what the services of
// inbox and the pipeline ask of storage, and it knows no engine, no transport and no rule about what is allowed.
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

// format is the version that every row of this package is written with, and the newest that it reads. Version 1: JSON of the
// types of package inbox and of the small records here, but for index rows (codec.go) and bodies (body.go); fields are only
// added.
const format = 1

// attempts bounds an optimistic write: whoever loses that often is told to come again.
const attempts = 8

// Store is the inbox on an engine. It holds no state of its own but what rows that it reads were decoded to before, so any number
// of instances may work on one engine.
type Store struct {
	engine store.Engine
	now    func() time.Time

	rows       *rowCache[inbox.Row]
	inboxes    *rowCache[inbox.Inbox]
	workspaces *rowCache[inbox.Workspace]
	announce   func(ctx context.Context, ids []string) // nil: nobody is told
}

var (
	_ inbox.APIKeyStore       = (*Store)(nil)
	_ inbox.AttachmentStore   = (*Store)(nil)
	_ inbox.AuditStore        = (*Store)(nil)
	_ inbox.CountStore        = (*Store)(nil)
	_ inbox.DeliveryStore     = (*Store)(nil)
	_ inbox.DomainStore       = (*Store)(nil)
	_ inbox.EmailStore        = (*Store)(nil)
	_ inbox.ExtractionStore   = (*Store)(nil)
	_ inbox.InboxStore        = (*Store)(nil)
	_ inbox.JobStore          = (*Store)(nil)
	_ inbox.KeyStore          = (*Store)(nil)
	_ inbox.MemberStore       = (*Store)(nil)
	_ inbox.OrganizationStore = (*Store)(nil)
	_ inbox.PeopleStore       = (*Store)(nil)
	_ inbox.RuleStore         = (*Store)(nil)
	_ inbox.SenderStore       = (*Store)(nil)
	_ inbox.TemplateStore     = (*Store)(nil)
	_ inbox.ThreadStore       = (*Store)(nil)
	_ inbox.UploadStore       = (*Store)(nil)
	_ inbox.UsageStore        = (*Store)(nil)
	_ inbox.WaitStore         = (*Store)(nil)
	_ inbox.WebhookStore      = (*Store)(nil)
	_ inbox.WorkStore         = (*Store)(nil)
)

// New makes a Store. now stamps what no caller dates: tombstones and domains.
func New(engine store.Engine, now func() time.Time) (*Store, error) {
	if engine == nil || now == nil {
		return nil, errors.New("inboxstore: engine and clock are needed")
	}
	return &Store{
		engine: engine, now: now,
		rows: newRowCache(decodeRow), inboxes: newRowCache(decodeJSON[inbox.Inbox]), workspaces: newRowCache(decodeJSON[inbox.Workspace]),
	}, nil
}

// get reads and decodes one row; its revision is what the next write must name. store.ErrNotFound stays visible.
func get[T any](ctx context.Context, s *Store, key store.Key) (T, uint64, error) {
	item, err := s.engine.Get(ctx, key)
	if err != nil {
		var zero T
		return zero, 0, err //nolint:wrapcheck // callers name the step and look for store.ErrNotFound
	}
	v, err := store.Decode[T](item, format)
	return v, item.Revision, err //nolint:wrapcheck // the same
}

// find is get where absence is an answer and not an error.
func find[T any](ctx context.Context, s *Store, key store.Key) (v T, revision uint64, ok bool, err error) {
	v, revision, err = get[T](ctx, s, key)
	if errors.Is(err, store.ErrNotFound) {
		return v, 0, false, nil
	}
	return v, revision, err == nil, err
}

// batch collects the ops of one transaction; the first row that can't be encoded spoils it.
type batch struct {
	ops []store.Op
	err error
}

func (b *batch) put(key store.Key, revision uint64, v any, cond store.Condition) {
	item, err := store.Encode(key, format, revision, v)
	if err != nil && b.err == nil {
		b.err = err
	}
	b.ops = append(b.ops, store.Put(item, cond))
}

func (b *batch) create(key store.Key, v any) { b.put(key, 1, v, store.Absent()) }

func (b *batch) set(key store.Key, v any) { b.put(key, 1, v, store.Condition{}) }

// replace writes over the row that was read with this revision.
func (b *batch) replace(key store.Key, read uint64, v any) {
	b.put(key, read+1, v, store.RevisionIs(read))
}

// upsert creates the row when read is 0 and replaces it otherwise.
func (b *batch) upsert(key store.Key, read uint64, v any) {
	if read == 0 {
		b.create(key, v)
		return
	}
	b.replace(key, read, v)
}

// forgetful is upsert of a row that expires.
func (b *batch) forgetful(key store.Key, read uint64, v any, until time.Time) {
	cond := store.Absent()
	if read > 0 {
		cond = store.RevisionIs(read)
	}
	b.expiring(key, read+1, v, cond, until)
}

func (b *batch) drop(key store.Key, cond store.Condition) {
	b.ops = append(b.ops, store.Delete(key, cond))
}

func (b *batch) check(key store.Key, cond store.Condition) {
	b.ops = append(b.ops, store.Check(key, cond))
}

func (s *Store) commit(ctx context.Context, b *batch) error {
	if b.err != nil {
		return b.err
	}
	return s.engine.Transact(ctx, b.ops...) //nolint:wrapcheck // callers name the step and look for conflicts
}

// insert writes what follows from no row that is there, unless what the act brings was used before.
func (s *Store) insert(ctx context.Context, step string, act inbox.Act, fill func(*batch)) error {
	for range attempts {
		if err := s.unused(ctx, act); err != nil {
			return err
		}
		var b batch
		fill(&b)
		err := s.commit(ctx, &b)
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return failed(step, err)
		}
	}
	return inbox.Busy()
}

// conflictAt is the index of the op that refused a transaction; -1 when err is something else.
func conflictAt(err error) int {
	if c, ok := errors.AsType[*store.ConflictError](err); ok {
		return c.Index
	}
	return -1
}

// failed names the step, tells a caller of an engine that can't serve now to come again, and a worker of a row that no
// engine will ever take not to. An engine that has words of its own for the caller keeps them.
func failed(step string, err error) error {
	if _, ok := errors.AsType[*apperr.Error](err); ok {
		return fmt.Errorf("%s: %w", step, err)
	}
	if errors.Is(err, store.ErrTooLarge) {
		return apperr.New(apperr.TooLarge, "", "This is too large to be stored.", "Send shorter texts or fewer entries.").Because(fmt.Errorf("%s: %w", step, err))
	}
	if errors.Is(err, store.ErrUnavailable) {
		e := apperr.New(apperr.Unavailable, "", "Storage can't be reached at the moment.", "Repeat the call in a moment.")
		e.RetryAfter = time.Second
		return e.Because(fmt.Errorf("%s: %w", step, err))
	}
	return fmt.Errorf("%s: %w", step, err)
}

// missing turns an absent row into the domain's answer.
func missing(step string, err error, as *apperr.Error) error {
	if errors.Is(err, store.ErrNotFound) {
		return as
	}
	return failed(step, err)
}
