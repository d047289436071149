package markup

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// Hiding is a way in which text was hidden.
type Hiding string

// The ways.
const (
	HiddenDisplay     Hiding = "display"      // display: none, content-visibility: hidden
	HiddenVisibility  Hiding = "visibility"   // visibility: hidden or collapse
	HiddenOpacity     Hiding = "opacity"      // opacity 0
	HiddenFontSize    Hiding = "font_size"    // a font of 2 pixels or less
	HiddenZeroBox     Hiding = "zero_box"     // a box of no size that cuts what does not fit, or a clip that leaves nothing
	HiddenOffScreen   Hiding = "off_screen"   // moved out of the window
	HiddenSameColor   Hiding = "same_color"   // text and background alike, or transparent text
	HiddenAttribute   Hiding = "attribute"    // hidden, aria-hidden, a closed dialog
	HiddenNotRendered Hiding = "not_rendered" // templates, drawings, media fallbacks
	HiddenUnread      Hiding = "unread"       // styled text beyond a limit, where styles are no longer worked out
)

// Hidings lists every way.
func Hidings() []Hiding {
	return []Hiding{
		HiddenDisplay, HiddenVisibility, HiddenOpacity, HiddenFontSize, HiddenZeroBox, HiddenOffScreen, HiddenSameColor,
		HiddenAttribute, HiddenNotRendered, HiddenUnread,
	}
}

// look is what an element passes on to its content.
type look struct {
	font      float64
	invisible bool
	clear     bool // transparent text
	fg, bg    color
}

// hider removes what a person would not see. Only removed text counts: an empty spacer is no signal.
type hider struct {
	sheet  *sheet
	counts map[Hiding]int
	chars  int
	short  bool // some style was not worked out
	rules  []*rule
	gone   []*html.Node
}

func (h *hider) add(kind Hiding, chars int) {
	if chars == 0 {
		return
	}
	if h.counts == nil {
		h.counts = map[Hiding]int{}
	}
	h.counts[kind]++
	h.chars += chars
}

// document removes everything hidden from the tree. Nodes go after the whole pass: a selector that looks at siblings must
// still see the hidden ones.
func (h *hider) document(root *html.Node) {
	l, kind := h.look(root, look{font: 16, fg: black, bg: white})
	if kind != "" {
		h.add(kind, visibleChars(root))
		for c := root.FirstChild; c != nil; c = root.FirstChild {
			root.RemoveChild(c)
		}
		return
	}
	h.clean(root, l)
	for _, n := range h.gone {
		n.Parent.RemoveChild(n)
	}
}

// clean marks hidden content below n, which is itself visible as l says, and counts what stays and what goes: a link all of
// whose text goes must not stay as an address. The tree's depth is bounded, so recursion is.
func (h *hider) clean(n *html.Node, l look) (stays, goes int) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			chars := textChars(c.Data)
			if kind := l.hides(); kind != "" {
				h.add(kind, chars)
				h.gone = append(h.gone, c)
				goes += chars
				continue
			}
			stays += chars
		case html.ElementNode:
			inner, kind := h.look(c, l)
			if kind != "" {
				chars := visibleChars(c)
				h.add(kind, chars)
				h.gone = append(h.gone, c)
				goes += chars
				continue
			}
			s, g := h.clean(c, inner)
			if c.Data == "a" && s == 0 && g > 0 {
				h.gone = append(h.gone, c)
			}
			stays, goes = stays+s, goes+g
		}
	}
	return stays, goes
}

// hides says why a text directly in an element of this look is not seen.
func (l *look) hides() Hiding {
	switch {
	case l.invisible:
		return HiddenVisibility
	case l.font <= 2:
		return HiddenFontSize
	case l.clear || same(l.fg, l.bg):
		return HiddenSameColor
	default:
		return ""
	}
}

