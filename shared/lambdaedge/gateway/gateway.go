// Package gateway is the front doors of AWS Lambda for tests: it turns an HTTP request into the exact event of a function
// URL, an HTTP API (payload format 2.0) or a REST API, invokes, and turns the reply back, with everything that the door adds,
// loses and renames on both ways. It is an http.Handler, to stand behind a listener, and an http.RoundTripper, to stand in a
// client. It knows nothing of what is behind the function, and nothing that is shipped imports it.
//
// What each door does:
//
//	quirk                                                          function URL   HTTP API    REST API
//	header names in lower case, repeated ones joined with ","      yes            yes         no
//	headers hold the last of several, multiValueHeaders all        no             no          yes
//	cookies                                                        both places    cookies[]   header
//	path                                                           encoded        decoded, cut at a decoded "?"  encoded
//	query                                                          encoded        encoded     decoded maps only
//	stage before the path, gone in the event                       no             no          on execute-api
//	body as base64                                                 by type        by type     by binaryMediaTypes
//	event over 6 MB (base64 counts) refused                        yes            yes         yes
//	body over 10 MB refused                                        no             yes         yes
//	request line and headers over 10,240 bytes refused             no             yes         no
//	reply over 6 MB is an error that says nothing                  yes            yes         yes
//	the door ends the wait                                         no             30 s        29 s
//	WWW-Authenticate renamed                                       yes            yes (unsettled: the worse is assumed)  yes
//	x-amzn-remapped-* of the function's own is a 500               yes            no          no
//	Set-Cookie only from cookies[], multiValueHeaders ignored      yes            yes         no
//	base64 reply decoded                                           yes            yes         if Accept is a binary type  API Gateway's guide
//
// A client that leaves does not end the invocation: Lambda does not cancel.
//
// A function URL whose InvokeMode is RESPONSE_STREAM is a door of its own here (NewStreamed): it takes a reply with a prelude, hands the
// body on as it comes, up to 200 MB, and breaks the connection where the reply breaks off. That it renames WWW-Authenticate too is assumed.
package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/lambdaedge"
)

const (
	maxPayload = 6 << 20  // of an event and of a reply, Lambda's limit
	maxBody    = 10 << 20 // API Gateway's limit
	maxHead    = 10_240   // HTTP API: request line and header values
)

// Invoke runs the function with one event. An error is a failed invocation.
type Invoke func(ctx context.Context, event []byte) ([]byte, error)

// Open runs the function with one event and returns its reply while it is written; Close comes when the door needs no more of it.
type Open func(ctx context.Context, event []byte) (Reply, error)

// Reply is what *lambdaedge.Reply is.
type Reply interface {
	io.ReadCloser
	ContentType() string
}

// Options of a door. The zero value works.
type Options struct {
	// Domain is the name that the event says the request came to; empty: one that AWS would give. A REST API on a domain of
	// one's own, anything without ".execute-api.", has no stage in its paths.
	Domain string
	// Stage of a REST API; empty: live.
	Stage string
	// BinaryTypes is a REST API's binaryMediaTypes; nil: none, so that a binary body is damaged as it is there.
	BinaryTypes []string
	// Timeout is how long the door waits; 0: the function's 29 s, the HTTP API's 30 s, the REST API's 29 s.
	Timeout time.Duration
	// Now is the clock of requestContext.time; nil: time.Now.
	Now func() time.Time
}

// Gateway is one front door. It is safe for concurrent use when its Invoke is.
type Gateway struct {
	door   lambdaedge.Door
	invoke Invoke
	open   Open // of a streamed function URL; nil: invoke
	o      Options
}

var (
	_ http.Handler      = (*Gateway)(nil)
	_ http.RoundTripper = (*Gateway)(nil)
)

// New makes a door before a function.
func New(door lambdaedge.Door, invoke Invoke, o Options) (*Gateway, error) {
	if invoke == nil {
		return nil, errors.New("gateway: Invoke is missing")
	}
	domain, timeout := "", 29*time.Second
	switch door {
	case lambdaedge.FunctionURL:
		domain = "k3v7q2exampleurlid0000000000000.lambda-url.eu-west-1.on.aws"
	case lambdaedge.HTTPAPI:
		domain, timeout = "a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com", 30*time.Second
	case lambdaedge.RESTAPI:
		domain = "f6e5d4c3b2.execute-api.eu-west-1.amazonaws.com"
	default:
		return nil, fmt.Errorf("gateway: no door %q", door)
	}
	if o.Domain == "" {
		o.Domain = domain
	}
	if o.Stage == "" {
		o.Stage = "live"
	}
	if o.Timeout == 0 {
		o.Timeout = timeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Gateway{door: door, invoke: invoke, o: o}, nil
}

// NewStreamed makes a function URL whose InvokeMode is RESPONSE_STREAM before a function.
func NewStreamed(open Open, o Options) (*Gateway, error) {
	if open == nil {
		return nil, errors.New("gateway: Open is missing")
	}
	g, err := New(lambdaedge.FunctionURL, func(context.Context, []byte) ([]byte, error) { return nil, errNoReply }, o)
	if err != nil {
		return nil, err
	}
	g.open = open
	return g, nil
}

// Prefix is what stands before every path: the stage of a REST API on AWS's own name, else nothing.
func (g *Gateway) Prefix() string {
	if g.door == lambdaedge.RESTAPI && strings.Contains(g.o.Domain, ".execute-api.") {
		return "/" + g.o.Stage
	}
	return ""
}

// ServeHTTP lets one request through the door.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := g.pass(r)
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	if a.stream == nil {
		_, _ = w.Write(a.body) // a client that left: nothing to tell it
		return
	}
	defer func() { _ = a.stream.Close() }()
	if err := forward(w, a.stream); err != nil {
		panic(http.ErrAbortHandler) // the connection breaks, so that nobody takes the part for the whole
	}
}

