package lambdaedge

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// escapes is the number of bytes that a byte takes inside a JSON string. Nothing is escaped that RFC 8259 section 7 lets
// stand: encoding/json also escapes <, > and & for HTML, which would grow mail bodies.
//
//nolint:gochecknoglobals // constant table
var escapes = func() (t [256]uint8) {
	for i := range t {
		t[i] = 1
		if i < 0x20 {
			t[i] = 6
		}
	}
	for _, c := range "\"\\\n\r\t" {
		t[c] = 2
	}
	return t
}()

// escapedLen is the length of appendEscaped's output.
func escapedLen(s []byte) (n int) {
	for _, c := range s {
		n += int(escapes[c])
	}
	return n
}

// appendEscaped appends valid UTF-8 as the inside of a JSON string.
func appendEscaped[T []byte | string](dst []byte, s T) []byte {
	start := 0
	for i := range len(s) {
		c := s[i]
		n := escapes[c]
		if n == 1 {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch {
		case n == 6:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', c)
		}
	}
	return append(dst, s[start:]...)
}

// appendString appends a whole JSON string. Bytes that are not UTF-8, as Latin-1 in a header, become U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	if utf8.ValidString(s) {
		dst = appendEscaped(dst, s)
	} else {
		dst = appendEscaped(dst, string([]rune(s)))
	}
	return append(dst, '"')
}
