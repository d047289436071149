// Package clean removes the characters that hide, reorder or smuggle text: controls, bidirectional overrides, Unicode tag
// characters, variation-selector payloads and zero-width characters. Whoever reads the mail through a model would read what
// no person sees. What is removed is counted by kind. It must not know mail. Unicode 17.
package clean

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Counts says how many characters of each kind were removed.
type Counts struct {
	Control   int // C0, DEL, C1, noncharacters, line and paragraph separators turned into line breaks excepted
	Bidi      int // embeddings, overrides, isolates and marks
	Tag       int // U+E0000-U+E007F
	ZeroWidth int // zero-width and invisible characters, fillers and joiners without need
	Variation int // variation selectors without a base that takes one
}

// Add adds o to c.
func (c *Counts) Add(o Counts) {
	c.Control += o.Control
	c.Bidi += o.Bidi
	c.Tag += o.Tag
	c.ZeroWidth += o.ZeroWidth
	c.Variation += o.Variation
}

// Total is the number of removed characters.
func (c *Counts) Total() int { return c.Control + c.Bidi + c.Tag + c.ZeroWidth + c.Variation }

// Text cleans text of several lines: CR LF, CR, NEL, U+2028 and U+2029 become LF, tabs stay, invalid UTF-8 becomes U+FFFD.
func Text(s string, counts *Counts) string {
	if plain(s, true) {
		return s
	}
	return filter(s, counts, true)
}

// Line cleans a text of one line: every run of white space becomes one space, and the ends are trimmed.
func Line(s string, counts *Counts) string {
	if !plain(s, false) {
		s = filter(s, counts, false)
	}
	if strings.Contains(s, "  ") {
		s = strings.Join(strings.Fields(s), " ")
	}
	return strings.TrimSpace(s)
}

// Cut returns the longest prefix of s of at most n bytes that ends at a character.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// CutRunes returns the first n characters of s.
func CutRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// plain reports whether nothing needs doing: printable ASCII, and LF and tab when they may stay.
func plain(s string, lines bool) bool { return plainRun(s, lines) == len(s) }

// plainRun is how many bytes at the start of s need nothing done.
func plainRun(s string, lines bool) int {
	for i := range len(s) {
		c := s[i]
		if c >= 0x7f || c < ' ' && !(lines && (c == '\n' || c == '\t')) {
			return i
		}
	}
	return len(s)
}

func filter(s string, counts *Counts, lines bool) string {
	var b strings.Builder
	b.Grow(len(s))
	f := state{counts: counts}
	for i := 0; i < len(s); {
		// Nearly all of nearly every text is plain: it goes over in runs.
		if n := plainRun(s[i:], lines); n > 0 {
			b.WriteString(s[i : i+n])
			f.prev = rune(s[i+n-1])
			i += n
			continue
		}
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		next := s[i+size:]
		i += size
		if r == '\r' {
			if strings.HasPrefix(next, "\n") {
				continue // the LF that follows is the line break
			}
			r = '\n'
		}
		switch r {
		case 0x85, 0x2028, 0x2029:
			r = '\n'
		}
		if r == '\n' || r == '\t' {
			if !lines {
				r = ' '
			}
			b.WriteByte(byte(r))
			f.prev = r
			continue
		}
		if !f.keep(r, next) {
			continue
		}
		b.WriteRune(r)
		f.prev = r
	}
	return b.String()
}

// state is what deciding about one character needs: the last one that was kept.
type state struct {
	counts *Counts
	prev   rune
}

// keep decides about r, with next the bytes after it, and counts what goes.
func (f *state) keep(r rune, next string) bool {
	switch {
	case r >= ' ' && r < 0x7f:
		return true
	case r < ' ' || r >= 0x7f && r < 0xa0 || noncharacter(r):
		f.counts.Control++
	case bidi(r):
		f.counts.Bidi++
	case r >= 0xE0000 && r <= 0xE007F:
		f.counts.Tag++
	case r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0100 && r <= 0xE01EF || r >= 0x180B && r <= 0x180D || r == 0x180F:
		if f.selectable(r) {
			return true
		}
		f.counts.Variation++
	case r == 0x200D || r == 0x200C:
		if f.joins(r, next) {
			return true
		}
		f.counts.ZeroWidth++
	case invisible(r):
		f.counts.ZeroWidth++
	default:
		return true
	}
	return false
}

