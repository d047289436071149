// Command example is somebody else's API behind the protocol: one declaration is a route and a tool. README.md quotes it from
// the first declaration on; it knows nothing of mail.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/optool"
	"github.com/buzon-mail/buzon/shared/ratelimit"
	"github.com/buzon-mail/buzon/shared/rest"
)

type question struct {
	City string `query:"city" required:"true" doc:"Name of the city"`
}
type sky struct{ City, Over string }
type forecast struct{ Body sky }

func weather(_ context.Context, q *question) (*forecast, error) {
	return &forecast{Body: sky{q.City, "clear"}}, nil
}

type door struct{ caller *op.Caller } // one fixed token; yours would verify a signature

func (d door) Authenticate(_ context.Context, h http.Header) (*op.Caller, error) {
	if h.Get("Authorization") != "Bearer secret" {
		return nil, apperr.New(apperr.Unauthenticated, "missing_token", "Send a token.")
	}
	return d.caller, nil
}
func (door) Challenge(string, []string) (string, map[string]any) { return "Bearer", nil }

type mcpDoor struct{ door } // the same, as the protocol's room asks for it

func (d mcpDoor) Authenticate(ctx context.Context, h http.Header) (mcp.Caller, error) {
	return d.door.Authenticate(ctx, h)
}

func service() http.Handler {
	scopes := must(op.NewVocabulary([]op.ScopeInfo{{Name: "weather:read", Description: "Read the weather"}}))
	catalogue := must(op.NewCatalogue(scopes, []op.Operation{rest.Define(op.Spec{
		Name: "weather_get", Method: http.MethodGet, Path: "/weather", Title: "Weather", Description: "Tells the sky over a city.",
		Scope: "weather:read", Role: op.Viewer, Effect: op.Read, AnyTenant: true,
	}, weather)}))
	d := door{&op.Caller{Subject: "me", Grant: "one", Role: op.Viewer, Scopes: scopes.Parse("weather:read")}}
	routes := must(rest.New(catalogue, rest.Deps{Authenticator: d, Challenger: d, Logger: slog.Default(),
		RequestID: func(context.Context) string { return "" }}, rest.Options{BasePath: "/api"}))
	list := must(optool.Render(catalogue)) // at build time, in a program that starts often
	tools := must(optool.New(catalogue, routes, must(optool.ParseSegments(list)), optool.Options{BasePath: "/api"}))
	endpoint := must(mcp.New(mcp.Deps{Authenticator: mcpDoor{d}, Challenger: d, Tools: tools,
		Limiter: must(ratelimit.New(ratelimit.Options{PerMinute: 600, Now: time.Now}))}, mcp.Options{Name: "weather", Version: "1.0.0", LocalHosts: true}))
	mux := http.NewServeMux()
	mux.Handle("/mcp", endpoint)
	mux.Handle("/api/", routes)
	return mux
}

func main() { fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:8081", service())) } //nolint:gosec // an example

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // a mistake in the lines above
	}
	return v
}
