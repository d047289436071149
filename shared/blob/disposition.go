package blob

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxFilename = 180 // bytes; file systems end at 255 and browsers add " (1)"

// CleanFilename makes a name from outside safe to offer: one path segment without control, format (bidi, zero width) or
// separator characters, without leading or trailing dots and blanks, at most 180 bytes with its extension kept. What is left
// empty is "download".
func CleanFilename(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(`/\:*?"<>|`, r), r == utf8.RuneError:
			return '_'
		case unicode.Is(unicode.C, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
			return -1 // U+202E makes "gpj.exe" look like "exe.jpg"
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, name)
	name = strings.Trim(name, ". ")
	if len(name) > maxFilename {
		ext := ""
		if i := strings.LastIndexByte(name, '.'); i > 0 && len(name)-i <= 16 {
			ext = name[i:]
		}
		stem := name[:maxFilename-len(ext)]
		for !utf8.ValidString(stem) {
			stem = stem[:len(stem)-1] // at most three times: the cut went through a character
		}
		name = strings.TrimRight(stem, ". ") + ext
	}
	if name == "" {
		return "download"
	}
	return name
}

// Disposition is the Content-Disposition of a download by this name, cleaned first: always an attachment, in both spellings
// of RFC 6266 section 4.3 where the name is not plain ASCII (the extended one is RFC 8187 section 3.2).
func Disposition(filename string) string {
	name := CleanFilename(filename)
	var plain, extended strings.Builder
	for i := range len(name) {
		c := name[i]
		if attrChar(c) {
			extended.WriteByte(c)
		} else {
			const hex = "0123456789ABCDEF"
			extended.WriteByte('%')
			extended.WriteByte(hex[c>>4])
			extended.WriteByte(hex[c&15])
		}
	}
	for _, r := range name {
		// '%' too: some browsers decode it in the plain spelling (RFC 6266 appendix D).
		if r >= utf8.RuneSelf || r == '%' {
			r = '_'
		}
		plain.WriteRune(r)
	}
	out := `attachment; filename="` + plain.String() + `"`
	if plain.String() != name {
		out += "; filename*=UTF-8''" + extended.String()
	}
	return out
}

// attrChar tells the bytes that RFC 8187 section 3.2.1 allows unescaped.
func attrChar(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$&+-.^_`|~", c) >= 0
}
