package markup

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

const (
	maxNesting = 10 // lists and quotes that indent; deeper ones stay at that indent, which bounds the output by the input
)

// renderer writes a cleaned tree as text or as Markdown (CommonMark 0.31). Our own, since a library's converter costs more than
// the rest of the pipeline together and its output is not bounded by its input when quotes nest.
type renderer struct {
	b       strings.Builder
	md      bool
	max     int
	breaks  int  // line breaks owed before the next text
	space   bool // a space owed before the next text
	fresh   bool // nothing was written yet
	bol     bool // at the beginning of a line
	pre     int
	prefix  string // what each line begins with
	last    string // what the last line began with
	marker  string // a list marker owed at the next text
	lists   []int  // counters of open ordered lists, -1 for bullets
	pending []string
	nesting int
	full    bool
}

// render writes at most about limit bytes; size is that of the texts in the tree.
func render(n *html.Node, md bool, limit, size int) string {
	r := &renderer{md: md, max: limit, fresh: true, bol: true}
	r.b.Grow(min(size, maxGrow))
	r.children(n)
	return strings.TrimRight(r.b.String(), " \n\t")
}

func (r *renderer) children(n *html.Node) {
	for c := n.FirstChild; c != nil && !r.full; c = c.NextSibling {
		switch c.Type {
		case html.TextNode:
			r.text(c.Data)
		case html.ElementNode:
			r.element(c)
		}
	}
}

// block owes n line breaks before the next text.
func (r *renderer) block(n int) {
	r.breaks = max(r.breaks, n)
	r.space = false
}

func (r *renderer) element(n *html.Node) {
	switch n.Data {
	case "br":
		r.lineBreak()
	case "hr":
		r.block(2)
		r.raw("---")
		r.block(2)
	case "img":
	case "p", "h1", "h2", "h3", "h4", "h5", "h6", "table", "dl", "figure":
		r.heading(n)
	case "ul", "ol", "menu", "dir":
		r.list(n)
	case "li":
		r.item(n)
	case "blockquote":
		r.quote(n)
	case "pre", plainNode, "xmp":
		r.preformatted(n)
	case "td", "th":
		r.cell(n)
	case "a":
		r.link(n)
	case "b", "strong":
		r.mark("**", n)
	case "i", "em":
		r.mark("_", n)
	default:
		if classes[n.Data]&(blockTag|cellTag) != 0 {
			r.block(1)
			r.children(n)
			r.block(1)
			return
		}
		r.children(n)
	}
}

func (r *renderer) lineBreak() {
	if r.md && r.breaks == 0 && !r.bol {
		r.b.WriteString("  ")
	}
	r.space = false
	if r.breaks < 2 {
		r.breaks++
	}
}

func (r *renderer) heading(n *html.Node) {
	r.block(2)
	if r.md && len(n.Data) == 2 && n.Data[0] == 'h' {
		r.pending = append(r.pending, strings.Repeat("#", int(n.Data[1]-'0'))+" ")
		defer r.drop(len(r.pending) - 1)
	}
	r.children(n)
	r.block(2)
}

// drop forgets markers that nothing followed.
func (r *renderer) drop(n int) { r.pending = r.pending[:min(n, len(r.pending))] }

func (r *renderer) list(n *html.Node) {
	gap := 2
	if len(r.lists) > 0 {
		gap = 1
	}
	r.block(gap)
	counter := -1
	if n.Data == "ol" {
		counter = 0
		if s, ok := attr(n, "start"); ok {
			if v, err := strconv.Atoi(s); err == nil && v > 0 && v < 1e6 {
				counter = v - 1
			}
		}
	}
	r.lists = append(r.lists, counter)
	r.children(n)
	r.lists = r.lists[:len(r.lists)-1]
	r.block(gap)
}

func (r *renderer) item(n *html.Node) {
	r.block(1)
	marker := "- "
	if k := len(r.lists) - 1; k >= 0 && r.lists[k] >= 0 {
		r.lists[k]++
		marker = strconv.Itoa(r.lists[k]) + ". "
	}
	saved, owed := r.prefix, r.marker
	r.marker = marker
	if r.nesting < maxNesting {
		// The marker stands on the first line; the lines below are indented as far.
		r.indent(strings.Repeat(" ", len(marker)), n)
	} else {
		r.children(n)
	}
	r.prefix, r.marker = saved, owed
	r.block(1)
}

