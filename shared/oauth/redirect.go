package oauth

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

const (
	maxRedirect      = 512  // bytes of one redirect URI
	maxRedirects     = 10   // of one client
	maxRedirectBytes = 1024 // of all of them: they travel inside the client id
)

// forbiddenSchemes can run script, read files or hand the code to something that is not an application of the person's.
//
//nolint:gochecknoglobals // constant table
var forbiddenSchemes = []string{
	"about", "blob", "chrome", "data", "file", "filesystem", "ftp", "ftps", "intent", "jar", "javascript", "mailto", "resource",
	"sftp", "sms", "smtp", "tel", "vbscript", "view-source", "ws", "wss",
}

// validRedirect tells whether a URI may be registered: https anywhere, http on loopback, and the private schemes of native
// applications (RFC 8252 section 7). A fragment is forbidden (RFC 6749 section 3.1.2, MUST NOT); a user name makes
// http://localhost:1@evil/ look like what it is not.
func validRedirect(raw string) bool {
	if raw == "" || len(raw) > maxRedirect || strings.Contains(raw, "#") {
		return false
	}
	for i := range len(raw) {
		if c := raw[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			return false // RFC 3986 section 2; a line break would end the Location header
		}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" || u.User != nil || u.Opaque != "" {
		return false
	}
	switch u.Scheme {
	case "https":
		return u.Hostname() != "" && strings.HasPrefix(raw, "https://")
	case "http":
		host, _, _, ok := splitHTTP(raw)
		return ok && isLoopbackHost(host)
	}
	// The scheme is compared as it was written: url.Parse lowers it.
	return strings.HasPrefix(raw, u.Scheme+":/") && !slices.Contains(forbiddenSchemes, u.Scheme)
}

// matchRedirect compares a requested URI with a registered one: byte by byte (OAuth 2.1 section 2.3.1), but that the port of a
// loopback address is left out, for a native application takes the one that is free (RFC 8252 section 7.3). localhost counts
// as loopback, and is not the same as 127.0.0.1.
func matchRedirect(registered, requested string) bool {
	if registered == requested {
		return true
	}
	host, _, rest, ok := splitHTTP(registered)
	if !ok || !isLoopbackHost(host) {
		return false
	}
	asked, _, askedRest, ok := splitHTTP(requested)
	return ok && asked == host && askedRest == rest && validRedirect(requested)
}

// splitHTTP takes http://host[:port]rest apart without normalizing anything. An IPv6 host keeps its brackets.
func splitHTTP(raw string) (host, port, rest string, ok bool) {
	after, ok := strings.CutPrefix(raw, "http://")
	if !ok {
		return "", "", "", false
	}
	authority := after
	if i := strings.IndexAny(after, "/?"); i >= 0 {
		authority, rest = after[:i], after[i:]
	}
	host = authority
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		host, port = authority[:i], authority[i+1:]
		if !validPort(port) {
			return "", "", "", false
		}
	}
	return host, port, rest, host != ""
}

func validPort(s string) bool {
	if s == "" || len(s) > 5 || s[0] == '0' || strings.Trim(s, "0123456789") != "" {
		return false
	}
	return len(s) < 5 || s <= "65535"
}

// isLoopbackHost is 127.0.0.0/8, [::1] and the name localhost, in exactly these spellings.
func isLoopbackHost(host string) bool {
	if host == "localhost" || host == "[::1]" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Is4() && a.IsLoopback()
}

// LoopbackIssuer tells whether an issuer is only for this computer: then documents of clients may lie here too.
func LoopbackIssuer(issuer string) bool {
	u, err := url.Parse(issuer)
	if err != nil {
		return false
	}
	host := u.Hostname()
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// onThisComputer tells whether a redirect ends in an application on the person's computer: any local program could be it.
func onThisComputer(uri string) bool {
	host, _, _, ok := splitHTTP(uri)
	return ok && isLoopbackHost(host) || !strings.HasPrefix(uri, "http://") && !strings.HasPrefix(uri, "https://")
}

// redirectHost is what the consent page shows largest: the host of a web address, the scheme of a private one.
func redirectHost(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return uri
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return u.Scheme + "://"
	}
	return u.Host
}

// withParameters appends parameters to a redirect URI and keeps its own query as it is (RFC 6749 section 3.1.2).
func withParameters(uri string, q url.Values) string {
	sep := "?"
	if i := strings.IndexByte(uri, '?'); i >= 0 {
		sep = "&"
		if i == len(uri)-1 || strings.HasSuffix(uri, "&") {
			sep = ""
		}
	}
	// Encode writes a space as +, which RFC 6749 appendix B asks for.
	return uri + sep + q.Encode()
}
