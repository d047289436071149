// Package mcp is the server side of the Model Context Protocol over Streamable HTTP: both eras, the stateless revision
// 2026-07-28 and the initialize revisions 2025-11-25, 2025-06-18, 2025-03-26 and 2024-11-05, on one endpoint that keeps
// nothing between two requests. It knows the protocol only: no HTTP API, no catalogue, nothing of mail. What a server
// offers is behind the small interfaces of this file.
package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Caller is who a request comes from. Rooms that offer tools know the concrete type.
type Caller interface {
	// GrantID is stable for the grant and the key of the rate limit and of sealed state.
	GrantID() string
}

// Authenticator verifies the bearer token of a request.
type Authenticator interface {
	// Authenticate returns the caller. An *apperr.Error of kind unauthenticated (code missing_token when there is none, else
	// invalid_token) becomes 401 with a challenge, one of kind unavailable 503; any other error is internal.
	Authenticate(ctx context.Context, h http.Header) (Caller, error)
}

// Challenger builds what a 401 or 403 tells the client: the WWW-Authenticate value (RFC 6750 section 3, RFC 9728 section
// 5.1) and the same facts as JSON members for the error's data.
type Challenger interface {
	// Challenge takes the RFC 6750 error code (empty when no token was sent) and the scopes to name (nil: the advertised ones).
	Challenge(code string, scopes []string) (header string, data map[string]any)
}

// Limiter counts the requests of a grant.
type Limiter interface {
	// Take counts one request against key. It never fails: a limiter that can't decide allows. Without a limit it returns
	// Allowed and nothing else, and no X-RateLimit header is sent.
	Take(ctx context.Context, key string) Limit
	// Peek returns the state of key without counting anything, for requests that are free.
	Peek(ctx context.Context, key string) Limit
}

// Limit is the state of a limit after a request was counted.
type Limit struct {
	Allowed    bool
	Limit      int           // requests a window
	Remaining  int           // never above the true remainder
	Reset      time.Duration // until the window is whole again
	RetryAfter time.Duration // when Allowed is false
}

// Tools is what a server offers as tools.
type Tools interface {
	// ListTools returns the tools that the caller may use, rendered, in a fixed order.
	ListTools(ctx context.Context, r *ListRequest) (ListResult, error)
	// CallTool runs one tool. Failures that the caller can act on are results with IsError. ErrUnknown: no such tool for
	// this caller (-32602). *ScopeError: hidden for want of scope (403 with the challenge). *Ask: the client is asked for input
	// and calls again. ErrTaskOnly: the client takes no task (-32021). *ParamsError, ErrAnswer: -32602. Anything else is internal.
	CallTool(ctx context.Context, r *CallRequest) (*CallResult, error)
}

// HeaderTools is implemented by Tools of which some mirror arguments in Mcp-Param-* headers (x-mcp-header).
type HeaderTools interface {
	// ToolHeaders returns what ParseHeaderParams found in the tool's input schema, or nil: the tool has none, is unknown, or is hidden
	// from this caller (so that a mismatch never tells that it exists). It must be cheap; it is asked on each tools/call.
	ToolHeaders(ctx context.Context, caller Caller, name string) *HeaderParams
}

// Sealer makes text that travels through the caller: nobody else can read it or make one. *seal.Sealer is one.
type Sealer interface {
	// Seal binds plaintext to ad until ttl from now.
	Seal(plaintext, ad []byte, ttl time.Duration) (string, error)
	// Open returns what Seal was given; an error for anything else, another ad or a token whose time is over.
	Open(token string, ad []byte) ([]byte, error)
}

// ListRequest asks for one page of a list.
type ListRequest struct {
	Caller  Caller
	Version Version
	Header  http.Header // of the HTTP request; read only
	Cursor  string      // the position that the last page named as its next; empty: from the start. It was sealed on its way.
	Limit   int         // items a page at most, Options.PageLimit; 0: no limit of the server's
}

// Page cuts the page that r asks for out of a list of n items whose order is fixed. It is for lists that are at hand whole; ErrUnknown is a
// position that Page never gave.
func (r *ListRequest) Page(n int) (from, to int, next string, err error) {
	if r.Cursor != "" {
		from, err = strconv.Atoi(r.Cursor)
		if err != nil || from <= 0 {
			return 0, 0, "", ErrUnknown
		}
	}
	from = min(from, n) // the list became shorter meanwhile
	if r.Limit <= 0 || r.Limit >= n-from {
		return from, n, "", nil
	}
	return from, from + r.Limit, strconv.Itoa(from + r.Limit), nil
}

// ListResult is one page of tools, already JSON.
type ListResult struct {
	Items      [][]byte // rendered pieces of the array's inside, to be written one after the other; the separators are in them
	NextCursor string   // the position of the next page, any text; the client sees it sealed. Empty: this is the last page.
}

// CallRequest is one tools/call.
type CallRequest struct {
	Caller       Caller
	Version      Version
	Name         string
	Arguments    json.RawMessage // the object as it was sent; nil when absent. Valid until the call returns.
	Capabilities json.RawMessage // of the client; nil in the 2025 era
	ClientInfo   json.RawMessage // what the client says that it is; nil in the 2025 era and when it does not say
	Header       http.Header     // of the HTTP request; read only
	Input        *Input          // what the client answered; nil on a first round. Its methods take nil.
	Notify       *Notifier       // nil when the client asked for no notifications. Its methods take nil.
}

// CanAsk reports whether the client can be asked all of this; see Ask. It never can in the 2025 era.
func (r *CallRequest) CanAsk(n Needs) bool { return canAsk(r.Version, r.Capabilities, n) }

// Declared is the name and version that the client declares with this request, as "name/version": a claim, of any length and any
// characters. Empty in the 2025 era, whose clients declare themselves once in initialize, of which nothing is kept.
func (r *CallRequest) Declared() string {
	var info implementation
	if len(r.ClientInfo) == 0 || json.Unmarshal(r.ClientInfo, &info) != nil || info.Name == "" {
		return ""
	}
	if info.Version == "" {
		return info.Name
	}
	return info.Name + "/" + info.Version
}

// CallResult is what a tool answers. Exactly one of JSON, Content and Task is set.
type CallResult struct {
	JSON     []byte          // one JSON value: shown as text byte for byte and, when an object and not an error, as structuredContent
	Escaped  Escaper         // writes JSON as text, when it can; may be nil
	Content  json.RawMessage // the content array verbatim
	Task     *Task           // the work goes on, and is durable already: only for a client that CanTask
	IsError  bool
	Meta     []byte // rendered members for the result's _meta without braces; empty for none
	Released func() // called once the result was written; may be nil. JSON and Meta may be reused after it.
}

// Escaper is a result that writes its own JSON as the inside of a JSON string, byte for byte what escaping it would give (RFC 8259
// section 7: only what must be). Such JSON is UTF-8 and has no line breaks. When it can't it appends nothing.
type Escaper interface {
	AppendEscaped(dst []byte) (_ []byte, ok bool)
}

// ScopeError is a tool hidden for want of scope.
type ScopeError struct {
	Scopes []string // every scope that the operation needs
}

// Error is for logs.
func (e *ScopeError) Error() string { return "mcp: insufficient scope" }
