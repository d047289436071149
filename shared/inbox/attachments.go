package inbox

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// MaxDownloadTTL bounds how long an address of a download works.
const MaxDownloadTTL = 5 * time.Minute

// Attachments are the operations on the files in mail.
type Attachments struct{ d Deps }

// AttachmentQuery filters a list of attachments: those of one mail or of one inbox.
type AttachmentQuery struct {
	Email   string
	Inbox   string // id or slug
	Kind    string
	Type    string // prefix of the declared or detected type
	Name    string // in the file name
	MinSize int64  // bytes
	MaxSize int64  // bytes; 0: any
}

// AttachmentPage is one page of attachments.
type AttachmentPage struct {
	Rows   []Attachment
	Next   string
	Window *Window
	Masked bool
}

// Download is an address that serves one attachment for a while.
type Download struct {
	Attachment
	URL       string
	ExpiresAt time.Time
}

// List returns attachments, those of the newest mail first.
func (s *Attachments) List(ctx context.Context, a Actor, q AttachmentQuery, p PageRequest) (AttachmentPage, error) {
	limit, err := p.limit()
	if err != nil {
		return AttachmentPage{}, err
	}
	if err := q.check(); err != nil {
		return AttachmentPage{}, err
	}
	c := newCursors(s.d.Cursors, a, "attachments_list", q)
	after, err := c.open(p.Cursor)
	if err != nil {
		return AttachmentPage{}, err
	}
	r, err := s.plan(ctx, a, q)
	if err != nil {
		return AttachmentPage{}, err
	}
	l := lister[AttachmentRow]{
		after: after, limit: limit, match: q.matcher(),
		key: func(row *AttachmentRow) string { return row.Key },
		read: func(ctx context.Context, after string, n int) ([]AttachmentRow, string, error) {
			r := r
			r.After, r.Limit = after, n
			rows, next, err := s.d.Attachments.Attachments(ctx, r)
			return maskRows(a, rows), next, err
		},
	}
	rows, next, err := l.collect(ctx)
	if err != nil {
		return AttachmentPage{}, fmt.Errorf("list attachments of %s: %w", r.Inbox, err)
	}
	page := AttachmentPage{Masked: !a.ReadCodes}
	for _, row := range rows {
		page.Rows = append(page.Rows, row.Attachment)
	}
	if l.match != nil {
		page.Window = &Window{Examined: l.examined, Complete: next == ""}
		if email, _, ok := strings.Cut(l.last, "/"); ok {
			page.Window.Oldest = PositionTime(email)
		}
	}
	page.Next, err = c.seal(next)
	return page, err
}

func (q AttachmentQuery) check() error {
	if (q.Email == "") == (q.Inbox == "") {
		return invalid("query.email_id", "exactly one of email_id and inbox",
			"Send email_id for the attachments of one email, or inbox for those of a whole inbox.")
	}
	if q.MinSize < 0 || q.MaxSize < 0 || q.MaxSize > 0 && q.MinSize > q.MaxSize {
		return invalid("query.min_size", "0 or more, and not over max_size")
	}
	for _, f := range []struct{ location, value string }{
		{"query.kind", q.Kind}, {"query.type", q.Type}, {"query.name", q.Name},
	} {
		if err := checkFilter(f.location, f.value); err != nil {
			return err
		}
	}
	return nil
}

func (s *Attachments) plan(ctx context.Context, a Actor, q AttachmentQuery) (AttachmentRange, error) {
	if q.Inbox != "" {
		in, err := s.d.live(ctx, a, q.Inbox)
		return AttachmentRange{Workspace: a.Workspace, Inbox: in.ID}, err
	}
	e, err := s.readable(ctx, a, q.Email)
	return AttachmentRange{Workspace: a.Workspace, Inbox: e.Inbox, Email: Position(e.ReceivedAt, e.ID)}, err
}

