package inboxops

import (
	"context"
	"slices"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
)

// A caller may be confined to some inboxes of its workspace (op.Caller.Within). This is the one place where that is kept: the stores
// that the services stand on are fenced, so that what lies in other inboxes is missing for them, whatever operation asks. The limit
// is the caller's in the context; where there is no caller (the worker) there is no fence. No fence embeds its store: a method that is
// new does not compile until somebody has decided what it may show. Operations say that they were looked at
// (op.Spec.Confines): every other one refuses a confined caller at its route.

var (
	_ inbox.InboxStore      = fencedInboxes{}
	_ inbox.CountStore      = fencedCounts{}
	_ inbox.EmailStore      = fencedEmails{}
	_ inbox.AttachmentStore = fencedAttachments{}
	_ inbox.SenderStore     = fencedSenders{}
	_ inbox.ThreadStore     = fencedThreads{}
	_ inbox.WorkStore       = fencedWork{}
	_ inbox.AuditStore      = fencedAudit{}
)

// NewServices makes the services over fenced stores.
func NewServices(d inbox.Deps) (*inbox.Services, error) {
	return inbox.New(Fence(d)) //nolint:wrapcheck // the domain names what is missing
}

// Fence puts the fence around the stores that hold what lies in inboxes. What it leaves as it is holds nothing of an inbox, or only
// operations that refuse confined callers reach it; a test knows which and why.
func Fence(d inbox.Deps) inbox.Deps {
	if d.Inboxes != nil {
		d.Inboxes = fencedInboxes{d.Inboxes}
	}
	if d.Counts != nil {
		d.Counts = fencedCounts{d.Counts}
	}
	if d.Emails != nil {
		d.Emails = fencedEmails{d.Emails}
	}
	if d.Attachments != nil {
		d.Attachments = fencedAttachments{d.Attachments}
	}
	if d.Senders != nil {
		d.Senders = fencedSenders{d.Senders}
	}
	if d.Threads != nil {
		d.Threads = fencedThreads{d.Threads}
	}
	if d.Work != nil {
		d.Work = fencedWork{d.Work}
	}
	if d.Audit != nil {
		d.Audit = fencedAudit{d.Audit}
	}
	if d.Jobs != nil {
		d.Jobs = fencedJobs{d.Jobs}
	}
	if d.Rules != nil {
		d.Rules = fencedRules{d.Rules}
	}
	if d.Deliveries != nil {
		d.Deliveries = fencedDeliveries{d.Deliveries}
	}
	return d
}

// fence is the limit of a call.
type fence struct {
	ids  []string
	open bool // no limit
}

func fenceOf(ctx context.Context) fence {
	c := op.CallerFrom(ctx)
	if c == nil || !c.Confined() {
		return fence{open: true}
	}
	return fence{ids: c.Within}
}

// hides reports whether an inbox is out of reach.
func (f fence) hides(in string) bool { return !f.open && !slices.Contains(f.ids, in) }

type fencedInboxes struct{ next inbox.InboxStore }

// Inbox finds an inbox within the fence.
func (s fencedInboxes) Inbox(ctx context.Context, ws, ref string) (inbox.Inbox, error) {
	in, err := s.next.Inbox(ctx, ws, ref)
	if err == nil && fenceOf(ctx).hides(in.ID) {
		return inbox.Inbox{}, inbox.NoInbox()
	}
	return in, err
}

