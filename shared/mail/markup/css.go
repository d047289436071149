package markup

import (
	"strings"

	"golang.org/x/net/html"
)

// property is a CSS property that can hide text.
type property uint8

const (
	propDisplay property = iota
	propVisibility
	propOpacity
	propFilter
	propFontSize
	propFont
	propColor
	propBackground
	propBackgroundColor
	propWidth
	propHeight
	propMaxWidth
	propMaxHeight
	propOverflow
	propPosition
	propLeft
	propTop
	propRight
	propBottom
	propTextIndent
	propMarginLeft
	propMarginTop
	propTransform
	propClip
	propClipPath
	propContentVisibility
	propCount
)

//nolint:gochecknoglobals // constant table
var properties = map[string]property{
	"display": propDisplay, "visibility": propVisibility, "opacity": propOpacity, "filter": propFilter, "font-size": propFontSize, "font": propFont,
	"color": propColor, "background": propBackground, "background-color": propBackgroundColor, "width": propWidth, "height": propHeight,
	"max-width": propMaxWidth, "max-height": propMaxHeight, "overflow": propOverflow, "overflow-y": propOverflow, "overflow-x": propOverflow,
	"position": propPosition, "left": propLeft, "top": propTop, "right": propRight, "bottom": propBottom, "text-indent": propTextIndent,
	"margin-left": propMarginLeft, "margin-top": propMarginTop, "transform": propTransform, "clip": propClip, "clip-path": propClipPath,
	"content-visibility": propContentVisibility, "-webkit-text-fill-color": propColor,
}

// style is the winning value of every property, "" where none is set.
type style struct {
	values    [propCount]string
	important uint32
}

func (s *style) set(p property, value string, important bool) {
	if s.important&(1<<p) != 0 && !important {
		return
	}
	if important {
		s.important |= 1 << p
	}
	s.values[p] = value
	switch p { // the later of two properties that set the same thing wins
	case propFont:
		s.values[propFontSize] = ""
	case propFontSize:
		s.values[propFont] = ""
	case propBackground:
		s.values[propBackgroundColor] = ""
	}
}

type declaration struct {
	prop      property
	value     string
	important bool
}

// declarations calls yield for each declaration that matters. Keywords come in lower case.
func declarations(css string, yield func(declaration)) {
	css = plainCSS(css)
	for css != "" {
		var one string
		one, css, _ = strings.Cut(css, ";")
		name, value, ok := strings.Cut(one, ":")
		if !ok {
			continue
		}
		prop, known := properties[strings.TrimSpace(name)]
		if !known {
			continue
		}
		value = strings.TrimSpace(value)
		important := false
		if i := strings.LastIndexByte(value, '!'); i >= 0 && strings.TrimSpace(value[i+1:]) == "important" {
			value, important = strings.TrimSpace(value[:i]), true
		}
		if len(value) <= 300 && value != "" {
			yield(declaration{prop, value, important})
		}
	}
}

// plainCSS lowers the case, removes comments and decodes escapes, which would hide a property's name from us but not from a
// browser.
func plainCSS(css string) string {
	css = strings.ToLower(css)
	if strings.Contains(css, "/*") {
		var b strings.Builder
		for {
			head, tail, ok := strings.Cut(css, "/*")
			b.WriteString(head)
			if !ok {
				break
			}
			b.WriteByte(' ')
			if _, css, ok = strings.Cut(tail, "*/"); !ok {
				break
			}
		}
		css = b.String()
	}
	if strings.IndexByte(css, '\\') < 0 {
		return css
	}
	var b strings.Builder
	for i := 0; i < len(css); i++ {
		if css[i] != '\\' {
			b.WriteByte(css[i])
			continue
		}
		code, n := 0, 0
		for n < 6 && i+1+n < len(css) && strings.IndexByte("0123456789abcdef", css[i+1+n]) >= 0 {
			code = code<<4 | strings.IndexByte("0123456789abcdef", css[i+1+n])
			n++
		}
		if n == 0 {
			continue
		}
		i += n
		if i+1 < len(css) && css[i+1] == ' ' {
			i++
		}
		b.WriteString(strings.ToLower(string(rune(code))))
	}
	return b.String()
}

const (
	maxRules   = 2000
	maxParts   = 8
	maxClasses = 64
	stepLimit  = 2_000_000 // selector comparisons per document
	viewport   = 800       // CSS pixels of the reader that media queries are answered for
)

type rule struct {
	parts   []compound // ancestors first, the element itself last
	joins   []byte     // joins[i] stands between parts[i] and parts[i+1]: ' ', '>', '+' or '~'
	weight  int        // specificity and, below it, order
	declare []declaration
}

