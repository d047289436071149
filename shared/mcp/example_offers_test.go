package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/seal"
)

// library offers a resource, a family of resources and a prompt.
type library struct{}

func (library) ListResources(_ context.Context, r *mcp.ListRequest) (mcp.Page[mcp.Resource], error) {
	all := []mcp.Resource{{URI: "lib://hours", Name: "hours", Title: "Opening hours", MIMEType: "text/plain"}}
	from, to, next, err := r.Page(len(all))
	return mcp.Page[mcp.Resource]{Items: all[from:to], Next: next}, err
}

func (library) ListTemplates(context.Context, *mcp.ListRequest) (mcp.Page[mcp.ResourceTemplate], error) {
	return mcp.Page[mcp.ResourceTemplate]{Items: []mcp.ResourceTemplate{{URITemplate: "lib://books/{isbn}", Name: "book"}}}, nil
}

func (library) ReadResource(_ context.Context, r *mcp.ReadRequest) (*mcp.ReadResult, error) {
	if r.URI != "lib://hours" {
		return nil, mcp.ErrUnknown
	}
	return &mcp.ReadResult{Contents: []mcp.ResourceContents{{URI: r.URI, MIMEType: "text/plain", Text: "9 to 5"}}}, nil
}

func (library) ListPrompts(context.Context, *mcp.ListRequest) (mcp.Page[mcp.Prompt], error) {
	return mcp.Page[mcp.Prompt]{Items: []mcp.Prompt{{Name: "recommend", Arguments: []mcp.PromptArgument{{Name: "topic", Required: true}}}}}, nil
}

func (library) GetPrompt(_ context.Context, r *mcp.PromptRequest) (*mcp.PromptResult, error) {
	switch {
	case r.Name != "recommend":
		return nil, mcp.ErrUnknown
	case r.Arguments["topic"] == "":
		return nil, &mcp.ParamsError{Message: "topic is missing", Reason: "argument_missing"}
	}
	return &mcp.PromptResult{Messages: []mcp.Message{{Role: "user", Content: mcp.Text("Recommend a book on " + r.Arguments["topic"] + ".")}}}, nil
}

// lender asks before it acts.
type lender struct{ greeter }

func (lender) CallTool(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
	form := mcp.Form{{Name: "sure", Type: mcp.BooleanField, Required: true}}
	said, err := r.Input.Form("sure", form)
	switch {
	case err != nil:
		return nil, err
	case said.Action == mcp.Missing || !r.Input.Verified():
		return nil, &mcp.Ask{Questions: []mcp.Question{mcp.AskForm("sure", "Really borrow it?", form)}, Reason: "confirmation_required"}
	case said.Bool("sure"):
		return &mcp.CallResult{JSON: []byte(`{"lent":true}`)}, nil
	}
	return &mcp.CallResult{JSON: []byte(`{"lent":false}`), IsError: true}, nil
}

// A server with a tool that asks, resources and a prompt, talked to in both eras. guard, free and greeter are those of the
// first example. The tool is called without an answer and asks for one; the client calls again with it, and with the
// requestState that came with the question.
func Example_offers() {
	keys, err := seal.New([]seal.Root{{ID: "1", Secret: []byte("32 bytes from a secret store ....")}}, seal.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := mcp.New(mcp.Deps{
		Authenticator: guard{}, Challenger: guard{}, Limiter: free{}, Tools: lender{},
		Resources: library{}, Prompts: library{}, Sealer: keys.Purpose("mcp"),
	}, mcp.Options{Name: "library", Version: "1.0.0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	send := func(body string, headers ...string) {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer letmein")
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.Split(w.Body.String(), `,"requestState"`)[0])
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"lib://hours"}}`)
	send(`{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"recommend","arguments":{"topic":"owls"}}}`)
	send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"borrow","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "borrow")
	// Output:
	// 200 {"jsonrpc":"2.0","id":1,"result":{"contents":[{"uri":"lib://hours","mimeType":"text/plain","text":"9 to 5"}]}}
	// 200 {"jsonrpc":"2.0","id":2,"result":{"messages":[{"role":"user","content":{"type":"text","text":"Recommend a book on owls."}}]}}
	// 200 {"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","inputRequests":{"sure":{"method":"elicitation/create","params":{"mode":"form","message":"Really borrow it?","requestedSchema":{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}}}}
}
