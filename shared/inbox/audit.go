package inbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Audits are the operations on the audit. It is only read: lines are written by the acts that they tell of.
type Audits struct{ d Deps }

// AuditQuery filters the audit. The times are served by keys, the rest by a window.
type AuditQuery struct {
	Organization bool      // acts on the organization instead of those in the workspace
	Actor        string    // id, or e-mail address of a person
	Action       string    // name of an operation
	Target       string    // id
	After        time.Time // exclusive
	Before       time.Time // exclusive
}

// AuditPage is one page of the audit, newest first.
type AuditPage struct {
	Rows   []AuditEvent
	Next   string  // cursor
	Window *Window // nil when the keys serve the list
}

// List returns lines of the audit, newest first. A workspace's are for its admins. The organization's are for who is an admin of the
// organization itself: an admin of one workspace does not learn who signs in elsewhere.
func (s *Audits) List(ctx context.Context, a Actor, q AuditQuery, p PageRequest) (AuditPage, error) {
	limit, err := p.limit()
	if err != nil {
		return AuditPage{}, err
	}
	if err := q.check(a); err != nil {
		return AuditPage{}, err
	}
	c := newCursors(s.d.Cursors, a, "audit_events_list", q)
	after, err := c.open(p.Cursor)
	if err != nil {
		return AuditPage{}, err
	}
	r := q.plan(a)
	l := lister[AuditEvent]{
		after: after, limit: limit, match: q.matcher(),
		key: func(e *AuditEvent) string { return e.ID },
		read: func(ctx context.Context, after string, n int) ([]AuditEvent, string, error) {
			r := r
			r.After, r.Limit = after, n
			return s.d.Audit.Events(ctx, r)
		},
	}
	rows, next, err := l.collect(ctx)
	if err != nil {
		return AuditPage{}, fmt.Errorf("list audit of %s: %w", a.Workspace, err)
	}
	page := AuditPage{Rows: rows}
	if l.match != nil {
		page.Window = &Window{Examined: l.examined, Oldest: IDTime(l.last), Complete: next == ""}
	}
	page.Next, err = c.seal(next)
	return page, err
}

func (q AuditQuery) check(a Actor) error {
	switch {
	case q.Organization && !a.OrganizationRole.AtLeast(RoleAdmin):
		return apperr.New(apperr.Forbidden, "insufficient_role",
			"Acts on the organization are shown to its admins, through a grant that reaches all of its workspaces.",
			"Leave organization out for the acts in this workspace.")
	case !q.Organization && !a.Role.AtLeast(RoleAdmin):
		return apperr.New(apperr.Forbidden, "insufficient_role", "The audit is shown to admins of the workspace.",
			"Ask an administrator of the workspace for the role admin.")
	}
	for _, f := range []struct{ location, value string }{
		{"query.actor", q.Actor}, {"query.action", q.Action}, {"query.target", q.Target},
	} {
		if err := checkFilter(f.location, f.value); err != nil {
			return err
		}
	}
	return nil
}

// plan makes the times a range of ids, whose time is that of the line.
func (q AuditQuery) plan(a Actor) AuditRange {
	r := AuditRange{Organization: a.Organization, Workspace: a.Workspace}
	if q.Organization {
		r.Workspace = ""
	}
	if !q.After.IsZero() {
		r.From = IDFloor(auditPrefix, q.After.Truncate(time.Millisecond).Add(time.Millisecond))
	}
	if !q.Before.IsZero() {
		r.To = IDFloor(auditPrefix, q.Before.Add(time.Millisecond-1).Truncate(time.Millisecond))
	}
	return r
}

func (q AuditQuery) matcher() func(*AuditEvent) bool {
	if q.Actor == "" && q.Action == "" && q.Target == "" {
		return nil
	}
	return func(e *AuditEvent) bool {
		return (q.Actor == "" || e.Actor.ID == q.Actor || strings.EqualFold(e.Actor.Email, q.Actor)) &&
			(q.Action == "" || e.Action == q.Action) && (q.Target == "" || slices.Contains(e.Targets, q.Target))
	}
}
