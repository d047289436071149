// Package lambdaedge serves a net/http handler behind the front doors of AWS Lambda: function URL, HTTP API (payload format
// 2.0) and REST API; and it serves what is no request: a queue's batches, message by message, the clock's events, and the
// notices of mail that SES stored. It is the only room that knows Lambda's event and reply shapes; none of their types leaves it. It knows
// nothing of what the handler does, and it never judges Host: behind a door that is AWS's name.
//
// Events become requests through aws-lambda-go-api-proxy/core, with its two known faults kept out: headers and cookies are
// taken from the event before it and set verbatim after (core splits values at commas), and replies are written here (core
// lets a later WriteHeader win).
package lambdaedge

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
)

const (
	// maxReply is what Lambda takes back from a buffered invocation, escapes and base64 included. One byte more and the caller
	// gets an error of AWS's that says nothing.
	maxReply = 6 << 20
	// margin is kept between the handler's deadline and the moment at which Lambda kills the process, for writing the reply.
	margin = 500 * time.Millisecond
)

// ErrNotHTTP is an event of something other than a front door. It fails the invocation instead of being answered: an answer
// would tell a queue that its message was done.
var ErrNotHTTP = errors.New("lambdaedge: not an HTTP event")

// Options of a handler. The zero value works.
type Options struct {
	Logger   *slog.Logger  // nil: slog.Default()
	Margin   time.Duration // before Lambda's deadline; 0: 500 ms
	MaxReply int           // bytes of the whole reply; 0: 6 MiB, Lambda's limit
	// Stream answers a function URL whose InvokeMode is RESPONSE_STREAM, which no event tells: the other doors of the same function
	// stay buffered. Set it only where the URL is so; a buffered URL would show the prelude to the client.
	Stream bool
}

// Handler serves events. It is safe for concurrent use.
type Handler struct {
	next     http.Handler
	log      *slog.Logger
	margin   time.Duration
	maxReply int
	stream   bool
	// maxStream is the constant but in tests.
	maxStream int
	writers   pool
}

// New wraps an http.Handler.
func New(next http.Handler, o Options) *Handler {
	h := &Handler{next: next, log: o.Logger, margin: o.Margin, maxReply: o.MaxReply, stream: o.Stream, maxStream: maxStream}
	if h.log == nil {
		h.log = slog.Default()
	}
	if h.margin == 0 {
		h.margin = margin
	}
	if h.maxReply == 0 {
		h.maxReply = maxReply
	}
	return h
}

var _ lambda.Handler = (*Handler)(nil)

// Start polls Lambda's runtime for events and never returns.
func Start(h *Handler) {
	if h.stream {
		lambda.Start(h.Stream)
		return
	}
	lambda.Start(h)
}

// Invoke serves one event, as JSON, and returns the reply in the shape of its door. An error, always ErrNotHTTP, fails the
// invocation. The payload is not kept.
func (h *Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	e, err := decode(payload)
	if err != nil {
		return nil, err
	}
	info := e.info(ctx)
	ctx, cancel := early(context.WithValue(ctx, infoKey{}, info), h.margin)
	defer cancel()

	w := h.writers.get(e.door, h.maxReply)
	defer h.writers.put(w)
	r, err := e.request(ctx)
	if err != nil {
		return w.refuse(badRequest, info.RequestID), nil
	}
	w.head = r.Method == http.MethodHead
	if !h.serve(w, r, info.RequestID) {
		return w.refuse(crashed, info.RequestID), nil
	}
	reply, fits := w.reply()
	if !fits {
		h.log.LogAttrs(ctx, slog.LevelWarn, "reply over the limit of the door", slog.String("request_id", info.RequestID))
		return w.refuse(replyTooLarge, info.RequestID), nil
	}
	return reply, nil
}

// early ends the handler's context before Lambda ends the process. With little time left half of it is kept.
func early(ctx context.Context, margin time.Duration) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	keep := min(margin, time.Until(end)/2)
	return context.WithDeadline(ctx, end.Add(-keep))
}

// serve runs the handler and reports whether it returned. A panic must not reach the runtime: it would end the process, and
// the next caller would pay a cold start for it.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, requestID string) (returned bool) {
	defer func() {
		if v := recover(); v != nil {
			logPanic(r.Context(), h.log, v, requestID)
		}
	}()
	h.next.ServeHTTP(w, r)
	return true
}

// logPanic writes one line. The text of a panic is the runtime's own or unknown: an unknown one may hold a caller's data, so
// only its type is logged.
func logPanic(ctx context.Context, log *slog.Logger, v any, requestID string) {
	what := "panic of another type than runtime.Error"
	if err, ok := v.(runtime.Error); ok {
		what = err.Error()
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so: the sentinel is panicked itself
		what = "handler aborted"
	}
	log.LogAttrs(ctx, slog.LevelError, "panic while serving", slog.String("request_id", requestID),
		slog.String("panic", what), slog.String("stack", string(debug.Stack())))
}

// Door is a kind of front door.
type Door string

// The doors.
const (
	FunctionURL Door = "function-url"
	HTTPAPI     Door = "http-api"
	RESTAPI     Door = "rest-api"
)

// Info is what the door says of a request in its own context, which no client can write.
type Info struct {
	Door      Door
	RequestID string // of the door, else of the invocation
	Origin    string // https:// and the domain name that the request came to; empty when the door names none
}

type infoKey struct{}

// From is the door's information; ok is false outside Lambda.
func From(ctx context.Context) (info Info, ok bool) {
	info, ok = ctx.Value(infoKey{}).(Info)
	return info, ok
}

// OriginFrom is the origin that the door itself names, for a process whose public URL is not configured yet; ok is false
// outside Lambda. Unlike the Host header it can't be forged.
func OriginFrom(ctx context.Context) (origin string, ok bool) {
	info, _ := From(ctx)
	return info.Origin, info.Origin != ""
}
