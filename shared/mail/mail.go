// Package mail reads a mail: bytes in, a value out. It is bounded (time linear in the mail, memory a few times its size) and
// never gives up: what is broken is repaired, what is over a limit is left out, and both are marked by warnings. It must not
// know the inbox, a store, a network or a clock. RFC 5322, 2045-2049, 2231, 3676; subpackages hold the stages.
//
// Everything in a Message comes from the sender and is untrusted, except the part paths, codes, kinds and flags. Text that a
// person would not see (hidden HTML, bidirectional overrides, tag characters, ...) is in none of its strings; it is counted.
package mail

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/mail/clean"
	"github.com/buzon-mail/buzon/shared/mail/cue"
	"github.com/buzon-mail/buzon/shared/mail/header"
	"github.com/buzon-mail/buzon/shared/mail/markup"
	"github.com/buzon-mail/buzon/shared/mail/scan"
	"github.com/buzon-mail/buzon/shared/mail/warning"
)

// ParserVersion is raised with every change that reads some mail differently, so that stored results can be told apart and made
// anew.
const ParserVersion = 2

// Limits bounds what is read of one mail. A zero field takes its default.
type Limits struct {
	MessageBytes  int // 25 MiB
	Depth         int // 12: multiparts and messages around a part
	Parts         int // 2,000
	HeaderBytes   int // 256 KiB: one header block
	Fields        int // 1,000: of one header block
	FieldBytes    int // 64 KiB
	Addresses     int // 1,000: of one address list
	BoundaryBytes int // 200
	LineBytes     int // 1 MiB
	TextBytes     int // 1 MiB: plain text of the body
	HTMLBytes     int // 1 MiB: HTML of the body
	HTMLNodes     int // 30,000
	HTMLDepth     int // 256
	Links         int // 200
	CalendarBytes int // 256 KiB
}

// withDefaults fills the zero fields.
func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		field *int
		value int
	}{
		{&l.MessageBytes, 25 << 20},
		{&l.Depth, 12},
		{&l.Parts, 2000},
		{&l.HeaderBytes, 256 << 10},
		{&l.Fields, 1000},
		{&l.FieldBytes, 64 << 10},
		{&l.Addresses, 1000},
		{&l.BoundaryBytes, 200},
		{&l.LineBytes, 1 << 20},
		{&l.TextBytes, 1 << 20},
		{&l.HTMLBytes, 1 << 20},
		{&l.HTMLNodes, 30000},
		{&l.HTMLDepth, 256},
		{&l.Links, 200},
		{&l.CalendarBytes, 256 << 10},
	} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	return l
}

func (l Limits) scan(parts int) scan.Limits {
	return scan.Limits{
		Depth: l.Depth, Parts: parts, BoundaryBytes: l.BoundaryBytes, LineBytes: l.LineBytes, TotalFields: 10 * l.Fields,
		Header: header.Limits{Bytes: l.HeaderBytes, Fields: l.Fields, FieldBytes: l.FieldBytes},
	}
}

// Warning is one kind of defect of the mail; the codes are warning.Codes.
type Warning = warning.Warning

// Address is a mailbox; Email is "" unless the mailbox was wholly well-formed.
type Address = header.Address

// Header is one field of the mail's header, decoded.
type Header struct {
	Name  string
	Value string
}

// Message is a mail that was read.
type Message struct {
	ParserVersion int
	Headers       []Header // raw order, doubles kept
	From          []Address
	MultipleFrom  bool // no single author: trust nothing that depends on From
	Sender        *Address
	ReplyTo       []Address
	To            []Address
	Cc            []Address
	Subject       string
	MessageID     string
	InReplyTo     []string
	References    []string
	Date          time.Time // UTC
	DateOK        bool
	Text          string // the plain body, or the text of the HTML body
	Markdown      string
	HTMLSanitized string // "" when there is no HTML body
	ReplyText     string // Text without quoted mail and signature
	QuotedText    string // what was cut as quoted
	Signature     string // what was cut as signature
	Snippet       string // the first 200 characters of the new text, one line
	Attachments   []Attachment
	Codes         []cue.Code
	OtherCodes    []string // not listed as the mail's own, but secret as well: in quoted text, in another form, beyond the list
	Links         []Link
	Flags         Flags
	Warnings      []Warning
	Content       Content
	Unreadable    bool // nothing of the mail could be read as a mail
}

// Link is a link of the body with what it seems to be for.
type Link struct {
	markup.Link
	Kind cue.LinkKind
}

// Flags are facts about the mail as a whole. A null return path is the envelope's and thus the caller's to know.
type Flags struct {
	AutoReply bool // written by a program, or asking programs not to answer
	Bounce    bool // a delivery report
	List      bool
	Loop      bool // X-Loop, or more than 50 Received fields
	Encrypted bool
	Signed    bool // a signature is present; it was not verified
	Calendar  bool
	Truncated bool // a limit cut something
}

