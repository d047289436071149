package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/mcp"
)

// person is the caller of the example.
type person struct{}

func (person) GrantID() string { return "grant_1" }

// guard knows one token.
type guard struct{}

func (guard) Authenticate(_ context.Context, h http.Header) (mcp.Caller, error) {
	if h.Get("Authorization") != "Bearer letmein" {
		return nil, apperr.New(apperr.Unauthenticated, "invalid_token", "The token does not verify.")
	}
	return person{}, nil
}

func (guard) Challenge(string, []string) (string, map[string]any) { return "Bearer", nil }

// free limits nobody; shared/ratelimit does.
type free struct{}

func (free) Take(context.Context, string) mcp.Limit { return mcp.Limit{Allowed: true} }
func (free) Peek(context.Context, string) mcp.Limit { return mcp.Limit{Allowed: true} }

// greeter offers one tool.
type greeter struct{}

func (greeter) ListTools(context.Context, *mcp.ListRequest) (mcp.ListResult, error) {
	return mcp.ListResult{Items: [][]byte{[]byte(`{"name":"greet","description":"Greets.","inputSchema":{"type":"object"}}`)}}, nil
}

func (greeter) CallTool(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
	if r.Name != "greet" {
		return nil, mcp.ErrUnknown
	}
	return &mcp.CallResult{JSON: []byte(`{"greeting":"hola"}`)}, nil
}

// A server with one tool, called by a client of the older era.
func Example() {
	server, err := mcp.New(mcp.Deps{Authenticator: guard{}, Challenger: guard{}, Limiter: free{}, Tools: greeter{}},
		mcp.Options{Name: "greeter", Version: "1.0.0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", server)
	mux.Handle("/mcp/", server)

	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet"}}`))
	r.Header.Set("Authorization", "Bearer letmein")
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)
	// Output: 200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"greeting\":\"hola\"}"}],"structuredContent":{"greeting":"hola"}}}
}
