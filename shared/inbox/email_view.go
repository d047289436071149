package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The texts of a mail that can be asked for.
const (
	TextPlain    = "text"
	TextReply    = "reply_text"
	TextMarkdown = "markdown"
	TextHTML     = "html"
	TextHeaders  = "headers"
	// ViewExtractions is no text: what was extracted from the mail.
	ViewExtractions = "extractions"
	// ViewAddresses and ViewLinks are lists that every view has. They are named only where they are not whole.
	ViewAddresses = "addresses"
	ViewLinks     = "links"
)

// Bounds of what one call returns of each text, in characters.
const (
	DefaultChars = 20_000
	MaxChars     = 100_000

	maxBodyBlob = 64 << 20 // bytes; the pipeline keeps less
)

// EmailRead says what to return of a mail.
type EmailRead struct {
	Include        []string // Text* names
	MaxChars       int      // of each text, and of each list that others wrote; 0: DefaultChars
	FromChar       int      // where each text and the list of links starts
	IncludeDeleted bool     // admins only
}

// EmailView is a mail as this caller may see it: codes and links are masked unless it may read them.
type EmailView struct {
	Email   // Content, Envelope, Codes and Links are masked already
	Texts   []TextView
	Headers []Header
	Masked  bool
	// Withheld names the texts that were asked for and can't be masked safely.
	Withheld    []string
	Extractions []Extraction // nil unless asked for
}

// TextView is one text, or the part of it that was asked for.
type TextView struct {
	Name      string
	Text      string // empty for headers
	Total     int    // characters of the whole text
	From      int
	Returned  int
	Truncated bool // something follows
	Next      int  // FromChar to go on with; 0 when nothing follows, and where it is read elsewhere
}

// Get returns one mail.
func (s *Emails) Get(ctx context.Context, a Actor, id string, r EmailRead) (EmailView, error) {
	if err := r.check(a); err != nil {
		return EmailView{}, err
	}
	e, body, err := s.d.email(ctx, a, id, len(r.texts()) > 0)
	if err != nil {
		return EmailView{}, err
	}
	if !e.DeletedAt.IsZero() && !r.IncludeDeleted {
		return EmailView{}, NoEmail()
	}
	v, err := s.show(ctx, a, e, body, r)
	if err != nil {
		return EmailView{}, err
	}
	v.bound(r.FromChar, r.MaxChars)
	return v, nil
}

// show is a mail as the caller may see it, with the texts that it asked for.
func (s *Emails) show(ctx context.Context, a Actor, e Email, body *Body, r EmailRead) (EmailView, error) {
	v := view(a, e)
	texts := r.texts()
	var err error
	if len(texts) < len(r.Include) {
		if v.Extractions, err = s.d.extractionsOf(ctx, a, e); err != nil {
			return EmailView{}, err
		}
	}
	if len(texts) == 0 {
		return v, nil
	}
	if body, err = s.wholeBody(ctx, e, body); err != nil {
		return EmailView{}, err
	}
	v.read(a, SecretsOf(e).Masker(), *body, r)
	return v, nil
}

// texts are those of Include that are texts.
func (r EmailRead) texts() []string {
	return slices.DeleteFunc(slices.Clone(r.Include), func(name string) bool { return name == ViewExtractions })
}

func (r *EmailRead) check(a Actor) error {
	if r.IncludeDeleted && !a.Role.AtLeast(RoleAdmin) {
		return adminOnly()
	}
	if r.MaxChars == 0 {
		r.MaxChars = DefaultChars
	}
	if r.MaxChars < 1 || r.MaxChars > MaxChars {
		return invalid("query.max_chars", fmt.Sprintf("1 to %d", MaxChars))
	}
	if r.FromChar < 0 {
		return invalid("query.from_char", "0 or more")
	}
	known := []string{TextPlain, TextReply, TextMarkdown, TextHTML, TextHeaders, ViewExtractions}
	for _, name := range r.Include {
		if !slices.Contains(known, name) {
			return invalid("query.include", strings.Join(known, ", "))
		}
	}
	return nil
}

// wholeBody is the body of a mail wherever it lies; in is what its row has.
func (s *Emails) wholeBody(ctx context.Context, e Email, in *Body) (*Body, error) {
	switch {
	case in != nil:
		return in, nil
	case e.BodyKey != "":
		return s.blobBody(ctx, e)
	}
	return &Body{}, nil
}

