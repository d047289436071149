package mcp

import (
	"net/http"
	"strconv"
)

// Values of response headers, shared by all replies; each is full, so that an append elsewhere copies it.
//
//nolint:gochecknoglobals // constant table
var (
	jsonType      = []string{"application/json"}
	streamType    = []string{"text/event-stream"}
	unbuffered    = []string{"no"}
	noStore       = []string{"no-store"}
	noSniff       = []string{"nosniff"}
	allowPost     = []string{"POST"}
	varyOrigin    = []string{"Origin"}
	varyPreflight = []string{"Origin, Access-Control-Request-Method, Access-Control-Request-Headers"}
	corsMethods   = []string{"POST"}
	corsMaxAge    = []string{"7200"}
	corsExposed   = []string{corsExpose}

	versionValues = map[Version][]string{
		V20260728: {string(V20260728)}, V20251125: {string(V20251125)}, V20250618: {string(V20250618)},
		V20250326: {string(V20250326)}, V20241105: {string(V20241105)},
	}
)

// respond writes what the exchange came to: headers, status and body, once, with its length.
func (s *Server) respond(x *exchange) {
	x.notify.close()
	x.status = http.StatusOK
	if x.reply != nil {
		x.status = x.reply.status
		x.out, x.items, x.tail = x.out[:0], nil, x.tail[:0]
		if x.reply.code != 0 {
			x.out = x.reply.appendError(x.out, x.frame.echo())
		}
	}
	if x.streaming {
		x.replied, x.status = true, http.StatusOK // the head is gone: an error travels as the last event
		_ = x.event(x.out, x.items, x.tail)       //nolint:errcheck // the client is gone, and there is nobody to tell
		return
	}
	length := len(x.out) + len(x.tail)
	for _, item := range x.items {
		length += len(item)
	}
	if x.caller != nil && !x.counted {
		x.limit = s.limiter.Peek(x.ctx, x.caller.GrantID())
	}
	h := s.head(x, length)
	if length > 0 {
		h["Content-Type"] = jsonType
	}
	if x.reply != nil {
		s.refuse(x, h)
	}
	x.replied = true
	x.w.WriteHeader(x.status)
	if length == 0 {
		return
	}
	x.write(x.out)
	for _, item := range x.items {
		x.write(item)
	}
	if len(x.tail) > 0 {
		x.write(x.tail)
	}
}

// head sets the headers that every reply has. length is that of the body, 0 when there is none or it is not known.
func (s *Server) head(x *exchange, length int) http.Header {
	h := x.w.Header()
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	h["Mcp-Protocol-Version"] = versionValues[x.version]
	s.numbers(h, length, &x.limit)
	return h
}

// write ignores the error: it means that the client is gone, and there is nobody to tell.
func (x *exchange) write(b []byte) {
	n, _ := x.w.Write(b) //nolint:errcheck // see above
	x.written += n
}

// numbers sets the headers that hold numbers.
func (s *Server) numbers(h http.Header, length int, l *Limit) {
	if length > 0 {
		h["Content-Length"] = s.numerals.of(int64(length))
	}
	if l.Limit > 0 {
		h["X-Ratelimit-Limit"] = s.numerals.of(int64(l.Limit))
		h["X-Ratelimit-Remaining"] = s.numerals.of(int64(max(l.Remaining, 0)))
		h["X-Ratelimit-Reset"] = s.numerals.of(seconds(l.Reset))
	}
}

func (s *Server) refuse(x *exchange, h http.Header) {
	r := x.reply
	if r.retry > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(max(seconds(r.retry), 1), 10)}
	}
	if r.challenge != "" {
		h["Www-Authenticate"] = []string{r.challenge}
		h["X-Mcp-Challenge"] = []string{r.challenge}
	}
}
