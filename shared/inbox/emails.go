package inbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Emails are the operations on mail.
type Emails struct{ d Deps }

// EmailQuery filters a list of mail. Inbox, Status, Thread and the times are served by keys, the rest by a window.
type EmailQuery struct {
	Inbox          string // id or slug
	Status         Status
	Thread         string
	Q              string // in subject, snippet, addresses
	From, To       string
	Subject        string
	Label          string
	Category       string
	Flag           string
	Trust          TrustLevel
	HasAttachment  *bool
	Handled        *bool
	ReceivedAfter  time.Time // exclusive
	ReceivedBefore time.Time // exclusive
	IncludeDeleted bool      // admins only
}

// EmailPage is one page of mail, newest first.
type EmailPage struct {
	Rows   []*Row
	Next   string  // cursor
	Window *Window // nil when the keys serve the list
	Masked bool    // codes and links were hidden from this caller
}

// List returns the mail of the workspace, newest first. Mail of deleted inboxes is never shown.
func (s *Emails) List(ctx context.Context, a Actor, q EmailQuery, p PageRequest) (EmailPage, error) {
	limit, err := p.limit()
	if err != nil {
		return EmailPage{}, err
	}
	if err := q.check(a); err != nil {
		return EmailPage{}, err
	}
	c := newCursors(s.d.Cursors, a, "emails_list", q)
	after, err := c.open(p.Cursor)
	if err != nil {
		return EmailPage{}, err
	}
	r, hidden, err := s.plan(ctx, a, q)
	if err != nil {
		return EmailPage{}, err
	}
	l := s.lister(a, q, r, hidden)
	l.after, l.limit = after, limit
	rows, next, err := l.collect(ctx)
	if err != nil {
		return EmailPage{}, fmt.Errorf("list emails of %s: %w", a.Workspace, err)
	}
	page := EmailPage{Rows: rows, Masked: !a.ReadCodes}
	if l.match != nil {
		page.Window = &Window{Examined: l.examined, Oldest: PositionTime(l.last), Complete: next == ""}
	}
	page.Next, err = c.seal(next)
	return page, err
}

func (q EmailQuery) check(a Actor) error {
	if q.IncludeDeleted && !a.Role.AtLeast(RoleAdmin) {
		return adminOnly()
	}
	if q.Status != "" && !slices.Contains(Statuses(), q.Status) {
		return invalid("query.status", "received, processing, processed, failed or quarantined")
	}
	if q.Trust != "" && !slices.Contains(TrustLevels(), q.Trust) {
		return invalid("query.trust", "trusted, verified, unverified, suspicious or blocked")
	}
	if q.Thread != "" && !validID("thread", q.Thread) {
		return invalid("query.thread_id", "the thread_id of an email")
	}
	for _, f := range []struct{ location, value string }{
		{"query.q", q.Q}, {"query.from", q.From}, {"query.to", q.To}, {"query.subject", q.Subject},
		{"query.label", q.Label}, {"query.category", q.Category}, {"query.flag", q.Flag},
	} {
		if err := checkFilter(f.location, f.value); err != nil {
			return err
		}
	}
	return nil
}

// plan picks the keys that serve the query and reads what must be known before: the inbox it names (a deleted or foreign
// one is a missing one), or else the deleted inboxes of the workspace, whose mail its partition still holds.
func (s *Emails) plan(ctx context.Context, a Actor, q EmailQuery) (EmailRange, map[string]bool, error) {
	r := EmailRange{Workspace: a.Workspace, Thread: q.Thread, Deleted: q.IncludeDeleted}
	if q.Thread == "" {
		r.Status = q.Status
	}
	if !q.ReceivedAfter.IsZero() {
		r.From = Position(q.ReceivedAfter.Truncate(time.Millisecond).Add(time.Millisecond), "")
	}
	if !q.ReceivedBefore.IsZero() {
		r.To = Position(q.ReceivedBefore.Add(time.Millisecond-1).Truncate(time.Millisecond), "")
	}
	if q.Inbox != "" {
		in, err := s.d.live(ctx, a, q.Inbox)
		if err != nil {
			return EmailRange{}, nil, err
		}
		r.Inbox = in.ID
		return r, nil, nil
	}
	hidden, err := s.d.Emails.Hidden(ctx, a.Workspace)
	if err != nil {
		return EmailRange{}, nil, fmt.Errorf("hidden inboxes of %s: %w", a.Workspace, err)
	}
	return r, hidden, nil
}

