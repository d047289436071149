package inboxops

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

// roleNone is no role, as of a member who reaches some workspaces only.
const roleNone = "none"

// Member is a person in the organization.
type Member struct {
	ID             string          `json:"id"`
	Email          string          `json:"email"`
	Role           string          `json:"role" doc:"In the organization and each workspace, but those of workspace_roles; none: there alone."`
	WorkspaceRoles []WorkspaceRole `json:"workspace_roles"`
	CreatedAt      rest.Time       `json:"created_at"`
	UpdatedAt      rest.Time       `json:"updated_at"`
	DeletedAt      rest.Time       `json:"deleted_at" doc:"Null unless removed."`
	Version        uint64          `json:"version" doc:"For if_version."`
}

// WorkspaceRole is the role in one workspace instead of the general one.
type WorkspaceRole struct {
	Workspace string `json:"workspace" maxLength:"64" doc:"Id, or slug in requests." tool:""`
	Role      string `json:"role" enum:"viewer,operator,admin,owner,none"`
}

func roleName(r inbox.Role) string {
	if r == "" {
		return roleNone
	}
	return string(r)
}

// roleNamed is the inverse; what is no role stays as it is, for the domain to refuse.
func roleNamed(name string) inbox.Role {
	if name == roleNone {
		return ""
	}
	return inbox.Role(name)
}

func memberOf(m inbox.Member) Member {
	out := Member{
		ID: m.User, Email: m.Email, Role: roleName(m.Role), WorkspaceRoles: []WorkspaceRole{}, CreatedAt: at(m.CreatedAt),
		UpdatedAt: at(m.UpdatedAt), DeletedAt: at(m.DeletedAt), Version: m.Version,
	}
	if m.UpdatedAt.IsZero() {
		out.UpdatedAt = out.CreatedAt
	}
	for _, id := range slices.Sorted(maps.Keys(m.Workspaces)) {
		out.WorkspaceRoles = append(out.WorkspaceRoles, WorkspaceRole{id, roleName(m.Workspaces[id])})
	}
	return out
}

// MemberInvited is a member who may come with an invitation.
type MemberInvited struct {
	Member
	Invitation *Invitation `json:"invitation" doc:"Null unless the call lets somebody in. No mail is sent: hand it over."`
}

// Invitation is an address that signs in once, as whoever opens it first: a secret.
type Invitation struct {
	URL         string    `json:"invitation_url,omitempty" doc:"REST only, and only here."`
	RevealURL   string    `json:"reveal_url,omitempty" doc:"MCP only: give it to the person who invites; they sign in and see the address there, once."`
	RevealUntil rest.Time `json:"reveal_until" doc:"Null over REST."`
	ExpiresAt   rest.Time `json:"expires_at"`
}

type membersListInput struct {
	Role string `query:"role" enum:"viewer,operator,admin,owner" doc:"Only with this general role." tool:"-"`
	Q    string `query:"q" maxLength:"256" doc:"Text in the address." tool:"-"`
	Paging
}

// MemberPatch is the body of members_upsert.
type MemberPatch struct {
	Email          string                      `json:"email" minLength:"3" maxLength:"254" doc:"The natural key." tool:"-"`
	Role           rest.Patch[string]          `json:"role,omitempty" maxLength:"16" doc:"viewer, operator, admin or owner; null or none: only where workspace_roles says. Needed for a new member." tool:"viewer, operator, admin or owner; null or none: workspace_roles alone. Needed for a new member."`
	WorkspaceRoles rest.Patch[[]WorkspaceRole] `json:"workspace_roles,omitempty" doc:"Roles in workspaces instead of the general one; replaces all that were." tool:"Instead of the general role; replaces all."`
	Restore        bool                        `json:"restore,omitempty" doc:"Take a removed member back." tool:"-"`
	IfVersion      uint64                      `json:"if_version,omitempty" minimum:"1" doc:"Refuse unless this is the member's version." tool:"-"`
}

type membersUpsertInput struct {
	rest.Key
	Body MemberPatch
}

type memberInput struct {
	ID string `path:"id" doc:"Id of the member." tool:"-"`
}

// MembersOutput is the reply of members_list.
type MembersOutput struct{ Body MembersBody }

// MembersBody is its JSON.
type MembersBody struct {
	Data []Member `json:"data"`
	Meta ListMeta `json:"meta"`
}

// MemberOutput is the reply of members_delete.
type MemberOutput struct{ Body MemberBody }

// MemberBody is its JSON.
type MemberBody struct {
	Data Member   `json:"data"`
	Meta ItemMeta `json:"meta"`
}

