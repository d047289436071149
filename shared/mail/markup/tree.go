// Package markup turns the HTML of a mail into text, Markdown, sanitised HTML and links, without what a person would not see.
// A hidden instruction in a mail is meant for whoever reads it by machine, so hidden elements go before anything is derived.
// It must not know MIME. HTML Living Standard tokens; tree building is our own: net/html's is not linear (formatting elements
// are reconstructed per block, so 1 MiB can become gigabytes) and gives up at 512 open elements.
package markup

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// Limits bounds one document. All must be positive.
type Limits struct {
	Bytes int // of the document
	Nodes int // elements and texts that get a node; what follows is read as plain text
	Depth int // open elements; what stands deeper is read as plain text
	Links int
}

const (
	maxAttrs  = 40
	maxCSS    = 128 << 10
	plainNode = "x-plain" // text of the plain mode: line breaks are kept
)

// builder makes a tree in one pass. Beyond a limit it stops making nodes and only keeps text: see plain.
type builder struct {
	z      *html.Tokenizer
	lim    Limits
	root   *html.Node
	stack  []*html.Node
	nodes  int
	css    strings.Builder
	over   plain
	full   bool // the node limit was reached; plain mode until the end
	deep   bool
	active int // scripts, frames, objects and form controls that were dropped

	slab  []html.Node      // nodes not yet used: they are allocated many at a time
	attrs []html.Attribute // of the tag being read
}

// slabNodes is how many nodes are allocated at once. A tree lives and dies as one.
const slabNodes = 64

func (b *builder) newNode(kind html.NodeType, data string, attrs []html.Attribute) *html.Node {
	if len(b.slab) == 0 {
		b.slab = make([]html.Node, min(slabNodes, max(b.nodes, 4)))
	}
	n := &b.slab[0]
	b.slab = b.slab[1:]
	n.Type, n.Data, n.Attr = kind, data, attrs
	return n
}

