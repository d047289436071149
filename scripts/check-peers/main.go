// Command check-peers runs buzon's check against servers made with other libraries, in one process over loopback, and prints
// what did not pass as the table of README.md. It is a module of its own, so that peers never enter the service's go.mod.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	mark3labs "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/buzon-mail/buzon/shared/mcpcheck"
)

// peer is one server.
type peer struct {
	name string
	new  func() http.Handler
}

// peers are the servers as their own examples make them: one tool that reads, no authorization.
func peers() []peer {
	return []peer{
		{"go-sdk v1.8.0, stateless, JSON", func() http.Handler {
			return official(&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
		}},
		{"go-sdk v1.8.0, as it comes", func() http.Handler { return official(nil) }},
		{"mcp-go v1.2.1, stateless", func() http.Handler { return markThree(server.WithStateLess(true)) }},
		{"mcp-go v1.2.1, as it comes", func() http.Handler { return markThree() }},
	}
}

func official(o *mcp.StreamableHTTPOptions) http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "go-sdk", Version: "1.8.0"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "look", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "seen"}}}, nil, nil
		})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, o)
}

func markThree(o ...server.StreamableHTTPOption) http.Handler {
	s := server.NewMCPServer("mcp-go", "1.2.1", server.WithToolCapabilities(false))
	s.AddTool(mark3labs.NewTool("look", mark3labs.WithReadOnlyHintAnnotation(true)),
		func(context.Context, mark3labs.CallToolRequest) (*mark3labs.CallToolResult, error) {
			return mark3labs.NewToolResultText("seen"), nil
		})
	return server.NewStreamableHTTPServer(s, o...)
}

// try checks one peer.
func try(ctx context.Context, p peer) (*mcpcheck.Report, error) {
	s := httptest.NewServer(p.new())
	defer s.Close()
	return mcpcheck.Check(ctx, mcpcheck.Options{URL: s.URL + "/mcp", Call: "look"})
}

// table writes what did not pass.
func table(ctx context.Context, w io.Writer) error {
	var b strings.Builder
	for _, p := range peers() {
		report, err := try(ctx, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		s := report.Summary
		fmt.Fprintf(&b, "### %s\n\n%d passed, %d warned, %d failed, %d skipped, %d requests\n\n| check | | sent | got |\n|---|---|---|---|\n",
			p.name, s.Pass, s.Warn, s.Fail, s.Skipped, report.Requests)
		for _, n := range report.Results {
			if n.Status == mcpcheck.Fail || n.Status == mcpcheck.Warn {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", n.ID, n.Status, n.Sent, strings.ReplaceAll(n.Got, "|", `\|`))
			}
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func main() {
	if err := table(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
