package local_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// rest calls the REST API with a token or a key.
func (s *site) rest(t *testing.T, bearer, method, path, body string) answer {
	t.Helper()
	return s.send(t, method, "/api/v1"+path, body, "Content-Type", "application/json", "Authorization", "Bearer "+bearer)
}

// owner is a token of the organization's owner with every scope.
func (s *site) owner(t *testing.T) string {
	t.Helper()
	code, out, errs := s.buzon(t.Context(), "token", "me@example.com")
	if code != 0 {
		t.Fatal(errs)
	}
	return strings.TrimSpace(out)
}

// TestKeyThroughBothDoors: a key that is confined to an inbox, from its making to its end.
func TestKeyThroughBothDoors(t *testing.T) {
	s := newSite(t)
	token := s.owner(t)
	for _, slug := range []string{"mine", "theirs"} {
		if got := s.rest(t, token, "PUT", "/inboxes", `{"slug":"`+slug+`"}`); got.StatusCode != http.StatusCreated {
			t.Fatal(got.body)
		}
	}
	made := s.rest(t, token, "POST", "/api-keys", `{"name":"agent","scopes":["inboxes:write","emails:read"],"inboxes":["mine"],"expires_at":"`+s.soon()+`"}`)
	data, _ := made.json(t)["data"].(map[string]any)
	secret, _ := data["key"].(map[string]any)["secret"].(string)
	if made.StatusCode != http.StatusCreated || !strings.HasPrefix(secret, "bzk_") || made.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", made.StatusCode, made.body)
	}
	if got := s.rest(t, secret, "GET", "/inboxes", ""); got.StatusCode != http.StatusOK || !strings.Contains(got.body, `"mine"`) || strings.Contains(got.body, "theirs") {
		t.Errorf("list: %d %s", got.StatusCode, got.body)
	}
	if got := s.rest(t, secret, "GET", "/inboxes/theirs", ""); got.StatusCode != http.StatusNotFound {
		t.Errorf("another inbox: %d %s", got.StatusCode, got.body)
	}
	if got := s.rest(t, secret, "GET", "/session", ""); !strings.Contains(got.body, `"kind":"key"`) || !strings.Contains(got.body, `"name":"agent"`) ||
		!strings.Contains(got.body, `"email":"me@example.com"`) || !strings.Contains(got.body, `"organization_slug":"mine"`) {
		t.Errorf("session: %s", got.body)
	}
	if got := s.list(t, secret); got.StatusCode != http.StatusOK || !strings.Contains(got.body, `"inboxes_list"`) || strings.Contains(got.body, `"api_keys_list"`) || strings.Contains(got.body, `"audit_events_list"`) {
		t.Errorf("tools: %d %s", got.StatusCode, got.body)
	}
	if got := s.rest(t, token, "GET", "/api-keys", ""); !strings.Contains(got.body, `"last_used_at":"2`) || strings.Contains(got.body, secret) {
		t.Errorf("keys: %s", got.body)
	}
	// A key is no token of a client: the authorization server knows nothing of it.
	if got := s.form(t, "/token", "grant_type", "refresh_token", "refresh_token", secret, "client_id", "x"); got.StatusCode != http.StatusBadRequest && got.StatusCode != http.StatusUnauthorized {
		t.Errorf("as a refresh token: %d %s", got.StatusCode, got.body)
	}
	bad, worse := s.rest(t, "bzk_"+strings.Repeat("A", 43), "GET", "/inboxes", ""), s.rest(t, "not.a.token", "GET", "/inboxes", "")
	if bad.StatusCode != http.StatusUnauthorized || bad.Header.Get("WWW-Authenticate") != worse.Header.Get("WWW-Authenticate") || strings.Contains(bad.Header.Get("WWW-Authenticate"), "keys:") {
		t.Errorf("challenge %q, of a bad token %q", bad.Header.Get("WWW-Authenticate"), worse.Header.Get("WWW-Authenticate"))
	}
	if got := s.list(t, "bzk_"+strings.Repeat("A", 43)); got.StatusCode != http.StatusUnauthorized || got.Header.Get("WWW-Authenticate") != bad.Header.Get("WWW-Authenticate") {
		t.Errorf("over MCP: %d %q", got.StatusCode, got.Header.Get("WWW-Authenticate"))
	}
	if got := s.rest(t, token, "DELETE", "/api-keys/"+data["id"].(string), ""); got.StatusCode != http.StatusOK {
		t.Fatal(got.body)
	}
	if got := s.rest(t, secret, "DELETE", "/inboxes/mine", ""); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("a revoked key deletes: %d %s", got.StatusCode, got.body)
	}
	if got := s.rest(t, secret, "GET", "/inboxes", ""); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("a revoked key that was seen reads: %d %s", got.StatusCode, got.body)
	}
}

