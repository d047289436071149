package inbox

import (
	"crypto/sha256"
	"strings"
	"time"
)

// SenderPolicy says whose mail an inbox takes.
type SenderPolicy string

// The policies. Blocked senders are held back under each.
const (
	PolicyOpen                SenderPolicy = "open"                 // everybody's
	PolicyListed              SenderPolicy = "listed"               // of senders that an entry allows, on that entry's terms
	PolicyListedAuthenticated SenderPolicy = "listed_authenticated" // of those, only what passes DMARC
)

// OnUnlisted says what becomes of mail that the policy does not take.
type OnUnlisted string

// What becomes of it.
const (
	UnlistedQuarantine OnUnlisted = "quarantine" // held back until a person releases it
	UnlistedLabel      OnUnlisted = "label"      // delivered with LabelUnlisted
	// UnlistedReject refuses at SMTP whose MAIL FROM no entry allows; what shows only in From is held back, for nobody can be
	// told of it any more but by a bounce to an address that may be forged.
	UnlistedReject OnUnlisted = "reject"
)

// LabelUnlisted marks delivered mail of senders that are not listed.
const LabelUnlisted = "unlisted-sender"

// SenderPolicies lists the policies.
func SenderPolicies() []SenderPolicy {
	return []SenderPolicy{PolicyOpen, PolicyListed, PolicyListedAuthenticated}
}

// Policy is whose mail the inbox takes; inboxes from before there were policies are open.
func (in Inbox) Policy() (SenderPolicy, OnUnlisted) { return defaults(in.SenderPolicy, in.OnUnlisted) }

// Policy is that of the recipient's inbox.
func (r Recipient) Policy() (SenderPolicy, OnUnlisted) {
	return defaults(r.SenderPolicy, r.OnUnlisted)
}

func defaults(p SenderPolicy, o OnUnlisted) (SenderPolicy, OnUnlisted) {
	if p == "" {
		p = PolicyOpen
	}
	if o == "" {
		o = UnlistedQuarantine
	}
	return p, o
}

// SenderKind says what an entry names.
type SenderKind string

// The kinds, the most telling first.
const (
	KindAddress    SenderKind = "address"    // one address
	KindDomain     SenderKind = "domain"     // every address of one domain, none below it
	KindSubdomains SenderKind = "subdomains" // of a domain and of all below it
)

// SenderEffect is what an entry does.
type SenderEffect string

// The effects.
const (
	EffectAllow SenderEffect = "allow"
	EffectBlock SenderEffect = "block"
)

// Require is what must be proved of a mail before an entry that allows counts: without proof From is only what somebody wrote.
type Require string

// The requirements, the strictest first.
const (
	RequireDMARC     Require = "dmarc"       // DMARC passes
	RequireSPFOrDKIM Require = "spf_or_dkim" // SPF or a signature passes for the domain of From
	RequireNone      Require = "none"        // nothing; still nothing that DMARC fails or whose author is unclear
)

// AllowedSender is one entry of an inbox's list of senders.
type AllowedSender struct {
	ID        string       `json:"id"` // sender_ + digest of inbox, kind and value: the natural key in the shape of an id
	Workspace string       `json:"workspace"`
	Inbox     string       `json:"inbox"`
	Kind      SenderKind   `json:"kind"`
	Value     string       `json:"value"` // lower case, A-labels; a plus and what follows it are part of an address
	Effect    SenderEffect `json:"effect"`
	Require   Require      `json:"require"` // of one that allows
	ExpiresAt time.Time    `json:"expires_at,omitzero"`
	Note      string       `json:"note,omitempty"`
	CreatedAt time.Time    `json:"created_at"`
	UpdatedAt time.Time    `json:"updated_at"`
	DeletedAt time.Time    `json:"deleted_at,omitzero"`
	Version   uint64       `json:"version"` // moved by operations only; 0: there is none
}