func (s *Attachments) readable(ctx context.Context, a Actor, email string) (Email, error) {
	e, _, err := s.d.email(ctx, a, email, false)
	if err == nil && !e.DeletedAt.IsZero() {
		return Email{}, NoEmail()
	}
	return e, err
}

func (q AttachmentQuery) matcher() func(*AttachmentRow) bool {
	if q.Kind == "" && q.Type == "" && q.Name == "" && q.MinSize == 0 && q.MaxSize == 0 {
		return nil
	}
	name, typ := strings.ToLower(q.Name), strings.ToLower(q.Type)
	return func(r *AttachmentRow) bool {
		return (q.Kind == "" || r.Kind == q.Kind) && contains(r.Filename, name) && r.Size >= q.MinSize &&
			(q.MaxSize == 0 || r.Size <= q.MaxSize) &&
			(strings.HasPrefix(strings.ToLower(r.DetectedType), typ) || strings.HasPrefix(strings.ToLower(r.ContentType), typ))
	}
}

// maskRows works on what was read and before anything is filtered: see Summary.masked.
func maskRows(a Actor, rows []AttachmentRow) []AttachmentRow {
	if a.ReadCodes {
		return rows
	}
	for i := range rows {
		m := rows[i].Secrets.Masker()
		rows[i].Attachment = m.attachment(rows[i].Attachment)
	}
	return rows
}

func (m *Masker) attachment(at Attachment) Attachment {
	at.Filename, at.FilenameOriginal = m.Mask(at.Filename), m.Mask(at.FilenameOriginal)
	at.ContentID, at.ContentType = m.Mask(at.ContentID), m.Mask(at.ContentType)
	return at
}

// Get returns what is known of one attachment, as this caller may see it.
func (s *Attachments) Get(ctx context.Context, a Actor, id string) (Attachment, error) {
	at, e, err := s.one(ctx, a, id)
	if err == nil && !a.ReadCodes {
		at = SecretsOf(e).Masker().attachment(at)
	}
	return at, err
}

// one reads an attachment and its mail, unmasked. That of a mail out of reach is a missing one.
func (s *Attachments) one(ctx context.Context, a Actor, id string) (Attachment, Email, error) {
	if !validID("att", id) {
		return Attachment{}, Email{}, NoAttachment()
	}
	at, err := s.d.Attachments.Attachment(ctx, a.Workspace, id)
	if err != nil {
		return Attachment{}, Email{}, fmt.Errorf("attachment %s: %w", id, err)
	}
	e, err := s.readable(ctx, a, at.Email)
	if err != nil {
		return Attachment{}, Email{}, notFoundAs(err, NoAttachment())
	}
	return at, e, nil
}

// DownloadURL returns an address that serves the bytes of an attachment until it expires. ttl 0 is the longest.
func (s *Attachments) DownloadURL(ctx context.Context, a Actor, id string, ttl time.Duration) (Download, error) {
	if ttl == 0 {
		ttl = MaxDownloadTTL
	}
	if ttl < time.Second || ttl > MaxDownloadTTL {
		return Download{}, invalid("query.ttl_s", fmt.Sprintf("1 to %d", MaxDownloadTTL/time.Second))
	}
	at, e, err := s.one(ctx, a, id)
	if err != nil {
		return Download{}, err
	}
	if !a.ReadCodes && opensCodes(e, at) {
		return Download{}, CodesHidden("This file, in which codes and links can't be masked,", "Read what attachments_get says of it.")
	}
	url, expires, err := s.d.Downloads.SignedURL(ctx, at, ttl)
	if err != nil {
		return Download{}, fmt.Errorf("address of attachment %s: %w", id, err)
	}
	if err := s.d.record(ctx, a, id); err != nil {
		return Download{}, err
	}
	if !a.ReadCodes {
		at = SecretsOf(e).Masker().attachment(at)
	}
	return Download{at, url, expires.UTC().Truncate(time.Millisecond)}, nil
}
