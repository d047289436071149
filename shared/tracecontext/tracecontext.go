// Package tracecontext carries where a request stands in its caller's trace: W3C Trace Context (level 1, sections 3.2 and 3.3), as it
// comes in MCP's params._meta (traceparent, tracestate), in HTTP headers of the same names, or as AWS's X-Amzn-Trace-Id. It is for
// lining up logs with the caller's: nothing is recorded, sampled or exported here, and nothing may be decided by it, for
// everything in it is the caller's word. It depends on the standard library only.
package tracecontext

import (
	"context"
	"strings"
)

// Context is a position in a trace. The zero value is none.
type Context struct {
	TraceID string // 32 digits of lower-case hexadecimal
	SpanID  string // 16 of them: the caller's own step; empty where the caller named none
	Flags   string // 2 of them
	State   string // tracestate, verbatim: of other vendors, to be handed on and not to be logged
}

const (
	traceDigits = 32
	spanDigits  = 16
	maxState    = 512 // characters; section 3.3.1.5: at least that many should be handed on
	version     = "00"
)

// Parse reads traceparent and tracestate. A traceparent that is malformed is as good as none, and takes the tracestate with it; a
// tracestate that is malformed is dropped alone.
func Parse(traceparent, tracestate string) (c Context, ok bool) {
	const whole = len("00-") + traceDigits + len("-") + spanDigits + len("-00")
	p := traceparent
	if len(p) < whole || !isHex(p[:2]) || p[:2] == "ff" || p[2] != '-' || p[3+traceDigits] != '-' || p[whole-3] != '-' {
		return Context{}, false
	}
	// A later version may have more behind these fields (section 3.2.4); ours ends here.
	if len(p) > whole && (p[:2] == version || p[whole] != '-') {
		return Context{}, false
	}
	c = Context{TraceID: p[3 : 3+traceDigits], SpanID: p[4+traceDigits : whole-3], Flags: p[whole-2 : whole]}
	if !isID(c.TraceID) || !isID(c.SpanID) || !isHex(c.Flags) {
		return Context{}, false
	}
	if len(tracestate) <= maxState && printable(tracestate) {
		c.State = tracestate
	}
	return c, true
}

// ParseXRay reads X-Amzn-Trace-Id, as Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1. The root's two parts are
// the trace id (OpenTelemetry's AWS X-Ray propagator has it so).
func ParseXRay(header string) (c Context, ok bool) {
	for part := range strings.SplitSeq(header, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Root":
			epoch, rest, cut := strings.Cut(strings.TrimPrefix(value, "1-"), "-")
			if id := epoch + rest; strings.HasPrefix(value, "1-") && cut && len(epoch) == 8 && len(id) == traceDigits && isID(id) {
				c.TraceID = id
			}
		case "Parent":
			if len(value) == spanDigits && isID(value) {
				c.SpanID = value
			}
		case "Sampled":
			if value == "1" {
				c.Flags = "01"
			}
		}
	}
	if c.TraceID == "" {
		return Context{}, false
	}
	return c, true
}

// Traceparent is the position as W3C's header has it; empty where there is none, or none of its own step.
func (c Context) Traceparent() string {
	if c.TraceID == "" || c.SpanID == "" {
		return ""
	}
	flags := c.Flags
	if flags == "" {
		flags = "00"
	}
	return version + "-" + c.TraceID + "-" + c.SpanID + "-" + flags
}

type key struct{}

// With returns a context at this position. A job keeps Traceparent and State in its row and starts with With(ctx, Parse(...)).
func With(ctx context.Context, c Context) context.Context { return context.WithValue(ctx, key{}, c) }

// From is where a context stands; the zero value where it was never told.
func From(ctx context.Context) Context {
	c, _ := ctx.Value(key{}).(Context)
	return c
}

// isID is for ids: those of zeroes alone are invalid (section 3.2.2).
func isID(s string) bool { return isHex(s) && strings.Trim(s, "0") != "" }

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func printable(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			return false
		}
	}
	return true
}
