package oauth

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/safehttp"
)

// Clauses: C04 S15
func TestDocumentIDs(t *testing.T) {
	for _, c := range []struct {
		id   string
		want bool
	}{
		{"https://app.example/client.json", true},
		{"https://app.example/a", true},
		{"https://app.example/a?b=c", true},
		{"https://app.example/a..b", true},
		{"https://app.example", false},
		{"https://app.example/", false},
		{"http://app.example/c", false},
		{"HTTPS://app.example/c", false},
		{"https://app.example/c#x", false},
		{"https://u@app.example/c", false},
		{"https://u:p@app.example/c", false},
		{"https://app.example/../c", false},
		{"https://app.example/./c", false},
		{"https://app.example/a/%2e%2e/c", false},
		{"https://app.example/a/%2E/c", false},
		{"https://app.example/a/..", false},
		{"https://app.example\\c", false},
		{"https://app.example/c\n", false},
		{"https://app.example/ c", false},
		{"https://app.example/é", false},
		{"https:///c", false},
		{"https:c", false},
		{"https://app.example/" + strings.Repeat("a", maxDocumentID), false},
	} {
		if got := isDocumentID(c.id) && validDocumentID(c.id); got != c.want {
			t.Errorf("%.60q: %t", c.id, got)
		}
	}
}

