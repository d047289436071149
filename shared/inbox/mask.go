package inbox

import (
	"slices"
	"strings"
	"unicode"
)

// Masked stands where a code or a link was.
const Masked = "[masked]"

// Bounds of the search for secrets: a mail can be full of links, and masking runs on every read.
const (
	maxSecretLinks = 500
	maxLinkDigits  = 200
	minLinkDigits  = 4 // a shorter run of digits in a link is a page or a year, not a code
	maxGap         = 3 // runes that may stand between two characters of a secret: "123 456", "1*2*3", a wrapped link
	minCut         = 2 // characters of a code that the end of a cut text must show to be masked
)

// Secrets are what a caller without the right to read codes must not see: one-time codes, links, and the digits in links.
type Secrets []string

// SecretsOf collects the secrets of a mail.
func SecretsOf(e Email) Secrets {
	var s Secrets
	for _, c := range e.Codes {
		s = append(s, c.Value)
	}
	digits := 0
	for i, l := range e.Links {
		if i == maxSecretLinks {
			break
		}
		s = append(s, l.URL)
		if _, rest, ok := strings.Cut(l.URL, "://"); ok {
			s = append(s, rest)
		}
		for _, run := range digitRuns(l.URL) {
			if digits++; digits <= maxLinkDigits {
				s = append(s, run)
			}
		}
	}
	slices.Sort(s)
	return slices.Compact(s)
}

func digitRuns(url string) []string {
	var runs []string
	for _, run := range strings.FieldsFunc(url, func(r rune) bool { return r < '0' || r > '9' }) {
		if len(run) >= minLinkDigits {
			runs = append(runs, run)
		}
	}
	return runs
}

// In returns the secrets that occur in any of the texts, so that an index row carries no more than it needs.
func (s Secrets) In(texts ...string) Secrets {
	if len(s) == 0 {
		return nil
	}
	m, found := newMasker(s), map[string]bool{}
	for _, text := range texts {
		runes := []rune(text)
		for i := range runes {
			first, _ := fold(runes[i])
			for _, secret := range m.byFirst[first] {
				if matchOne(runes, i, secret.folded) > 0 {
					found[secret.original] = true
				}
			}
		}
	}
	var out Secrets
	for _, one := range s {
		if found[one] {
			out = append(out, one)
		}
	}
	return out
}

// Masker hides secrets in texts.
type Masker struct {
	byFirst map[rune][]secret // by their first character, the longest first
}

type secret struct {
	original string
	folded   []rune // its letters and digits, never empty
}

// Masker prepares the secrets for use on many texts.
func (s Secrets) Masker() *Masker { return newMasker(s) }

func newMasker(s Secrets) *Masker {
	m := &Masker{byFirst: map[rune][]secret{}}
	for _, one := range s {
		if f := foldSecret(one); len(f) > 0 {
			m.byFirst[f[0]] = append(m.byFirst[f[0]], secret{one, f})
		}
	}
	for _, list := range m.byFirst {
		slices.SortFunc(list, func(a, b secret) int { return len(b.folded) - len(a.folded) })
	}
	return m
}

// Mask hides every secret in a text, however it is spelled (other case, full-width digits, spaces or marks between the
// characters, a line break inside), one that the end of the text cuts, and then everything that looks like a link, for no
// list of links is complete.
func (m *Masker) Mask(text string) string {
	if text == "" {
		return text
	}
	return maskLinks(m.maskKnown(text))
}

func (m *Masker) maskKnown(text string) string {
	if len(m.byFirst) == 0 {
		return text
	}
	runes := []rune(text)
	var out strings.Builder
	plain := 0
	for i := 0; i < len(runes); i++ {
		end := m.match(runes, i)
		if end == 0 {
			continue
		}
		out.WriteString(string(runes[plain:i]))
		out.WriteString(Masked)
		plain, i = end, end-1
	}
	if plain == 0 {
		return text
	}
	out.WriteString(string(runes[plain:]))
	return out.String()
}

