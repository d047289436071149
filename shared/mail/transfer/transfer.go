// Package transfer decodes content transfer encodings (RFC 2045 section 6, and uuencode), repairing what is broken instead of
// giving up. Every decoder is one pass and its output is never longer than its input. It must not know MIME structure.
package transfer

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// Encoding is a content transfer encoding.
type Encoding string

// The encodings. Identity stands for 7bit, 8bit and binary; Unknown is read as it is.
const (
	Identity        Encoding = "identity"
	Base64          Encoding = "base64"
	QuotedPrintable Encoding = "quoted-printable"
	Uuencode        Encoding = "uuencode"
	Unknown         Encoding = "unknown"
)

// Named reads a Content-Transfer-Encoding value; a comment or trailing junk does not matter.
func Named(value string) Encoding {
	if i := strings.IndexAny(value, ";( \t"); i > 0 {
		value = value[:i]
	}
	switch strings.ToLower(strings.Trim(value, " \t\"';.")) {
	case "", "7bit", "8bit", "binary", "7-bit", "8-bit", "none", "us-ascii", "utf-8":
		return Identity
	case "base64", "base-64", "b":
		return Base64
	case "quoted-printable", "quotedprintable", "qp", "q", "quoted_printable":
		return QuotedPrintable
	case "uuencode", "x-uuencode", "uue", "x-uue":
		return Uuencode
	default:
		return Unknown
	}
}

// Decode decodes data. repairs counts the places that were not well-formed. Identity and Unknown return data itself.
func Decode(data []byte, enc Encoding) (out []byte, repairs int) {
	switch enc {
	case Base64:
		return decodeBase64(data)
	case QuotedPrintable:
		return decodeQuotedPrintable(data)
	case Uuencode:
		if _, body, _, ok := FindUuencoded(data); ok {
			return decodeUuencode(body)
		}
		return data, 1
	default:
		return data, 0
	}
}

func decodeBase64(data []byte) ([]byte, int) {
	out := make([]byte, base64.StdEncoding.DecodedLen(len(data))+3)
	if n, err := base64.StdEncoding.Decode(out, data); err == nil {
		return out[:n], 0
	}
	d := base64Repair{out: out[:0]}
	for line := range bytes.Lines(data) {
		if !d.line(bytes.Trim(line, " \t\r\n")) {
			break
		}
	}
	d.flush()
	return d.out, max(d.repairs, 1)
}

// base64Repair drops characters outside the alphabet, goes on after inner padding, and stops where a list footer begins.
type base64Repair struct {
	out     []byte
	acc     uint32
	n       int
	blank   bool // a blank line was seen after data
	padded  bool
	repairs int
}

func (d *base64Repair) line(line []byte) bool {
	if len(line) == 0 {
		d.blank = d.blank || len(d.out) > 0
		return true
	}
	// After padding or a blank line only another clean run of base64 counts; anything else is text that a list appended,
	// and decoding its letters would put garbage behind the file.
	if (d.blank || d.padded) && !clean(line) {
		d.repairs++
		return false
	}
	d.padded = false
	for _, c := range line {
		v := value(c)
		if v < 0 {
			if c == '=' {
				d.flush()
				d.padded = true
			} else {
				d.repairs++
			}
			continue
		}
		d.acc, d.n = d.acc<<6|uint32(v), d.n+1
		if d.n == 4 {
			d.out = append(d.out, byte(d.acc>>16), byte(d.acc>>8), byte(d.acc))
			d.acc, d.n = 0, 0
		}
	}
	return true
}

// flush writes what an unfinished quantum holds; a single left-over character holds less than a byte.
func (d *base64Repair) flush() {
	switch d.n {
	case 1:
		d.repairs++
	case 2:
		d.out = append(d.out, byte(d.acc>>4))
	case 3:
		d.out = append(d.out, byte(d.acc>>10), byte(d.acc>>2))
	}
	d.acc, d.n = 0, 0
}

func clean(line []byte) bool {
	line = bytes.TrimRight(line, "=")
	for _, c := range line {
		if value(c) < 0 {
			return false
		}
	}
	return len(line) >= 2
}

func value(c byte) int {
	switch {
	case c >= 'A' && c <= 'Z':
		return int(c - 'A')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 26
	case c >= '0' && c <= '9':
		return int(c-'0') + 52
	case c == '+':
		return 62
	case c == '/':
		return 63
	default:
		return -1
	}
}

func decodeQuotedPrintable(data []byte) ([]byte, int) {
	if bytes.IndexByte(data, '=') < 0 {
		return data, 0
	}
	out := make([]byte, 0, len(data))
	repairs, literal := 0, 0 // literal: white space before this offset was encoded and stays at a line's end
	for i := 0; i < len(data); i++ {
		c := data[i]
		if c == '\n' {
			end := len(out)
			cr := end > literal && out[end-1] == '\r'
			if cr {
				end--
			}
			for end > literal && (out[end-1] == ' ' || out[end-1] == '\t') {
				end--
			}
			out = out[:end]
			if cr {
				out = append(out, '\r')
			}
			out = append(out, '\n')
			literal = len(out)
			continue
		}
		if c != '=' {
			out = append(out, c)
			continue
		}
		if n, ok := softBreak(data[i+1:]); ok {
			i += n
			literal = len(out)
			continue
		}
		if i+2 < len(data) {
			if hi, lo := nibble(data[i+1]), nibble(data[i+2]); hi >= 0 && lo >= 0 {
				out = append(out, byte(hi<<4|lo))
				literal = len(out)
				i += 2
				continue
			}
		}
		out = append(out, '=')
		repairs++
	}
	return out, repairs
}

// softBreak reports whether rest, behind a '=', is white space up to a line end or the end of the data, and its length. The
// look-ahead is bounded so that "= = = ..." stays one pass.
func softBreak(rest []byte) (int, bool) {
	for i := range min(len(rest), 80) {
		switch rest[i] {
		case ' ', '\t', '\r':
		case '\n':
			return i + 1, true
		default:
			return 0, false
		}
	}
	return len(rest), len(rest) < 80
}

func nibble(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	default:
		return -1
	}
}
