package oauth

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Clauses: S06
func TestP15_ConcurrentRefreshAndReuse(t *testing.T) {
	s := newSite(t)
	first := s.connect(t)
	a, b := s.refreshed(t, first.Refresh, testClient), s.refreshed(t, first.Refresh, testClient)
	if a.Status != http.StatusOK || b.Status != http.StatusOK || a.Refresh != b.Refresh || a.Refresh == first.Refresh {
		t.Fatalf("twice at once: %d %d, same successor %t", a.Status, b.Status, a.Refresh == b.Refresh)
	}
	s.pass(refreshGrace)
	if got := s.refreshed(t, first.Refresh, testClient); got.Status != http.StatusOK || got.Refresh != a.Refresh {
		t.Errorf("at the end of the grace: %+v", got)
	}
	s.pass(time.Second)
	if got := s.refreshed(t, first.Refresh, testClient); got.Error != codeInvalidGrant {
		t.Errorf("after the grace: %+v", got)
	}
	if got := s.refreshed(t, a.Refresh, testClient); got.Error != codeInvalidGrant {
		t.Errorf("the family lives: %+v", got)
	}
	if s.active(t, a.Access) {
		t.Error("access tokens of the family live")
	}
}

// Clauses: 9700-4.14
func TestP15_TwoGenerationsBackIsReuse(t *testing.T) {
	s := newSite(t)
	first := s.connect(t)
	second := s.refreshed(t, first.Refresh, testClient)
	third := s.refreshed(t, second.Refresh, testClient)
	if got := s.refreshed(t, first.Refresh, testClient); got.Error != codeInvalidGrant || s.active(t, third.Access) {
		t.Errorf("two back within the grace: %+v", got)
	}
}

func TestP15_ForgedTokensHaveNoEffect(t *testing.T) {
	s := newSite(t)
	first := s.connect(t)
	second := s.refreshed(t, first.Refresh, testClient)
	parts := strings.Split(strings.TrimPrefix(second.Refresh, refreshPrefix), ".")
	for _, token := range []string{
		"x", "bzr_", "bzr_..", refreshPrefix + parts[0] + ".1." + parts[2], refreshPrefix + parts[0] + ".3." + parts[2],
		refreshPrefix + parts[0] + ".02." + parts[2], refreshPrefix + parts[0] + ".-1." + parts[2], second.Refresh + "x",
		strings.TrimPrefix(second.Refresh, refreshPrefix), refreshPrefix + "grant_0." + parts[1] + "." + parts[2], strings.Repeat("a", 5000),
		refreshPrefix + parts[0] + ".9223372036854775807." + parts[2],
	} {
		if got := s.refreshed(t, token, testClient); got.Status != http.StatusBadRequest || got.Error != codeInvalidGrant {
			t.Errorf("%.60q: %+v", token, got)
		}
	}
	if got := s.refreshed(t, second.Refresh, testClient); got.Status != http.StatusOK {
		t.Errorf("the real one afterwards: %+v", got)
	}
}

// Clauses: 7009-2.1b
func TestP16_RevokeRacingRefresh(t *testing.T) {
	s := newSite(t)
	for range 10 {
		first := s.connect(t)
		var group sync.WaitGroup
		var rotated reply
		group.Go(func() { rotated = s.refreshed(t, first.Refresh, testClient) })
		group.Go(func() { s.robot().post(t, RevokePath, pairs("token", first.Refresh, "client_id", testClient)) })
		group.Wait()
		for _, token := range []string{first.Refresh, rotated.Refresh} {
			if token == "" { // the revocation came first
				continue
			}
			if got := s.refreshed(t, token, testClient); got.Error != codeInvalidGrant {
				t.Fatalf("a token after revocation: %+v", got)
			}
		}
		if s.active(t, first.Access) {
			t.Fatal("the grant lives")
		}
	}
}

