package optool_test

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

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/optool"
	"github.com/buzon-mail/buzon/shared/rest"
)

const (
	noteID = "note_01J00000000000000000000000"
	workA  = "ws_01J0000000000000000000000A"
	workB  = "ws_01J0000000000000000000000B"
)

type echoIn struct {
	Body struct {
		Text string `json:"text" minLength:"1" maxLength:"1000" doc:"What to send back" example:"hello"`
	}
}

type echoOut struct {
	Body struct {
		Data struct {
			Text string `json:"text"`
		} `json:"data"`
	}
}

// Page is embedded by lists.
type Page struct {
	Cursor string `query:"cursor" maxLength:"200" doc:"Where to go on"`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"25" doc:"How many"`
}

type listIn struct {
	Page
	Status []string `query:"status" enum:"open,closed" doc:"Only these"`
	Word   string   `query:"q" maxLength:"100"`
	Marks  []string `query:"mark,explode"`
	Open   bool     `query:"open"`
	Weight float64  `query:"weight"`
}

type untrusted struct {
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

type note struct {
	ID        string    `json:"id"`
	Status    string    `json:"status"`
	Labels    []string  `json:"labels"`
	Untrusted untrusted `json:"untrusted"`
}

type listOut struct {
	Body struct {
		Data []note `json:"data"`
		Meta struct {
			Next *string `json:"next_cursor"`
			Echo string  `json:"echo"`
		} `json:"meta"`
	}
}

type getIn struct {
	ID      string `path:"id" doc:"Id or slug"`
	Include string `query:"include" enum:"text,html"`
}

type updateIn struct {
	ID    string `path:"id"`
	IfTag string `header:"If-Match"`
	Force bool   `query:"force"`
	Body  struct {
		Labels []string `json:"labels,omitempty" maxItems:"3"`
		Rank   *int     `json:"rank,omitempty" minimum:"1" nullable:"true"`
	}
}

type condition struct {
	Field string   `json:"field" enum:"from,to"`
	Words []string `json:"words" maxItems:"5"`
	Inner *inner   `json:"inner,omitempty"`
}

type inner struct {
	Depth int `json:"depth" maximum:"9"`
}

type ruleIn struct {
	Body struct {
		Slug       string      `json:"slug" maxLength:"63"`
		Conditions []condition `json:"conditions" minItems:"1"`
		Enabled    bool        `json:"enabled,omitempty"`
	}
}

type ruleOut struct {
	Status int
	Body   struct {
		Data    json.RawMessage `json:"data"`
		Created bool            `json:"created"`
	}
}

type world struct {
	calls   atomic.Int64
	shelf   *shelf
	log     *bytes.Buffer
	fail    error
	raw     json.RawMessage // reply of rules_upsert
	api     *rest.API
	tools   *optool.Tools
	names   *op.Vocabulary
	surface atomic.Value
	list    []optool.Segment
}

func (w *world) run(ctx context.Context) error {
	w.calls.Add(1)
	w.surface.Store(op.SurfaceFrom(ctx))
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.fail
}

func (w *world) operations() []op.Operation {
	spec := func(name, method, path string, effect op.Effect, scope string, role op.Role) op.Spec {
		return op.Spec{Name: name, Method: method, Path: path, Title: "Title of " + name, Description: name + " <does> it.",
			Effect: effect, Scope: scope, Role: role}
	}
	echo := spec("echo_send", "POST", "/echoes", op.Write, "", op.Viewer)
	echo.AnyTenant, echo.Idempotent = true, true
	remove := spec("notes_delete", "DELETE", "/notes/{id}", op.Destructive, "notes:write", op.Operator)
	remove.Idempotent, remove.Status = true, 204
	touch := spec("notes_touch", "POST", "/notes/{id}/touch", op.Write, "notes:write", op.Operator)
	touch.Status = 204
	return []op.Operation{
		rest.Define(echo, func(ctx context.Context, in *echoIn) (*echoOut, error) {
			out := &echoOut{}
			out.Body.Data.Text = in.Body.Text
			return out, w.run(ctx)
		}),
		rest.Define(spec("notes_list", "GET", "/notes", op.Read, "notes:read", op.Viewer), w.listNotes),
		rest.Define(spec("notes_get", "GET", "/notes/{id}", op.Read, "notes:read", op.Viewer),
			func(ctx context.Context, in *getIn) (*echoOut, error) {
				out := &echoOut{}
				out.Body.Data.Text = in.ID + " " + in.Include + " " + op.TenantFrom(ctx).ID
				return out, w.run(ctx)
			}),
		rest.Define(spec("notes_update", "PATCH", "/notes/{id}", op.Write, "notes:write", op.Operator),
			func(ctx context.Context, in *updateIn) (*echoOut, error) {
				text, err := json.Marshal(in)
				if err != nil {
					return nil, err
				}
				out := &echoOut{}
				out.Body.Data.Text = string(text)
				return out, w.run(ctx)
			}),
		rest.DefineDestructive(remove, w.shelf.ask, w.shelf.remove),
		rest.Define(touch, func(ctx context.Context, _ *struct {
			ID string `path:"id"`
		},
		) (*struct{}, error) {
			return nil, w.run(ctx)
		}),
		rest.Define(spec("rules_upsert", "PUT", "/rules", op.Write, "rules:write", op.Admin),
			func(ctx context.Context, in *ruleIn) (*ruleOut, error) {
				out := &ruleOut{Status: 201}
				out.Body.Data, out.Body.Created = w.raw, in.Body.Enabled
				return out, w.run(ctx)
			}),
	}
}

func (w *world) listNotes(ctx context.Context, in *listIn) (*listOut, error) {
	out := &listOut{}
	for range 2 {
		out.Body.Data = append(out.Body.Data, note{ID: noteID, Status: "open", Labels: []string{"a", "b"},
			Untrusted: untrusted{"Ignore \"untrusted\" <all>", strings.Repeat("Lorem ipsum dolor sit amet. ", 12)}})
	}
	text, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	out.Body.Meta.Echo = string(text)
	return out, w.run(ctx)
}

// Authenticate finds nobody: the tests bring verified callers.
func (w *world) Authenticate(_ context.Context, h http.Header) (*op.Caller, error) {
	if h.Get("Authorization") == "Bearer admin" {
		return w.caller("notes:write rules:write", op.Admin), nil
	}
	return nil, apperr.New(apperr.Unauthenticated, "missing_token", "No token.")
}

// Challenge is constant.
func (w *world) Challenge(string, []string) (string, map[string]any) { return "Bearer", nil }

func (w *world) caller(scopes string, role op.Role) *op.Caller {
	return &op.Caller{Subject: "user_1", Grant: "grant_1", Role: role, Scopes: w.names.Parse(scopes),
		Workspaces: []op.Workspace{{ID: workA, Slug: "a", Role: role}}}
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{log: &bytes.Buffer{}, raw: json.RawMessage(`{}`)}
	w.shelf = &shelf{world: w, version: 1, used: map[string]string{}}
	var err error
	if w.names, err = op.NewVocabulary([]op.ScopeInfo{{Name: "notes:read"}, {Name: "notes:write"}, {Name: "rules:write"}, {Name: "other:read"}}); err != nil {
		t.Fatal(err)
	}
	c, err := op.NewCatalogue(w.names, w.operations())
	if err != nil {
		t.Fatal(err)
	}
	w.api, err = rest.New(c, rest.Deps{Authenticator: w, Challenger: w, Logger: slog.New(slog.NewTextHandler(w.log, nil)),
		RequestID: func(context.Context) string { return "req_1" }}, rest.Options{BasePath: "/api/v1"})
	if err != nil {
		t.Fatal(err)
	}
	data, err := optool.Render(c)
	if err != nil {
		t.Fatal(err)
	}
	if w.list, err = optool.ParseSegments(data); err != nil {
		t.Fatal(err)
	}
	w.tools, err = optool.New(c, w.api, w.list, optool.Options{UntrustedMetaKey: "example/untrusted", BasePath: "/api/v1"})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// result is a copy of what a tool answered.
type result struct {
	json, meta string
	isError    bool
}

func (w *world) call(t testing.TB, caller *op.Caller, name, arguments string, h http.Header) (result, error) {
	t.Helper()
	r, err := w.tools.CallTool(t.Context(), &mcp.CallRequest{Caller: caller, Version: mcp.V20260728, Name: name,
		Arguments: json.RawMessage(arguments), Header: h})
	if err != nil {
		return result{}, err
	}
	out := result{string(r.JSON), string(r.Meta), r.IsError}
	if r.Released != nil {
		r.Released()
	}
	if !json.Valid([]byte(out.json)) {
		t.Errorf("%s answered what is no JSON: %s", name, out.json)
	}
	return out, nil
}

func (w *world) must(t testing.TB, name, arguments string) result {
	t.Helper()
	r, err := w.call(t, w.caller("notes:write rules:write", op.Admin), name, arguments, nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

func (w *world) http(method, target, body string) *httptest.ResponseRecorder {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, reader)
	r.Header.Set("Authorization", "Bearer admin")
	r.Header.Set("Content-Type", "application/json")
	out := httptest.NewRecorder()
	w.api.ServeHTTP(out, r)
	return out
}

var errSecret = errors.New("s3cr3t-connection-string")
