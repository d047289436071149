package mcp

import "errors"

// ErrUnknown is a tool, prompt, resource or cursor that does not exist for this caller.
var ErrUnknown = errors.New("mcp: unknown")
