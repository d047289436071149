package oauth

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

const (
	maxQuery = 8 << 10  // bytes of an authorization request
	maxForm  = 16 << 10 // bytes of a posted form
	maxState = 4096     // bytes; ChatGPT sends more than 500
)

// Faults of a form. Which one it was is for logs.
var (
	errFormTooLarge  = errors.New("oauth: form too large")
	errFormType      = errors.New("oauth: not a form")
	errFormMalformed = errors.New("oauth: malformed form")
	errFormDuplicate = errors.New("oauth: a parameter stands twice")
)

// form is a decoded application/x-www-form-urlencoded text: each name once, no empty value.
type form map[string]string

// decodeForm reads a query or a body. A parameter that stands twice is a fault of the whole request (RFC 6749 section 3.1,
// MUST NOT): two readers could act on different ones. An empty value counts as absent (same section). A semicolon or a bad
// escape is refused rather than repaired.
func decodeForm(text string) (form, error) {
	f := form{}
	seen := map[string]bool{}
	for text != "" {
		var pair string
		pair, text, _ = strings.Cut(text, "&")
		if pair == "" {
			continue
		}
		if strings.Contains(pair, ";") {
			return nil, errFormMalformed
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil {
			return nil, errFormMalformed
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil || !utf8.ValidString(name) || !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
			return nil, errFormMalformed
		}
		if seen[name] {
			return nil, errFormDuplicate
		}
		seen[name] = true
		if value != "" {
			f[name] = value
		}
	}
	return f, nil
}

// postedForm reads the body of a POST.
func postedForm(r *http.Request) (form, error) {
	types := r.Header["Content-Type"]
	if len(types) != 1 {
		return nil, errFormType
	}
	if media, _, err := mime.ParseMediaType(types[0]); err != nil || media != "application/x-www-form-urlencoded" {
		return nil, errFormType
	}
	body, err := readBody(r, maxForm)
	if err != nil {
		return nil, err
	}
	return decodeForm(string(body))
}
