package lambdaedge

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// writer is the http.ResponseWriter of one request. The status line and the headers are rendered at the first WriteHeader,
// which wins as in net/http; the body is kept until the handler returns.
type writer struct {
	door     Door
	head     bool // the request was HEAD: the body is dropped
	limit    int
	header   http.Header
	status   int // 0 until WriteHeader
	top      []byte
	body     []byte
	sniff    bool // no Content-Type was set
	overflow bool
}

// pool keeps writers between requests; a zero pool is ready.
type pool struct{ p sync.Pool }

// keepBuffer bounds what the pool holds on to after a large reply.
const keepBuffer = 256 << 10

func (p *pool) get(d Door, limit int) *writer {
	w, _ := p.p.Get().(*writer)
	if w == nil {
		w = &writer{}
	}
	w.door, w.limit = d, limit
	w.header = make(http.Header, 8)
	return w
}

func (p *pool) put(w *writer) {
	if cap(w.body) > keepBuffer {
		return
	}
	*w = writer{top: w.top[:0], body: w.body[:0]}
	p.p.Put(w)
}

// Header returns the headers to be sent; changes after the first WriteHeader or Write have no effect.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader sends the status and the headers. A later one is ignored, so that nothing can turn a refusal into a success.
func (w *writer) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	if status < 100 || status > 999 {
		panic("lambdaedge: invalid status " + strconv.Itoa(status)) // as net/http does: a programmer's error
	}
	if status < 200 {
		return // informational: a buffered door has no place for it
	}
	w.status = status
	w.top = w.renderTop(w.top[:0])
}

// Write appends to the body. The first one sends 200 when no status was sent.
func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !bodyAllowed(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if w.head {
		return len(p), nil
	}
	// What can't be sent is not kept: the memory of one request stays bounded.
	if w.overflow || len(w.body)+len(p) > w.limit {
		w.overflow = true
		return 0, errReplyTooLarge
	}
	w.body = append(w.body, p...)
	return len(p), nil
}

// Flush is there for handlers that stream where they can; the doors served here take the reply whole.
func (w *writer) Flush() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
}

var _ http.Flusher = (*writer)(nil)

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// renderTop writes the reply from its start into the still open object of headers.
func (w *writer) renderTop(b []byte) []byte {
	b = append(b, `{"statusCode":`...)
	b = strconv.AppendInt(b, int64(w.status), 10)
	w.sniff = len(w.header["Content-Type"]) == 0 && len(w.header["Content-Encoding"]) == 0
	if w.door == RESTAPI {
		return w.renderMulti(b)
	}
	// Set-Cookie is the one header that can't be joined; payload format 2.0 has a place of its own for it.
	if cookies := w.header["Set-Cookie"]; len(cookies) > 0 {
		b = append(b, `,"cookies":[`...)
		for i, c := range cookies {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, oneLine(c))
		}
		b = append(b, ']')
	}
	b = append(b, `,"headers":{`...)
	first := true
	for name, values := range w.header {
		if name == "Set-Cookie" || len(values) == 0 || !sendable(name) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		value := values[0]
		if len(values) > 1 {
			value = strings.Join(values, ", ")
		}
		b = append(appendString(b, name), ':')
		b = appendString(b, oneLine(value))
	}
	return b
}

// renderMulti is the headers of a REST API, where every value keeps its own line.
func (w *writer) renderMulti(b []byte) []byte {
	b = append(b, `,"multiValueHeaders":{`...)
	first := true
	for name, values := range w.header {
		if len(values) == 0 || !sendable(name) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendString(b, name), `:[`...)
		for i, v := range values {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, oneLine(v))
		}
		b = append(b, ']')
	}
	return b
}

// sendable leaves out what the door sets itself or chokes on: lengths and hop-by-hop headers, names that are no token, and
// x-amzn-remapped-*, which a function URL turns into a 500.
func sendable(name string) bool {
	switch name {
	case "Content-Length", "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return false
	}
	const remapped = "X-Amzn-Remapped-"
	return validToken(name) && (len(name) < len(remapped) || !strings.EqualFold(name[:len(remapped)], remapped))
}

// oneLine keeps a value from starting another header, as net/http does.
func oneLine(s string) string {
	if strings.IndexByte(s, '\n') < 0 && strings.IndexByte(s, '\r') < 0 {
		return s
	}
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(s)
}

// reply finishes the rendering; fits is false when it would be over the limit. Text goes as it is, anything else as base64:
// JSON can carry nothing but text.
func (w *writer) reply() (reply []byte, fits bool) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.overflow {
		return nil, false
	}
	if w.sniff && len(w.body) > 0 {
		w.top = w.appendContentType(w.top)
	}
	text := utf8.Valid(w.body)
	const textTail, binaryTail = `","isBase64Encoded":false}`, `","isBase64Encoded":true}`
	size := len(w.top) + len(`},"body":"`) + len(textTail)
	if text {
		size += escapedLen(w.body)
	} else {
		size += base64.StdEncoding.EncodedLen(len(w.body))
	}
	if size > w.limit {
		return nil, false
	}
	reply = make([]byte, 0, size)
	reply = append(append(reply, w.top...), `},"body":"`...)
	if text {
		return append(appendEscaped(reply, w.body), textTail...), true
	}
	return append(base64.StdEncoding.AppendEncode(reply, w.body), binaryTail...), true
}

// appendContentType adds the type that net/http would have found.
func (w *writer) appendContentType(b []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, `"Content-Type":`...)
	found := http.DetectContentType(w.body)
	if w.door != RESTAPI {
		return appendString(b, found)
	}
	return append(appendString(append(b, '['), found), ']')
}
