package oauth

import "strings"

// Error codes of RFC 6750 section 3.1 that we answer with.
const (
	ErrorInvalidToken      = "invalid_token"
	ErrorInsufficientScope = "insufficient_scope"
)

// Challenge is what a 401 or 403 tells a client: where the metadata is, which scopes to ask for, what was wrong.
type Challenge struct {
	ResourceMetadata string // URL of the metadata document, RFC 9728 section 5.1
	Scope            string // space-separated
	Error            string // empty when no token was sent: RFC 6750 section 3.1, SHOULD NOT
	Description      string // for developers
}

// Header is the value of WWW-Authenticate, and of X-MCP-Challenge, which survives doors that rename the former.
func (c Challenge) Header() string {
	var b strings.Builder
	b.WriteString("Bearer")
	sep := byte(' ')
	for _, p := range c.parameters() {
		if p.value == "" {
			continue
		}
		b.WriteByte(sep)
		if sep == ',' {
			b.WriteByte(' ')
		}
		sep = ','
		b.WriteString(p.name)
		b.WriteByte('=')
		writeQuoted(&b, p.value)
	}
	return b.String()
}

// Data is the same facts as members of an error's data, for clients whose door hides the header.
func (c Challenge) Data() map[string]any {
	data := make(map[string]any, 4)
	for _, p := range c.parameters() {
		if p.value != "" {
			data[p.name] = p.value
		}
	}
	return data
}

type parameter struct{ name, value string }

func (c Challenge) parameters() [4]parameter {
	return [4]parameter{
		{"resource_metadata", c.ResourceMetadata},
		{"scope", plain(c.Scope)},
		{"error", plain(c.Error)},
		{"error_description", plain(c.Description)},
	}
}

// plain keeps to the characters that RFC 6750 section 3 allows in scope, error and error_description: printable ASCII
// without the quote and the backslash, so that clients without unescaping read the same text.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r < 0x20, r > 0x7e, r == '\\':
			return '?'
		}
		return r
	}, s)
}

// writeQuoted writes a quoted-string (RFC 9110 section 5.6.4). Bytes outside printable ASCII become a question mark: a line
// break would start a header of the attacker's choice.
func writeQuoted(b *strings.Builder, s string) {
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20, c > 0x7e:
			b.WriteByte('?')
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}
