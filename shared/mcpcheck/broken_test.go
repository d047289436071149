package mcpcheck_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/mcpcheck"
)

const (
	jsonMedia = "application/json"
	empty     = `{"jsonrpc":"2.0","id":$id,"result":{"tools":[]}}`
	prmPath   = "/.well-known/oauth-protected-resource/mcp"
	prmRoot   = "/.well-known/oauth-protected-resource"
	asPath    = "/.well-known/oauth-authorization-server"
)

func rpcError(code string) string {
	return `{"jsonrpc":"2.0","id":$id,"error":{"code":` + code + `,"message":"no"}}`
}

func gone(at string) breaker { return reply(path(at), http.StatusNotFound, "text/plain", "none") }

func mute(names ...string) breaker {
	return alter(always, func(h http.Header, code int, body string) (int, string) {
		for _, name := range names {
			h.Del(name)
		}
		return code, strings.ReplaceAll(body, "resource_metadata", "other")
	})
}

func rename(to string) breaker {
	return alter(always, func(h http.Header, code int, body string) (int, string) {
		if v := h.Get("WWW-Authenticate"); v != "" {
			h.Del("WWW-Authenticate")
			h.Set(to, v)
		}
		return code, body
	})
}

func prm(body string) breaker {
	return func(next http.Handler) http.Handler {
		return reply(path(prmRoot), 200, jsonMedia, body)(reply(path(prmPath), 200, jsonMedia, body)(next))
	}
}

func unknownVersion(s seen) bool { return s.Header.Get("MCP-Protocol-Version") == "1999-01-01" }

func asks(version string) func(seen) bool {
	return func(s seen) bool {
		return s.rpc("initialize") && strings.Contains(s.body, `"protocolVersion":"`+version+`"`)
	}
}

func olderList(s seen) bool {
	return s.rpc("tools/list") && !strings.Contains(s.body, "protocolVersion") && !s.modern()
}

