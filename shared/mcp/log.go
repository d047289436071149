package mcp

import (
	"bytes"
	"log/slog"
	"net/http"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// logRequest writes the request's one line. Its fields are an allow list: ids, kinds and counts; never a token, an argument
// or a name that only the caller made up. The cause of our own failures is in it and nowhere else.
func (s *Server) logRequest(x *exchange) {
	ctx := x.r.Context()
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
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs, slog.String("request_id", s.requestID(x)), slog.String("http_method", httpMethod(x.r.Method)),
		slog.String("method", x.label()), slog.String("version", string(x.version)), slog.Int("status", x.status),
		slog.Int("bytes_in", len(x.body)), slog.Int("bytes_out", x.written))
	if !x.started.IsZero() {
		attrs = append(attrs, slog.Int64("us", s.now().Sub(x.started).Microseconds()))
	}
	if x.caller != nil {
		attrs = append(attrs, slog.String("grant", x.caller.GrantID()))
	}
	if x.tool != "" {
		attrs = append(attrs, slog.String("tool", x.tool), slog.Bool("is_error", x.isError))
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
		attrs = append(attrs, slog.Int("code", x.reply.code), slog.String("kind", x.reply.kind))
	}
	if cause != nil {
		attrs = append(attrs, slog.String("cause", cause.Error()))
	}
	if x.reply != nil && x.reply.stack != nil {
		attrs = append(attrs, slog.String("stack", string(bytes.TrimSpace(x.reply.stack))))
	}
	s.log.LogAttrs(ctx, level, "mcp request", attrs...)
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
