package oauth

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// The pitfalls are faults that other servers had in public, each as input and expected output. P1, P2 and P28 need the door
// and the endpoint: they are tests of the wiring (app/local).

// Clauses: I07 I08 8414-2 8414-3 8414-3.3
func TestP03_MetadataAtBothPlaces(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{
		ServerPath, ServerPath + "/mcp", OpenIDPath, OpenIDPath + "/mcp", "/mcp" + OpenIDPath,
	} {
		w := s.robot().get(t, path)
		var m map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &m); w.Code != http.StatusOK || err != nil {
			t.Fatalf("%s: %d %v", path, w.Code, err)
		}
		if m["issuer"] != testOrigin {
			t.Errorf("%s: issuer %v", path, m["issuer"])
		}
		if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: headers %v", path, w.Header())
		}
	}
}

// Clauses: S12 8252-7.3 8252-8.4
func TestP04_RedirectMatching(t *testing.T) {
	for _, c := range []struct {
		name, registered, requested string
		want                        bool
	}{
		{"equal", "https://c/cb", "https://c/cb", true},
		{"loopback port by name", "http://localhost/callback", "http://localhost:51212/callback", true},
		{"loopback port by address", "http://127.0.0.1/cb", "http://127.0.0.1:1/cb", true},
		{"loopback, other port registered", "http://127.0.0.1:33418/", "http://127.0.0.1:65535/", true},
		{"loopback IPv6", "http://[::1]/cb", "http://[::1]:8080/cb", true},
		{"loopback 127/8", "http://127.9.9.9/cb", "http://127.9.9.9:8080/cb", true},
		{"port left out", "http://localhost:1234/cb", "http://localhost/cb", true},
		{"private scheme", "cursor://host/cb", "cursor://host/cb", true},
		{"https port", "https://c/cb", "https://c:8443/cb", false},
		{"https localhost port", "https://localhost/cb", "https://localhost:8443/cb", false},
		{"user info", "http://localhost/", "http://localhost:1@evil/", false},
		{"user info without a port", "http://localhost/cb", "http://localhost@evil/cb", false},
		{"name for address", "http://localhost/cb", "http://127.0.0.1/cb", false},
		{"address for name", "http://127.0.0.1/cb", "http://localhost:1/cb", false},
		{"other loopback address", "http://127.0.0.1/cb", "http://127.0.0.2/cb", false},
		{"other path", "http://localhost/cb", "http://localhost:1/cb2", false},
		{"more path", "http://localhost/cb", "http://localhost:1/cb/x", false},
		{"query added", "http://localhost/cb", "http://localhost:1/cb?x", false},
		{"fragment added", "http://localhost/cb", "http://localhost:1/cb#x", false},
		{"slash", "http://localhost", "http://localhost/", false},
		{"scheme", "http://localhost/cb", "https://localhost/cb", false},
		{"upper case host", "http://localhost/cb", "http://LOCALHOST/cb", false},
		{"upper case https host", "https://c/cb", "https://C/cb", false},
		{"suffix", "https://example.com/cb", "https://evil-example.com/cb", false},
		{"subdomain", "https://example.com/cb", "https://a.example.com/cb", false},
		{"prefix", "https://example.com/cb", "https://example.com/cbx", false},
		{"dot segments", "https://example.com/cb", "https://example.com/x/../cb", false},
		{"encoded", "https://example.com/cb", "https://example.com/%63b", false},
		{"port 0", "http://localhost/cb", "http://localhost:0/cb", false},
		{"port with zeros", "http://localhost/cb", "http://localhost:080/cb", false},
		{"port too large", "http://localhost/cb", "http://localhost:65536/cb", false},
		{"empty port", "http://localhost/cb", "http://localhost:/cb", false},
		{"two ports", "http://localhost/cb", "http://localhost:1:2/cb", false},
		{"port with letters", "http://localhost/cb", "http://localhost:8a/cb", false},
		{"below localhost", "http://localhost/cb", "http://localhost.evil/cb", false},
		{"short loopback", "http://127.0.0.1/cb", "http://127.1/cb", false},
		{"line break", "http://localhost/cb", "http://localhost:1/cb\r\nX: y", false},
		{"empty", "https://c/cb", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := matchRedirect(c.registered, c.requested); got != c.want {
				t.Errorf("match(%q, %q) = %t", c.registered, c.requested, got)
			}
		})
	}
	// /token compares byte by byte with what was requested, not with what was registered.
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	id := s.registered(t, "http://localhost/callback")
	for redirect, want := range map[string]int{
		"http://localhost:51212/callback": 200, "http://localhost/callback": 400, "http://localhost:51213/callback": 400,
	} {
		code := b.approve(t, request(id, "http://localhost:51212/callback"), "http://localhost:51212/callback?").Get("code")
		if got := s.redeemed(t, code, id, redirect); got.Status != want {
			t.Errorf("redeem with %s: %d %s", redirect, got.Status, got.Error)
		}
	}
}

