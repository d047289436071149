package main

import (
	"context"
	"encoding/json"
	"net/http"

	mark3labs "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is one tool of our own list, as the peers serve it too.
type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// arguments is the input of the typed tools: about what emails_list takes.
type arguments struct {
	Inbox   string   `json:"inbox,omitempty" jsonschema:"id or slug of one inbox"`
	Status  string   `json:"status,omitempty" jsonschema:"only this status"`
	Query   string   `json:"q,omitempty" jsonschema:"text in subject, snippet or addresses"`
	Labels  []string `json:"labels,omitempty" jsonschema:"only with these labels"`
	Handled bool     `json:"handled,omitempty" jsonschema:"only handled"`
	Limit   int      `json:"limit,omitempty" jsonschema:"how many to return at most"`
}

type answered struct {
	Data map[string]any `json:"data"`
	Meta map[string]any `json:"meta"`
}

// officialSDK serves the tools with the official SDK; every call returns the same text. No API, no token, no rate limit.
func officialSDK(tools []tool, reply string, typed bool) (http.Handler, error) {
	s := mcp.NewServer(&mcp.Implementation{Name: "peer", Version: "1"}, nil)
	var structured answered
	if err := json.Unmarshal([]byte(reply), &structured); err != nil {
		return nil, err
	}
	for _, t := range tools {
		if typed {
			mcp.AddTool(s, &mcp.Tool{Name: t.Name, Description: t.Description},
				func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, answered, error) {
					return nil, structured, nil
				})
			continue
		}
		s.AddTool(&mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: reply}}}, nil
			})
	}
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}), nil
}

// markThree serves the same with mcp-go.
func markThree(tools []tool, reply string, typed bool) (http.Handler, error) {
	s := server.NewMCPServer("peer", "1", server.WithToolCapabilities(false))
	var structured answered
	if err := json.Unmarshal([]byte(reply), &structured); err != nil {
		return nil, err
	}
	for _, t := range tools {
		handler := func(context.Context, mark3labs.CallToolRequest) (*mark3labs.CallToolResult, error) {
			return mark3labs.NewToolResultText(reply), nil
		}
		if typed {
			handler = mark3labs.NewStructuredToolHandler(
				func(context.Context, mark3labs.CallToolRequest, arguments) (answered, error) { return structured, nil })
		}
		s.AddTool(mark3labs.NewToolWithRawSchema(t.Name, t.Description, t.InputSchema), handler)
	}
	return server.NewStreamableHTTPServer(s, server.WithStateLess(true)), nil
}
