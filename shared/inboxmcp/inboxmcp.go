// Package inboxmcp offers the inbox beside its tools: resources, resource templates, prompts and completions (MCP 2026-07-28
// and the revisions before it; the shapes are package mcp's). It adds no way to the data: whatever it shows is the answer of
// an operation, called as the tool that it is, with the caller's own grant and headers. So scope, role, workspace, masking and
// the wrapping of third-party text are the operation's, and a resource can't drift from it. What a caller may not call is
// neither listed nor read here.
//
// It must not know a store, a service, HTTP or a catalogue.
package inboxmcp

import (
	"context"
	"errors"
	"time"

	"github.com/buzon-mail/buzon/shared/mcp"
)

// Operations are the operations of the inbox as tools.
type Operations interface {
	// May returns what CallTool would refuse the request with before it looks at its arguments: nil, mcp.ErrUnknown or
	// *mcp.ScopeError.
	May(r *mcp.CallRequest) error
	// CallTool runs one. A result with IsError is a problem document (kind, code, detail, fixes).
	CallTool(ctx context.Context, r *mcp.CallRequest) (*mcp.CallResult, error)
}

// Options says what the wiring knows. The zero value works.
type Options struct {
	UntrustedMetaKey string           // key in a result's _meta for the pointers to third-party text; empty: none
	PerMinute        int              // requests a grant may make; 0: not limited
	OutwardMinute    int              // of them, those that let something out; 0: not limited
	Now              func() time.Time // time.Now when nil
}

// Offers is what the inbox offers beside its tools. It is safe for concurrent use.
type Offers struct {
	operations Operations
	untrusted  string
	now        func() time.Time
	fixed      []family
	templates  []family
	prompts    []prompt
}

var (
	_ mcp.Resources = (*Offers)(nil)
	_ mcp.Prompts   = (*Offers)(nil)
	_ mcp.Completer = (*Offers)(nil)
)

// New makes the offers on top of the operations.
func New(operations Operations, options Options) (*Offers, error) {
	if operations == nil {
		return nil, errors.New("inboxmcp: no operations")
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	o := &Offers{operations: operations, now: options.Now, untrusted: options.UntrustedMetaKey, prompts: prompts()}
	for _, f := range families(newDocuments(options)) {
		f.parse()
		if f.isTemplate() {
			o.templates = append(o.templates, f)
		} else {
			o.fixed = append(o.fixed, f)
		}
	}
	return o, nil
}

// may reports whether the caller may call all of these tools. ErrUnknown wins over ScopeError, for a challenge would tell
// that the thing exists; a ScopeError names every scope that is missing.
func (o *Offers) may(r mcp.CallRequest, tools ...string) error {
	var missing []string
	for _, tool := range tools {
		r.Name = tool
		err := o.operations.May(&r)
		scope, lacking := errors.AsType[*mcp.ScopeError](err)
		switch {
		case err == nil:
		case lacking:
			missing = union(missing, scope.Scopes)
		default:
			return err //nolint:wrapcheck // a sentinel of package mcp
		}
	}
	if missing != nil {
		return &mcp.ScopeError{Scopes: missing}
	}
	return nil
}

// visible reports whether lists show what stands on these tools.
func (o *Offers) visible(r mcp.CallRequest, tools ...string) (bool, error) {
	err := o.may(r, tools...)
	_, lacking := errors.AsType[*mcp.ScopeError](err)
	if lacking || errors.Is(err, mcp.ErrUnknown) {
		return false, nil
	}
	return err == nil, err
}
