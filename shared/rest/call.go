package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/buzon-mail/buzon/shared/op"
)

var (
	errFault = errors.New("rest: a fault of ours")
	errForm  = errors.New("rest: forms are not read")
)

// call is one run of an operation and what huma sees of it. huma only binds and validates: what it writes goes nowhere
// (refused is its verdict), and the reply is written by the route object once huma has returned.
type call struct {
	r       *http.Request
	ctx     context.Context //nolint:containedctx // huma.Context hands it to the handler; a call lives as long as its request
	route   *route
	bound   *bound
	carrier carrier
	query   pairs
	body    body
	refused *huma.ErrorModel
	out     any
	replay  *op.Replay // the act was done before
	err     error
}

// carrier is the context that a handler gets from huma; the wrapper of Define finds its call in it.
type carrier struct {
	context.Context
	call *call
}

var _ huma.Context = (*call)(nil)

// Operation is asked by huma for its own error texts only.
func (c *call) Operation() *huma.Operation { return &c.bound.operation }

// Context is the handler's context.
func (c *call) Context() context.Context { return &c.carrier }

// TLS is the connection's state.
func (c *call) TLS() *tls.ConnectionState { return c.r.TLS }

// Version is the HTTP version.
func (c *call) Version() huma.ProtoVersion {
	return huma.ProtoVersion{Proto: c.r.Proto, ProtoMajor: c.r.ProtoMajor, ProtoMinor: c.r.ProtoMinor}
}

// Method is the request's method.
func (c *call) Method() string { return c.r.Method }

// Host is the request's host.
func (c *call) Host() string { return c.r.Host }

// RemoteAddr is the peer's address.
func (c *call) RemoteAddr() string { return c.r.RemoteAddr }

// URL is the request's URL.
func (c *call) URL() url.URL { return *c.r.URL }

// Param is the value of a path parameter.
func (c *call) Param(name string) string { return c.r.PathValue(name) }

// Query is the value of a query parameter.
func (c *call) Query(name string) string { return c.query.get(name) }

// Header is the value of a request header. Credentials are not for operations.
func (c *call) Header(name string) string {
	if values := c.r.Header[http.CanonicalHeaderKey(name)]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// EachHeader yields nothing: an operation declares the headers it reads.
func (c *call) EachHeader(func(name, value string)) {}

// BodyReader reads the body, which is in memory already.
func (c *call) BodyReader() io.Reader { return &c.body }

// GetMultipartForm refuses: bodies are JSON.
func (c *call) GetMultipartForm() (*multipart.Form, error) { return nil, errForm }

// SetReadDeadline does nothing, for nothing is left to read.
func (c *call) SetReadDeadline(time.Time) error { return nil }

// SetStatus does nothing; see call.
func (c *call) SetStatus(int) {}

// Status is never asked for.
func (c *call) Status() int { return 0 }

// SetHeader does nothing; see call.
func (c *call) SetHeader(string, string) {}

// AppendHeader does nothing; see call.
func (c *call) AppendHeader(string, string) {}

// BodyWriter is where Marshal of bound finds the call again.
func (c *call) BodyWriter() io.Writer { return c }

// Write swallows huma's own texts; see call.
func (c *call) Write(p []byte) (int, error) { return len(p), nil }
