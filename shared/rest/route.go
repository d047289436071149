package rest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/op"
)

// route is the handler of one operation. Everything that guards the operation lies in it and in this order: panic, caller,
// scope, the caller read anew where that matters, tenant, role, the parts it is confined to, outward limit, path values, query, body, huma's
// validation, idempotency key. Nothing of it may move around the mux: in-process calls don't pass the mux.
type route struct {
	api     *API
	op      *op.Operation
	scope   op.ScopeSet
	strong  bool     // who calls is read anew
	keyed   bool     // it takes an idempotency key
	params  []string // path parameters
	once    sync.Once
	bound   *bound
	failure error // of the registration
}

func newRoute(a *API, o *op.Operation) (*route, error) {
	if _, ok := o.Binding.(*binding); !ok {
		return nil, fmt.Errorf("rest: %s was not made by Define", o.Name)
	}
	if err := checkJob(o); err != nil {
		return nil, err
	}
	if err := checkKey(o, a.deps.Idempotency); err != nil {
		return nil, err
	}
	t := &route{api: a, op: o, params: parameters(o.Path), strong: a.catalogue.Vocabulary.Strong(o)}
	t.keyed = TakesKey(o.Input)
	if o.Scope != "" {
		t.scope, _ = a.catalogue.Vocabulary.Bit(o.Scope) // the catalogue has checked that it is known
	}
	return t, nil
}

