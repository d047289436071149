package rest

import (
	"time"
	"unicode/utf8"

	"github.com/buzon-mail/buzon/shared/jsonwalk"
)

// What an Appender writes its JSON with. Each writes what encoding/json writes without escaping for HTML.

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start, i := 0, 0
	for i < len(s) {
		if i = jsonwalk.Plain(s, i); i == len(s) {
			break
		}
		c := s[i]
		if c < utf8.RuneSelf {
			dst = appendEscape(append(dst, s[start:i]...), c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(append(dst, s[start:i]...), `\ufffd`...)
			start = i + size
		case r == '\u2028', r == '\u2029': // JavaScript once took them for line ends; encoding/json still escapes them
			dst = append(append(dst, s[start:i]...), `\u202`...)
			dst = append(dst, hexDigits[r&15])
			start = i + size
		}
		i += size
	}
	return append(append(dst, s[start:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// AppendStrings appends a list of texts; nil is null.
func AppendStrings(dst []byte, list []string) []byte {
	if list == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, s)
	}
	return append(dst, ']')
}

// AppendEscaped appends text, JSON as an Appender writes it, as the inside of a JSON string. Such JSON is UTF-8 without control
// characters, so quotes and backslashes are all there is to escape (RFC 8259 section 7).
func AppendEscaped(dst, text []byte) []byte {
	start := 0
	for i, c := range text {
		if c == '"' || c == '\\' {
			dst = append(append(dst, text[start:i]...), '\\')
			start = i
		}
	}
	return append(dst, text[start:]...)
}

// digits2 writes a number below 100 with two digits.
func digits2(b []byte, n int) { b[0], b[1] = byte('0'+n/10), byte('0'+n%10) }

// AppendJSON writes what MarshalJSON writes. Digit by digit, because a list of mails has a hundred of them and
// time.AppendFormat reads its layout each time.
func (t Time) AppendJSON(dst []byte) ([]byte, error) {
	if t.IsZero() {
		return append(dst, null...), nil
	}
	u := t.UTC()
	year, month, day := u.Date()
	if year < 0 || year > 9999 {
		return dst, yearError(year)
	}
	hour, minute, second := u.Clock()
	at := len(dst)
	dst = append(dst, `"2006-01-02T15:04:05.000Z"`...)
	b := dst[at:]
	digits2(b[1:], year/100)
	digits2(b[3:], year%100)
	digits2(b[6:], int(month))
	digits2(b[9:], day)
	digits2(b[12:], hour)
	digits2(b[15:], minute)
	digits2(b[18:], second)
	ms := u.Nanosecond() / int(time.Millisecond)
	b[21] = byte('0' + ms/100)
	digits2(b[22:], ms%100)
	return dst, nil
}