func (s *Emails) lister(a Actor, q EmailQuery, r EmailRange, hidden map[string]bool) lister[*Row] {
	l := lister[*Row]{
		key: func(e **Row) string { return Position((*e).ReceivedAt, (*e).ID) },
		read: func(ctx context.Context, after string, n int) ([]*Row, string, error) {
			r := r
			r.After, r.Limit = after, n
			rows, next, err := s.d.Emails.Emails(ctx, r)
			for i, row := range rows {
				rows[i] = row.shown(a)
			}
			return rows, next, err
		},
	}
	filter := q.matcher(r)
	if filter != nil || len(hidden) > 0 {
		l.match = func(e **Row) bool { return !hidden[(*e).Inbox] && (filter == nil || filter(&(*e).Summary)) }
	}
	return l
}

// matcher is what the keys of r leave to be filtered; nil when they serve the query.
func (q EmailQuery) matcher(r EmailRange) func(*Summary) bool {
	var all []func(*Summary) bool
	add := func(f func(*Summary) bool) { all = append(all, f) }
	if q.Status != "" && (r.Status == "" || r.Deleted) {
		add(func(e *Summary) bool { return e.Status == q.Status })
	}
	if r.Thread != "" && (r.Inbox != "" || r.Deleted) {
		add(func(e *Summary) bool { return e.Thread == r.Thread && (r.Inbox == "" || e.Inbox == r.Inbox) })
	}
	if q.HasAttachment != nil {
		add(func(e *Summary) bool { return (e.Attachments > 0) == *q.HasAttachment })
	}
	if q.Handled != nil {
		add(func(e *Summary) bool { return !e.HandledAt.IsZero() == *q.Handled })
	}
	if q.Label != "" {
		add(func(e *Summary) bool { return slices.Contains(e.Labels, q.Label) })
	}
	if q.Category != "" {
		add(func(e *Summary) bool { return e.Category == q.Category })
	}
	if q.Flag != "" {
		add(func(e *Summary) bool { return slices.Contains(e.Flags, q.Flag) })
	}
	if q.Trust != "" {
		add(func(e *Summary) bool { return e.Trust.Level == q.Trust })
	}
	all = append(all, q.textMatchers()...)
	if len(all) == 0 {
		return nil
	}
	return func(e *Summary) bool {
		for _, f := range all {
			if !f(e) {
				return false
			}
		}
		return true
	}
}

func (q EmailQuery) textMatchers() (all []func(*Summary) bool) {
	if n := strings.ToLower(q.From); n != "" {
		all = append(all, func(e *Summary) bool { return anyAddress(e.From, n) })
	}
	if n := strings.ToLower(q.To); n != "" {
		all = append(all, func(e *Summary) bool { return anyAddress(e.To, n) })
	}
	if n := strings.ToLower(q.Subject); n != "" {
		all = append(all, func(e *Summary) bool { return contains(e.Subject, n) })
	}
	if n := strings.ToLower(q.Q); n != "" {
		all = append(all, func(e *Summary) bool {
			return contains(e.Subject, n) || contains(e.Snippet, n) || anyAddress(e.From, n) || anyAddress(e.To, n)
		})
	}
	return all
}

// Statuses lists the statuses of a mail in the order of its life.
func Statuses() []Status {
	return []Status{StatusReceived, StatusProcessing, StatusProcessed, StatusFailed, StatusQuarantined}
}

// email reads a mail, deleted or not, that the caller may act on: not one of a deleted inbox.
func (d Deps) email(ctx context.Context, a Actor, id string, body bool) (Email, *Body, error) {
	if !validID("email", id) {
		return Email{}, nil, NoEmail()
	}
	e, b, err := d.Emails.Email(ctx, a.Workspace, id, body)
	if err != nil {
		return Email{}, nil, fmt.Errorf("email %s: %w", id, err)
	}
	hidden, err := d.Emails.Hidden(ctx, a.Workspace)
	if err != nil {
		return Email{}, nil, fmt.Errorf("hidden inboxes of %s: %w", a.Workspace, err)
	}
	if hidden[e.Inbox] {
		return Email{}, nil, NoEmail()
	}
	return e, b, nil
}
