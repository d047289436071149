package inbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// WorkspacePatch is what an upsert sets: a merge-patch of the workspace with this slug.
type WorkspacePatch struct {
	Slug      string
	Name      Field[string] // null, and on creation: the slug
	Retention Field[int]    // days, of inboxes that are made from now on and name none; null: kept
	Timezone  Field[string] // null: UTC
	MaxBytes  Field[int64]  // of a mail; null: MaxEmailBytes
	IfVersion uint64        // 0: whatever it is
}

func (p WorkspacePatch) check() error {
	if err := checkSlug("body.slug", p.Slug); err != nil {
		return err
	}
	if n := p.Name; n.Present && !n.Null {
		if err := checkName("body.name", n.Value, maxDisplayName); err != nil {
			return err
		}
	}
	if r := p.Retention; r.Present && !r.Null && (r.Value < 1 || r.Value > maxRetention) {
		return invalid("body.retention_days", fmt.Sprintf("1 to %d, or null to keep mail", maxRetention))
	}
	if m := p.MaxBytes; m.Present && !m.Null && (m.Value < MinEmailBytes || m.Value > MaxEmailBytes) {
		return invalid("body.max_message_bytes", fmt.Sprintf("%d to %d, or null for the most", MinEmailBytes, MaxEmailBytes))
	}
	if z := p.Timezone; z.Present && !z.Null && !zoneShaped(z.Value) {
		return invalid("body.timezone", "a name of the IANA time zone database", "Send a name such as Europe/Madrid.")
	}
	return nil
}

// zoneShaped holds for what can be the name of a time zone. Whether there is one, the database of whoever reads it knows: ours would
// be another each month.
func zoneShaped(s string) bool {
	const set = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_+-"
	return s != "" && len(s) <= 64 && strings.Trim(s, set) == "" && !strings.Contains(s, "//") && strings.Trim(s, "/") == s
}

// apply changes a workspace or makes one. Nothing of it destroys: the retention is that of inboxes to come.
func (p WorkspacePatch) apply(a Actor, w *Workspace, id string, d Deps) error {
	next := *w
	if w.Version == 0 {
		next = Workspace{ID: id, Organization: a.Organization, Slug: p.Slug, CreatedAt: d.now()}
	}
	if p.IfVersion != 0 && p.IfVersion != w.Version {
		return staleVersion(w.Version, "workspaces_list")
	}
	if next.Name = p.Name.or(w.Name); next.Name == "" {
		next.Name = p.Slug
	}
	next.Retention, next.Timezone, next.MaxBytes = p.Retention.or(w.Retention), p.Timezone.or(w.Timezone), p.MaxBytes.or(w.MaxBytes)
	if next == *w {
		return nil
	}
	next.UpdatedAt, next.Version = d.now(), w.Version+1
	*w = next
	return nil
}

// Upsert creates a workspace or changes the one that is there; created tells which. Grants of all workspaces reach a new one within
// 30 seconds.
func (s *Workspaces) Upsert(ctx context.Context, a Actor, p WorkspacePatch) (w Workspace, created bool, err error) {
	if err := a.organizationRole(RoleOwner); err != nil {
		return Workspace{}, false, err
	}
	if err := p.check(); err != nil {
		return Workspace{}, false, err
	}
	id, err := NewID("ws", s.d.now(), s.d.Rand)
	if err != nil {
		return Workspace{}, false, err
	}
	act, err := s.d.organizationAct(a)
	if err != nil {
		return Workspace{}, false, err
	}
	w, err = s.d.Organizations.UpdateWorkspace(ctx, a.Organization, p.Slug, act, func(w *Workspace) error {
		created = w.Version == 0
		return p.apply(a, w, id, s.d)
	})
	switch {
	case errors.Is(err, ErrTooManyWorkspaces):
		return Workspace{}, false, apperr.New(apperr.Conflict, "too_many_workspaces", "Your organization has as many workspaces as it can have.",
			"Use one that is there: workspaces_list.").Because(err)
	case err != nil:
		return Workspace{}, false, fmt.Errorf("change workspace %s: %w", p.Slug, err)
	}
	return w, created, nil
}