func (s *Emails) blobBody(ctx context.Context, e Email) (*Body, error) {
	f, err := s.d.Blobs.Open(ctx, e.BodyKey)
	if err != nil {
		return nil, fmt.Errorf("body of %s: %w", e.ID, err)
	}
	defer f.Close() //nolint:errcheck // read only
	var b Body
	if err := json.NewDecoder(io.LimitReader(f, maxBodyBlob)).Decode(&b); err != nil {
		return nil, fmt.Errorf("decode the body of %s: %w", e.ID, err)
	}
	return &b, nil
}

// view is a mail without texts. Everything a sender wrote goes through the mask, addresses too: a reply address can carry
// a token.
func view(a Actor, e Email) EmailView {
	v := EmailView{Email: e, Masked: !a.ReadCodes}
	v.OtherCodes = nil
	if a.ReadCodes {
		return v
	}
	m := SecretsOf(e).Masker()
	c := &v.Content
	c.Subject, c.Snippet, c.MessageID = m.Mask(c.Subject), m.Mask(c.Snippet), m.Mask(c.MessageID)
	c.From, c.To, c.CC, c.ReplyTo = m.addresses(c.From), m.addresses(c.To), m.addresses(c.CC), m.addresses(c.ReplyTo)
	if c.Sender != nil {
		c.Sender = &m.addresses([]Address{*c.Sender})[0]
	}
	v.Envelope.From, v.Envelope.HELO = m.Mask(e.Envelope.From), m.Mask(e.Envelope.HELO)
	v.Auth = slices.Clone(e.Auth)
	for i := range v.Auth {
		v.Auth[i].Domain = m.Mask(v.Auth[i].Domain)
	}
	v.Codes, v.Links = slices.Clone(e.Codes), slices.Clone(e.Links)
	for i := range v.Codes {
		v.Codes[i].Value = Masked
	}
	for i := range v.Links {
		v.Links[i].URL, v.Links[i].Text = Masked, m.Mask(v.Links[i].Text)
	}
	return v
}

// read adds the texts that were asked for, once each, in a fixed order. Masking comes before cutting: a cut in the middle
// of a code would show half of it, and the other half to who asks for the rest.
func (v *EmailView) read(a Actor, m *Masker, b Body, r EmailRead) {
	for _, t := range []struct{ name, text string }{
		{TextPlain, b.Text}, {TextReply, b.ReplyText}, {TextMarkdown, b.Markdown}, {TextHTML, b.HTML},
	} {
		if !slices.Contains(r.Include, t.name) {
			continue
		}
		if !a.ReadCodes {
			// Tags and entities can stand between the digits of a code, and links hide in attributes: HTML can't be masked
			// without rendering it.
			if t.name == TextHTML {
				v.Withheld = append(v.Withheld, TextHTML)
				continue
			}
			t.text = m.Mask(t.text)
		}
		v.Texts = append(v.Texts, cutText(t.name, t.text, r.FromChar, r.MaxChars))
	}
	if slices.Contains(r.Include, TextHeaders) {
		headers := b.Headers
		if !a.ReadCodes {
			headers = m.headers(headers)
		}
		var t TextView
		v.Headers, t = cutHeaders(headers, r.FromChar, r.MaxChars)
		v.Texts = append(v.Texts, t)
	}
}

// headers masks names and values; a value with an encoded word (RFC 2047) goes whole, for its letters are not what it says.
func (m *Masker) headers(list []Header) []Header {
	out := make([]Header, len(list))
	for i, h := range list {
		out[i] = Header{m.Mask(h.Name), m.Mask(h.Value)}
		if strings.Contains(h.Value, "=?") {
			out[i].Value = Masked
		}
	}
	return out
}

func cutText(name, text string, from, most int) TextView {
	t := TextView{Name: name, Total: runes(text), From: from}
	rest := text[len(cutRunes(text, from)):]
	t.Text = cutRunes(rest, most)
	t.Returned = runes(t.Text)
	if len(t.Text) < len(rest) {
		t.Truncated, t.Next = true, from+t.Returned
	}
	return t
}

// cutHeaders counts a header as its name and value and returns whole ones only, but for a first one that alone is too long.
func cutHeaders(list []Header, from, most int) ([]Header, TextView) {
	t := TextView{Name: TextHeaders, From: from}
	var out []Header
	for _, h := range list {
		start, size := t.Total, runes(h.Name)+runes(h.Value)
		t.Total += size
		switch {
		case t.Total <= from && from > 0 || t.Truncated: // one that from lies in is shown again: skipped, half of it would be lost
			continue
		case t.Returned+size <= most:
			out, t.Returned = append(out, h), t.Returned+size
		case len(out) == 0:
			h.Value = cutRunes(h.Value, max(most-runes(h.Name), 0))
			out, t.Returned = append(out, h), size
		default:
			t.Truncated, t.Next = true, start
		}
	}
	return out, t
}
