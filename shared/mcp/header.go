package mcp

import (
	"encoding/base64"
	"mime"
	"net/http"
	"net/textproto"
	"strings"
)

// The headers that the protocol reads, in the canonical form in which net/http keys them: reading the map costs no
// canonicalization.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
)

// field returns a header's value without optional white space. A field that was sent several times is the combined value of
// RFC 9110 section 5.3, as a proxy would make it, so that no check ever takes one of several for the whole.
func field(h http.Header, key string) (value string, present bool) {
	switch v := h[key]; len(v) {
	case 0:
		return "", false
	case 1:
		return textproto.TrimString(v[0]), true
	default:
		return textproto.TrimString(strings.Join(v, ", ")), true
	}
}

// sole returns the value of a header that may be sent once and holds only the bytes of RFC 9110 section 5.5 that MCP
// allows: 0x20 to 0x7E and tab. Two values are two answers to the question which one a proxy acted on.
func sole(h http.Header, key string) (value string, ok bool) {
	v := h[key]
	if len(v) != 1 {
		return "", false
	}
	value = textproto.TrimString(v[0])
	for i := range len(value) {
		if c := value[i]; c != '\t' && (c < ' ' || c > '~') {
			return "", false
		}
	}
	return value, true
}

// The base64 sentinel of MCP 2026-07-28, transports, "Value Encoding"; case-sensitive.
const (
	sentinelOpen  = "=?base64?"
	sentinelClose = "?="
)

// decodeValue undoes the sentinel. Padding and alphabet are strict: a lenient reader would accept several spellings of one
// value, and a proxy that compares spellings would see several.
func decodeValue(v string) (string, bool) {
	if len(v) < len(sentinelOpen)+len(sentinelClose) || !strings.HasPrefix(v, sentinelOpen) || !strings.HasSuffix(v, sentinelClose) {
		return v, true
	}
	v = v[len(sentinelOpen) : len(v)-len(sentinelClose)]
	if strings.ContainsAny(v, "\r\n") {
		return "", false // encoding/base64 skips them even when strict
	}
	b, err := base64.StdEncoding.Strict().DecodeString(v)
	if err != nil {
		return "", false
	}
	return string(b), true
}

// mirrors reports whether header key repeats the body's value as MCP 2026-07-28, "Server Validation", demands.
func mirrors(h http.Header, key string, body []byte, encoded bool) bool {
	v, ok := sole(h, key)
	if ok && encoded {
		v, ok = decodeValue(v)
	}
	return ok && v == string(body)
}

// isJSON reports whether a request's body is declared as uncompressed JSON in UTF-8.
func isJSON(h http.Header) bool {
	if coding, ok := field(h, "Content-Encoding"); ok && !strings.EqualFold(coding, "identity") {
		return false
	}
	v, _ := field(h, "Content-Type")
	if v == "application/json" {
		return true
	}
	media, params, err := mime.ParseMediaType(v)
	if err != nil || media != "application/json" {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}
