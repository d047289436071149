package inbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Threads are the operations on conversations.
type Threads struct{ d Deps }

// Bounds of what threads_get returns.
const (
	DefaultThreadEmails = 20
	MaxThreadEmails     = 50
)

// ThreadQuery filters a list of threads. Inbox and UpdatedAfter are served by keys, the rest by a window.
type ThreadQuery struct {
	Inbox        string // id or slug
	Q            string // in subject, snippet of the newest mail, participants
	Participant  string // in an address or a name
	Unhandled    *bool
	UpdatedAfter time.Time // exclusive
}

// ThreadPage is one page of threads, the one with the newest mail first.
type ThreadPage struct {
	Rows   []Thread
	Next   string
	Window *Window
	Masked bool
}

// List returns the threads of the workspace, the newest activity first. A thread moves up when a mail joins it, so one that moves
// while pages are read can be missed by who started before; it is then on the first page.
func (s *Threads) List(ctx context.Context, a Actor, q ThreadQuery, p PageRequest) (ThreadPage, error) {
	limit, err := p.limit()
	if err != nil {
		return ThreadPage{}, err
	}
	for _, f := range []struct{ location, value string }{{"query.q", q.Q}, {"query.participant", q.Participant}} {
		if err := checkFilter(f.location, f.value); err != nil {
			return ThreadPage{}, err
		}
	}
	c := newCursors(s.d.Cursors, a, "threads_list", q)
	after, err := c.open(p.Cursor)
	if err != nil {
		return ThreadPage{}, err
	}
	l, err := s.lister(ctx, a, q)
	if err != nil {
		return ThreadPage{}, err
	}
	l.after, l.limit = after, limit
	rows, next, err := l.collect(ctx)
	if err != nil {
		return ThreadPage{}, fmt.Errorf("list threads of %s: %w", a.Workspace, err)
	}
	page := ThreadPage{Rows: rows, Masked: !a.ReadCodes}
	if l.match != nil {
		page.Window = &Window{Examined: l.examined, Oldest: PositionTime(l.last), Complete: next == ""}
	}
	page.Next, err = c.seal(next)
	return page, err
}

func (s *Threads) lister(ctx context.Context, a Actor, q ThreadQuery) (*lister[Thread], error) {
	r := ThreadRange{Workspace: a.Workspace}
	if !q.UpdatedAfter.IsZero() {
		r.From = Position(q.UpdatedAfter.Truncate(time.Millisecond).Add(time.Millisecond), "")
	}
	var hidden map[string]bool
	if q.Inbox != "" {
		in, err := s.d.live(ctx, a, q.Inbox)
		if err != nil {
			return nil, err
		}
		r.Inbox = in.ID
	} else {
		var err error
		if hidden, err = s.d.Emails.Hidden(ctx, a.Workspace); err != nil {
			return nil, fmt.Errorf("hidden inboxes of %s: %w", a.Workspace, err)
		}
	}
	l := &lister[Thread]{
		key: func(t *Thread) string { return t.Position() },
		read: func(ctx context.Context, after string, n int) ([]Thread, string, error) {
			r := r
			r.After, r.Limit = after, n
			rows, next, err := s.d.Threads.Threads(ctx, r)
			if !a.ReadCodes {
				for i := range rows {
					rows[i] = rows[i].masked()
				}
			}
			return rows, next, err
		},
	}
	if filter := q.matcher(); filter != nil || len(hidden) > 0 {
		l.match = func(t *Thread) bool { return !hidden[t.Inbox] && (filter == nil || filter(t)) }
	}
	return l, nil
}

func (q ThreadQuery) matcher() func(*Thread) bool {
	if q.Q == "" && q.Participant == "" && q.Unhandled == nil {
		return nil
	}
	text, person := strings.ToLower(q.Q), strings.ToLower(q.Participant)
	return func(t *Thread) bool {
		return (q.Unhandled == nil || (t.Unhandled > 0) == *q.Unhandled) &&
			(person == "" || anyAddress(t.Participants, person)) &&
			(text == "" || contains(t.Subject, text) || contains(t.Snippet, text) || anyAddress(t.Participants, text))
	}
}

// ThreadRead says how much of a thread to return.
type ThreadRead struct {
	MaxEmails int // 0: DefaultThreadEmails
	MaxChars  int // of all texts together; 0: DefaultChars
	Cursor    string
}

