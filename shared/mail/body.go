package mail

import (
	"bytes"
	"context"
	"html"
	"strings"

	"github.com/buzon-mail/buzon/shared/mail/charset"
	"github.com/buzon-mail/buzon/shared/mail/clean"
	"github.com/buzon-mail/buzon/shared/mail/markup"
	"github.com/buzon-mail/buzon/shared/mail/scan"
	"github.com/buzon-mail/buzon/shared/mail/transfer"
	"github.com/buzon-mail/buzon/shared/mail/warning"
)

// block is one stretch of the body in one or two forms.
type block struct {
	plain, html []*scan.Part
}

// read walks the tree: texts become the body, everything else an attachment.
func (p *parser) read(ctx context.Context, root *scan.Part) error {
	w := &walker{p: p}
	blocks := w.part(ctx, root, false)
	if w.err != nil {
		return w.err
	}
	p.body(blocks)
	return nil
}

// body turns the blocks into the texts of the message.
func (p *parser) body(blocks []block) {
	var text, md, sanitized []string
	anyHTML := false
	for _, b := range blocks {
		plain := p.plainText(b.plain)
		doc := p.htmlText(b.html)
		if doc != nil {
			anyHTML = true
			p.compare(plain, doc.Text)
		}
		switch {
		case doc == nil:
			text, md = appendText(text, plain), appendText(md, markup.Plain(plain))
			sanitized = append(sanitized, "<pre>"+html.EscapeString(plain)+"</pre>")
			p.textLinks(plain)
		case plain == "":
			text, md = appendText(text, doc.Text), appendText(md, doc.Markdown)
			sanitized = append(sanitized, doc.Sanitized)
		default:
			text, md = appendText(text, plain), appendText(md, doc.Markdown)
			sanitized = append(sanitized, doc.Sanitized)
			p.shown = append(p.shown, doc.Text)
		}
	}
	m := p.msg
	m.Text, m.Markdown = strings.Join(text, "\n\n"), strings.Join(md, "\n\n")
	if anyHTML {
		m.HTMLSanitized = strings.Join(sanitized, "\n")
	}
	if strings.Contains(m.Text, "-----BEGIN PGP MESSAGE-----") {
		m.Flags.Encrypted = true
		p.warn.Add(warning.EncryptedBody, "")
	}
	if strings.Contains(m.Text, "-----BEGIN PGP SIGNED MESSAGE-----") {
		m.Flags.Signed = true
	}
}

func appendText(list []string, s string) []string {
	if s == "" {
		return list
	}
	return append(list, s)
}

// plainText reads the plain parts of a block within what is left of the limit.
func (p *parser) plainText(parts []*scan.Part) string {
	var out []string
	for _, part := range parts {
		room := max(p.lim.TextBytes, 0)
		data := p.leaf(part, room, warning.TextTooLarge)
		p.lim.TextBytes -= len(data)
		data = p.extractUuencoded(part, data)
		text := p.decodeText(part, data, false)
		text = clean.Text(text, &p.msg.Content.Removed)
		if strings.EqualFold(part.Media.Param("format"), "flowed") {
			text = unflow(text, strings.EqualFold(part.Media.Param("delsp"), "yes"))
		}
		out = appendText(out, trimText(text))
	}
	return strings.Join(out, "\n\n")
}

// trimText drops blank lines at both ends and white space at the very end; the first line keeps its indentation.
func trimText(s string) string {
	s = strings.TrimRight(s, " \t\n")
	for {
		line, rest, ok := strings.Cut(s, "\n")
		if !ok || strings.TrimSpace(line) != "" {
			return s
		}
		s = rest
	}
}

// htmlText reads the HTML parts of a block; nil when there are none.
func (p *parser) htmlText(parts []*scan.Part) *markup.Document {
	var all *markup.Document
	for _, part := range parts {
		data := p.leaf(part, max(p.lim.HTMLBytes, 0), warning.HTMLTooLarge)
		p.lim.HTMLBytes -= len(data)
		doc := p.convert(part, p.decodeText(part, data, true))
		if all == nil {
			all = doc
			continue
		}
		all.Text += "\n\n" + doc.Text
		all.Markdown += "\n\n" + doc.Markdown
		all.Sanitized += "\n" + doc.Sanitized
	}
	if all != nil {
		all.Text, all.Markdown = trimText(all.Text), trimText(all.Markdown)
	}
	return all
}

// convert reads one HTML text and adds what was removed to the counts.
func (p *parser) convert(part *scan.Part, text string) *markup.Document {
	doc := markup.Convert(text, markup.Limits{Bytes: 2*len(text) + 1, Nodes: p.lim.HTMLNodes, Depth: p.lim.HTMLDepth, Links: p.lim.Links - len(p.links)})
	c := &p.msg.Content
	c.Removed.Add(doc.Counts)
	for kind, n := range doc.Hidden {
		if c.Hidden == nil {
			c.Hidden = map[markup.Hiding]int{}
		}
		c.Hidden[kind] += n
	}
	c.HiddenChars += doc.Chars
	c.RemoteImages += doc.Images
	c.Active += doc.Active
	if doc.TooLarge {
		p.warn.Add(warning.HTMLTooLarge, part.Path)
	}
	if doc.TooDeep {
		p.warn.Add(warning.HTMLTooDeep, part.Path)
	}
	p.links = append(p.links, doc.Links...)
	p.cut += doc.LinksCut
	return doc
}