// look works out how an element and its content look; kind says why the whole of it is not seen.
func (h *hider) look(n *html.Node, l look) (look, Hiding) {
	if classes[n.Data]&unseenTag != 0 {
		return l, HiddenNotRendered
	}
	if hiddenByAttribute(n) {
		return l, HiddenAttribute
	}
	outer := l
	if n.Data == "a" {
		l.fg, l.clear = blue, false
	}
	presentation(n, &l)
	s, ok := h.style(n)
	if !ok {
		h.short = true
		return l, HiddenUnread
	}
	if s == nil {
		return l, ""
	}
	if kind := s.hidesBox(l.font); kind != "" {
		return l, kind
	}
	s.inherit(&l, &outer)
	return l, ""
}

func hiddenByAttribute(n *html.Node) bool {
	if _, ok := attr(n, "hidden"); ok {
		return true
	}
	if v, ok := attr(n, "aria-hidden"); ok && strings.EqualFold(strings.TrimSpace(v), "true") {
		return true
	}
	if n.Data == "dialog" {
		_, open := attr(n, "open")
		return !open
	}
	return false
}

// presentation applies the attributes of old HTML.
func presentation(n *html.Node, l *look) {
	for _, a := range n.Attr {
		switch {
		case a.Key == "bgcolor":
			l.bg = legacyColor(a.Val)
		case a.Key == "background":
			l.bg = color{}
		case a.Key == "color" && n.Data == "font", a.Key == "text" && n.Data == "body":
			l.fg, l.clear = legacyColor(a.Val), false
		}
	}
}

func legacyColor(s string) color {
	c, _ := parseColor(s)
	if !c.ok {
		c, _ = parseColor("#" + s)
	}
	return c
}

// style is the cascade for one element: rules by weight, then the style attribute. Nil when nothing applies.
func (h *hider) style(n *html.Node) (*style, bool) {
	h.rules = h.rules[:0]
	ok := true
	if h.sheet.count > 0 {
		h.rules, ok = h.sheet.collect(n, h.rules)
		if !ok { // costly rules must not be a way to show what a later rule hides
			return nil, false
		}
		slices.SortStableFunc(h.rules, func(a, b *rule) int { return a.weight - b.weight })
	}
	inline, has := attr(n, "style")
	if len(h.rules) == 0 && !has {
		return nil, true
	}
	var s style
	for _, r := range h.rules {
		for _, d := range r.declare {
			s.set(d.prop, d.value, d.important)
		}
	}
	if has {
		declarations(inline, func(d declaration) { s.set(d.prop, d.value, d.important) })
	}
	return &s, true
}

// hidesBox says why the element with all its content is not seen, whatever the content's own style.
func (s *style) hidesBox(em float64) Hiding {
	v := &s.values
	switch {
	case v[propDisplay] == "none", v[propContentVisibility] == "hidden":
		return HiddenDisplay
	case isZero(v[propOpacity]), strings.Contains(v[propFilter], "opacity(0"), strings.Contains(v[propFilter], "opacity=0"):
		return HiddenOpacity
	case s.zeroBox(em):
		return HiddenZeroBox
	case s.offScreen(em):
		return HiddenOffScreen
	default:
		return ""
	}
}

func isZero(s string) bool {
	if s == "" {
		return false
	}
	v, ok := length(s, 1)
	return ok && v <= 0.05
}

func (s *style) zeroBox(em float64) bool {
	v := &s.values
	if o := v[propOverflow]; o != "" && o != "visible" {
		for _, p := range []property{propWidth, propHeight, propMaxWidth, propMaxHeight} {
			if n, ok := length(v[p], em); ok && n <= 1 {
				return true
			}
		}
	}
	if strings.Contains(v[propTransform], "scale(0") && !strings.Contains(v[propTransform], "scale(0.") {
		return true
	}
	if clip, ok := strings.CutPrefix(v[propClip], "rect("); ok {
		return clipsAll(clip)
	}
	if inset, ok := strings.CutPrefix(v[propClipPath], "inset("); ok {
		n, isLength := length(strings.TrimSpace(strings.Split(strings.TrimRight(inset, ")"), " ")[0]), 100)
		return isLength && strings.Contains(inset, "%") && n >= 50
	}
	return strings.HasPrefix(v[propClipPath], "circle(0")
}

