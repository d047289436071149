package mailauth

import (
	"context"
	"net"
	"net/netip"
	"strings"

	"blitiri.com.ar/go/spf"

	"github.com/buzon-mail/buzon/shared/mail/header"
)

// reserved are the addresses that no host on the internet has, beyond those that net/netip tells apart: shared address space
// (RFC 6598), benchmarks (RFC 2544), documentation (RFC 5737, 3849).
//
//nolint:gochecknoglobals // constant table
var reserved = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/32"),
}

// public reports whether an address can be a sender's. Mail from any other came through a relay of ours, of which no record
// of the sender says anything.
func public(ip netip.Addr) bool {
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	for _, p := range reserved {
		if p.Contains(ip) {
			return false
		}
	}
	return true
}

// spf checks the domain of MAIL FROM or, for a bounce, the name in HELO (RFC 7208 section 2.4).
func (v *Verifier) spf(ctx context.Context, m Mail) Check {
	c := Check{Method: SPF, Result: None}
	ip, err := netip.ParseAddr(m.RemoteIP)
	if err != nil || !public(ip.Unmap()) {
		c.Result, c.Reason = Unavailable, ReasonLocalIP
		return c
	}
	local, domain := "postmaster", m.HELO
	if at := strings.LastIndexByte(m.MailFrom, '@'); at >= 0 {
		// The library cuts at the first @: with `a@good.test@evil.test` it would ask another domain than everybody else.
		if local, domain = m.MailFrom[:at], m.MailFrom[at+1:]; strings.ContainsRune(local, '@') {
			local = "postmaster"
		}
	} else if m.MailFrom != "" {
		return c
	}
	var ok bool
	if c.Domain, ok = hostname(domain); !ok {
		return c
	}
	result, _ := spf.CheckHostWithSender(net.IP(ip.Unmap().AsSlice()), m.HELO, local+"@"+c.Domain, spf.WithContext(ctx), spf.WithResolver(v.dns))
	switch result {
	case spf.Pass, spf.Fail, spf.SoftFail, spf.Neutral, spf.None:
		c.Result = Result(result)
	case spf.TempError:
		c.Result, c.Reason = TempError, ReasonDNS
	case spf.PermError:
		c.Result, c.Reason = PermError, ReasonBadRecord
	default:
		c.Result, c.Reason = PermError, ReasonBadRecord
	}
	return c
}

// hostname is the one spelling of a domain; false for what can't be in DNS, a single label among it.
func hostname(s string) (string, bool) {
	domain, ok := "", false
	if s != "" && s[0] != '[' {
		domain, ok = header.Domain(s)
	}
	if !ok || !strings.Contains(domain, ".") {
		return "", false
	}
	return domain, true
}
