package mcp

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/tracecontext"
)

// lineHandler is what a log handler may offer beside slog.Handler: to take a record apart, so that none is made for it. The
// attributes are the caller's again when it returns. On tools/list the record was a tenth of the whole.
type lineHandler interface {
	HandleAttrs(ctx context.Context, at time.Time, level slog.Level, message string, attrs []slog.Attr) error
}

// The names of the fields are OpenTelemetry's where it has them (semantic conventions for MCP, GenAI, RPC and HTTP; status
// Development). Not used: jsonrpc.request.id and mcp.resource.uri are the caller's own text, and mcp.session.id has no session.
const (
	fieldMethod   = "mcp.method.name"
	fieldVersion  = "mcp.protocol.version"
	fieldTool     = "gen_ai.tool.name"
	fieldError    = "error.type"
	fieldCode     = "rpc.response.status_code"
	fieldVerb     = "http.request.method"
	fieldStatus   = "http.response.status_code"
	fieldBytesIn  = "http.request.body.size"
	fieldBytesOut = "http.response.body.size"
	fieldTrace    = "trace_id"
)

// logRequest writes the request's one line. Its fields are an allow list: ids, kinds and counts; never a token, an argument
// or a name that only the caller made up. The cause of our own failures is in it and nowhere else.
func (s *Server) logRequest(x *exchange) {
	ctx := x.ctx
	level := slog.LevelInfo
	var cause error
	if x.reply != nil && x.reply.code != 0 {
		switch x.reply.kind {
		case apperr.Internal.String():
			level, cause = slog.LevelError, x.reply.cause
		case apperr.Unavailable.String():
			level, cause = slog.LevelWarn, x.reply.cause
		}
	}
	if !s.log.Enabled(ctx, level) {
		return
	}
	now := s.now()
	s.describe(ctx, x, now, cause)
	s.write(ctx, now, level, x.attrs)
	if cause != nil {
		clear(x.attrs) // it may be long, and is nobody else's
	}
}

// write hands the line to the handler without the logger, which would look for its caller and at the clock again.
func (s *Server) write(ctx context.Context, now time.Time, level slog.Level, attrs []slog.Attr) {
	const message = "mcp request"
	if s.lines != nil {
		_ = s.lines.HandleAttrs(ctx, now, level, message, attrs) //nolint:errcheck // like slog.Logger: there is no other log
		return
	}
	r := slog.NewRecord(now, level, message, 0)
	r.AddAttrs(attrs...)
	_ = s.log.Handler().Handle(ctx, r) //nolint:errcheck // see above
}

// describe fills the exchange's attributes.
func (s *Server) describe(ctx context.Context, x *exchange, now time.Time, cause error) {
	attrs := append(x.attrs[:0], slog.String("request_id", s.requestID(x)), slog.String(fieldVerb, httpMethod(x.r.Method)),
		slog.String(fieldMethod, x.label()), slog.String(fieldVersion, string(x.version)), slog.Int(fieldStatus, x.status),
		slog.Int(fieldBytesIn, len(x.body)), slog.Int(fieldBytesOut, x.written))
	if !x.started.IsZero() {
		attrs = append(attrs, slog.Int64("us", now.Sub(x.started).Microseconds()))
	}
	if x.caller != nil {
		attrs = append(attrs, slog.String("grant", x.caller.GrantID()))
	}
	if id := tracecontext.From(ctx).TraceID; id != "" {
		attrs = append(attrs, slog.String(fieldTrace, id))
	}
	if x.tool != "" {
		attrs = append(attrs, slog.String(fieldTool, x.tool), slog.Bool("is_error", x.isError))
	}
	if x.asked {
		attrs = append(attrs, slog.Bool("asked", true))
	}
	if x.streaming {
		attrs = append(attrs, slog.Bool("streamed", true))
	}
	if ctx.Err() != nil {
		attrs = append(attrs, slog.Bool("cancelled", true))
	}
	if x.reply != nil && x.reply.code != 0 {
		attrs = append(attrs, slog.Int(fieldCode, x.reply.code), slog.String(fieldError, x.reply.kind))
	}
	if cause != nil {
		attrs = append(attrs, slog.String("cause", cause.Error()))
	}
	if x.reply != nil && x.reply.stack != nil {
		attrs = append(attrs, slog.String("stack", string(bytes.TrimSpace(x.reply.stack))))
	}
	x.attrs = attrs
}

// label is the method for the log: one that is served, or what kind of message it was.
func (x *exchange) label() string {
	switch {
	case x.method != nil:
		return x.method.name
	case x.frame.rpc == nil:
		return ""
	}
	switch x.frame.kind() {
	case notification:
		return "notification"
	case response:
		return "response"
	default:
		return "unknown"
	}
}

func httpMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}
