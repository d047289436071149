package safehttp

import (
	"fmt"
	"net/url"
	"strings"
)

const (
	loopbackName = "localhost"
	maxURL       = 2048
	maxName      = 253 // bytes of a DNS name
)

// Check tells whether a URL has the form that Do accepts, without asking any network: https, a DNS name in A-labels, port 443,
// no user, no fragment. Address literals are refused in every spelling: certificates prove names, and 127.1, 0x7f000001 and
// 2130706433 are addresses to some resolver.
func (c *Client) Check(raw string) error {
	if len(raw) > maxURL {
		return refused("longer than a URL may be")
	}
	for i := range len(raw) {
		if raw[i] <= ' ' || raw[i] >= 0x7f || raw[i] == '\\' {
			return refused("a character that a URL does not have")
		}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Host == "" {
		return refused("not an absolute URL")
	}
	if u.User != nil || strings.Contains(raw, "#") {
		return refused("a user or a fragment")
	}
	host := u.Hostname()
	if c.opts.Loopback && host == loopbackName && (u.Scheme == "http" || u.Scheme == "https") {
		return nil
	}
	if u.Scheme != "https" {
		return refused("not https")
	}
	if u.Host != host && u.Host != host+":443" {
		return refused("another port than 443")
	}
	if !isPublicName(host) {
		return refused("not a public DNS name")
	}
	return nil
}

func refused(why string) error { return fmt.Errorf("%w: %s", ErrRefused, why) }

// isPublicName accepts letter-digit-hyphen labels (RFC 1123 section 2.1), at least two, the last of which is not a number in
// any notation: the WHATWG URL standard reads such a host as IPv4.
func isPublicName(host string) bool {
	if host == "" || len(host) > maxName {
		return false
	}
	labels := strings.Split(strings.ToLower(host), ".")
	if len(labels) < 2 {
		return false // a single label is resolved by whatever the machine's search list says
	}
	for _, label := range labels {
		if !isLabel(label) {
			return false
		}
	}
	last := labels[len(labels)-1]
	if last[0] >= '0' && last[0] <= '9' {
		return false
	}
	// RFC 6761 and RFC 6762: these never leave the machine or the link.
	return last != loopbackName && last != "local" && last != "internal"
}

func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}
