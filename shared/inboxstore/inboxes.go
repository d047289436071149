package inboxstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// MaxHidden is how many deleted inboxes one workspace keeps: the row that names them is read by every workspace list.
const MaxHidden = 1000

// addressRow guards an address. It is never removed: an address is never handed to another organization, so mail for the
// one can't reach the other.
type addressRow struct {
	inbox.Recipient
	Deleted bool `json:"deleted,omitempty"`
}

type hiddenRow struct {
	Inboxes []string `json:"inboxes"`
}

// Inbox implements inbox.InboxStore.
func (s *Store) Inbox(ctx context.Context, ws, ref string) (inbox.Inbox, error) {
	if !strings.HasPrefix(ref, "inbox_") {
		in, _, err := s.inbox(ctx, slugKey(ws, ref))
		if err != nil {
			return inbox.Inbox{}, missing("inbox by slug", err, inbox.NoInbox())
		}
		return in, nil
	}
	in, _, err := s.inboxByID(ctx, ws, ref)
	return in, err
}

// inbox is get of an inbox. There is nothing in one that could be shared.
func (s *Store) inbox(ctx context.Context, k store.Key) (inbox.Inbox, uint64, error) {
	item, err := s.engine.Get(ctx, k)
	if err != nil {
		return inbox.Inbox{}, 0, err //nolint:wrapcheck // callers name the step and look for store.ErrNotFound
	}
	in, err := s.inboxes.of(&item)
	if err != nil {
		return inbox.Inbox{}, 0, err
	}
	return *in, item.Revision, nil
}

// inboxByID looks among the live ones first. One that moves between the two reads is looked for once more.
func (s *Store) inboxByID(ctx context.Context, ws, id string) (inbox.Inbox, uint64, error) {
	for range 2 {
		for _, deleted := range []bool{false, true} {
			in, revision, err := s.inbox(ctx, key(inboxesPartition(ws, deleted), id))
			switch {
			case errors.Is(err, store.ErrNotFound):
				continue
			case err != nil:
				return inbox.Inbox{}, 0, failed("inbox "+id, err)
			case in.Purging:
				return inbox.Inbox{}, 0, inbox.NoInbox()
			}
			return in, revision, nil
		}
	}
	return inbox.Inbox{}, 0, inbox.NoInbox()
}

// Inboxes implements inbox.InboxStore.
func (s *Store) Inboxes(ctx context.Context, r inbox.InboxRange) ([]inbox.Inbox, string, error) {
	partitions := []string{inboxesPartition(r.Workspace, false)}
	if r.Deleted {
		partitions = append(partitions, inboxesPartition(r.Workspace, true))
	}
	items, next, err := s.merged(ctx, partitions, store.Query{Table: store.Core, After: r.After, Limit: r.Limit})
	if err != nil {
		return nil, "", failed("inboxes", err)
	}
	rows, err := decodeAll[inbox.Inbox](items)
	if err != nil {
		return nil, "", failed("inboxes", err)
	}
	return slices.DeleteFunc(rows, func(in inbox.Inbox) bool { return in.Purging }), next, nil
}

// CreateInbox implements inbox.InboxStore. The domain is checked again inside the transaction.
func (s *Store) CreateInbox(ctx context.Context, in inbox.Inbox, act inbox.Act) error {
	_, domain, _ := strings.Cut(in.Address, "@")
	var b batch
	b.create(slugKey(in.Workspace, in.Slug), in)
	b.create(addressKey(in.Address), addressOf(in))
	b.create(inboxKey(in), in)
	b.check(orgKey(in.Organization, "domain/"+domain), store.Exists())
	b.check(orgKey(in.Organization, "ws/"+in.Workspace), store.Exists())
	if in.Retention > 0 {
		b.firstLook(in, s.now())
	}
	b.act(act, in.ID, nil, in)
	err := s.commit(ctx, &b)
	switch conflictAt(err) {
	case 0:
		return inbox.ErrSlugTaken
	case 1:
		return inbox.ErrAddressTaken
	}
	if err != nil {
		return failed("create inbox "+in.ID, err)
	}
	return nil
}

func addressOf(in inbox.Inbox) addressRow {
	return addressRow{
		Recipient: inbox.Recipient{
			Address: in.Address, Organization: in.Organization, Workspace: in.Workspace, Inbox: in.ID, State: in.State,
			SenderPolicy: in.SenderPolicy, OnUnlisted: in.OnUnlisted,
		},
		Deleted: !in.DeletedAt.IsZero(),
	}
}

