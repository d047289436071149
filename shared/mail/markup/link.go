package markup

import (
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/idna"

	"github.com/buzon-mail/buzon/shared/mail/clean"
)

// Signal says what is suspicious about a link.
type Signal string

// The signals.
const (
	SignalTextMismatch Signal = "text_mismatch" // the text names another host than the address
	SignalPunycode     Signal = "punycode"      // a host in A-labels
	SignalNonASCIIHost Signal = "non_ascii_host"
	SignalIPHost       Signal = "ip_host"
	SignalUserinfo     Signal = "userinfo" // something before an @ that looks like the host
	SignalPort         Signal = "port"
	SignalInsecure     Signal = "insecure"   // http
	SignalNestedURL    Signal = "nested_url" // an address inside the query, as redirects have
)

// Link is an address that a person can follow.
type Link struct {
	URL     string // absolute, ASCII
	Text    string // what the person sees; third-party text
	Signals []Signal
}

const (
	maxURL      = 2048
	maxLinkText = 200
)

// hrefSpace drops what browsers drop inside an address, so that "java\nscript:" is seen as what it is.
//
//nolint:gochecknoglobals // constant table
var hrefSpace = strings.NewReplacer("\t", "", "\n", "", " ", "%20")

// NewLink judges one link. ok is false when it is not an absolute http, https, mailto or tel address; active then says that
// it would have run something.
func NewLink(raw, text string) (l Link, active, ok bool) {
	var none clean.Counts
	raw = hrefSpace.Replace(strings.TrimSpace(clean.Text(raw, &none)))
	scheme, _, _ := strings.Cut(raw, ":")
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto", "tel":
	case "javascript", "data", "vbscript", "file", "blob":
		return l, true, false
	default:
		return l, false, false
	}
	if len(raw) > maxURL {
		return l, false, false
	}
	l.Text = clean.CutRunes(clean.Line(text, &none), maxLinkText)
	u, err := url.Parse(raw)
	if err != nil {
		return l, false, false
	}
	if u.Opaque == "" && u.Host != "" {
		if !l.judge(u) {
			return l, false, false
		}
	} else if u.Scheme == "http" || u.Scheme == "https" {
		return l, false, false
	}
	l.URL = escapeURL(u.String())
	return l, false, len(l.URL) <= 2*maxURL
}

// judge collects the signals and turns the host into A-labels.
func (l *Link) judge(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	add := func(s Signal, when bool) {
		if when {
			l.Signals = append(l.Signals, s)
		}
	}
	shown := shownHost(l.Text)
	if !ascii(host) {
		add(SignalNonASCIIHost, true)
		a, err := idna.Lookup.ToASCII(host)
		if err != nil {
			if a, err = idna.Punycode.ToASCII(host); err != nil || !ascii(a) {
				return false
			}
		}
		port := u.Port()
		if host, u.Host = a, a; port != "" {
			u.Host += ":" + port
		}
	}
	add(SignalTextMismatch, shown != "" && !sameSite(shown, host))
	add(SignalPunycode, strings.Contains("."+host, ".xn--"))
	add(SignalIPHost, isIP(host))
	add(SignalUserinfo, u.User != nil)
	add(SignalPort, u.Port() != "" && u.Port() != "80" && u.Port() != "443")
	add(SignalInsecure, u.Scheme == "http")
	q := strings.ToLower(u.RawQuery)
	add(SignalNestedURL, strings.Contains(q, "http://") || strings.Contains(q, "https://") || strings.Contains(q, "http%3a") || strings.Contains(q, "https%3a"))
	return host != ""
}

// isIP accepts the forms that browsers accept too: decimal, octal and hexadecimal numbers.
func isIP(host string) bool {
	// Of the forms that netip knows, only those with a colon end in something else than a number; asking it about every name
	// costs an error each.
	if strings.Contains(host, ":") {
		if _, err := netip.ParseAddr(host); err == nil {
			return true
		}
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last != "" && (strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x"))
}

// shownHost is the host that a link's text seems to name, "" when it names none.
func shownHost(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	if strings.ContainsAny(text, " @") || !strings.Contains(text, ".") {
		return ""
	}
	if _, rest, ok := strings.Cut(text, "://"); ok {
		text = rest
	}
	if i := strings.IndexAny(text, "/?#:"); i >= 0 {
		text = text[:i]
	}
	text = strings.Trim(text, ".…,()[]<>")
	dot := strings.LastIndexByte(text, '.')
	if dot <= 0 || len(text)-dot < 3 {
		return ""
	}
	for _, c := range text[dot+1:] {
		if c >= '0' && c <= '9' {
			return ""
		}
	}
	if a, err := idna.Lookup.ToASCII(text); err == nil {
		return a
	}
	return text
}

// sameSite reports whether one host is the other or stands below it.
func sameSite(a, b string) bool {
	a, b = strings.TrimPrefix(a, "www."), strings.TrimPrefix(b, "www.")
	return a == b || strings.HasSuffix(a, "."+b) || strings.HasSuffix(b, "."+a)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// escapeURL escapes what must not stand in a URL (RFC 3986 section 2).
func escapeURL(s string) string {
	const upper = "0123456789ABCDEF"
	first := strings.IndexFunc(s, func(r rune) bool { return r >= 0x7f || unsafeInURL(byte(r)) })
	if first < 0 {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:first])
	for i := first; i < len(s); i++ {
		if c := s[i]; unsafeInURL(c) {
			b.Write([]byte{'%', upper[c>>4], upper[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unsafeInURL(c byte) bool {
	return c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0
}

// links rewrites the hrefs of the tree to their judged form, drops those that may not be followed, and lists the rest.
func (d *Document) links(n *html.Node, limit int) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode {
			continue
		}
		if c.Data == "a" {
			d.anchor(c, limit)
		}
		d.links(c, limit)
	}
}

func (d *Document) anchor(n *html.Node, limit int) {
	href, has := attr(n, "href")
	n.Attr = nil
	if !has {
		return
	}
	l, active, ok := NewLink(href, innerText(n))
	if active {
		d.Active++
	}
	if !ok {
		return
	}
	n.Attr = []html.Attribute{{Key: "href", Val: l.URL}}
	if len(d.Links) >= limit {
		d.LinksCut++
		return
	}
	d.Links = append(d.Links, l)
}

// innerText is the beginning of the text below n.
func innerText(n *html.Node) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		for c := n.FirstChild; c != nil && b.Len() < 4*maxLinkText; c = c.NextSibling {
			if c.Type == html.TextNode {
				b.WriteString(clean.Cut(c.Data, 4*maxLinkText))
				continue
			}
			walk(c)
		}
	}
	walk(n)
	return b.String()
}
