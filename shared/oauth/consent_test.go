package oauth

import (
	"net/http"
	"strings"
	"testing"
)

// Clauses: S05
func TestConsentNarrows(t *testing.T) {
	for _, c := range []struct {
		name, scope string
		changes     []string
		granted     string
		workspace   string
		only        bool
	}{
		{"everything", "emails:read emails:write", nil, "emails:read emails:write", "ws_1", true},
		{"write taken out", "emails:read emails:write", []string{"scope.emails:write", ""}, "emails:read", "ws_1", true},
		{"read can't be taken out", "emails:read emails:write", []string{"scope.emails:read", "", "scope.emails:write", ""}, "emails:read", "ws_1", true},
		{"nothing is put in", "emails:read", []string{"scope.emails:write", "yes", "scope.keys:write", "yes"}, "emails:read", "ws_1", true},
		{"another workspace", "emails:read", []string{"workspace", "ws_2"}, "emails:read", "ws_2", true},
		{"all workspaces", "emails:read", []string{"workspace", "ws_2", "all", "yes"}, "emails:read", "ws_2", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			b := s.robot()
			b.signIn(t, ana)
			got := s.redeemed(t, b.approve(t, request(testClient, testCallback, "scope", c.scope), testCallback, c.changes...).Get("code"), testClient, testCallback)
			claims, err := s.verifier.Verify(t.Context(), got.Access)
			if err != nil {
				t.Fatal(err)
			}
			if got.Scope != c.granted || claims.Scope != c.granted || claims.Workspace != c.workspace || claims.Only != c.only {
				t.Errorf("granted %q, claims %+v", got.Scope, claims)
			}
			if claims.Subject != ana || claims.Organization != "org_acme" || claims.ClientID != testClient || got.Expires != 900 || got.Type != "Bearer" {
				t.Errorf("claims %+v, reply %+v", claims, got)
			}
		})
	}
}

func TestConsentRefuses(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	for name, changes := range map[string][]string{
		"another organization's workspace": {"workspace", "ws_9"},
		"no workspace":                     {"workspace", ""},
		"no answer":                        {"answer", ""},
		"another answer":                   {"answer", "yes"},
		"nothing left":                     {"scope.keys:write", ""},
		"no question":                      {"request", ""},
		"another question":                 {"request", strings.Repeat("a", 43)},
	} {
		f := fields(t, b.get(t, request(testClient, testCallback, "scope", "keys:write")), ConsentPath)
		f.Set("answer", "allow")
		f.Set(changes[0], changes[1])
		if w := b.post(t, ConsentPath, f); w.Code < 400 || w.Header().Get("Location") != "" {
			t.Errorf("%s: %d %q", name, w.Code, w.Header().Get("Location"))
		}
	}
	if grants, err := s.Grants(t.Context(), ana); err != nil || len(grants) > 0 {
		t.Errorf("grants %v, %v", grants, err)
	}
}

// TestConsentIsJudgedByTheRoleOfNow: what a person lost between question and answer is not granted.
func TestConsentIsJudgedByTheRoleOfNow(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	f := fields(t, b.get(t, request(testClient, testCallback)), ConsentPath)
	f.Set("answer", "allow")
	p := s.people[ana]
	p.Scopes, p.Workspaces = []string{"emails:read"}, p.Workspaces[1:]
	s.people[ana] = p
	if w := b.post(t, ConsentPath, f); w.Code != http.StatusBadRequest {
		t.Errorf("a workspace that is out of reach: %d", w.Code)
	}
	f.Set("workspace", "ws_2")
	if got := s.redeemed(t, answered(t, b.post(t, ConsentPath, f), testCallback).Get("code"), testClient, testCallback); got.Scope != "emails:read" {
		t.Errorf("granted %q", got.Scope)
	}
}

// Clauses: S17 S18
func TestConsentPage(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	local := s.registered(t, "http://localhost/cb", "cursor://x/cb")
	web := s.registered(t, testCallback)
	for _, c := range []struct {
		name, target, lang string
		want, not          []string
	}{
		{"document", request(testClient, testCallback), "en", []string{"app.example", "“<bdi>App</bdi>” (not verified)", "(verified)", "May emails:read", "Support", "Sales", "ana@acme.test", "Acme", testAudience}, []string{"this computer"}},
		{"in Spanish", request(testClient, testCallback), "es-MX,en;q=0.5", []string{`lang="es"`, "Puede emails:read", "Dar acceso"}, []string{"May emails:read"}},
		{"registered", request(web, testCallback), "en", []string{"Unknown", "Test"}, []string{"(verified)", "this computer"}},
		{"on this computer", request(local, "http://localhost:51212/cb"), "en", []string{"an app on this computer", "localhost:51212", "Any program on this computer"}, []string{"(verified)"}},
		{"private scheme", request(local, "cursor://x/cb"), "en", []string{"an app on this computer", "cursor://", "Any program"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := b.do(t, http.MethodGet, c.target, "", "Accept-Language", c.lang)
			body := w.Body.String()
			for _, want := range c.want {
				if !strings.Contains(body, want) {
					t.Errorf("no %q", want)
				}
			}
			for _, not := range c.not {
				if strings.Contains(body, not) {
					t.Errorf("%q is there", not)
				}
			}
		})
	}
	other := s.robot()
	other.signIn(t, beto)
	if body := other.get(t, request(testClient, testCallback)).Body.String(); !strings.Contains(body, "more than your role allows") || strings.Contains(body, "emails:write") {
		t.Error("scopes beyond the role are shown, or not mentioned")
	}
	w := other.get(t, request(testClient, testCallback, "scope", "emails:write"))
	if strings.Contains(w.Body.String(), `value="allow"`) {
		t.Error("nothing can be granted, and it can be approved")
	}
	f := fields(t, w, ConsentPath)
	f.Set("answer", "deny")
	if q := answered(t, other.post(t, ConsentPath, f), testCallback); q.Get("error") != "access_denied" {
		t.Errorf("denied: %v", q)
	}
}