// leaf decodes at most limit bytes of a text part. Only as much of the encoded text is touched as that needs.
func (p *parser) leaf(part *scan.Part, limit int, code warning.Code) []byte {
	body := part.Body
	if encoded := 4 * (limit + 1024); len(body) > encoded {
		body = body[:encoded]
		p.warn.Add(code, part.Path)
	}
	data := p.decode(part, body)
	if part.LongLine {
		data = p.cutLines(data)
	}
	if len(data) > limit {
		p.warn.Add(code, part.Path)
		data = data[:limit]
		for n := 0; n < 3 && len(data) > 0 && data[len(data)-1] >= 0x80; n++ { // not in the middle of a character
			data = data[:len(data)-1]
		}
	}
	if bytes.IndexByte(data, 0) >= 0 && !strings.HasPrefix(charset.Label(part.Charset()), "utf-16") {
		p.warn.Add(warning.NulByte, "body")
	}
	return data
}

// cutLines cuts the lines of a text that are over the limit.
func (p *parser) cutLines(data []byte) []byte {
	out := make([]byte, 0, min(len(data), p.lim.TextBytes+p.lim.HTMLBytes))
	for line := range bytes.Lines(data) {
		if len(line) > p.lim.LineBytes+2 {
			p.warn.Truncate()
			line = append(line[:p.lim.LineBytes:p.lim.LineBytes], '\n')
		}
		out = append(out, line...)
	}
	return out
}

// decode undoes the transfer encoding and charges the budget.
func (p *parser) decode(part *scan.Part, body []byte) []byte {
	if part.Encoding == transfer.Identity || part.Encoding == transfer.Unknown {
		return body
	}
	if p.budget < len(body)/2 {
		p.warn.Add(warning.DecodeLimit, part.Path)
		return nil
	}
	data, repairs := transfer.Decode(body, part.Encoding)
	p.budget -= len(data)
	switch part.Encoding {
	case transfer.Base64:
		p.warn.AddN(warning.BadBase64, part.Path, repairs)
	case transfer.QuotedPrintable:
		p.warn.AddN(warning.BadQuotedPrintable, part.Path, repairs)
	default:
		p.warn.AddN(warning.BadUuencode, part.Path, repairs)
	}
	return data
}

func (p *parser) decodeText(part *scan.Part, data []byte, isHTML bool) string {
	r := charset.Decode(data, part.Charset(), isHTML)
	if r.Unknown {
		p.warn.Add(warning.UnknownCharset, part.Path)
	}
	if r.Wrong {
		p.warn.Add(warning.WrongCharset, part.Path)
	}
	p.msg.Content.Replaced += r.Replaced
	return r.Text
}

// compare warns when a mail shows people one thing and programs another: most words of the plain text are not in the HTML.
func (p *parser) compare(plain, shown string) {
	const window, enough = 4 << 10, 20
	if plain == "" {
		return
	}
	total, missing := 0, map[string]int{} // how often each word of the plain text stands there, until it is found
	for w := range strings.FieldsSeq(clean.Cut(plain, window)) {
		w = bareWord(w)
		if len(w) < 4 || strings.Contains(w, "://") {
			continue
		}
		total++
		missing[w]++
	}
	if total < enough {
		return
	}
	common := 0
	for w := range strings.FieldsSeq(clean.Cut(shown, 8*window)) {
		w = bareWord(w)
		if n, ok := missing[w]; ok {
			delete(missing, w)
			if common += n; common*10 >= total*3 {
				return // of most mails the first line says so
			}
		}
	}
	p.warn.Add(warning.AlternativesDiffer, "")
}

// bareWord is a word without the punctuation around it, in lower case.
func bareWord(w string) string {
	punctuation := func(c byte) bool { return c < '0' || c >= ':' && c <= '@' || c == '[' || c == ']' || c == '_' }
	for w != "" && punctuation(w[0]) {
		w = w[1:]
	}
	for w != "" && punctuation(w[len(w)-1]) {
		w = w[:len(w)-1]
	}
	return strings.ToLower(w)
}

// unflow joins the lines of format=flowed text (RFC 3676 section 4). A line that ends with a space goes on in the next of the
// same quote depth; the signature separator never does.
func unflow(s string, delSp bool) string {
	var b strings.Builder
	b.Grow(len(s))
	depth, open := -1, false
	for line := range strings.SplitSeq(s, "\n") {
		d := 0
		for d < len(line) && line[d] == '>' {
			d++
		}
		text := strings.TrimPrefix(line[d:], " ")
		if open && d != depth || !open && depth >= 0 || text == "-- " && open {
			b.WriteByte('\n')
			open = false
		}
		if !open && d > 0 {
			b.WriteString(line[:d])
			b.WriteByte(' ')
		}
		depth = d
		open = strings.HasSuffix(text, " ") && text != "-- "
		if open && delSp {
			text = text[:len(text)-1]
		}
		b.WriteString(text)
	}
	return b.String()
}