// parameters lists the names between braces.
func parameters(path string) []string {
	var names []string
	for segment := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// ServeHTTP runs the operation for the caller of the request's context.
func (t *route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{r: r, route: t}
	defer t.rescue(w, r)
	if err := t.serve(c, w); err != nil {
		t.api.fail(r.Context(), w, t.op.Name, err)
	}
}

// rescue turns a panic into a 500. Replies are encoded whole before their first byte is sent, so nothing was sent yet.
func (t *route) rescue(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	a := t.api
	a.deps.Logger.LogAttrs(r.Context(), slog.LevelError, "operation panicked", slog.String("operation", t.op.Name),
		slog.String("request_id", a.deps.RequestID(r.Context())), slog.String("error", fmt.Sprint(p)),
		slog.String("stack", string(debug.Stack())))
	e := fixed()
	a.send(w, statuses[e.Kind], problemType, a.document(r.Context(), e))
}

func (t *route) serve(c *call, w http.ResponseWriter) error {
	inquiry := op.InquiryFrom(c.r.Context())
	if inquiry != nil && !t.op.Asks {
		return fmt.Errorf("rest: %s was asked for a question and has none", t.op.Name) // it would act instead
	}
	ctx, err := t.admit(c.r)
	if err != nil {
		return err
	}
	for _, name := range t.params {
		if !op.ValidPathValue(c.r.PathValue(name)) {
			return op.NotFound()
		}
	}
	t.once.Do(t.register)
	if t.failure != nil {
		return t.failure
	}
	c.ctx, c.bound = ctx, t.bound
	c.carrier = carrier{Context: ctx, call: c}
	if err := c.readQuery(); err != nil {
		return err
	}
	if err := c.readBody(); err != nil {
		return err
	}
	t.bound.handler(c)
	switch {
	case c.refused != nil:
		return invalid(c.refused, t.op)
	case c.err != nil:
		c.settle(nil, 0)
		return c.err
	case c.replay != nil:
		return t.again(w, c.replay)
	case inquiry != nil:
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if out, ok := c.out.(*StartedOutput); ok {
		out.locate(t.api.options.BasePath)
	}
	return t.bound.reply.write(w, c)
}

// admit checks the caller and resolves the tenant.
func (t *route) admit(r *http.Request) (context.Context, error) {
	ctx := r.Context()
	caller := op.CallerFrom(ctx)
	if caller == nil {
		return nil, apperr.New(apperr.Unauthenticated, codeMissingToken, "This operation needs a verified caller.",
			"Send an access token: Authorization: Bearer ...")
	}
	if !caller.Scopes.Has(t.scope) {
		e := apperr.New(apperr.Forbidden, "insufficient_scope", "The token lacks the scope "+t.op.Scope+".",
			"Reconnect and grant the scope "+t.op.Scope+".")
		e.Scopes = []string{t.op.Scope}
		return nil, e
	}
	if t.strong && caller.Again != nil {
		// A grant that was revoked, or a role that was taken, half a minute ago must not delete anything now.
		var err error
		if caller, err = caller.Again(ctx); err != nil {
			return nil, err //nolint:wrapcheck // for callers
		}
		ctx = op.WithCallerAgain(ctx, caller)
	}
	role, w := caller.Role, op.Workspace{}
	if !t.op.AnyTenant {
		var err error
		if w, err = tenant(r, caller); err != nil {
			return nil, err
		}
		role = w.Role
	}
	switch traced := t.op.Traced(); {
	case traced:
		ctx = op.WithTenant(ctx, w, t)
	case !t.op.AnyTenant:
		ctx = op.WithTenant(ctx, w, nil)
	}
	if role < t.op.Role {
		return nil, apperr.New(apperr.Forbidden, "insufficient_role",
			"This operation needs the role "+t.op.Role.String()+"; yours here is "+role.String()+".",
			"Ask an administrator of the workspace for the role "+t.op.Role.String()+".")
	}
	if caller.Confined() && !t.op.Confines {
		return nil, op.Confines()
	}
	// A question lets nothing out.
	if t.op.Outward && t.api.deps.Outward != nil && op.InquiryFrom(ctx) == nil {
		if err := t.letOut(ctx, caller); err != nil {
			return nil, err
		}
	}
	return ctx, nil
}

// letOut counts an operation that lets something out. Where it can't be counted nothing leaves: an outage of the counter must not
// be a way to send without a limit.
func (t *route) letOut(ctx context.Context, caller *op.Caller) error {
	l, err := t.api.deps.Outward.Take(ctx, caller.Grant)
	switch {
	case err != nil:
		e := apperr.New(apperr.Unavailable, "", "What leaves the service can't be counted at the moment, so nothing was sent.",
			"Repeat the call in a few seconds.").Because(err)
		e.RetryAfter = closed
		return e
	case !l.Allowed:
		return limited(l, "This grant has sent out too much in a short time.")
	}
	return nil
}

// closed is after how long a caller may try a gate again that could not tell.
const closed = 5 * time.Second

// Trace implements op.Tracer.
func (t *route) Trace(ctx context.Context) op.Trace {
	d := &t.api.deps
	trace := op.Trace{Operation: t.op.Name, Request: d.RequestID(ctx)}
	if d.Source != nil {
		trace.Source = d.Source(ctx)
	}
	return trace
}

// tenant takes the workspace of the header. Two headers are refused: a proxy and this program could read different ones.
func tenant(r *http.Request, caller *op.Caller) (op.Workspace, error) {
	named := ""
	switch values := r.Header[WorkspaceHeader]; len(values) {
	case 0:
	case 1:
		named = values[0]
	default:
		return op.Workspace{}, apperr.New(apperr.Invalid, "", "The header "+WorkspaceHeader+" was sent more than once.",
			"Send it once.").At("header."+WorkspaceHeader, "expected one value")
	}
	return caller.Workspace(named)
}

// register binds the operation to huma on its first call, on an API and a registry of its own: huma reads the registry on
// each validation, so a shared one that grows later would be a data race. A bad tag panics in huma; the generated
// documents are made from the same tags, so a test meets it first.
func (t *route) register() {
	defer func() {
		if p := recover(); p != nil {
			t.failure = fmt.Errorf("register %s: %v", t.op.Name, p)
		}
	}()
	b := newBound(t.op)
	t.op.Binding.(*binding).register(b, huma.Operation{
		OperationID: t.op.Name, Method: t.op.Method, Path: t.op.Path, DefaultStatus: t.op.Status,
		MaxBodyBytes: -1, BodyReadTimeout: -1, // the body was read before, bounded
	})
	b.ready()
	t.bound = b
}