// Clauses: S13 6749-3.1.2
func TestAuthorizationErrors(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	for _, c := range []struct {
		name, code string
		changes    []string
	}{
		{"no response type", codeInvalidRequest, []string{"response_type", ""}},
		{"implicit", "unsupported_response_type", []string{"response_type", "token"}},
		{"hybrid", "unsupported_response_type", []string{"response_type", "code id_token"}},
		{"fragment", codeInvalidRequest, []string{"response_mode", "fragment"}},
		{"request object", "request_not_supported", []string{"request", "x"}},
		{"request object by reference", "request_uri_not_supported", []string{"request_uri", "https://x"}},
		{"scope too long", codeInvalidScope, []string{"scope", strings.Repeat("a", maxScope+1)}},
	} {
		q := answered(t, b.get(t, request(testClient, testCallback, c.changes...)), testCallback)
		if q.Get("error") != c.code || q.Get("error_description") == "" || q.Get("code") != "" {
			t.Errorf("%s: %v", c.name, q)
		}
	}
	for name, target := range map[string]string{
		"redirect of another": request(testClient, "https://evil.example/cb"),
		"redirect longer":     request(testClient, testCallback+"/x"),
		"no client":           request("", testCallback),
		"bad escape":          AuthorizePath + "?client_id=%zz",
	} {
		if w := b.get(t, target); w.Code != http.StatusBadRequest || w.Header().Get("Location") != "" {
			t.Errorf("%s: %d %q", name, w.Code, w.Header().Get("Location"))
		}
	}
	// One registered redirect may be left out, of several none is guessed.
	if q := answered(t, b.get(t, request(testClient, "", "redirect_uri", "", "response_type", "x")), testCallback); q.Get("error") == "" {
		t.Errorf("the only redirect: %v", q)
	}
	two := s.registered(t, testCallback, testCallback+"2")
	if w := b.get(t, request(two, "", "redirect_uri", "")); w.Code != http.StatusBadRequest {
		t.Errorf("one of two redirects was guessed: %d", w.Code)
	}
	// The redirect's own query stays.
	own := s.registered(t, "https://app.example/cb?tenant=1")
	if q := b.approve(t, request(own, "https://app.example/cb?tenant=1"), "https://app.example/cb?tenant=1&"); q.Get("tenant") != "1" || q.Get("code") == "" {
		t.Errorf("query: %v", q)
	}
}

// TestNoOpenRedirector: anybody can register a client; a link of ours must not send a stranger to it.
//
// Clauses: S14 9700-4.11.2
func TestNoOpenRedirector(t *testing.T) {
	s := newSite(t)
	id := s.registered(t, "https://evil.example/")
	for name, changes := range map[string][]string{
		"good": {}, "no response type": {"response_type", ""}, "no challenge": {"code_challenge", ""}, "no scope that is known": {"scope", "x"},
		"another resource": {"resource", "https://evil.example/"},
	} {
		b := s.robot()
		w := b.get(t, request(id, "https://evil.example/", changes...))
		if w.Code != http.StatusOK || w.Header().Get("Location") != "" {
			t.Errorf("%s: a stranger was redirected: %d %q", name, w.Code, w.Header().Get("Location"))
		}
		f := fields(t, w, SignInPath)
		f.Set("link", s.link(t, ana))
		again := b.get(t, b.post(t, SignInPath, f).Header().Get("Location"))
		if name == "good" && again.Code != http.StatusOK || name != "good" && answered(t, again, "https://evil.example/").Get("error") == "" {
			t.Errorf("%s: after sign-in %d", name, again.Code)
		}
	}
}

// TestTokensOfLongClientsFit: a client id travels in every token, and tokens have a bound.
func TestTokensOfLongClientsFit(t *testing.T) {
	s := newSite(t)
	var redirects []string
	for i := range maxRedirects {
		redirects = append(redirects, "https://app.example/"+strings.Repeat(string(rune('a'+i)), maxRedirectBytes/maxRedirects-len("https://app.example/")))
	}
	got, err := s.seal(registration{Name: strings.Repeat("\U00010348", maxClientName), Redirects: redirects})
	if err != nil {
		t.Fatal(err)
	}
	b := s.robot()
	b.signIn(t, ana)
	tokens := s.redeemed(t, b.approve(t, request(got.ID, redirects[0]), redirects[0]).Get("code"), got.ID, redirects[0])
	if len(tokens.Access) > MaxTokenBytes-600 { // room for every scope and longer ids
		t.Errorf("id of %d bytes, token of %d, at most %d", len(got.ID), len(tokens.Access), MaxTokenBytes)
	}
}
