package inbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Members are the operations on members.
type Members struct{ d Deps }

// maxRoles bounds the roles that a member has in workspaces instead of the general one.
const maxRoles = 200

// MemberQuery filters a list of members.
type MemberQuery struct {
	Role Role
	Q    string // in the address
}

// MemberPage is one page of members.
type MemberPage struct {
	Rows   []Member
	Next   string  // cursor
	Window *Window // nil when the keys serve the list
}

// List returns the members of the organization by id.
func (s *Members) List(ctx context.Context, a Actor, q MemberQuery, p PageRequest) (MemberPage, error) {
	limit, err := p.limit()
	if err != nil {
		return MemberPage{}, err
	}
	if err := a.organizationRole(RoleAdmin); err != nil {
		return MemberPage{}, err
	}
	if q.Role != "" && !q.Role.Valid() {
		return MemberPage{}, invalid("query.role", "viewer, operator, admin or owner")
	}
	if err := checkFilter("query.q", q.Q); err != nil {
		return MemberPage{}, err
	}
	c := newCursors(s.d.Cursors, a, "members_list", q)
	after, err := c.open(p.Cursor)
	if err != nil {
		return MemberPage{}, err
	}
	l := lister[Member]{
		after: after, limit: limit, key: func(m *Member) string { return m.User },
		read: func(ctx context.Context, after string, n int) ([]Member, string, error) {
			return s.d.Members.MembersPage(ctx, MemberRange{a.Organization, after, n})
		},
	}
	if needle := strings.ToLower(q.Q); q.Role != "" || needle != "" {
		l.match = func(m *Member) bool { return (q.Role == "" || m.Role == q.Role) && contains(m.Email, needle) }
	}
	rows, next, err := l.collect(ctx)
	if err != nil {
		return MemberPage{}, fmt.Errorf("list members of %s: %w", a.Organization, err)
	}
	page := MemberPage{Rows: rows}
	if l.match != nil {
		page.Window = &Window{Examined: l.examined, Complete: next == ""}
	}
	page.Next, err = c.seal(next)
	return page, err
}

// MemberPatch is what an upsert sets: a merge-patch of the member with this address.
type MemberPatch struct {
	Email     string
	Role      Field[Role]            // null: none, but in the workspaces that are named; needed on creation
	Roles     Field[map[string]Role] // id or slug of a workspace -> role there instead, empty: no access; null: the general role everywhere
	Restore   bool                   // take a removed member back
	IfVersion uint64                 // 0: whatever it is
}

// normal checks the patch and puts it into its one spelling.
func (s *Members) normal(ctx context.Context, a Actor, p MemberPatch) (MemberPatch, error) {
	var err error
	if p.Email, err = NormalEmail(p.Email); err != nil {
		return p, err
	}
	if r := p.Role; r.Present && !r.Null && !r.Value.Valid() {
		return p, invalid("body.role", "viewer, operator, admin, owner, or null for none")
	}
	if f := p.Roles; !f.Present || f.Null || len(f.Value) == 0 {
		return p, nil
	}
	if len(p.Roles.Value) > maxRoles {
		return p, invalid("body.workspace_roles", fmt.Sprintf("at most %d", maxRoles))
	}
	all, err := s.d.Organizations.Workspaces(ctx, a.Organization)
	if err != nil {
		return p, fmt.Errorf("workspaces of %s: %w", a.Organization, err)
	}
	roles := map[string]Role{}
	for ref, role := range p.Roles.Value {
		i := slices.IndexFunc(all, func(w Workspace) bool { return w.ID == ref || w.Slug == ref })
		switch {
		case i < 0:
			return p, apperr.New(apperr.NotFound, "", "There is no such workspace.", "Call workspaces_list for the workspaces of the organization.")
		case role != "" && !role.Valid():
			return p, invalid("body.workspace_roles", "a role of viewer, operator, admin, owner, none")
		}
		roles[all[i].ID] = role
	}
	p.Roles.Value = roles
	return p, nil
}