// Clauses: I18 8707-2a 8707-2.2
func TestP05_ResourceForms(t *testing.T) {
	for _, c := range []struct {
		resource string
		want     bool
	}{
		{"https://mail.example.com/mcp", true},
		{"https://mail.example.com/mcp/", true},
		{"https://mail.example.com", true},
		{"https://mail.example.com/", true},
		{"HTTPS://MAIL.Example.com/mcp", true},
		{"https://mail.example.com:443/mcp", true},
		{"https://mail.example.com/MCP", false},
		{"https://mail.example.com/other", false},
		{"https://mail.example.com/mcp/x", false},
		{"https://mail.example.com/mcp?x=1", false},
		{"https://mail.example.com/mcp#x", false},
		{"https://mail.example.com:8443/mcp", false},
		{"http://mail.example.com/mcp", false},
		{"https://evil.example/mcp", false},
		{"https://mail.example.com@evil.example/mcp", false},
		{"https://user@mail.example.com/mcp", false},
		{"mail.example.com/mcp", false},
		{"urn:x", false},
		{"https://mail.example.com/%6dcp", false},
	} {
		if got := namesResource(c.resource, testAudience); got != c.want {
			t.Errorf("namesResource(%q) = %t", c.resource, got)
		}
	}
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	if q := answered(t, b.get(t, request(testClient, testCallback, "resource", "https://mail.example.com/other")), testCallback); q.Get("error") != codeInvalidTarget {
		t.Errorf("answer %v", q)
	}
	// Checked before the code is consumed: the client mends its request and goes on.
	code := b.approve(t, request(testClient, testCallback, "resource", "https://mail.example.com/"), testCallback).Get("code")
	list := []string{"grant_type", grantCode, "code", code, "client_id", testClient, "code_verifier", testVerifier}
	if got := s.token(t, append(list, "resource", "https://evil.example/mcp")...); got.Error != codeInvalidTarget {
		t.Errorf("foreign resource: %+v", got)
	}
	got := s.token(t, append(list, "resource", "https://MAIL.example.com")...)
	if got.Status != http.StatusOK {
		t.Fatalf("good resource after it: %+v", got)
	}
	if c, err := s.verifier.Verify(t.Context(), got.Access); err != nil || c.Audience != testAudience {
		t.Errorf("audience %+v, %v", c, err)
	}
	if got := s.refreshed(t, got.Refresh, testClient, "resource", "https://evil.example/"); got.Error != codeInvalidTarget {
		t.Errorf("refresh with a foreign resource: %+v", got)
	}
	if got := s.refreshed(t, got.Refresh, testClient); got.Status != http.StatusOK {
		t.Errorf("refresh after it: %+v", got)
	}
}

// Clauses: 8707-2.1
func TestP06_NoResource(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	code := b.approve(t, request(testClient, testCallback, "resource", ""), testCallback).Get("code")
	got := s.token(t, "grant_type", grantCode, "code", code, "client_id", testClient, "code_verifier", testVerifier)
	if got.Status != http.StatusOK {
		t.Fatalf("%+v", got)
	}
	if c, err := s.verifier.Verify(t.Context(), got.Access); err != nil || c.Audience != testAudience {
		t.Errorf("audience %+v, %v", c, err)
	}
}

