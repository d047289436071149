package mcp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/mcp"
)

const (
	metaServed = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	serverInfo = "io.modelcontextprotocol/serverInfo"
)

// post sends body with a valid token; headers are name, value pairs.
func post(tb testing.TB, h http.Handler, body string, headers ...string) (*httptest.ResponseRecorder, message) {
	tb.Helper()
	r := httptest.NewRequest(http.MethodPost, "https://buzon.test/mcp", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer good")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var m message
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
			tb.Fatalf("reply is not JSON: %v\n%s", err, w.Body)
		}
	}
	return w, m
}

// modern sends a 2026-07-28 request with all its headers.
func modern(tb testing.TB, h http.Handler, method, params string, headers ...string) (*httptest.ResponseRecorder, message) {
	tb.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + metaServed + `}}`
	return post(tb, h, body, append([]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}, headers...)...)
}

func members(tb testing.TB, raw json.RawMessage) map[string]any {
	tb.Helper()
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		tb.Fatalf("result: %v\n%s", err, raw)
	}
	return m
}

// TestChecklist is the closing list of the guide that the protocol work follows: eight questions to one's own server.
func TestChecklist(t *testing.T) {
	public := newRig(t, func(_ *mcp.Deps, o *mcp.Options) { o.PublicDiscover = true })
	private := newRig(t, nil)
	for name, ask := range map[string]func(*testing.T){
		"1 server/discover answers, and without a key where others do": func(t *testing.T) {
			if w, m := modern(t, private, "server/discover", ""); w.Code != 200 || m.Result == nil {
				t.Errorf("with a token: %d %s", w.Code, w.Body)
			}
			if w, m := modern(t, public, "server/discover", "", "Authorization", ""); w.Code != 200 || m.Result == nil {
				t.Errorf("public: %d %s", w.Code, w.Body)
			}
			if w, _ := modern(t, private, "server/discover", "", "Authorization", ""); w.Code != 401 {
				t.Errorf("private, no token: %d", w.Code)
			}
		},
		"2 every result carries resultType": func(t *testing.T) {
			for method, rest := range map[string][]string{"server/discover": {""}, "tools/list": {""}, "tools/call": {`"name":"echo",`, "Mcp-Name", "echo"}} {
				_, m := modern(t, private, method, rest[0], rest[1:]...)
				if got := members(t, m.Result)["resultType"]; got != "complete" {
					t.Errorf("%s: resultType %v", method, got)
				}
			}
		},
		"3 discover and tools/list carry ttlMs and cacheScope": func(t *testing.T) {
			for _, method := range []string{"server/discover", "tools/list"} {
				_, m := modern(t, private, method, "")
				got := members(t, m.Result)
				if got["ttlMs"] != 0.0 || got["cacheScope"] != "private" {
					t.Errorf("%s: %v %v", method, got["ttlMs"], got["cacheScope"])
				}
				if meta, ok := got["_meta"].(map[string]any); !ok || meta[serverInfo] == nil {
					t.Errorf("%s: no serverInfo", method)
				}
			}
		},
		"4 headers are held against the body, -32020": func(t *testing.T) {
			for _, wrong := range [][]string{{"MCP-Protocol-Version", "2025-06-18"}, {"Mcp-Method", "tools/list"}, {"Mcp-Name", "fail"}, {"Mcp-Name", ""}} {
				w, m := modern(t, private, "tools/call", `"name":"echo",`, append([]string{"Mcp-Name", "echo"}, wrong...)...)
				if w.Code != 400 || m.Error == nil || m.Error.Code != -32020 {
					t.Errorf("%v: %d %s", wrong, w.Code, w.Body)
				}
			}
		},
		"5 an unserved version is 400 -32022 with the list": func(t *testing.T) {
			w, m := post(t, private, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "MCP-Protocol-Version", "1999-01-01", "Authorization", "")
			if w.Code != 400 || m.Error == nil || m.Error.Code != -32022 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if got, ok := m.Error.Data["supported"].([]any); !ok || len(got) != len(mcp.Versions()) || m.Error.Data["requested"] != "1999-01-01" {
				t.Errorf("data %v", m.Error.Data)
			}
		},
		"6 an unknown method is 404 -32601": func(t *testing.T) {
			if w, m := modern(t, private, "no/such", ""); w.Code != 404 || m.Error == nil || m.Error.Code != -32601 {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		},
		"7 initialize answers and never returns 2026-07-28": func(t *testing.T) {
			for _, v := range append(mcp.Versions(), "1999-01-01") {
				w, m := post(t, private, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+string(v)+`"}}`)
				got := members(t, m.Result)["protocolVersion"]
				want := v
				if v == mcp.V20260728 || v == "1999-01-01" {
					want = mcp.V20251125
				}
				if w.Code != 200 || got != string(want) {
					t.Errorf("asked for %s: %d %v", v, w.Code, got)
				}
			}
		},
		// The authorization server's metadata and its address pinning are asserted in its own room; here: the endpoint
		// leads there, the challenge passes through whole in the header, its copy and the data.
		"8 the challenge leads to the authorization server": func(t *testing.T) {
			want := `Bearer resource_metadata="https://buzon.test/.well-known/oauth-protected-resource/mcp"`
			w, m := modern(t, private, "tools/list", "", "Authorization", "")
			if w.Code != 401 || w.Header().Get("WWW-Authenticate") != want || w.Header().Get("X-MCP-Challenge") != want {
				t.Errorf("%d %v", w.Code, w.Header())
			}
			if m.Error == nil || m.Error.Data["resourceMetadata"] != "https://buzon.test/.well-known/oauth-protected-resource/mcp" || m.Error.Data["kind"] != "unauthenticated" {
				t.Errorf("data %v", m.Error)
			}
		},
	} {
		t.Run(name, ask)
	}
}
