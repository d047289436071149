package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/lambdaedge"
	"github.com/buzon-mail/buzon/shared/lambdaedge/gateway"
	"github.com/buzon-mail/buzon/shared/mcpcheck"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// handler is the service with three tokens: all of organization one, reading alone there, all of organization two.
func handler(t *testing.T, origin string) http.Handler {
	t.Helper()
	rows, err := embedded.Open(filepath.Join(t.TempDir(), "notes.db"), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rows.Close() })
	v, err := scopes()
	if err != nil {
		t.Fatal(err)
	}
	known := people{}
	known.token("secret", "one", v.Parse("notes:write"))
	known.token("reader", "one", v.Parse("notes:read"))
	known.token("other", "two", v.Parse("notes:write"))
	h, err := service(deps{rows, []seal.Root{{ID: "r1", Secret: make([]byte, 32)}}, origin, origin, known})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// do sends one request.
func do(t *testing.T, h http.Handler, token, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "https://notes.example.com"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// tool calls a tool in the stateless era; rest are further members of params.
func tool(t *testing.T, h http.Handler, token, name, arguments, capabilities, rest string) *httptest.ResponseRecorder {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, name, arguments, rest, capabilities)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://notes.example.com/mcp", strings.NewReader(body))
	for k, v := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name} {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func want(t *testing.T, step string, got *httptest.ResponseRecorder, status int, text string) {
	t.Helper()
	if got.Code != status || !strings.Contains(got.Body.String(), text) {
		t.Errorf("%s: %d %s, want %d with %s", step, got.Code, got.Body, status, text)
	}
}

// TestBothSurfaces: what one surface writes the other reads, and both refuse alike.
func TestBothSurfaces(t *testing.T) {
	h := handler(t, "https://notes.example.com")
	want(t, "a route writes", do(t, h, "secret", "PUT", "/api/notes/shopping", `{"text":"milk"}`), 200, `{"data":{"name":"shopping","text":"milk"}}`)
	want(t, "a tool writes", tool(t, h, "secret", "notes_write", `{"slug":"garden","text":"water"}`, `{}`, ""), 200, `"structuredContent":{"data":{"name":"garden"`)
	want(t, "a tool reads", tool(t, h, "reader", "notes_list", `{}`, `{}`, ""), 200, `{"data":[{"name":"garden","text":"water"},{"name":"shopping","text":"milk"}]}`)
	want(t, "another organization reads", do(t, h, "other", "GET", "/api/notes", ""), 200, `{"data":[]}`)
	want(t, "another organization deletes", do(t, h, "other", "DELETE", "/api/notes/shopping", ""), 404, `"not_found"`)
	want(t, "no token", do(t, h, "guess", "GET", "/api/notes", ""), 401, `"unauthenticated"`)
	want(t, "no scope, route", do(t, h, "reader", "PUT", "/api/notes/x", `{"text":""}`), 403, `"insufficient_scope"`)
	want(t, "no scope, tool", tool(t, h, "reader", "notes_write", `{"slug":"x","text":""}`, `{}`, ""), 403, `notes:write`)
	want(t, "no slug", do(t, h, "secret", "PUT", "/api/notes/No%2Fslug", `{"text":""}`), 404, `"not_found"`)
	want(t, "a text too long", do(t, h, "secret", "PUT", "/api/notes/x", `{"text":"`+strings.Repeat("x", 10_001)+`"}`), 400, `"invalid"`)
	want(t, "the metadata that leads to the authorization server", do(t, h, "", "GET", "/.well-known/oauth-protected-resource/mcp", ""), 200, `"authorization_servers":["https://notes.example.com"]`)
}

// TestAPersonConfirms: deleted by a tool is only what a person said yes to, as it was then, and once.
func TestAPersonConfirms(t *testing.T) {
	h := handler(t, "https://notes.example.com")
	const slug, canAsk = `{"slug":"shopping"}`, `{"elicitation":{}}`
	write := func(text string) {
		want(t, "write", do(t, h, "secret", "PUT", "/api/notes/shopping", `{"text":"`+text+`"}`), 200, text)
	}
	asked := func() string {
		got := tool(t, h, "secret", "notes_delete", slug, canAsk, "")
		want(t, "ask", got, 200, `Delete the note shopping for good`)
		var reply struct{ Result struct{ RequestState string } }
		if err := json.Unmarshal(got.Body.Bytes(), &reply); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`,"requestState":%q,"inputResponses":{"confirm":{"action":"accept","content":{"confirm":true}}}`, reply.Result.RequestState)
	}
	write("milk")
	want(t, "a client that can't ask", tool(t, h, "secret", "notes_delete", slug, `{}`, ""), 400, "confirmation_required")
	yes := asked()
	want(t, "somebody else's yes", tool(t, h, "other", "notes_delete", slug, canAsk, yes), 200, `-32602`)
	write("bread")
	want(t, "a yes to what it was before", tool(t, h, "secret", "notes_delete", slug, canAsk, yes), 200, "input_required")
	yes = asked()
	want(t, "yes", tool(t, h, "secret", "notes_delete", slug, canAsk, yes), 200, `"resultType":"complete"`)
	want(t, "it is gone", do(t, h, "secret", "GET", "/api/notes", ""), 200, `{"data":[]}`)
	write("eggs")
	want(t, "the same yes again", tool(t, h, "secret", "notes_delete", slug, canAsk, yes), 200, "already_done")
	want(t, "it is there", do(t, h, "secret", "GET", "/api/notes", ""), 200, "eggs")
}

// TestBehindEveryDoor: the same handler answers events of AWS's doors.
func TestBehindEveryDoor(t *testing.T) {
	edge := lambdaedge.New(handler(t, "https://notes.example.com"), lambdaedge.Options{})
	for _, d := range []lambdaedge.Door{lambdaedge.FunctionURL, lambdaedge.HTTPAPI, lambdaedge.RESTAPI} {
		g, err := gateway.New(d, edge.Invoke, gateway.Options{})
		if err != nil {
			t.Fatal(err)
		}
		behind := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.URL.Path = g.Prefix() + r.URL.Path // the stage of a REST API
			g.ServeHTTP(w, r)
		})
		want(t, string(d), tool(t, behind, "secret", "notes_list", `{}`, `{}`, ""), 200, `"structuredContent":{"data":[]}`)
	}
}

// TestTheCheckPasses: a strict client misses the authorization server, which is somebody else's, and nothing more.
func TestTheCheckPasses(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Start()
	t.Cleanup(server.Close)
	server.Config.Handler = handler(t, server.URL)
	report, err := mcpcheck.Check(t.Context(), mcpcheck.Options{URL: server.URL + "/mcp", Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Results) < 40 {
		t.Errorf("%d checks", len(report.Results))
	}
	for _, n := range report.Results {
		if n.Status == mcpcheck.Fail && n.ID != "authorization-server" {
			t.Errorf("%s: %s", n.ID, n.Got)
		}
	}
}

// TestThePageQuotesTheProgram: every block of Go in docs/your-own-api.md stands in the program.
func TestThePageQuotesTheProgram(t *testing.T) {
	page, err := os.ReadFile("../../../docs/your-own-api.md")
	if err != nil {
		t.Fatal(err)
	}
	var program strings.Builder
	for _, name := range []string{"main.go", "notes.go", "operations.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		program.Write(text)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	if len(blocks) < 3 {
		t.Errorf("%d blocks of Go", len(blocks))
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		if !strings.Contains(program.String(), code) {
			t.Errorf("the page shows what the program does not have:\n%s", code)
		}
	}
}