// clipsAll reports whether every edge of a clip rectangle is within a pixel of zero.
func clipsAll(args string) bool {
	edges := strings.FieldsFunc(strings.TrimRight(args, ") "), func(r rune) bool { return r == ',' || r == ' ' })
	for _, e := range edges {
		if n, ok := length(e, 16); !ok || n > 1 {
			return false
		}
	}
	return len(edges) == 4
}

func (s *style) offScreen(em float64) bool {
	const far, wide = -200, 3000
	v := &s.values
	at := func(p property) float64 {
		n, ok := length(v[p], em)
		if !ok {
			return 0
		}
		if strings.HasSuffix(v[p], "%") {
			return n / em * viewport
		}
		return n
	}
	if pos := v[propPosition]; pos == "absolute" || pos == "fixed" || pos == "relative" {
		for _, p := range []property{propLeft, propTop, propRight, propBottom} {
			if n := at(p); n <= far || n >= wide {
				return true
			}
		}
	}
	if at(propTextIndent) <= far || at(propMarginLeft) <= far || at(propMarginTop) <= far || at(propTextIndent) >= wide || at(propMarginLeft) >= wide {
		return true
	}
	if _, shift, ok := strings.Cut(v[propTransform], "translate"); ok {
		_, shift, _ = strings.Cut(shift, "(")
		first, second, _ := strings.Cut(strings.TrimRight(shift, ") "), ",")
		for _, arg := range []string{first, second} {
			if n, isLength := length(strings.TrimSpace(arg), em); isLength && (n <= far || n >= wide) {
				return true
			}
		}
	}
	return false
}

// inherit applies what content can take back.
func (s *style) inherit(l, outer *look) {
	v := &s.values
	switch v[propVisibility] {
	case "hidden", "collapse":
		l.invisible = true
	case "visible", "initial":
		l.invisible = false
	}
	if size := v[propFontSize]; size != "" {
		l.font = fontSize(size, l.font)
	} else if f := v[propFont]; f != "" {
		for part := range strings.FieldsSeq(f) {
			part, _, _ = strings.Cut(part, "/")
			if n, ok := length(part, l.font); ok && n < 100 { // 100 and more is a weight
				l.font = n
				break
			}
		}
	}
	switch c := v[propColor]; c {
	case "":
	case "inherit", "currentcolor":
		l.fg, l.clear = outer.fg, outer.clear
	default:
		l.fg, l.clear = parseColor(c)
	}
	if c := v[propBackgroundColor]; c != "" {
		setBackground(l, c)
	} else if c := v[propBackground]; c != "" {
		if strings.Contains(c, "url(") || strings.Contains(c, "gradient") {
			l.bg = color{}
			return
		}
		setBackground(l, c)
	}
}

func setBackground(l *look, value string) {
	c, transparent := parseColor(value)
	if !c.ok && !transparent {
		for part := range strings.FieldsSeq(value) {
			if c, transparent = parseColor(part); c.ok || transparent {
				break
			}
		}
	}
	if value == "none" || value == "inherit" || value == "initial" || transparent {
		return
	}
	l.bg = c
}

func fontSize(s string, parent float64) float64 {
	switch s {
	case "xx-small", "x-small", "small", "medium", "large", "x-large", "xx-large", "xxx-large", "initial":
		return 16
	case "smaller", "larger", "inherit", "unset":
		return parent
	}
	if n, ok := length(s, parent); ok {
		return n
	}
	return parent
}

// visibleChars counts the characters of all text below n.
func visibleChars(n *html.Node) int {
	total := 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.TextNode {
			total += textChars(c.Data)
			continue
		}
		total += visibleChars(c)
	}
	return total
}

func textChars(s string) int {
	n := 0
	for _, r := range s {
		if r > ' ' && r != 0xa0 {
			n++
		}
	}
	return n
}
