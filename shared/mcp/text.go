package mcp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendQuoted appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD: header values may hold anything.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, strings.ToValidUTF8(s, "\uFFFD"))
	return append(dst, '"')
}

// appendEscaped appends the inside of a JSON string; src must be UTF-8. Only what RFC 8259 section 7 demands is escaped: the
// reply is application/json with nosniff, so nothing is gained by escaping for HTML.
func appendEscaped[T string | []byte](dst []byte, src T) []byte {
	start := 0
	for i := 0; i < len(src); i++ {
		c := src[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, src[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(dst, src[start:]...)
}

// cut shortens what a caller sent to at most n bytes, between two runes, before it is echoed.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// oneLine returns JSON without line breaks outside its strings: clients read a reply line by line. Almost always it is src.
func oneLine(src []byte) ([]byte, error) {
	src = bytes.TrimSpace(src)
	if bytes.IndexByte(src, '\n') < 0 && bytes.IndexByte(src, '\r') < 0 {
		return src, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, src); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// membersOnOneLine is oneLine for the inside of an object.
func membersOnOneLine(src []byte) ([]byte, error) {
	if bytes.IndexByte(src, '\n') < 0 && bytes.IndexByte(src, '\r') < 0 {
		return src, nil
	}
	b, err := oneLine(slices.Concat([]byte{'{'}, src, []byte{'}'}))
	if err != nil {
		return nil, err
	}
	return b[1 : len(b)-1], nil
}
