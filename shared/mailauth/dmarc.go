package mailauth

import (
	"context"
	"slices"
	"strings"

	"github.com/emersion/go-msgauth/dmarc"
	"golang.org/x/net/publicsuffix"
)

// dmarc marks which of the checks speak for the domain of From and says what follows under that domain's policy; the first of
// the checks is SPF's. Without a policy the marks are those of relaxed alignment, which is DMARC's default.
func (v *Verifier) dmarc(ctx context.Context, domain, why string, checks []Check) Check {
	c := Check{Method: DMARC, Result: None, Reason: why}
	if domain == "" {
		return c
	}
	var ok bool
	if c.Domain, ok = hostname(domain); !ok {
		c.Reason = ReasonBadFrom
		return c
	}
	// Where SPF can't be asked nothing is proved by its silence: only a signature can pass then, and nothing fails.
	blind := checks[0].Result == Unavailable
	if blind && !slices.ContainsFunc(checks, func(c Check) bool { return c.Result == Pass || c.Result == TempError }) {
		c.Result, c.Reason = Unavailable, checks[0].Reason
		return c
	}
	policy, result, reason := v.policy(ctx, c.Domain)
	strictSPF := policy != nil && policy.SPFAlignment == dmarc.AlignmentStrict
	strictDKIM := policy != nil && policy.DKIMAlignment == dmarc.AlignmentStrict
	passed, unknown := false, false
	for i := range checks {
		one := &checks[i]
		strict := one.Method == SPF && strictSPF || one.Method == DKIM && strictDKIM
		one.Aligned = one.Domain != "" && (one.Domain == c.Domain || !strict && SameOrganization(one.Domain, c.Domain))
		passed = passed || one.Aligned && one.Result == Pass
		unknown = unknown || one.Aligned && one.Result == TempError
	}
	c.Result, c.Reason = result, reason
	switch {
	case policy == nil:
	case passed:
		c.Result, c.Aligned, c.Reason = Pass, true, ""
	case unknown: // it might have passed
		c.Result, c.Reason = TempError, ReasonDNS
	case blind:
		c.Result, c.Reason = Unavailable, checks[0].Reason
	}
	return c
}

// policy finds the record of a domain, else that of its organization (RFC 7489 section 6.6.3). The result is what the mail
// has when nothing vouches for it; without a policy it is the mail's in any case.
func (v *Verifier) policy(ctx context.Context, domain string) (*dmarc.Record, Result, string) {
	names := []string{domain}
	if org := organization(domain); org != domain {
		names = append(names, org)
	}
	for i, name := range names {
		list, err := v.dns.LookupTXT(ctx, "_dmarc."+name)
		if err != nil && !notFound(err) {
			return nil, TempError, ReasonDNS
		}
		records := list[:0:0]
		for _, txt := range list {
			if isRecord(txt) {
				records = append(records, txt)
			}
		}
		switch len(records) {
		case 0:
			continue
		case 1:
		default:
			return nil, None, ReasonSeveralRecords
		}
		record, err := dmarc.Parse(records[0])
		if err != nil {
			return nil, PermError, ReasonBadRecord
		}
		wish := record.Policy
		if i > 0 && record.SubdomainPolicy != "" {
			wish = record.SubdomainPolicy
		}
		return record, Fail, reasonOf(wish)
	}
	return nil, None, ReasonNoPolicy
}

// isRecord: the version comes first and is written exactly so (RFC 7489 section 6.3).
func isRecord(txt string) bool {
	rest, ok := strings.CutPrefix(txt, "v=DMARC1")
	rest = strings.TrimLeft(rest, " \t")
	return ok && (rest == "" || rest[0] == ';')
}

func reasonOf(p dmarc.Policy) string {
	switch p {
	case dmarc.PolicyReject:
		return ReasonPolicyReject
	case dmarc.PolicyQuarantine:
		return ReasonPolicyQuarantine
	default:
		return ReasonPolicyNone
	}
}

// organization is the part of a domain that one owner has (RFC 7489 section 3.2); a public suffix is its own.
func organization(domain string) string {
	org, err := publicsuffix.EffectiveTLDPlusOne(domain)
	if err != nil {
		return domain
	}
	return org
}

// SameOrganization reports whether two domains, in lower case and A-labels, belong to one owner.
func SameOrganization(a, b string) bool { return organization(a) == organization(b) }
