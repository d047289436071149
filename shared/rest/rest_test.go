package rest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/op"
	"github.com/buzon-mail/buzon/shared/rest"
)

func TestAnswers(t *testing.T) {
	w := newWorld(t)
	tests := []struct {
		name, method, target, token, body string
		status                            int
		want                              string
	}{
		{"session", "GET", "/api/v1/session", "operator", "", 200, `{"data":{"id":"user_o rest"}}`},
		{"session of many workspaces", "GET", "/api/v1/session", "two", "", 200, `{"data":{"id":"user_t rest"}}`},
		{"empty list is an array", "GET", "/api/v1/parcels", "operator", "", 200, `{"data":[],"echo":"||"}`},
		{"filters", "GET", "/api/v1/parcels?status=open&tag=a,b&mark=x&mark=y,z&limit=5&heavy=true&after=2026-01-02T03:04:05Z", "reader", "", 200, `{"data":[],"echo":"open|a+b|x+y,z"}`},
		{"escaped filter", "GET", "/api/v1/parcels?tag=%26%3D+x", "reader", "", 200, `{"data":[],"echo":"|&= x|"}`},
		{"get", "GET", "/api/v1/parcels/" + parcelID, "reader", "", 200, `{"data":{"id":"` + parcelID + `"}}`},
		{"get by slug", "GET", "/api/v1/parcels/wait", "reader", "", 200, `{"data":{"id":"wait"}}`},
		{"upsert", "PUT", "/api/v1/parcels", "operator", `{"slug":"a","parts":[{"name":"n"}],"extra":{"K":"v"},"free":{"x":[1]}}`, 201, `{"data":{"id":"a<&>"},"created":true}`},
		{"null in an optional member", "PUT", "/api/v1/parcels", "operator", `{"slug":"a","parts":null,"main":null}`, 201, `{"data":{"id":"a<&>"},"created":true}`},
		{"empty object where no body is taken", "POST", "/api/v1/parcels/a/ship", "operator", ` {} `, 202, `{"data":{"id":""}}`},
		{"head", "HEAD", "/api/v1/session", "operator", "", 200, `{"data":{"id":"user_o rest"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := w.do(tt.method, tt.target, tt.token, tt.body)
			if got.Code != tt.status || got.Body.String() != tt.want {
				t.Errorf("got %d %s, want %d %s", got.Code, got.Body, tt.status, tt.want)
			}
			for name, want := range map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Link": ""} {
				if h := got.Header().Get(name); h != want {
					t.Errorf("%s = %q, want %q", name, h, want)
				}
			}
		})
	}
	if got := w.do("GET", "/api/v1/parcels/a", "reader", "").Header().Get("ETag"); got != `"1"` {
		t.Errorf("ETag = %q", got)
	}
	if in := w.input.Load(); in.Limit != 25 {
		t.Errorf("limit = %d, want the default 25", in.Limit)
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	deep := strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70)
	tests := []struct {
		name, method, target, token, body string
		header                            []string
		status                            int
		code, located, says               string // of the problem; located and says may be empty
	}{
		{name: "no token", method: "GET", target: "/api/v1/session", status: 401, code: "missing_token"},
		{name: "bad token", method: "GET", target: "/api/v1/session", token: "x", status: 401, code: "unauthenticated"},
		{name: "no token, no route", method: "GET", target: "/api/v1/nowhere", status: 401, code: "missing_token"},
		{name: "unknown path", method: "GET", target: "/api/v1/nowhere", token: "operator", status: 404, code: "not_found"},
		{name: "outside the base", method: "GET", target: "/", token: "operator", status: 404, code: "not_found"},
		{name: "trailing slash", method: "GET", target: "/api/v1/session/", token: "operator", status: 404, code: "not_found"},
		{name: "double slash", method: "GET", target: "/api/v1//session", token: "operator", status: 404, code: "not_found"},
		{name: "dot segments", method: "GET", target: "/api/v1/parcels/../session", token: "operator", status: 404, code: "not_found"},
		{name: "wrong method", method: "POST", target: "/api/v1/session", token: "operator", status: 405, code: "method_not_allowed"},
		{name: "wrong method below a parameter", method: "PATCH", target: "/api/v1/parcels/a", token: "operator", status: 405, code: "method_not_allowed"},
		{name: "missing scope", method: "PUT", target: "/api/v1/parcels", token: "reader", body: `{"slug":"a"}`, status: 403, code: "insufficient_scope", says: "parcels:write"},
		{name: "missing role", method: "DELETE", target: "/api/v1/parcels/a", token: "operator", status: 403, code: "insufficient_role", says: "admin"},
		{name: "role of the workspace, not of the caller", method: "PUT", target: "/api/v1/parcels", token: "default", body: `{"slug":"a"}`, status: 403, code: "insufficient_role", says: "viewer"},
		{name: "no role at all", method: "GET", target: "/api/v1/session", token: "nobody", status: 403, code: "insufficient_role"},
		{name: "no workspace", method: "GET", target: "/api/v1/parcels", token: "nobody", status: 400, code: "workspace_required"},
		{name: "several workspaces", method: "GET", target: "/api/v1/parcels", token: "two", status: 400, code: "workspace_required", says: workB},
		{name: "foreign workspace", method: "GET", target: "/api/v1/parcels", token: "operator", header: []string{"X-Workspace-Id", workB}, status: 404, code: "not_found"},
		{name: "two workspace headers", method: "GET", target: "/api/v1/parcels", token: "two", header: []string{"X-Workspace-Id", workA, "X-Workspace-Id", workB}, status: 400, code: "invalid", located: "header.X-Workspace-Id"},
		{name: "unknown query parameter", method: "GET", target: "/api/v1/parcels?stauts=open", token: "reader", status: 400, code: "invalid", located: "query.stauts", says: "status"},
		{name: "query where none is taken", method: "GET", target: "/api/v1/session?x=1", token: "reader", status: 400, code: "invalid", located: "query.x"},
		{name: "query parameter twice", method: "GET", target: "/api/v1/parcels?status=open&status=closed", token: "reader", status: 400, code: "invalid", located: "query.status"},
		{name: "query parameter without value", method: "GET", target: "/api/v1/parcels?status=", token: "reader", status: 400, code: "invalid", located: "query.status"},
		{name: "query parameter in capitals", method: "GET", target: "/api/v1/parcels?Status=open", token: "reader", status: 400, code: "invalid", located: "query.Status"},
		{name: "bad escape", method: "GET", target: "/api/v1/parcels?status=%zz", token: "reader", status: 400, code: "invalid", located: "query"},
		{name: "semicolon", method: "GET", target: "/api/v1/parcels?status=open;limit=1", token: "reader", status: 400, code: "invalid", located: "query"},
		{name: "query not UTF-8", method: "GET", target: "/api/v1/parcels?tag=%ff", token: "reader", status: 400, code: "invalid", located: "query"},
		{name: "100 parameters", method: "GET", target: "/api/v1/parcels?" + strings.Repeat("mark=a&", 100), token: "reader", status: 400, code: "invalid", located: "query"},
		{name: "limit 0", method: "GET", target: "/api/v1/parcels?limit=0", token: "reader", status: 400, code: "invalid", located: "query.limit", says: ">= 1"},
		{name: "limit huge", method: "GET", target: "/api/v1/parcels?limit=99999999999999999999", token: "reader", status: 400, code: "invalid", located: "query.limit"},
		{name: "limit text", method: "GET", target: "/api/v1/parcels?limit=ten", token: "reader", status: 400, code: "invalid", located: "query.limit"},
		{name: "enum", method: "GET", target: "/api/v1/parcels?status=lost", token: "reader", status: 400, code: "invalid", located: "query.status", says: "open"},
		{name: "time", method: "GET", target: "/api/v1/parcels?after=yesterday", token: "reader", status: 400, code: "invalid", located: "query.after"},
		{name: "unknown member", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a","slig":1}`, status: 400, code: "invalid", located: "body.slig", says: "slug"},
		{name: "unknown nested member", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a","parts":[{"name":"n","nome":1}]}`, status: 400, code: "invalid", located: "body.parts.nome"},
		{name: "member in capitals", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a","SLUG":"far too long for it"}`, status: 400, code: "invalid", located: "body.SLUG"},
		{name: "member twice", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a","slug":"b"}`, status: 400, code: "invalid", located: "body.slug"},
		{name: "member twice, escaped", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a","sl\u0075g":"b"}`, status: 400, code: "invalid", located: "body.slug"},
		{name: "nested merge", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a","main":{"name":"n","count":9},"main":{"name":"n"}}`, status: 400, code: "invalid", located: "body.main"},
		{name: "missing member", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{}`, status: 400, code: "invalid", located: "body", says: "slug"},
		{name: "bound of a nested member", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a","main":{"name":"n","count":9}}`, status: 400, code: "invalid", located: "body.main.count"},
		{name: "bound of seven digits and more", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a","main":{"name":"n","bytes":268435457}}`, status: 400, code: "invalid", located: "body.main.bytes", says: "268435456"},
		{name: "wrong type", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":1}`, status: 400, code: "invalid", located: "body.slug"},
		{name: "integer as fraction text", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a","main":{"name":"n","count":1.0}}`, status: 400, code: "invalid", located: "body"},
		{name: "body not an object", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `[]`, status: 400, code: "invalid", located: "body"},
		{name: "body null", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `null`, status: 400, code: "invalid", located: "body"},
		{name: "malformed body", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":`, status: 400, code: "invalid", located: "body"},
		{name: "trailing text", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a"} x`, status: 400, code: "invalid", located: "body"},
		{name: "body not UTF-8", method: "PUT", target: "/api/v1/parcels", token: "operator", body: "{\"slug\":\"\xff\"}", status: 400, code: "invalid", located: "body"},
		{name: "deep body", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a","free":` + deep + `}`, status: 400, code: "invalid", located: "body"},
		{name: "no body", method: "PUT", target: "/api/v1/parcels", token: "operator", header: []string{"Content-Type", "application/json"}, status: 400, code: "invalid", located: "body"},
		{name: "body where none is taken", method: "POST", target: "/api/v1/parcels/a/ship", token: "operator", body: `{"x":1}`, status: 400, code: "invalid", located: "body"},
		{name: "media type", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a"}`, header: []string{"Content-Type", "", "Content-Type", "text/plain"}, status: 415, code: "unsupported_media"},
		{name: "compressed", method: "PUT", target: "/api/v1/parcels", token: "operator", body: "\x1f\x8b\x08", header: []string{"Content-Encoding", "gzip"}, status: 415, code: "unsupported_media"},
		{name: "called compressed", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a"}`, header: []string{"Content-Encoding", "gzip"}, status: 415, code: "unsupported_media"},
		{name: "compressed twice", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a"}`, header: []string{"Content-Encoding", "identity", "Content-Encoding", "br"}, status: 415, code: "unsupported_media"},
		{name: "no media type", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a"}`, header: []string{"Content-Type", ""}, status: 415, code: "unsupported_media"},
		{name: "charset", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a"}`, header: []string{"Content-Type", "", "Content-Type", "application/json; charset=latin1"}, status: 415, code: "unsupported_media"},
		{name: "1 MiB and one", method: "PUT", target: "/api/v1/parcels", token: "operator", body: `{"slug":"a"}` + strings.Repeat(" ", 1<<20-11), status: 413, code: "too_large"},
		{name: "huge name", method: "GET", target: "/api/v1/parcels?" + strings.Repeat("x", 5000) + "=1", token: "reader", status: 400, code: "invalid", located: "query." + strings.Repeat("x", 64)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := w.calls.Load()
			got := w.do(tt.method, tt.target, tt.token, tt.body, tt.header...)
			p := problem(t, got)
			if got.Code != tt.status || p.Code != tt.code {
				t.Fatalf("got %d %s, want %d %s: %s", got.Code, p.Code, tt.status, tt.code, got.Body)
			}
			if tt.located != "" && (len(p.Errors) == 0 || p.Errors[0].Location != tt.located) {
				t.Errorf("errors = %+v, want one at %s", p.Errors, tt.located)
			}
			if !strings.Contains(got.Body.String(), tt.says) {
				t.Errorf("body %s does not say %q", got.Body, tt.says)
			}
			if w.calls.Load() != before {
				t.Error("the handler ran")
			}
			if n := got.Body.Len(); n > 3000 {
				t.Errorf("the refusal has %d bytes", n)
			}
		})
	}
	if w.log.Len() != 0 {
		t.Errorf("refusals were logged: %s", w.log)
	}
}

func TestExactlyOneMiB(t *testing.T) {
	w := newWorld(t)
	body := `{"slug":"a"}`
	if got := w.do("PUT", "/api/v1/parcels", "operator", body+strings.Repeat(" ", 1<<20-len(body))); got.Code != 201 {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

func TestHostileIDs(t *testing.T) {
	w := newWorld(t)
	ids := map[string]string{
		"dots": "..", "dot": ".", "escaped dot": "%2e", "escaped dots": "%2e%2e", "escaped slash": "a%2Fb", "escaped climb": "..%2f..%2fsession",
		"NUL": "a%00", "newline": "a%0A", "long": strings.Repeat("a", 5000), "upper": "ABC", "lower ulid": strings.ToLower(parcelID),
		"ambiguous letter": "parcel_01J0000000000000000000000I", "short": parcelID[:len(parcelID)-1], "space": "%20", "percent": "%25",
		"unicode": "%C3%A9", "leading dash": "-a", "star": "*", "comma": "a,b",
	}
	for name, id := range ids {
		t.Run(name, func(t *testing.T) {
			got := w.do("GET", "/api/v1/parcels/"+id, "reader", "")
			if p := problem(t, got); got.Code != 404 || p.Code != "not_found" {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
		})
	}
	for _, id := range []string{"..", ".", "/", "a/b", "\x00", ""} {
		r := httptest.NewRequest("GET", "/", nil)
		r = r.WithContext(op.WithCaller(r.Context(), w.token["reader"], op.SurfaceMCP))
		r.SetPathValue("id", id)
		got := httptest.NewRecorder()
		w.api.Route("parcels_get").ServeHTTP(got, r)
		if got.Code != 404 {
			t.Errorf("in process, id %q: %d", id, got.Code)
		}
	}
	if w.calls.Load() != 0 {
		t.Error("a handler ran")
	}
}

func TestRouteGuardsItself(t *testing.T) {
	w := newWorld(t)
	if w.api.Route("nothing") != nil {
		t.Error("a route for an unknown name")
	}
	tests := []struct {
		name   string
		caller *op.Caller
		status int
	}{
		{"nobody", nil, 401},
		{"without scope", w.token["reader"], 403},
		{"with another workspace's role", w.token["default"], 403},
		{"allowed", w.token["operator"], 202},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/", nil)
			if tt.caller != nil {
				r = r.WithContext(op.WithCaller(r.Context(), tt.caller, op.SurfaceMCP))
			}
			r.SetPathValue("id", "a")
			got := httptest.NewRecorder()
			w.api.Route("parcels_ship").ServeHTTP(got, r)
			if got.Code != tt.status {
				t.Errorf("got %d %s, want %d", got.Code, got.Body, tt.status)
			}
		})
	}
}

// Clauses: I29
func TestCallerIsNotSmuggled(t *testing.T) {
	w := newWorld(t)
	r := httptest.NewRequest("GET", "/api/v1/session", nil)
	r = r.WithContext(op.WithCaller(r.Context(), w.token["operator"], op.SurfaceMCP))
	got := httptest.NewRecorder()
	w.api.ServeHTTP(got, r)
	if got.Code != 401 {
		t.Errorf("a caller in the context of an HTTP request got %d", got.Code)
	}
	r.Header.Set("Authorization", "Bearer reader")
	got = httptest.NewRecorder()
	w.api.ServeHTTP(got, r)
	if want := `{"data":{"id":"user_r rest"}}`; got.Body.String() != want {
		t.Errorf("got %s, want %s", got.Body, want)
	}
}

func TestTenant(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ name, token, header, want string }{
		{"the only one", "operator", "", workA},
		{"the default", "default", "", workB},
		{"the named one", "default", workA, workA},
		{"one of two", "two", workB, workB},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := w.do("GET", "/api/v1/parcels", tt.token, "", "X-Workspace-Id", tt.header); got.Code != 200 {
				t.Fatalf("got %d %s", got.Code, got.Body)
			}
			if got := w.seen.Load().ID; got != tt.want {
				t.Errorf("tenant = %s, want %s", got, tt.want)
			}
		})
	}
	w.do("GET", "/api/v1/session", "operator", "")
	if got := *w.seen.Load(); got != (op.Workspace{}) {
		t.Errorf("an operation without tenant got %+v", got)
	}
}

func TestChallenges(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ name, method, target, token, body, want string }{
		{"no token", "GET", "/api/v1/session", "", "", `Bearer error="", scope=""`},
		{"bad token", "GET", "/api/v1/session", "x", "", `Bearer error="invalid_token", scope=""`},
		{"scope", "PUT", "/api/v1/parcels", "reader", `{"slug":"a"}`, `Bearer error="insufficient_scope", scope="parcels:write"`},
		{"role", "DELETE", "/api/v1/parcels/a", "operator", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := w.do(tt.method, tt.target, tt.token, tt.body)
			for _, name := range []string{"WWW-Authenticate", "X-Challenge"} {
				if h := got.Header().Get(name); h != tt.want {
					t.Errorf("%s = %q, want %q", name, h, tt.want)
				}
			}
		})
	}
}

func TestKindsHaveAStatus(t *testing.T) {
	for _, kind := range apperr.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			w := newWorld(t)
			w.fail = apperr.New(kind, "", "said", "do")
			got := w.do("GET", "/api/v1/session", "operator", "")
			p := problem(t, got)
			if got.Code < 400 || p.Kind != kind.String() {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
			if kind != apperr.Internal && (p.Detail != "said" || len(p.Fixes) != 1) {
				t.Errorf("problem %+v", p)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	w := newWorld(t)
	e := apperr.New(apperr.Unavailable, "", "down")
	e.RetryAfter = 1
	w.fail = e
	if got := w.do("GET", "/api/v1/session", "operator", "").Header().Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After = %q, want it rounded up to 1", got)
	}
}

func TestSecretsStayInside(t *testing.T) {
	const secret = "s3cr3t-connection-string"
	internal := apperr.New(apperr.Internal, "", secret)
	for name, prepare := range map[string]func(*world){
		"plain error":    func(w *world) { w.fail = errors.New(secret) },
		"wrapped cause":  func(w *world) { w.fail = apperr.From(errors.New(secret)) },
		"internal text":  func(w *world) { w.fail = internal },
		"panic":          func(w *world) { w.panics = secret },
		"panic of error": func(w *world) { w.panics = errors.New(secret) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			prepare(w)
			got := w.do("GET", "/api/v1/session", "operator", "")
			if p := problem(t, got); got.Code != 500 || p.Kind != "internal" || strings.Contains(got.Body.String(), secret) {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
			if strings.Count(w.log.String(), secret) != 1 || !strings.Contains(w.log.String(), "session_get") {
				t.Errorf("log: %s", w.log)
			}
		})
	}
	t.Run("in another frame", func(t *testing.T) {
		w := newWorld(t)
		for _, err := range []error{internal, errors.New(secret)} {
			if text := string(w.api.Problem(t.Context(), err)); strings.Contains(text, secret) || !strings.Contains(text, `"internal"`) {
				t.Errorf("got %s", text)
			}
		}
	})
	t.Run("authenticator", func(t *testing.T) {
		w := newWorld(t)
		got := w.do("GET", "/api/v1/session", "outage", "")
		if got.Code != 500 || strings.Contains(got.Body.String(), secret) || strings.Count(w.log.String(), secret) != 1 {
			t.Errorf("got %d %s, log %s", got.Code, got.Body, w.log)
		}
	})
	t.Run("private cause of a public error", func(t *testing.T) {
		w := newWorld(t)
		w.fail = apperr.New(apperr.Conflict, "", "taken").Because(errors.New(secret))
		got := w.do("GET", "/api/v1/session", "operator", "")
		if got.Code != 409 || strings.Contains(got.Body.String(), secret) {
			t.Errorf("got %d %s", got.Code, got.Body)
		}
	})
}

// Why a dependency is down shows in the log, once, and nowhere else; a refusal of ours has no cause and makes no line.
func TestOutageIsLogged(t *testing.T) {
	const cause = "write buzon.db: no space left on device"
	down := apperr.New(apperr.Unavailable, "", "Storage can't be reached.")
	for name, tt := range map[string]struct {
		fail  error
		lines int
	}{
		"dependency down":         {down.Because(errors.New(cause)), 1},
		"wrapped":                 {fmt.Errorf("step: %w", down.Because(errors.New(cause))), 1},
		"refusal of ours":         {down, 0},
		"conflict with its cause": {apperr.New(apperr.Conflict, "", "taken").Because(errors.New(cause)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.fail = tt.fail
			got := w.do("GET", "/api/v1/session", "operator", "")
			if strings.Contains(got.Body.String(), cause) {
				t.Errorf("the reply has the cause: %s", got.Body)
			}
			if n := strings.Count(w.log.String(), cause); n != tt.lines || n > 0 && !strings.Contains(w.log.String(), "session_get") {
				t.Errorf("%d lines, want %d: %s", n, tt.lines, w.log)
			}
		})
	}
	t.Run("the caller gave up", func(t *testing.T) {
		w := newWorld(t)
		w.fail = down.Because(context.Canceled)
		ctx, cancel := context.WithCancel(op.WithCaller(t.Context(), w.token["operator"], op.SurfaceMCP))
		cancel()
		w.api.Route("session_get").ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx))
		if w.log.Len() != 0 {
			t.Errorf("log %s", w.log)
		}
	})
}

func TestAbortIsPassedOn(t *testing.T) {
	w := newWorld(t)
	w.panics = http.ErrAbortHandler
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("recovered %v", p)
		}
	}()
	w.do("GET", "/api/v1/session", "operator", "")
}

func TestCancelledCallIsNotOurFault(t *testing.T) {
	w := newWorld(t)
	w.fail = context.Canceled
	ctx, cancel := context.WithCancel(op.WithCaller(t.Context(), w.token["operator"], op.SurfaceMCP))
	cancel()
	got := httptest.NewRecorder()
	w.api.Route("session_get").ServeHTTP(got, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
	if got.Code != 503 || w.log.Len() != 0 {
		t.Errorf("got %d %s, log %s", got.Code, got.Body, w.log)
	}
}

func TestLimits(t *testing.T) {
	general, outward := &limiter{}, &gate{}
	general.left.Store(3)
	outward.left.Store(1)
	w := newWorld(t, func(d *rest.Deps, _ *rest.Options) { d.Limiter, d.Outward = general, outward })
	if got := w.do("POST", "/api/v1/parcels/a/ship", "operator", ""); got.Code != 202 || got.Header().Get("X-RateLimit-Remaining") != "2" ||
		got.Header().Get("X-RateLimit-Limit") != "3" || got.Header().Get("X-RateLimit-Reset") != "2" {
		t.Errorf("got %d %v", got.Code, got.Header())
	}
	got := w.do("POST", "/api/v1/parcels/a/ship", "operator", "")
	if p := problem(t, got); p.Kind != "rate_limited" || got.Header().Get("Retry-After") != "3" || !strings.Contains(p.Fixes[0], "3 seconds") {
		t.Errorf("outward: %d %v %s", got.Code, got.Header(), got.Body)
	}
	w.do("GET", "/api/v1/session", "operator", "")
	if got := w.do("GET", "/api/v1/session", "operator", ""); got.Code != 429 || got.Header().Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("general: %d %v", got.Code, got.Header())
	}
	if n := w.calls.Load(); n != 2 {
		t.Errorf("%d handlers ran, want 2", n)
	}
	if got := w.do("GET", "/api/v1/openapi.json", "", ""); got.Code != 200 || got.Header().Get("X-RateLimit-Limit") != "" {
		t.Errorf("the document was counted: %d", got.Code)
	}
}

func TestOutwardLimitHoldsInProcess(t *testing.T) {
	outward := &gate{}
	w := newWorld(t, func(d *rest.Deps, _ *rest.Options) { d.Outward = outward })
	r := httptest.NewRequest("POST", "/", nil)
	r = r.WithContext(op.WithCaller(r.Context(), w.token["operator"], op.SurfaceMCP))
	r.SetPathValue("id", "a")
	got := httptest.NewRecorder()
	w.api.Route("parcels_ship").ServeHTTP(got, r)
	if got.Code != 429 || w.calls.Load() != 0 {
		t.Errorf("got %d", got.Code)
	}
}

// TestOutwardFailsClosed: where an act that lets something out can't be counted it does not run, and the caller learns when to try
// again; everything else goes on.
func TestOutwardFailsClosed(t *testing.T) {
	outward := &gate{broken: errors.New("dynamodb: ip-10-0-0-7 is on fire")}
	outward.left.Store(9)
	w := newWorld(t, func(d *rest.Deps, _ *rest.Options) { d.Outward = outward })
	got := w.do("POST", "/api/v1/parcels/a/ship", "operator", "")
	if p := problem(t, got); got.Code != 503 || p.Kind != "unavailable" || got.Header().Get("Retry-After") != "5" || strings.Contains(got.Body.String(), "ip-10") {
		t.Errorf("got %d %v %s", got.Code, got.Header(), got.Body)
	}
	if w.calls.Load() != 0 {
		t.Error("it ran")
	}
	if got := w.do("GET", "/api/v1/session", "operator", ""); got.Code != 200 {
		t.Errorf("a read: %d", got.Code)
	}
}

func TestCORS(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ name, origin, want string }{
		{"none", "", ""},
		{"allowed", "https://app.example", "https://app.example"},
		{"own", "https://api.example", "https://api.example"},
		{"foreign", "https://evil.example", ""},
		{"null", "null", ""},
		{"suffix", "https://app.example.evil.example", ""},
		{"other scheme", "http://app.example", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for method, code := range map[string]int{"GET": 401, "OPTIONS": 204} {
				got := w.do(method, "/api/v1/session", "", "", "Origin", tt.origin, "Access-Control-Request-Method", "GET")
				if h := got.Header().Get("Access-Control-Allow-Origin"); got.Code != code || h != tt.want || got.Header().Get("Vary") != "Origin" {
					t.Errorf("%s: %d, allowed %q, want %q", method, got.Code, h, tt.want)
				}
				if got.Header().Get("Access-Control-Allow-Credentials") != "" {
					t.Error("credentials allowed")
				}
			}
		})
	}
	if got := w.do("OPTIONS", "/api/v1/session", "", ""); got.Code != 401 {
		t.Errorf("OPTIONS that is no preflight: %d", got.Code)
	}
}

func TestAllow(t *testing.T) {
	w := newWorld(t)
	for target, want := range map[string]string{"/api/v1/parcels": "GET, HEAD, PUT", "/api/v1/parcels/a": "DELETE, GET, HEAD", "/api/v1/parcels/a/ship": "POST", "/api/v1/openapi.json": "GET, HEAD"} {
		got := w.do("TRACE", target, "operator", "")
		if got.Code != 405 || got.Header().Get("Allow") != want {
			t.Errorf("%s: %d, Allow %q, want %q", target, got.Code, got.Header().Get("Allow"), want)
		}
	}
}

func TestDocumentIsServed(t *testing.T) {
	w := newWorld(t)
	got := w.do("GET", "/api/v1/openapi.json", "", "")
	tag := got.Header().Get("ETag")
	if got.Code != 200 || tag == "" || got.Body.String() != `{"openapi":"3.1.0"}` {
		t.Fatalf("got %d %v %s", got.Code, got.Header(), got.Body)
	}
	for header, want := range map[string]int{tag: 304, "W/" + tag: 304, `"x", ` + tag: 304, "*": 304, `"x"`: 200, "": 200} {
		if got := w.do("GET", "/api/v1/openapi.json", "", "", "If-None-Match", header); got.Code != want {
			t.Errorf("If-None-Match %s: %d, want %d", header, got.Code, want)
		}
	}
}

func TestFirstCallsAtOnce(t *testing.T) {
	w := newWorld(t)
	var wait sync.WaitGroup
	for i := range 16 {
		wait.Go(func() {
			target := []string{"/api/v1/parcels?limit=3", "/api/v1/session"}[i%2]
			if got := w.do("GET", target, "operator", ""); got.Code != 200 {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
			if got := w.do("PUT", "/api/v1/parcels", "operator", `{"slug":"a","main":{"name":"x"}}`); got.Code != 201 {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
		})
	}
	wait.Wait()
}

func TestNewRefuses(t *testing.T) {
	w := newWorld(t)
	c := w.catalogue(t)
	good := rest.Deps{Authenticator: w, Challenger: w, Logger: nil, RequestID: func(context.Context) string { return "" }}
	if _, err := rest.New(c, good, rest.Options{BasePath: "/api"}); err == nil {
		t.Error("no logger: want an error")
	}
	for _, base := range []string{"", "api", "/api/"} {
		if _, err := rest.New(c, rest.Deps{Authenticator: w, Challenger: w}, rest.Options{BasePath: base}); err == nil {
			t.Errorf("base %q: want an error", base)
		}
	}
}

func TestOpenAPI(t *testing.T) {
	w := newWorld(t)
	options := rest.Options{BasePath: "/api/v1", Title: "Parcels", Version: "1"}
	first, err := rest.OpenAPI(w.catalogue(t), options)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if again, err := rest.OpenAPI(w.catalogue(t), options); err != nil || !bytes.Equal(first, again) {
			t.Fatalf("not deterministic: %v", err)
		}
	}
	doc := string(first)
	for _, want := range []string{`"openapi": "3.1.0"`, `"X-Workspace-Id"`, `"operationId": "parcels_upsert"`, `"url": "/api/v1"`,
		`"application/problem+json"`, `"409"`, `"202"`, `"204"`, `"parcels:write"`, `"#/components/schemas/Problem"`} {
		if !strings.Contains(doc, want) {
			t.Errorf("the document lacks %s", want)
		}
	}
	for _, unwanted := range []string{"$schema", "ErrorModel"} {
		if strings.Contains(doc, unwanted) {
			t.Errorf("the document has %s", unwanted)
		}
	}
}

func TestOpenAPIRefuses(t *testing.T) {
	type cookie struct {
		Session string `cookie:"session"`
	}
	type workspace struct {
		Workspace string `header:"x-workspace-id"`
	}
	type hidden struct {
		Limit int `query:"limit"`
	}
	type embeds struct{ hidden }
	type bad struct {
		N int `query:"n" minimum:"x"`
	}
	v, err := op.NewVocabulary(nil)
	if err != nil {
		t.Fatal(err)
	}
	spec := op.Spec{Name: "x_get", Method: "GET", Path: "/x", Title: "x", Description: "x", Role: op.Viewer, Effect: op.Read}
	for name, o := range map[string]op.Operation{
		"cookie":    rest.Define(spec, func(context.Context, *cookie) (*getOut, error) { return nil, nil }),
		"workspace": rest.Define(spec, func(context.Context, *workspace) (*getOut, error) { return nil, nil }),
		"hidden":    rest.Define(spec, func(context.Context, *embeds) (*getOut, error) { return nil, nil }),
		"bad tag":   rest.Define(spec, func(context.Context, *bad) (*getOut, error) { return nil, nil }),
		"unbound":   {Spec: spec},
	} {
		c, err := op.NewCatalogue(v, []op.Operation{o})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rest.OpenAPI(c, rest.Options{}); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}
