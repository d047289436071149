package inbox

import (
	"slices"
	"strings"
	"time"
)

// SenderFacts is what is known of who sent a mail.
type SenderFacts struct {
	From    []Address // as they are shown
	ReplyTo []Address
	// Author is the one address that the checks speak of; empty when they found none or several. Only where it is the address
	// that is shown do they mean anything.
	Author string
	Checks []AuthCheck
	Own    string // the domain of the inbox
	// SameOwner tells whether two domains are of one organization.
	SameOwner func(a, b string) bool
}

// Judgement is what follows for a mail.
type Judgement struct {
	Trust Trust
	Entry string // id of the entry that decided; empty: none
	Held  string // why it is quarantined; empty: it is not
	Label bool   // it gets LabelUnlisted
}

// Judge decides on a mail by the entries that may concern its author (those of its address and of its zone) and the policy of
// the inbox.
func Judge(f SenderFacts, entries []AllowedSender, policy SenderPolicy, unlisted OnUnlisted, now time.Time) Judgement {
	author, unclear := f.author()
	v := newVerdict(f.Checks)
	entry, named := decide(entries, author, unclear == "", v, now)
	j := Judgement{Entry: entry.ID}
	allowed := entry.Effect == EffectAllow
	j.Trust = f.trust(author, unclear, v, entry, entries)
	switch {
	case entry.Effect == EffectBlock:
		j.Held = HeldBlocked
		return j
	case policy == PolicyOpen, policy == PolicyListed && allowed, allowed && v.dmarc == resultPass:
		return j
	case unlisted == UnlistedLabel:
		j.Label = true
	case named:
		j.Held = HeldUnauthenticated
	default:
		j.Held = HeldUnlisted
	}
	return j
}

// AtDoor says why a mail is refused for its MAIL FROM alone: HeldBlocked or HeldUnlisted, empty when it is not. Whoever forges
// one that is allowed only gets as far as the judgement of From.
func AtDoor(from string, entries []AllowedSender, policy SenderPolicy, unlisted OnUnlisted, now time.Time) (refused string) {
	if address, ok := normalAddress(from); ok {
		if named := matching(entries, address, now); len(named) > 0 {
			if named[0].Effect == EffectBlock {
				return HeldBlocked
			}
			return ""
		}
	}
	if policy != PolicyOpen && unlisted == UnlistedReject {
		return HeldUnlisted
	}
	return ""
}

// author is the address that lists are asked about, and why nothing may rest on it.
func (f SenderFacts) author() (address, unclear string) {
	if len(f.From) == 0 {
		return "", TrustNoFrom
	}
	address, ok := normalAddress(f.From[0].Address)
	if !ok {
		address = ""
	}
	proved, _ := normalAddress(f.Author)
	switch {
	case len(f.From) > 1:
		return address, TrustSeveralFrom
	case !ok:
		return "", TrustNoFrom
	case address != proved: // the header reads differently to whoever checks signatures
		return address, TrustSeveralFrom
	}
	return address, ""
}

// verdict sums the checks up.
type verdict struct {
	dmarc   string
	aligned bool // SPF or a signature passes for the domain of From
	spfFail bool // the domain of From says that this host may not send for it
	dns     bool // a look-up failed that could have made a difference
	unknown bool // nobody knows which host brought the mail
}

func newVerdict(checks []AuthCheck) verdict {
	v := verdict{dmarc: resultNone}
	for _, c := range checks {
		v.unknown = v.unknown || c.Method == methodDMARC && c.Result == resultUnknown
		v.dns = v.dns || c.Result == resultTempError
		if c.Method == methodDMARC {
			v.dmarc = c.Result
			continue
		}
		v.aligned = v.aligned || c.Aligned && c.Result == resultPass
		v.spfFail = v.spfFail || c.Method == methodSPF && c.Aligned && c.Result == resultFail
	}
	return v
}

// meets: a failed DMARC meets nothing, or a list would let in the very forgeries that it is there against.
func (v verdict) meets(r Require) bool {
	switch r {
	case RequireDMARC:
		return v.dmarc == resultPass
	case RequireSPFOrDKIM:
		return v.dmarc != resultFail && v.aligned
	case RequireNone:
		return v.dmarc != resultFail && (v.aligned || !v.spfFail)
	}
	return false
}