// Clauses: C03 C05 C08 C11
func TestDocuments(t *testing.T) {
	id := `"client_id":"` + testClient + `",`
	redirects := `"redirect_uris":["` + testCallback + `"]`
	for _, c := range []struct {
		name, body string
		want       bool
	}{
		{"least", `{` + id + `"client_name":"A",` + redirects + `}`, true},
		{"as claude.ai publishes: grant types we don't have", `{` + id + `"client_name":"Claude","client_uri":"https://claude.ai","redirect_uris":["https://claude.ai/api/mcp/auth_callback"],"grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:jwt-bearer"],"response_types":["code"],"token_endpoint_auth_method":"none"}`, true},
		{"as ChatGPT publishes: private_key_jwt beside none", `{` + id + `"client_name":"ChatGPT","redirect_uris":["https://chatgpt.com/connector/oauth/x"],"token_endpoint_auth_method":"private_key_jwt","token_endpoint_auth_methods_supported":["none","private_key_jwt"],"token_endpoint_auth_signing_alg":"RS256","jwks_uri":"https://chatgpt.com/jwks.json"}`, true},
		{"as VS Code publishes: device code, many redirects", `{` + id + `"client_name":"Visual Studio Code","redirect_uris":["http://127.0.0.1:33418/","https://vscode.dev/redirect","http://localhost/"],"grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:device_code"],"application_type":"native","token_endpoint_auth_method":"none"}`, true},
		{"public keys", `{` + id + `"client_name":"A",` + redirects + `,"jwks":{"keys":[{"kty":"EC","x":"a","y":"b"}]}}`, true},
		{"a redirect that is left out", `{` + id + `"client_name":"A","redirect_uris":["cursor://x/cb","` + testCallback + `"]}`, true},
		{"another id", `{"client_id":"https://app.example/other.json","client_name":"A",` + redirects + `}`, false},
		{"id in another case", `{"client_id":"https://APP.example/oauth/client.json","client_name":"A",` + redirects + `}`, false},
		{"no id", `{"client_name":"A",` + redirects + `}`, false},
		{"no name", `{` + id + redirects + `}`, false},
		{"a name of nothing", `{` + id + `"client_name":"\u200b \u202e",` + redirects + `}`, false},
		{"no redirects", `{` + id + `"client_name":"A"}`, false},
		{"only bad redirects", `{` + id + `"client_name":"A","redirect_uris":["http://app.example/cb","javascript:x"]}`, false},
		{"a secret", `{` + id + `"client_name":"A",` + redirects + `,"client_secret":"x"}`, false},
		{"a secret's end", `{` + id + `"client_name":"A",` + redirects + `,"client_secret_expires_at":0}`, false},
		{"a private key", `{` + id + `"client_name":"A",` + redirects + `,"jwks":{"keys":[{"kty":"EC","d":"x"}]}}`, false},
		{"a symmetric key", `{` + id + `"client_name":"A",` + redirects + `,"jwks":{"keys":[{"kty":"oct","k":"x"}]}}`, false},
		{"private_key_jwt alone", `{` + id + `"client_name":"A",` + redirects + `,"token_endpoint_auth_method":"private_key_jwt"}`, false},
		{"a shared secret's method", `{` + id + `"client_name":"A",` + redirects + `,"token_endpoint_auth_method":"client_secret_basic"}`, false},
		{"a list", `[]`, false},
		{"other types", `{` + id + `"client_name":1,` + redirects + `}`, false},
		{"not JSON", `<html>`, false},
		{"not UTF-8", `{` + id + `"client_name":"` + "\xff" + `",` + redirects + `}`, false},
		{"empty", ``, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := readDocument(testClient, []byte(c.body))
			if (err == nil) != c.want {
				t.Fatalf("%+v, %v", got, err)
			}
			if c.want && (got.ID != testClient || got.Host != "app.example" || len(got.Redirects) == 0) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Clauses: I04 C02 C07 C10
func TestDocumentIsFetchedForPeopleAndKept(t *testing.T) {
	s := newSite(t)
	stranger := s.robot()
	if w := stranger.get(t, request(testClient, testCallback)); w.Code != http.StatusOK || len(s.fetched) != 0 {
		t.Fatalf("a stranger made us fetch %v", s.fetched)
	}
	b := s.robot()
	b.signIn(t, ana)
	for range 3 {
		b.get(t, request(testClient, testCallback))
	}
	if len(s.fetched) != 1 {
		t.Fatalf("fetched %v", s.fetched)
	}
	// An outage of the publisher doesn't matter at /token and while the document is kept.
	s.fetchErr = safehttp.ErrUnreachable
	got := s.redeemed(t, b.approve(t, request(testClient, testCallback), testCallback).Get("code"), testClient, testCallback)
	if got = s.refreshed(t, got.Refresh, testClient); got.Status != http.StatusOK {
		t.Errorf("%+v", got)
	}
	s.pass(documentLifetime)
	for range 2 { // a failure is not kept
		if w := b.get(t, request(testClient, testCallback)); w.Code != http.StatusBadRequest || w.Header().Get("Location") != "" {
			t.Errorf("stale document: %d", w.Code)
		}
	}
	if len(s.fetched) != 3 {
		t.Errorf("fetched %d times", len(s.fetched))
	}
	s.fetchErr = nil
	s.documents[testClient] = strings.ReplaceAll(s.documents[testClient], testCallback, "https://app.example/new")
	if w := b.get(t, request(testClient, testCallback)); w.Code != http.StatusBadRequest {
		t.Errorf("a redirect that the document lost: %d", w.Code)
	}
	if q := b.approve(t, request(testClient, "https://app.example/new"), "https://app.example/new"); q.Get("code") == "" {
		t.Errorf("a redirect that the document has now: %v", q)
	}
	delete(s.documents, testClient)
	s.pass(documentLifetime)
	if w := b.get(t, request(testClient, "https://app.example/new")); w.Code != http.StatusBadRequest {
		t.Errorf("a document that is gone: %d", w.Code)
	}
}

func TestFetchesAreLimitedByPerson(t *testing.T) {
	s := newSite(t)
	s.now = s.now.Truncate(time.Minute)
	b := s.robot()
	b.signIn(t, ana)
	for range limitFetch.max + 5 {
		b.get(t, request("https://nowhere.example/c.json", testCallback))
	}
	if len(s.fetched) != int(limitFetch.max) {
		t.Errorf("fetched %d times in a minute", len(s.fetched))
	}
	other := s.robot()
	other.signIn(t, beto)
	if w := other.get(t, request(testClient, testCallback)); w.Code != http.StatusOK {
		t.Errorf("another person: %d", w.Code)
	}
}

// Clauses: 7591-5c
func TestRegisteredIDsAreSealed(t *testing.T) {
	s := newSite(t)
	id := s.registered(t, testCallback)
	c, ok := s.registeredClient(id)
	if !ok || c.Name != "Test" || len(c.Redirects) != 1 || c.Redirects[0] != testCallback {
		t.Fatalf("%+v", c)
	}
	for i := range len(id) {
		forged := id[:i] + string(id[i]^1) + id[i+1:]
		if _, ok := s.registeredClient(forged); ok {
			t.Fatalf("byte %d changed: accepted", i)
		}
	}
	if body, err := json.Marshal(c); err != nil || strings.Contains(string(body), "secret") {
		t.Errorf("%s %v", body, err)
	}
}

// TestDocumentsOnThisComputer: plain http, and only by the name localhost, and only where the issuer is on this computer itself.
func TestDocumentsOnThisComputer(t *testing.T) {
	for issuer, here := range map[string]bool{
		"http://localhost:8080": true, "http://127.0.0.1:8080": true, "http://[::1]:8080": true, "https://localhost": true,
		testOrigin: false, "https://localhost.example": false, "https://127.0.0.1.example": false,
	} {
		if LoopbackIssuer(issuer) != here {
			t.Errorf("%s is here: %t", issuer, !here)
		}
	}
	local, remote := newSiteAt(t, "http://localhost:8080"), newSite(t)
	for id, want := range map[string]bool{
		"http://localhost/client.json": true, "http://localhost:51000/client.json": true,
		"http://localhost": false, "http://localhost/": false, "http://localhost:51000/../c": false, "http://u@localhost/c": false, "http://localhost/c#x": false,
		"http://127.0.0.1/c": false, "http://[::1]/c": false, "http://127.1/c": false, "http://localhost.example/c": false, "http://localhost@evil.example/c": false,
		"http://app.example/c": false, "http:localhost/c": false, "HTTP://localhost/c": false, "http://LOCALHOST/c": false, "http://localhost./c": false,
	} {
		if got := isDocumentID(id) && local.documentID(id); got != want {
			t.Errorf("%s at a loopback issuer: %t", id, got)
		}
		if remote.documentID(id) {
			t.Errorf("%s at a public issuer is taken", id)
		}
	}
	// The whole way: a document at localhost is fetched for a person, and by a public issuer for nobody.
	const id = "http://localhost:51000/client.json"
	for _, s := range []*site{local, remote} {
		s.documents[id] = `{"client_id":"` + id + `","client_name":"Here","redirect_uris":["` + testCallback + `"]}`
		b := s.robot()
		b.signIn(t, ana)
		w := b.get(t, request(id, testCallback, "resource", ""))
		if good := s == local; (w.Code == http.StatusOK) != good || (len(s.fetched) == 1) != good {
			t.Errorf("%s: %d %s, %d fetched", s.Issuer, w.Code, title(w), len(s.fetched))
		}
	}
}