// TestMemberComesAndGoes: invited, signed in by the invitation, removed with all that they had, and back with nothing of it.
func TestMemberComesAndGoes(t *testing.T) {
	s := newSite(t)
	token := s.owner(t)
	invite := func(body string, status int) (id, address string) {
		t.Helper()
		got := s.rest(t, token, "PUT", "/members", body)
		data, _ := got.json(t)["data"].(map[string]any)
		invitation, _ := data["invitation"].(map[string]any)
		address, _ = invitation["invitation_url"].(string)
		if got.StatusCode != status || address == "" {
			t.Fatalf("%d %s", got.StatusCode, got.body)
		}
		return data["id"].(string), address
	}
	id, address := invite(`{"email":"new@example.com","role":"admin"}`, http.StatusCreated)
	signIn := func(address string) answer {
		t.Helper()
		s.browser.Jar, _ = cookiejar.New(nil)
		page := s.send(t, http.MethodGet, address, "")
		if page.StatusCode != http.StatusOK {
			return page
		}
		waiting := regexp.MustCompile(`name="request" value="([^"]*)"`).FindStringSubmatch(page.body)
		if waiting == nil {
			t.Fatalf("no form: %s", page.body)
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return s.form(t, "/sign-in", "request", waiting[1], "link", u.Query().Get("link"))
	}
	if got := signIn(address); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", got.StatusCode, got.body)
	}
	if got := s.send(t, http.MethodGet, "/sign-in", ""); !strings.Contains(got.body, "new@example.com") {
		t.Fatalf("%s", got.body)
	}
	code, theirs, errs := s.buzon(t.Context(), "token", "new@example.com")
	if code != 0 {
		t.Fatal(errs)
	}
	theirs = strings.TrimSpace(theirs)
	made := s.rest(t, theirs, "POST", "/api-keys", `{"name":"k","scopes":["inboxes:write"],"expires_at":"`+s.soon()+`"}`)
	data, _ := made.json(t)["data"].(map[string]any)
	secret, _ := data["key"].(map[string]any)["secret"].(string)
	if got := s.rest(t, secret, "GET", "/inboxes", ""); got.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", got.StatusCode, got.body)
	}
	if got := s.rest(t, token, "DELETE", "/members/"+id, ""); got.StatusCode != http.StatusOK {
		t.Fatal(got.body)
	}
	for name, bearer := range map[string]string{"token": theirs, "key": secret} {
		if got := s.rest(t, bearer, "DELETE", "/inboxes/none", ""); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("the %s of who was removed: %d %s", name, got.StatusCode, got.body)
		}
	}
	if got := s.send(t, http.MethodGet, "/sign-in", ""); strings.Contains(got.body, "new@example.com") {
		t.Error("who was removed is signed in")
	}
	if got := s.rest(t, token, "GET", "/api-keys", ""); strings.Count(got.body, `"revoked_at":null`) != 0 {
		t.Errorf("keys of who was removed: %s", got.body)
	}
	_, address = invite(`{"email":"new@example.com","role":"viewer","restore":true}`, http.StatusOK)
	if got := s.rest(t, secret, "DELETE", "/inboxes/none", ""); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("the key of before: %d %s", got.StatusCode, got.body)
	}
	if got := s.send(t, http.MethodGet, "/sign-in", ""); strings.Contains(got.body, "new@example.com") {
		t.Error("the session of before counts")
	}
	if got := signIn(address); got.StatusCode != http.StatusSeeOther {
		t.Errorf("the new invitation: %d %s", got.StatusCode, got.body)
	}
	if got := s.rest(t, token, "DELETE", "/members/"+s.memberID(t, token, "me@example.com"), ""); got.StatusCode != http.StatusConflict || !strings.Contains(got.body, "last_owner") {
		t.Errorf("the last owner: %d %s", got.StatusCode, got.body)
	}
}

func (s *site) memberID(t *testing.T, token, email string) string {
	t.Helper()
	data, _ := s.rest(t, token, "GET", "/members?q="+email, "").json(t)["data"].([]any)
	if len(data) != 1 {
		t.Fatalf("members called %s: %v", email, data)
	}
	id, _ := data[0].(map[string]any)["id"].(string)
	return id
}

// soon is a month away.
func (*site) soon() string { return time.Now().UTC().AddDate(0, 1, 0).Format(time.RFC3339) }
