package header

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/buzon-mail/buzon/shared/mail/clean"
	"github.com/buzon-mail/buzon/shared/mail/warning"
)

// Address is one mailbox of an address field.
type Address struct {
	Name   string // the display name or, without one, a comment; third-party text
	Email  string // local@domain, domain in lower case and A-labels; "" when the mailbox is not valid
	Domain string
	Group  string // the group it stands in
	Valid  bool
	Raw    string // what was there, when it is not valid
}

const (
	maxName  = 512
	maxRaw   = 320
	maxLocal = 128
)

// Addresses reads an address field (RFC 5322 section 3.4). A mailbox is either wholly well-formed or has no Email: picking the
// part that looks like an address out of a malformed one is how "alice@example.org)bob@evil" passes an allow list
// (CVE-2023-27043). Words are decoded after the structure is known, so an encoded word never adds an address. One pass, no
// recursion: groups in groups only rename the group.
func (d *Decoder) Addresses(value []byte, limit int) []Address {
	p := parser{d: d, s: d.UTF8(value), limit: limit}
	p.run()
	return p.out
}

// token is a piece of an address field.
type token struct {
	kind  byte // 'a' atom, 'q' quoted string, 'c' comment, 'l' domain literal, '@'
	text  string
	space bool // white space stands before it
}

type parser struct {
	d      *Decoder
	s      string
	limit  int
	out    []Address
	group  string
	start  int // where the current mailbox begins
	before []token
	angle  []token
	state  byte // 0 before '<', 1 inside, 2 behind '>'
	broken bool
	full   bool
}

func (p *parser) run() {
	for i := 0; i < len(p.s) && !p.full; {
		i = p.step(i)
	}
	if !p.full {
		p.finish(len(p.s))
	}
}

// step reads one token at i and returns where the next begins.
func (p *parser) step(i int) int {
	s := p.s
	switch c := s[i]; c {
	case ' ', '\t', '\r', '\n':
		return i + 1
	case '"':
		return p.quoted(i)
	case '(':
		return p.comment(i)
	case '[':
		end := strings.IndexAny(s[i+1:], "[]<>\"\\, ")
		if end < 0 || s[i+1+end] != ']' {
			p.broken = true
			return i + 1
		}
		p.push('l', s[i:i+end+2], i)
		return i + end + 2
	case '@':
		p.push('@', "@", i)
		return i + 1
	case '<':
		p.broken = p.broken || p.state != 0
		p.state = 1
		return i + 1
	case '>':
		p.broken = p.broken || p.state != 1
		p.state = 2
		return i + 1
	case ',', ';':
		return p.separator(i)
	case ':':
		return p.colon(i)
	case ')', ']', '\\':
		p.broken = true
		return i + 1
	default:
		return p.atom(i)
	}
}

// separator ends a mailbox, except for the commas of an obsolete route inside angle brackets.
func (p *parser) separator(i int) int {
	if p.s[i] == ',' && p.state == 1 && len(p.angle) > 0 && p.angle[0].kind == '@' {
		p.push('a', ",", i)
		return i + 1
	}
	p.finish(i)
	if p.s[i] == ';' {
		p.group = ""
	}
	return i + 1
}

// colon ends a group's name or, inside angle brackets, an obsolete route, which says nothing about the mailbox.
func (p *parser) colon(i int) int {
	if p.state == 1 && len(p.angle) > 0 && p.angle[0].kind == '@' {
		p.angle = p.angle[:0]
		return i + 1
	}
	if p.state != 0 || p.broken {
		p.broken = true
		return i + 1
	}
	p.group = clean.Cut(p.display(p.before), maxName)
	p.before, p.start = p.before[:0], i+1
	return i + 1
}

func (p *parser) push(kind byte, text string, at int) {
	t := token{kind: kind, text: text, space: at > 0 && strings.IndexByte(" \t\r\n", p.s[at-1]) >= 0}
	switch {
	case p.state == 1:
		p.angle = append(p.angle, t)
	case p.state == 2 && kind != 'c':
		p.broken = true
	default:
		p.before = append(p.before, t)
	}
}

// atom reads up to the next special. An encoded word is one atom even where a sender put specials into it.
func (p *parser) atom(i int) int {
	j := i
	for j < len(p.s) && strings.IndexByte(" \t\r\n\"(),:;<>@[]\\", p.s[j]) < 0 {
		if n := encodedWordLen(p.s[j:]); n > 0 {
			j += n
			continue
		}
		j++
	}
	p.push('a', p.s[i:j], i)
	return max(j, i+1)
}

// encodedWordLen is the length of the encoded word at the start of s, 0 when there is none. It looks at a bounded window.
func encodedWordLen(s string) int {
	if !strings.HasPrefix(s, "=?") {
		return 0
	}
	s = s[:min(len(s), 1024)]
	mark := strings.IndexByte(s[2:], '?')
	if mark <= 0 || 2+mark+3 > len(s) || s[2+mark+2] != '?' || strings.ContainsAny(s[:2+mark], " <>\",") {
		return 0
	}
	text := 2 + mark + 3
	end := strings.Index(s[text:], "?=")
	if end < 0 || strings.ContainsAny(s[text:text+end], " \t<>\"") {
		return 0
	}
	return text + end + 2
}