// broken is a way to be wrong for each check, and what the check must say of it.
//
//nolint:gochecknoglobals // constant table
var broken = []struct {
	id   string
	name string
	want mcpcheck.Status
	how  []breaker
}{
	{"discover", "answered with a page", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return s.rpc("server/discover") && s.modern() }, 200, "text/html", "<h1>hi</h1>")}},
	{"discover", "does not name 2026-07-28", mcpcheck.Fail, []breaker{swap(rpc("server/discover"), `"2026-07-28",`, "")}},
	{"discover-public", "tools are open, discovery is not", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return s.rpc("tools/list") && !s.named() }, 200, jsonMedia, empty)}},
	{"result-type", "missing on the list", mcpcheck.Fail, []breaker{swap(rpc("tools/list"), `"resultType":"complete",`, "")}},
	{"cache-hints", "a negative time", mcpcheck.Fail, []breaker{swap(rpc("tools/list"), `"ttlMs":0`, `"ttlMs":-1`)}},
	{"cache-hints", "a scope of its own", mcpcheck.Fail, []breaker{swap(rpc("server/discover"), `"private"`, `"mine"`)}},
	{"header-version", "believes the body", mcpcheck.Fail, []breaker{forge(func(s seen) {
		if strings.Contains(s.body, `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`) {
			s.Header.Set("MCP-Protocol-Version", "2026-07-28")
		}
	})}},
	{"header-method", "does not compare", mcpcheck.Fail, []breaker{forge(func(s seen) {
		if m := methodOf.FindStringSubmatch(s.body); m != nil && s.Header.Get("Mcp-Method") != "" {
			s.Header.Set("Mcp-Method", m[1])
		}
	})}},
	{"header-method-missing", "does not need it", mcpcheck.Fail, []breaker{forge(func(s seen) {
		if m := methodOf.FindStringSubmatch(s.body); m != nil && s.Header.Get("Mcp-Method") == "" {
			s.Header.Set("Mcp-Method", m[1])
		}
	})}},
	{"header-name", "does not compare", mcpcheck.Fail, []breaker{forge(func(s seen) {
		if m := nameOf.FindStringSubmatch(s.body); m != nil && s.Header.Get("Mcp-Name") == "another-name" {
			s.Header.Set("Mcp-Name", m[1])
		}
	})}},
	{"header-name", "another code", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return s.Header.Get("Mcp-Name") == "another-name" }, 400, jsonMedia, rpcError("-32600"))}},
	{"version-error", "says no more", mcpcheck.Fail, []breaker{reply(unknownVersion, 400, jsonMedia, rpcError("-32022"))}},
	{"version-error", "with status 200", mcpcheck.Fail, []breaker{alter(unknownVersion, func(_ http.Header, _ int, body string) (int, string) { return 200, body })}},
	{"version-error", "claims to serve it", mcpcheck.Fail, []breaker{swap(unknownVersion, `"supported":[`, `"supported":["1999-01-01",`)}},
	{"version-error", "does not repeat what was asked", mcpcheck.Fail, []breaker{swap(unknownVersion, `"requested":"1999-01-01"`, `"requested":"x"`)}},
	{"version-before-token", "asks for the token first", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return unknownVersion(s) && !s.named() }, 401, jsonMedia, rpcError("-32600"))}},
	{"unknown-method", "with status 200", mcpcheck.Fail, []breaker{alter(rpc("mcpcheck/no-such-method"), func(_ http.Header, _ int, body string) (int, string) { return 200, body })}},
	{"unknown-method", "404 of nobody", mcpcheck.Fail, []breaker{reply(rpc("mcpcheck/no-such-method"), 404, "text/html", "none")}},
	{"initialize", "gone", mcpcheck.Warn, []breaker{reply(rpc("initialize"), 404, jsonMedia, rpcError("-32601"))}},
	{"initialize", "not a JSON-RPC answer", mcpcheck.Fail, []breaker{reply(rpc("initialize"), 400, "text/plain", "no")}},
	{"initialize", "without capabilities", mcpcheck.Fail, []breaker{reply(rpc("initialize"), 200, jsonMedia, `{"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":"2025-06-18"}}`)}},
	{"initialize-never-stateless", "hands it out", mcpcheck.Fail, []breaker{swap(asks("2026-07-28"), "2025-11-25", "2026-07-28")}},
	{"client-metadata-documents", "only dynamic registration", mcpcheck.Warn, []breaker{swap(path(asPath), `"client_id_metadata_document_supported":true`, `"registration_endpoint":"https://as.test/register"`)}},
	{"client-metadata-documents", "neither", mcpcheck.Fail, []breaker{swap(path(asPath), `"client_id_metadata_document_supported":true`, `"x":1`)}},
	{"get", "405 before 401", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return s.Method == http.MethodGet && s.URL.Path == "/mcp" }, 405, jsonMedia, "")}},
	{"challenge", "renamed by a gateway", mcpcheck.Warn, []breaker{rename("X-Amzn-Remapped-Www-Authenticate")}},
	{"challenge", "only the neutral header", mcpcheck.Warn, []breaker{rename("X-MCP-Challenge")}},
	{"challenge", "only the error's data", mcpcheck.Warn, []breaker{alter(always, func(h http.Header, code int, body string) (int, string) {
		h.Del("WWW-Authenticate")
		h.Del("X-MCP-Challenge")
		return code, body
	})}},
	{"challenge", "nowhere, and no documents", mcpcheck.Fail, []breaker{mute("WWW-Authenticate", "X-MCP-Challenge"), gone(prmPath), gone(prmRoot)}},
	{"challenge", "names a document that is not there", mcpcheck.Fail, []breaker{gone(prmPath)}},
	{"challenge", "403 instead", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return !s.named() && s.rpc("tools/list") }, 403, jsonMedia, "")}},
	{"invalid-token", "anybody's", mcpcheck.Fail, []breaker{forge(func(s seen) {
		if s.named() {
			s.Header.Set("Authorization", "Bearer "+goodToken)
		}
	})}},
	{"invalid-token", "the reason is missing", mcpcheck.Warn, []breaker{alter(func(s seen) bool { return strings.Contains(s.Header.Get("Authorization"), "mcpcheck") },
		func(h http.Header, code int, body string) (int, string) {
			h.Del("WWW-Authenticate")
			h.Del("X-MCP-Challenge")
			return code, strings.ReplaceAll(body, "invalid_token", "x")
		})}},
	{"resource-metadata-path", "only at the root", mcpcheck.Warn, []breaker{gone(prmPath)}},
	{"resource-metadata-path", "behind the token", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return strings.HasPrefix(s.URL.Path, prmRoot) }, 401, jsonMedia, "{}")}},
	{"resource-metadata-root", "only at the path", mcpcheck.Warn, []breaker{gone(prmRoot)}},
	{"resource-metadata-root", "not JSON", mcpcheck.Fail, []breaker{prm("<html>")}},
	{"resource-equality", "another server's", mcpcheck.Fail, []breaker{prm(`{"resource":"https://other.test/mcp","authorization_servers":["https://as.test"]}`)}},
	{"resource-equality", "a sibling whose name begins alike", mcpcheck.Fail, []breaker{func(next http.Handler) http.Handler {
		return swap(path(prmPath), `/mcp"`, `/mc"`)(next)
	}}},
	{"resource-equality", "the origin only", mcpcheck.Warn, []breaker{swap(path(prmPath), `/mcp"`, `"`)}},
	{"authorization-server", "no metadata", mcpcheck.Fail, []breaker{gone(asPath)}},
	{"authorization-server", "no endpoints", mcpcheck.Fail, []breaker{swap(path(asPath), "token_endpoint", "x")}},
	{"authorization-server", "plain http elsewhere", mcpcheck.Fail, []breaker{prm(`{"resource":"https://x.test/mcp","authorization_servers":["http://as.test"]}`)}},
	{"issuer", "a slash too many", mcpcheck.Fail, []breaker{swap(path(asPath), `","authorization_endpoint`, `/","authorization_endpoint`)}},
	{"pkce", "plain only", mcpcheck.Fail, []breaker{swap(path(asPath), "S256", "plain")}},
	{"origin", "not judged", mcpcheck.Fail, []breaker{forge(func(s seen) { s.Header.Del("Origin") })}},
	{"envelope-missing", "served", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return s.modern() && s.rpc("tools/list") && !strings.Contains(s.body, "_meta") }, 200, jsonMedia, empty)}},
	{"envelope-capabilities", "served", mcpcheck.Fail, []breaker{reply(func(s seen) bool {
		return strings.Contains(s.body, "_meta") && !strings.Contains(s.body, "clientCapabilities")
	}, 200, jsonMedia, empty)}},
	{"tasks-undeclared", "served", mcpcheck.Fail, []breaker{reply(func(s seen) bool {
		return s.rpc("tasks/get") && !strings.Contains(s.body, "extensions")
	}, 200, jsonMedia, empty)}},
	{"tasks-unknown", "made up", mcpcheck.Fail, []breaker{reply(func(s seen) bool {
		return s.rpc("tasks/get") && strings.Contains(s.body, "extensions")
	}, 200, jsonMedia, empty)}},
	{"tasks-unknown", "404", mcpcheck.Warn, []breaker{reply(func(s seen) bool {
		return s.rpc("tasks/get") && strings.Contains(s.body, "extensions")
	}, 404, jsonMedia, rpcError("-32602"))}},
	{"tasks-header", "not compared", mcpcheck.Fail, []breaker{forge(func(s seen) {
		if s.Header.Get("Mcp-Name") == "another-task" {
			s.Header.Set("Mcp-Name", "mcpcheck-no-such-task")
		}
	})}},
	{"name-base64", "not decoded", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return strings.HasPrefix(s.Header.Get("Mcp-Name"), "=?base64?") }, 400, jsonMedia, rpcError("-32020"))}},
	{"name-comma", "split by the adapter", mcpcheck.Fail, []breaker{forge(func(s seen) {
		if name, rest, ok := strings.Cut(s.Header.Get("Mcp-Name"), ","); ok {
			s.Header["Mcp-Name"] = []string{name, strings.TrimSpace(rest)}
		}
	})}},
	{"malformed", "500", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return strings.HasSuffix(s.body, `"method":`) }, 500, jsonMedia, "")}},
	{"malformed", "plain text", mcpcheck.Warn, []breaker{reply(func(s seen) bool { return strings.HasSuffix(s.body, `"method":`) }, 400, "text/plain", "bad")}},
	{"batch", "served", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return strings.HasPrefix(s.body, "[") }, 200, jsonMedia, "["+empty+"]")}},
	{"id-null", "taken for a notification", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return strings.Contains(s.body, `"id":null`) }, 202, "", "")}},
	{"notification", "200 with a body", mcpcheck.Fail, []breaker{reply(rpc("notifications/initialized"), 200, jsonMedia, "{}")}},
	{"notification", "202 with a body", mcpcheck.Fail, []breaker{reply(rpc("notifications/initialized"), 202, jsonMedia, "{}")}},
	{"id-exact", "floating point", mcpcheck.Fail, []breaker{swap(rpc("tools/list"), "9007199254740993", "9007199254740992")}},
	{"id-exact", "as text", mcpcheck.Fail, []breaker{swap(rpc("tools/list"), "9007199254740993", `"9007199254740993"`)}},
	{"content-type", "a page's", mcpcheck.Fail, []breaker{alter(rpc("tools/list"), func(h http.Header, code int, body string) (int, string) {
		h.Set("Content-Type", "text/html")
		return code, body
	})}},
	{"content-type", "two responses as an array", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return s.rpc("server/discover") && s.modern() }, 200, jsonMedia, "["+empty+"]")}},
	{"one-line", "indented", mcpcheck.Warn, []breaker{swap(rpc("tools/list"), `"result":{`, "\"result\":{\n  ")}},
	{"server-info", "missing", mcpcheck.Warn, []breaker{swap(rpc("tools/list"), "modelcontextprotocol/serverInfo", "x/y")}},
	{"tools", "a schema that is no object's", mcpcheck.Fail, []breaker{swap(rpc("tools/list"), `"type":"object"`, `"type":"array"`)}},
	{"tools", "no list", mcpcheck.Fail, []breaker{swap(rpc("tools/list"), `"tools":[`, `"things":[`)}},
	{"no-session", "minted", mcpcheck.Warn, []breaker{alter(rpc("tools/list"), func(h http.Header, code int, body string) (int, string) {
		h.Set("Mcp-Session-Id", "s")
		return code, body
	})}},
	{"no-session", "needed", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return s.rpc("tools/list") && s.named() && s.Header.Get("Mcp-Session-Id") == "" }, 400, jsonMedia, rpcError("-32000"))}},
	{"redirects", "the endpoint", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return s.rpc("tools/list") && s.named() }, 308, "", "", "Location", "/mcp/")}},
	{"redirects", "a document", mcpcheck.Warn, []breaker{reply(path(prmRoot), 302, "", "", "Location", prmPath)}},
	{"initialize-unknown", "agrees", mcpcheck.Fail, []breaker{swap(asks("1999-01-01"), "2025-11-25", "1999-01-01")}},
	{"initialize-unknown", "an error", mcpcheck.Warn, []breaker{reply(asks("1999-01-01"), 200, jsonMedia, rpcError("-32602"))}},
	{"legacy-list", "not served", mcpcheck.Fail, []breaker{reply(olderList, 400, jsonMedia, rpcError("-32000"))}},
	{"legacy-list", "wants the session that it made", mcpcheck.Warn, []breaker{reply(olderList, 400, jsonMedia, rpcError("-32000")),
		alter(rpc("initialize"), func(h http.Header, code int, body string) (int, string) {
			h.Set("Mcp-Session-Id", "s")
			return code, body
		})}},
	{"legacy-results", "of the new shape", mcpcheck.Warn, []breaker{swap(olderList, `"result":{`, `"result":{"ttlMs":0,`)}},
	{"legacy-unknown-method", "plain text", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return s.rpc("mcpcheck/no-such-method") && !s.modern() }, 400, "text/plain", "no")}},
	{"call", "no content", mcpcheck.Fail, []breaker{swap(rpc("tools/call"), `"content":[`, `"contents":[`)}},
	{"call", "an error of the protocol", mcpcheck.Fail, []breaker{reply(func(s seen) bool { return s.Header.Get("Mcp-Name") == "look" }, 500, jsonMedia, rpcError("-32603"))}},
	{"call", "wants arguments", mcpcheck.Warn, []breaker{reply(func(s seen) bool { return s.Header.Get("Mcp-Name") == "look" }, 200, jsonMedia, rpcError("-32602"))}},
}

// TestEachCheckCanFail: a check that no server can fail says nothing.
func TestEachCheckCanFail(t *testing.T) {
	tried := map[string]bool{"address-pinning": true} // can't be seen from outside, and says so
	for _, c := range broken {
		tried[c.id] = true
		t.Run(c.id+"/"+c.name, func(t *testing.T) {
			report := newWorld(t, c.how...).check(t, mcpcheck.Options{Token: goodToken, Call: "look"})
			if got, why := status(report, c.id); got != c.want {
				t.Errorf("got %s (%s), want %s", got, why, c.want)
			}
			if report.OK() != (report.Summary.Fail == 0) || c.want == mcpcheck.Fail && report.OK() {
				t.Errorf("OK is %t with %+v", report.OK(), report.Summary)
			}
		})
	}
	for _, n := range newWorld(t).check(t, mcpcheck.Options{}).Results {
		if !tried[n.ID] {
			t.Errorf("no broken server for %s", n.ID)
		}
	}
}