// parse builds the tree of s. The root is a body element.
func parse(s string, lim Limits) *builder {
	b := &builder{z: html.NewTokenizer(strings.NewReader(s)), lim: lim, root: &html.Node{Type: html.ElementNode, Data: "body"}}
	b.stack = append(b.stack, b.root)
	for {
		switch b.z.Next() {
		case html.ErrorToken:
			b.flushPlain()
			return b
		case html.TextToken:
			b.text(string(b.z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			b.start()
		case html.EndTagToken:
			name, _ := b.z.TagName()
			b.end(string(name))
		}
	}
}

func (b *builder) top() *html.Node { return b.stack[len(b.stack)-1] }

func (b *builder) text(s string) {
	if s == "" {
		return
	}
	if b.over.on(b.full) {
		b.over.text(s)
		return
	}
	b.node(b.newNode(html.TextNode, s, nil))
}

// node appends n to the open element.
func (b *builder) node(n *html.Node) {
	if b.nodes++; b.nodes >= b.lim.Nodes {
		b.full = true
	}
	b.top().AppendChild(n)
}

func (b *builder) start() {
	raw, more := b.z.TagName()
	name := string(raw)
	b.attrs = b.attrs[:0]
	for more {
		var k, v []byte
		k, v, more = b.z.TagAttr()
		if len(b.attrs) < maxAttrs {
			b.attrs = append(b.attrs, html.Attribute{Key: string(k), Val: string(v)})
		}
	}
	attrs := slices.Clone(b.attrs)
	switch classes[name] & (rawTag | dropTag | skipTag) {
	case rawTag: // content is not markup: take the one text token that follows
		b.raw(name)
		return
	case dropTag: // the tag goes, the content stays
		b.active += int(classes[name] & activeTag / activeTag)
		if name == "noscript" {
			b.z.NextIsNotRawText() // mail runs no script, so this is what a person sees
		}
		return
	case skipTag:
		return
	}
	if name == "body" {
		b.root.Attr = append(b.root.Attr, attrs...)
		if len(b.root.Attr) > maxAttrs {
			b.root.Attr = b.root.Attr[:maxAttrs]
		}
		return
	}
	b.imply(name)
	void := classes[name]&voidTag != 0
	if b.over.on(b.full) || !void && len(b.stack) >= b.lim.Depth {
		b.deep = b.deep || !b.full
		b.over.start(name, attrs, void)
		return
	}
	n := b.newNode(html.ElementNode, name, attrs)
	b.node(n)
	if !void {
		b.stack = append(b.stack, n)
	}
}

// raw reads an element whose content is one raw text.
func (b *builder) raw(name string) {
	if b.z.Next() != html.TextToken {
		return
	}
	switch name {
	case "style":
		if room := maxCSS - b.css.Len(); room > 0 {
			text := b.z.Text()
			b.css.Write(text[:min(len(text), room)])
			b.css.WriteByte('\n')
		}
	case "script", "iframe", "noembed", "noframes":
		b.active++
	case "xmp", "plaintext", "textarea":
		b.text(string(b.z.Text()))
	}
}

// imply closes what a start tag closes by itself (HTML, 13.2.6.4.7 and the table modes).
func (b *builder) imply(name string) {
	if b.over.on(b.full) {
		return
	}
	c := classes[name]
	if c&blockTag != 0 {
		b.closeUpTo("p", scopeTag)
		for i := len(b.stack) - 1; i > 0; i-- { // a block ends svg and math, which cannot hold one
			if b.stack[i].Data == "svg" || b.stack[i].Data == "math" {
				b.stack = b.stack[:i]
			}
		}
	}
	switch name {
	case "li":
		b.closeUpTo("li", listTag|scopeTag)
	case "dd", "dt":
		b.closeUpTo("dd", listTag|scopeTag)
		b.closeUpTo("dt", listTag|scopeTag)
	case "a":
		b.closeUpTo("a", scopeTag)
	case "td", "th":
		b.closeUpTo("td", tableTag)
		b.closeUpTo("th", tableTag)
	case "tr":
		b.closeUpTo("tr", tableTag)
	case "thead", "tbody", "tfoot":
		b.closeUpTo("thead", tableTag)
		b.closeUpTo("tbody", tableTag)
		b.closeUpTo("tfoot", tableTag)
	}
}

// closeUpTo closes the innermost element of that name unless one of the stop classes stands in between.
func (b *builder) closeUpTo(name string, stop class) bool {
	for i := len(b.stack) - 1; i > 0; i-- {
		if b.stack[i].Data == name {
			b.stack = b.stack[:i]
			return true
		}
		if classes[b.stack[i].Data]&stop != 0 {
			return false
		}
	}
	return false
}

func (b *builder) end(name string) {
	if b.over.on(b.full) {
		known := b.over.end(name)
		if b.full || known && len(b.over.stack) > 0 {
			return
		}
		b.flushPlain()
		if known {
			return
		}
	}
	switch c := classes[name]; {
	case name == "br":
		b.node(b.newNode(html.ElementNode, "br", nil))
	case name == "table":
		b.closeUpTo(name, 0)
	case c&(cellTag) != 0:
		b.closeUpTo(name, tableTag)
	case c&(blockTag|formatTag) != 0:
		b.closeUpTo(name, scopeTag)
	default:
		// Any other end tag is ignored when a block stands in between, as browsers do: closing here would show text that
		// stays inside a hidden element there.
		b.closeUpTo(name, scopeTag|blockTag)
	}
}

// flushPlain puts the text of the plain mode into the tree.
func (b *builder) flushPlain() {
	if s := b.over.take(); strings.TrimSpace(s) != "" {
		n := &html.Node{Type: html.ElementNode, Data: plainNode}
		n.AppendChild(&html.Node{Type: html.TextNode, Data: s})
		b.top().AppendChild(n)
	}
}

// plain is the mode beyond a limit. Elements leave only an entry on a stack, text goes to one buffer. What an element's
// style would do is not worked out any more; text in an element that has any style, class or other look of its own is taken
// for hidden, because showing hidden text is worse than missing some.
type plain struct {
	buf    strings.Builder
	stack  []plainElement
	opened map[string]int // open elements by name: an end tag without a start must not search the whole stack
	hiding int
	hidden int // characters that were left out
}

type plainElement struct {
	name string
	hide bool
}

func (p *plain) on(full bool) bool { return full || len(p.stack) > 0 }

func (p *plain) text(s string) {
	if p.hiding > 0 {
		p.hidden += len(strings.TrimSpace(s))
		return
	}
	p.buf.WriteString(strings.Join(strings.Fields(s), " "))
	if s[len(s)-1] <= ' ' {
		p.buf.WriteByte(' ')
	}
}

func (p *plain) start(name string, attrs []html.Attribute, void bool) {
	if classes[name]&(blockTag|cellTag) != 0 || name == "br" {
		p.buf.WriteByte('\n')
	}
	if void {
		return
	}
	if p.opened == nil {
		p.opened = map[string]int{}
	}
	e := plainElement{name: name, hide: classes[name]&unseenTag != 0}
	for _, a := range attrs {
		switch a.Key {
		case "href", "dir", "lang", "align", "valign", "colspan", "rowspan", "border", "cellpadding", "cellspacing", "target":
		default:
			e.hide = true
		}
	}
	if e.hide {
		p.hiding++
	}
	p.opened[name]++
	p.stack = append(p.stack, e)
}

// end closes the innermost element of that name; false when none is open here. Every element is popped once.
func (p *plain) end(name string) bool {
	if p.opened[name] == 0 {
		return false
	}
	for {
		e := p.stack[len(p.stack)-1]
		p.stack = p.stack[:len(p.stack)-1]
		p.opened[e.name]--
		if e.hide {
			p.hiding--
		}
		if e.name == name {
			return true
		}
	}
}

func (p *plain) take() string {
	s := p.buf.String()
	p.buf.Reset()
	p.stack, p.opened, p.hiding = p.stack[:0], nil, 0
	return s
}

// class groups elements by how the builder and the renderers treat them.
type class uint16

const (
	voidTag   class = 1 << iota // no content
	rawTag                      // content is raw text
	dropTag                     // the tag is dropped, its content kept
	skipTag                     // the tag is dropped and has no content
	activeTag                   // counts as active content
	blockTag                    // starts a line; "special" in the standard's sense
	formatTag                   // the standard's formatting elements
	cellTag                     // parts of a table
	tableTag                    // the table itself
	scopeTag                    // ends a search for an open element
	listTag                     // a list
	unseenTag                   // not rendered at all
)

//nolint:gochecknoglobals // constant table
var classes = map[string]class{
	"br": voidTag, "hr": voidTag | blockTag, "img": voidTag, "wbr": voidTag,
	"area": skipTag, "base": skipTag, "basefont": skipTag, "bgsound": skipTag, "col": skipTag, "frame": skipTag, "input": skipTag, "keygen": skipTag,
	"link": skipTag, "meta": skipTag, "param": skipTag, "source": skipTag, "track": skipTag,
	"script": rawTag, "style": rawTag, "title": rawTag, "iframe": rawTag, "noembed": rawTag, "noframes": rawTag, "xmp": rawTag, "plaintext": rawTag, "textarea": rawTag,
	"html": dropTag, "head": dropTag, "noscript": dropTag, "colgroup": dropTag, "frameset": dropTag,
	"form": dropTag | activeTag, "object": dropTag | activeTag, "applet": dropTag | activeTag, "embed": skipTag | activeTag,
	"a": formatTag, "b": formatTag, "big": formatTag, "code": formatTag, "em": formatTag, "font": formatTag, "i": formatTag, "nobr": formatTag,
	"s": formatTag, "small": formatTag, "strike": formatTag, "strong": formatTag, "tt": formatTag, "u": formatTag,
	"address": blockTag, "article": blockTag, "aside": blockTag, "blockquote": blockTag, "center": blockTag, "details": blockTag, "dialog": blockTag,
	"dir": blockTag | listTag, "div": blockTag, "dl": blockTag | listTag, "dd": blockTag, "dt": blockTag, "fieldset": blockTag, "figcaption": blockTag, "figure": blockTag,
	"footer": blockTag, "h1": blockTag, "h2": blockTag, "h3": blockTag, "h4": blockTag, "h5": blockTag, "h6": blockTag, "header": blockTag,
	"hgroup": blockTag, "li": blockTag, "main": blockTag, "menu": blockTag | listTag, "nav": blockTag, "ol": blockTag | listTag, "p": blockTag, "pre": blockTag,
	"section": blockTag, "summary": blockTag, "ul": blockTag | listTag,
	"table": blockTag | tableTag | scopeTag, "caption": cellTag | scopeTag, "thead": cellTag, "tbody": cellTag, "tfoot": cellTag, "tr": cellTag, "td": cellTag | scopeTag, "th": cellTag | scopeTag,
	"template": unseenTag, "datalist": unseenTag, "svg": unseenTag, "math": unseenTag, "audio": unseenTag, "video": unseenTag, "canvas": unseenTag,
}

func attr(n *html.Node, name string) (string, bool) {
	for i := range n.Attr {
		if n.Attr[i].Key == name {
			return n.Attr[i].Val, true
		}
	}
	return "", false
}