// UpdateInbox implements inbox.InboxStore.
func (s *Store) UpdateInbox(
	ctx context.Context, ws, id string, act inbox.Act, change func(*inbox.Inbox) error,
) (inbox.Inbox, error) {
	for range attempts {
		old, revision, err := s.inboxByID(ctx, ws, id)
		if err != nil {
			return inbox.Inbox{}, err
		}
		if err := s.unused(ctx, act); err != nil {
			return inbox.Inbox{}, err
		}
		next := old
		if err := change(&next); err != nil {
			return inbox.Inbox{}, err
		}
		if next == old {
			return old, nil
		}
		b, err := s.inboxOps(ctx, old, next, revision)
		if err != nil {
			return inbox.Inbox{}, err
		}
		if err := s.lookSooner(ctx, b, old, next); err != nil {
			return inbox.Inbox{}, err
		}
		b.act(act, id, old, next)
		err = s.commit(ctx, b)
		if err == nil {
			return next, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return inbox.Inbox{}, failed("update inbox "+id, err)
		}
	}
	return inbox.Inbox{}, inbox.Busy()
}

// inboxOps writes the inbox with its copies. A deletion or restoration moves the row and changes the list of hidden inboxes
// in the same transaction, so its mail is hidden, or back, at once.
func (s *Store) inboxOps(ctx context.Context, old, next inbox.Inbox, revision uint64) (*batch, error) {
	var b batch
	if from, to := inboxKey(old), inboxKey(next); from == to {
		b.replace(to, revision, next)
	} else {
		b.drop(from, store.RevisionIs(revision))
		b.put(to, revision+1, next, store.Absent())
		if err := s.hide(ctx, &b, next); err != nil {
			return nil, err
		}
	}
	b.set(slugKey(next.Workspace, next.Slug), next)
	b.set(addressKey(next.Address), addressOf(next))
	return &b, nil
}

func (s *Store) hide(ctx context.Context, b *batch, in inbox.Inbox) error {
	row, revision, _, err := find[hiddenRow](ctx, s, hiddenKey(in.Workspace))
	if err != nil {
		return failed("hidden inboxes", err)
	}
	row.Inboxes = slices.DeleteFunc(row.Inboxes, func(id string) bool { return id == in.ID })
	if !in.DeletedAt.IsZero() {
		if len(row.Inboxes) >= MaxHidden {
			return inbox.ErrTooManyDeleted
		}
		row.Inboxes = append(row.Inboxes, in.ID)
	}
	b.upsert(hiddenKey(in.Workspace), revision, row)
	return nil
}

// Hidden implements inbox.EmailStore.
func (s *Store) Hidden(ctx context.Context, ws string) (map[string]bool, error) {
	row, _, ok, err := find[hiddenRow](ctx, s, hiddenKey(ws))
	if err != nil || !ok || len(row.Inboxes) == 0 {
		return nil, wrapIf("hidden inboxes", err)
	}
	hidden := make(map[string]bool, len(row.Inboxes))
	for _, id := range row.Inboxes {
		hidden[id] = true
	}
	return hidden, nil
}

func wrapIf(step string, err error) error {
	if err == nil {
		return nil
	}
	return failed(step, err)
}

// Counter names of an inbox.
const (
	countReceived = "received"
	countDeleted  = "deleted"
)

// Counts implements inbox.CountStore.
func (s *Store) Counts(ctx context.Context, in string) (inbox.Counts, error) {
	item, err := s.engine.Get(ctx, countsKey(in))
	if errors.Is(err, store.ErrNotFound) {
		return inbox.Counts{}, nil
	}
	if err != nil {
		return inbox.Counts{}, failed("counts", err)
	}
	n := func(name string) int64 { return max(item.Counters[name], 0) }
	return inbox.Counts{
		Received:    n(countReceived),
		Processed:   n(string(inbox.StatusProcessed)),
		Failed:      n(string(inbox.StatusFailed)),
		Quarantined: n(string(inbox.StatusQuarantined)),
		Deleted:     n(countDeleted),
	}, nil
}

// count moves a counter after the transaction that it counts. A failure is left alone: the act has happened, and its caller
// must not repeat it for a number that is approximate by contract.
func (s *Store) count(ctx context.Context, in, name string, delta int64) {
	_, _ = s.engine.Add(ctx, countsKey(in), name, delta, 0, time.Time{})
}

// Recipient implements pipeline.Recipients.
func (s *Store) Recipient(ctx context.Context, address string) (inbox.Recipient, error) {
	address = strings.ToLower(address)
	if len(address) > 512 || strings.IndexByte(address, 0) >= 0 {
		return inbox.Recipient{}, noRecipient()
	}
	row, _, err := get[addressRow](ctx, s, addressKey(address))
	if errors.Is(err, store.ErrInvalid) { // not UTF-8: no address of ours
		return inbox.Recipient{}, noRecipient()
	}
	if err != nil {
		return inbox.Recipient{}, missing("recipient", err, noRecipient())
	}
	if row.Deleted {
		return inbox.Recipient{}, noRecipient()
	}
	w, _, _, err := find[inbox.Workspace](ctx, s, orgKey(row.Organization, "ws/"+row.Workspace))
	if err != nil {
		return inbox.Recipient{}, failed("workspace of a recipient", err)
	}
	row.MaxBytes = w.MaxBytes
	return row.Recipient, nil
}

func noRecipient() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is no inbox with this address.")
}
