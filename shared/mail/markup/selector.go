package markup

import (
	"strings"

	"golang.org/x/net/html"
)

// parse reads one selector. Pseudo-classes of interaction and pseudo-elements never apply to a mail at rest; any other
// pseudo-class is taken to match, since hiding a little too much is safer than too little.
func (r *rule) parse(sel string) bool {
	for _, never := range []string{":hover", ":active", ":focus", ":visited", ":before", ":after", "::", ":checked", ":target"} {
		if strings.Contains(sel, never) {
			return false
		}
	}
	for sel != "" && len(r.parts) < maxParts {
		c, rest, ok := r.compound(sel)
		if !ok {
			return false
		}
		r.parts = append(r.parts, c)
		trimmed := strings.TrimLeft(rest, " \t\r\n>+~")
		if trimmed == "" {
			return true
		}
		join := strings.TrimSpace(rest[:len(rest)-len(trimmed)])
		switch {
		case join == "" && len(trimmed) < len(rest):
			join = " "
		case len(join) != 1:
			return false
		}
		r.joins = append(r.joins, join[0])
		sel = trimmed
	}
	return false
}

// compound reads up to the next combinator and adds to the specificity.
func (r *rule) compound(s string) (compound, string, bool) {
	var c compound
	i := 0
	for i < len(s) {
		switch s[i] {
		case '.', '#':
			n := ident(s[i+1:])
			if n == 0 {
				return c, "", false
			}
			if name := s[i+1 : i+1+n]; s[i] == '.' {
				c.classes = append(c.classes, name)
				r.weight += 1 << 8
			} else {
				c.id = name
				r.weight += 1 << 14
			}
			i += 1 + n
		case '[':
			end := strings.IndexByte(s[i:], ']')
			if end < 0 {
				return c, "", false
			}
			c.attrs = append(c.attrs, parseAttr(s[i+1:i+end]))
			r.weight += 1 << 8
			i += end + 1
		case ':':
			i += 1 + ident(s[i+1:])
			if i < len(s) && s[i] == '(' {
				end := strings.IndexByte(s[i:], ')')
				if end < 0 {
					return c, "", false
				}
				i += end + 1
			}
		case '*':
			i++
		case ' ', '\t', '\r', '\n', '>', '+', '~':
			return c, s[i:], i > 0
		default:
			n := ident(s[i:])
			if n == 0 || i > 0 {
				return c, "", false
			}
			c.tag = s[i : i+n]
			r.weight++
			i += n
		}
	}
	return c, "", true
}

func ident(s string) int {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c >= 0x80) {
			return i
		}
	}
	return len(s)
}

func parseAttr(s string) attrTest {
	name, value, ok := strings.Cut(s, "=")
	t := attrTest{name: strings.TrimSpace(name), value: strings.Trim(strings.TrimSpace(value), `"'`)}
	if !ok {
		return t
	}
	t.op = '='
	if n := len(t.name); n > 0 && strings.IndexByte("~^$*|", t.name[n-1]) >= 0 {
		t.op, t.name = t.name[n-1], strings.TrimSpace(t.name[:n-1])
	}
	return t
}

// matches walks from the element outwards. Every comparison costs a step.
func (s *sheet) matches(r *rule, n *html.Node) bool {
	last := len(r.parts) - 1
	if !s.fits(&r.parts[last], n) {
		return false
	}
	for i := last - 1; i >= 0; i-- {
		if n = s.related(&r.parts[i], n, r.joins[i]); n == nil {
			return false
		}
	}
	return true
}

// related finds the element that stands to n as the combinator says and fits c.
func (s *sheet) related(c *compound, n *html.Node, join byte) *html.Node {
	step := func(n *html.Node) *html.Node { return n.Parent }
	if join == '+' || join == '~' {
		step = previous
	}
	for n = step(n); n != nil && s.steps < stepLimit; n = step(n) {
		if s.fits(c, n) {
			return n
		}
		if join == '>' || join == '+' {
			return nil
		}
	}
	return nil
}

func previous(n *html.Node) *html.Node {
	for n = n.PrevSibling; n != nil && n.Type != html.ElementNode; n = n.PrevSibling {
	}
	return n
}

func (s *sheet) fits(c *compound, n *html.Node) bool {
	s.steps++
	if c.tag != "" && c.tag != n.Data && !(c.tag == "html" && n.Data == "body") {
		return false
	}
	if c.id != "" {
		if id, _ := attr(n, "id"); !strings.EqualFold(id, c.id) {
			return false
		}
	}
	if len(c.classes) > 0 {
		have, _ := attr(n, "class")
		s.steps += len(have) / 32
		for _, want := range c.classes {
			if !hasWord(have, want) {
				return false
			}
		}
	}
	for _, t := range c.attrs {
		if !t.fits(n) {
			return false
		}
	}
	return true
}

func (t attrTest) fits(n *html.Node) bool {
	value, ok := attr(n, t.name)
	if !ok {
		return false
	}
	value = strings.ToLower(value)
	switch t.op {
	case 0:
		return true
	case '=':
		return value == t.value
	case '~':
		return hasWord(value, t.value)
	case '^':
		return strings.HasPrefix(value, t.value)
	case '$':
		return strings.HasSuffix(value, t.value)
	case '*':
		return strings.Contains(value, t.value)
	default:
		return value == t.value || strings.HasPrefix(value, t.value+"-")
	}
}

func hasWord(list, want string) bool {
	for w := range strings.FieldsSeq(list) {
		if strings.EqualFold(w, want) {
			return true
		}
	}
	return false
}
