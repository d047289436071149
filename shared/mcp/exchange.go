package mcp

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"time"
)

// exchange is one request on its way through the checks. It is pooled; nothing of it outlives ServeHTTP.
type exchange struct {
	passing
	body  []byte
	out   []byte      // head of the result, or the whole of it
	tail  []byte      // what is written behind items
	keys  [][]byte    // scratch of the scan
	attrs []slog.Attr // scratch of the log line
}

// passing is all of an exchange that must not be there for the next: it is emptied in place and as a whole, so that no field that is added
// can be forgotten.
type passing struct {
	w       http.ResponseWriter
	r       *http.Request
	ctx     context.Context //nolint:containedctx // the request's, and what was learned of it: it ends with ServeHTTP, and a copy of the request for it costs more than most checks
	started time.Time       // zero when nothing is logged

	frame    frame
	method   *method // nil: a method that nobody serves, or no request at all
	ruling   ruling
	version  Version // what the reply is shaped for
	caller   Caller
	limit    Limit
	counted  bool   // limit is set
	id       string // request id, made when it is first needed
	tool     string // for the log: only a name that exists
	released func()

	reply   *reply    // nil: the result below
	items   [][]byte  // written between out and tail
	parts   [1][]byte // room for items
	isError bool
	asked   bool // the result is input_required
	status  int
	written int
	replied bool

	notify    *Notifier // nil: the request asked for no notifications
	streaming bool      // the body is an event stream and has begun; guarded by notify

	list ListRequest // lent to a list's method
}

// Buffers beyond this are left to the collector: one large request must not stay in memory for ever.
const keepBuffer = 128 << 10

func (s *Server) begin(w http.ResponseWriter, r *http.Request) *exchange {
	x := s.pool.Get().(*exchange) //nolint:errcheck,forcetypeassert // the pool holds nothing else
	x.w, x.r, x.version = w, r, V20260728
	if x.ctx = r.Context(); s.context != nil {
		x.ctx = s.context(r)
	}
	if s.log.Enabled(x.ctx, slog.LevelInfo) {
		x.started = s.now()
	}
	return x
}

// end logs the request and gives the exchange back. A panic, of a tool or of ours, costs its own request only.
func (s *Server) end(x *exchange) {
	if p := recover(); p != nil {
		x.reply = s.internal(x, fmt.Errorf("panic: %v", p))
		x.reply.stack = debug.Stack()
		x.counted = true // the limiter may be what panicked: it is not asked again
		if !x.replied {
			s.respond(x)
		}
		s.logRequest(x)
		return // what panicked may still hold parts of the buffers: they are not pooled again
	}
	s.logRequest(x)
	if cap(x.body) > keepBuffer || cap(x.out) > keepBuffer {
		return
	}
	x.passing = passing{}
	x.body, x.out, x.tail, x.keys, x.attrs = x.body[:0], x.out[:0], x.tail[:0], x.keys[:0], x.attrs[:0]
	s.pool.Put(x)
}

var errTooLarge = errors.New("mcp: body over the limit")

// read fills the body. It grows with what arrives and never by what Content-Length claims: a claim costs a caller nothing.
func (x *exchange) read(limit int) error {
	if x.r.ContentLength > int64(limit) {
		return errTooLarge
	}
	if x.r.Body == nil {
		return nil
	}
	for {
		if len(x.body) == cap(x.body) {
			x.body = slices.Grow(x.body, max(cap(x.body), 2048))
		}
		n, err := x.r.Body.Read(x.body[len(x.body):cap(x.body)])
		x.body = x.body[:len(x.body)+n]
		switch {
		case len(x.body) > limit:
			return errTooLarge
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// requestID names the request in the log and in an internal error.
func (s *Server) requestID(x *exchange) string {
	if x.id == "" && s.platformID != nil {
		x.id = s.platformID(x.ctx)
	}
	if x.id == "" {
		var b [12]byte
		if _, err := io.ReadFull(s.rand, b[:]); err != nil {
			return "unknown"
		}
		x.id = hex.EncodeToString(b[:])
	}
	return x.id
}