// apply changes a member or makes one; access reports whether it gives or takes any.
func (p MemberPatch) apply(a Actor, m *Member, user string, now time.Time) (access bool, err error) {
	next := *m
	if m.Version == 0 {
		if !p.Role.Present {
			return false, invalid("body.role", "a role for the new member", "Send role, the least that is enough.")
		}
		next = Member{User: user, Email: p.Email, Organization: a.Organization, CreatedAt: now}
	}
	if p.IfVersion != 0 && p.IfVersion != m.Version {
		return false, staleVersion(m.Version, "members_list")
	}
	if !m.DeletedAt.IsZero() {
		if !p.Restore {
			return false, apperr.New(apperr.Conflict, "deleted_exists", "This person was a member and was removed.",
				"Repeat the call with restore true to take them back with the roles that you send now.")
		}
		next.DeletedAt, next.RestoredAt = time.Time{}, now
	}
	next.Role, next.Workspaces = p.Role.or(m.Role), p.Roles.or(m.Workspaces)
	if m.Version > 0 && m.DeletedAt.IsZero() && next.Role == m.Role && maps.Equal(next.Workspaces, m.Workspaces) {
		return false, nil
	}
	next.UpdatedAt, next.Version = now, m.Version+1
	*m = next
	return true, nil
}

// find is the member with an address, removed or not; a zero one when there is none.
func (s *Members) find(ctx context.Context, a Actor, email string) (Member, error) {
	m, err := s.d.Members.MemberByEmail(ctx, a.Organization, email)
	switch {
	case apperr.Is(err, apperr.NotFound):
		return Member{}, nil
	case errors.Is(err, ErrMemberElsewhere):
		return Member{}, memberElsewhere(err)
	case err != nil:
		return Member{}, fmt.Errorf("member by address: %w", err)
	}
	return m, nil
}

// memberTarget is what a person is asked about when somebody is invited: the natural key.
func memberTarget(email string) string { return "member:" + email }

const inviteInstead = "PUT /api/v1/members"

// invites reports whether an upsert of this member lets somebody in who is out, which makes an invitation.
func (p MemberPatch) invites(m Member) bool {
	return m.Version == 0 || !m.DeletedAt.IsZero() && p.Restore
}

// AskUpsert says what a person is asked before Upsert; nil when no access is given or taken.
func (s *Members) AskUpsert(ctx context.Context, a Actor, p MemberPatch) (*Question, error) {
	m, p, err := s.forUpsert(ctx, a, p)
	if err != nil {
		return nil, err
	}
	next := m
	access, err := p.apply(a, &next, "", s.d.now())
	if err != nil || !access {
		return nil, err
	}
	q := &Question{Values: []string{p.Email}, Targets: map[string]string{m.User: Version(m.Version)}}
	switch {
	case m.Version == 0:
		q.Text, q.Targets = "Invite {} into the organization", map[string]string{memberTarget(p.Email): absent}
	case !m.DeletedAt.IsZero():
		q.Text = "Take {} back into the organization"
	default:
		q.Text = "Change what {} may do"
	}
	all, err := s.d.Organizations.Workspaces(ctx, a.Organization)
	if err != nil {
		return nil, fmt.Errorf("workspaces of %s: %w", a.Organization, err)
	}
	q.Text += ": "
	q.roles(next, all)
	if m.Version > 0 && m.DeletedAt.IsZero() {
		q.Text += "; until now: "
		q.roles(m, all)
	}
	return q, nil
}

// roles names what a member may do where.
func (q *Question) roles(m Member, all []Workspace) {
	word := func(r Role) string {
		if r == "" {
			return "no access"
		}
		return string(r)
	}
	q.Text += "{}"
	q.Values = append(q.Values, word(m.Role))
	for _, w := range all {
		if r, ok := m.Workspaces[w.ID]; ok {
			q.Text += ", in {} {}"
			q.Values = append(q.Values, w.Slug, word(r))
		}
	}
}

// forUpsert is what every upsert needs to know.
func (s *Members) forUpsert(ctx context.Context, a Actor, p MemberPatch) (Member, MemberPatch, error) {
	if err := a.organizationRole(RoleOwner); err != nil {
		return Member{}, p, err
	}
	p, err := s.normal(ctx, a, p)
	if err != nil {
		return Member{}, p, err
	}
	m, err := s.find(ctx, a, p.Email)
	if err == nil && p.invites(m) {
		err = a.mayReceive(inviteInstead)
	}
	return m, p, err
}

// Upserted is a member with the invitation that was made, if one was.
type Upserted struct {
	Member
	Created    bool
	Invitation SecretReply // the address
	Expires    time.Time   // of the invitation
}

// Upsert invites somebody, takes a removed member back, or changes roles. Who is let in gets an invitation, an address that signs
// in once: no mail of ours leaves, so it is the caller's to hand over. Connections and keys of a removed member stay ended.
func (s *Members) Upsert(ctx context.Context, a Actor, p MemberPatch) (out Upserted, err error) {
	for range upsertAttempts {
		out, err = s.upsertOnce(ctx, a, p)
		if !errors.Is(err, ErrMemberElsewhere) {
			return out, err
		}
	}
	return Upserted{}, memberElsewhere(err)
}