// Clauses: 6749-3.3
func TestP07_NoScopeOrUnknownScope(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	for _, c := range []struct{ name, scope, want string }{
		{"none: the default set", "", "emails:read emails:write"},
		{"unknown ones are dropped", "emails:read nonsense:read", "emails:read"},
		{"reserved ones only by name", "keys:write", "keys:write"},
		{"twice", "emails:read emails:read", "emails:read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code := b.approve(t, request(testClient, testCallback, "scope", c.scope), testCallback).Get("code")
			if got := s.redeemed(t, code, testClient, testCallback); got.Scope != c.want {
				t.Errorf("granted %q, want %q", got.Scope, c.want)
			}
		})
	}
	q := answered(t, b.get(t, request(testClient, testCallback, "scope", "nonsense")), testCallback)
	if q.Get("error") != codeInvalidScope {
		t.Errorf("nothing known: %v", q)
	}
}

func TestP08_OfflineAccess(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	for scope, want := range map[string]string{"emails:read offline_access": "emails:read", "offline_access": "emails:read emails:write"} {
		code := b.approve(t, request(testClient, testCallback, "scope", scope), testCallback).Get("code")
		got := s.redeemed(t, code, testClient, testCallback)
		if got.Scope != want || got.Refresh == "" {
			t.Errorf("scope %q: %+v", scope, got)
		}
		if again := s.refreshed(t, got.Refresh, testClient, "scope", "emails:read offline_access"); again.Status != http.StatusOK {
			t.Errorf("refresh with offline_access: %+v", again)
		}
	}
	var m serverMetadata
	if err := json.Unmarshal(s.documents0(), &m); err != nil || !strings.Contains(strings.Join(m.Scopes, " "), "offline_access") {
		t.Errorf("scopes_supported %v, %v", m.Scopes, err)
	}
}

func (s *site) documents0() []byte { return s.Server.documents[0] }

// Clauses: OIDC-3.1.2.6
func TestP09_Prompt(t *testing.T) {
	s := newSite(t)
	id := s.registered(t, testCallback)
	if q := answered(t, s.robot().get(t, request(id, testCallback, "prompt", "none")), testCallback); q.Get("error") != "login_required" || q.Get("iss") != testOrigin {
		t.Errorf("none, signed out: %v", q)
	}
	b := s.robot()
	b.signIn(t, ana)
	if q := answered(t, b.get(t, request(id, testCallback, "prompt", "none")), testCallback); q.Get("error") != "interaction_required" || q.Get("iss") != testOrigin {
		t.Errorf("none, signed in: %v", q)
	}
	for _, prompt := range []string{"consent", "login", "select_account consent", "nonsense"} {
		if w := b.get(t, request(id, testCallback, "prompt", prompt)); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `value="allow"`) {
			t.Errorf("%s: %d %s", prompt, w.Code, title(w))
		}
	}
	// A document is not fetched for a stranger, so its redirect is not proven, so nothing is redirected.
	if w := s.robot().get(t, request(testClient, testCallback, "prompt", "none")); w.Code != http.StatusBadRequest || w.Header().Get("Location") != "" {
		t.Errorf("none, signed out, document: %d", w.Code)
	}
}

// Clauses: I15 I16 9207-2 9207-2.3
func TestP10_IssOnEveryAnswer(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	var m serverMetadata
	if err := json.Unmarshal(s.documents0(), &m); err != nil || !m.Iss {
		t.Fatalf("not advertised: %v", err)
	}
	good := b.approve(t, request(testClient, testCallback), testCallback)
	bad := answered(t, b.get(t, request(testClient, testCallback, "response_type", "token")), testCallback)
	f := fields(t, b.get(t, request(testClient, testCallback)), ConsentPath)
	f.Set("answer", "deny")
	denied := answered(t, b.post(t, ConsentPath, f), testCallback)
	for name, q := range map[string]url.Values{"success": good, "error": bad, "denied": denied} {
		if got := q["iss"]; len(got) != 1 || got[0] != m.Issuer {
			t.Errorf("%s: iss %q, want %q", name, got, m.Issuer)
		}
		if q.Get("state") != "s1" {
			t.Errorf("%s: state %q", name, q.Get("state"))
		}
	}
	if denied.Get("error") != "access_denied" || denied.Get("code") != "" || good.Get("error") != "" {
		t.Errorf("denied %v, good %v", denied, good)
	}
}

