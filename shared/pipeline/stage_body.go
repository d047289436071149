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
	text := escapedAtMost(b.Text)
	n += text
	for _, other := range []string{b.ReplyText, b.Markdown, b.HTML} {
		if other == b.Text {
			n += text
		} else {
			n += escapedAtMost(other)
		}
	}
	for _, h := range b.Headers {
		n += 32 + escapedAtMost(h.Name) + escapedAtMost(h.Value)
	}
	return n
}

// escapedAtMost is a bound of a text's length in JSON.
func escapedAtMost(s string) int {
	n := len(s)
	for i := range len(s) {
		n += int(escaped[s[i]])
	}
	return n
}

// escaped is how much longer than a byte encoding/json may write it: it makes two characters of quotes, backslashes and line breaks, at
// most six of other controls, of what HTML could take for a tag, and of a byte that is not UTF-8.
//
//nolint:gochecknoglobals // constant table
var escaped = func() (extra [256]uint8) {
	for c := range extra {
		if c < ' ' || c >= 0x80 {
			extra[c] = 5
		}
	}
	extra['"'], extra['\\'], extra['\n'] = 1, 1, 1
	extra['<'], extra['>'], extra['&'] = 5, 5, 5
	return extra
}()