func (r *renderer) indent(by string, n *html.Node) {
	r.nesting++
	r.prefix += by
	r.children(n)
	r.nesting--
}

func (r *renderer) quote(n *html.Node) {
	r.block(2)
	saved := r.prefix
	if r.nesting < maxNesting {
		r.indent("> ", n)
	} else {
		r.children(n)
	}
	r.prefix = saved
	r.block(2)
}

func (r *renderer) preformatted(n *html.Node) {
	r.block(2)
	if r.md {
		r.raw("```")
		r.block(1)
	}
	r.pre++
	r.children(n)
	r.pre--
	if r.md {
		r.block(1)
		r.raw("```")
	}
	r.block(2)
}

// cell separates the cells of a row that hold nothing but inline content; a layout table reads as blocks.
func (r *renderer) cell(n *html.Node) {
	if r.breaks == 0 && !r.bol && hasCellBefore(n) {
		r.raw(" | ")
		r.space = false
	}
	r.children(n)
}

func hasCellBefore(n *html.Node) bool {
	p := previous(n)
	return p != nil && (p.Data == "td" || p.Data == "th")
}

// mark writes emphasis around content that has any. A marker is written with the first text only, so that empty emphasis
// leaves nothing.
func (r *renderer) mark(m string, n *html.Node) {
	if !r.md || r.pre > 0 {
		r.children(n)
		return
	}
	depth := len(r.pending)
	r.pending = append(r.pending, m)
	r.children(n)
	if len(r.pending) > depth {
		r.drop(depth)
		return
	}
	r.b.WriteString(m)
}

//nolint:gochecknoglobals // constant table
var linkTarget = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20", "<", "%3C", ">", "%3E", `\`, "%5C")

func (r *renderer) link(n *html.Node) {
	href, _ := attr(n, "href")
	if !r.md || href == "" || r.pre > 0 {
		r.children(n)
		return
	}
	depth := len(r.pending)
	r.pending = append(r.pending, "[")
	r.children(n)
	target := "](" + linkTarget.Replace(href) + ")"
	if len(r.pending) > depth {
		r.drop(depth)
		r.raw("[link" + target)
		return
	}
	r.b.WriteString(target)
}

// raw writes s as it is at the current place.
func (r *renderer) raw(s string) {
	r.open()
	r.marked(s)
	r.bol = false
}

// open pays what is owed before text: breaks, prefixes, a list marker, a space, markers.
func (r *renderer) open() {
	if r.b.Len() > r.max {
		r.full = true
	}
	if r.fresh {
		r.breaks, r.space = 0, false
		r.fresh = false
		r.newLine()
	}
	for ; r.breaks > 0; r.breaks-- {
		r.b.WriteByte('\n')
		if r.breaks > 1 {
			r.b.WriteString(strings.TrimRight(shared(r.last, r.prefix), " "))
		} else {
			r.newLine()
		}
	}
	if r.space && !r.bol {
		r.b.WriteByte(' ')
	}
	r.space = false
	for _, m := range r.pending {
		r.marked(m)
	}
	r.pending = r.pending[:0]
}

// marked writes a marker. "!" and a link behind it would be an image, which a viewer loads.
func (r *renderer) marked(m string) {
	if m[0] == '[' && strings.HasSuffix(r.b.String(), "!") {
		r.b.WriteByte(' ')
	}
	r.b.WriteString(m)
}

func (r *renderer) newLine() {
	if r.marker != "" && strings.HasSuffix(r.prefix, strings.Repeat(" ", len(r.marker))) {
		r.b.WriteString(r.prefix[:len(r.prefix)-len(r.marker)])
	} else {
		r.b.WriteString(r.prefix)
	}
	r.b.WriteString(r.marker)
	r.marker = ""
	r.last = r.prefix
	r.bol = true
}