// upsertOnce returns ErrMemberElsewhere when the address became somebody's between reading and creating.
func (s *Members) upsertOnce(ctx context.Context, a Actor, p MemberPatch) (Upserted, error) {
	current, p, err := s.forUpsert(ctx, a, p)
	if err != nil {
		return Upserted{}, err
	}
	user := current.User
	if current.Version == 0 {
		if user, err = NewID("user", s.d.now(), s.d.Rand); err != nil {
			return Upserted{}, err
		}
	} else if !current.DeletedAt.IsZero() && p.Restore {
		// Before they are back: nothing that they had approved may come back with them, whatever became of the removal.
		if err := s.disconnect(ctx, a, user); err != nil {
			return Upserted{}, err
		}
	}
	var out Upserted
	m, err := s.update(ctx, a, user, func(m *Member) error {
		out.Created = m.Version == 0
		target, state := user, Version(m.Version)
		if out.Created {
			target, state = memberTarget(p.Email), absent
		}
		access, err := p.apply(a, m, user, s.d.now())
		if err != nil {
			return err
		}
		return a.confirmState(target, state, access)
	})
	if err != nil {
		return Upserted{}, err
	}
	out.Member = m
	if p.invites(current) {
		out.Invitation, out.Expires, err = s.invite(ctx, a, m)
	}
	return out, err
}

func (s *Members) invite(ctx context.Context, a Actor, m Member) (SecretReply, time.Time, error) {
	address, until, err := s.d.SignIns.Invite(ctx, a.Organization, m.User, a.auditActor())
	if err != nil {
		return SecretReply{}, time.Time{}, fmt.Errorf("invite %s: %w", m.User, err)
	}
	reply, err := s.d.hand(ctx, a, "invitation of "+m.Email, address)
	return reply, until, err
}

func (s *Members) disconnect(ctx context.Context, a Actor, user string) error {
	if err := s.d.SignIns.Disconnect(ctx, a.Organization, user, a.auditActor()); err != nil {
		return fmt.Errorf("disconnect %s: %w", user, err)
	}
	return s.d.revokeAllOf(ctx, a, user)
}

// AskDelete says what a person is asked before Delete; nil when the member is removed already.
func (s *Members) AskDelete(ctx context.Context, a Actor, user string) (*Question, error) {
	m, err := s.one(ctx, a, user)
	if err != nil || !m.DeletedAt.IsZero() {
		return nil, err
	}
	role := string(m.Role)
	if role == "" {
		role = "in some workspaces only"
	}
	return &Question{
		Text: "Remove {} ({}) from the organization and end their connections and API keys", Values: []string{m.Email, role},
		Targets: map[string]string{m.User: Version(m.Version)},
	}, nil
}

func (s *Members) one(ctx context.Context, a Actor, user string) (Member, error) {
	if err := a.organizationRole(RoleOwner); err != nil {
		return Member{}, err
	}
	if !validID("user", user) {
		return Member{}, NoMember()
	}
	m, err := s.d.Members.Member(ctx, a.Organization, user)
	if err != nil {
		return Member{}, fmt.Errorf("member %s: %w", user, err)
	}
	return m, nil
}

// Delete removes a member: they are out within 30 seconds, and their connections and keys end for good. Repeating it ends what the
// first time, if it broke off, left. An upsert with Restore takes them back.
func (s *Members) Delete(ctx context.Context, a Actor, user string) (Member, error) {
	if _, err := s.one(ctx, a, user); err != nil {
		return Member{}, err
	}
	m, err := s.update(ctx, a, user, func(m *Member) error {
		if m.Version == 0 {
			return NoMember()
		}
		if err := a.confirm(m.User, m.Version, m.DeletedAt.IsZero()); err != nil {
			return err
		}
		if m.DeletedAt.IsZero() {
			m.DeletedAt = s.d.now()
			m.UpdatedAt, m.Version = m.DeletedAt, m.Version+1
		}
		return nil
	})
	if err != nil {
		return Member{}, err
	}
	return m, s.disconnect(ctx, a, user)
}

func (s *Members) update(ctx context.Context, a Actor, user string, change func(*Member) error) (Member, error) {
	act, err := s.d.organizationAct(a)
	if err != nil {
		return Member{}, err
	}
	m, err := s.d.Members.UpdateMember(ctx, a.Organization, user, act, change)
	switch {
	case errors.Is(err, ErrLastOwner):
		return Member{}, lastOwner(err)
	case err != nil:
		return Member{}, fmt.Errorf("change member %s: %w", user, err)
	}
	return m, nil
}
