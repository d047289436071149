package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/op"
)

// statuses is the one table from kind to HTTP status. A kind without an entry would be status 0, which a test refuses.
//
//nolint:gochecknoglobals // constant table
var statuses = map[apperr.Kind]int{
	apperr.Internal:         http.StatusInternalServerError,
	apperr.Invalid:          http.StatusBadRequest,
	apperr.Unauthenticated:  http.StatusUnauthorized,
	apperr.Forbidden:        http.StatusForbidden,
	apperr.NotFound:         http.StatusNotFound,
	apperr.Conflict:         http.StatusConflict,
	apperr.Stale:            http.StatusPreconditionFailed,
	apperr.MethodNotAllowed: http.StatusMethodNotAllowed,
	apperr.UnsupportedMedia: http.StatusUnsupportedMediaType,
	apperr.TooLarge:         http.StatusRequestEntityTooLarge,
	apperr.RateLimited:      http.StatusTooManyRequests,
	apperr.Unavailable:      http.StatusServiceUnavailable,
}

const problemType = "application/problem+json"

// Problem is the document of every failure (RFC 9457 section 3). Its type is about:blank, so the title is the status's
// phrase (section 4.2.1); kind and code are what programs compare.
type Problem struct {
	Type      string          `json:"type" doc:"Always about:blank" example:"about:blank"`
	Title     string          `json:"title" doc:"The phrase of the HTTP status"`
	Status    int             `json:"status" doc:"The HTTP status"`
	Detail    string          `json:"detail" doc:"What went wrong, for the caller to read"`
	Kind      string          `json:"kind" doc:"The class of the failure"`
	Code      string          `json:"code" doc:"Finer than the kind, for programs; equal to it where there is nothing finer"`
	Fixes     []string        `json:"fixes,omitempty" doc:"What the caller can do next, in the order to try"`
	Errors    []apperr.Detail `json:"errors,omitempty" doc:"Where the input is at fault"`
	Scopes    []string        `json:"scopes,omitempty" doc:"Every scope that the operation needs, when one is missing"`
	RequestID string          `json:"request_id,omitempty" doc:"Name it when you report the failure"`
}

// Problem renders the document of an error for callers that answer in another frame. The text of a fault of ours is not in
// it.
func (a *API) Problem(ctx context.Context, err error) []byte {
	e := apperr.From(err)
	if e.Kind == apperr.Internal {
		e = fixed()
	}
	return a.document(ctx, e)
}

func (a *API) document(ctx context.Context, e *apperr.Error) []byte {
	status := statuses[e.Kind]
	p := Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: e.Public,
		Kind: e.Kind.String(), Code: e.Name(), Fixes: e.Fixes, Errors: located(ctx, e.Details), Scopes: e.Scopes,
		RequestID: a.deps.RequestID(ctx),
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return []byte(`{"type":"about:blank","status":500,"kind":"internal","code":"internal"}`)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// located names faults as the caller of this surface sent them: a tool has arguments, and knows neither query nor body.
func located(ctx context.Context, details []apperr.Detail) []apperr.Detail {
	if op.SurfaceFrom(ctx) != op.SurfaceMCP {
		return details
	}
	named := make([]apperr.Detail, len(details))
	for i, d := range details {
		where, name, _ := strings.Cut(d.Location, ".")
		switch where {
		case "header":
			name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
			fallthrough
		case "query", "path", "body":
			d.Location = strings.TrimSuffix("arguments."+name, ".")
		}
		named[i] = d
	}
	return named
}

// insider is the ResponseWriter of an in-process caller that acts on a failure and need not read it back from its document.
// What is a fault of ours it gets as any caller does: without its text.
type insider interface {
	Failed(e *apperr.Error)
}

// fail answers an error. It is the one edge of this room: what is our fault is logged here, once.
func (a *API) fail(ctx context.Context, w http.ResponseWriter, operation string, err error) {
	e := a.classify(ctx, operation, err)
	if caller, ok := w.(insider); ok {
		caller.Failed(e)
	}
	h := w.Header()
	switch e.Kind {
	case apperr.Unauthenticated, apperr.Forbidden:
		a.challenge(h, e)
	case apperr.RateLimited, apperr.Unavailable:
		if e.RetryAfter > 0 {
			h.Set("Retry-After", seconds(e.RetryAfter))
		}
	}
	a.send(w, statuses[e.Kind], problemType, a.document(ctx, e))
}

// classify finds what the caller may read of an error. A call that its own caller gave up on, or that ran out of its time,
// is no fault of the program.
func (a *API) classify(ctx context.Context, operation string, err error) *apperr.Error {
	e := apperr.From(err)
	switch {
	case e.Kind == apperr.Unavailable && e.Unwrap() != nil && ctx.Err() == nil:
		// A dependency is down, which one and why (a full disk) shows nowhere else. What has no cause is a refusal of ours.
		a.log(ctx, slog.LevelWarn, "operation unavailable", operation, err)
		return e
	case e.Kind != apperr.Internal:
		return e
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return apperr.New(apperr.Unavailable, "interrupted", "The call ended before the answer was ready.", "Repeat the call.")
	}
	a.log(ctx, slog.LevelError, "operation failed", operation, err)
	return fixed()
}

func (a *API) log(ctx context.Context, level slog.Level, message, operation string, err error) {
	a.deps.Logger.LogAttrs(ctx, level, message, slog.String("operation", operation),
		slog.String("request_id", a.deps.RequestID(ctx)), slog.String("error", err.Error()))
}

// fixed is what a caller reads of any fault of ours. An Internal error made by hand may carry text that was meant for the log.
func fixed() *apperr.Error { return apperr.From(errFault) }

// challenge tells a client how to come back with what it lacks (RFC 6750 section 3).
func (a *API) challenge(h http.Header, e *apperr.Error) {
	if e.Kind == apperr.Forbidden && len(e.Scopes) == 0 {
		return // no token with other scopes would help
	}
	code := ""
	switch {
	case e.Kind == apperr.Forbidden:
		code = "insufficient_scope"
	case e.Code != codeMissingToken:
		code = "invalid_token"
	}
	value, _ := a.deps.Challenger.Challenge(code, e.Scopes)
	h.Set("WWW-Authenticate", value)
	if a.options.ChallengeHeader != "" {
		h.Set(a.options.ChallengeHeader, value)
	}
}

// codeMissingToken is the code of an Unauthenticated error when no credentials came at all: RFC 6750 section 3.1 wants no
// error code in that challenge.
const codeMissingToken = "missing_token"

func (a *API) send(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // the peer is gone: nobody is left to tell
}

// seconds rounds up, for a client that comes back too early is refused again.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
