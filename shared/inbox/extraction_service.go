package inbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Extractions are the operations on what was extracted.
type Extractions struct{ d Deps }

// ExtractionQuery filters a list of extractions. Email and Template are served by keys, the rest by a window.
type ExtractionQuery struct {
	Email    string // id
	Template string // slug
	Status   ExtractionStatus
}

// ExtractionPage is one page of extractions.
type ExtractionPage struct {
	Rows   []Extraction
	Next   string
	Window *Window
	Masked bool
}

// List returns what was extracted, from the newest mail first.
func (s *Extractions) List(ctx context.Context, a Actor, q ExtractionQuery, p PageRequest) (ExtractionPage, error) {
	limit, err := p.limit()
	if err != nil {
		return ExtractionPage{}, err
	}
	if q.Status != "" && !slices.Contains(ExtractionStatuses(), q.Status) {
		return ExtractionPage{}, invalid("query.status", "ok, partial, abstained or invalid")
	}
	c := newCursors(s.d.Cursors, a, "extractions_list", q)
	after, err := c.open(p.Cursor)
	if err != nil {
		return ExtractionPage{}, err
	}
	if q.Template != "" && !ValidSlug(q.Template) {
		return ExtractionPage{Masked: !a.ReadCodes}, nil
	}
	r := ExtractionRange{Workspace: a.Workspace, Template: q.Template}
	var hidden map[string]bool
	if q.Email != "" {
		e, err := (&Attachments{s.d}).readable(ctx, a, q.Email)
		if err != nil {
			return ExtractionPage{}, err
		}
		r.Email = Position(e.ReceivedAt, e.ID)
	} else if hidden, err = s.d.Emails.Hidden(ctx, a.Workspace); err != nil {
		return ExtractionPage{}, fmt.Errorf("hidden inboxes of %s: %w", a.Workspace, err)
	}
	l := lister[Extraction]{
		after: after, limit: limit, key: func(e *Extraction) string { return e.Key() }, size: (*Extraction).size,
		read: func(ctx context.Context, after string, n int) ([]Extraction, string, error) {
			r := r
			r.After, r.Limit = after, n
			return s.d.Extractions.Extractions(ctx, r)
		},
	}
	if len(hidden) > 0 || q.Status != "" || q.Email != "" && q.Template != "" {
		l.match = func(e *Extraction) bool {
			return !hidden[e.Inbox] && (q.Status == "" || e.Status == q.Status) && (q.Template == "" || e.Template == q.Template)
		}
	}
	rows, next, err := l.collect(ctx)
	if err != nil {
		return ExtractionPage{}, fmt.Errorf("list extractions of %s: %w", a.Workspace, err)
	}
	page := ExtractionPage{Rows: maskedExtractions(a, rows), Masked: !a.ReadCodes}
	if l.match != nil {
		page.Window = &Window{Examined: l.examined, Complete: next == ""}
		if email, _, ok := strings.Cut(l.last, "/"); ok {
			page.Window.Oldest = PositionTime(email)
		}
	}
	page.Next, err = c.seal(next)
	return page, err
}

func maskedExtractions(a Actor, rows []Extraction) []Extraction {
	if a.ReadCodes {
		return rows
	}
	for i := range rows {
		rows[i] = rows[i].masked()
	}
	return rows
}

// extractionsOf is what was extracted from one mail.
func (d Deps) extractionsOf(ctx context.Context, a Actor, e Email) ([]Extraction, error) {
	rows, _, err := d.Extractions.Extractions(ctx, ExtractionRange{
		Workspace: e.Workspace, Email: Position(e.ReceivedAt, e.ID), Limit: MaxLimit,
	})
	if err != nil {
		return nil, fmt.Errorf("extractions of %s: %w", e.ID, err)
	}
	return maskedExtractions(a, rows), nil
}

// files are the attachments of one mail, as far as rules and templates look.
func (d Deps) files(ctx context.Context, e Email) ([]Attachment, error) {
	if e.Attachments == 0 {
		return nil, nil
	}
	rows, _, err := d.Attachments.Attachments(ctx, AttachmentRange{
		Workspace: e.Workspace, Inbox: e.Inbox, Email: Position(e.ReceivedAt, e.ID), Limit: MaxLimit,
	})
	if err != nil {
		return nil, fmt.Errorf("attachments of %s: %w", e.ID, err)
	}
	files := make([]Attachment, 0, len(rows))
	for _, row := range rows {
		files = append(files, row.Attachment)
	}
	return files, nil
}
