package markup

import (
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/net/html"

	"github.com/buzon-mail/buzon/shared/mail/clean"
)

// Document is what a person would see of an HTML mail, in the forms that callers need.
type Document struct {
	Text      string
	Markdown  string
	Sanitized string // no scripts, styles, forms, remote images or hidden content; safe to show in a sandboxed frame
	Links     []Link
	LinksCut  int            // links that were not listed
	Hidden    map[Hiding]int // removed elements and texts by way of hiding; nil when there were none
	Chars     int            // characters of the removed text
	Images    int            // images that were removed because they are remote or have no use without their source
	Active    int            // scripts, frames, forms, javascript: links
	Counts    clean.Counts
	TooLarge  bool // cut, or partly read as plain text
	TooDeep   bool // some elements were read as plain text
}

// Convert reads an HTML document. s must be valid UTF-8. Time and memory are linear in len(s), which Limits.Bytes bounds.
func Convert(s string, lim Limits) *Document {
	d := &Document{}
	if len(s) > lim.Bytes {
		s, d.TooLarge = clean.Cut(s, lim.Bytes), true
	}
	b := parse(s, lim)
	d.TooLarge = d.TooLarge || b.full
	d.TooDeep, d.Active = b.deep, b.active
	h := &hider{sheet: newSheet(b.css.String())}
	h.document(b.root)
	d.TooLarge = d.TooLarge || h.short
	h.add(HiddenUnread, b.over.hidden)
	d.Hidden, d.Chars = h.counts, h.chars
	size := d.polish(b.root)
	d.links(b.root, lim.Links)
	limit := 4*len(s) + 1024
	d.Text = render(b.root, false, limit, size)
	d.Markdown = render(b.root, true, limit, size)
	d.Sanitized = sanitize(serialize(b.root, len(s)))
	return d
}

// polish cleans every text of the tree and removes images that are not part of the mail. The alternative text of an image
// goes with it: a person who sees the picture does not see that text. It returns the bytes of the texts.
func (d *Document) polish(n *html.Node) (size int) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		switch {
		case c.Type == html.TextNode:
			c.Data = clean.Text(c.Data, &d.Counts)
			size += len(c.Data)
		case c.Data == "img":
			src, _ := attr(c, "src")
			if cid, ok := strings.CutPrefix(strings.ToLower(src), "cid:"); ok && len(cid) < 256 {
				c.Attr = []html.Attribute{{Key: "src", Val: escapeURL("cid:" + src[len("cid:"):])}}
				break
			}
			d.Images++
			n.RemoveChild(c)
		default:
			size += d.polish(c)
		}
		c = next
	}
	return size
}

// kept are the elements that the sanitised HTML may have; the content of any other stays without it.
//
//nolint:gochecknoglobals // constant table
var kept = map[string]string{
	"a": "a", "b": "b", "blockquote": "blockquote", "br": "br", "caption": "caption", "code": "code", "dd": "dd", "del": "del", "div": "div", "dl": "dl", "dt": "dt",
	"em": "em", "h1": "h1", "h2": "h2", "h3": "h3", "h4": "h4", "h5": "h5", "h6": "h6", "hr": "hr", "i": "i", "img": "img", "ins": "ins", "li": "li", "ol": "ol",
	"p": "p", "pre": "pre", "s": "s", "span": "span", "strike": "strike", "strong": "strong", "sub": "sub", "sup": "sup", "table": "table", "tbody": "tbody", "td": "td",
	"tfoot": "tfoot", "th": "th", "thead": "thead", "tr": "tr", "tt": "tt", "u": "u", "ul": "ul", plainNode: "pre", "center": "div", "section": "div", "article": "div",
	"header": "div", "footer": "div", "address": "div",
}

// serialize writes the tree with allowed elements and attributes only. The result passes a maintained sanitiser afterwards:
// two lists must both be wrong before something active gets through. size is about that of the source.
func serialize(root *html.Node, size int) string {
	var b strings.Builder
	b.Grow(min(size, maxGrow))
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.TextNode {
				b.WriteString(html.EscapeString(c.Data))
				continue
			}
			name, ok := kept[c.Data]
			if !ok || name == "span" {
				walk(c)
				continue
			}
			openTag(&b, name, c)
			if classes[name]&voidTag != 0 {
				continue
			}
			walk(c)
			b.WriteString("</")
			b.WriteString(name)
			b.WriteByte('>')
		}
	}
	walk(root)
	return b.String()
}

// maxGrow bounds in bytes what is allocated before anything is written.
const maxGrow = 64 << 10

// sanitize is the policy's. Should it fail, nothing is shown: half a document is not a clean one.
func sanitize(s string) string {
	if strings.TrimSpace(s) == "" {
		return s
	}
	var b strings.Builder
	b.Grow(min(len(s)+len(s)/4, maxGrow)) // rel attributes are added to links
	if err := policy().SanitizeReaderToWriter(strings.NewReader(s), &b); err != nil {
		return ""
	}
	return b.String()
}

func openTag(b *strings.Builder, name string, n *html.Node) {
	b.WriteByte('<')
	b.WriteString(name)
	for _, a := range n.Attr {
		switch a.Key {
		case "href", "src", "colspan", "rowspan", "start", "dir":
			b.WriteByte(' ')
			b.WriteString(a.Key)
			b.WriteString(`="`)
			b.WriteString(html.EscapeString(a.Val))
			b.WriteByte('"')
		}
	}
	b.WriteByte('>')
}

// policy is built once: it compiles expressions, and a policy is safe for concurrent use once built.
//
//nolint:gochecknoglobals // constant after first use
var policy = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	for name, as := range kept {
		if name == as && name != "a" && name != "img" {
			p.AllowElements(name)
		}
	}
	p.AllowAttrs("href").OnElements("a")
	p.AllowAttrs("src").OnElements("img")
	p.AllowAttrs("colspan", "rowspan").Matching(bluemonday.Integer).OnElements("td", "th")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("dir").Matching(bluemonday.Direction).Globally()
	p.AllowURLSchemes("http", "https", "mailto", "tel", "cid")
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	return p
})