// Content counts what was taken out of the texts, as a signal for judging the mail.
type Content struct {
	Removed      clean.Counts
	Hidden       map[markup.Hiding]int // hidden elements and texts; nil when there were none
	HiddenChars  int
	RemoteImages int
	Active       int // scripts, frames, forms, javascript: links
	Replaced     int // U+FFFD in place of broken bytes
}

// Parse reads a mail. The error is the context's; anything else is kept and marked. The attachments' Data may share memory with
// raw, which must not be changed afterwards.
func Parse(ctx context.Context, raw []byte, limits Limits) (*Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &parser{lim: limits.withDefaults(), msg: &Message{ParserVersion: ParserVersion}}
	p.dec = &header.Decoder{Warn: &p.warn}
	if len(raw) > p.lim.MessageBytes {
		p.warn.Add(warning.MessageTooLarge, "")
		raw = raw[:p.lim.MessageBytes]
	}
	// Each byte of a mail is decoded once per encoding around it. Messages in encoded messages would multiply that.
	p.budget = 2*len(raw) + 1<<20
	tree, err := scan.Scan(ctx, unixLines(raw), p.lim.scan(p.lim.Parts), scan.At{}, &p.warn)
	if err != nil {
		return nil, err
	}
	p.parts = tree.Parts
	p.dec.Charset = bodyCharset(tree.Root)
	p.headers(tree.Root)
	if err := p.read(ctx, tree.Root); err != nil {
		return nil, err
	}
	p.finish(raw, tree.Root)
	return p.msg, nil
}

// unixLines turns a mail whose lines end with CR alone into one that can be read; no other mail is touched, because a stray CR
// must not become a line end.
func unixLines(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') >= 0 || bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	return bytes.ReplaceAll(raw, []byte{'\r'}, []byte{'\n'})
}

// bodyCharset is the charset that the mail declares for its first text, the best guess for 8-bit header fields.
func bodyCharset(root *scan.Part) string {
	found := ""
	root.Walk(func(p *scan.Part) {
		if found == "" && len(p.Children) == 0 {
			found = p.Charset()
		}
	})
	return found
}

type parser struct {
	lim    Limits
	msg    *Message
	warn   warning.List
	dec    *header.Decoder
	budget int // bytes that may still be decoded
	parts  int
	links  []markup.Link
	cut    int      // links that were not listed
	shown  []string // what the HTML form says where Text is the plain form
}

// finish derives what depends on everything else.
func (p *parser) finish(raw []byte, root *scan.Part) {
	m := p.msg
	r := cutReply(m.Text)
	m.ReplyText, m.QuotedText, m.Signature = r.fresh, r.quoted, r.signature
	fresh := m.ReplyText
	if fresh == "" {
		fresh = m.Text
	}
	m.Snippet = snippet(fresh)
	p.codes(fresh)
	p.listLinks()
	p.flags(root)
	m.Content.Removed.Add(p.dec.Counts)
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		p.warn.Add(warning.Empty, "")
		m.Unreadable = true
	case len(root.Fields) == 0:
		p.warn.Add(warning.NoHeader, "")
		m.Unreadable = m.Text == "" && len(m.Attachments) == 0 || bytes.IndexByte(raw, 0) >= 0
	}
	for _, n := range m.Content.Hidden {
		p.warn.AddN(warning.HiddenText, "", n)
	}
	p.warn.AddN(warning.ReplacedCharacters, "body", m.Content.Replaced)
	p.warn.AddN(warning.ActiveContent, "", m.Content.Active)
	p.warn.AddN(warning.LinkLimit, "", p.cut)
	m.Warnings = p.warn.All()
	m.Flags.Truncated = p.warn.Truncated()
}

// codes lists the codes of the new text. Those of the rest go into OtherCodes: the code of a quoted mail is not this mail's,
// and the HTML form may hold one that the plain form left out, but whoever may not see codes may not see these either.
func (p *parser) codes(fresh string) {
	m := p.msg
	found := cue.All(m.Subject, fresh)
	listed := min(len(found), cue.Listed)
	m.Codes, found = found[:listed:listed], found[listed:]
	for _, text := range []string{m.Text, strings.Join(p.shown, "\n")} {
		if text != "" && text != fresh {
			found = append(found, cue.All(m.Subject, text)...)
		}
	}
	for _, c := range found {
		known := slices.ContainsFunc(m.Codes, func(have cue.Code) bool { return have.Value == c.Value })
		if !known && len(m.OtherCodes) < maxOtherCodes && !slices.Contains(m.OtherCodes, c.Value) {
			m.OtherCodes = append(m.OtherCodes, c.Value)
		}
	}
}

const maxOtherCodes = 100

const snippetRunes = 200

func snippet(s string) string {
	var none clean.Counts
	return clean.CutRunes(clean.Line(clean.Cut(s, 8*snippetRunes), &none), snippetRunes)
}