// decide finds the entry that decides: of those that name the author the most telling one whose terms are met. One that
// blocks needs no proof: who forges a blocked address gains nothing by it. named: there was an entry that allows.
func decide(entries []AllowedSender, author string, clear bool, v verdict, now time.Time) (decisive AllowedSender, named bool) {
	for _, e := range matching(entries, author, now) {
		if e.Effect == EffectBlock {
			return e, named
		}
		named = true
		if clear && v.meets(e.Require) {
			return e, true
		}
	}
	return AllowedSender{}, named
}

// matching are the live entries that name an address, the most telling first: the address, its domain, the nearest domain
// above.
func matching(entries []AllowedSender, address string, now time.Time) []AllowedSender {
	var out []AllowedSender
	for _, e := range entries {
		if address != "" && e.DeletedAt.IsZero() && !e.expired(now) && e.names(address) {
			out = append(out, e)
		}
	}
	rank := func(e AllowedSender) int {
		return slices.Index([]SenderKind{KindAddress, KindDomain, KindSubdomains}, e.Kind)
	}
	slices.SortStableFunc(out, func(a, b AllowedSender) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return len(b.Value) - len(a.Value)
	})
	return out
}

func (f SenderFacts) trust(author, unclear string, v verdict, entry AllowedSender, entries []AllowedSender) Trust {
	if entry.Effect == EffectBlock {
		return Trust{Blocked, append([]string{TrustBlocked}, f.suspicions(author, unclear, v, entries)...)}
	}
	if reasons := f.suspicions(author, unclear, v, entries); len(reasons) > 0 {
		return Trust{Suspicious, reasons}
	}
	var t Trust
	switch {
	case v.dmarc == resultPass:
		t = Trust{Verified, []string{TrustDMARC}}
	case v.unknown:
		t = Trust{Unverified, []string{TrustUnavailable}}
	case v.dns: // also when a signature passes: the policy that could not be read may ask for more
		t = Trust{Unverified, []string{TrustDNS}}
	case v.aligned:
		t = Trust{Verified, []string{TrustAligned}}
	default:
		t = Trust{Unverified, []string{TrustUnauthenticated}}
	}
	if entry.Effect == EffectAllow {
		t.Reasons = append([]string{TrustListed}, t.Reasons...)
		if v.dmarc == resultPass {
			t.Level = Trusted
		}
	}
	return t
}

// suspicions are what speaks for a forgery.
func (f SenderFacts) suspicions(author, unclear string, v verdict, entries []AllowedSender) []string {
	var out []string
	add := func(reason string, is bool) {
		if is && !slices.Contains(out, reason) {
			out = append(out, reason)
		}
	}
	add(unclear, unclear != "")
	add(TrustDMARCFail, v.dmarc == resultFail)
	add(TrustSPFFail, v.dmarc != resultFail && v.spfFail && !v.aligned)
	_, domain, _ := cutAddress(author)
	for _, a := range f.From {
		shown := addressIn(a.Name)
		actual, _ := normalAddress(a.Address)
		add(TrustDisplayName, shown != "" && shown != actual)
	}
	for _, a := range f.ReplyTo {
		reply, ok := normalAddress(a.Address)
		_, other, _ := cutAddress(reply)
		add(TrustReplyTo, ok && domain != "" && !f.SameOwner(other, domain))
	}
	if domain == "" {
		return out
	}
	add(TrustLookalikeOwn, f.Own != "" && imitates(domain, f.Own, f.SameOwner))
	for _, e := range entries {
		add(TrustLookalikeListed, e.Kind != KindAddress && e.Effect == EffectAllow && e.DeletedAt.IsZero() && imitates(domain, e.Value, f.SameOwner))
	}
	add(TrustMixedScripts, mixedScripts(domain))
	return out
}

// ownDomain is the domain of an address of ours.
func ownDomain(address string) string {
	_, domain, _ := cutAddress(strings.ToLower(address))
	return domain
}
