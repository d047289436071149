package inbox

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Inboxes are the operations on inboxes.
type Inboxes struct{ d Deps }

// InboxQuery filters a list of inboxes.
type InboxQuery struct {
	State          State
	Q              string // in slug, address, display name
	IncludeDeleted bool   // admins only
}

// InboxPage is one page of inboxes.
type InboxPage struct {
	Rows   []Inbox
	Next   string  // cursor
	Window *Window // nil when the keys serve the list
}

// InboxDetail is an inbox with its approximate counts.
type InboxDetail struct {
	Inbox
	Counts Counts
}

// PurgeAt is when a deleted thing may go for good; zero while it is not deleted.
func PurgeAt(deleted time.Time) time.Time {
	if deleted.IsZero() {
		return deleted
	}
	return deleted.Add(Retention)
}

// List returns the workspace's inboxes in the order in which they were made.
func (s *Inboxes) List(ctx context.Context, a Actor, q InboxQuery, p PageRequest) (InboxPage, error) {
	limit, err := p.limit()
	if err != nil {
		return InboxPage{}, err
	}
	if err := q.check(a); err != nil {
		return InboxPage{}, err
	}
	c := newCursors(s.d.Cursors, a, "inboxes_list", q)
	after, err := c.open(p.Cursor)
	if err != nil {
		return InboxPage{}, err
	}
	l := lister[Inbox]{
		after: after, limit: limit, match: q.matcher(),
		key: func(in *Inbox) string { return in.ID },
		read: func(ctx context.Context, after string, n int) ([]Inbox, string, error) {
			return s.d.Inboxes.Inboxes(ctx, InboxRange{a.Workspace, q.IncludeDeleted, after, n})
		},
	}
	rows, next, err := l.collect(ctx)
	if err != nil {
		return InboxPage{}, fmt.Errorf("list inboxes of %s: %w", a.Workspace, err)
	}
	page := InboxPage{Rows: rows}
	if l.match != nil {
		page.Window = &Window{Examined: l.examined, Complete: next == ""}
	}
	page.Next, err = c.seal(next)
	return page, err
}

func (q InboxQuery) check(a Actor) error {
	if q.State != "" && q.State != StateActive && q.State != StatePaused {
		return invalid("query.state", "active or paused")
	}
	if q.IncludeDeleted && !a.Role.AtLeast(RoleAdmin) {
		return adminOnly()
	}
	return checkFilter("query.q", q.Q)
}

func (q InboxQuery) matcher() func(*Inbox) bool {
	if q.State == "" && q.Q == "" {
		return nil
	}
	needle := strings.ToLower(q.Q)
	return func(in *Inbox) bool {
		return (q.State == "" || in.State == q.State) && (needle == "" || contains(in.Slug, needle) ||
			contains(in.Address, needle) || contains(in.DisplayName, needle))
	}
}

// Get returns one inbox by id or slug with its counts. Deleted ones are shown to admins who ask.
func (s *Inboxes) Get(ctx context.Context, a Actor, ref string, includeDeleted bool) (InboxDetail, error) {
	if includeDeleted && !a.Role.AtLeast(RoleAdmin) {
		return InboxDetail{}, adminOnly()
	}
	in, err := s.find(ctx, a, ref)
	if err != nil {
		return InboxDetail{}, err
	}
	if !in.DeletedAt.IsZero() && !includeDeleted {
		return InboxDetail{}, NoInbox()
	}
	counts, err := s.d.Counts.Counts(ctx, in.ID)
	if err != nil {
		return InboxDetail{}, fmt.Errorf("counts of %s: %w", in.ID, err)
	}
	return InboxDetail{in, counts}, nil
}

// find reads an inbox, deleted or not. What can be neither id nor slug is answered without a read, like a missing one.
func (s *Inboxes) find(ctx context.Context, a Actor, ref string) (Inbox, error) {
	if !ValidSlug(ref) && !validID("inbox", ref) {
		return Inbox{}, NoInbox()
	}
	in, err := s.d.Inboxes.Inbox(ctx, a.Workspace, ref)
	if err != nil {
		return Inbox{}, fmt.Errorf("inbox of %s: %w", a.Workspace, err)
	}
	return in, nil
}

// live is find for what acts on the mail of an inbox: a deleted one is a missing one.
func (d Deps) live(ctx context.Context, a Actor, ref string) (Inbox, error) {
	in, err := (&Inboxes{d}).find(ctx, a, ref)
	if err == nil && !in.DeletedAt.IsZero() {
		return Inbox{}, NoInbox()
	}
	return in, err
}

// AskDelete says what a person is asked before Delete; nil when the inbox is deleted already.
func (s *Inboxes) AskDelete(ctx context.Context, a Actor, ref string) (*Question, error) {
	in, err := s.find(ctx, a, ref)
	if err != nil || !in.DeletedAt.IsZero() {
		return nil, err
	}
	mails, err := s.mails(ctx, in)
	if err != nil {
		return nil, err
	}
	return &Question{
		Text:    "Delete inbox {} and hide its about {}; restorable until {}",
		Values:  []string{in.Slug, mails, until(PurgeAt(s.d.now()))},
		Targets: map[string]string{in.ID: Version(in.Version)},
	}, nil
}

// mails is how much mail an inbox shows, in words.
func (s *Inboxes) mails(ctx context.Context, in Inbox) (string, error) {
	c, err := s.d.Counts.Counts(ctx, in.ID)
	if err != nil {
		return "", fmt.Errorf("counts of %s: %w", in.ID, err)
	}
	return about(max(c.Received-c.Deleted, 0), "mail", "mails"), nil
}

// Delete hides an inbox and all its mail at once, for 30 days. Repeating it answers the same.
func (s *Inboxes) Delete(ctx context.Context, a Actor, ref string) (Inbox, error) {
	return s.flip(ctx, a, ref, func(in *Inbox, now time.Time) error {
		if err := a.confirm(in.ID, in.Version, in.DeletedAt.IsZero()); err != nil {
			return err
		}
		if in.DeletedAt.IsZero() {
			in.DeletedAt = now
		}
		return nil
	})
}

// Restore brings a deleted inbox back with its mail. Slug and address are still its own: their guards stayed. Repeating it
// answers the same.
func (s *Inboxes) Restore(ctx context.Context, a Actor, ref string) (Inbox, error) {
	return s.flip(ctx, a, ref, func(in *Inbox, _ time.Time) error {
		in.DeletedAt = time.Time{}
		return nil
	})
}

func (s *Inboxes) flip(ctx context.Context, a Actor, ref string, set func(*Inbox, time.Time) error) (Inbox, error) {
	in, err := s.find(ctx, a, ref)
	if err != nil {
		return Inbox{}, err
	}
	return s.update(ctx, a, in.ID, func(in *Inbox) error {
		before, now := in.DeletedAt, s.d.now()
		if err := set(in, now); err != nil {
			return err
		}
		if !in.DeletedAt.Equal(before) {
			in.UpdatedAt, in.Version = now, in.Version+1
		}
		return nil
	})
}

func (s *Inboxes) update(ctx context.Context, a Actor, id string, change func(*Inbox) error) (Inbox, error) {
	act, err := s.d.act(a)
	if err != nil {
		return Inbox{}, err
	}
	in, err := s.d.Inboxes.UpdateInbox(ctx, a.Workspace, id, act, change)
	if err != nil {
		return Inbox{}, tooManyDeleted(fmt.Errorf("change inbox %s: %w", id, err))
	}
	return in, nil
}
