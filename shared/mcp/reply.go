package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// The JSON-RPC error codes (JSON-RPC 2.0 section 5.1; MCP 2026-07-28 basic, "Error Codes").
const (
	codeParse             = -32700
	codeInvalidRequest    = -32600
	codeUnknownMethod     = -32601
	codeInvalidParams     = -32602
	codeInternal          = -32603
	codeHeaderMismatch    = -32020
	codeMissingCapability = -32021
	codeUnserved          = -32022
	codeUnknownResource   = -32002 // before 2026-07-28
)

// reply ends an exchange with something other than a result.
type reply struct {
	status    int
	code      int    // JSON-RPC error code; 0: the body is empty
	message   string // never holds text of an error that was not written for the caller
	kind      string // apperr kind: data.kind and the log
	data      []byte // members of error.data without braces, rendered
	challenge string // WWW-Authenticate
	retry     time.Duration
	cause     error // for the log only
	stack     []byte
}

// refusal is a reply without data beyond what it says.
func refusal(status, code int, kind apperr.Kind, message string) *reply {
	return &reply{status: status, code: code, kind: kind.String(), message: message}
}

// gated is a refusal at the level of HTTP: its data carries the kind.
func gated(status int, kind apperr.Kind, message string) *reply {
	r := refusal(status, codeInvalidRequest, kind, message)
	r.data = appendKind(nil, r.kind)
	return r
}

// badParams is a fault in a method's own params: the HTTP exchange went well.
func badParams(message string) *reply {
	return refusal(http.StatusOK, codeInvalidParams, apperr.Invalid, message)
}

// badParamsFor is badParams with a reason that a program can read. It says nothing that the caller did not send.
func badParamsFor(reason, message string) *reply {
	r := badParams(message)
	r.data = appendQuoted(append(appendKind(nil, r.kind), `,"reason":`...), reason)
	return r
}

func appendKind(dst []byte, kind string) []byte {
	return appendQuoted(append(dst, `"kind":`...), kind)
}

// edge is how a failure of a kind is answered. The status of the stateless era stands first: the older one has no status for
// a JSON-RPC error but 200, except where HTTP itself must act.
type edge struct {
	stateless, legacy int
	code              int
}

// edges is the one table from kinds to the wire.
//
//nolint:gochecknoglobals // constant table
var edges = map[apperr.Kind]edge{
	apperr.Internal:         {http.StatusInternalServerError, http.StatusOK, codeInternal},
	apperr.Invalid:          {http.StatusOK, http.StatusOK, codeInvalidParams},
	apperr.NotFound:         {http.StatusOK, http.StatusOK, codeInvalidParams},
	apperr.Conflict:         {http.StatusOK, http.StatusOK, codeInvalidParams},
	apperr.Stale:            {http.StatusOK, http.StatusOK, codeInvalidParams},
	apperr.Unauthenticated:  {http.StatusUnauthorized, http.StatusUnauthorized, codeInvalidRequest},
	apperr.Forbidden:        {http.StatusForbidden, http.StatusForbidden, codeInvalidRequest},
	apperr.MethodNotAllowed: {http.StatusMethodNotAllowed, http.StatusMethodNotAllowed, codeInvalidRequest},
	apperr.UnsupportedMedia: {http.StatusUnsupportedMediaType, http.StatusUnsupportedMediaType, codeInvalidRequest},
	apperr.TooLarge:         {http.StatusRequestEntityTooLarge, http.StatusRequestEntityTooLarge, codeInvalidRequest},
	apperr.RateLimited:      {http.StatusTooManyRequests, http.StatusTooManyRequests, codeInternal},
	apperr.Unavailable:      {http.StatusServiceUnavailable, http.StatusServiceUnavailable, codeInternal},
}

// failure answers an error of a dependency. Only what was written for a caller is shown; an error that is not an apperr.Error
// is internal, and its text goes to the log alone.
func (s *Server) failure(x *exchange, err error) *reply {
	if scope, ok := errors.AsType[*ScopeError](err); ok {
		return s.outOfScope(scope.Scopes)
	}
	e := classify(err)
	switch e.Kind {
	case apperr.Internal:
		return s.internal(x, err)
	case apperr.Unauthenticated:
		return s.challenge(e)
	case apperr.Forbidden:
		return s.outOfScope(e.Scopes)
	}
	row := edges[e.Kind]
	r := &reply{status: row.stateless, code: row.code, message: e.Public, kind: e.Kind.String(), cause: err}
	if !x.version.Stateless() {
		r.status = row.legacy
	}
	r.data = appendProblem(nil, e)
	if e.Kind == apperr.Unavailable || e.Kind == apperr.RateLimited {
		r.retry = e.RetryAfter
		if r.retry <= 0 {
			r.retry = s.outage
		}
	}
	return r
}

