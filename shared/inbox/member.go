package inbox

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// OrganizationStore knows organizations.
type OrganizationStore interface {
	// Workspaces lists those of an organization by id.
	Workspaces(ctx context.Context, organization string) ([]Workspace, error)
	// UpdateWorkspace works like InboxStore.UpdateInbox for the workspace with this slug, but that change is called with a zero
	// workspace when there is none and makes it by giving it an id and a version. ErrTooManyWorkspaces.
	UpdateWorkspace(ctx context.Context, organization, slug string, act Act, change func(*Workspace) error) (Workspace, error)
}

// MemberStore keeps the members of organizations. Everything is found under the organization, so another one's id is a missing one.
type MemberStore interface {
	// MembersPage reads one page by id, behind r.After, without removed ones; next is empty at the end.
	MembersPage(ctx context.Context, r MemberRange) (rows []Member, next string, err error)
	// Member finds one, removed or not; not_found when there is none.
	Member(ctx context.Context, organization, user string) (Member, error)
	// MemberByEmail finds one, removed or not, by address in its normal form; not_found when there is none. ErrMemberElsewhere when the
	// address is a member's of another organization.
	MemberByEmail(ctx context.Context, organization, email string) (Member, error)
	// UpdateMember works like InboxStore.UpdateInbox, but that change is called with a zero member when there is none with this id and
	// makes it by giving it a version. ErrLastOwner when no owner would be left, ErrMemberElsewhere when the address is a member's
	// of any organization by now.
	UpdateMember(ctx context.Context, organization, user string, act Act, change func(*Member) error) (Member, error)
}

// MemberRange is one page of an organization's members.
type MemberRange struct {
	Organization string
	After        string
	Limit        int
}

// What a store answers when a change of members or workspaces can't be.
var (
	// ErrLastOwner: somebody must be left who can let others in.
	ErrLastOwner = errors.New("inbox: the last owner")
	// ErrMemberElsewhere: a person belongs to one organization.
	ErrMemberElsewhere = errors.New("inbox: the address is a member's already")
	// ErrTooManyWorkspaces: the organization has as many as it can.
	ErrTooManyWorkspaces = errors.New("inbox: too many workspaces")
)

// SignIns is what lets people in: the connections that they approved, and links.
type SignIns interface {
	// Disconnect ends every grant that a person approved. by is whose doing it is. Repeating it is fine.
	Disconnect(ctx context.Context, organization, person string, by AuditActor) error
	// Invite makes an address that signs a person in, once, until a time. Whoever reads it is that person: it is a secret.
	Invite(ctx context.Context, organization, person string, by AuditActor) (address string, until time.Time, err error)
}

// NoMember is the one answer for a member that is missing, removed or another organization's.
func NoMember() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is no such member.", "Call members_list for the members of your organization.")
}

func lastOwner(cause error) *apperr.Error {
	return apperr.New(apperr.Conflict, "last_owner", "An organization keeps at least one owner, and this is the last.",
		"Make another member an owner first (members_upsert with role owner).").Because(cause)
}

// memberElsewhere says nothing of where: another organization's members are not to be found out.
func memberElsewhere(cause error) *apperr.Error {
	return apperr.New(apperr.Conflict, "taken", "This address can't be invited: it belongs to somebody who is a member already.",
		"Invite the person under another address: a person belongs to one organization.").Because(cause)
}

// organizationRole refuses who has not this role in the organization itself: an owner of one workspace, or a grant of one, does not
// decide about the others.
func (a Actor) organizationRole(least Role) error {
	if a.OrganizationRole.AtLeast(least) {
		return nil
	}
	return apperr.New(apperr.Forbidden, "insufficient_role", "This needs the role "+string(least)+
		" in the organization itself, through a grant that reaches all of its workspaces.",
		"Ask an owner of the organization; an owner connects again and chooses all workspaces.")
}

// organizationAct is act for what is done to the organization itself, whichever workspace the caller named: its line is the
// organization's.
func (d Deps) organizationAct(a Actor) (Act, error) {
	a.Workspace = ""
	return d.act(a)
}

// NormalEmail validates a person's address, by which they sign in, and returns its one spelling: lower case.
func NormalEmail(email string) (string, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	at := strings.LastIndexByte(email, '@')
	if at < 1 || at == len(email)-1 || len(email) > maxAddress || strings.ContainsAny(email, " \t\r\n\x00/<>\"") || strings.ContainsFunc(email, unprintable) {
		return "", apperr.New(apperr.Invalid, "invalid_email", "This is not a person's e-mail address.",
			"Send an address such as ana@example.com.")
	}
	return email, nil
}
