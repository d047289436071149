package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/mcpcheck"
)

// quoted is what README.md shows: the program without its package clause and imports.
func quoted(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(string(text), "\n)\n\n")
	if !ok {
		t.Fatal("main.go has no imports")
	}
	return code
}

func TestREADMEQuotesTheProgram(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	code := quoted(t)
	if !strings.Contains(string(text), "```go\n"+code+"```\n") {
		t.Errorf("README.md does not show internal/example/main.go as it is; it should show:\n%s", code)
	}
	lines := 0
	for line := range strings.Lines(code) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	if lines > 45 {
		t.Errorf("%d lines of code, README.md promises some forty", lines)
	}
}

// TestOneDeclarationTwoSurfaces: the route and the tool give the same bytes, and both refuse who has no token.
func TestOneDeclarationTwoSurfaces(t *testing.T) {
	server := httptest.NewServer(service())
	t.Cleanup(server.Close)
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"weather_get","arguments":{"city":"Santa Fe"}}}`
	for name, c := range map[string]struct {
		method, path, body, token, want string
		status                          int
	}{
		"route":              {http.MethodGet, "/api/weather?city=Santa+Fe", "", "secret", `{"City":"Santa Fe","Over":"clear"}`, 200},
		"tool":               {http.MethodPost, "/mcp", call, "secret", `"structuredContent":{"City":"Santa Fe","Over":"clear"}`, 200},
		"route, no city":     {http.MethodGet, "/api/weather", "", "secret", `"kind":"invalid"`, 400},
		"tool, no city":      {http.MethodPost, "/mcp", strings.Replace(call, `"city":"Santa Fe"`, "", 1), "secret", `"isError":true`, 200},
		"route, wrong token": {http.MethodGet, "/api/weather?city=x", "", "guess", `"kind":"unauthenticated"`, 401},
		"tool, wrong token":  {http.MethodPost, "/mcp", call, "guess", `"error"`, 401},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), c.method, server.URL+c.path, strings.NewReader(c.body))
			r.Header.Set("Authorization", "Bearer "+c.token)
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			server.Config.Handler.ServeHTTP(w, r)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("%d %s, want %d with %s", w.Code, w.Body, c.status, c.want)
			}
		})
	}
}

// TestTheCheckPasses: the example fails what it leaves to its reader, the authorization documents, and nothing else.
func TestTheCheckPasses(t *testing.T) {
	server := httptest.NewServer(service())
	t.Cleanup(server.Close)
	report, err := mcpcheck.Check(t.Context(), mcpcheck.Options{URL: server.URL + "/mcp", Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	theirs := map[string]bool{"challenge": true, "resource-metadata-path": true, "resource-metadata-root": true}
	for _, n := range report.Results {
		if n.Status == mcpcheck.Fail && !theirs[n.ID] {
			t.Errorf("%s: %s", n.ID, n.Got)
		}
	}
}