// classify names the kind of an error. Statuses that say something about the HTTP request can't come from behind the protocol:
// they would tell a proxy that the endpoint itself refused.
func classify(err error) *apperr.Error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return apperr.New(apperr.Unavailable, "", "The request was not finished.", "Repeat it.").Because(err)
	}
	e := apperr.From(err)
	switch e.Kind {
	case apperr.MethodNotAllowed, apperr.UnsupportedMedia, apperr.TooLarge:
		return apperr.From(errors.New(e.Kind.String()))
	}
	return e
}

// appendProblem renders kind, code and fixes of an error as members.
func appendProblem(dst []byte, e *apperr.Error) []byte {
	dst = appendKind(dst, e.Kind.String())
	if e.Code != "" {
		dst = appendQuoted(append(dst, `,"code":`...), e.Code)
	}
	for i, fix := range e.Fixes {
		if i == 0 {
			dst = append(dst, `,"fixes":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendQuoted(dst, fix)
	}
	if len(e.Fixes) > 0 {
		dst = append(dst, ']')
	}
	return dst
}

// internal answers with the request id and nothing else.
func (s *Server) internal(x *exchange, cause error) *reply {
	row := edges[apperr.Internal]
	r := refusal(row.stateless, row.code, apperr.Internal, "Internal error")
	if !x.version.Stateless() && x.frame.echo() != nil {
		r.status = row.legacy
	}
	r.data = appendQuoted([]byte(`"requestId":`), s.requestID(x))
	r.cause = cause
	return r
}

// challenge answers 401 (RFC 6750 section 3): no error code when no token was sent.
func (s *Server) challenge(e *apperr.Error) *reply {
	code := "invalid_token"
	if e.Code == "missing_token" {
		code = ""
	}
	r := gated(http.StatusUnauthorized, apperr.Unauthenticated, "Unauthorized")
	if e.Public != "" {
		r.message = e.Public
	}
	r.data = appendProblem(nil, e)
	return s.withChallenge(r, code, nil)
}

// outOfScope answers 403 naming every scope at once, so that one step-up is enough (RFC 6750 section 3.1).
func (s *Server) outOfScope(scopes []string) *reply {
	r := gated(http.StatusForbidden, apperr.Forbidden, "Insufficient scope")
	if len(scopes) == 0 {
		r.message = "Forbidden"
		return r
	}
	return s.withChallenge(r, "insufficient_scope", scopes)
}

// withChallenge adds the challenge's facts to the data as well: doors in front of a function rename WWW-Authenticate.
func (s *Server) withChallenge(r *reply, code string, scopes []string) *reply {
	header, facts := s.challenger.Challenge(code, scopes)
	r.challenge = header
	return withFacts(r, facts)
}

// withFacts adds members to the data, but none that are there already: a member twice has two readings.
func withFacts[T any](r *reply, facts map[string]T) *reply {
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		switch name {
		case "kind", "code", "fixes", "reason":
			continue
		}
		value, err := json.Marshal(facts[name])
		if err != nil {
			continue // it is a copy of what is said elsewhere
		}
		r.data = append(append(appendQuoted(append(r.data, ','), name), ':'), value...)
	}
	return r
}

// appendError renders the whole error response; without an id when none was read.
func (r *reply) appendError(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	if id != nil {
		dst = append(append(append(dst, `"id":`...), id...), ',')
	}
	dst = append(dst, `"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(r.code), 10)
	dst = appendQuoted(append(dst, `,"message":`...), r.message)
	if len(r.data) > 0 {
		dst = append(append(append(dst, `,"data":{`...), r.data...), '}')
	}
	return append(dst, "}}"...)
}

// seconds rounds up: a client that waits as told is never early.
func seconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d + time.Second - 1) / time.Second)
}
