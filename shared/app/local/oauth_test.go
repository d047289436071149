package local_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/testkit/robot"
)

// site is a running service and a browser at it.
type site struct {
	home
	origin  string
	browser *http.Client
}

func newSite(t *testing.T) *site {
	t.Helper()
	h := newHome(t)
	h.serve(t)
	for _, args := range [][]string{{"org", "create", "mine", "--owner", "me@example.com"}, {"domain", "add", "mine", "example.com"}} {
		if code, _, errs := h.buzon(t.Context(), args...); code != 0 {
			t.Fatal(errs)
		}
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{home: h, browser: &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	u, err := url.Parse(s.link(t))
	if err != nil {
		t.Fatal(err)
	}
	s.origin = u.Scheme + "://" + u.Host
	return s
}

func (s *site) link(t *testing.T) string {
	t.Helper()
	code, out, errs := s.buzon(t.Context(), "user", "link", "me@example.com")
	if code != 0 {
		t.Fatal(errs)
	}
	return strings.TrimSpace(out)
}

type answer struct {
	*http.Response
	body string
}

func (s *site) send(t *testing.T, method, path, body string, header ...string) answer {
	t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = s.origin + path
	}
	r, err := http.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := s.browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res, string(text)}
}

func (s *site) form(t *testing.T, path string, pairs ...string) answer {
	t.Helper()
	f := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}
	return s.send(t, http.MethodPost, path, f.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

func (a answer) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%d: %s", a.StatusCode, a.body)
	}
	return v
}

func (s *site) list(t *testing.T, token string) answer {
	t.Helper()
	return s.send(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		"Content-Type", "application/json", "Authorization", "Bearer "+token)
}

// TestConnect is a client's whole life: challenge, discovery, registration, sign-in, consent, tokens, use, refresh, step-up,
// revocation, over HTTP as a client and a browser do it.
//
// Clauses: I01 I32 I34 I36
func TestConnect(t *testing.T) {
	s := newSite(t)
	challenge := s.send(t, http.MethodPost, "/mcp", "{}", "Content-Type", "application/json")
	at := regexp.MustCompile(`resource_metadata="([^"]+)"`).FindStringSubmatch(challenge.Header.Get("WWW-Authenticate"))
	if challenge.StatusCode != http.StatusUnauthorized || at == nil {
		t.Fatalf("%d %v", challenge.StatusCode, challenge.Header)
	}
	resource := s.send(t, http.MethodGet, at[1], "").json(t)
	issuer, _ := resource["authorization_servers"].([]any)
	meta := s.send(t, http.MethodGet, issuer[0].(string)+"/.well-known/oauth-authorization-server", "").json(t)
	if meta["issuer"] != issuer[0] || issuer[0] != s.origin || resource["resource"] != s.origin+"/mcp" {
		t.Fatalf("issuer %v, metadata %v", issuer, meta)
	}
	const callback = "http://localhost:51212/callback"
	client, _ := s.send(t, http.MethodPost, meta["registration_endpoint"].(string),
		`{"client_name":"Robot","redirect_uris":["http://localhost/callback"]}`, "Content-Type", "application/json").json(t)["client_id"].(string)

	const verifier = "a-verifier-of-forty-three-characters-or-more"
	sum := sha256.Sum256([]byte(verifier))
	ask := func(scope string) string {
		return meta["authorization_endpoint"].(string) + "?" + url.Values{
			"client_id": {client}, "redirect_uri": {callback}, "response_type": {"code"}, "state": {"x y"}, "resource": {s.origin + "/mcp"},
			"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "scope": {scope},
		}.Encode()
	}
	person, err := robot.New(func(context.Context) (string, error) { return s.link(t), nil })
	if err != nil {
		t.Fatal(err)
	}
	connect := func(scope string) map[string]any {
		t.Helper()
		back, err := person.Authorize(t.Context(), ask(scope), robot.Answer{})
		if err != nil || !strings.HasPrefix(back.String(), callback) {
			t.Fatalf("consent: %v %v", back, err)
		}
		if back.Query().Get("state") != "x y" || back.Query().Get("iss") != s.origin {
			t.Errorf("answer %v", back.Query())
		}
		return s.form(t, meta["token_endpoint"].(string), "grant_type", "authorization_code", "code", back.Query().Get("code"),
			"client_id", client, "redirect_uri", callback, "code_verifier", verifier, "resource", s.origin+"/mcp").json(t)
	}
	tokens := connect("emails:read inboxes:read")
	access, _ := tokens["access_token"].(string)
	refresh, _ := tokens["refresh_token"].(string)
	tools := s.list(t, access)
	if tools.StatusCode != http.StatusOK || !strings.Contains(tools.body, `"emails_list"`) || strings.Contains(tools.body, `"inboxes_upsert"`) {
		t.Fatalf("tools: %d %.300s", tools.StatusCode, tools.body)
	}
	refreshed := s.form(t, "/token", "grant_type", "refresh_token", "refresh_token", refresh, "client_id", client).json(t)
	if got := s.list(t, refreshed["access_token"].(string)); got.StatusCode != http.StatusOK {
		t.Fatalf("after refresh: %d", got.StatusCode)
	}

	// Step-up: the challenge of a tool beyond the scope says what to ask for; the person is asked again.
	refused := s.send(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"inboxes_upsert","arguments":{"slug":"hello"}}}`,
		"Content-Type", "application/json", "Authorization", "Bearer "+access)
	needed := regexp.MustCompile(`scope="([^"]+)"`).FindStringSubmatch(refused.Header.Get("WWW-Authenticate"))
	if refused.StatusCode != http.StatusForbidden || needed == nil || !strings.Contains(needed[1], "inboxes:write") {
		t.Fatalf("step-up: %d %v", refused.StatusCode, refused.Header)
	}
	wide := connect("emails:read inboxes:read " + needed[1])
	if got := s.list(t, wide["access_token"].(string)); !strings.Contains(got.body, `"inboxes_upsert"`) {
		t.Errorf("after step-up: %d %.300s", got.StatusCode, got.body)
	}

	if back, err := person.Authorize(t.Context(), ask("emails:read"), robot.Answer{Deny: true}); err != nil || back.Query().Get("error") != "access_denied" ||
		back.Query().Get("iss") != s.origin || back.Query().Has("code") {
		t.Errorf("denied: %v %v", back, err)
	}
	if got := s.form(t, meta["revocation_endpoint"].(string), "token", refresh, "client_id", client); got.StatusCode != http.StatusOK {
		t.Errorf("revoke: %d %s", got.StatusCode, got.body)
	}
	dead := s.form(t, "/token", "grant_type", "refresh_token", "refresh_token", refreshed["refresh_token"].(string), "client_id", client)
	if dead.StatusCode != http.StatusBadRequest {
		t.Errorf("refresh after revocation: %d %s", dead.StatusCode, dead.body)
	}
	if got := s.list(t, wide["access_token"].(string)); got.StatusCode != http.StatusOK {
		t.Errorf("revoking one grant ended another: %d", got.StatusCode)
	}
}

