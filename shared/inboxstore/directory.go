package inboxstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// Bounds of an organization: each is read as one page.
const (
	MaxWorkspaces = 200
	MaxDomains    = 100
)

type orgRow struct {
	inbox.Organization
	Workspaces int `json:"workspaces"` // how many
	Domains    int `json:"domains"`    // how many
}

type idRow struct {
	ID string `json:"id"`
}

type domainRow struct {
	Domain  string    `json:"domain"`
	AddedAt time.Time `json:"added_at"`
}

// CreateOrganization stores a new organization. Repeating it with the same id and slug is fine; another id or slug that is
// taken is a conflict.
func (s *Store) CreateOrganization(ctx context.Context, o inbox.Organization) error {
	if err := checkNames("organization", "org", o.ID, o.Slug, o.Name); err != nil {
		return err
	}
	var b batch
	b.create(orgSlugKey(o.Slug), idRow{o.ID})
	b.create(orgKey(o.ID, "meta"), orgRow{Organization: o})
	err := s.commit(ctx, &b)
	if !errors.Is(err, store.ErrConflict) {
		return wrapIf("create organization "+o.ID, err)
	}
	if found, err := s.OrganizationBySlug(ctx, o.Slug); err == nil && found.ID == o.ID {
		return nil
	}
	return taken("organization", "id or slug")
}

// OrganizationBySlug finds an organization.
func (s *Store) OrganizationBySlug(ctx context.Context, slug string) (inbox.Organization, error) {
	if !inbox.ValidSlug(slug) {
		return inbox.Organization{}, noOrganization()
	}
	id, _, err := get[idRow](ctx, s, orgSlugKey(slug))
	if err != nil {
		return inbox.Organization{}, missing("organization by slug", err, noOrganization())
	}
	return s.Organization(ctx, id.ID)
}

// Organization finds an organization by id.
func (s *Store) Organization(ctx context.Context, id string) (inbox.Organization, error) {
	row, _, err := s.organization(ctx, id)
	return row.Organization, err
}

func (s *Store) organization(ctx context.Context, id string) (orgRow, uint64, error) {
	row, revision, err := get[orgRow](ctx, s, orgKey(id, "meta"))
	if err != nil {
		return orgRow{}, 0, missing("organization "+id, err, noOrganization())
	}
	return row, revision, nil
}

// CreateWorkspace stores a new workspace of an organization that exists. Repeating it with the same id and slug is fine.
func (s *Store) CreateWorkspace(ctx context.Context, w inbox.Workspace) error {
	if err := checkNames("workspace", "ws", w.ID, w.Slug, w.Name); err != nil {
		return err
	}
	return s.grow(ctx, w.Organization, func(row *orgRow, b *batch) (bool, error) {
		key := orgKey(w.Organization, "ws-slug/"+w.Slug)
		guard, _, ok, err := find[idRow](ctx, s, key)
		if err != nil || ok {
			return ok && guard.ID == w.ID, orElse(err, taken("workspace", "slug"))
		}
		if row.Workspaces++; row.Workspaces > MaxWorkspaces {
			return false, full("workspaces", MaxWorkspaces)
		}
		b.create(key, idRow{w.ID})
		b.create(orgKey(w.Organization, "ws/"+w.ID), w)
		return false, nil
	})
}

// AddDomain assigns a mail domain to an organization and returns it as it is stored: the A-label in lower case. A domain
// belongs to one organization for good. Repeating it is fine.
func (s *Store) AddDomain(ctx context.Context, org, domain string) (string, error) {
	domain, err := NormalDomain(domain)
	if err != nil {
		return "", err
	}
	err = s.grow(ctx, org, func(row *orgRow, b *batch) (bool, error) {
		guard, _, ok, err := find[idRow](ctx, s, domainKey(domain))
		if err != nil || ok {
			return ok && guard.ID == org, orElse(err, taken("domain", "name"))
		}
		if row.Domains++; row.Domains > MaxDomains {
			return false, full("domains", MaxDomains)
		}
		b.create(domainKey(domain), idRow{org})
		b.create(orgKey(org, "domain/"+domain), domainRow{domain, s.now().UTC()})
		return false, nil
	})
	return domain, err
}

