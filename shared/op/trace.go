package op

import "context"

// Client is the program behind a call, as far as the surface knows it.
type Client interface {
	// Declared is what it says that it is, name and version: a claim. Empty: it does not say. It is asked while the call runs.
	Declared() string
}

// Trace is what the audit keeps of a call beside its caller.
type Trace struct {
	Operation string
	Request   string // id of the request
	Source    string // IP address of the peer, as the edge of the service knows it
	Software  string // what the client says that it is, made harmless
}

// Tracer tells the trace of a call. It is asked only by what writes a line of the audit: to work all of it out for every call was a
// third of the allocations of a trivial one.
type Tracer interface {
	// Trace is the trace of the call that ctx belongs to, but for Software.
	Trace(ctx context.Context) Trace
}

// WithClient is WithCaller for a surface that knows the client.
func WithClient(ctx context.Context, c *Caller, s Surface, client Client) context.Context {
	return &call{Context: ctx, caller: c, surface: s, client: client}
}

// TraceFrom is the trace of a call; the zero value where nothing is audited. It holds only while the call runs.
func TraceFrom(ctx context.Context) Trace {
	c := callFrom(ctx)
	if c == nil || c.tracer == nil {
		return Trace{}
	}
	t := c.tracer.Trace(ctx)
	if c.client != nil {
		t.Software = harmless(c.client.Declared())
	}
	return t
}
