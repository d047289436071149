package config

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	defaultRate    = 600
	defaultOutward = 60
	maxRate        = 1_000_000
)

// rates reads both limits. Off is for tests and measurements on one machine: mayDisable says whether this is one.
func (r *reader) rates(mayDisable bool) Rates {
	return Rates{PerMinute: r.rate(varRate, defaultRate, mayDisable), OutwardPerMinute: r.rate(varOutward, defaultOutward, mayDisable)}
}

func (r *reader) rate(variable string, fallback int, mayDisable bool) int {
	v := r.getenv(variable)
	if v == "" {
		return fallback
	}
	n, err := strconv.Atoi(v)
	switch {
	case err != nil || n < 0 || n > maxRate:
		r.fault(variable, "%s is not a number from 0 to %d; leave it out for %d.", quote(v), maxRate, fallback)
	case n == 0 && !mayDisable:
		r.fault(variable, "0 turns the limit off, which only a process bound to loopback may do; set a number or bind to 127.0.0.1.")
	}
	return n
}

// Calls that are served at once when nothing says how many: on AWS what a new account has, elsewhere what no machine minds.
const (
	deployedConcurrency = 10
	localConcurrency    = 100
)

// waits is how many calls may wait for mail at once: a tenth of those that are served at once, for each holds its place for up to
// 25 seconds. 0 is a template's way to say that nothing is reserved.
func (r *reader) waits(fallback int) int {
	n := fallback
	if v := r.getenv(varConcurrency); v != "" && v != "0" {
		var err error
		if n, err = strconv.Atoi(v); err != nil || n < 1 || n > maxRate {
			r.fault(varConcurrency, "%s is not a number from 1 to %d; leave it out for %d.", quote(v), maxRate, fallback)
			return 0
		}
	}
	return max(n/10, 1)
}

// addr reads host:port to listen on.
func (r *reader) addr(variable, fallback string) (addr string, loopback bool) {
	addr = r.or(variable, fallback)
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		r.fault(variable, "%s is not host:port, as %s.", quote(addr), fallback)
		return addr, false
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		r.fault(variable, "%s is not a port; take 1 to 65535, or 0 for any free one.", quote(port))
	} else {
		port = strconv.FormatUint(n, 10)
	}
	return net.JoinHostPort(host, port), isLoopback(host)
}

// isLoopback takes a host without brackets. The name localhost counts: RFC 6761 section 6.3 reserves it.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// origin reads an absolute URL that is a bare origin and returns its canonical form (RFC 6454 section 4): scheme and host in
// lower case, no default port. Tokens and challenges are compared with it byte by byte, so there must be one spelling.
func (r *reader) origin(variable, v string) string {
	u, err := url.Parse(v)
	if err != nil || u.Host == "" || u.Opaque != "" {
		r.fault(variable, "%s is not a URL like https://mail.example.com.", quote(v))
		return ""
	}
	switch {
	case u.User != nil:
		// The value is not repeated: it holds a password.
		r.fault(variable, "a URL with a user or password in it; give only scheme and host.")
		return ""
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(v, "#"):
		r.fault(variable, "%s has a query or a fragment; give only scheme and host.", quote(v))
		return ""
	case u.Path != "" && u.Path != "/":
		r.fault(variable, "%s has a path; the service stands at the root of its host.", quote(v))
		return ""
	}
	host := strings.ToLower(u.Hostname())
	if !isHost(host) {
		r.fault(variable, "%s is not a host name or address; write an internationalized name in its ASCII form (xn--...).", quote(u.Hostname()))
		return ""
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(host)) {
		r.fault(variable, "%s must begin with https://; http:// is only for localhost.", quote(v))
		return ""
	}
	return r.joinOrigin(variable, u, host)
}

func (r *reader) joinOrigin(variable string, u *url.URL, host string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	port := u.Port()
	if port == "" && strings.HasSuffix(u.Host, ":") {
		r.fault(variable, "%s ends with a colon and no port.", quote(u.Host))
		return ""
	}
	if port == "" {
		return u.Scheme + "://" + host
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		r.fault(variable, "%s is not a port; take 1 to 65535.", quote(port))
		return ""
	}
	if u.Scheme == "https" && n == 443 || u.Scheme == "http" && n == 80 {
		return u.Scheme + "://" + host
	}
	return u.Scheme + "://" + host + ":" + strconv.FormatUint(n, 10)
}

// isHost accepts an address or a name of letters, digits and hyphens in lower case (RFC 1123 section 2.1), without a final dot.
func isHost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Zone() == ""
	}
	if host == "" || len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return true
}

// origins reads the list of browser origins that may call, separated by commas or spaces.
func (r *reader) origins() []string {
	var list []string
	for _, v := range strings.FieldsFunc(r.getenv(varOrigins), func(c rune) bool { return c == ',' || c == ' ' }) {
		if v == "*" || v == "null" {
			r.fault(varOrigins, "%s would let any page call in its visitor's name; list the origins.", quote(v))
			continue
		}
		if o := r.origin(varOrigins, v); o != "" && !slices.Contains(list, o) {
			list = append(list, o)
		}
	}
	return list
}

// publicURL reads the URL that clients type; empty when it is unset.
func (r *reader) publicURL() string {
	v := r.getenv(varPublicURL)
	if v == "" {
		return ""
	}
	return r.origin(varPublicURL, v)
}