// Clauses: 7009-2 7009-2.1a 7009-2.2
func TestP16_RevokeChecksTheOwner(t *testing.T) {
	s := newSite(t)
	first := s.connect(t)
	stranger := s.registered(t, testCallback)
	for name, token := range map[string]string{"refresh": first.Refresh, "access": first.Access} {
		if got := read(t, s.robot().post(t, RevokePath, pairs("token", token, "client_id", stranger))); got.Error != codeInvalidGrant {
			t.Errorf("%s token of another client: %+v", name, got)
		}
	}
	if !s.active(t, first.Access) {
		t.Error("another client ended the grant")
	}
	for _, token := range []string{"nonsense", "bzr_x.1.y", first.Refresh + "x", first.Access + "x"} {
		if got := read(t, s.robot().post(t, RevokePath, pairs("token", token, "client_id", testClient, "token_type_hint", "nonsense"))); got.Status != http.StatusOK {
			t.Errorf("unknown token %.20q: %+v", token, got)
		}
	}
	if got := read(t, s.robot().post(t, RevokePath, pairs("token", first.Access))); got.Status != http.StatusUnauthorized {
		t.Errorf("no client: %+v", got)
	}
	if got := read(t, s.robot().post(t, RevokePath, pairs("client_id", testClient))); got.Error != codeInvalidRequest {
		t.Errorf("no token: %+v", got)
	}
	if got := read(t, s.robot().post(t, RevokePath, pairs("token", first.Access, "client_id", testClient, "token_type_hint", "access_token"))); got.Status != http.StatusOK || s.active(t, first.Access) {
		t.Errorf("the owner: %+v", got)
	}
}

func TestP17_TwoInstallationsOfOneClient(t *testing.T) {
	s := newSite(t)
	a, b := s.connect(t), s.connect(t)
	if got := s.refreshed(t, a.Refresh, testClient); got.Status != http.StatusOK {
		t.Errorf("connecting B ended A: %+v", got)
	}
	s.robot().post(t, RevokePath, pairs("token", b.Refresh, "client_id", testClient))
	if !s.active(t, a.Access) || s.active(t, b.Access) {
		t.Error("revoking B must end B alone")
	}
}

// Clauses: 6749-3.1c 6749-4.1.2.1b
func TestP18_LongState(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	for _, state := range []string{
		strings.Repeat("s", 521), strings.Repeat("S~", maxState/2), `{"a":"b c+d&e=f%20","é":"ñ"}`, "+ +", " leading",
	} {
		if got := b.approve(t, request(testClient, testCallback, "state", state), testCallback).Get("state"); got != state {
			t.Errorf("state of %d bytes came back as %.40q", len(state), got)
		}
		// Through sign-in too.
		c := s.robot()
		link, _, err := s.SignInLink(t.Context(), ana)
		if err != nil {
			t.Fatal(err)
		}
		f := fields(t, c.get(t, request(testClient, testCallback, "state", state)), SignInPath)
		f.Set("link", link)
		if got := c.approve(t, c.post(t, SignInPath, f).Header().Get("Location"), testCallback).Get("state"); got != state {
			t.Errorf("state of %d bytes came through sign-in as %.40q", len(state), got)
		}
	}
	for name, target := range map[string]string{
		"state": request(testClient, testCallback, "state", strings.Repeat("s", maxState+1)),
		"query": request(testClient, testCallback, "x", strings.Repeat("x", maxQuery)),
	} {
		if w := b.get(t, target); w.Code != http.StatusBadRequest && w.Code != http.StatusRequestURITooLong || w.Header().Get("Location") != "" {
			t.Errorf("%s too long: %d", name, w.Code)
		}
	}
}