func TestServiceAccount(t *testing.T) {
	s := newSite(t)
	code, out, errs := s.buzon(t.Context(), "service", "create", "mine", "robot", "--role", "viewer")
	var made struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if code != 0 || json.Unmarshal([]byte(out), &made) != nil || made.Secret == "" {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	token, _ := s.form(t, "/token", "grant_type", "client_credentials", "client_id", made.ID, "client_secret", made.Secret).json(t)["access_token"].(string)
	if got := s.list(t, token); got.StatusCode != http.StatusOK || !strings.Contains(got.body, `"emails_list"`) || strings.Contains(got.body, `"inboxes_upsert"`) {
		t.Errorf("tools of a viewer: %d %.300s", got.StatusCode, got.body)
	}
	if code, out, _ := s.buzon(t.Context(), "service", "list", "mine"); code != 0 || !strings.Contains(out, made.ID) || strings.Contains(out, "secret") {
		t.Errorf("list: %d %s", code, out)
	}
	for _, args := range [][]string{
		{"service", "create", "mine", "x", "--role", "nobody"}, {"service", "create", "nowhere", "x"}, {"service", "revoke", "svc_x"},
		{"service", "create", "mine", "x", "--role", "viewer", "--scope", "inboxes:write"}, {"service", "create", "mine", "x", "--workspace", "nowhere"},
		{"user", "link", "nobody@example.com"}, {"keys", "rotate"}, // too soon
	} {
		if code, out, _ := s.buzon(t.Context(), args...); code != 1 {
			t.Errorf("%v: %d %s", args, code, out)
		}
	}
	if code, _, errs := s.buzon(t.Context(), "service", "revoke", made.ID); code != 0 {
		t.Error(errs)
	}
	if got := s.form(t, "/token", "grant_type", "client_credentials", "client_id", made.ID, "client_secret", made.Secret); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("a revoked account: %d", got.StatusCode)
	}
}

func TestP01_ChallengeInItsOwnHeaderAndInOurs(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"/mcp", "/mcp/"} {
		got := s.send(t, http.MethodPost, path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Content-Type", "application/json")
		standard := got.Header.Values("WWW-Authenticate")
		if got.StatusCode != http.StatusUnauthorized || len(standard) != 1 || got.Header.Get("X-MCP-Challenge") != standard[0] {
			t.Errorf("%s: %d %v", path, got.StatusCode, got.Header)
		}
		if !strings.Contains(got.body, `"resource_metadata":"`+s.origin+`/.well-known/oauth-protected-resource/mcp"`) {
			t.Errorf("%s: the body lacks the challenge: %s", path, got.body)
		}
	}
}

// Clauses: I26 S20
func TestP02_EveryMethodWithoutATokenIs401(t *testing.T) {
	s := newSite(t)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodPut, http.MethodPost} {
		got := s.send(t, method, "/mcp", "")
		if challenge := got.Header.Get("WWW-Authenticate"); got.StatusCode != http.StatusUnauthorized || challenge == "" || strings.Contains(challenge, "error=") {
			t.Errorf("%s without a token: %d %q", method, got.StatusCode, challenge)
		}
		got = s.send(t, method, "/mcp", "", "Authorization", "Bearer nonsense")
		if challenge := got.Header.Get("WWW-Authenticate"); got.StatusCode != http.StatusUnauthorized || !strings.Contains(challenge, `error="invalid_token"`) {
			t.Errorf("%s with a bad token: %d %q", method, got.StatusCode, challenge)
		}
	}
}

func TestP28_VersionBeforeToken(t *testing.T) {
	s := newSite(t)
	got := s.send(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Content-Type", "application/json", "MCP-Protocol-Version", "1999-01-01")
	if got.StatusCode != http.StatusBadRequest || !bytes.Contains([]byte(got.body), []byte("-32022")) || !strings.Contains(got.body, "2026-07-28") {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}

func TestStartPage(t *testing.T) {
	s := newSite(t)
	got := s.send(t, http.MethodGet, "/", "", "Accept-Language", "es")
	for _, want := range []string{s.origin + "/mcp", "Claude", "VS Code", "Cursor", "ChatGPT", "curl", `lang="es"`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}