type compound struct {
	tag, id string
	classes []string
	attrs   []attrTest
}

type attrTest struct {
	name, value string
	op          byte // 0 present, '=' equal, else the character before '='
}

// sheet is the rules of all style elements that can hide or show, by what the last compound names.
type sheet struct {
	byKey map[string][]*rule
	count int
	steps int
}

func newSheet(css string) *sheet {
	s := &sheet{byKey: map[string][]*rule{}}
	if strings.TrimSpace(css) != "" {
		s.block(plainCSS(css), 0)
	}
	return s
}

// block reads rules until the text ends. Media blocks nest at most three deep.
func (s *sheet) block(css string, depth int) {
	for css != "" && s.count < maxRules {
		open := strings.IndexAny(css, "{;}")
		if open < 0 {
			return
		}
		prelude := strings.TrimSpace(strings.NewReplacer("<!--", " ", "-->", " ").Replace(css[:open]))
		if css[open] != '{' { // @import, @charset, a stray brace
			css = css[open+1:]
			continue
		}
		body, rest := braces(css[open+1:])
		css = rest
		switch {
		case strings.HasPrefix(prelude, "@media"):
			if depth < 3 && mediaApplies(prelude[len("@media"):]) {
				s.block(body, depth+1)
			}
		case strings.HasPrefix(prelude, "@supports"), strings.HasPrefix(prelude, "@layer"):
			if depth < 3 && !strings.Contains(prelude, "not") {
				s.block(body, depth+1)
			}
		case strings.HasPrefix(prelude, "@"):
		default:
			s.rule(prelude, body)
		}
	}
}

// braces cuts css at the brace that closes the block it starts in.
func braces(css string) (body, rest string) {
	depth := 1
	for i := range len(css) {
		switch css[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return css[:i], css[i+1:]
			}
		}
	}
	return css, ""
}

// mediaApplies answers a media query for a screen of the usual width. Answering "no" to all would let a sender hide text under
// (min-width: 1px); "yes" to all would lose the text that a mail shows on one kind of device only.
func mediaApplies(query string) bool {
	for alt := range strings.SplitSeq(query, ",") {
		if mediaMatches(alt) {
			return true
		}
	}
	return strings.TrimSpace(query) == ""
}

func mediaMatches(alt string) bool {
	for part := range strings.SplitSeq(alt, " and ") {
		part = strings.TrimSpace(part)
		name, value, _ := strings.Cut(strings.Trim(part, "()"), ":")
		width, ok := length(strings.TrimSpace(value), 16)
		switch strings.TrimSpace(name) {
		case "screen", "all", "only screen", "only all":
		case "min-width", "min-device-width":
			if !ok || width > viewport {
				return false
			}
		case "max-width", "max-device-width":
			if !ok || width < viewport {
				return false
			}
		case "prefers-color-scheme":
			if strings.TrimSpace(value) != "light" {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (s *sheet) rule(selectors, body string) {
	var declare []declaration
	declarations(body, func(d declaration) { declare = append(declare, d) })
	if len(declare) == 0 {
		return
	}
	for sel := range strings.SplitSeq(selectors, ",") {
		r := &rule{declare: declare}
		if s.count >= maxRules || !r.parse(strings.TrimSpace(sel)) {
			continue
		}
		r.weight = r.weight<<12 | s.count
		s.count++
		key := r.parts[len(r.parts)-1].key()
		s.byKey[key] = append(s.byKey[key], r)
	}
}

func (c *compound) key() string {
	switch {
	case c.id != "":
		return "#" + c.id
	case len(c.classes) > 0:
		return "." + c.classes[0]
	case c.tag != "":
		return c.tag
	default:
		return "*"
	}
}

// collect returns the rules that apply to n. False when that was not wholly worked out: too many classes, or the document used
// up its steps.
func (s *sheet) collect(n *html.Node, into []*rule) ([]*rule, bool) {
	try := func(key string) {
		for _, r := range s.byKey[key] {
			if s.steps < stepLimit && s.matches(r, n) {
				into = append(into, r)
			}
		}
	}
	try(n.Data)
	try("*")
	if n.Data == "body" {
		try("html")
	}
	if id, ok := attr(n, "id"); ok {
		try("#" + strings.ToLower(id))
	}
	if class, ok := attr(n, "class"); ok {
		words := 0
		for c := range strings.FieldsSeq(strings.ToLower(class)) {
			if words++; words > maxClasses {
				return into, false
			}
			try("." + c)
		}
	}
	return into, s.steps < stepLimit
}