// Clauses: 6749-6
func TestP19_NoWiderScopeByRefresh(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	got := s.redeemed(t, b.approve(t, request(testClient, testCallback, "scope", "emails:read"), testCallback).Get("code"), testClient, testCallback)
	if wide := s.refreshed(t, got.Refresh, testClient, "scope", "emails:read emails:write"); wide.Error != codeInvalidScope {
		t.Errorf("wider: %+v", wide)
	}
	if same := s.refreshed(t, got.Refresh, testClient, "scope", "emails:read"); same.Status != http.StatusOK || same.Scope != "emails:read" {
		t.Errorf("the refusal had an effect: %+v", same)
	}
	wide := s.connect(t)
	narrow := s.refreshed(t, wide.Refresh, testClient, "scope", "emails:read")
	if c, err := s.verifier.Verify(t.Context(), narrow.Access); err != nil || narrow.Scope != "emails:read" || c.Scope != "emails:read" {
		t.Errorf("narrower: %+v %v", narrow, err)
	}
	if back := s.refreshed(t, narrow.Refresh, testClient); back.Scope != "emails:read emails:write" {
		t.Errorf("narrowing one token narrowed the grant: %+v", back)
	}
}

// Clauses: 7636-4.6
func TestP20_PKCE(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	for name, changes := range map[string][]string{
		"none":               {"code_challenge", "", "code_challenge_method", ""},
		"no challenge":       {"code_challenge", ""},
		"no method":          {"code_challenge_method", ""},
		"plain":              {"code_challenge_method", "plain", "code_challenge", testVerifier},
		"lower case":         {"code_challenge_method", "s256"},
		"short":              {"code_challenge", "abc"},
		"padded":             {"code_challenge", challengeOf(testVerifier) + "="},
		"standard base64":    {"code_challenge", strings.Repeat("+", 43)},
		"with a line break":  {"code_challenge", challengeOf(testVerifier)[:42] + "\n"},
		"loose trailing bit": {"code_challenge", strings.Repeat("A", 42) + "B"},
	} {
		if q := answered(t, b.get(t, request(testClient, testCallback, changes...)), testCallback); q.Get("error") != codeInvalidRequest || q.Get("code") != "" {
			t.Errorf("%s: %v", name, q)
		}
	}
	for name, c := range map[string]struct {
		verifier string
		ok       bool
	}{
		"43":            {strings.Repeat("a", 43), true},
		"128":           {strings.Repeat("~", 128), true},
		"all unreserve": {"abcdefghijklmnopqrstuvwxyzABCDEF0123456789-._~", true},
		"42":            {strings.Repeat("a", 42), false},
		"129":           {strings.Repeat("a", 129), false},
		"slash":         {strings.Repeat("a", 42) + "/", false},
		"space":         {strings.Repeat("a", 42) + " ", false},
		"not ASCII":     {strings.Repeat("a", 42) + "é", false},
	} {
		code := b.approve(t, request(testClient, testCallback, "code_challenge", challengeOf(c.verifier)), testCallback).Get("code")
		list := []string{"grant_type", grantCode, "code", code, "client_id", testClient, "code_verifier"}
		if got := s.token(t, append(list, strings.Repeat("b", 43))...); got.Error != codeInvalidGrant {
			t.Errorf("%s: another verifier: %+v", name, got)
		}
		if got := s.token(t, list[:6]...); got.Error != codeInvalidRequest {
			t.Errorf("%s: no verifier: %+v", name, got)
		}
		if got := s.token(t, append(list, c.verifier)...); (got.Status == http.StatusOK) != c.ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Clauses: S10
func TestP21_OpenIDDocument(t *testing.T) {
	s := newSite(t)
	var plain, openid map[string]any
	if json.Unmarshal(s.Server.documents[0], &plain) != nil || json.Unmarshal(s.Server.documents[1], &openid) != nil {
		t.Fatal("not JSON")
	}
	for _, name := range []string{"jwks_uri", "subject_types_supported", "id_token_signing_alg_values_supported", "code_challenge_methods_supported"} {
		if openid[name] == nil {
			t.Errorf("OpenID document lacks %s", name)
		}
	}
	for name, value := range plain {
		if a, b := toJSON(value), toJSON(openid[name]); a != b {
			t.Errorf("%s differs: %s, %s", name, a, b)
		}
	}
	uri, _ := plain["jwks_uri"].(string)
	w := s.robot().get(t, strings.TrimPrefix(uri, testOrigin))
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"d"`) || strings.Count(w.Body.String(), `"kid"`) != 2 {
		t.Errorf("keys: %d %s", w.Code, w.Body)
	}
}

func toJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Clauses: 6749-2.3 6749-5.2
func TestP22_SecretsOfPublicClients(t *testing.T) {
	s := newSite(t)
	first := s.connect(t)
	registered := s.registered(t, testCallback)
	auth := func(id, secret string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))
	}
	form := pairs("grant_type", grantRefresh, "refresh_token", first.Refresh)
	for name, c := range map[string]struct {
		header string
		body   []string
		want   int
		code   string
	}{
		"basic":                    {auth(testClient, "x"), nil, 401, codeInvalidClient},
		"basic, registered client": {auth(registered, "x"), nil, 401, codeInvalidClient},
		"post":                     {"", []string{"client_id", testClient, "client_secret", "x"}, 401, codeInvalidClient},
		"both":                     {auth(testClient, "x"), []string{"client_secret", "x"}, 400, codeInvalidRequest},
		"two names":                {auth(testClient, ""), []string{"client_id", registered}, 400, codeInvalidRequest},
		"no client":                {"", nil, 401, codeInvalidClient},
		"another client":           {"", []string{"client_id", registered}, 400, codeInvalidGrant},
		"not base64":               {"Basic %%%", nil, 401, codeInvalidClient},
		"no colon":                 {"Basic " + base64.StdEncoding.EncodeToString([]byte("x")), nil, 401, codeInvalidClient},
		"bad escape":               {"Basic " + base64.StdEncoding.EncodeToString([]byte("%zz:x")), nil, 401, codeInvalidClient},
		"bearer":                   {"Bearer x", nil, 401, codeInvalidClient},
		"empty":                    {"", []string{"client_id", ""}, 401, codeInvalidClient},
	} {
		f := url.Values{}
		for k, v := range form {
			f[k] = v
		}
		for k, v := range pairs(c.body...) {
			f[k] = v
		}
		var header []string
		if c.header != "" {
			header = []string{"Authorization", c.header}
		}
		got := read(t, s.robot().do(t, http.MethodPost, TokenPath, f.Encode(), header...))
		if got.Status != c.want || got.Error != c.code {
			t.Errorf("%s: %d %s", name, got.Status, got.Error)
		}
		if c.header != "" && got.Status == http.StatusUnauthorized && !strings.HasPrefix(got.Header.Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("%s: no Basic challenge", name)
		}
	}
	// An empty password is no secret: the header only names the client.
	if got := read(t, s.robot().do(t, http.MethodPost, TokenPath, form.Encode(), "Authorization", auth(testClient, ""))); got.Status != http.StatusOK {
		t.Errorf("basic without a secret: %+v", got)
	}
}

// Clauses: 6749-10.13
func TestP23_PolicyLetsTheRedirectPass(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	for name, w := range map[string]*httptest.ResponseRecorder{
		"consent": b.get(t, request(testClient, testCallback)), "sign-in": s.robot().get(t, request(testClient, testCallback)),
		"error": b.get(t, request("nobody", testCallback)), "start": b.get(t, "/"), "signed in": b.get(t, SignInPath),
	} {
		h := w.Header()
		policy := h.Get("Content-Security-Policy")
		if strings.Contains(policy, "form-action") || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", name, policy)
		}
		for header, want := range map[string]string{
			"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		} {
			if h.Get(header) != want {
				t.Errorf("%s: %s %q", name, header, h.Get(header))
			}
		}
	}
}

// Clauses: S19
func TestP24_ConsentIsBoundToTheSession(t *testing.T) {
	s := newSite(t)
	victim, attacker := s.robot(), s.robot()
	victim.signIn(t, ana)
	attacker.signIn(t, beto)
	own := fields(t, attacker.get(t, request(testClient, testCallback)), ConsentPath)
	own.Set("answer", "allow")
	if w := victim.post(t, ConsentPath, own); w.Code != http.StatusForbidden || w.Header().Get("Location") != "" {
		t.Errorf("attacker's question in the victim's browser: %d", w.Code)
	}
	if w := s.robot().post(t, ConsentPath, own); w.Code != http.StatusForbidden {
		t.Errorf("without a cookie: %d", w.Code)
	}
	mine := fields(t, victim.get(t, request(testClient, testCallback)), ConsentPath)
	mine.Set("answer", "allow")
	victim.header["Sec-Fetch-Site"] = "cross-site"
	if w := victim.post(t, ConsentPath, mine); w.Code != http.StatusForbidden {
		t.Errorf("from another site: %d", w.Code)
	}
	delete(victim.header, "Sec-Fetch-Site")
	if w := victim.do(t, http.MethodPost, ConsentPath, mine.Encode(), "Origin", "https://evil.example"); w.Code != http.StatusForbidden {
		t.Errorf("from another origin: %d", w.Code)
	}
	if w := victim.do(t, http.MethodPost, ConsentPath, mine.Encode(), "Origin", testOrigin, "Sec-Fetch-Site", "same-origin"); w.Code != http.StatusSeeOther {
		t.Errorf("from our page: %d %s", w.Code, title(w))
	}
	if w := victim.post(t, ConsentPath, mine); w.Code != http.StatusForbidden {
		t.Errorf("answered twice: %d", w.Code)
	}
	// Approved a moment ago, and asked again.
	if w := victim.get(t, request(testClient, testCallback)); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `value="allow"`) {
		t.Errorf("consent was remembered: %d", w.Code)
	}
}

func TestP24_TwoTabs(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	one, two := fields(t, b.get(t, request(testClient, testCallback, "state", "one")), SignInPath), fields(t, b.get(t, request(testClient, testCallback, "state", "two")), SignInPath)
	for i, f := range []url.Values{one, two} {
		link, _, err := s.SignInLink(t.Context(), ana)
		if err != nil {
			t.Fatal(err)
		}
		f.Set("link", link)
		want := []string{"one", "two"}[i]
		if w := b.post(t, SignInPath, f); w.Code != http.StatusSeeOther || !strings.Contains(w.Header().Get("Location"), "state="+want) {
			t.Errorf("sign-in of tab %s: %d %s", want, w.Code, title(w))
		}
	}
	first, second := fields(t, b.get(t, request(testClient, testCallback, "state", "one")), ConsentPath), fields(t, b.get(t, request(testClient, testCallback, "state", "two")), ConsentPath)
	for i, f := range []url.Values{second, first} {
		f.Set("answer", "allow")
		if got, want := answered(t, b.post(t, ConsentPath, f), testCallback).Get("state"), []string{"two", "one"}[i]; got != want {
			t.Errorf("state %q, want %q", got, want)
		}
	}
}

// Clauses: 6749-10.12
func TestP24_SignInIsBoundToTheBrowser(t *testing.T) {
	s := newSite(t)
	attacker, victim := s.robot(), s.robot()
	link, _, err := s.SignInLink(t.Context(), beto)
	if err != nil {
		t.Fatal(err)
	}
	f := fields(t, attacker.get(t, request(testClient, testCallback)), SignInPath)
	f.Set("link", link)
	victim.get(t, SignInPath)
	if w := victim.post(t, SignInPath, f); w.Code != http.StatusForbidden || victim.cookies["__Host-session"] != "" {
		t.Errorf("attacker's form in the victim's browser: %d", w.Code)
	}
	if w := s.robot().post(t, SignInPath, f); w.Code != http.StatusForbidden {
		t.Errorf("without a cookie: %d", w.Code)
	}
	if w := attacker.post(t, SignInPath, f); w.Code != http.StatusSeeOther {
		t.Errorf("the refusals used the link up: %d", w.Code)
	}
}

func TestP25_OriginComesFromConfiguration(t *testing.T) {
	s := newSite(t)
	for _, header := range [][]string{{"Host", "evil.example"}, {"X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "http"}, {"Forwarded", "host=evil.example"}} {
		for _, path := range []string{ServerPath, "/", OpenIDPath, SignInPath} {
			if w := s.robot().do(t, http.MethodGet, path, "", header...); strings.Contains(w.Body.String(), "evil.example") {
				t.Errorf("%s follows %s", path, header[0])
			}
		}
	}
	r := httptest.NewRequest(http.MethodGet, "http://evil.example/", nil)
	w := httptest.NewRecorder()
	s.mux["/"].ServeHTTP(w, r)
	if strings.Contains(w.Body.String(), "evil.example") || !strings.Contains(w.Body.String(), testAudience) {
		t.Error("the start page follows the Host header")
	}
}

// Clauses: 6749-4.1.2a 6749-4.1.2b
func TestP26_CodeReplay(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	other := s.registered(t, testCallback)
	redeem := func(code, client, verifier string) reply {
		return s.token(t, "grant_type", grantCode, "code", code, "client_id", client, "redirect_uri", testCallback, "code_verifier", verifier)
	}
	for _, c := range []struct {
		name     string
		wait     time.Duration
		client   string
		cut      int
		verifier string
		revoked  bool
	}{
		{"the client again, later", codeGrace, testClient, 0, testVerifier, true},
		{"a thief without the verifier", 0, testClient, 0, strings.Repeat("x", 43), true},
		{"the client again, at once", 0, testClient, 0, testVerifier, false},
		{"another client", codeGrace, other, 0, testVerifier, false},
		{"a wrong code with the right beginning", codeGrace, testClient, 1, testVerifier, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			code := b.approve(t, request(testClient, testCallback), testCallback).Get("code")
			first := redeem(code, testClient, testVerifier)
			if first.Status != http.StatusOK {
				t.Fatalf("first: %+v", first)
			}
			s.pass(c.wait)
			if got := redeem(code[:len(code)-c.cut], c.client, c.verifier); got.Error != codeInvalidGrant {
				t.Errorf("second: %+v", got)
			}
			if s.active(t, first.Access) == c.revoked {
				t.Errorf("revoked = %t, want %t", !c.revoked, c.revoked)
			}
		})
	}
	code := b.approve(t, request(testClient, testCallback), testCallback).Get("code")
	if got := redeem(code, other, testVerifier); got.Error != codeInvalidGrant {
		t.Errorf("first redeemed by another client: %+v", got)
	}
	s.pass(codeLifetime - time.Second)
	if got := redeem(code, testClient, testVerifier); got.Status != http.StatusOK {
		t.Errorf("the attempt of another client used the code up: %+v", got)
	}
	code = b.approve(t, request(testClient, testCallback), testCallback).Get("code")
	s.pass(codeLifetime)
	if got := redeem(code, testClient, testVerifier); got.Error != codeInvalidGrant {
		t.Errorf("after a minute: %+v", got)
	}
}

// Clauses: 6749-3.1a
func TestP27_DuplicateParameters(t *testing.T) {
	s := newSite(t)
	b := s.robot()
	b.signIn(t, ana)
	for _, name := range []string{"client_id", "redirect_uri", "resource", "state", "scope", "response_type", "code_challenge", "x"} {
		target := request(testClient, testCallback, name, "https://app.example/x") + "&" + name + "=https%3A%2F%2Fapp.example%2Fx"
		if w := b.get(t, target); w.Code != http.StatusBadRequest || w.Header().Get("Location") != "" {
			t.Errorf("two %s: %d %q", name, w.Code, w.Header().Get("Location"))
		}
	}
	first := s.connect(t)
	f := pairs("grant_type", grantRefresh, "refresh_token", first.Refresh, "client_id", testClient, "client_id", testClient)
	if got := read(t, s.robot().post(t, TokenPath, f)); got.Error != codeInvalidRequest {
		t.Errorf("/token: %+v", got)
	}
	if got := read(t, s.robot().do(t, http.MethodPost, TokenPath, "grant_type=refresh_token&client%5Fid=a&client_id=b")); got.Error != codeInvalidRequest {
		t.Errorf("/token, two spellings: %+v", got)
	}
}

// Clauses: 7591-5a
func TestP29_HostileNames(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "Claude", "Claude"},
		{"accents", "Buzón ñ 漢字", "Buzón ñ 漢字"},
		{"right to left override", "Claude\u202egpj.exe", "Claudegpj.exe"},
		{"isolates", "\u2066a\u2069\u200f\u061cb", "ab"},
		{"line breaks", "Claude\r\nhost: claude.ai\u2028x\u0085y", "Claude host: claude.ai x y"},
		{"tags", "a\U000E0041\U000E007Fb", "ab"},
		{"zero width", "cl\u200baude\ufeff", "claude"},
		{"stacked marks", "Z\u0335\u0336\u0337\u0338algo", "Z\u0335\u0336algo"},
		{"padding", "Claude" + strings.Repeat(" ", 500) + "(claude.ai)", "Claude (claude.ai)"},
		{"no-break padding", "a\u00a0\u2003\u3000b", "a b"},
		{"not UTF-8", "a\xffb", "ab"},
		{"empty", " \t\u200b ", ""},
	} {
		if got := cleanName(c.in); strings.Join(strings.Fields(got), " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := []rune(cleanName(strings.Repeat("é", 500))); len(got) != maxClientName {
		t.Errorf("a long name has %d characters", len(got))
	}
	s := newSite(t)
	s.documents[testClient] = `{"client_id":"` + testClient + `","client_name":"Claude <b>(claude.ai)</b>","logo_uri":"https://evil.example/x.png","redirect_uris":["` + testCallback + `"]}`
	b := s.robot()
	b.signIn(t, ana)
	body := b.get(t, request(testClient, testCallback)).Body.String()
	if strings.Contains(body, "<b>") || strings.Contains(body, "evil.example") || strings.Index(body, "app.example") > strings.Index(body, "Claude") {
		t.Error("the name is markup, a logo is named, or the host is not first")
	}
}

// Clauses: S01
func TestP30_ErrorsAreNever500(t *testing.T) {
	s := newSite(t)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
		w := s.robot().do(t, method, TokenPath, "")
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST, OPTIONS" || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s /token: %d %v", method, w.Code, w.Header())
		}
	}
	if got := s.token(t, "grant_type", "password", "client_id", testClient); got.Error != codeUnsupportedGrantType {
		t.Errorf("password: %+v", got)
	}
	if got := s.token(t, "client_id", testClient); got.Error != codeInvalidRequest {
		t.Errorf("no grant type: %+v", got)
	}
	first := s.connect(t)
	engine := s.Server.Store
	s.Server.Store = failing{engine}
	defer func() { s.Server.Store = engine }()
	for name, f := range map[string]url.Values{
		"refresh": pairs("grant_type", grantRefresh, "refresh_token", first.Refresh, "client_id", testClient),
		"code":    pairs("grant_type", grantCode, "code", "x", "code_verifier", testVerifier, "client_id", testClient),
		"service": pairs("grant_type", grantClient, "client_id", "svc_0123", "client_secret", "x"),
	} {
		got := read(t, s.robot().post(t, TokenPath, f))
		if got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" || strings.Contains(got.Body, "secret-host") {
			t.Errorf("%s with a store that is down: %d %s", name, got.Status, got.Body)
		}
	}
	b := s.robot()
	b.cookies["__Host-session"] = strings.Repeat("a", 43)
	for _, target := range []string{request(testClient, testCallback), SignInPath, SignInPath + "?link=" + strings.Repeat("a", 43)} {
		if w := b.get(t, target); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "secret-host") {
			t.Errorf("%s with a store that is down: %d", target, w.Code)
		}
	}
}
