package inbox

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

var noon = time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // constant

func entry(kind SenderKind, value string, effect SenderEffect, require Require) AllowedSender {
	return AllowedSender{ID: string(kind) + ":" + value, Kind: kind, Value: value, Effect: effect, Require: require, Version: 1}
}

func authed(results ...string) []AuthCheck {
	var out []AuthCheck
	for i := 0; i+1 < len(results); i += 2 {
		method, aligned := strings.CutSuffix(results[i], "!")
		out = append(out, AuthCheck{Method: method, Result: results[i+1], Aligned: aligned})
	}
	return out
}

// owners is a stand-in for the list of public suffixes: the last two labels are the owner.
func owners(a, b string) bool {
	last := func(s string) string {
		labels := strings.Split(s, ".")
		return strings.Join(labels[max(len(labels)-2, 0):], ".")
	}
	return last(a) == last(b)
}

func TestJudge(t *testing.T) {
	pass, fail, none := authed("spf!", "pass", "dmarc", "pass"), authed("spf", "pass", "dmarc", "fail"), authed("spf", "none", "dmarc", "none")
	aligned, dns := authed("dkim!", "pass", "dmarc", "none"), authed("spf!", "temperror", "dmarc", "temperror")
	unavailable := authed("spf", "unavailable", "dkim", "unavailable", "dmarc", "unavailable")
	ana := entry(KindAddress, "ana@good.test", EffectAllow, RequireDMARC)
	lax := entry(KindAddress, "ana@good.test", EffectAllow, RequireNone)
	middle := entry(KindDomain, "good.test", EffectAllow, RequireSPFOrDKIM)
	below := entry(KindSubdomains, "good.test", EffectAllow, RequireDMARC)
	block := entry(KindSubdomains, "good.test", EffectBlock, RequireDMARC)
	past, gone := ana, ana
	past.ExpiresAt, gone.DeletedAt = noon, noon
	const listed, strict = PolicyListed, PolicyListedAuthenticated
	for name, x := range map[string]struct {
		from    string // of From; several are separated by a comma
		checks  []AuthCheck
		entries []AllowedSender
		policy  SenderPolicy
		want    string // trust held, reasons
	}{
		"open, proved":                                 {"ana@good.test", pass, nil, PolicyOpen, "verified - dmarc_pass"},
		"open, a signature and no policy":              {"ana@good.test", aligned, nil, PolicyOpen, "verified - aligned_pass"},
		"open, nothing":                                {"ana@good.test", none, nil, PolicyOpen, "unverified - not_authenticated"},
		"open, DNS is away":                            {"ana@good.test", dns, nil, PolicyOpen, "unverified - dns_failed"},
		"open, imported":                               {"ana@good.test", unavailable, nil, PolicyOpen, "unverified - auth_unavailable"},
		"open, of a relay of ours, unsigned":           {"ana@good.test", authed("spf", "unavailable", "dkim", "none", "dmarc", "unavailable"), nil, PolicyOpen, "unverified - auth_unavailable"},
		"open, not checked at all":                     {"ana@good.test", nil, nil, PolicyOpen, "unverified - not_authenticated"},
		"open, forged":                                 {"ana@good.test", fail, nil, PolicyOpen, "suspicious - dmarc_fail"},
		"open, SPF refuses and no policy":              {"ana@good.test", authed("spf!", "fail", "dmarc", "none"), nil, PolicyOpen, "suspicious - spf_fail"},
		"open, SPF refuses, a signature passes":        {"ana@good.test", authed("spf!", "fail", "dkim!", "pass", "dmarc", "none"), nil, PolicyOpen, "verified - aligned_pass"},
		"open, SPF refuses another domain":             {"ana@good.test", authed("spf", "fail", "dmarc", "none"), nil, PolicyOpen, "unverified - not_authenticated"},
		"listed and proved":                            {"ana@good.test", pass, []AllowedSender{ana}, listed, "trusted - listed dmarc_pass"},
		"listed, address in capitals":                  {"Ana@GOOD.test", pass, []AllowedSender{ana}, listed, "trusted - listed dmarc_pass"},
		"listed, forged":                               {"ana@good.test", fail, []AllowedSender{ana}, listed, "suspicious sender_unauthenticated dmarc_fail"},
		"listed, forged where the sender has no DMARC": {"ana@good.test", none, []AllowedSender{ana}, listed, "unverified sender_unauthenticated not_authenticated"},
		"listed, forged, nothing required":             {"ana@good.test", fail, []AllowedSender{lax}, listed, "suspicious sender_unauthenticated dmarc_fail"},
		"listed, nothing required":                     {"ana@good.test", none, []AllowedSender{lax}, listed, "unverified - listed not_authenticated"},
		"listed, nothing required, SPF refuses":        {"ana@good.test", authed("spf!", "fail", "dmarc", "none"), []AllowedSender{lax}, listed, "suspicious sender_unauthenticated spf_fail"},
		"listed, imported":                             {"ana@good.test", unavailable, []AllowedSender{ana}, listed, "unverified sender_unauthenticated auth_unavailable"},
		"listed, DNS is away":                          {"ana@good.test", dns, []AllowedSender{ana}, listed, "unverified sender_unauthenticated dns_failed"},
		"listed, either, aligned":                      {"ana@good.test", aligned, []AllowedSender{middle}, listed, "verified - listed aligned_pass"},
		"listed, either, another domain's pass":        {"ana@good.test", authed("spf", "pass", "dkim", "pass", "dmarc", "none"), []AllowedSender{middle}, listed, "unverified sender_unauthenticated not_authenticated"},
		"strict: nothing required is not enough":       {"ana@good.test", none, []AllowedSender{lax}, strict, "unverified sender_unauthenticated listed not_authenticated"},
		"strict: a signature is not enough":            {"ana@good.test", aligned, []AllowedSender{middle}, strict, "verified sender_unauthenticated listed aligned_pass"},
		"strict and proved":                            {"ana@good.test", pass, []AllowedSender{lax}, strict, "trusted - listed dmarc_pass"},
		"not listed, proved":                           {"eve@evil.test", pass, nil, listed, "verified sender_unlisted dmarc_pass"},
		"expired":                                      {"ana@good.test", pass, []AllowedSender{past}, listed, "verified sender_unlisted dmarc_pass"},
		"deleted":                                      {"ana@good.test", pass, []AllowedSender{gone}, listed, "verified sender_unlisted dmarc_pass"},
		"a plus is another address":                    {"ana+x@good.test", pass, []AllowedSender{ana}, listed, "verified sender_unlisted dmarc_pass"},
		"a domain is not what is below it":             {"a@sub.good.test", pass, []AllowedSender{middle}, listed, "verified sender_unlisted dmarc_pass"},
		"a domain and all below it":                    {"a@x.sub.good.test", pass, []AllowedSender{below}, listed, "trusted - listed dmarc_pass"},
		"a domain that only ends like it":              {"a@nogood.test", pass, []AllowedSender{below}, listed, "verified sender_unlisted dmarc_pass"},
		"a domain in front of another":                 {"a@good.test.evil.test", pass, []AllowedSender{below}, listed, "verified sender_unlisted dmarc_pass"},
		"blocked":                                      {"eve@good.test", pass, []AllowedSender{block}, PolicyOpen, "blocked sender_blocked blocked dmarc_pass"},
		"blocked, forged too":                          {"eve@good.test", fail, []AllowedSender{block}, PolicyOpen, "blocked sender_blocked blocked dmarc_fail"},
		"allowed in a blocked domain":                  {"ana@good.test", pass, []AllowedSender{block, ana}, PolicyOpen, "trusted - listed dmarc_pass"},
		"allowed in a blocked domain, not proved":      {"ana@good.test", none, []AllowedSender{block, ana}, PolicyOpen, "blocked sender_blocked blocked"},
		"several in From, one of them listed":          {"ana@good.test,eve@evil.test", pass, []AllowedSender{ana}, listed, "suspicious sender_unauthenticated several_from"},
		"several in From, one of them blocked":         {"eve@good.test,x@y.test", pass, []AllowedSender{block}, PolicyOpen, "blocked sender_blocked blocked several_from"},
		"no From":                                      {"", pass, []AllowedSender{ana}, listed, "suspicious sender_unlisted from_unusable"},
		"From without an address":                      {"ana", pass, []AllowedSender{ana}, listed, "suspicious sender_unlisted from_unusable"},
	} {
		t.Run(name, func(t *testing.T) {
			f := SenderFacts{Checks: x.checks, Own: "acme.test", SameOwner: owners}
			for a := range strings.SplitSeq(x.from, ",") {
				if a != "" {
					f.From = append(f.From, Address{Address: a})
					f.Author = strings.ToLower(a)
				}
			}
			j := Judge(f, x.entries, x.policy, UnlistedQuarantine, noon)
			if j.Held == "" {
				j.Held = "-"
			}
			want := x.want
			if j.Trust.Level == Blocked { // the proof of a blocked sender is nobody's business
				want = strings.ReplaceAll(want, " dmarc_pass", "")
			}
			if got := strings.Join(append([]string{string(j.Trust.Level), j.Held}, j.Trust.Reasons...), " "); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestUnlisted(t *testing.T) {
	f := SenderFacts{From: []Address{{Address: "eve@evil.test"}}, Author: "eve@evil.test", SameOwner: owners}
	for what, want := range map[OnUnlisted]Judgement{
		UnlistedLabel: {Label: true}, UnlistedQuarantine: {Held: HeldUnlisted}, UnlistedReject: {Held: HeldUnlisted},
	} {
		got := Judge(f, nil, PolicyListed, what, noon)
		if got.Label != want.Label || got.Held != want.Held {
			t.Errorf("%s: %+v", what, got)
		}
		if open := Judge(f, nil, PolicyOpen, what, noon); open.Label || open.Held != "" {
			t.Errorf("open, %s: %+v", what, open)
		}
	}
}

func TestSuspicions(t *testing.T) {
	paypal := entry(KindDomain, "paypal.com", EffectAllow, RequireDMARC)
	for name, x := range map[string]struct {
		name, from, author, reply string
		want                      string
	}{
		"nothing":                               {"Ana", "ana@good.test", "", "", ""},
		"its own address as its name":           {"ana@good.test", "ana@good.test", "", "", ""},
		"another address as its name":           {"CEO <ceo@acme.test>", "eve@evil.test", "", "", "display_name_address"},
		"another address in the middle":         {"mail from ceo@acme.test, really", "eve@evil.test", "", "", "display_name_address"},
		"an at sign is no address":              {"Ana @ work", "ana@good.test", "", "", ""},
		"answers elsewhere":                     {"", "ana@good.test", "", "eve@evil.test", "reply_to_other_domain"},
		"answers to a sub-domain":               {"", "ana@good.test", "", "ana@help.good.test", ""},
		"a signature for another From":          {"", "ana@good.test", "eve@good.test", "", "several_from"},
		"a signature for no From":               {"", "ana@good.test", "-", "", "several_from"},
		"a digit for a letter, of ours":         {"", "ceo@acrne.test", "", "", "lookalike_of_inbox_domain"},
		"ours below another":                    {"", "ceo@acme.test.evil.test", "", "", ""},
		"ours":                                  {"", "ceo@acme.test", "", "", ""},
		"below ours":                            {"", "ceo@mail.acme.test", "", "", ""},
		"a digit for a letter, of a listed one": {"", "x@paypa1.com", "", "", "lookalike_of_listed_domain"},
		"below such a one":                      {"", "x@mail.paypa1.com", "", "", "lookalike_of_listed_domain"},
		"a hyphen":                              {"", "x@pay-pal.com", "", "", "lookalike_of_listed_domain"},
		"Cyrillic a":                            {"", "x@pаypal.com", "", "", "lookalike_of_listed_domain mixed_scripts"},
		"the same as an A-label":                {"", "x@xn--pypal-4ve.com", "", "", "lookalike_of_listed_domain mixed_scripts"},
		"mixed, like nothing known":             {"", "x@exаmple.com", "", "", "mixed_scripts"},
		"a language of one script":              {"", "x@пример.test", "", "", ""},
		"an umlaut":                             {"", "x@müller.test", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := SenderFacts{From: []Address{{Name: x.name, Address: x.from}}, Author: x.author, Own: "acme.test", SameOwner: owners}
			if f.Author == "" {
				f.Author = x.from
			}
			if x.reply != "" {
				f.ReplyTo = []Address{{Address: x.reply}}
			}
			j := Judge(f, []AllowedSender{paypal}, PolicyOpen, UnlistedQuarantine, noon)
			if j.Trust.Level != Suspicious {
				j.Trust.Reasons = nil
			}
			if got := strings.Join(j.Trust.Reasons, " "); got != x.want {
				t.Errorf("got %q, want %q", got, x.want)
			}
		})
	}
}

// What a listed domain imitates must lie in its zone, or the read that finds the one would miss the other.
func TestZone(t *testing.T) {
	for _, domain := range []string{"paypa1.com", "mail.paypa1.com", "pay-pal.com", "pаypal.com", "xn--pypal-4ve.com", "PAYPAL.com"} {
		if SenderZone(domain) != SenderZone("paypal.com") {
			t.Errorf("%s lies in another zone", domain)
		}
	}
	for _, domain := range []string{"paypal.org", "example.com", ""} {
		if SenderZone(domain) == SenderZone("paypal.com") {
			t.Errorf("%s lies in the same zone", domain)
		}
	}
}

func TestAtDoor(t *testing.T) {
	blocked := []AllowedSender{entry(KindAddress, "eve@evil.test", EffectBlock, RequireDMARC)}
	allowed := []AllowedSender{entry(KindAddress, "eve@evil.test", EffectAllow, RequireDMARC)}
	expired := []AllowedSender{allowed[0]}
	expired[0].ExpiresAt = noon
	for name, x := range map[string]struct {
		from     string
		entries  []AllowedSender
		policy   SenderPolicy
		unlisted OnUnlisted
		want     string
	}{
		"open":                       {"eve@evil.test", nil, PolicyOpen, UnlistedReject, ""},
		"blocked":                    {"eve@evil.test", blocked, PolicyOpen, UnlistedLabel, HeldBlocked},
		"blocked, in capitals":       {"EVE@Evil.Test", blocked, PolicyOpen, UnlistedLabel, HeldBlocked},
		"another":                    {"ana@good.test", blocked, PolicyOpen, UnlistedReject, ""},
		"a bounce":                   {"", blocked, PolicyOpen, UnlistedReject, ""},
		"unlisted, quarantine":       {"ana@good.test", nil, PolicyListed, UnlistedQuarantine, ""},
		"unlisted, reject":           {"ana@good.test", nil, PolicyListed, UnlistedReject, HeldUnlisted},
		"listed, reject":             {"eve@evil.test", allowed, PolicyListed, UnlistedReject, ""},
		"listed until now, reject":   {"eve@evil.test", expired, PolicyListed, UnlistedReject, HeldUnlisted},
		"a bounce, reject":           {"", allowed, PolicyListedAuthenticated, UnlistedReject, HeldUnlisted},
		"no address at all, reject":  {"eve", allowed, PolicyListed, UnlistedReject, HeldUnlisted},
		"an address with two at, ok": {"eve@evil.test@x.test", blocked, PolicyOpen, UnlistedReject, ""},
	} {
		if got := AtDoor(x.from, x.entries, x.policy, x.unlisted, noon); got != x.want {
			t.Errorf("%s: refused %q", name, got)
		}
	}
}

func TestNormalValue(t *testing.T) {
	for _, x := range []struct {
		kind        SenderKind
		value, want string // empty: refused
	}{
		{KindAddress, "Ana@Example.COM", "ana@example.com"},
		{KindAddress, " ana+tag@Müller.de ", "ana+tag@xn--mller-kva.de"},
		{KindAddress, "ana@example.com.", "ana@example.com"},
		{KindDomain, "EXAMPLE.com", "example.com"},
		{KindDomain, "@example.com", "example.com"},
		{KindSubdomains, "Müller.de", "xn--mller-kva.de"},
		{KindAddress, "example.com", ""},
		{KindAddress, "@example.com", ""},
		{KindAddress, "ana@localhost", ""},
		{KindAddress, "ana@[1.2.3.4]", ""},
		{KindAddress, "a b@example.com", ""},
		{KindAddress, `"a@good.test"@evil.test`, ""},
		{KindAddress, "a@b@example.com", ""},
		{KindAddress, "ana\u202e@example.com", ""},
		{KindAddress, "ana\x00@example.com", ""},
		{KindAddress, strings.Repeat("a", 65) + "@example.com", ""},
		{KindDomain, "ana@example.com", ""},
		{KindDomain, "com", ""},
		{KindDomain, "*.example.com", ""},
		{KindDomain, "1.2.3.4", ""},
		{KindDomain, "exa mple.com", ""},
		{KindDomain, "", ""},
		{"pattern", "example.com", ""},
	} {
		got, err := SenderPatch{Kind: x.kind, Value: x.value}.normal(noon)
		if x.want == "" {
			if !apperr.Is(err, apperr.Invalid) {
				t.Errorf("%s %q was taken as %q", x.kind, x.value, got.Value)
			}
			continue
		}
		if err != nil || got.Value != x.want {
			t.Errorf("%s %q: %q, %v; want %q", x.kind, x.value, got.Value, err, x.want)
		}
	}
}

// Whatever an address is: its normal form is a fixpoint, and it names the zone of its domain.
func FuzzSenderAddress(f *testing.F) {
	for _, s := range []string{"Ana@Müller.de", "a@b@c.test", "", "@", "a@xn--.com", "a@\u3002test.com", "0@\u3002", "a@good.test\u3002", "a@good..test", "ана@пример.test"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := SenderAddress(s)
		if once == "" {
			return
		}
		if again := SenderAddress(once); again != once {
			t.Errorf("%q, %q, %q", s, once, again)
		}
		_, domain, _ := cutAddress(once)
		e := entry(KindSubdomains, domain, EffectAllow, RequireNone)
		if !e.names(once) || !slices.Contains([]string{SenderZone(domain)}, SenderZone(strings.ToUpper(domain))) {
			t.Errorf("%q does not find its own domain", once)
		}
	})
}