// shared is the common beginning of two prefixes: what an empty line between them is part of.
func shared(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

func (r *renderer) text(s string) {
	if r.pre > 0 {
		r.lines(s)
		return
	}
	for s != "" && !r.full {
		if n := blanks(s); n > 0 {
			r.space = true
			s = s[n:]
			continue
		}
		n := wordEnd(s)
		r.word(s[:n])
		s = s[n:]
		// Nothing is owed now, so words that stay as they are, one space apart, go over together.
		if n = r.run(s); r.b.Len()+n <= r.max {
			r.b.WriteString(s[:n])
			s = s[n:]
		}
	}
}

// run is the length of the words at the start of s, each behind one space, that are written as they stand behind another.
func (r *renderer) run(s string) (end int) {
	for i := range len(s) {
		switch {
		case isBlank(s[i]) || isNoBreak(s, i):
			if i > 0 && s[i-1] != ' ' {
				end = i
			}
			if s[i] != ' ' || i > 0 && s[i-1] == ' ' {
				return end
			}
		case r.md && isSpecial(s[i]):
			return end
		}
	}
	if s != "" && s[len(s)-1] != ' ' {
		return len(s)
	}
	return end
}

// blanks is the length of the white space at the start of s, U+00A0 included.
func blanks(s string) int {
	n := 0
	for n < len(s) {
		switch {
		case isBlank(s[n]):
			n++
		case isNoBreak(s, n):
			n += 2
		default:
			return n
		}
	}
	return n
}

// wordEnd is where the first white space of s begins.
func wordEnd(s string) int {
	for n := range len(s) {
		if isBlank(s[n]) || isNoBreak(s, n) {
			return n
		}
	}
	return len(s)
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

// isNoBreak reports U+00A0 at n.
func isNoBreak(s string, n int) bool { return s[n] == 0xc2 && n+1 < len(s) && s[n+1] == 0xa0 }

func (r *renderer) word(w string) {
	r.open()
	if r.md {
		r.escape(w)
	} else {
		r.b.WriteString(w)
	}
	r.bol = false
}

// Plain makes Markdown of a plain text: it stays as it is, but images, links and HTML in it are not live. Only what the sender's
// own mail software would show as a link is one, and a plain text has none.
func Plain(text string) string { return notLive.Replace(text) }

//nolint:gochecknoglobals // constant table
var notLive = strings.NewReplacer("![", `!\[`, "](", `]\(`, "]:", `]\:`, "][", `]\[`, "<", `\<`)

// lines writes preformatted text.
func (r *renderer) lines(s string) {
	for s != "" && !r.full {
		line, rest, more := strings.Cut(s, "\n")
		if line = strings.TrimRight(line, "\r"); strings.TrimSpace(line) != "" {
			if r.md {
				line = strings.ReplaceAll(line, "```", "'''") // must not end the fence
			}
			r.raw(line)
		}
		if more {
			r.breaks = min(r.breaks+1, 2)
		}
		s = rest
	}
}

// special is the offset of the first character that means something in Markdown, -1 without one.
func special(w string) int {
	for i := range len(w) {
		if isSpecial(w[i]) {
			return i
		}
	}
	return -1
}

func isSpecial(c byte) bool {
	switch c {
	case '\\', '`', '*', '_', '[', ']', '<', '>', '&':
		return true
	}
	return false
}

// escape writes a word so that it stays text: a mail must not be able to write Markdown of its own, such as an image that a
// viewer would load.
func (r *renderer) escape(w string) {
	if r.bol && strings.IndexByte("#-+=~>", w[0]) >= 0 {
		r.b.WriteByte('\\')
	} else if r.bol && w[0] >= '0' && w[0] <= '9' {
		if last := w[len(w)-1]; last == '.' || last == ')' {
			r.b.WriteString(w[:len(w)-1])
			r.b.WriteByte('\\')
			w = w[len(w)-1:]
		}
	}
	for {
		i := special(w)
		if i < 0 {
			r.b.WriteString(w)
			return
		}
		r.b.WriteString(w[:i])
		if w[i] != '_' || i == 0 || i == len(w)-1 { // an underscore inside a word is no emphasis
			r.b.WriteByte('\\')
		}
		r.b.WriteByte(w[i])
		w = w[i+1:]
		if w == "" {
			return
		}
	}
}
