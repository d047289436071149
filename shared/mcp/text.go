package mcp

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
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
		dst = appendEscape(append(dst, src[start:i]...), c)
		start = i + 1
	}
	return append(dst, src[start:]...)
}

// appendEscape appends a byte that RFC 8259 section 7 wants escaped: at most 6 bytes.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendDocument is appendEscaped for a tool's reply, which may be long: in the same pass it learns whether src holds a line
// break and whether it is UTF-8. Eight bytes are copied at once and then judged, so dst always has room for some more.
func appendDocument(dst, src []byte) (out []byte, breaks, valid bool) {
	const block = 256 // bounds the room that is reserved for the worst case
	for i := 0; i < len(src); {
		end := min(i+block, len(src))
		dst = slices.Grow(dst, 6*(end-i+7)+8) // the last eight bytes may begin at end-1, and eight are written at a time
		d, n := dst[:cap(dst)], len(dst)
		for i < end {
			if i+8 <= len(src) {
				w := binary.LittleEndian.Uint64(src[i:])
				binary.LittleEndian.PutUint64(d[n:], w)
				slashed, other := special(w)
				if slashed|other == 0 { // a branch, so that the next eight need not wait for the count
					i, n = i+8, n+8
					continue
				}
				if other == 0 {
					i, n = i+8, putSlashed(d, n, w, slashed)
					continue
				}
				k := bits.TrailingZeros64(slashed|other) / 8
				i, n = i+k, n+k
			}
			switch c := src[i]; {
			case c == '"':
				d[n], d[n+1] = '\\', '"'
				i, n = i+1, n+2
			case c >= utf8.RuneSelf:
				_, size := utf8.DecodeRune(src[i:])
				if size == 1 {
					return dst, breaks, false
				}
				n += copy(d[n:], src[i:i+size])
				i += size
			case c >= ' ' && c != '\\':
				d[n] = c
				i, n = i+1, n+1
			default:
				breaks = breaks || c == '\n' || c == '\r'
				n = len(appendEscape(d[:n], c))
				i++
			}
		}
		dst = d[:n]
	}
	return dst, breaks, true
}

// putSlashed writes eight bytes of ASCII with a backslash before each that slashed marks, and returns the index behind them. JSON has
// a quote in every other eight bytes: to begin anew behind each cost more than all else.
func putSlashed(d []byte, n int, w, slashed uint64) int {
	done := 0
	for ; slashed != 0; slashed &= slashed - 1 {
		k := bits.TrailingZeros64(slashed) / 8
		binary.LittleEndian.PutUint64(d[n:], w>>(8*done))
		n += k - done
		d[n] = '\\'
		n, done = n+1, k
	}
	binary.LittleEndian.PutUint64(d[n:], w>>(8*done))
	return n + 8 - done
}

// special marks the high bit of each byte of w that does not stand in a JSON string as it is: slashed are quotes and backslashes,
// other are control characters. Where w is not all ASCII everything beyond it is in other, and slashed is not to be believed.
func special(w uint64) (slashed, other uint64) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	if w&highs != 0 {
		quote, slash := w^'"'*ones, w^'\\'*ones
		// A borrow may mark bytes above a marked one: only the lowest mark of all is to be believed.
		return 0, ((w-' '*ones)&^w | (quote-ones)&^quote | (slash-ones)&^slash | w) & highs
	}
	// Without high bits there are no carries, and each mark is exact.
	quote, slash := (w^'"'*ones)+^uint64(highs), (w^'\\'*ones)+^uint64(highs)
	return ^(quote & slash) & highs, ^(w + 0x60*ones) & highs
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
