package inbox

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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
	s = append(s, e.OtherCodes...)
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
	m, found := newMatcher(s), make([]bool, len(s))
	for _, text := range texts {
		m.find(text, func(_, _ int, node int32) { m.mark(found, node) }, func(node int32) { m.markBelow(found, node) })
	}
	var out Secrets
	for i, one := range s {
		if found[i] {
			out = append(out, one)
		}
	}
	return out
}

// Masker hides secrets in texts.
type Masker struct{ secrets *matcher }

// Masker prepares the secrets for use on many texts.
func (s Secrets) Masker() *Masker { return &Masker{newMatcher(s)} }

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
	type span struct{ start, end int }
	var spans []span
	add := func(start, end int) {
		// Ends only grow. What overlaps becomes one: the longest of several spellings is hidden whole.
		for len(spans) > 0 && start < spans[len(spans)-1].end {
			start = min(start, spans[len(spans)-1].start)
			spans = spans[:len(spans)-1]
		}
		spans = append(spans, span{start, end})
	}
	m.secrets.find(text, func(start, end int, _ int32) { add(start, end) }, nil)
	if len(spans) == 0 {
		return text
	}
	var out strings.Builder
	done := 0
	for _, s := range spans {
		out.WriteString(text[done:s.start])
		out.WriteString(Masked)
		done = s.end
	}
	out.WriteString(text[done:])
	return out.String()
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

// maskLinks hides everything of the form scheme://…, www.… and host.tld/… (which mail readers make a link of as well) up to
// white space or a bracket that no link contains. What follows a link without a space is hidden with it: a token's tail must
// not survive because of a parenthesis. One pass, whatever the text: it is a stranger's.
func maskLinks(text string) string {
	var out strings.Builder
	done := 0
	for i := 0; i < len(text); i++ {
		start := linkAt(text, done, i)
		if start < 0 {
			continue
		}
		out.WriteString(text[done:start])
		out.WriteString(Masked)
		done = linkEnd(text, i)
		i = done - 1
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}

// linkAt returns where a link begins that position i gives away, not before floor; -1 for none.
func linkAt(text string, floor, i int) int {
	switch text[i] {
	case ':':
		if i == 0 || !strings.HasPrefix(text[i:], "://") {
			return -1
		}
		start := i
		for start > floor && schemeChar(text[start-1]) {
			start--
		}
		return start
	case 'w', 'W':
		if len(text)-i >= 4 && text[i+3] == '.' && strings.EqualFold(text[i:i+3], "www") {
			return i
		}
	case '/', '?':
		return bareLink(text, floor, i)
	}
	return -1
}

func linkEnd(text string, i int) int {
	n := strings.IndexFunc(text[i:], linkBreak)
	if n < 0 {
		return len(text)
	}
	return i + n
}

func linkBreak(r rune) bool { return unicode.IsSpace(r) || r == '<' || r == '>' || r == '"' }

const (
	maxHost = 253 // bytes; RFC 1035 section 2.3.4
	maxPort = 5   // digits
)

// bareLink is linkAt for a link without a scheme: a host with a top-level domain, perhaps a port, and at i a path or a query
// that is not empty.
func bareLink(text string, floor, i int) int {
	rest := text[i+1:]
	if next, _ := utf8.DecodeRuneInString(rest); rest == "" || linkBreak(next) {
		return -1
	}
	if text[i] == '?' && !strings.Contains(rest[:linkEnd(rest[:min(len(rest), maxHost)], 0)], "=") {
		return -1 // a question without a space behind it
	}
	end := i
	for end > floor && i-end < maxPort && '0' <= text[end-1] && text[end-1] <= '9' {
		end--
	}
	if end > floor && text[end-1] == ':' {
		end--
	} else {
		end = i
	}
	start := end
	for start > floor && end-start < maxHost && hostByte(text[start-1]) {
		start--
	}
	dot := strings.LastIndexByte(text[start:end], '.')
	if dot < 1 || text[start+dot-1] == '.' || !topLevel(text[start+dot+1:end]) {
		return -1
	}
	return start
}

// hostByte allows any byte beyond ASCII: hosts may be written in any script.
func hostByte(c byte) bool { return schemeChar(c) && c != '+' || c >= 0x80 }

func topLevel(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; (c < 'a' || c > 'z') && s[i] < 0x80 && !strings.HasPrefix(s, "xn--") {
			return false
		}
	}
	return len(s) >= 2
}

func schemeChar(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'
}