// Clauses: 6749-5.1
func TestP11_TokenContentType(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ name, kind, body string }{
		{"two types in one", "application/json, application/x-www-form-urlencoded", "grant_type=authorization_code"},
		{"JSON", "application/json", `{"grant_type":"authorization_code"}`},
		{"none", "", "grant_type=authorization_code"},
		{"multipart", "multipart/form-data; boundary=x", "--x--"},
		{"bad escape", "application/x-www-form-urlencoded", "grant_type=%zz"},
		{"semicolons", "application/x-www-form-urlencoded", "grant_type=a;client_id=b"},
		{"not UTF-8", "application/x-www-form-urlencoded", "grant_type=%ff"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, s.robot().do(t, http.MethodPost, TokenPath, c.body, "Content-Type", c.kind))
			if got.Status != http.StatusBadRequest || got.Error != codeInvalidRequest || got.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%+v", got)
			}
		})
	}
	if got := read(t, s.robot().do(t, http.MethodPost, TokenPath, "grant_type=authorization_code&client_id=x", "Content-Type", "Application/X-WWW-Form-Urlencoded; charset=utf-8")); got.Error != codeInvalidClient {
		t.Errorf("a form with a charset: %+v", got)
	}
	if got := read(t, s.robot().post(t, TokenPath, url.Values{"x": {strings.Repeat("a", maxForm)}})); got.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large form: %+v", got)
	}
}

// Clauses: 7591-3 7009-2.3
func TestP12_CORS(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{TokenPath, RegisterPath, RevokePath, ServerPath, OpenIDPath, KeysPath} {
		w := s.robot().do(t, http.MethodOptions, path, "", "Origin", "https://page.example", "Access-Control-Request-Method", "POST")
		h := w.Header()
		if w.Code != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %d %v", path, w.Code, h)
		}
		for _, name := range []string{"authorization", "content-type", "accept", "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id", "last-event-id"} {
			if !strings.Contains(strings.ToLower(h.Get("Access-Control-Allow-Headers")), name) {
				t.Errorf("%s: no %s", path, name)
			}
		}
	}
	if got := s.token(t, "grant_type", "x"); got.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("an error of /token: %v", got.Header)
	}
	for _, path := range []string{AuthorizePath, ConsentPath, SignInPath, SignOutPath} {
		if w := s.robot().do(t, http.MethodOptions, path, "", "Origin", "https://page.example"); w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s is open to other pages", path)
		}
	}
}

// Clauses: 6749-4.1.2.1a
func TestP13_UnknownClient(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	other := newSite(t)
	secret := other.registered(t, testCallback)
	for _, id := range []string{"nobody", "dcr_x", secret[:len(secret)-2], "http://app.example/c.json", "https://app.example/../c.json", ""} {
		for name, r := range map[string]*robot{"signed in": b, "stranger": s.robot()} {
			w := r.get(t, request(id, testCallback))
			if w.Code != http.StatusBadRequest || w.Header().Get("Location") != "" || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
				t.Errorf("%s, client %.20q: %d %q", name, id, w.Code, w.Header().Get("Location"))
			}
		}
	}
	if got := s.redeemed(t, "code", "nobody", testCallback); got.Status != http.StatusUnauthorized || got.Error != codeInvalidClient {
		t.Errorf("at /token: %+v", got)
	}
	// An id that was registered once never dies: another instance, a year later.
	id := s.registered(t, testCallback)
	s.pass(400 * 24 * time.Hour)
	s.mux = s.instance(t, testOrigin).Routes()
	c := s.robot()
	c.signIn(t, ana)
	if q := c.approve(t, request(id, testCallback), testCallback); q.Get("code") == "" {
		t.Errorf("an old client: %v", q)
	}
}

