package mcp

import "encoding/json"

// HeaderParams is what of a tool's arguments its calls repeat in Mcp-Param-* headers (MCP 2026-07-28, transports, "Custom Headers from
// Tool Parameters").
type HeaderParams struct {
	params []headerParam
}

// headerParam is one property with x-mcp-header.
type headerParam struct {
	key  string   // canonical header name
	path []string // names of properties from the root of the arguments
}

// ParseHeaderParams reads the x-mcp-header annotations of an input schema; nil when it has none. An error is a tool that conforming clients leave
// out of the list: a server calls this for each of its tools when it starts.
func ParseHeaderParams(inputSchema json.RawMessage) (*HeaderParams, error) {
	return nil, nil
}
