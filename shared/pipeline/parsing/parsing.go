// Package parsing is the parser of real mail behind the pipeline's interface. It is the one part of the pipeline that links the
// mail room, and only who processes mail imports it.
package parsing

import (
	"context"
	"fmt"
	"slices"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/mail"
	"github.com/buzon-mail/buzon/shared/mail/cue"
	"github.com/buzon-mail/buzon/shared/mail/markup"
	"github.com/buzon-mail/buzon/shared/pipeline/reading"
)

// Mail is the Parse of real mail.
func Mail(limits mail.Limits) reading.Parse {
	return func(ctx context.Context, raw []byte) (reading.Reading, error) {
		m, err := mail.Parse(ctx, raw, limits)
		if err != nil {
			return reading.Reading{}, fmt.Errorf("read the mail: %w", err)
		}
		return readingOf(m), nil
	}
}

func readingOf(m *mail.Message) reading.Reading {
	r := reading.Reading{
		Content: inbox.Content{
			Subject: m.Subject, MessageID: m.MessageID, Snippet: m.Snippet,
			From: addresses(m.From), ReplyTo: addresses(m.ReplyTo), To: addresses(m.To), CC: addresses(m.Cc),
		},
		Body:       inbox.Body{Text: m.Text, ReplyText: m.ReplyText, Markdown: m.Markdown, HTML: m.HTMLSanitized},
		References: references(m),
		Flags:      flagNames(m.Flags),
		Signals:    signals(m.Content),
		OtherCodes: m.OtherCodes,
		Unreadable: m.Unreadable,
	}
	if m.Sender != nil {
		s := address(*m.Sender)
		r.Content.Sender = &s
	}
	if m.DateOK {
		r.Content.Date = m.Date
	}
	for _, h := range m.Headers {
		r.Body.Headers = append(r.Body.Headers, inbox.Header{Name: h.Name, Value: h.Value})
	}
	for _, w := range m.Warnings {
		r.Warnings = append(r.Warnings, warning(w))
	}
	for _, c := range m.Codes {
		r.Codes = append(r.Codes, inbox.Code{Value: c.Value, Kind: string(c.Kind), Confidence: c.Confidence})
	}
	for _, l := range m.Links {
		r.Links = append(r.Links, inbox.Link{URL: l.URL, Text: l.Text, Kind: linkKind(l.Kind), Signals: names(l.Signals)})
	}
	for _, a := range m.Attachments {
		r.Files = append(r.Files, file(a))
	}
	return r
}

func addresses(list []mail.Address) []inbox.Address {
	var out []inbox.Address
	for _, a := range list {
		out = append(out, address(a))
	}
	return out
}

// address shows what can't be read as an address as a name: as text it is harmless, as an address it could pass a list.
func address(a mail.Address) inbox.Address {
	if !a.Valid && a.Name == "" {
		return inbox.Address{Name: a.Raw}
	}
	return inbox.Address{Name: a.Name, Address: a.Email}
}

// references are the ids that the mail answers, oldest first; In-Reply-To names the last.
func references(m *mail.Message) []string {
	refs := slices.Clone(m.References)
	for _, id := range m.InReplyTo {
		if !slices.Contains(refs, id) {
			refs = append(refs, id)
		}
	}
	return refs
}

func flagNames(f mail.Flags) []string {
	var out []string
	for _, flag := range []struct {
		on   bool
		name string
	}{
		{f.AutoReply, "auto_reply"}, {f.Bounce, "bounce"}, {f.List, "list"}, {f.Loop, "loop"},
		{f.Encrypted, "encrypted"}, {f.Signed, "signed"}, {f.Calendar, "calendar"}, {f.Truncated, "truncated"},
	} {
		if flag.on {
			out = append(out, flag.name)
		}
	}
	return out
}

// signals counts what was taken out of the text, in a fixed order.
func signals(c mail.Content) []inbox.Signal {
	var out []inbox.Signal
	add := func(code string, n int) {
		if n > 0 {
			out = append(out, inbox.Signal{Code: code, Count: n})
		}
	}
	add("control_characters", c.Removed.Control)
	add("bidi_characters", c.Removed.Bidi)
	add("tag_characters", c.Removed.Tag)
	add("zero_width_characters", c.Removed.ZeroWidth)
	add("variation_selectors", c.Removed.Variation)
	for _, h := range markup.Hidings() {
		add("hidden_"+string(h), c.Hidden[h])
	}
	add("remote_images", c.RemoteImages)
	add("active_content", c.Active)
	add("broken_characters", c.Replaced)
	return out
}

// warning keeps the count in our own words.
func warning(w mail.Warning) inbox.Warning {
	out := inbox.Warning{Code: string(w.Code), Detail: w.Detail}
	if w.Count > 1 {
		if out.Detail != "" {
			out.Detail += ", "
		}
		out.Detail += fmt.Sprintf("%d times", w.Count)
	}
	return out
}

func linkKind(k cue.LinkKind) string {
	switch k {
	case cue.LinkOther:
		return ""
	case cue.LinkMagic:
		return "sign_in"
	default:
		return string(k)
	}
}

func names[T ~string](list []T) []string {
	var out []string
	for _, s := range list {
		out = append(out, string(s))
	}
	return out
}

func file(a mail.Attachment) reading.File {
	return reading.File{Data: a.Data, Meta: inbox.Attachment{
		PartPath: a.PartPath, Kind: string(a.Kind), Filename: a.Filename, FilenameOriginal: a.FilenameOriginal,
		ContentType: a.ContentType, DetectedType: a.DetectedType, Disposition: a.Disposition, ContentID: a.ContentID,
		Flags: names(a.Flags),
	}}
}