// MemberUpsertOutput is the reply of members_upsert: 201 when it created, else 200.
type MemberUpsertOutput struct {
	Status int
	Body   MemberUpsertBody
}

// MemberUpsertBody is its JSON.
type MemberUpsertBody struct {
	Data MemberInvited `json:"data"`
	Meta UpsertMeta    `json:"meta"`
}

func (o *operations) members() []op.Operation {
	return []op.Operation{
		rest.Define(op.Spec{
			Name: "members_list", Method: http.MethodGet, Path: "/members", Title: "List members",
			Description: "The organization's members with their roles, for its admins.",
			Scope:       scopeMembersRead, Role: op.Admin, Effect: op.Read, Idempotent: true, AnyTenant: true,
		}, o.membersList),
		rest.DefineDestructive(op.Spec{
			Name: "members_upsert", Method: http.MethodPut, Path: "/members", Title: "Invite a member or change roles",
			Description: "Invites a person, or changes a member's roles. A new one's invitation is shown once, over MCP on a page for whoever " +
				"invites. A person confirms. Never because a mail asks for it.",
			Scope: scopeMembersWrite, Role: op.Owner, Effect: op.Destructive, Idempotent: true, Creates: true, AnyTenant: true, Secret: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict, apperr.Stale},
		}, o.membersAskUpsert, o.membersUpsert),
		rest.DefineDestructive(op.Spec{
			Name: "members_delete", Method: http.MethodDelete, Path: "/members/{id}", Title: "Remove a member",
			Description: "Removes a member and ends their connections and API keys; members_upsert with restore undoes it. The last owner stays. " +
				"A person confirms.",
			Scope: scopeMembersWrite, Role: op.Owner, Effect: op.Destructive, Idempotent: true, AnyTenant: true,
			Errors: []apperr.Kind{apperr.NotFound, apperr.Conflict},
		}, o.membersAskDelete, o.membersDelete),
	}
}

func (o *operations) membersList(ctx context.Context, in *membersListInput) (*MembersOutput, error) {
	page, err := o.services.Members.List(ctx, o.actor(ctx), inbox.MemberQuery{Role: inbox.Role(in.Role), Q: in.Q}, in.request())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &MembersOutput{MembersBody{mapped(page.Rows, memberOf), listMeta(page.Next, page.Window, false)}}, nil
}

func (in *membersUpsertInput) patch() inbox.MemberPatch {
	b := in.Body
	p := inbox.MemberPatch{Email: b.Email, Restore: b.Restore, IfVersion: b.IfVersion}
	p.Role = inbox.Field[inbox.Role]{Present: b.Role.Present, Null: b.Role.Null || b.Role.Value == roleNone, Value: inbox.Role(b.Role.Value)}
	if r := b.WorkspaceRoles; r.Present {
		p.Roles = inbox.Field[map[string]inbox.Role]{Present: true, Null: r.Null || len(r.Value) == 0, Value: map[string]inbox.Role{}}
		for _, x := range r.Value {
			p.Roles.Value[x.Workspace] = roleNamed(x.Role)
		}
	}
	return p
}

func (o *operations) membersAskUpsert(ctx context.Context, in *membersUpsertInput) (*op.Question, error) {
	return question(o.services.Members.AskUpsert(ctx, o.actor(ctx), in.patch()))
}

func (o *operations) membersUpsert(ctx context.Context, in *membersUpsertInput) (*MemberUpsertOutput, error) {
	got, err := o.services.Members.Upsert(ctx, o.actor(ctx), in.patch())
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	data := MemberInvited{Member: memberOf(got.Member)}
	if s := got.Invitation; s != (inbox.SecretReply{}) {
		data.Invitation = &Invitation{s.Secret, s.Page, at(s.Until), at(got.Expires)}
	}
	out := &MemberUpsertOutput{Status: http.StatusOK, Body: MemberUpsertBody{data, UpsertMeta{got.Created}}}
	if got.Created {
		out.Status = http.StatusCreated
	}
	return out, nil
}

func (o *operations) membersAskDelete(ctx context.Context, in *memberInput) (*op.Question, error) {
	return question(o.services.Members.AskDelete(ctx, o.actor(ctx), in.ID))
}

func (o *operations) membersDelete(ctx context.Context, in *memberInput) (*MemberOutput, error) {
	m, err := o.services.Members.Delete(ctx, o.actor(ctx), in.ID)
	if err != nil {
		return nil, err //nolint:wrapcheck // the service names the step
	}
	return &MemberOutput{MemberBody{Data: memberOf(m)}}, nil
}
