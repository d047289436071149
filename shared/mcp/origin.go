package mcp

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// origins decides who may call from a browser and, in a local process, under which name.
type origins struct {
	allowed []string // scheme://host[:port], lower case, without the default port
	hosts   []string // of allowed: names that a local process also answers to
	local   bool
}

func newOrigins(o Options) (origins, error) {
	list := o.AllowedOrigins
	if o.PublicOrigin != "" {
		list = append([]string{o.PublicOrigin}, list...)
	}
	out := origins{local: o.LocalHosts}
	for _, text := range list {
		origin, host, err := parseOrigin(text)
		if err != nil {
			return origins{}, err
		}
		out.allowed = append(out.allowed, origin)
		out.hosts = append(out.hosts, host)
	}
	return out, nil
}

// parseOrigin normalizes what an operator wrote to the form in which browsers send it (RFC 6454 section 6.2).
func parseOrigin(text string) (origin, host string, err error) {
	u, err := url.Parse(strings.ToLower(strings.TrimSuffix(text, "/")))
	if err != nil {
		return "", "", fmt.Errorf("mcp: origin %q: %w", text, err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", "", fmt.Errorf("mcp: origin %q is not scheme://host[:port]", text)
	}
	host = u.Host
	if port := u.Port(); u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return u.Scheme + "://" + host, u.Hostname(), nil
}

// pass reports whether a request with this Origin header may go on; MCP 2026-07-28, transports, "Security": a present and
// invalid Origin MUST be answered 403. Without it any web page could drive a local server through its visitor's browser.
func (o origins) pass(h http.Header) (origin string, ok bool) {
	v := h["Origin"]
	if len(v) == 0 {
		return "", true
	}
	if len(v) > 1 {
		return "", false
	}
	if slices.Contains(o.allowed, v[0]) {
		return v[0], true
	}
	if !o.local {
		return "", false
	}
	rest, found := strings.CutPrefix(v[0], "http://")
	if !found {
		rest, found = strings.CutPrefix(v[0], "https://")
	}
	return v[0], found && isLoopback(rest)
}

// passHost refuses, in a local process, a name that is not its own: a page of evil.example whose name was rebound to 127.0.0.1
// is same-origin to its browser and sends no Origin with a GET. Behind a proxy Host is the proxy's business.
func (o origins) passHost(host string) bool {
	return !o.local || isLoopback(host) || slices.Contains(o.hosts, strings.ToLower(hostname(host)))
}

// hostname drops a port; it is empty when what follows the colon is none ("localhost:1@evil.example").
func hostname(hostport string) string {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return ""
	}
	return host
}

// isLoopback reads host[:port]. Names below .localhost are not taken: not every resolver keeps them on the machine.
func isLoopback(hostport string) bool {
	host := hostname(hostport)
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// isPreflight tells a CORS preflight (Fetch standard, section 4.8) from any other OPTIONS.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header["Origin"] != nil && r.Header["Access-Control-Request-Method"] != nil
}

const (
	corsRequest = "Accept, Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id"
	corsExpose  = "MCP-Protocol-Version, Retry-After, WWW-Authenticate, X-MCP-Challenge, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"
	paramHeader = "mcp-param-"
)

// allowHeaders is the Access-Control-Allow-Headers of a preflight: what the protocol and the host read, and those Mcp-Param-*
// that the client announced, whose names only the tools know.
func allowHeaders(fixed string, asked []string) string {
	for _, line := range asked {
		for name := range strings.SplitSeq(line, ",") {
			name = textproto.TrimString(name)
			if len(name) > len(paramHeader) && strings.EqualFold(name[:len(paramHeader)], paramHeader) && isToken(name) {
				fixed += ", " + name
			}
		}
	}
	return fixed
}

// isToken reports whether s is a token of RFC 9110 section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}
