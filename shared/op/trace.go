package op

import "context"

// Client is the program behind a call, as far as the surface knows it.
type Client interface {
	// Declared is what it says that it is, name and version: a claim. Empty: it does not say.
	Declared() string
}

// Trace is what the audit keeps of a call beside its caller.
type Trace struct {
	Operation string
	Request   string // id of the request
	Source    string // IP address of the peer, as the edge of the service knows it
	Software  string // what the client says that it is, made harmless
}

// WithClient is WithCaller for a surface that knows the client.
func WithClient(ctx context.Context, c *Caller, s Surface, client Client) context.Context {
	return &call{Context: ctx, caller: c, surface: s, client: client}
}

// WithTrace returns a context that carries the trace of a call that changes something, or of a read that is audited. The route
// sets it; of the software it knows what the surface told.
func WithTrace(ctx context.Context, t Trace) context.Context {
	next := derive(ctx)
	if next.client != nil {
		t.Software = harmless(next.client.Declared())
	}
	next.trace = t
	return next
}

// TraceFrom is the trace of a call; the zero value where nothing is audited.
func TraceFrom(ctx context.Context) Trace {
	if c := callFrom(ctx); c != nil {
		return c.trace
	}
	return Trace{}
}