// RoundTrip lets one request through the door. It fails only when the request's body can't be read: whatever goes wrong
// behind is the door's answer, as over the network.
func (g *Gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }() // http.RoundTripper: always, also when the door refuses
	}
	asked := r
	if r.Method == "" { // http.Request: for a client it means GET
		r = r.Clone(r.Context())
		r.Method = http.MethodGet
	}
	a := g.pass(r)
	if a.err != nil {
		return nil, a.err
	}
	if r.Method == http.MethodHead {
		a.body = nil
	}
	response := &http.Response{
		StatusCode: a.status, Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)), Header: a.header, Request: asked,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(a.body)), Body: io.NopCloser(bytes.NewReader(a.body)),
	}
	if a.stream != nil {
		response.ContentLength, response.Body = -1, a.stream
	}
	return response, nil
}

// answer is what the caller of the door gets.
type answer struct {
	status int
	header http.Header
	body   []byte
	stream io.ReadCloser // in place of body, of a reply that is still written
	err    error         // the request could not be read
}

// refusal is an answer of the door itself. The two kinds of gateway spell the member differently.
func (g *Gateway) refusal(status int, text string) answer {
	member := "message"
	if g.door == lambdaedge.FunctionURL {
		member = "Message"
	}
	return answer{
		status: status, header: http.Header{"Content-Type": {"application/json"}},
		body: fmt.Appendf(nil, `{"%s":%q}`, member, text),
	}
}

// pass is the whole way: the door's own checks, the event, the function, the reply.
func (g *Gateway) pass(r *http.Request) answer {
	if !strings.HasPrefix(r.URL.EscapedPath(), g.Prefix()+"/") {
		return g.refusal(http.StatusForbidden, "Missing Authentication Token") // API Gateway's words for "no such route"
	}
	if g.door == lambdaedge.HTTPAPI && headSize(r) > maxHead {
		return g.refusal(http.StatusRequestHeaderFieldsTooLarge, "Request Header Fields Too Large")
	}
	body, err := readBody(r)
	switch {
	case errors.Is(err, errBodyTooLarge):
		return g.refusal(http.StatusRequestEntityTooLarge, "Request Too Long")
	case err != nil:
		a := g.refusal(http.StatusBadRequest, "Bad Request")
		a.err = fmt.Errorf("gateway: read body: %w", err)
		return a
	}
	event, err := g.event(r, body)
	if err != nil {
		return g.refusal(http.StatusBadRequest, "Bad Request")
	}
	if len(event) > maxPayload {
		return g.refusal(http.StatusRequestEntityTooLarge, "Request Too Long")
	}
	if g.open != nil {
		return g.callStreamed(r, event)
	}
	return g.call(r, event)
}

// call invokes and waits as long as the door does. The invocation does not end with the client's context.
func (g *Gateway) call(r *http.Request, event []byte) answer {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), g.o.Timeout)
	defer cancel()
	type outcome struct {
		reply []byte
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		reply, err := g.invoke(ctx, event)
		done <- outcome{reply, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return g.failed()
		}
		return g.answer(r, o.reply)
	case <-ctx.Done():
	}
	switch g.door {
	case lambdaedge.HTTPAPI:
		return g.refusal(http.StatusServiceUnavailable, "Service Unavailable")
	case lambdaedge.RESTAPI:
		return g.refusal(http.StatusGatewayTimeout, "Endpoint request timed out")
	default:
		return g.failed() // the function's own timeout is a failed invocation
	}
}

// failed is what each door makes of an invocation that failed or whose reply it can't read.
func (g *Gateway) failed() answer {
	if g.door == lambdaedge.HTTPAPI {
		return g.refusal(http.StatusInternalServerError, "Internal Server Error")
	}
	return g.refusal(http.StatusBadGateway, "Internal Server Error")
}

var errBodyTooLarge = errors.New("gateway: body over the limit")

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxBody {
		return nil, errBodyTooLarge
	}
	return body, nil
}

// headSize is the bytes of the request line and the header lines.
func headSize(r *http.Request) int {
	n := len(r.Method) + len(r.URL.RequestURI()) + len(" HTTP/1.1\r\n") + 1
	for name, values := range r.Header {
		for _, value := range values {
			n += len(name) + len(value) + len(": \r\n")
		}
	}
	return n
}