func (p *parser) quoted(i int) int {
	var b strings.Builder
	for j := i + 1; j < len(p.s); j++ {
		switch c := p.s[j]; {
		case c == '\\' && j+1 < len(p.s):
			j++
			b.WriteByte(p.s[j])
		case c == '"':
			p.push('q', b.String(), i)
			return j + 1
		default:
			b.WriteByte(c)
		}
	}
	p.broken = true
	return len(p.s)
}

func (p *parser) comment(i int) int {
	depth := 0
	var b strings.Builder
	for j := i; j < len(p.s); j++ {
		switch c := p.s[j]; {
		case c == '\\' && j+1 < len(p.s):
			j++
			b.WriteByte(p.s[j])
			continue
		case c == '(':
			if depth++; depth == 1 {
				continue
			}
		case c == ')':
			if depth--; depth == 0 {
				p.push('c', b.String(), i)
				return j + 1
			}
		}
		b.WriteByte(p.s[j])
	}
	p.broken = true
	return len(p.s)
}

// finish turns what was read since the last separator into a mailbox.
func (p *parser) finish(end int) {
	defer func() {
		p.before, p.angle, p.state, p.broken, p.start = p.before[:0], p.angle[:0], 0, false, end+1
	}()
	if len(p.before) == 0 && len(p.angle) == 0 && p.state == 0 && !p.broken {
		return
	}
	if len(p.out) >= p.limit {
		p.d.Warn.Add(warning.AddressLimit, "")
		p.full = true
		return
	}
	a := Address{Group: p.group}
	if !p.broken {
		p.mailbox(&a)
	}
	if !a.Valid {
		a.Email, a.Domain = "", ""
		a.Raw = clean.Cut(p.d.Phrase(p.s[min(p.start, end):end]), maxRaw)
		p.d.Warn.Add(warning.BadAddress, "")
	}
	p.out = append(p.out, a)
}

func (p *parser) mailbox(a *Address) {
	addr, name := p.before, []token(nil)
	switch p.state {
	case 1:
		return // no closing bracket
	case 2:
		addr, name = p.angle, p.before
	}
	local, domain, ok := split(addr)
	if p.state == 0 && !ok {
		name = p.before
	}
	a.Name = clean.Cut(p.display(name), maxName)
	if a.Name == "" {
		a.Name = clean.Cut(p.comments(), maxName)
	}
	if ok {
		a.Domain, a.Valid = Domain(domain)
		a.Email = local + "@" + a.Domain
	}
}

// display is the text of a phrase: atoms and quoted strings, decoded. Comments are not part of it.
func (p *parser) display(tokens []token) string {
	var b strings.Builder
	for _, t := range tokens {
		if t.kind == 'c' {
			continue
		}
		if b.Len() > 0 && t.space {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return p.d.Phrase(b.String())
}

func (p *parser) comments() string {
	var b strings.Builder
	for _, t := range p.before {
		if t.kind == 'c' && b.Len() < 2*maxName {
			b.WriteString(t.text)
			b.WriteByte(' ')
		}
	}
	return p.d.Phrase(b.String())
}

// split reads an addr-spec: local part, one at sign, domain, with nothing between them but comments.
func split(tokens []token) (local, domain string, ok bool) {
	parts := make([]token, 0, 3)
	for _, t := range tokens {
		if t.kind == 'c' {
			continue
		}
		if len(parts) > 0 && t.space || len(parts) == 3 {
			return "", "", false
		}
		parts = append(parts, t)
	}
	if len(parts) != 3 || parts[1].kind != '@' {
		return "", "", false
	}
	switch l := parts[0]; l.kind {
	case 'a':
		local = l.text
		// An encoded word in a local part means one mailbox to one reader and another to the next.
		ok = !strings.Contains(local, "=?") && readable(local)
	case 'q':
		local = quote(l.text)
		ok = l.text != "" && readable(l.text)
	}
	if k := parts[2].kind; k != 'a' && k != 'l' || len(local) > maxLocal {
		ok = false
	}
	return local, parts[2].text, ok
}

// readable refuses what cannot be shown as it is.
func readable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r < ' ' || r == utf8.RuneError || r == 0x200C || r == 0x200D || clean.Forbidden(r) || r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0000 && r <= 0xE0FFF {
			return false
		}
	}
	return true
}

// quote keeps the quotes only where they are needed, so that "bob"@x and bob@x are the same mailbox (RFC 5321 section 4.1.2).
func quote(s string) string {
	if strings.IndexAny(s, " \t\"(),:;<>@[]\\") < 0 {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// Domain normalises a domain: lower case, A-labels, or a bracketed literal. False when it is none.
func Domain(s string) (string, bool) {
	if strings.HasPrefix(s, "[") {
		for _, c := range s[1 : len(s)-1] {
			if !strings.ContainsRune("0123456789abcdefABCDEF.:IPv", c) {
				return "", false
			}
		}
		return strings.ToLower(s), len(s) > 3
	}
	s = strings.TrimSuffix(s, ".")
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			ascii, err := idna.Lookup.ToASCII(s)
			if err != nil {
				return "", false
			}
			s = ascii
			break
		}
	}
	if len(s) == 0 || len(s) > 253 || strings.Contains(s, "..") || s[0] == '.' || s[0] == '-' {
		return "", false
	}
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_') {
			return "", false
		}
	}
	return strings.ToLower(s), true
}
