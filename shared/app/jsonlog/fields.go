package jsonlog

import "log/slog"

// dropped counts the fields of a line that are not on the list.
const dropped = "dropped_fields"

// Allowed is the list of the fields that the service may log: ids of ours, kinds, counts and times. What is not here is left out of its
// line, so that a careless log call can't put a token, an address or a mail's text into a log that more people read than the mail. The
// values are the business of who logs: `error` and `cause` hold our own words. A test reads every log call of the module and
// fails on a name that is not here.
//
// Names with a dot are OpenTelemetry's.
func Allowed(name string) bool {
	switch name {
	case
		// a request
		"request_id", "trace_id", "door", "grant", "us", "asked", "streamed", "cancelled", "is_error", "operation",
		"mcp.method.name", "mcp.protocol.version", "gen_ai.tool.name", "error.type", "rpc.response.status_code",
		"http.request.method", "http.response.status_code", "http.request.body.size", "http.response.body.size",
		// a fault
		"error", "cause", "kind", "code", "panic", "stack", "reason", "why", dropped,
		// a job, a mail, a delivery
		"job", "message", "attempt", "ses", "intake", "intakes", "email", "inbox", "workspace", "outcome", "bytes", "key",
		"recipients", "recipients_unknown", "senders_refused", "reply", "count", "rows", "resent", "released", "webhook", "delivery", "deliveries", "status", "ms", "template",
		// who did what to whom, of the authorization server
		"event", "person", "organization", "service", "by":
		return true
	}
	return false
}

// kept is the attributes that are on the list; it changes attrs only where one is not.
func kept(attrs []slog.Attr) []slog.Attr {
	for i, a := range attrs {
		if Allowed(a.Key) {
			continue
		}
		some := append([]slog.Attr(nil), attrs[:i]...)
		n := 1
		for _, a := range attrs[i+1:] {
			if Allowed(a.Key) {
				some = append(some, a)
			} else {
				n++
			}
		}
		return append(some, slog.Int(dropped, n))
	}
	return attrs
}
