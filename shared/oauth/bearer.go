package oauth

import (
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

// isToken68 is b64token of RFC 6750 section 2.1: letters, digits, -._~+/ and then equals signs.
func isToken68(s string) bool {
	body := strings.TrimRight(s, "=")
	if body == "" {
		return false
	}
	for i := range len(body) {
		if !token68[body[i]] {
			return false
		}
	}
	return true
}

// token68 is a table, because a token is some hundred bytes long and comes with every request.
//
//nolint:gochecknoglobals // constant table
var token68 = func() (t [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/") {
		t[c] = true
	}
	return t
}()
