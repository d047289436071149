package mail

import (
	"context"
	"strings"

	"github.com/buzon-mail/buzon/shared/mail/scan"
	"github.com/buzon-mail/buzon/shared/mail/transfer"
	"github.com/buzon-mail/buzon/shared/mail/warning"
)

// walker sorts parts into body and attachments. The scan's depth bounds its recursion.
type walker struct {
	p      *parser
	err    error
	inside string // path of the attached message that is being walked, "" in the mail itself
}

// part returns the blocks of a part; related says that it stands in a multipart/related, where pictures belong to the text.
func (w *walker) part(ctx context.Context, p *scan.Part, related bool) []block {
	if w.err == nil {
		w.err = ctx.Err()
	}
	switch {
	case w.err != nil:
		return nil
	case p.Multipart():
		return w.multipart(ctx, p)
	case strings.HasPrefix(p.Type, "multipart/") && !p.Unread:
		return w.text([]block{{plain: []*scan.Part{p}}}) // no boundary found: what is there is text
	case scan.IsMessage(p.Type):
		w.message(ctx, p)
		return nil
	case p.Type == "text/plain" && !isFile(p):
		return w.text([]block{{plain: []*scan.Part{p}}})
	case (p.Type == "text/html" || p.Type == "application/xhtml+xml") && !isFile(p):
		return w.text([]block{{html: []*scan.Part{p}}})
	default:
		w.attach(p, related)
		return nil
	}
}

// text returns the blocks in the mail itself; the texts of an attached message are in that attachment's data.
func (w *walker) text(b []block) []block {
	if w.inside != "" {
		return nil
	}
	return b
}

// isFile reports whether a text part is meant as a file.
func isFile(p *scan.Part) bool {
	return p.Disposition.Type == "attachment" || p.Filename() != "" && p.Depth > 0
}

func (w *walker) multipart(ctx context.Context, p *scan.Part) []block {
	flags := &w.p.msg.Flags
	top := w.inside == ""
	switch p.Type {
	case "multipart/alternative":
		return w.alternative(ctx, p)
	case "multipart/encrypted":
		if top {
			flags.Encrypted = true
			w.p.warn.Add(warning.EncryptedBody, p.Path)
		}
		for _, c := range p.Children {
			w.attach(c, false)
		}
		return nil
	case "multipart/signed":
		flags.Signed = flags.Signed || top
	}
	var all []block
	for _, c := range p.Children {
		all = append(all, w.part(ctx, c, p.Type == "multipart/related")...)
	}
	return all
}

// alternative joins the forms of one text into one block: the first plain one and the last HTML one, which is the richest (RFC
// 2046 section 5.1.4). Forms that are neither are attachments.
func (w *walker) alternative(ctx context.Context, p *scan.Part) []block {
	var b block
	for _, c := range p.Children {
		blocks := w.part(ctx, c, false)
		var plain, html []*scan.Part
		for _, x := range blocks {
			plain, html = append(plain, x.plain...), append(html, x.html...)
		}
		if len(b.plain) == 0 {
			b.plain = plain
		}
		if len(html) > 0 {
			b.html = html
		}
	}
	if len(b.plain)+len(b.html) == 0 {
		return nil
	}
	return []block{b}
}

// message lists an attached message and then what is attached to it.
func (w *walker) message(ctx context.Context, p *scan.Part) {
	root := (*scan.Part)(nil)
	at := w.attach(p, false)
	if p.Message() {
		root = p.Children[0]
	} else if p.Encoding != transfer.Identity && !p.Unread {
		root = w.scanEncoded(ctx, p, w.p.msg.Attachments[at].Data)
	}
	if root == nil {
		w.p.warn.Add(warning.NestedUnread, p.Path)
		return
	}
	w.p.msg.Attachments[at].Message = w.p.summary(root)
	saved := w.inside
	w.inside = p.Path
	w.part(ctx, root, false)
	w.inside = saved
}

// scanEncoded opens a message that is base64 or quoted-printable, against RFC 2046 section 5.2.1 but common.
func (w *walker) scanEncoded(ctx context.Context, p *scan.Part, data []byte) *scan.Part {
	left := w.p.lim.Parts - w.p.parts
	if p.Depth >= w.p.lim.Depth || left <= 0 || len(data) == 0 {
		w.p.warn.Add(warning.DepthLimit, p.Path)
		return nil
	}
	tree, err := scan.Scan(ctx, data, w.p.lim.scan(left), scan.At{Depth: p.Depth + 1, Path: p.Path + ".1"}, &w.p.warn)
	if err != nil {
		w.err = err
		return nil
	}
	w.p.parts += tree.Parts + 1
	return tree.Root
}
