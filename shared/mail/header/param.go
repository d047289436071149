package header

import (
	"sort"
	"strings"

	"github.com/buzon-mail/buzon/shared/mail/charset"
	"github.com/buzon-mail/buzon/shared/mail/warning"
)

const (
	maxParams   = 200
	maxSections = 1000
)

// Media is a parsed Content-Type or Content-Disposition.
type Media struct {
	Type   string // lower case; "" when the value does not parse
	Params map[string]string
}

// Param returns a parameter, "" when absent. Values are decoded but not cleaned.
func (m *Media) Param(name string) string { return m.Params[name] }

// Media reads a value with parameters (RFC 2045 section 5.1, RFC 2183, RFC 2231). Junk never loses the rest: a type that does not
// parse is "" and its parameters still count.
func (d *Decoder) Media(value []byte) Media {
	s := d.UTF8(value)
	head, rest, more := strings.Cut(s, ";")
	m := Media{Type: mediaType(head)}
	if m.Type == "" && strings.Contains(head, "=") {
		rest, more = s, true // parameters without a type
	}
	if !more {
		return m
	}
	m.Params = make(map[string]string, 4)
	p := params{d: d, out: m.Params}
	for rest != "" && p.n < maxParams+maxSections {
		var name, val string
		name, val, rest = cutParam(rest)
		if name != "" {
			p.n++
			p.add(strings.ToLower(name), val)
		}
	}
	p.join()
	return m
}

func mediaType(head string) string {
	if i := strings.IndexByte(head, '('); i >= 0 {
		head = head[:i]
	}
	head = strings.ToLower(strings.Trim(head, " \t\"'"))
	if len(head) > 127 {
		return ""
	}
	for i := range len(head) {
		if c := head[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`()<>@,:\"[]?=`, c) >= 0 {
			return ""
		}
	}
	return head
}

// cutParam takes the first parameter of s. A quoted value ends at its quote, any other at the next semicolon.
func cutParam(s string) (name, value, rest string) {
	s = strings.TrimLeft(s, " \t;")
	eq := strings.IndexAny(s, "=;")
	if eq < 0 {
		return "", "", ""
	}
	if s[eq] == ';' {
		return "", "", s[eq+1:]
	}
	name = strings.Trim(s[:eq], " \t\"")
	s = strings.TrimLeft(s[eq+1:], " \t")
	if !strings.HasPrefix(s, `"`) {
		value, rest, _ = strings.Cut(s, ";")
		return name, strings.TrimRight(value, " \t"), rest
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
			b.WriteByte(s[i])
		case s[i] == '"':
			_, rest, _ = strings.Cut(s[i+1:], ";")
			return name, b.String(), rest
		default:
			b.WriteByte(s[i])
		}
	}
	return name, b.String(), "" // a lone quote: everything is the value
}

// params gathers plain parameters and the sections of RFC 2231.
type params struct {
	d    *Decoder
	out  map[string]string
	secs []section
	n    int
}

type section struct {
	name     string
	index    int
	extended bool
	value    string
}

func (p *params) add(name, value string) {
	base, suffix, star := strings.Cut(name, "*")
	if !star {
		if _, dup := p.out[name]; !dup && len(p.out) < maxParams {
			text, bad := Words(value)
			p.d.Warn.AddN(warning.BadEncodedWord, "", bad)
			p.out[name] = text
		}
		return
	}
	sec := section{name: base, value: value}
	if suffix == "" {
		sec.extended = true
	} else {
		digits := strings.TrimSuffix(suffix, "*")
		sec.extended = digits != suffix
		index, ok := sectionNumber(digits)
		if !ok {
			p.d.Warn.Add(warning.BadParameter, "")
			return
		}
		sec.index = index
	}
	if len(p.secs) < maxSections {
		p.secs = append(p.secs, sec)
	}
}

// sectionNumber reads an RFC 2231 section number: ASCII digits only, whatever Unicode calls a digit.
func sectionNumber(s string) (int, bool) {
	if s == "" || len(s) > 4 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

// join puts the sections together. An RFC 2231 value wins over a plain parameter of the same name (section 4 note); sections
// joined without extension may hold an encoded word that was cut over them, which is decoded after joining.
func (p *params) join() {
	sort.SliceStable(p.secs, func(i, j int) bool {
		if p.secs[i].name != p.secs[j].name {
			return p.secs[i].name < p.secs[j].name
		}
		return p.secs[i].index < p.secs[j].index
	})
	for i := 0; i < len(p.secs); {
		j := i
		for j < len(p.secs) && p.secs[j].name == p.secs[i].name {
			j++
		}
		if value := p.joined(p.secs[i:j]); value != "" && (len(p.out) < maxParams || p.out[p.secs[i].name] != "") {
			p.out[p.secs[i].name] = value
		}
		i = j
	}
}

func (p *params) joined(secs []section) string {
	var data []byte
	label := ""
	extended := false
	for i, s := range secs {
		if i > 0 && s.index == secs[i-1].index {
			p.d.Warn.Add(warning.BadParameter, "")
			continue
		}
		value := s.value
		if s.extended {
			if i == 0 {
				label, value = extendedCharset(value)
			}
			data = append(data, percent(value)...)
			extended = true
			continue
		}
		data = append(data, value...)
	}
	if extended {
		return charset.DecodeWord(data, label).Text
	}
	text, bad := Words(strings.ToValidUTF8(string(data), "\uFFFD"))
	p.d.Warn.AddN(warning.BadEncodedWord, "", bad)
	return text
}

// extendedCharset cuts charset'language' off; a value without both quotes has none.
func extendedCharset(value string) (label, rest string) {
	label, tail, ok := strings.Cut(value, "'")
	if !ok {
		return "", value
	}
	_, rest, ok = strings.Cut(tail, "'")
	if !ok {
		return "", value
	}
	return label, rest
}

func percent(s string) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && unhex(s[i+1]) >= 0 && unhex(s[i+2]) >= 0 {
			out = append(out, byte(unhex(s[i+1])<<4|unhex(s[i+2])))
			i += 2
			continue
		}
		out = append(out, s[i])
	}
	return out
}
