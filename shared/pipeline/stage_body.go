package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/buzon-mail/buzon/shared/inbox"
)

// bodies keeps a small body in the row and a large one in a blob under a key of this pipeline version.
func (r *run) bodies(ctx context.Context) error {
	if r.reading == nil {
		return nil
	}
	if jsonAtMost(&r.reading.Body) <= r.w.opts.MaxBody {
		r.body = &r.reading.Body
		return nil
	}
	encoded, err := json.Marshal(r.reading.Body)
	if err != nil {
		return err
	}
	if len(encoded) <= r.w.opts.MaxBody {
		r.body = &r.reading.Body
		return nil
	}
	key := fmt.Sprintf("body/%s/%d", strings.ToLower(r.email.ID), Version)
	if err := r.w.deps.Blobs.Put(ctx, key, bytes.NewReader(encoded), int64(len(encoded))); err != nil {
		return blobFailure(err)
	}
	r.email.BodyKey = key
	return nil
}

// jsonAtMost is a bound of a body's length as JSON, at a fraction of the cost: most bodies are far from the limit.
func jsonAtMost(b *inbox.Body) int {
	n := 128 // names and punctuation of the body
	for _, text := range []string{b.Text, b.ReplyText, b.Markdown, b.HTML} {
		n += escapedAtMost(text)
	}
	for _, h := range b.Headers {
		n += 32 + escapedAtMost(h.Name) + escapedAtMost(h.Value)
	}
	return n
}

// escapedAtMost is a bound of a text's length in JSON: encoding/json makes two characters of quotes, backslashes and line breaks, at
// most six of other controls, of what HTML could take for a tag, and of a byte that is not UTF-8.
func escapedAtMost(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\n':
			n++
		case c < ' ' || c >= 0x80 || c == '<' || c == '>' || c == '&':
			n += 5
		}
	}
	return n
}
