package oauth

import (
	"encoding/binary"
	"net/http"
	"strings"
)

// Bearer takes the token out of the Authorization header (RFC 6750 section 2.1). A token in the query or the body is not
// looked for: it would end in logs and Referer headers, and MCP forbids it (MUST NOT). The error is *apperr.Error of kind
// unauthenticated: missing_token when there is no header or another scheme, invalid_token when it is malformed.
func Bearer(h http.Header) (string, error) {
	values := h["Authorization"]
	if len(values) == 0 {
		return "", missing("no Authorization header")
	}
	// Two headers: a proxy in front may have checked the one that we would not use.
	if len(values) > 1 {
		return "", invalid("several Authorization headers")
	}
	if values[0] == "" {
		return "", missing("empty Authorization header")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", missing("another scheme")
	}
	token = strings.TrimLeft(token, " ") // 1*SP, RFC 9110 section 11.4
	if len(token) > MaxTokenBytes {
		return "", invalid("over the size limit")
	}
	if !isToken68(token) {
		return "", invalid("not a b64token")
	}
	return token, nil
}

// isToken68 is b64token of RFC 6750 section 2.1: letters, digits, -._~+/ and then equals signs. It looks at eight bytes at a time: a token
// is some hundred bytes long and comes with every request.
func isToken68(s string) bool {
	body := strings.TrimRight(s, "=")
	if body == "" {
		return false
	}
	i := 0
	for ; i+8 <= len(body); i += 8 {
		if !token68(word(body[i : i+8])) {
			return false
		}
	}
	if i == len(body) {
		return true
	}
	last := [8]byte{'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a'}
	copy(last[:], body[i:])
	return token68(binary.LittleEndian.Uint64(last[:]))
}

// token68 reports whether all eight bytes of w are of the alphabet. Each line marks the high bit of those that are; below 0x80 no sum
// carries into the byte beside it.
func token68(w uint64) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	if w&highs != 0 {
		return false
	}
	lower := w | 0x20*ones
	good := (w + (0x80-'-')*ones) &^ (w + (0x7f-'9')*ones)         // - . / 0 to 9
	good |= (lower + (0x80-'a')*ones) &^ (lower + (0x7f-'z')*ones) // letters of both cases
	good |= ^((w ^ '+'*ones) + 0x7f*ones)
	good |= ^((w ^ '_'*ones) + 0x7f*ones)
	good |= ^((w ^ '~'*ones) + 0x7f*ones)
	return good&highs == highs
}

// word is binary.LittleEndian.Uint64 of a string, which the compiler makes one load.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
