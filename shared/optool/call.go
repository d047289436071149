package optool

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/op"
)

// call is what one tools/call needs, in one allocation.
type call struct {
	input
	url    url.URL
	body   body
	result mcp.CallResult
}

// CallTool runs one tool. What the caller can act on is a result with IsError that holds the problem document.
func (t *Tools) CallTool(ctx context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
	caller, own, err := t.admit(r)
	if err != nil {
		return nil, err
	}
	p, err := own.ready(t.options.BasePath)
	if err != nil {
		return nil, fmt.Errorf("plan tool %s: %w", own.op.Name, err)
	}
	c := &call{}
	if err := p.read(r.Arguments, &c.input); err != nil {
		return t.refuse(ctx, err), nil
	}
	ctx = op.WithClient(ctx, caller, op.SurfaceMCP, r)
	var result *mcp.CallResult
	if own.op.Effect == op.Destructive {
		result, err = t.confirmed(ctx, own, p, c, r)
	} else {
		result, err = t.answer(own, c, t.run(ctx, own, p, c, r.Header))
	}
	if err != nil {
		return nil, err
	}
	return t.begun(ctx, own, r, result), nil
}

// May returns what CallTool refuses a request with before it looks at its arguments: nil when the caller may use the tool,
// mcp.ErrUnknown when there is none for it, *mcp.ScopeError when only the token's scopes are in the way. It is for whatever is
// offered beside the tools and stands on them.
func (t *Tools) May(r *mcp.CallRequest) error {
	_, _, err := t.admit(r)
	return err
}

func (t *Tools) admit(r *mcp.CallRequest) (*op.Caller, *tool, error) {
	caller, err := callerOf(r.Caller)
	if err != nil {
		return nil, nil, err
	}
	own, ok := t.byName[r.Name]
	if !ok {
		return nil, nil, mcp.ErrUnknown
	}
	s := t.standing(caller, r.Header)
	if !own.allows(s) {
		return nil, nil, mcp.ErrUnknown // before the scope, for its challenge would tell that the tool exists
	}
	if !s.scopes.Has(own.scope) {
		return nil, nil, &mcp.ScopeError{Scopes: []string{own.op.Scope}}
	}
	return caller, own, nil
}

func (t *Tools) refuse(ctx context.Context, err error) *mcp.CallResult {
	return &mcp.CallResult{JSON: t.routes.Problem(ctx, err), IsError: true}
}

// run sends the request to the operation's own route object. The request has no header of the client but the workspace's:
// a forwarded Authorization or Cookie would be a second identity beside the verified caller. It can run more than once.
func (t *Tools) run(ctx context.Context, own *tool, p *plan, c *call, client http.Header) *recorder {
	r := p.template.WithContext(ctx)
	r.URL = &c.url
	c.url.Path = p.path(&c.input)
	c.url.RawQuery = string(c.query)
	for _, v := range c.values[:c.paths] {
		r.SetPathValue(v.name, v.value)
	}
	if workspace := client[t.options.WorkspaceHeader]; len(workspace) > 0 || c.header != nil {
		r.Header = t.headers(c.header, workspace)
	}
	if c.input.body != nil {
		c.body = body{data: c.input.body}
		r.Body, r.ContentLength = &c.body, int64(len(c.body.data))
	}
	rec := t.record()
	own.route.ServeHTTP(rec, r)
	return rec
}

func (t *Tools) headers(declared http.Header, workspace []string) http.Header {
	h := make(http.Header, 2+len(declared))
	h["Content-Type"] = jsonOnly["Content-Type"]
	if len(workspace) > 0 {
		h[t.options.WorkspaceHeader] = workspace
	}
	for name, values := range declared {
		h[name] = values
	}
	return h
}

// path joins the segments with the values. They were checked, and what passes the check needs no escape.
func (p *plan) path(in *input) string {
	if in.paths == 0 {
		return p.fixed
	}
	out := make([]string, len(p.segments))
	copy(out, p.segments)
	for i, segment := range out {
		for _, v := range in.values[:in.paths] {
			if len(segment) == len(v.name)+2 && segment[0] == '{' && segment[1:len(segment)-1] == v.name {
				out[i] = v.value
			}
		}
	}
	return strings.Join(out, "/")
}

func (t *Tools) answer(own *tool, c *call, rec *recorder) (*mcp.CallResult, error) {
	result := &c.result
	result.JSON, result.Released = rec.buf, rec.released
	switch {
	case rec.failure != nil && rec.failure.Kind == apperr.Unauthenticated:
		// The grant ended since the request was let in. The client starts over on 401 and on nothing else, so it is no result.
		e := rec.failure
		rec.release()
		return nil, e
	case rec.status >= http.StatusInternalServerError && rec.status != http.StatusServiceUnavailable:
		status := rec.status
		rec.release()
		return nil, fmt.Errorf("tool %s: the route answered %d and has logged why", own.op.Name, status)
	case rec.status >= http.StatusMultipleChoices:
		result.IsError = true
		return result, nil
	case len(rec.buf) == 0:
		result.JSON = emptyObject
	}
	result.Escaped, _ = rec.value.(mcp.Escaper)
	if t.options.UntrustedMetaKey != "" {
		rec.meta = own.plan.point(rec.meta, t.options.UntrustedMetaKey, rec.value, result.JSON)
		result.Meta = rec.meta
	}
	return result, nil
}

//nolint:gochecknoglobals // constant
var emptyObject = []byte("{}")

// body is the body of an in-process request. Bytes spares the route its copy.
type body struct {
	data []byte
	at   int
}

// Bytes is the whole body.
func (b *body) Bytes() []byte { return b.data }

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.at == len(b.data) {
		return 0, io.EOF
	}
	n := copy(p, b.data[b.at:])
	b.at += n
	return n, nil
}

// Close does nothing.
func (b *body) Close() error { return nil }
