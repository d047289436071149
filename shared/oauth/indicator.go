package oauth

import (
	"net/url"
	"strings"
)

// namesResource tells whether a resource indicator (RFC 8707 section 2) means our resource. People type the origin or the
// endpoint, with or without a slash, and hosts in any case (MCP, canonical server URI, SHOULD accept); every other path is
// another resource. Whatever was written, tokens carry the canonical identifier.
func namesResource(indicator, canonical string) bool {
	want, err := url.Parse(canonical)
	if err != nil {
		return false
	}
	if strings.ContainsAny(indicator, "#?\\ ") {
		return false // RFC 8707 section 2: no fragment; our resource has no query
	}
	got, err := url.Parse(indicator)
	if err != nil || got.User != nil || got.Opaque != "" {
		return false
	}
	if !strings.EqualFold(got.Scheme, want.Scheme) || hostPort(got) != hostPort(want) {
		return false
	}
	switch got.EscapedPath() {
	case "", "/", want.Path, want.Path + "/":
		return true
	}
	return false
}

// hostPort is the authority in lower case with its port written out.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "443"
		if strings.EqualFold(u.Scheme, "http") {
			port = "80"
		}
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}
