package oauth

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

func (s *site) account(t testing.TB) (ServiceAccount, string) {
	t.Helper()
	a, secret, err := s.CreateServiceAccount(t.Context(), ServiceAccount{
		Name: "robot", Organization: "org_acme", Role: "operator", Workspace: "ws_1", Scopes: []string{"emails:read", "emails:write"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a, secret
}

// Clauses: I03 6749-4.4.3
func TestClientCredentials(t *testing.T) {
	s := newSite(t)
	a, secret := s.account(t)
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(a.ID)+":"+url.QueryEscape(secret)))
	for name, got := range map[string]reply{
		"post":  s.token(t, "grant_type", grantClient, "client_id", a.ID, "client_secret", secret),
		"basic": read(t, s.robot().do(t, http.MethodPost, TokenPath, "grant_type=client_credentials", "Authorization", basic)),
	} {
		if got.Status != http.StatusOK || got.Refresh != "" || got.Scope != "emails:read emails:write" {
			t.Fatalf("%s: %+v", name, got)
		}
		c, err := s.verifier.Verify(t.Context(), got.Access)
		if err != nil || c.Subject != a.ID || c.ClientID != a.ID || c.Organization != "org_acme" || c.Workspace != "ws_1" || !c.Only || !s.active(t, got.Access) {
			t.Errorf("%s: %+v %v", name, c, err)
		}
	}
	for _, c := range []struct {
		name, code string
		list       []string
	}{
		{"wrong secret", codeInvalidClient, []string{"client_id", a.ID, "client_secret", secret + "x"}},
		{"no secret", codeInvalidClient, []string{"client_id", a.ID}},
		{"the stored hash", codeInvalidClient, []string{"client_id", a.ID, "client_secret", fingerprint(secret)}},
		{"unknown account", codeInvalidClient, []string{"client_id", "svc_00000000000000000000000000", "client_secret", secret}},
		{"unknown account without a secret", codeInvalidClient, []string{"client_id", "svc_00000000000000000000000000"}},
		{"malformed account", codeInvalidClient, []string{"client_id", "svc_\x7f/#", "client_secret", secret}},
		{"none of its scopes", codeInvalidScope, []string{"client_id", a.ID, "client_secret", secret, "scope", "keys:write"}},
		{"another resource", codeInvalidTarget, []string{"client_id", a.ID, "client_secret", secret, "resource", "https://evil.example/"}},
		{"a public client", codeUnauthorizedClient, []string{"client_id", testClient}},
		{"a code for an account", codeUnauthorizedClient, []string{"grant_type", grantCode, "client_id", a.ID, "client_secret", secret, "code", "x"}},
	} {
		list := c.list
		if list[0] != "grant_type" {
			list = append([]string{"grant_type", grantClient}, list...)
		}
		if got := s.token(t, list...); got.Error != c.code {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	for asked, want := range map[string]string{
		"emails:read":                           "emails:read",
		"emails:read offline_access":            "emails:read",
		"offline_access":                        "emails:read emails:write",
		"keys:write emails:write emails:read":   "emails:read emails:write", // clients ask for all that the metadata names
		"nothing:known emails:read emails:read": "emails:read",
	} {
		if got := s.token(t, "grant_type", grantClient, "client_id", a.ID, "client_secret", secret, "scope", asked); got.Scope != want {
			t.Errorf("asked for %q: %+v", asked, got)
		}
	}
}

func TestServiceAccountLife(t *testing.T) {
	s := newSite(t)
	a, secret := s.account(t)
	got := s.token(t, "grant_type", grantClient, "client_id", a.ID, "client_secret", secret)
	if w := read(t, s.robot().post(t, RevokePath, pairs("token", got.Access, "client_id", a.ID, "client_secret", secret))); w.Status != http.StatusOK || !s.active(t, got.Access) {
		t.Errorf("a client ended its account: %+v", w)
	}
	if w := read(t, s.robot().post(t, RevokePath, pairs("token", got.Access, "client_id", a.ID))); w.Error != codeInvalidClient {
		t.Errorf("revocation without the secret: %+v", w)
	}
	for range 2 {
		if err := s.RevokeServiceAccount(t.Context(), a.ID); err != nil {
			t.Fatal(err)
		}
	}
	if s.active(t, got.Access) {
		t.Error("the grant of a revoked account counts")
	}
	if got := s.token(t, "grant_type", grantClient, "client_id", a.ID, "client_secret", secret); got.Error != codeInvalidClient {
		t.Errorf("a revoked account: %+v", got)
	}
	list, err := s.ServiceAccounts(t.Context(), "org_acme")
	if err != nil || len(list) != 1 || list[0].Revoked.IsZero() {
		t.Errorf("list %+v, %v", list, err)
	}
	if other, err := s.ServiceAccounts(t.Context(), "org_globex"); err != nil || len(other) != 0 {
		t.Errorf("another organization's list %+v, %v", other, err)
	}
	for _, id := range []string{"svc_x", "nonsense", ""} {
		if err := s.RevokeServiceAccount(t.Context(), id); !apperr.Is(err, apperr.NotFound) {
			t.Errorf("revoke %q: %v", id, err)
		}
		if _, err := s.ServiceAccount(t.Context(), id); !apperr.Is(err, apperr.NotFound) {
			t.Errorf("find %q: %v", id, err)
		}
	}
	for name, bad := range map[string]ServiceAccount{
		"unknown scope":   {Organization: "o", Role: "r", Name: "n", Scopes: []string{"nonsense"}},
		"no scope":        {Organization: "o", Role: "r", Name: "n"},
		"no role":         {Organization: "o", Name: "n", Scopes: []string{"emails:read"}},
		"no organization": {Role: "r", Name: "n", Scopes: []string{"emails:read"}},
		"no name":         {Organization: "o", Role: "r", Scopes: []string{"emails:read"}},
		"an unseen name":  {Organization: "o", Role: "r", Name: " \u200b\n", Scopes: []string{"emails:read"}},
	} {
		if _, _, err := s.CreateServiceAccount(t.Context(), bad); !apperr.Is(err, apperr.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGrantsEnd: without use, in any case, and with the person.
func TestGrantsEnd(t *testing.T) {
	s := newSite(t)
	idle := s.connect(t)
	used := s.connect(t)
	s.pass(grantIdle - 1)
	if used = s.refreshed(t, used.Refresh, testClient); used.Status != http.StatusOK {
		t.Fatalf("before it is idle: %+v", used)
	}
	s.pass(1)
	if got := s.refreshed(t, idle.Refresh, testClient); got.Error != codeInvalidGrant {
		t.Errorf("idle: %+v", got)
	}
	for range 5 {
		s.pass(grantIdle - 1)
		if next := s.refreshed(t, used.Refresh, testClient); next.Status == http.StatusOK {
			used = next
		}
	}
	if got := s.refreshed(t, used.Refresh, testClient); got.Error != codeInvalidGrant {
		t.Errorf("after its life: %+v", got)
	}
	fresh := s.connect(t)
	p := s.people[ana]
	delete(s.people, ana)
	if got := s.refreshed(t, fresh.Refresh, testClient); got.Error != codeInvalidGrant {
		t.Errorf("of a person who is gone: %+v", got)
	}
	p.Organization = "org_other"
	s.people[ana] = p
	if got := s.refreshed(t, fresh.Refresh, testClient); got.Error != codeInvalidGrant {
		t.Errorf("of a person who moved: %+v", got)
	}
	for _, id := range []string{"", "grant_x", "grant_\x00", "svc_x", "grant_cli", strings.Repeat("grant_", 99)} {
		if ok, err := s.GrantActive(t.Context(), id); ok || err != nil {
			t.Errorf("GrantActive(%.20q) = %t, %v", id, ok, err)
		}
	}
}

// TestNothingSecretIsLogged looks for every secret of a whole conversation in the log.
func TestNothingSecretIsLogged(t *testing.T) {
	s := newSite(t)
	a, secret := s.account(t)
	link := s.link(t, ana)
	b := s.robot()
	f := fields(t, b.get(t, request(testClient, testCallback)), SignInPath)
	f.Set("link", link)
	b.post(t, SignInPath, f)
	code := b.approve(t, request(testClient, testCallback), testCallback).Get("code")
	first := s.redeemed(t, code, testClient, testCallback)
	second := s.refreshed(t, first.Refresh, testClient)
	s.pass(refreshGrace * 2)
	s.redeemed(t, code, testClient, testCallback)
	s.refreshed(t, first.Refresh, testClient)
	s.token(t, "grant_type", grantClient, "client_id", a.ID, "client_secret", secret)
	log := s.log.String()
	if !strings.Contains(log, "grant.created") || !strings.Contains(log, "grant.revoked") || !strings.Contains(log, "oauth refusal") {
		t.Fatalf("log: %s", log)
	}
	for name, canary := range map[string]string{
		"link": pasted(link), "code": code, "refresh": second.Refresh[60:], "access": first.Access[200:], "secret": secret[10:],
		"session": b.cookies["__Host-session"], "browser": b.cookies["__Host-browser"], "verifier": testVerifier, "address": "ana@acme.test",
	} {
		if strings.Contains(log, canary) {
			t.Errorf("the log holds the %s", name)
		}
	}
}

// TestStoredSecretsAreHashes: whoever reads the store can't sign in, redeem, refresh or pass for an account.
//
// Clauses: S04 6749-10.3
func TestStoredSecretsAreHashes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s := newSiteOn(t, testOrigin, func(s *site) store.Engine {
		engine, err := embedded.Open(path, embedded.Options{Clock: s.clock})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = engine.Close() })
		return engine
	})
	_, secret := s.account(t)
	unused := s.link(t, ana)
	b := s.robot()
	b.signIn(t, ana)
	waiting := fields(t, b.get(t, request(testClient, testCallback)), ConsentPath).Get("request")
	code := b.approve(t, request(testClient, testCallback), testCallback).Get("code")
	open := b.approve(t, request(testClient, testCallback), testCallback).Get("code")
	first := s.redeemed(t, code, testClient, testCallback)
	second := s.refreshed(t, first.Refresh, testClient)
	file, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(file, []byte("grant_")) {
		t.Fatalf("%d bytes, %v", len(file), err)
	}
	for name, canary := range map[string]string{
		"link": pasted(unused), "question": waiting, "code": code, "open code": open, "first refresh token": first.Refresh[60:], "refresh token": second.Refresh[60:],
		"access token": first.Access[200:], "account's secret": secret[10:], "session": b.cookies["__Host-session"], "verifier": testVerifier,
	} {
		if canary == "" || bytes.Contains(file, []byte(canary)) {
			t.Errorf("the store holds the %s", name)
		}
	}
}
