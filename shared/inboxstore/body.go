package inboxstore

import (
	"fmt"
	"strings"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// bodyFormat is the newest format of a mail's body row. 1 is JSON, which is still read; 2 is texts with their lengths, for a
// body is read whole however little of it was asked for, and unescaping it was half of what reading a mail cost. 3 says of a
// text that begins the mail's how much of it: what a person wrote anew is all of most mails, and what a plain text says in
// Markdown too.
const bodyFormat = 3

// The formats from which on a body is texts, and a text that begins the mail's is not written again.
const (
	textsApart = 2
	textsOnce  = 3
)

func encodeBody(key store.Key, body *inbox.Body) store.Item {
	size := len(body.Text) + 1024
	others := [...]string{body.ReplyText, body.Markdown, body.HTML}
	for _, text := range others {
		if !strings.HasPrefix(body.Text, text) {
			size += len(text)
		}
	}
	e := encoder{make([]byte, 0, size)}
	e.text(body.Text)
	for _, text := range others {
		e.textAfter(body.Text, text)
	}
	e.number(uint64(len(body.Headers)))
	for _, h := range body.Headers {
		e.text(h.Name)
		e.text(h.Value)
	}
	return store.Item{Key: key, Format: bodyFormat, Revision: 1, Data: e.b}
}

func decodeBody(item store.Item) (*inbox.Body, error) {
	if item.Format < textsApart {
		body, err := store.Decode[inbox.Body](item, format)
		return &body, err //nolint:wrapcheck // the caller names the step
	}
	if item.Format > bodyFormat {
		return nil, fmt.Errorf("%w: body row has %d", store.ErrFormat, item.Format)
	}
	d := decoder{rest: string(item.Data)} // the texts are parts of this one copy
	body := &inbox.Body{Text: d.text()}
	for _, text := range []*string{&body.ReplyText, &body.Markdown, &body.HTML} {
		if item.Format < textsOnce {
			*text = d.text()
		} else {
			*text = d.textAfter(body.Text)
		}
	}
	if n := d.count(); n > 0 {
		body.Headers = make([]inbox.Header, n)
		for i := range body.Headers {
			body.Headers[i] = inbox.Header{Name: d.text(), Value: d.text()}
		}
	}
	if d.bad {
		return nil, errBody
	}
	return body, nil
}

// textAfter writes a text that may begin another one, which was written before: how much of that it is, and one more, or 0
// and the text.
func (e *encoder) textAfter(before, s string) {
	if strings.HasPrefix(before, s) {
		e.number(uint64(len(s)) + 1)
		return
	}
	e.number(0)
	e.text(s)
}

func (d *decoder) textAfter(before string) string {
	n := d.number()
	switch {
	case n == 0:
		return d.text()
	case n-1 > uint64(len(before)):
		d.bad, d.rest = true, ""
		return ""
	}
	return before[:n-1]
}