// grow adds to an organization under its revision, so that its bounds hold exactly. add tells true when what it would add is
// there already.
func (s *Store) grow(ctx context.Context, org string, add func(*orgRow, *batch) (bool, error)) error {
	for range attempts {
		row, revision, err := s.organization(ctx, org)
		if err != nil {
			return err
		}
		var b batch
		done, err := add(&row, &b)
		if done {
			return nil
		}
		if err != nil {
			return failed("add to organization "+org, err)
		}
		b.replace(orgKey(org, "meta"), revision, row)
		err = s.commit(ctx, &b)
		if at := conflictAt(err); at > 0 && at < len(b.ops)-1 {
			return taken("thing", "id") // its own row exists, under another slug
		}
		if !errors.Is(err, store.ErrConflict) {
			return wrapIf("add to organization "+org, err)
		}
	}
	return inbox.Busy()
}

// NormalDomain is inbox.NormalDomain.
func NormalDomain(domain string) (string, error) { return inbox.NormalDomain(domain) }

// Domains implements inbox.DomainStore.
func (s *Store) Domains(ctx context.Context, org string) ([]string, error) {
	rows, err := listOrg(ctx, s, org, "domain/", MaxDomains, decoded[domainRow])
	if err != nil {
		return nil, failed("domains of "+org, err)
	}
	slices.SortStableFunc(rows, func(a, b domainRow) int { return a.AddedAt.Compare(b.AddedAt) })
	domains := make([]string, 0, len(rows))
	for _, r := range rows {
		domains = append(domains, r.Domain)
	}
	return domains, nil
}

// Workspaces lists those of an organization by id.
func (s *Store) Workspaces(ctx context.Context, org string) ([]inbox.Workspace, error) {
	rows, err := listOrg(ctx, s, org, "ws/", MaxWorkspaces, func(item *store.Item) (inbox.Workspace, error) {
		w, err := s.workspaces.of(item)
		if err != nil {
			return inbox.Workspace{}, err
		}
		return *w, nil // there is nothing in one that could be shared
	})
	for i := range rows {
		rows[i].Version = max(rows[i].Version, 1) // stored before workspaces had versions
	}
	return rows, wrapIf("workspaces of "+org, err)
}

// listOrg reads the rows of a kind in an organization.
func listOrg[T any](ctx context.Context, s *Store, org, prefix string, limit int, of func(*store.Item) (T, error)) ([]T, error) {
	from, to := store.Prefix(prefix)
	rows := []T{}
	_, err := store.Fill(ctx, s.engine, store.Query{
		Table: store.Core, Partition: "org/" + org, From: from, To: to, Limit: limit,
		Each: func(item *store.Item) error {
			row, err := of(item)
			rows = append(rows, row)
			return err
		},
	}, 4)
	if err != nil {
		return nil, err //nolint:wrapcheck // callers name the step
	}
	return rows, nil
}

// decoded decodes a row of JSON.
func decoded[T any](item *store.Item) (T, error) { return store.Decode[T](*item, format) } //nolint:wrapcheck // the same

// CreateMember stores a person as a member of an organization that exists. An e-mail address belongs to one person.
// Repeating it with the same id and address writes role and workspaces anew.
func (s *Store) CreateMember(ctx context.Context, m inbox.Member) error {
	var err error
	if m.Email, err = NormalEmail(m.Email); err != nil {
		return err
	}
	if err := checkMember(m); err != nil {
		return err
	}
	guard, _, ok, err := find[idRow](ctx, s, userEmailKey(m.Email))
	if err != nil {
		return failed("member "+m.User, err)
	}
	if ok && guard.ID != m.User {
		return taken("member", "e-mail address")
	}
	var b batch
	if ok {
		b.check(userEmailKey(m.Email), store.Exists())
	} else {
		b.create(userEmailKey(m.Email), idRow{m.User})
	}
	b.check(orgKey(m.Organization, "meta"), store.Exists())
	old, revision, _, err := find[inbox.Member](ctx, s, memberKey(m.User))
	if err != nil {
		return failed("member "+m.User, err)
	}
	if revision > 0 && (old.Organization != m.Organization || old.Email != m.Email || !old.DeletedAt.IsZero()) {
		return taken("member", "id")
	}
	b.upsert(memberKey(m.User), revision, m)
	b.set(orgKey(m.Organization, "member/"+m.User), m)
	err = s.commit(ctx, &b)
	switch conflictAt(err) {
	case 0:
		return taken("member", "e-mail address")
	case 1:
		return noOrganization()
	case 2:
		return inbox.Busy()
	}
	return wrapIf("create member "+m.User, err)
}

