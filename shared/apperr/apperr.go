// Package apperr is the one vocabulary of failures: a closed set of kinds, a finer code, text that a caller may read and
// what the caller can do next. Every edge (REST, MCP, queue) maps kinds through one table of its own; nothing here knows
// those edges. It depends on the standard library only.
package apperr

import (
	"errors"
	"time"
)

// Kind is the class of a failure. The set is closed: every edge has one table that ranges over Kinds.
type Kind uint8

// The kinds. Internal is the zero value, so that a forgotten kind never leaks text.
const (
	Internal         Kind = iota // our fault; callers see fixed text and a request id
	Invalid                      // the input is at fault
	Unauthenticated              // no caller, or one that does not verify
	Forbidden                    // a caller without the scope or role
	NotFound                     // absent, or another tenant's: the two are never told apart
	Conflict                     // the current state refuses the act
	Stale                        // the version that the caller named is no longer the current one
	MethodNotAllowed             // the resource exists, the method does not
	UnsupportedMedia             // the body is not of a type we read
	TooLarge                     // over a size limit
	RateLimited                  // over a rate; RetryAfter says when
	Unavailable                  // a dependency is down; RetryAfter says when
	kinds                        // the number of kinds
)

//nolint:gochecknoglobals // constant table
var names = [kinds]string{
	"internal", "invalid", "unauthenticated", "forbidden", "not_found", "conflict", "stale",
	"method_not_allowed", "unsupported_media", "too_large", "rate_limited", "unavailable",
}

// String is the kind's name on every wire.
func (k Kind) String() string {
	if k >= kinds {
		return names[Internal]
	}
	return names[k]
}

// Kinds lists every kind, for the tests that prove that a table is complete.
func Kinds() []Kind {
	all := make([]Kind, 0, kinds)
	for k := range kinds {
		all = append(all, k)
	}
	return all
}

// Detail locates one fault of an input.
type Detail struct {
	Location string `json:"location"` // where: query.limit, body.slug, arguments.status
	Message  string `json:"message"`  // what is wrong and what is expected; never echoes a secret
}

// Error is a failure that a caller may read. Public and Fixes are shown, the cause is only logged.
type Error struct {
	Kind       Kind
	Code       string        // finer than the kind (workspace_required, deleted_exists); empty means the kind's name
	Public     string        // one sentence for the caller
	Fixes      []string      // what the caller can do next, in the order to try; models read these
	Details    []Detail      // where the input is at fault
	Scopes     []string      // every scope the operation needs, when the kind is Forbidden for want of scope
	RetryAfter time.Duration // for RateLimited and Unavailable
	cause      error
}

// New makes an error that a caller may read.
func New(kind Kind, code, public string, fixes ...string) *Error {
	return &Error{Kind: kind, Code: code, Public: public, Fixes: fixes}
}

// Because returns a copy of e with the private cause attached.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// At returns a copy of e that also locates a fault.
func (e *Error) At(location, message string) *Error {
	c := *e
	c.Details = append(c.Details[:len(c.Details):len(c.Details)], Detail{location, message})
	return &c
}

// Error is for logs: it may carry private text.
func (e *Error) Error() string {
	s := e.Kind.String()
	if e.Code != "" {
		s += "/" + e.Code
	}
	s += ": " + e.Public
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

// Unwrap returns the private cause.
func (e *Error) Unwrap() error { return e.cause }

// Name is the code on the wire: Code, or the kind's name.
func (e *Error) Name() string {
	if e.Code != "" {
		return e.Code
	}
	return e.Kind.String()
}

// From finds the Error in err's chain. Any other error becomes an Internal one whose public text is fixed, so that the
// text of an unexpected error can't reach a caller.
func From(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: Internal, Public: "Something went wrong on our side.", cause: err}
}

// Is reports whether err is an Error of this kind.
func Is(err error, kind Kind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == kind
}