// match returns where a secret that starts at i ends, 0 for none.
func (m *Masker) match(runes []rune, i int) int {
	first, ok := fold(runes[i])
	if !ok {
		return 0
	}
	for _, one := range m.byFirst[first] {
		if end := matchOne(runes, i, one.folded); end > 0 {
			return end
		}
	}
	return 0
}

func matchOne(runes []rune, at int, secret []rune) int {
	matched, gap, end := 0, 0, at
	for j := at; j < len(runes); j++ {
		r, ok := fold(runes[j])
		if !ok {
			if gap++; gap > maxGap {
				return 0
			}
			continue
		}
		if r != secret[matched] {
			return 0
		}
		matched, gap, end = matched+1, 0, j+1
		if matched == len(secret) {
			return end
		}
	}
	// The text ends inside the secret: a snippet was cut there. Links are left to maskLinks, their first characters are
	// those of any link.
	if matched >= minCut && unicode.IsDigit(secret[0]) {
		return end
	}
	return 0
}

// foldSecret keeps what identifies a secret: its letters and digits.
func foldSecret(s string) []rune {
	var out []rune
	for _, r := range s {
		if f, ok := fold(r); ok {
			out = append(out, f)
		}
	}
	return out
}

// fold maps a letter to lower case and a decimal digit of any script to ASCII; false for anything else.
func fold(r rune) (rune, bool) {
	switch {
	case r >= '0' && r <= '9', r >= 'a' && r <= 'z':
		return r, true
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A', true
	case r < 0x80:
		return 0, false
	case unicode.IsDigit(r):
		return foldDigit(r), true
	case unicode.IsLetter(r):
		if r >= 0xff21 && r <= 0xff5a { // full-width letters
			return unicode.ToLower(r) - 0xff41 + 'a', true
		}
		return unicode.ToLower(r), true
	}
	return 0, false
}

// foldDigit uses that Unicode assigns decimal digits in ascending blocks of ten (chapter 4.6), so every range of Nd starts
// with a zero.
func foldDigit(r rune) rune {
	for _, x := range unicode.Nd.R16 {
		if r >= rune(x.Lo) && r <= rune(x.Hi) {
			return '0' + (r-rune(x.Lo))%10
		}
	}
	for _, x := range unicode.Nd.R32 {
		if r >= rune(x.Lo) && r <= rune(x.Hi) {
			return '0' + (r-rune(x.Lo))%10
		}
	}
	return r
}

// maskLinks hides everything of the form scheme://… and www.… up to white space or a bracket that no link contains.
// What follows a link without a space is hidden with it: a token's tail must not survive because of a parenthesis.
func maskLinks(text string) string {
	var out strings.Builder
	for {
		start, end := findLink(text)
		if end == 0 {
			break
		}
		out.WriteString(text[:start])
		out.WriteString(Masked)
		text = text[end:]
	}
	if out.Len() == 0 {
		return text
	}
	out.WriteString(text)
	return out.String()
}

func findLink(text string) (start, end int) {
	start = -1
	if i := strings.Index(text, "://"); i > 0 {
		j := i
		for j > 0 && schemeChar(text[j-1]) {
			j--
		}
		if j < i {
			start = j
		} else {
			start = i
		}
	}
	before := text
	if start >= 0 {
		before = text[:start]
	}
	if i := indexWWW(before); i >= 0 {
		start = i
	}
	if start < 0 {
		return 0, 0
	}
	rest := text[start:]
	n := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || r == '<' || r == '>' || r == '"' })
	if n < 0 {
		n = len(rest)
	}
	return start, start + n
}

// indexWWW finds "www." in any case without lowering the whole text, which could move the offsets.
func indexWWW(text string) int {
	for i := 0; i+4 <= len(text); i++ {
		if text[i+3] == '.' && strings.EqualFold(text[i:i+3], "www") {
			return i
		}
	}
	return -1
}

func schemeChar(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'
}