// UserByEmail finds a person by address, of any case.
func (s *Store) UserByEmail(ctx context.Context, email string) (inbox.Member, error) {
	id, _, err := get[idRow](ctx, s, userEmailKey(strings.ToLower(strings.TrimSpace(email))))
	if errors.Is(err, store.ErrInvalid) {
		return inbox.Member{}, noMember()
	}
	if err != nil {
		return inbox.Member{}, missing("person by e-mail", err, noMember())
	}
	return s.present(ctx, id.ID)
}

// present finds somebody who is a member now.
func (s *Store) present(ctx context.Context, user string) (inbox.Member, error) {
	m, _, err := get[inbox.Member](ctx, s, memberKey(user))
	if err != nil {
		return inbox.Member{}, missing("member "+user, err, noMember())
	}
	if !m.DeletedAt.IsZero() {
		return inbox.Member{}, noMember()
	}
	return dated(m), nil
}

// Principal is what the identity layer needs of a person: two strongly consistent reads. not_found for who is no member.
func (s *Store) Principal(ctx context.Context, user string) (inbox.Principal, error) {
	m, err := s.present(ctx, user)
	if err != nil {
		return inbox.Principal{}, err
	}
	all, err := s.Workspaces(ctx, m.Organization)
	if err != nil {
		return inbox.Principal{}, err
	}
	p := inbox.Principal{Member: m}
	for _, w := range all {
		if role := m.RoleIn(w.ID); role.Valid() {
			p.Workspaces = append(p.Workspaces, inbox.Access{Workspace: w, Role: role})
		}
	}
	return p, nil
}

func checkNames(what, prefix, id, slug, name string) error {
	if !strings.HasPrefix(id, prefix+"_") || strings.ContainsAny(id, "/#\x00") || inbox.IDTime(id).IsZero() {
		return apperr.New(apperr.Invalid, "", fmt.Sprintf("The %s's id is not %s_ and a ULID.", what, prefix))
	}
	if !inbox.ValidSlug(slug) {
		return apperr.New(apperr.Invalid, "", "This can't be the slug of the "+what+".",
			"Use 1 to 63 of a-z, 0-9 and -, the first not a -.")
	}
	if name == "" || len(name) > 128 {
		return apperr.New(apperr.Invalid, "", "The "+what+" needs a name of at most 128 bytes.")
	}
	return nil
}

func checkMember(m inbox.Member) error {
	valid := m.Role == "" || m.Role.Valid()
	for _, r := range m.Workspaces {
		valid = valid && (r == "" || r.Valid())
	}
	switch {
	case !strings.HasPrefix(m.User, "user_") || inbox.IDTime(m.User).IsZero():
		return apperr.New(apperr.Invalid, "", "The person's id is not user_ and a ULID.")
	case !valid:
		return apperr.New(apperr.Invalid, "", "A role is viewer, operator, admin or owner.")
	}
	return nil
}

// NormalEmail is inbox.NormalEmail.
func NormalEmail(email string) (string, error) { return inbox.NormalEmail(email) }

// taken says what is taken and never by whom: it may be another tenant's.
func taken(what, part string) error {
	return apperr.New(apperr.Conflict, "taken", "The "+what+"'s "+part+" is taken.", "Choose another.")
}

func full(what string, limit int) error {
	return apperr.New(apperr.Conflict, "limit", fmt.Sprintf("An organization has at most %d %s.", limit, what))
}

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

func noOrganization() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is no such organization.")
}

func noMember() *apperr.Error { return apperr.New(apperr.NotFound, "", "There is no such member.") }