// selectable reports whether a variation selector stands behind a character that takes one. A run of selectors behind any
// character is a known way to smuggle bytes, so two in a row are never kept.
func (f *state) selectable(r rune) bool {
	switch {
	case r >= 0xE0100 || r >= 0xFE00 && r <= 0xFE02:
		return unicode.Is(unicode.Han, f.prev)
	case r == 0xFE0E || r == 0xFE0F:
		return emoji(f.prev) || f.prev >= '0' && f.prev <= '9' || f.prev == '#' || f.prev == '*'
	default:
		return unicode.Is(unicode.Mongolian, f.prev)
	}
}

// joins reports whether a zero-width joiner or non-joiner has a use here: between emoji, or between letters of a script whose
// shaping needs it. Everywhere else it only splits words that a filter looks for.
func (f *state) joins(r rune, next string) bool {
	n, _ := utf8.DecodeRuneInString(next)
	// The next one must itself stay: the Arabic letter mark belongs to the script and is removed.
	shaped := unicode.In(n, joiners...) && !Forbidden(n)
	if unicode.In(f.prev, joiners...) && (shaped || r == 0x200D) {
		return true
	}
	return r == 0x200D && (emoji(f.prev) || f.prev == 0xFE0F) && emoji(n)
}

//nolint:gochecknoglobals // constant table
var joiners = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi,
	unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala,
	unicode.Khmer, unicode.Tibetan, unicode.Myanmar, unicode.Balinese, unicode.Javanese,
}

func emoji(r rune) bool {
	return r >= 0x2190 && r <= 0x2BFF || r >= 0x1F000 && r <= 0x1FAFF || r == 0x3030 || r == 0x303D ||
		r == 0x3297 || r == 0x3299 || r == 0xA9 || r == 0xAE || r == 0x203C || r == 0x2049 || r == 0x2122 || r == 0x2139
}

func bidi(r rune) bool {
	return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r == 0x200E || r == 0x200F || r == 0x061C
}

func noncharacter(r rune) bool { return r&0xFFFE == 0xFFFE || r >= 0xFDD0 && r <= 0xFDEF }

func invisible(r rune) bool {
	switch {
	case r == 0x200B, r >= 0x2060 && r <= 0x2064, r == 0x2065, r >= 0x206A && r <= 0x206F:
	case r == 0xFEFF, r == 0x180E, r == 0xAD, r == 0x034F:
	case r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0:
	case r == 0x17B4, r == 0x17B5, r >= 0xFFF0 && r <= 0xFFFB, r >= 0x1D173 && r <= 0x1D17A, r >= 0xE0080 && r <= 0xE0FFF:
	case r >= 0x1BCA0 && r <= 0x1BCA3:
	default:
		return false
	}
	return true
}

// Forbidden reports whether r must not occur in any text that leaves the mail room. LF and tab are allowed; joiners and
// variation selectors depend on their neighbours and are not judged here.
func Forbidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ' || r >= 0x7f && r < 0xa0 || noncharacter(r) || bidi(r) || r >= 0xE0000 && r <= 0xE007F:
		return true
	case r >= 0xE0100 && r <= 0xE01EF:
		return false
	default:
		return invisible(r)
	}
}

// Visible writes the characters that Line would remove as \u{XXXX}, so that a hostile name can be kept and shown as it was.
func Visible(s string) string {
	if plain(s, false) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if Forbidden(r) || r == '\n' || r == '\t' || r == 0x200C || r == 0x200D || r >= 0xE0000 && r <= 0xE0FFF || r >= 0xFE00 && r <= 0xFE0F {
			b.WriteString(`\u{`)
			b.WriteString(strings.ToUpper(hex(r)))
			b.WriteByte('}')
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func hex(r rune) string {
	const digits = "0123456789abcdef"
	var buf [8]byte
	i := len(buf)
	for {
		i--
		buf[i] = digits[r&15]
		if r >>= 4; r == 0 {
			return string(buf[i:])
		}
	}
}
