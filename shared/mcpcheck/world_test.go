package mcpcheck_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/mcpcheck"
	"github.com/buzon-mail/buzon/shared/oauth"
)

const goodToken = "good-token-of-the-test"

type person struct{}

func (person) GrantID() string { return "grant" }

// door knows one token, and leads to the resource's metadata.
type door struct{ *oauth.Resource }

func (door) Authenticate(_ context.Context, h http.Header) (mcp.Caller, error) {
	switch h.Get("Authorization") {
	case "Bearer " + goodToken:
		return person{}, nil
	case "":
		return nil, apperr.New(apperr.Unauthenticated, "missing_token", "No token.")
	}
	return nil, apperr.New(apperr.Unauthenticated, "invalid_token", "Not a token.")
}

type unlimited struct{}

func (unlimited) Take(context.Context, string) mcp.Limit { return mcp.Limit{Allowed: true} }
func (unlimited) Peek(context.Context, string) mcp.Limit { return mcp.Limit{Allowed: true} }

// shelf has a tool that reads and one that must never run.
type shelf struct{ calls *atomic.Int32 }

func (shelf) ListTools(context.Context, *mcp.ListRequest) (mcp.ListResult, error) {
	return mcp.ListResult{Items: [][]byte{
		[]byte(`{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},`),
		[]byte(`{"name":"wipe","inputSchema":{"type":"object"}}`),
	}}, nil
}

func (s shelf) CallTool(_ context.Context, r *mcp.CallRequest) (*mcp.CallResult, error) {
	if r.Name != "look" && r.Name != "wipe" {
		return nil, mcp.ErrUnknown
	}
	s.calls.Add(1)
	return &mcp.CallResult{JSON: []byte(`{"seen":true}`)}, nil
}

// world is a server that does everything right, behind what a test breaks.
type world struct {
	url   string
	calls atomic.Int32 // of tools
	asked atomic.Int32 // requests
}

// breaker wraps the good server.
type breaker func(http.Handler) http.Handler

func newWorld(t *testing.T, broken ...breaker) *world {
	t.Helper()
	w := &world{}
	server := httptest.NewUnstartedServer(nil)
	origin := "http://" + server.Listener.Addr().String()
	resource, err := oauth.NewResource(oauth.ResourceOptions{Origin: origin, Scopes: []string{"things:read"}})
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := mcp.New(mcp.Deps{
		Authenticator: door{resource}, Challenger: resource, Limiter: unlimited{}, Tools: shelf{&w.calls}, Tasks: nobodys{}, Logger: slog.New(slog.DiscardHandler),
	}, mcp.Options{Name: "fixture", Version: "1.0.0", PublicOrigin: origin})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", endpoint)
	mux.Handle(oauth.MetadataPath, resource)
	mux.Handle(oauth.MetadataPathMCP, resource)
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"issuer":"`+origin+`","authorization_endpoint":"`+origin+`/authorize","token_endpoint":"`+origin+
			`/token","code_challenge_methods_supported":["S256"],"client_id_metadata_document_supported":true}`)
	})
	var handler http.Handler = mux
	for _, b := range broken {
		handler = b(handler)
	}
	server.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.asked.Add(1)
		handler.ServeHTTP(rw, r)
	})
	server.Start()
	t.Cleanup(server.Close)
	w.url = origin + "/mcp"
	return w
}

func (w *world) check(t *testing.T, o mcpcheck.Options) *mcpcheck.Report {
	t.Helper()
	o.URL = w.url
	report, err := mcpcheck.Check(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func status(r *mcpcheck.Report, id string) (mcpcheck.Status, string) {
	for _, n := range r.Results {
		if n.ID == id {
			return n.Status, n.Got
		}
	}
	return "", "no such check"
}

// seen is a request with its body at hand.
type seen struct {
	*http.Request
	body string
}

func (s seen) rpc(method string) bool { return strings.Contains(s.body, `"method":"`+method+`"`) }
func (s seen) modern() bool           { return s.Header.Get("MCP-Protocol-Version") == "2026-07-28" }
func (s seen) named() bool            { return s.Header.Get("Authorization") != "" }

func look(r *http.Request) seen {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return seen{r, string(body)}
}

var (
	idOf     = regexp.MustCompile(`"id":("[^"]*"|[0-9]+|null)`)
	methodOf = regexp.MustCompile(`"method":"([^"]*)"`)
	nameOf   = regexp.MustCompile(`"name":"(mcpcheck[^"]*)"`)
)

// reply answers instead of the server; $id stands for the request's.
func reply(when func(seen) bool, code int, media, body string, headers ...string) breaker {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s := look(r)
			if !when(s) {
				next.ServeHTTP(w, r)
				return
			}
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			if media != "" {
				w.Header().Set("Content-Type", media)
			}
			w.WriteHeader(code)
			id := "null"
			if m := idOf.FindStringSubmatch(s.body); m != nil {
				id = m[1]
			}
			_, _ = io.WriteString(w, strings.ReplaceAll(body, "$id", id))
		})
	}
}

// forge changes requests before the server sees them.
func forge(change func(seen)) breaker {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			change(look(r))
			next.ServeHTTP(w, r)
		})
	}
}

// alter changes what the server answers.
func alter(when func(seen) bool, change func(h http.Header, code int, body string) (int, string)) breaker {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s := look(r)
			if !when(s) {
				next.ServeHTTP(w, r)
				return
			}
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, r)
			code, body := change(rec.Header(), rec.Code, rec.Body.String())
			for name, values := range rec.Header() {
				if name != "Content-Length" {
					w.Header()[name] = values
				}
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		})
	}
}

// swap replaces a text in what the server answers.
func swap(when func(seen) bool, old, other string) breaker {
	return alter(when, func(_ http.Header, code int, body string) (int, string) {
		return code, strings.ReplaceAll(body, old, other)
	})
}

func always(seen) bool { return true }

func rpc(method string) func(seen) bool { return func(s seen) bool { return s.rpc(method) } }

func path(suffix string) func(seen) bool {
	return func(s seen) bool { return s.URL.Path == suffix }
}

// nobodys has no task of anybody.
type nobodys struct{}

func (nobodys) Task(context.Context, *mcp.TaskRequest) (*mcp.Task, error) { return nil, mcp.ErrUnknown }
func (nobodys) CancelTask(context.Context, *mcp.TaskRequest) error        { return mcp.ErrUnknown }
func (nobodys) AnswerTask(context.Context, *mcp.TaskRequest) error        { return mcp.ErrUnknown }
