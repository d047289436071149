package oauth

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxClientName = 80 // characters
	maxMarks      = 2  // combining marks on one letter; scripts of India need two
)

// client is who asks for access, as far as it could be proven.
type client struct {
	ID        string   `json:"id"`
	Name      string   `json:"name,omitempty"`    // self-declared
	Host      string   `json:"host,omitempty"`    // of the document that the client published; empty: nothing is verified
	Redirects []string `json:"redirects"`         // registered
	Loopback  bool     `json:"loopback,omitzero"` // every redirect ends on the person's computer
}

// redirect finds the URI to answer to. Without a parameter there must be exactly one registered (OAuth 2.1 section 4.1.1).
func (c *client) redirect(requested string) (string, bool) {
	if requested == "" {
		if len(c.Redirects) == 1 {
			return c.Redirects[0], true
		}
		return "", false
	}
	for _, registered := range c.Redirects {
		if matchRedirect(registered, requested) {
			return requested, true
		}
	}
	return "", false
}

func onlyLoopback(uris []string) bool {
	for _, uri := range uris {
		if !onThisComputer(uri) {
			return false
		}
	}
	return true
}

// cleanName makes a self-declared name harmless: one line, no control, format or direction characters, at most 80 characters.
// A name is what an attacker writes onto our consent page.
func cleanName(name string) string {
	marks := 0
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) {
			if marks++; marks > maxMarks {
				return -1 // stacked marks climb over the lines above
			}
			return r
		}
		marks = 0
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError, unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), unicode.IsControl(r):
			return -1
		}
		return r
	}, name)
	name = strings.Join(strings.Fields(name), " ")
	if runes := []rune(name); len(runes) > maxClientName {
		name = strings.TrimSpace(string(runes[:maxClientName-1])) + "…"
	}
	return name
}

// isDocumentID tells a client id that is a URL (OAuth Client ID Metadata Document section 3) from one of ours.
func isDocumentID(id string) bool {
	return strings.HasPrefix(id, "https://") || strings.HasPrefix(id, "http://")
}

// documentID is validDocumentID, and what a server on this computer takes besides: http, and only by the name localhost, which
// no resolver is asked for. Anywhere else it would lead to the server's own neighbours, over a wire that anybody reads.
func (s *Server) documentID(id string) bool {
	if rest, ok := strings.CutPrefix(id, "http://"); ok {
		u, err := url.Parse(id)
		return s.loopback && err == nil && u.Hostname() == "localhost" && validDocumentID("https://"+rest)
	}
	return validDocumentID(id)
}

// validDocumentID is the form of such an id: https, a path, no fragment, no user, no dot segments, as it was written: it is
// compared as a string and never normalized.
func validDocumentID(id string) bool {
	if len(id) > maxDocumentID || strings.ContainsAny(id, "#\\") {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] >= 0x7f {
			return false
		}
	}
	u, err := url.Parse(id)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Host == "" || u.Opaque != "" {
		return false
	}
	if len(u.Path) < 2 || u.Path[0] != '/' {
		return false
	}
	for segment := range strings.SplitSeq(u.Path, "/") { // decoded: %2e is a dot too
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}
