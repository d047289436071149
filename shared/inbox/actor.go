package inbox

// Actor is who acts, as the services need it: already authenticated, and allowed by scope and role to call what it calls.
type Actor struct {
	Organization string
	Workspace    string // the tenant; every key is built from it
	Subject      string
	Role         Role
	ReadCodes    bool   // may read one-time codes and links; otherwise they are masked wherever they occur
	Surface      string // the door: rest or mcp
	// OrganizationRole is the role in the organization itself, for what lies beside its workspaces; empty for a grant of one of them.
	OrganizationRole Role
	By               AuditActor // as the audit names it
	Operation        string     // what it calls; with Request and Source for the audit, empty for what changes nothing
	Request          string     // id
	Source           string     // IP address, as the edge of the service knows it
	Person           bool       // not a service account or a key: somebody who can sign in and look at a page
	// Direct: the surface asks nobody before a destructive act. The zero value may not destroy: whoever makes an Actor and
	// forgets this is refused.
	Direct    bool
	Confirmed *Confirmation  // a person's yes to this one act; nil: nobody was asked
	Key       IdempotencyKey // under which it acts; zero: none
}

//nolint:gochecknoglobals // constant table
var ranks = map[Role]int{RoleViewer: 1, RoleOperator: 2, RoleAdmin: 3, RoleOwner: 4}

// Valid reports whether r is one of the four roles.
func (r Role) Valid() bool { return ranks[r] > 0 }

// AtLeast reports whether r includes other. A role that is not one of the four includes nothing.
func (r Role) AtLeast(other Role) bool { return r.Valid() && ranks[r] >= ranks[other] }

// Access is one workspace that a person reaches, with the role there.
type Access struct {
	Workspace Workspace
	Role      Role
}

// Principal is a person with all that the person reaches.
type Principal struct {
	Member     Member
	Workspaces []Access // in the order of their ids
}

// RoleIn is the member's role in a workspace; empty is no access. A role named for the workspace stands instead of the
// general one, also when it is the lesser or none.
func (m Member) RoleIn(workspace string) Role {
	if r, ok := m.Workspaces[workspace]; ok {
		return r
	}
	return m.Role
}