// ThreadEmail is a mail of a thread with what it adds to the conversation.
type ThreadEmail struct {
	Summary
	Text     TextView // reply_text, or text where nothing was cut off as quoted; empty once the characters are used up
	Withheld bool     // the text is left out: the characters were used up before it
}

// ThreadView is a thread with its mail.
type ThreadView struct {
	Thread
	Mail   []ThreadEmail // the oldest first
	Next   string        // cursor to what follows
	Masked bool
}

// Get returns a thread with its mail, the oldest first: at most MaxEmails of them, with MaxChars characters of text in all,
// of which each gets an equal share and what those before it left over.
func (s *Threads) Get(ctx context.Context, a Actor, id string, r ThreadRead) (ThreadView, error) {
	if err := r.check(); err != nil {
		return ThreadView{}, err
	}
	if !validID("thread", id) {
		return ThreadView{}, NoThread()
	}
	c := newCursors(s.d.Cursors, a, "threads_get", id)
	after, err := c.open(r.Cursor)
	if err != nil {
		return ThreadView{}, err
	}
	t, err := s.find(ctx, a, id)
	if err != nil {
		return ThreadView{}, err
	}
	rows, next, err := s.d.Emails.Emails(ctx, EmailRange{
		Workspace: a.Workspace, Thread: id, After: after, Limit: r.MaxEmails, Ascending: true,
	})
	if err != nil {
		return ThreadView{}, fmt.Errorf("emails of %s: %w", id, err)
	}
	v := ThreadView{Thread: t, Masked: !a.ReadCodes}
	if v.Mail, err = s.texts(ctx, a, rows, r.MaxChars); err != nil {
		return ThreadView{}, err
	}
	if !a.ReadCodes {
		v.Thread = t.masked()
	}
	v.Next, err = c.seal(next)
	return v, err
}

func (r *ThreadRead) check() error {
	if r.MaxEmails == 0 {
		r.MaxEmails = DefaultThreadEmails
	}
	if r.MaxEmails < 1 || r.MaxEmails > MaxThreadEmails {
		return invalid("query.max_emails", fmt.Sprintf("1 to %d", MaxThreadEmails))
	}
	if r.MaxChars == 0 {
		r.MaxChars = DefaultChars
	}
	if r.MaxChars < 1 || r.MaxChars > MaxChars {
		return invalid("query.max_chars", fmt.Sprintf("1 to %d", MaxChars))
	}
	return nil
}

// find reads a thread; one of a deleted inbox is a missing one.
func (s *Threads) find(ctx context.Context, a Actor, id string) (Thread, error) {
	t, err := s.d.Threads.Thread(ctx, a.Workspace, id)
	if err != nil {
		return Thread{}, fmt.Errorf("thread %s: %w", id, err)
	}
	hidden, err := s.d.Emails.Hidden(ctx, a.Workspace)
	if err != nil {
		return Thread{}, fmt.Errorf("hidden inboxes of %s: %w", a.Workspace, err)
	}
	if hidden[t.Inbox] {
		return Thread{}, NoThread()
	}
	return t, nil
}

// texts reads what each mail says. A mail that was deleted since the list was read is left out.
func (s *Threads) texts(ctx context.Context, a Actor, rows []*Row, chars int) ([]ThreadEmail, error) {
	emails := &Emails{s.d}
	var out []ThreadEmail
	for i, row := range rows {
		row = row.shown(a)
		if chars == 0 {
			out = append(out, ThreadEmail{Summary: row.Summary, Withheld: true})
			continue
		}
		left := len(rows) - i
		e, body, err := s.d.Emails.Email(ctx, a.Workspace, row.ID, true)
		if apperr.Is(err, apperr.NotFound) || err == nil && !e.DeletedAt.IsZero() {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("email %s: %w", row.ID, err)
		}
		v, err := emails.show(ctx, a, e, body, EmailRead{Include: []string{TextReply, TextPlain}, MaxChars: (chars + left - 1) / left})
		if err != nil {
			return nil, err
		}
		one := ThreadEmail{Summary: row.Summary, Text: said(v.Texts)}
		chars -= one.Text.Returned
		out = append(out, one)
	}
	return out, nil
}

// said picks what a mail adds: its text without what was quoted, or all of it where nothing was told apart.
func said(texts []TextView) TextView {
	for _, name := range []string{TextReply, TextPlain} {
		i := slices.IndexFunc(texts, func(t TextView) bool { return t.Name == name && t.Total > 0 })
		if i >= 0 {
			return texts[i]
		}
	}
	return TextView{Name: TextPlain}
}
