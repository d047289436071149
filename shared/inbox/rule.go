package inbox

import (
	"crypto/sha256"
	"strings"
	"time"
)

// Bounds of rules. Their sum is bounded by what one row holds (inboxstore) and by maxRuleWork.
const (
	MaxRules      = 100 // of a workspace
	MaxConditions = 20  // of a rule
	MaxActions    = 10
	maxRuleValue  = 256 // bytes of a condition's value, patterns included
	maxProgram    = 500 // instructions of one compiled pattern
	// maxPrograms is the instructions of all patterns of a workspace together. With ruleWork it leaves each pattern at least
	// minWindow bytes of a text, so that every rule is evaluated on every mail: were some left out when the work is too much, a
	// long mail would escape them.
	maxPrograms = 8000
)

// Bounds of what rules look at in one mail. Work is bytes times instructions, which is what RE2 guarantees; nothing here
// depends on a clock, so the same mail always gives the same outcome.
const (
	ruleWork      = 32 << 20 // of all patterns on one text
	maxWindow     = 64 << 10 // bytes of a text
	minWindow     = 4 << 10
	maxRuleHeader = 100 // fields of one name
	maxRuleFiles  = 100 // attachments
	maxRuleNames  = 100 // addresses of each list
)

// Match says how the conditions of a rule are joined.
type Match string

// The ways.
const (
	MatchAll Match = "all"
	MatchAny Match = "any"
)

// Condition is one question about a mail. Which operators a field has, and what its value is, stands in ruleFields.
type Condition struct {
	Field string `json:"field"`
	Op    string `json:"op"`
	Name  string `json:"name,omitempty"` // of a header; of a method for auth
	Value string `json:"value,omitempty"`
	Not   bool   `json:"not,omitempty"` // turns the answer round
}

// The fields of a condition.
const (
	FieldFrom           = "from"   // the addresses of From; contains and matches also see the names
	FieldTo             = "to"     // To, Cc and the envelope's recipient
	FieldDomain         = "domain" // of From
	FieldListed         = "listed" // an entry of the inbox allows the sender, and its terms are met
	FieldSubject        = "subject"
	FieldText           = "text" // the plain text, quoted parts too
	FieldHeader         = "header"
	FieldAttachment     = "attachment"
	FieldAttachmentType = "attachment_type" // as declared or as detected
	FieldAttachmentName = "attachment_name"
	FieldSize           = "size" // of the raw mail, in bytes
	FieldAuth           = "auth"
	FieldTrust          = "trust"
	FieldFlag           = "flag"
)

// The operators.
const (
	OpIs       = "is"       // equal, case aside; for addresses and domains in their normal form
	OpUnder    = "under"    // a domain or one below it
	OpContains = "contains" // case aside
	OpMatches  = "matches"  // RE2
	OpExists   = "exists"
	OpAtLeast  = "at_least"
	OpAtMost   = "at_most"
)

// Action is one thing that a rule does with a mail that it matches.
type Action struct {
	Type  string `json:"type"`
	Value string `json:"value,omitempty"`
}

// The types of an action. There is none that sends a mail to an address.
const (
	ActAddLabel    = "add_label"
	ActRemoveLabel = "remove_label"
	ActCategory    = "category"
	ActQuarantine  = "quarantine"
	ActHandled     = "handled"
	ActExtract     = "extract" // value: slug of an extraction template
	ActNotify      = "notify"  // value: name of a webhook
)

// Rule is one rule of a workspace. Its place in the Rulebook is its position.
type Rule struct {
	ID         string      `json:"id"` // rule_ + digest of workspace, inbox and slug: the natural key in the shape of an id
	Workspace  string      `json:"workspace"`
	Inbox      string      `json:"inbox,omitempty"` // id; empty: the whole workspace
	Slug       string      `json:"slug"`
	Enabled    bool        `json:"enabled,omitempty"`
	Match      Match       `json:"match"`
	Conditions []Condition `json:"conditions"`
	Actions    []Action    `json:"actions"`
	Stop       bool        `json:"stop,omitempty"` // no rule behind it sees a mail that it matches
	CreatedAt  time.Time   `json:"created_at"`
	UpdatedAt  time.Time   `json:"updated_at"`
	DeletedAt  time.Time   `json:"deleted_at,omitzero"`
	Version    uint64      `json:"version"` // moved by operations only; a move of other rules does not move it
}

// RuleID is the id of a rule. in is the id of an inbox, or empty for the whole workspace.
func RuleID(workspace, in, slug string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{workspace, in, slug}, "\x00")))
	return DerivedID("rule", [16]byte(sum[:16]))
}

// Rulebook is all live rules of a workspace in their order. It lies in one row, so a mail costs one read, and an insertion in
// the middle is one write.
type Rulebook struct {
	Rules []Rule `json:"rules"`
}

// place is the index of a rule; -1 when it is not there.
func (b Rulebook) place(id string) int {
	for i := range b.Rules {
		if b.Rules[i].ID == id {
			return i
		}
	}
	return -1
}

// RuleRef names a rule as it was when it did something.
type RuleRef struct {
	Rule    string `json:"rule"`
	Version uint64 `json:"version"`
}

// Notification is a rule's wish that a webhook be told of a mail.
type Notification struct {
	RuleRef
	Webhook string `json:"webhook"` // name
}

// HeldByRule is the reason of a mail that a rule put into quarantine.
const HeldByRule = "rule"

// outward reports whether the rule opens an outlet or holds mail back, which a person confirms.
func (r Rule) outward() bool {
	for _, a := range r.Actions {
		if a.Type == ActNotify || a.Type == ActQuarantine {
			return r.Enabled && r.DeletedAt.IsZero()
		}
	}
	return false
}
