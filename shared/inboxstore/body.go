package inboxstore

import (
	"fmt"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// bodyFormat is the newest format of a mail's body row. 1 is JSON, which is still read; 2 is texts with their lengths, for a
// body is read whole however little of it was asked for, and unescaping it was half of what reading a mail cost.
const bodyFormat = 2

func encodeBody(key store.Key, body *inbox.Body) store.Item {
	e := encoder{make([]byte, 0, len(body.Text)+len(body.ReplyText)+len(body.Markdown)+len(body.HTML)+1024)}
	for _, text := range []string{body.Text, body.ReplyText, body.Markdown, body.HTML} {
		e.text(text)
	}
	e.number(uint64(len(body.Headers)))
	for _, h := range body.Headers {
		e.text(h.Name)
		e.text(h.Value)
	}
	return store.Item{Key: key, Format: bodyFormat, Revision: 1, Data: e.b}
}

func decodeBody(item store.Item) (*inbox.Body, error) {
	if item.Format < bodyFormat {
		body, err := store.Decode[inbox.Body](item, format)
		return &body, err //nolint:wrapcheck // the caller names the step
	}
	if item.Format > bodyFormat {
		return nil, fmt.Errorf("%w: body row has %d", store.ErrFormat, item.Format)
	}
	d := decoder{rest: string(item.Data)} // the texts are parts of this one copy
	body := &inbox.Body{Text: d.text(), ReplyText: d.text(), Markdown: d.text(), HTML: d.text()}
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
