package mcp

import "errors"

var (
	// ErrUnknown is a tool, prompt, resource or cursor that does not exist for this caller.
	ErrUnknown = errors.New("mcp: unknown")
	// ErrAnswer is an answer of the client that is not one to the question: -32602. The readers of Input return it.
	ErrAnswer = errors.New("mcp: malformed answer")
	// ErrProgress is progress that does not increase, is no number, or comes after the request was answered.
	ErrProgress = errors.New("mcp: progress must increase while the request runs")
)

// ParamsError is a fault in a request's own params that the handler found: -32602 with a reason that programs can read.
type ParamsError struct {
	Message string            // for people and models
	Reason  string            // data.reason: lower-case words with underscores; empty: none
	Facts   map[string]string // further members of data; names are the handler's own
}

// Error is for logs.
func (e *ParamsError) Error() string { return "mcp: invalid params: " + e.Reason }
