package optool_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/optool"
	"github.com/buzon-mail/buzon/shared/rest"
)

// door verifies one fixed token; a program would verify a signature.
type door struct{ caller *op.Caller }

// Authenticate implements rest.Authenticator.
func (d door) Authenticate(_ context.Context, h http.Header) (*op.Caller, error) {
	if h.Get("Authorization") != "Bearer secret" {
		return nil, apperr.New(apperr.Unauthenticated, "missing_token", "Send a token.")
	}
	return d.caller, nil
}

// Challenge implements rest.Challenger.
func (door) Challenge(string, []string) (string, map[string]any) { return "Bearer", nil }

type greetInput struct {
	Name string `path:"name" doc:"Whom to greet"`
	Loud bool   `query:"loud" doc:"In capitals"`
}

type greetOutput struct {
	Body struct {
		Data string `json:"data"`
	}
}

func greet(_ context.Context, in *greetInput) (*greetOutput, error) {
	out := &greetOutput{}
	out.Body.Data = "hello " + in.Name
	if in.Loud {
		out.Body.Data += "!"
	}
	return out, nil
}

// Your own API behind it: one declaration is a route and a tool.
func Example() {
	scopes, err := op.NewVocabulary([]op.ScopeInfo{{Name: "greetings:read", Description: "Be greeted"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	catalogue, err := op.NewCatalogue(scopes, []op.Operation{
		rest.Define(op.Spec{
			Name: "greetings_get", Method: http.MethodGet, Path: "/greetings/{name}", Title: "Greet",
			Description: "Greets somebody by name.", Scope: "greetings:read", Role: op.Viewer, Effect: op.Read, AnyTenant: true,
		}, greet),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	caller := &op.Caller{Subject: "user_1", Role: op.Viewer, Scopes: scopes.Parse("greetings:read")}
	api, err := rest.New(catalogue, rest.Deps{
		Authenticator: door{caller}, Challenger: door{}, Logger: slog.Default(),
		RequestID: func(context.Context) string { return "" },
	}, rest.Options{BasePath: "/api"})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := httptest.NewRequest(http.MethodGet, "/api/greetings/ada?loud=true", nil)
	request.Header.Set("Authorization", "Bearer secret")
	reply := httptest.NewRecorder()
	api.ServeHTTP(reply, request)
	fmt.Println("route:", reply.Code, reply.Body)

	rendered, err := optool.Render(catalogue) // at build time; embed the bytes
	if err != nil {
		fmt.Println(err)
		return
	}
	segments, err := optool.ParseSegments(rendered)
	if err != nil {
		fmt.Println(err)
		return
	}
	tools, err := optool.New(catalogue, api, segments, optool.Options{BasePath: "/api"})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := tools.CallTool(context.Background(), &mcp.CallRequest{
		Caller: caller, Version: mcp.V20260728, Name: "greetings_get", Arguments: []byte(`{"name":"ada","loud":true}`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("tool: ", string(result.JSON))
	result.Released()

	list, err := tools.ListTools(context.Background(), &mcp.ListRequest{Caller: caller, Version: mcp.V20241105})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(bytes.Join(list.Items, nil)))
	// Output:
	// route: 200 {"data":"hello ada!"}
	// tool:  {"data":"hello ada!"}
	// {"name":"greetings_get","description":"Greets somebody by name.","inputSchema":{"type":"object","properties":{"name":{"description":"Whom to greet","type":"string"},"loud":{"description":"In capitals","type":"boolean"}},"required":["name"],"additionalProperties":false}}
}
