// Package optool offers a catalogue of operations as MCP tools. A tool call becomes the operation's own *http.Request and
// runs the operation's own route object in this process, so a tool can't drift from its route: same validation, same
// guards, same bytes. The list is rendered at build time (Render) and only filtered here. It is the only room that knows
// both op and mcp; it knows nothing of what the operations are about.
//
// A destructive operation is asked first, through its route, what a person must confirm; the client is asked that (MCP
// 2026-07-28, elicitation in form mode), and the yes travels to the service, which uses it up in the act's own transaction.
//
// An operation that starts a job answers with a task where the client declares the tasks extension (SEP-2663): the job is durable by
// then, and what a person must confirm was confirmed. The operations that read and cancel jobs serve tasks/get and tasks/cancel.
//
// Arguments carry the names of the wire: path and query parameters as they are, header parameters in lower case with
// underscores, the members of the body flattened beside them. Null in an optional parameter counts as left out, for models
// fill optional fields with null; null in a member of the body means what it means to the route.
package optool

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/op"
)

// Routes is the HTTP side of the catalogue.
type Routes interface {
	// Route returns the handler that serves an operation over HTTP; it checks caller, scope, role and input itself.
	Route(name string) http.Handler
	// Problem renders the document of a failure as the routes do.
	Problem(ctx context.Context, err error) []byte
}

// Options adjusts a set of tools. The zero value works.
type Options struct {
	UntrustedMetaKey string // key in a result's _meta for the pointers to members named untrusted; empty: not searched
	WorkspaceHeader  string // the only header of the client that is forwarded, in canonical form; empty: X-Workspace-Id
	BasePath         string // of the routes, for the URL of the in-process request
	// JobRead and JobCancel name the operations, with the job's id in their path, that tasks stand on. Empty: there are no tasks.
	JobRead, JobCancel string
}

// Tools is a catalogue as tools. It is safe for concurrent use.
type Tools struct {
	routes  Routes
	options Options
	tools   []tool
	byName  map[string]*tool
	scopes  op.ScopeSet // every scope that some tool needs: the others make no difference to a list
	lists   lists

	recorders sync.Pool
}

var _ mcp.Tools = (*Tools)(nil)

// tool is one operation as a tool.
type tool struct {
	op      *op.Operation
	scope   op.ScopeSet
	route   http.Handler
	segment Segment
	once    sync.Once
	plan    *plan
	failure error // of making the plan
}

// New joins a catalogue, its routes and its rendered list. The list must be of this very catalogue.
func New(catalogue *op.Catalogue, routes Routes, segments []Segment, options Options) (*Tools, error) {
	operations := catalogue.Operations()
	if len(segments) != len(operations) {
		return nil, fmt.Errorf("optool: %d rendered tools for %d operations: render them again (go generate ./...)", len(segments), len(operations))
	}
	if options.WorkspaceHeader == "" {
		options.WorkspaceHeader = "X-Workspace-Id"
	}
	t := &Tools{routes: routes, options: options, tools: make([]tool, len(operations)), byName: make(map[string]*tool, len(operations))}
	for i := range operations {
		o := &operations[i]
		if segments[i].Name != o.Name {
			return nil, fmt.Errorf("optool: rendered tool %d is %s, the operation is %s: render them again (go generate ./...)", i, segments[i].Name, o.Name)
		}
		own := &t.tools[i]
		own.op, own.route, own.segment = o, routes.Route(o.Name), segments[i]
		if own.route == nil {
			return nil, fmt.Errorf("optool: %s has no route", o.Name)
		}
		if o.Scope != "" {
			own.scope, _ = catalogue.Vocabulary.Bit(o.Scope) // the catalogue has checked that it is known
		}
		t.scopes |= own.scope
		t.byName[o.Name] = own
	}
	return t, nil
}

// standing is what a caller may do, as far as lists are concerned.
type standing struct {
	scopes op.ScopeSet
	own    op.Role // for what acts on the organization
	tenant op.Role // for what acts in the workspace
	narrow bool    // confined to parts of the workspace
}

// standing takes the role of the workspace that the request names or defaults to. Where none can be told, the greatest
// role counts: the route says what is missing.
func (t *Tools) standing(c *op.Caller, h http.Header) standing {
	s := standing{scopes: c.Scopes & t.scopes, own: c.Role, narrow: c.Confined()}
	named := ""
	if values := h[t.options.WorkspaceHeader]; len(values) > 0 {
		named = values[0]
	}
	if w, err := c.Workspace(named); err == nil {
		s.tenant = w.Role
		return s
	}
	for _, w := range c.Workspaces {
		s.tenant = max(s.tenant, w.Role)
	}
	return s
}

func (t *tool) allows(s standing) bool {
	if s.narrow && !t.op.Confines {
		return false
	}
	if t.op.AnyTenant {
		return s.own >= t.op.Role
	}
	return s.tenant >= t.op.Role
}

func callerOf(c mcp.Caller) (*op.Caller, error) {
	caller, ok := c.(*op.Caller)
	if !ok || caller == nil {
		return nil, fmt.Errorf("optool: the caller is a %T", c)
	}
	return caller, nil
}
