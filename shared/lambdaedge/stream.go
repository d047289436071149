package lambdaedge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

const (
	// maxStream is what a function URL with InvokeMode RESPONSE_STREAM carries at most.
	maxStream = 200 << 20
	// streamBuffer is how much of a body is kept before it is sent without a flush: small replies go in one piece, and a handler
	// that panics before it has written that much is still answered with a 500.
	streamBuffer = 32 << 10
	// StreamType is the media type of a reply with a prelude: the JSON of status and headers, eight zero bytes, the body.
	StreamType = "application/vnd.awslambda.http-integration-response"
	// preludeEnd stands between the prelude and the body.
	preludeEnd = "\x00\x00\x00\x00\x00\x00\x00\x00"
)

var (
	errCut     = errors.New("lambdaedge: the reply broke off")
	errGone    = errors.New("lambdaedge: nobody reads the reply any more")
	errNotJSON = errors.New("lambdaedge: a reply is read, not encoded")
)

// Reply is the reply to one event as Lambda's runtime takes it: streamed, when it comes to a function URL of a handler with
// Options.Stream, else whole, for the other doors invoke the same function and wait for its JSON.
type Reply struct {
	body        io.Reader
	contentType string
	end         func()
}

// Read reads what was written. Its error says that the reply broke off; the runtime passes it on, so that no client takes a part for
// the whole.
func (r *Reply) Read(p []byte) (int, error) { return r.body.Read(p) } //nolint:wrapcheck // io.EOF must stay what it is

// ContentType is what the runtime says of the reply.
func (r *Reply) ContentType() string { return r.contentType }

// MarshalJSON fails, which makes the runtime read the reply instead.
func (r *Reply) MarshalJSON() ([]byte, error) { return nil, errNotJSON }

// Close ends a reply that is not read to its end: the handler's context ends, its writes fail, and Close returns when it has returned. No
// work outlives its invocation.
func (r *Reply) Close() error {
	if r.end != nil {
		r.end()
	}
	return nil
}

// Stream serves one event, as JSON, and returns its reply while the handler still writes it. The reply must be closed. An error, always
// ErrNotHTTP, fails the invocation. The payload is not kept.
func (h *Handler) Stream(ctx context.Context, payload json.RawMessage) (*Reply, error) {
	e, err := decode(payload)
	if err != nil {
		return nil, err
	}
	if !h.stream || e.door != FunctionURL {
		whole, err := h.Invoke(ctx, payload)
		return &Reply{body: bytes.NewReader(whole), contentType: "application/json"}, err
	}
	info := e.info(ctx)
	ctx, cancel := early(context.WithValue(ctx, infoKey{}, info), h.margin)
	r, err := e.request(ctx)
	reader, out := io.Pipe()
	w := &streamed{writer: writer{door: e.door, limit: h.maxStream, header: make(http.Header, 8)}, out: out}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		if err != nil {
			w.refuse(badRequest, info.RequestID)
			return
		}
		w.head = r.Method == http.MethodHead
		w.finish(h.serve(w, r, info.RequestID), info.RequestID)
	}()
	return &Reply{body: reader, contentType: StreamType, end: func() {
		cancel()
		_ = reader.CloseWithError(errGone) //nolint:errcheck // it never fails
		<-done
	}}, nil
}

// info is what the door says of the request.
func (e *event) info(ctx context.Context) Info {
	info := Info{Door: e.door, RequestID: e.requestID(), Origin: e.origin()}
	if lc, ok := lambdacontext.FromContext(ctx); ok && info.RequestID == "" {
		info.RequestID = lc.AwsRequestID
	}
	return info
}

// streamed is the http.ResponseWriter of a request whose reply is sent while it is written. The status line and the headers are those of
// the first WriteHeader, as in writer; they leave with the first flush, with a full buffer or at the end.
type streamed struct {
	writer // body: what is written and not yet sent
	out    *io.PipeWriter
	sent   int   // bytes of the body
	begun  bool  // the prelude is out: nothing of it can change any more
	failed error // nothing can be sent any more
}

var _ http.Flusher = (*streamed)(nil)

// Write appends to the body. The first one sends 200 when no status was sent.
func (s *streamed) Write(p []byte) (int, error) {
	if s.status == 0 {
		s.WriteHeader(http.StatusOK)
	}
	switch {
	case !bodyAllowed(s.status):
		return 0, http.ErrBodyNotAllowed
	case s.head:
		return len(p), nil
	case s.failed != nil:
		return 0, s.failed
	case s.sent+len(s.body)+len(p) > s.limit:
		s.failed = errReplyTooLarge
		return 0, s.failed
	}
	s.body = append(s.body, p...)
	if len(s.body) < streamBuffer {
		return len(p), nil
	}
	if err := s.send(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush sends what was written so far.
func (s *streamed) Flush() { _ = s.FlushError() } //nolint:errcheck // http.Flusher has no place for it

// FlushError sends what was written so far; an error means that nobody reads it. http.ResponseController finds it.
func (s *streamed) FlushError() error {
	if s.status == 0 {
		s.WriteHeader(http.StatusOK)
	}
	return s.send()
}

// send hands what is buffered to Lambda and waits until it is taken: a slow client slows its own handler and fills no memory.
func (s *streamed) send() error {
	if s.failed != nil {
		return s.failed
	}
	piece := s.body
	if !s.begun {
		if s.sniff && len(s.body) > 0 {
			s.top = s.appendContentType(s.top)
		}
		s.begun = true
		s.top = append(append(s.top, "}}"...), preludeEnd...)
		piece = append(s.top, s.body...)
	}
	s.sent += len(s.body)
	s.body = s.body[:0]
	if len(piece) == 0 {
		return nil
	}
	_, s.failed = s.out.Write(piece)
	return s.failed
}

// finish ends the reply. What broke off after its first byte ends with an error and not like a whole one.
func (s *streamed) finish(returned bool, requestID string) {
	if !returned {
		s.refuse(crashed, requestID)
		return
	}
	if !s.begun && errors.Is(s.failed, errReplyTooLarge) {
		s.refuse(replyTooLarge, requestID)
		return
	}
	if s.status == 0 {
		s.WriteHeader(http.StatusOK)
	}
	_ = s.out.CloseWithError(s.send()) //nolint:errcheck // it never fails; nil is the end
}

// refuse answers with a problem document, where nothing was sent yet.
func (s *streamed) refuse(why refusal, requestID string) {
	if s.begun {
		_ = s.out.CloseWithError(errCut) //nolint:errcheck // it never fails
		return
	}
	body, header := why.render(requestID)
	p := &streamed{writer: writer{door: s.door, limit: s.limit, head: s.head, header: header}, out: s.out}
	p.WriteHeader(why.problem().Status)
	_, _ = p.Write(body) //nolint:errcheck // a reader that is gone
	p.finish(true, requestID)
}
