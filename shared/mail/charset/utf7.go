package charset

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decodeUTF7 reads RFC 2152. It is used only for text that declares it: sniffing UTF-7 would let ASCII text turn into markup
// that no filter before has seen. What comes out passes every later stage like any other text.
func decodeUTF7(data []byte) Result {
	r := Result{Charset: utf7Name}
	var b strings.Builder
	b.Grow(len(data))
	for i := 0; i < len(data); {
		c := data[i]
		switch {
		case c == '+' && i+1 < len(data) && data[i+1] == '-':
			b.WriteByte('+')
			i += 2
		case c == '+':
			i += 1 + shifted(&b, data[i+1:], &r.Replaced)
		case c < utf8.RuneSelf:
			b.WriteByte(c)
			i++
		default:
			b.WriteRune(utf8.RuneError)
			r.Replaced++
			i++
		}
	}
	r.Text = b.String()
	return r
}

// shifted decodes one base64 run of UTF-16 units and returns the bytes it used, the closing '-' included.
func shifted(b *strings.Builder, data []byte, replaced *int) int {
	var acc uint32
	var bits, n int
	var high rune
	for n < len(data) {
		v := base64Value(data[n])
		if v < 0 {
			break
		}
		n++
		acc, bits = acc<<6|uint32(v), bits+6
		if bits < 16 {
			continue
		}
		bits -= 16
		unit := rune(acc >> bits & 0xffff)
		switch {
		case high != 0 && unit >= 0xDC00 && unit < 0xE000:
			b.WriteRune(utf16.DecodeRune(high, unit))
			high = 0
			continue
		case high != 0:
			b.WriteRune(utf8.RuneError)
			*replaced++
			high = 0
		}
		if unit >= 0xD800 && unit < 0xDC00 {
			high = unit
			continue
		}
		if unit >= 0xDC00 && unit < 0xE000 {
			*replaced++
		}
		b.WriteRune(unit)
	}
	if high != 0 {
		b.WriteRune(utf8.RuneError)
		*replaced++
	}
	if n < len(data) && data[n] == '-' {
		n++
	}
	return n
}

func base64Value(c byte) int {
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