// Clauses: 7591-2 7591-3.2.1 7591-3.2.2
func TestP14_Registration(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		name, body, want string
		status           int
	}{
		{"Cursor", `{"redirect_uris":["cursor://anysphere.cursor-retrieval/oauth/cb","https://www.cursor.com/agents/cb","http://localhost:8787/callback"]}`, "native", 201},
		{"VS Code", `{"redirect_uris":["http://127.0.0.1:33418","https://vscode.dev/redirect"],"application_type":"native"}`, "native", 201},
		{"Claude", `{"redirect_uris":["https://claude.ai/api/mcp/auth_callback"],"token_endpoint_auth_method":"client_secret_post"}`, "web", 201},
		{"web with loopback", `{"redirect_uris":["http://localhost:1/cb"],"application_type":"web"}`, "native", 201},
		{"native with https", `{"redirect_uris":["https://a.example/cb"],"application_type":"native"}`, "native", 201},
		{"unknown members", `{"redirect_uris":["https://a.example/cb"],"logo_uri":"javascript:x","jwks":{},"x":[1]}`, "web", 201},
		{"http to the network", `{"redirect_uris":["http://a.example/cb"]}`, codeInvalidRedirect, 400},
		{"one bad of two", `{"redirect_uris":["https://a.example/cb","http://a.example/cb"]}`, codeInvalidRedirect, 400},
		{"javascript", `{"redirect_uris":["javascript:alert(1)"]}`, codeInvalidRedirect, 400},
		{"javascript with slashes", `{"redirect_uris":["javascript://x/%0aalert(1)"]}`, codeInvalidRedirect, 400},
		{"JavaScript", `{"redirect_uris":["JavaScript://x/"]}`, codeInvalidRedirect, 400},
		{"data", `{"redirect_uris":["data:text/html,x"]}`, codeInvalidRedirect, 400},
		{"file", `{"redirect_uris":["file:///etc/passwd"]}`, codeInvalidRedirect, 400},
		{"fragment", `{"redirect_uris":["https://a.example/cb#x"]}`, codeInvalidRedirect, 400},
		{"user", `{"redirect_uris":["https://u@a.example/cb"]}`, codeInvalidRedirect, 400},
		{"relative", `{"redirect_uris":["/cb"]}`, codeInvalidRedirect, 400},
		{"line break", `{"redirect_uris":["https://a.example/cb\r\nSet-Cookie: x"]}`, codeInvalidRedirect, 400},
		{"none", `{"redirect_uris":[]}`, codeInvalidRedirect, 400},
		{"absent", `{}`, codeInvalidRedirect, 400},
		{"too many", `{"redirect_uris":["https://a/1","https://a/2","https://a/3","https://a/4","https://a/5","https://a/6","https://a/7","https://a/8","https://a/9","https://a/10","https://a/11"]}`, codeInvalidRedirect, 400},
		{"not a list", `{"redirect_uris":"https://a.example/cb"}`, codeInvalidMetadata, 400},
		{"not JSON", `redirect_uris=x`, codeInvalidMetadata, 400},
		{"too large", `{"client_name":"` + strings.Repeat("a", maxRegistration) + `"}`, codeInvalidMetadata, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.pass(time.Minute)
			got := read(t, s.robot().do(t, http.MethodPost, RegisterPath, c.body, "Content-Type", "application/json"))
			if got.Status != c.status || got.App+got.Error != c.want {
				t.Fatalf("%d %s %s", got.Status, got.App, got.Error)
			}
			if c.status != http.StatusCreated {
				return
			}
			if strings.Contains(got.Body, "registration_client_uri") || strings.Contains(got.Body, "client_secret") || got.Auth != "none" || len(got.ID) > 2048 {
				t.Errorf("answer %s", got.Body)
			}
			var sent, kept struct {
				Redirects []string `json:"redirect_uris"`
			}
			if json.Unmarshal([]byte(c.body), &sent) != nil || json.Unmarshal([]byte(got.Body), &kept) != nil ||
				strings.Join(sent.Redirects, " ") != strings.Join(kept.Redirects, " ") {
				t.Errorf("kept %v of %v", kept.Redirects, sent.Redirects)
			}
		})
	}
}
