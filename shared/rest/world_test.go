package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

const (
	parcelID = "parcel_01J00000000000000000000000"
	workA    = "ws_01J0000000000000000000000A"
	workB    = "ws_01J0000000000000000000000B"
)

// Page is embedded by lists.
type Page struct {
	Cursor string `query:"cursor" maxLength:"200" doc:"Where to go on"`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"25"`
}

type listIn struct {
	Page
	Status string    `query:"status" enum:"open,closed"`
	Tags   []string  `query:"tag"`
	Marks  []string  `query:"mark,explode"`
	Heavy  bool      `query:"heavy"`
	After  time.Time `query:"after"`
}

type item struct {
	ID string `json:"id"`
}

type listOut struct {
	Body struct {
		Data []item `json:"data"`
		Echo string `json:"echo"`
	}
}

type getIn struct {
	ID string `path:"id"`
}

type getOut struct {
	ETag string `header:"ETag"`
	Body struct {
		Data item `json:"data"`
	}
}

type part struct {
	Name  string `json:"name" minLength:"1"`
	Count int    `json:"count,omitempty" maximum:"5"`
	Bytes int64  `json:"bytes,omitempty" maximum:"268435456"`
}

type putIn struct {
	Body struct {
		Slug  string            `json:"slug" maxLength:"10"`
		Parts []part            `json:"parts,omitempty"`
		Main  *part             `json:"main,omitempty"`
		Extra map[string]string `json:"extra,omitempty"`
		Free  json.RawMessage   `json:"free,omitempty"`
	}
}

type putOut struct {
	Status int
	Body   struct {
		Data    item `json:"data"`
		Created bool `json:"created"`
	}
}

type world struct {
	api    *rest.API
	log    *bytes.Buffer
	calls  atomic.Int64
	fail   error // what the handlers return
	panics any   // what they panic with
	token  map[string]*op.Caller
	seen   atomic.Pointer[op.Workspace]
	input  atomic.Pointer[listIn]
}

func (w *world) run(ctx context.Context) error {
	w.calls.Add(1)
	t := op.TenantFrom(ctx)
	w.seen.Store(&t)
	if w.panics != nil {
		panic(w.panics)
	}
	return w.fail
}

func (w *world) catalogue(t testing.TB) *op.Catalogue {
	t.Helper()
	v, err := op.NewVocabulary([]op.ScopeInfo{{Name: "parcels:read"}, {Name: "parcels:write"}})
	if err != nil {
		t.Fatal(err)
	}
	spec := func(name, method, path string, effect op.Effect, scope string, role op.Role) op.Spec {
		return op.Spec{Name: name, Method: method, Path: path, Title: name, Description: name + ".", Effect: effect,
			Scope: scope, Role: role}
	}
	whoami := spec("session_get", "GET", "/session", op.Read, "", op.Viewer)
	whoami.AnyTenant = true
	ship := spec("parcels_ship", "POST", "/parcels/{id}/ship", op.Destructive, "parcels:write", op.Operator)
	ship.Outward, ship.Status = true, 202
	remove := spec("parcels_delete", "DELETE", "/parcels/{id}", op.Destructive, "parcels:write", op.Admin)
	remove.Status, remove.Errors = 204, []apperr.Kind{apperr.Conflict}
	question := func(_ context.Context, in *getIn) (*op.Question, error) {
		if in.ID == "free" {
			return nil, w.fail
		}
		return &op.Question{Text: "Do it to {}?", Values: []string{in.ID}, Targets: map[string]string{in.ID: "1"}}, w.fail
	}
	c, err := op.NewCatalogue(v, []op.Operation{
		rest.Define(whoami, func(ctx context.Context, _ *struct{}) (*getOut, error) {
			out := &getOut{}
			out.Body.Data.ID = op.CallerFrom(ctx).Subject + " " + string(op.SurfaceFrom(ctx))
			return out, w.run(ctx)
		}),
		rest.Define(spec("parcels_list", "GET", "/parcels", op.Read, "parcels:read", op.Viewer),
			func(ctx context.Context, in *listIn) (*listOut, error) {
				w.input.Store(in)
				out := &listOut{}
				out.Body.Echo = in.Status + "|" + strings.Join(in.Tags, "+") + "|" + strings.Join(in.Marks, "+")
				return out, w.run(ctx)
			}),
		rest.Define(spec("parcels_get", "GET", "/parcels/{id}", op.Read, "parcels:read", op.Viewer),
			func(ctx context.Context, in *getIn) (*getOut, error) {
				out := &getOut{ETag: `"1"`}
				out.Body.Data.ID = in.ID
				return out, w.run(ctx)
			}),
		rest.Define(spec("parcels_upsert", "PUT", "/parcels", op.Write, "parcels:write", op.Operator),
			func(ctx context.Context, in *putIn) (*putOut, error) {
				out := &putOut{Status: 201}
				out.Body.Data.ID, out.Body.Created = in.Body.Slug+"<&>", true
				return out, w.run(ctx)
			}),
		rest.DefineDestructive(ship, question, func(ctx context.Context, in *getIn) (*getOut, error) {
			return &getOut{}, w.run(ctx)
		}),
		rest.DefineDestructive(remove, question, func(ctx context.Context, in *getIn) (*struct{}, error) {
			return nil, w.run(ctx)
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Authenticate knows the tokens of the world.
func (w *world) Authenticate(_ context.Context, h http.Header) (*op.Caller, error) {
	token, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	switch {
	case !ok:
		return nil, apperr.New(apperr.Unauthenticated, "missing_token", "No token.")
	case token == "outage":
		return nil, errors.New("s3cr3t-connection-string")
	case w.token[token] == nil:
		return nil, apperr.New(apperr.Unauthenticated, "", "The token does not verify.")
	}
	return w.token[token], nil
}

// Challenge writes what it was given.
func (w *world) Challenge(code string, scopes []string) (string, map[string]any) {
	return `Bearer error="` + code + `", scope="` + strings.Join(scopes, " ") + `"`, nil
}

// gate is a limiter that can fail.
type gate struct {
	limiter
	broken error
}

func (g *gate) Take(ctx context.Context, key string) (rest.Limit, error) {
	if g.broken != nil {
		return rest.Limit{}, g.broken
	}
	return g.limiter.Take(ctx, key), nil
}

type limiter struct{ left atomic.Int64 }

func (l *limiter) Take(context.Context, string) rest.Limit {
	n := l.left.Add(-1)
	return rest.Limit{Allowed: n >= 0, Limit: 3, Remaining: int(n), Reset: 1500 * time.Millisecond, RetryAfter: 2100 * time.Millisecond}
}

func newWorld(t testing.TB, adjust ...func(*rest.Deps, *rest.Options)) *world {
	t.Helper()
	w := &world{log: &bytes.Buffer{}}
	c := w.catalogue(t)
	all := c.Vocabulary.Parse("parcels:write")
	read := c.Vocabulary.Parse("parcels:read")
	a := op.Workspace{ID: workA, Slug: "a", Role: op.Operator}
	b := op.Workspace{ID: workB, Slug: "b", Role: op.Viewer}
	w.token = map[string]*op.Caller{
		"operator": {Subject: "user_o", Grant: "g1", Role: op.Operator, Scopes: all, Workspaces: []op.Workspace{a}},
		"reader":   {Subject: "user_r", Grant: "g2", Role: op.Operator, Scopes: read, Workspaces: []op.Workspace{a}},
		"two":      {Subject: "user_t", Grant: "g3", Role: op.Operator, Scopes: all, Workspaces: []op.Workspace{a, b}},
		"default":  {Subject: "user_d", Grant: "g4", Role: op.Operator, Scopes: all, Workspaces: []op.Workspace{a, b}, Default: workB},
		"nobody":   {Subject: "user_n", Grant: "g5", Role: op.NoRole, Scopes: all},
	}
	deps := rest.Deps{Authenticator: w, Challenger: w, Logger: slog.New(slog.NewTextHandler(w.log, nil)),
		RequestID: func(context.Context) string { return "req_1" }}
	options := rest.Options{BasePath: "/api/v1", PublicOrigin: "https://api.example", AllowedOrigins: []string{"https://app.example"},
		OpenAPI: []byte(`{"openapi":"3.1.0"}`), ChallengeHeader: "X-Challenge"}
	for _, f := range adjust {
		f(&deps, &options)
	}
	api, err := rest.New(c, deps, options)
	if err != nil {
		t.Fatal(err)
	}
	w.api = api
	return w
}

func (w *world) do(method, target, token, body string, header ...string) *httptest.ResponseRecorder {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, "http://api.example/", reader)
	path, query, _ := strings.Cut(target, "?")
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = path, "", query
	if strings.Contains(path, "%") {
		r = httptest.NewRequest(method, "http://api.example"+target, reader)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] == "" {
			r.Header.Del(header[i])
			continue
		}
		r.Header.Add(header[i], header[i+1])
	}
	out := httptest.NewRecorder()
	w.api.ServeHTTP(out, r)
	return out
}

func problem(t *testing.T, r *httptest.ResponseRecorder) rest.Problem {
	t.Helper()
	var p rest.Problem
	if err := json.Unmarshal(r.Body.Bytes(), &p); err != nil {
		t.Fatalf("body %q: %v", r.Body, err)
	}
	if got := r.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type = %q", got)
	}
	if p.Status != r.Code || p.Type != "about:blank" || p.Title != http.StatusText(r.Code) || p.Kind == "" || p.Code == "" || p.RequestID != "req_1" {
		t.Errorf("status %d, problem %+v", r.Code, p)
	}
	return p
}
