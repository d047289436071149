package web

import (
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/tracecontext"
)

// requestID is what is known of one request beside itself. It is a context of its own, because every request pays for it.
type requestID struct {
	context.Context
	id     string
	remote string // address and port of the peer, as the edge knows it
}

const (
	idBytes  = 12
	idsDrawn = 32 // at once: asking the system for randomness costs more than all else of an id
)

type requestIDKey struct{}

// Value answers the one key of this type and leaves every other to the parent.
func (r *requestID) Value(key any) any {
	if key == (requestIDKey{}) {
		return r
	}
	return r.Context.Value(key)
}

// identified lets every request have an id. platform names it where the platform did (Lambda); random makes the others.
type identified struct {
	next     http.Handler
	platform func(context.Context) string
	random   io.Reader

	mu    sync.Mutex
	drawn [idsDrawn * idBytes]byte // guarded by mu; no secret: an id is shown to whoever sent the request
	texts string                   // drawn in hexadecimal, of which ids are parts; guarded by mu
	left  int                      // bytes of texts not yet used; guarded by mu
}

// ServeHTTP hands the request on with an id in its context.
func (i *identified) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.next.ServeHTTP(w, r.WithContext(i.Context(r)))
}

// Context is that of a request with its id, and where it stands in its caller's trace.
func (i *identified) Context(r *http.Request) context.Context {
	ctx := r.Context()
	if parent := r.Header["Traceparent"]; len(parent) == 1 { // two are as good as none: W3C Trace Context section 3.2
		if c, ok := tracecontext.Parse(parent[0], strings.Join(r.Header["Tracestate"], ",")); ok {
			ctx = tracecontext.With(ctx, c)
		}
	}
	id := i.named(ctx)
	if id == "" {
		id = i.draw()
	}
	return &requestID{ctx, id, r.RemoteAddr}
}

// RequestID is the id of the request that ctx belongs to; empty outside of one.
func (i *identified) RequestID(ctx context.Context) string {
	if r, _ := ctx.Value(requestIDKey{}).(*requestID); r != nil && r.id != "" {
		return r.id
	}
	return i.named(ctx)
}

// named is the platform's own id; empty where it gave none.
func (i *identified) named(ctx context.Context) string {
	if i.platform == nil {
		return ""
	}
	return i.platform(ctx)
}

// Source is the IP address of whoever sent the request that ctx belongs to: the connection's, or the one that the platform names
// (lambdaedge). Headers have no part in it. Empty when it is unknown.
func (*identified) Source(ctx context.Context) string {
	r, _ := ctx.Value(requestIDKey{}).(*requestID)
	if r == nil {
		return ""
	}
	peer, err := netip.ParseAddrPort(r.remote)
	if err != nil {
		return ""
	}
	return peer.Addr().Unmap().WithZone("").String()
}

// draw makes an id; empty when there is no randomness.
func (i *identified) draw() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.left == 0 {
		if _, err := io.ReadFull(i.random, i.drawn[:]); err != nil {
			return ""
		}
		i.texts = hex.EncodeToString(i.drawn[:])
		i.left = len(i.texts)
	}
	end := i.left
	i.left -= 2 * idBytes
	return i.texts[i.left:end]
}

// logged writes one line for each request: what an operator needs, from a fixed list of fields. Paths are left out but for
// their first segment, for a path carries ids of tenants and sealed downloads.
type logged struct {
	next  http.Handler
	log   *slog.Logger
	clock func() time.Time
	id    func(context.Context) string
	door  string
}

// ServeHTTP serves and logs.
func (l *logged) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := l.clock()
	watched := &watchedWriter{ResponseWriter: w, status: http.StatusOK}
	defer func() {
		ctx := r.Context()
		attrs := []slog.Attr{
			slog.String("door", l.door), slog.String("http.request.method", verb(r.Method)),
			slog.Int("http.response.status_code", watched.status), slog.Int64("http.response.body.size", watched.bytes),
			slog.String("request_id", l.id(ctx)), slog.Int64("us", l.clock().Sub(start).Microseconds()),
		}
		if id := tracecontext.From(ctx).TraceID; id != "" {
			attrs = append(attrs, slog.String("trace_id", id))
		}
		l.log.LogAttrs(ctx, slog.LevelInfo, "request", attrs...)
	}()
	l.next.ServeHTTP(watched, r)
}

// verb is a method for the log: whoever sends another made it up.
func verb(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

type watchedWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
	wrote  bool
}

// WriteHeader remembers the first status, as net/http does.
func (w *watchedWriter) WriteHeader(status int) {
	if !w.wrote {
		w.status, w.wrote = status, true
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write counts.
func (w *watchedWriter) Write(p []byte) (int, error) {
	w.wrote = true
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
