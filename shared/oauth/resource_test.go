package oauth

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

func newResource(t *testing.T) *Resource {
	t.Helper()
	r, err := NewResource(ResourceOptions{Origin: testOrigin, Name: "Buzón", Scopes: []string{"emails:read", "emails:write"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRequirements is one row per requirement that a resource server keeps: clause or public bug -> observable behaviour.
//
// Clauses: I10 I12 I25 I33 I35 D04 9728-3 9728-5.1
func TestRequirements(t *testing.T) {
	r := newResource(t)
	serve := func(method, path string) *httptest.ResponseRecorder {
		mux := http.NewServeMux()
		mux.Handle(MetadataPath, r)
		mux.Handle(MetadataPathMCP, r)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w
	}
	missing, missingData := r.Challenge("", nil)
	bad, _ := r.Challenge(ErrorInvalidToken, nil)
	step, stepData := r.Challenge(ErrorInsufficientScope, []string{"webhooks:write", "emails:read"})
	requirements := []struct {
		clause string
		holds  bool
	}{
		{"RFC 9728 3.1: the document stands at the path of the resource", serve("GET", MetadataPathMCP).Code == 200},
		{"MCP 2025-03-26 clients: and at the root", serve("GET", MetadataPath).Body.String() == serve("GET", MetadataPathMCP).Body.String()},
		{"fastmcp#2077: a path that is not ours is 404, not 401", serve("GET", MetadataPath+"/other").Code == 404},
		{"RFC 9110 9.3.2: HEAD as GET", serve("HEAD", MetadataPathMCP).Code == 200},
		{"browsers: preflight needs no token", serve("OPTIONS", MetadataPathMCP).Code == 204},
		{"browsers: preflight lets MCP headers pass", strings.Contains(serve("OPTIONS", MetadataPath).Header().Get("Access-Control-Allow-Headers"), "MCP-Protocol-Version")},
		{"browsers: readable from any origin", serve("GET", MetadataPath).Header().Get("Access-Control-Allow-Origin") == "*"},
		{"cookies never count: no credentials", serve("GET", MetadataPath).Header().Get("Access-Control-Allow-Credentials") == ""},
		{"RFC 9110 15.5.6: 405 names the methods", serve("POST", MetadataPath).Code == 405 && serve("POST", MetadataPath).Header().Get("Allow") == "GET, HEAD, OPTIONS"},
		{"405 is readable from any origin too", serve("DELETE", MetadataPath).Header().Get("Access-Control-Allow-Origin") == "*"},
		{"RFC 9728 5.1: the challenge names the document", strings.Contains(missing, `resource_metadata="`+testOrigin+MetadataPathMCP+`"`)},
		{"RFC 6750 3.1: no error when no token was sent", !strings.Contains(missing, "error") && missingData["error"] == nil},
		{"MCP 2026-07-28: the challenge names the scopes to ask for", strings.Contains(missing, `scope="emails:read emails:write"`)},
		{"RFC 6750 3.1: a bad token is invalid_token", strings.Contains(bad, `error="invalid_token"`)},
		{"RFC 6750 3.1: insufficient_scope names every scope needed", strings.Contains(step, `error="insufficient_scope"`) && strings.Contains(step, `scope="webhooks:write emails:read"`)},
		{"doors rename the header: the data says the same", stepData["scope"] == "webhooks:write emails:read" && stepData["error"] == ErrorInsufficientScope &&
			stepData["resource_metadata"] == testOrigin+MetadataPathMCP},
		{"the audience is the URL that people type", r.ID() == testAudience},
	}
	for _, q := range requirements {
		if !q.holds {
			t.Errorf("broken: %s", q.clause)
		}
	}
}

// Clauses: I05 I19 I31 D01 D02 9728-2 9728-3.3
func TestMetadataDocument(t *testing.T) {
	w := httptest.NewRecorder()
	newResource(t).ServeHTTP(w, httptest.NewRequest("GET", MetadataPath+"?resource=https://evil.example", nil))
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"resource": testAudience, "authorization_servers": []any{testOrigin}, "scopes_supported": []any{"emails:read", "emails:write"},
		"bearer_methods_supported": []any{"header"}, "resource_name": "Buzón",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("document = %v\nwant %v", got, want)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "public, max-age=300", "X-Content-Type-Options": "nosniff",
	} {
		if w.Header().Get(name) != value {
			t.Errorf("%s = %q, want %q", name, w.Header().Get(name), value)
		}
	}
}

func TestMetadataWithoutScopesIsStillAList(t *testing.T) {
	r, err := NewResource(ResourceOptions{Origin: testOrigin, Issuer: "https://login.example"})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", MetadataPath, nil))
	if body := w.Body.String(); !strings.Contains(body, `"scopes_supported":[]`) || !strings.Contains(body, `"authorization_servers":["https://login.example"]`) {
		t.Errorf("body = %s", body)
	}
}

func TestNewResourceRefuses(t *testing.T) {
	for _, origin := range []string{
		"", "mail.example.com", "https://", "https://h/", "https://h/mcp", "https://h?x", "https://h#x", "https://u:p@h", "ftp://h", "https://h\"x", "javascript:alert(1)",
	} {
		if _, err := NewResource(ResourceOptions{Origin: origin}); !errors.Is(err, ErrInvalidOrigin) {
			t.Errorf("NewResource(%q): %v, want ErrInvalidOrigin", origin, err)
		}
	}
}