// Inboxes reads the few that are within the fence one by one: among many others a page could hold none of them.
func (s fencedInboxes) Inboxes(ctx context.Context, r inbox.InboxRange) ([]inbox.Inbox, string, error) {
	f := fenceOf(ctx)
	if f.open {
		return s.next.Inboxes(ctx, r)
	}
	ids := slices.Clone(f.ids)
	slices.Sort(ids)
	var rows []inbox.Inbox
	for i, id := range ids {
		if id <= r.After {
			continue
		}
		in, err := s.next.Inbox(ctx, r.Workspace, id)
		if apperr.Is(err, apperr.NotFound) || err == nil && !in.DeletedAt.IsZero() && !r.Deleted {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		rows = append(rows, in)
		if len(rows) == r.Limit && i+1 < len(ids) {
			return rows, id, nil
		}
	}
	return rows, "", nil
}

// CreateInbox is refused: a new inbox would lie outside of the fence.
func (s fencedInboxes) CreateInbox(ctx context.Context, in inbox.Inbox, act inbox.Act) error {
	if !fenceOf(ctx).open {
		return op.Confines()
	}
	return s.next.CreateInbox(ctx, in, act)
}

// UpdateInbox changes an inbox within the fence.
func (s fencedInboxes) UpdateInbox(ctx context.Context, ws, id string, act inbox.Act, change func(*inbox.Inbox) error) (inbox.Inbox, error) {
	if fenceOf(ctx).hides(id) {
		return inbox.Inbox{}, inbox.NoInbox()
	}
	return s.next.UpdateInbox(ctx, ws, id, act, change)
}

type fencedCounts struct{ next inbox.CountStore }

// Counts are zeros outside of the fence, as for an inbox without any.
func (s fencedCounts) Counts(ctx context.Context, in string) (inbox.Counts, error) {
	if fenceOf(ctx).hides(in) {
		return inbox.Counts{}, nil
	}
	return s.next.Counts(ctx, in)
}

type fencedEmails struct{ next inbox.EmailStore }

// Emails reads the pages of the inboxes within the fence as if they were one.
func (s fencedEmails) Emails(ctx context.Context, r inbox.EmailRange) ([]*inbox.Row, string, error) {
	f := fenceOf(ctx)
	switch {
	case f.open:
		return s.next.Emails(ctx, r)
	case r.Inbox != "" && f.hides(r.Inbox):
		return nil, "", nil
	case r.Inbox != "" || r.Thread != "":
		rows, next, err := s.next.Emails(ctx, r)
		return slices.DeleteFunc(rows, func(e *inbox.Row) bool { return f.hides(e.Inbox) }), next, err
	}
	before := func(a, b string) bool { return a < b == r.Ascending && a != b }
	return within(f, r.Limit, place, before, func(in string) ([]*inbox.Row, string, error) {
		r.Inbox = in
		return s.next.Emails(ctx, r)
	})
}

// within reads the pages of the inboxes within a fence as if they were one, in the order of their places.
func within[T any](
	f fence, limit int, place func(T) string, before func(a, b string) bool, read func(in string) ([]T, string, error),
) ([]T, string, error) {
	var all []T
	bound := "" // where the page of some inbox ends: what lies behind it in others may not be returned yet
	for _, id := range f.ids {
		rows, next, err := read(id)
		if err != nil {
			return nil, "", err
		}
		all = append(all, rows...)
		if next != "" && (bound == "" || before(next, bound)) {
			bound = next
		}
	}
	slices.SortFunc(all, func(a, b T) int {
		switch {
		case before(place(a), place(b)):
			return -1
		case before(place(b), place(a)):
			return 1
		}
		return 0
	})
	all = slices.DeleteFunc(all, func(row T) bool { return bound != "" && before(bound, place(row)) })
	if len(all) > limit {
		return all[:limit], place(all[limit-1]), nil
	}
	return all, bound, nil
}

func place(e *inbox.Row) string { return inbox.Position(e.ReceivedAt, e.ID) }

// Email reads a mail within the fence.
func (s fencedEmails) Email(ctx context.Context, ws, id string, body bool) (inbox.Email, *inbox.Body, error) {
	e, b, err := s.next.Email(ctx, ws, id, body)
	if err == nil && fenceOf(ctx).hides(e.Inbox) {
		return inbox.Email{}, nil, inbox.NoEmail()
	}
	return e, b, err
}

// UpdateEmail changes a mail within the fence. The inbox is looked at with the mail that is to be replaced.
func (s fencedEmails) UpdateEmail(ctx context.Context, ws, id string, act inbox.Act, change func(*inbox.Email) error) (inbox.Email, error) {
	return s.next.UpdateEmail(ctx, ws, id, act, fenceOf(ctx).around(change))
}

// StartEmailJob starts a job for a mail within the fence.
func (s fencedEmails) StartEmailJob(
	ctx context.Context, ws, id string, act inbox.Act, start func(inbox.Email) (inbox.Job, error),
) (inbox.Job, error) {
	f := fenceOf(ctx)
	return s.next.StartEmailJob(ctx, ws, id, act, func(e inbox.Email) (inbox.Job, error) {
		if f.hides(e.Inbox) {
			return inbox.Job{}, inbox.NoEmail()
		}
		return start(e)
	})
}

// around refuses a change of a mail outside of the fence.
func (f fence) around(change func(*inbox.Email) error) func(*inbox.Email) error {
	if f.open {
		return change
	}
	return func(e *inbox.Email) error {
		if f.hides(e.Inbox) {
			return inbox.NoEmail()
		}
		return change(e)
	}
}

// Hidden names deleted inboxes, whichever.
func (s fencedEmails) Hidden(ctx context.Context, ws string) (map[string]bool, error) {
	return s.next.Hidden(ctx, ws)
}

type fencedAttachments struct{ next inbox.AttachmentStore }

// Attachments reads those of an inbox within the fence.
func (s fencedAttachments) Attachments(ctx context.Context, r inbox.AttachmentRange) ([]inbox.AttachmentRow, string, error) {
	if fenceOf(ctx).hides(r.Inbox) {
		return nil, "", nil
	}
	return s.next.Attachments(ctx, r)
}

// Attachment finds one within the fence.
func (s fencedAttachments) Attachment(ctx context.Context, ws, id string) (inbox.Attachment, error) {
	at, err := s.next.Attachment(ctx, ws, id)
	if err == nil && fenceOf(ctx).hides(at.Inbox) {
		return inbox.Attachment{}, inbox.NoAttachment()
	}
	return at, err
}

type fencedSenders struct{ next inbox.SenderStore }

// Senders reads those of an inbox within the fence.
func (s fencedSenders) Senders(ctx context.Context, r inbox.SenderRange) ([]inbox.SenderRow, string, error) {
	if fenceOf(ctx).hides(r.Inbox) {
		return nil, "", nil
	}
	return s.next.Senders(ctx, r)
}

// Sender finds an entry within the fence.
func (s fencedSenders) Sender(ctx context.Context, ws, in, id string) (inbox.AllowedSender, error) {
	if fenceOf(ctx).hides(in) {
		return inbox.AllowedSender{}, inbox.NoSender()
	}
	return s.next.Sender(ctx, ws, in, id)
}

// SendersFor finds entries within the fence.
func (s fencedSenders) SendersFor(ctx context.Context, ws, in, address string) ([]inbox.AllowedSender, error) {
	if fenceOf(ctx).hides(in) {
		return nil, nil
	}
	return s.next.SendersFor(ctx, ws, in, address)
}

// UpdateSender changes an entry within the fence.
func (s fencedSenders) UpdateSender(
	ctx context.Context, ws, in, id string, act inbox.Act, change func(*inbox.AllowedSender) error,
) (inbox.AllowedSender, error) {
	if fenceOf(ctx).hides(in) {
		return inbox.AllowedSender{}, inbox.NoInbox()
	}
	return s.next.UpdateSender(ctx, ws, in, id, act, change)
}

type fencedAudit struct{ next inbox.AuditStore }

// Events is refused: lines of the audit name what lies in any inbox.
func (s fencedAudit) Events(ctx context.Context, r inbox.AuditRange) ([]inbox.AuditEvent, string, error) {
	if !fenceOf(ctx).open {
		return nil, "", op.Confines()
	}
	return s.next.Events(ctx, r)
}

// Record writes a line.
func (s fencedAudit) Record(ctx context.Context, act inbox.Act, targets ...string) error {
	return s.next.Record(ctx, act, targets...)
}
