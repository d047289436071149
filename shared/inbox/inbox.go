// Package inbox is the domain: organizations, workspaces, inboxes and the mail in them, the rules that hold for them and
// the services that act on them. It declares the small interfaces it consumes and knows neither HTTP, nor AWS, nor MCP, nor
// how anything is stored.
package inbox

import "time"

// Organization is a customer: it owns workspaces, members and mail domains.
type Organization struct {
	ID        string    `json:"id"` // org_...
	Slug      string    `json:"slug"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
}

// Workspace is the wall between tenants: every inbox and mail lies in exactly one.
type Workspace struct {
	ID           string    `json:"id"` // ws_...
	Organization string    `json:"organization"`
	Slug         string    `json:"slug"` // natural key within the organization
	Name         string    `json:"name"`
	Retention    int       `json:"retention_days,omitempty"`    // of inboxes that are made there and name none; 0: kept
	Timezone     string    `json:"timezone,omitempty"`          // name in the IANA database, for people; empty: UTC
	MaxBytes     int64     `json:"max_message_bytes,omitempty"` // of a mail to its inboxes; 0: MaxEmailBytes, and what a transport takes
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at,omitzero"`
	Version      uint64    `json:"version,omitempty"` // moved by operations only
}

// EmailBytes is how large a mail to the workspace's inboxes may be.
func (w Workspace) EmailBytes() int64 {
	if w.MaxBytes == 0 {
		return MaxEmailBytes
	}
	return w.MaxBytes
}

// Role is what a person may do: viewer < operator < admin < owner.
type Role string

// The roles.
const (
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
	RoleOwner    Role = "owner"
)

// Member is a person in an organization.
type Member struct {
	User         string          `json:"user"`  // user_...
	Email        string          `json:"email"` // lower case, unique
	Organization string          `json:"organization"`
	Role         Role            `json:"role"`
	Workspaces   map[string]Role `json:"workspaces,omitempty"` // workspace id -> role there instead of Role
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at,omitzero"`
	DeletedAt    time.Time       `json:"deleted_at,omitzero"`  // removed: nobody's principal
	RestoredAt   time.Time       `json:"restored_at,omitzero"` // what was approved, signed or made before then counts no more
	Version      uint64          `json:"version,omitempty"`    // moved by operations only
	// Proven is the address that was shown to be this person's own: by a provider that vouches for it, or by the word of whoever runs
	// the service. Mail is sent to no other, so a changed address has to be proven anew.
	Proven string `json:"proven_email,omitempty"`
}

// AddressProven reports whether mail may be sent to the person.
func (m Member) AddressProven() bool { return m.Email != "" && m.Proven == m.Email }

// State says whether an inbox takes mail.
type State string

// The states of an inbox.
const (
	StateActive State = "active"
	StatePaused State = "paused" // SMTP answers 450; mail that was already taken is processed on resume
)

// Inbox is an address that mail arrives at.
type Inbox struct {
	ID           string       `json:"id"` // inbox_...
	Organization string       `json:"organization"`
	Workspace    string       `json:"workspace"`
	Slug         string       `json:"slug"`    // natural key within the workspace
	Address      string       `json:"address"` // lower case; globally unique, never handed to another organization
	DisplayName  string       `json:"display_name,omitempty"`
	State        State        `json:"state"`
	Retention    int          `json:"retention_days,omitempty"` // 0: kept
	SenderPolicy SenderPolicy `json:"sender_policy,omitempty"`  // see Policy
	OnUnlisted   OnUnlisted   `json:"on_unlisted,omitempty"`
	Template     string       `json:"default_template,omitempty"` // slug: extracted from every mail that arrives
	CreatedAt    time.Time    `json:"created_at"`
	UpdatedAt    time.Time    `json:"updated_at"`
	DeletedAt    time.Time    `json:"deleted_at,omitzero"`
	Version      uint64       `json:"version"`           // moved by operations only
	Purging      bool         `json:"purging,omitempty"` // it is being purged, and missing for everybody else
}
