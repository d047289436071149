package mcp

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"unicode/utf8"
)

// digest is the SHA-256 of arguments in their canonical form. Absent arguments are an empty object.
func digest(arguments []byte) [sha256.Size]byte {
	if arguments == nil {
		arguments = []byte("{}")
	}
	return sha256.Sum256(canonical(arguments))
}

// canonical returns JSON that the scan accepted in a form that two messages share only when every reader takes the same from both: no white
// space, members sorted by name (several of one name in the order in which they stand), strings with the fewest escapes, numbers as they were
// written. So 1 and 1.0 differ: a client repeats what it sent.
func canonical(raw []byte) []byte {
	c := canonizer{scanner: scanner{b: raw}}
	return c.value(make([]byte, 0, len(raw)))
}

type canonizer struct{ scanner }

func (c *canonizer) value(dst []byte) []byte {
	switch c.peek() {
	case '{':
		return c.object(dst)
	case '[':
		return c.array(dst)
	}
	start := c.i
	c.scalar()
	return appendCanonical(dst, c.b[start:c.i])
}

func (c *canonizer) object(dst []byte) []byte {
	type pair struct{ name, member []byte }
	var pairs []pair
	c.i++
	for c.peek() == '"' {
		raw, _ := c.key()
		name := appendCanonical(nil, raw)
		pairs = append(pairs, pair{name, c.value(append(slices.Clone(name), ':'))})
		if c.peek() == ',' {
			c.i++
		}
	}
	c.i++
	slices.SortStableFunc(pairs, func(a, b pair) int { return bytes.Compare(a.name, b.name) })
	dst = append(dst, '{')
	for i, p := range pairs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, p.member...)
	}
	return append(dst, '}')
}

func (c *canonizer) array(dst []byte) []byte {
	c.i++
	dst = append(dst, '[')
	for c.peek() != ']' && c.i < len(c.b) {
		dst = c.value(dst)
		if c.peek() == ',' {
			c.i++
			dst = append(dst, ',')
		}
	}
	c.i++
	return append(dst, ']')
}

// appendCanonical takes a scalar. A string that may hold a lone surrogate stays as it was written: what it decodes to is up to the reader.
func appendCanonical(dst, raw []byte) []byte {
	text := unquote(raw)
	if text == nil || bytes.ContainsRune(text, utf8.RuneError) {
		return append(dst, raw...)
	}
	return append(appendEscaped(append(dst, '"'), text), '"')
}