// SenderID is the id of an inbox's entry. Another tenant's inbox gives another one, so an id tells nothing of who else lists
// a sender.
func SenderID(workspace, in string, kind SenderKind, value string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{workspace, in, string(kind), value}, "\x00")))
	return DerivedID("sender", [16]byte(sum[:16]))
}

// expired: from ExpiresAt on the entry is as if it were not there.
func (s AllowedSender) expired(now time.Time) bool {
	return !s.ExpiresAt.IsZero() && !now.Before(s.ExpiresAt)
}

// names reports whether the entry speaks of an address, given in its normal form.
func (s AllowedSender) names(address string) bool {
	_, domain, _ := cutAddress(address)
	switch s.Kind {
	case KindAddress:
		return address == s.Value
	case KindDomain:
		return domain == s.Value
	case KindSubdomains:
		return domain == s.Value || strings.HasSuffix(domain, "."+s.Value)
	}
	return false
}

// AuthCheck is what one method found out about a mail: package mailauth says what the words mean.
type AuthCheck struct {
	Method  string `json:"method"` // spf, dkim, dmarc
	Result  string `json:"result"` // pass, fail, softfail, neutral, none, temperror, permerror, unavailable
	Domain  string `json:"domain,omitempty"`
	Aligned bool   `json:"aligned,omitempty"` // it is the domain of From
	Reason  string `json:"reason,omitempty"`  // a code of ours
}

// The words of checks that are acted on.
const (
	methodSPF       = "spf"
	methodDMARC     = "dmarc"
	resultPass      = "pass"
	resultFail      = "fail"
	resultTempError = "temperror"
	resultNone      = "none"
	resultUnknown   = "unavailable"
)

// TrustLevel says how far the author of a mail is who it says.
type TrustLevel string

// The levels.
const (
	Trusted    TrustLevel = "trusted"    // listed, and DMARC passes
	Verified   TrustLevel = "verified"   // not listed, but the domain of From stands behind the mail
	Unverified TrustLevel = "unverified" // nothing is proved, nothing is wrong
	Suspicious TrustLevel = "suspicious" // something speaks for a forgery
	Blocked    TrustLevel = "blocked"    // an entry blocks the sender
)

// TrustLevels lists the levels.
func TrustLevels() []TrustLevel {
	return []TrustLevel{Trusted, Verified, Unverified, Suspicious, Blocked}
}

// Trust is a level with the reasons for it: codes of ours. Zero: the mail was not judged.
type Trust struct {
	Level   TrustLevel `json:"level,omitempty"`
	Reasons []string   `json:"reasons,omitempty"`
}

// The reasons of a level.
const (
	TrustListed          = "listed"
	TrustDMARC           = "dmarc_pass"
	TrustAligned         = "aligned_pass" // SPF or a signature, where there is no DMARC policy
	TrustUnauthenticated = "not_authenticated"
	TrustDNS             = "dns_failed"
	TrustUnavailable     = "auth_unavailable"
	TrustBlocked         = "blocked"
	TrustSeveralFrom     = "several_from"
	TrustNoFrom          = "from_unusable"
	TrustDMARCFail       = "dmarc_fail"
	TrustSPFFail         = "spf_fail"
	TrustDisplayName     = "display_name_address"
	TrustReplyTo         = "reply_to_other_domain"
	TrustLookalikeOwn    = "lookalike_of_inbox_domain"
	TrustLookalikeListed = "lookalike_of_listed_domain"
	TrustMixedScripts    = "mixed_scripts"
)

// The reasons of a quarantined mail.
const (
	HeldBlocked         = "sender_blocked"
	HeldUnlisted        = "sender_unlisted"
	HeldUnauthenticated = "sender_unauthenticated" // an entry names the sender, but its terms are not met
	HeldVirus           = "virus"                  // the transport's scanner found one
	HeldTooLarge        = "too_large"              // for its workspace, and its transport could not refuse it
)
