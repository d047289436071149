package inboxstore

import (
	"context"
	"errors"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

const (
	// maxMembers is as many members as one look reads.
	maxMembers = 200
	// ownerPages bounds the search for another owner, in pages of maxMembers: who is not found there does not count.
	ownerPages = 20
	memberSort = "member/"
)

func isMissing(err error) bool { return apperr.Is(err, apperr.NotFound) }

// formerMemberKey leads from the address of a removed member to the person: the address itself is free for other organizations.
func formerMemberKey(org, email string) store.Key { return key("org/"+org, "former-member/"+email) }

// dated gives a member that was stored before members had versions its first.
func dated(m inbox.Member) inbox.Member {
	m.Version = max(m.Version, 1)
	return m
}

// Members lists the first members of an organization by id.
func (s *Store) Members(ctx context.Context, org string) ([]inbox.Member, error) {
	rows, err := listOrg(ctx, s, org, memberSort, maxMembers, decoded[inbox.Member])
	return rows, wrapIf("members of "+org, err)
}

// MembersPage implements inbox.MemberStore.
func (s *Store) MembersPage(ctx context.Context, r inbox.MemberRange) ([]inbox.Member, string, error) {
	from, to := store.Prefix(memberSort)
	q := store.Query{Table: store.Core, Partition: "org/" + r.Organization, From: from, To: to, Limit: r.Limit}
	if r.After != "" {
		q.After = memberSort + r.After
	}
	page, err := s.engine.Query(ctx, q)
	if err != nil {
		return nil, "", failed("members", err)
	}
	rows, err := decodeAll[inbox.Member](page.Items)
	for i := range rows {
		rows[i] = dated(rows[i])
	}
	return rows, strings.TrimPrefix(page.Next, memberSort), wrapIf("members", err)
}

// Member implements inbox.MemberStore.
func (s *Store) Member(ctx context.Context, org, user string) (inbox.Member, error) {
	m, _, err := s.member(ctx, org, user)
	if err == nil && m.Version == 0 {
		return inbox.Member{}, inbox.NoMember()
	}
	return m, err
}

// member finds one, removed or not. None, and another organization's, is a zero one.
func (s *Store) member(ctx context.Context, org, user string) (inbox.Member, uint64, error) {
	m, revision, ok, err := find[inbox.Member](ctx, s, memberKey(user))
	if err != nil {
		return inbox.Member{}, 0, failed("member "+user, err)
	}
	if !ok || m.Organization != org {
		return inbox.Member{}, 0, nil
	}
	return dated(m), revision, nil
}

// MemberKnown reports whether somebody is, or was, a member of any organization.
func (s *Store) MemberKnown(ctx context.Context, user string) (bool, error) {
	_, _, ok, err := find[inbox.Member](ctx, s, memberKey(user))
	return ok, wrapIf("member "+user, err)
}

// MemberByEmail implements inbox.MemberStore.
func (s *Store) MemberByEmail(ctx context.Context, org, email string) (inbox.Member, error) {
	id, _, ok, err := find[idRow](ctx, s, userEmailKey(email))
	if err != nil {
		return inbox.Member{}, failed("member by address", err)
	}
	if ok {
		m, err := s.Member(ctx, org, id.ID)
		if isMissing(err) {
			return inbox.Member{}, inbox.ErrMemberElsewhere
		}
		return m, err
	}
	id, _, ok, err = find[idRow](ctx, s, formerMemberKey(org, email))
	if err != nil {
		return inbox.Member{}, failed("former member by address", err)
	}
	if !ok {
		return inbox.Member{}, inbox.NoMember()
	}
	return s.Member(ctx, org, id.ID)
}

// UpdateMember implements inbox.MemberStore.
func (s *Store) UpdateMember(ctx context.Context, org, user string, act inbox.Act, change func(*inbox.Member) error) (inbox.Member, error) {
	for range attempts {
		old, revision, err := s.member(ctx, org, user)
		if err != nil {
			return inbox.Member{}, err
		}
		if err := s.unused(ctx, act); err != nil {
			return inbox.Member{}, err
		}
		next := old
		if err := change(&next); err != nil {
			return inbox.Member{}, err
		}
		if next.Version == old.Version {
			return old, nil
		}
		if err := checkMember(next); err != nil {
			return inbox.Member{}, err
		}
		b, address, err := s.memberOps(ctx, old, next, revision)
		if err != nil {
			return inbox.Member{}, err
		}
		b.act(act, user, existing(old, old.Version), next)
		err = s.commit(ctx, b)
		switch at := conflictAt(err); {
		case err == nil:
			return next, nil
		case !errors.Is(err, store.ErrConflict):
			return inbox.Member{}, failed("update member "+user, err)
		case address && at == 0:
			return inbox.Member{}, inbox.ErrMemberElsewhere
		}
	}
	return inbox.Member{}, inbox.Busy()
}

// owns reports whether a member can let others in.
func owns(m inbox.Member) bool {
	return m.Version > 0 && m.DeletedAt.IsZero() && m.Role == inbox.RoleOwner
}

// memberOps writes a member with its copy and the rows that its address is found by; address tells that the first op takes the address.
func (s *Store) memberOps(ctx context.Context, old, next inbox.Member, revision uint64) (b *batch, address bool, err error) {
	b = &batch{}
	was, is := old.Version > 0 && old.DeletedAt.IsZero(), next.DeletedAt.IsZero()
	former := formerMemberKey(next.Organization, next.Email)
	switch {
	case is && !was:
		b.create(userEmailKey(next.Email), idRow{next.User})
		if old.Version > 0 {
			b.drop(former, store.Condition{})
		}
	case was && !is:
		b.drop(userEmailKey(next.Email), store.Exists())
		b.set(former, idRow{next.User})
	}
	b.upsert(memberKey(next.User), revision, next)
	if is {
		b.set(orgKey(next.Organization, memberSort+next.User), next)
	} else {
		b.drop(orgKey(next.Organization, memberSort+next.User), store.Condition{})
	}
	b.check(orgKey(next.Organization, "meta"), store.Exists())
	if owns(old) && !owns(next) {
		// Another owner has to be there, and to be one still when this is written: of two who take each other's role one fails.
		other, read, err := s.otherOwner(ctx, next.Organization, next.User)
		if err != nil {
			return nil, false, err
		}
		b.check(memberKey(other), store.RevisionIs(read))
	}
	return b, is && !was, nil
}

// otherOwner finds an owner beside one, with the revision of the row that says so.
func (s *Store) otherOwner(ctx context.Context, org, user string) (string, uint64, error) {
	after := ""
	for range ownerPages {
		rows, next, err := s.MembersPage(ctx, inbox.MemberRange{Organization: org, After: after, Limit: maxMembers})
		if err != nil {
			return "", 0, err
		}
		for _, row := range rows {
			if row.User == user || !owns(row) {
				continue
			}
			m, revision, err := s.member(ctx, org, row.User)
			if err != nil {
				return "", 0, err
			}
			if owns(m) {
				return m.User, revision, nil
			}
		}
		if next == "" {
			break
		}
		after = next
	}
	return "", 0, inbox.ErrLastOwner
}
