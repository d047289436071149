// Package jsonwalk reads JSON text (RFC 8259) strictly and without decoding it: grammar, UTF-8 and a depth bound are
// checked, members are handed out as sub-slices. It exists because encoding/json takes names in any letter case, keeps the
// last of two equal names, merges nested ones and mends broken UTF-8: what a validator saw and what a decoder stored could
// differ. It knows nothing of what the text means and depends on the standard library only.
package jsonwalk

import (
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// MaxDepth bounds nesting, so that a hostile text can't exhaust the stack.
const MaxDepth = 64

// The failures. They name no text of the input.
var (
	ErrSyntax = errors.New("jsonwalk: not JSON")
	ErrDepth  = errors.New("jsonwalk: nested too deeply")
	ErrUTF8   = errors.New("jsonwalk: not UTF-8")
)

// Space returns the index of the first byte at or after at that is not white space.
func Space(data []byte, at int) int {
	for at < len(data) && (data[at] == ' ' || data[at] == '\t' || data[at] == '\n' || data[at] == '\r') {
		at++
	}
	return at
}

// Value checks the value that begins at data[at], at that depth of nesting, and returns the index behind it.
func Value(data []byte, at, depth int) (int, error) {
	if at >= len(data) {
		return at, ErrSyntax
	}
	switch c := data[at]; {
	case c == '"':
		return String(data, at)
	case c == '{':
		return members(data, at, depth+1)
	case c == '[':
		return items(data, at, depth+1)
	case c == '-' || (c >= '0' && c <= '9'):
		return number(data, at)
	case c == 't':
		return literal(data, at, "true")
	case c == 'f':
		return literal(data, at, "false")
	case c == 'n':
		return literal(data, at, "null")
	}
	return at, ErrSyntax
}

// Whole checks that data is one value with nothing but white space around it and returns it trimmed.
func Whole(data []byte) ([]byte, error) {
	from := Space(data, 0)
	end, err := Value(data, from, 0)
	if err != nil {
		return nil, err
	}
	if Space(data, end) != len(data) {
		return nil, ErrSyntax
	}
	return data[from:end], nil
}

func members(data []byte, at, depth int) (int, error) {
	o := Object{data: data, at: at, depth: depth}
	for o.Next() {
	}
	return o.at, o.err
}

func items(data []byte, at, depth int) (int, error) {
	a := Array{data: data, at: at, depth: depth}
	for a.Next() {
	}
	return a.at, a.err
}

func literal(data []byte, at int, word string) (int, error) {
	if len(data)-at < len(word) || string(data[at:at+len(word)]) != word {
		return at, ErrSyntax
	}
	return at + len(word), nil
}

// number reads -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?.
func number(data []byte, at int) (int, error) {
	if at < len(data) && data[at] == '-' {
		at++
	}
	first := at
	at = digits(data, at)
	if at == first || (data[first] == '0' && at > first+1) {
		return at, ErrSyntax
	}
	if at < len(data) && data[at] == '.' {
		first = at + 1
		if at = digits(data, first); at == first {
			return at, ErrSyntax
		}
	}
	if at < len(data) && (data[at] == 'e' || data[at] == 'E') {
		at++
		if at < len(data) && (data[at] == '+' || data[at] == '-') {
			at++
		}
		first = at
		if at = digits(data, first); at == first {
			return at, ErrSyntax
		}
	}
	return at, nil
}

func digits(data []byte, at int) int {
	for at < len(data) && data[at] >= '0' && data[at] <= '9' {
		at++
	}
	return at
}

// plain is what stands for itself in a string: ASCII but for the quote, the backslash and controls. Nearly every byte is.
//
//nolint:gochecknoglobals // constant table
var plain = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// String checks the string that begins at data[at] and returns the index behind its closing quote.
func String(data []byte, at int) (int, error) {
	if at >= len(data) || data[at] != '"' {
		return at, ErrSyntax
	}
	at++
	for at < len(data) {
		if plain[data[at]] {
			at++
			continue
		}
		switch c := data[at]; {
		case c == '"':
			return at + 1, nil
		case c == '\\':
			n, err := escape(data, at)
			if err != nil {
				return at, err
			}
			at = n
		case c < 0x20:
			return at, ErrSyntax
		default:
			r, size := utf8.DecodeRune(data[at:])
			if r == utf8.RuneError && size == 1 {
				return at, ErrUTF8
			}
			at += size
		}
	}
	return at, ErrSyntax
}

func escape(data []byte, at int) (int, error) {
	if at+1 >= len(data) {
		return at, ErrSyntax
	}
	switch data[at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return at + 2, nil
	case 'u':
		if at+6 > len(data) {
			return at, ErrSyntax
		}
		for _, c := range data[at+2 : at+6] {
			if !hex(c) {
				return at, ErrSyntax
			}
		}
		return at + 6, nil
	}
	return at, ErrSyntax
}

func hex(c byte) bool {
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')
}

// Text is the text of a string token, quotes included. A token without escapes is copied as it is; others go through
// encoding/json, so that lone surrogates are read as every other reader in this program reads them.
func Text(token []byte) string {
	inner := token[1 : len(token)-1]
	for _, c := range inner {
		if c == '\\' {
			var s string
			if err := json.Unmarshal(token, &s); err != nil {
				return ""
			}
			return s
		}
	}
	return string(inner)
}
