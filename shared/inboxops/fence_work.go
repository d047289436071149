package inboxops

import (
	"context"

	"github.com/buzon-mail/buzon/shared/inbox"
)

type fencedThreads struct{ next inbox.ThreadStore }

// Threads reads the pages of the inboxes within the fence as if they were one.
func (s fencedThreads) Threads(ctx context.Context, r inbox.ThreadRange) ([]inbox.Thread, string, error) {
	f := fenceOf(ctx)
	switch {
	case f.open:
		return s.next.Threads(ctx, r)
	case r.Inbox != "" && f.hides(r.Inbox):
		return nil, "", nil
	case r.Inbox != "":
		return s.next.Threads(ctx, r)
	}
	before := func(a, b string) bool { return a > b }
	return within(f, r.Limit, inbox.Thread.Position, before, func(in string) ([]inbox.Thread, string, error) {
		r.Inbox = in
		return s.next.Threads(ctx, r)
	})
}

// Thread finds a thread within the fence; one outside is missing as the store's own are.
func (s fencedThreads) Thread(ctx context.Context, ws, id string) (inbox.Thread, error) {
	t, err := s.next.Thread(ctx, ws, id)
	if err == nil && fenceOf(ctx).hides(t.Inbox) {
		return inbox.Thread{}, inbox.NoThread()
	}
	return t, err
}

type fencedWork struct{ next inbox.WorkStore }

// Work reads what waits in an inbox within the fence.
func (s fencedWork) Work(ctx context.Context, r inbox.WorkRange) ([]inbox.WorkRow, string, error) {
	if fenceOf(ctx).hides(r.Inbox) {
		return nil, "", nil
	}
	return s.next.Work(ctx, r)
}

// Lease gives a mail within the fence.
func (s fencedWork) Lease(ctx context.Context, row inbox.WorkRow, l inbox.Lease, act inbox.Act) error {
	if fenceOf(ctx).hides(row.Inbox) {
		return inbox.NoEmail()
	}
	return s.next.Lease(ctx, row, l, act)
}

// UpdateLeased changes a mail within the fence.
func (s fencedWork) UpdateLeased(
	ctx context.Context, ws, id string, use inbox.LeaseUse, act inbox.Act, change func(*inbox.Email) error,
) (inbox.Email, error) {
	return s.next.UpdateLeased(ctx, ws, id, use, act, fenceOf(ctx).around(change))
}
