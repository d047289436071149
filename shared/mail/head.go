package mail

import (
	"strings"

	"github.com/buzon-mail/buzon/shared/mail/clean"
	"github.com/buzon-mail/buzon/shared/mail/header"
	"github.com/buzon-mail/buzon/shared/mail/scan"
	"github.com/buzon-mail/buzon/shared/mail/warning"
)

const (
	maxSubject  = 2 << 10
	maxReceived = 50
)

// headers reads the mail's own header.
func (p *parser) headers(root *scan.Part) {
	m := p.msg
	seen := map[string]bool{}
	m.Headers = make([]Header, 0, len(root.Fields))
	for i := range root.Fields {
		f := &root.Fields[i]
		m.Headers = append(m.Headers, Header{Name: f.Name, Value: p.dec.Text(f.Value)})
		name := strings.ToLower(f.Name)
		if once(name) && seen[name] {
			p.warn.Add(warning.DuplicateField, "")
			m.MultipleFrom = m.MultipleFrom || name == "from"
		}
		p.field(name, f.Value, m.Headers[i].Value, !seen[name])
		seen[name] = true
	}
	if len(m.From) > 1 {
		m.MultipleFrom = true
	}
	if m.MultipleFrom {
		p.warn.Add(warning.MultipleFrom, "")
	}
}

// once reports whether RFC 5322 section 3.6 allows a field only once.
func once(name string) bool {
	switch name {
	case "from", "sender", "reply-to", "to", "cc", "subject", "message-id", "in-reply-to", "references", "date":
		return true
	default:
		return false
	}
}

// field takes one field over. Of a field that may stand once the first counts, except that the addresses of all are listed:
// hiding an author or a recipient behind a double must not work.
func (p *parser) field(name string, value []byte, text string, first bool) {
	m := p.msg
	switch name {
	case "from":
		m.From = p.addresses(m.From, value)
	case "reply-to":
		m.ReplyTo = p.addresses(m.ReplyTo, value)
	case "to":
		m.To = p.addresses(m.To, value)
	case "cc":
		m.Cc = p.addresses(m.Cc, value)
	}
	if !first {
		return
	}
	switch name {
	case "sender":
		if list := p.dec.Addresses(value, 1); len(list) > 0 {
			m.Sender = &list[0]
		}
	case "subject":
		m.Subject = clean.Cut(text, maxSubject)
	case "message-id":
		if ids := p.dec.MessageIDs(value); len(ids) > 0 {
			m.MessageID = ids[0]
		}
	case "in-reply-to":
		m.InReplyTo = p.dec.MessageIDs(value)
	case "references":
		m.References = p.dec.MessageIDs(value)
	case "date":
		if m.Date, m.DateOK = p.dec.Date(value); !m.DateOK {
			p.warn.Add(warning.BadDate, "")
		}
	}
}

func (p *parser) addresses(list []Address, value []byte) []Address {
	return append(list, p.dec.Addresses(value, p.lim.Addresses-len(list))...)
}

// flags reads what marks mail that programs write. None of it may be answered or forwarded by a program.
func (p *parser) flags(root *scan.Part) {
	f := &p.msg.Flags
	received := 0
	for i := range root.Fields {
		h := &root.Fields[i]
		value := strings.ToLower(p.msg.Headers[i].Value)
		switch strings.ToLower(h.Name) {
		case "auto-submitted":
			f.AutoReply = f.AutoReply || value != "" && firstWord(value) != "no"
		case "x-auto-response-suppress":
			f.AutoReply = f.AutoReply || value != "" && value != "none"
		case "x-autoreply", "x-autorespond", "x-autoresponder", "x-auto-reply":
			f.AutoReply = f.AutoReply || value != "no"
		case "precedence":
			switch firstWord(value) {
			case "bulk", "list":
				f.List = true
			case "auto_reply", "auto-reply":
				f.AutoReply = true
			}
		case "list-id", "list-post":
			f.List = true
		case "x-loop", "x-buzon-loop": // the second is what outmail writes
			f.Loop = true
		case "received":
			received++
		}
	}
	f.Loop = f.Loop || received > maxReceived
	if root.Type == "multipart/report" {
		f.AutoReply = true
		kind := strings.ToLower(root.Media.Param("report-type"))
		f.Bounce = kind == "" || kind == "delivery-status"
	}
	root.Walk(func(part *scan.Part) {
		if part.Type == "message/delivery-status" && part.Depth <= 2 {
			f.Bounce, f.AutoReply = true, true
		}
	})
}

func firstWord(s string) string {
	if i := strings.IndexAny(s, " ;,("); i >= 0 {
		return s[:i]
	}
	return s
}

// summary reads what a list shows about an attached message.
func (p *parser) summary(root *scan.Part) *Summary {
	dec := &header.Decoder{Warn: &warning.List{}, Charset: bodyCharset(root)}
	s := &Summary{}
	if v := root.Field("From"); v != nil {
		s.From = dec.Addresses(v, 10)
	}
	if v := root.Field("Subject"); v != nil {
		s.Subject = clean.Cut(dec.Text(v), maxSubject)
	}
	if v := root.Field("Message-ID"); v != nil {
		if ids := dec.MessageIDs(v); len(ids) > 0 {
			s.MessageID = ids[0]
		}
	}
	if v := root.Field("Date"); v != nil {
		s.Date, s.DateOK = dec.Date(v)
	}
	return s
}
