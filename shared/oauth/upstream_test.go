package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/buzon-mail/buzon/shared/oauth/upstream"
)

const providerIssuer = "https://login.example"

// provider is an OpenID provider in memory. claims are what the next id token says besides the good ones.
type provider struct {
	t      testing.TB
	key    *ecdsa.PrivateKey
	site   *site
	claims map[string]any
	signer *ecdsa.PrivateKey
	down   bool
	asked  []string
	nonce  string
	proof  string // code challenge of the authorization request
}

// RoundTrip answers as the provider's host.
func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	p.asked = append(p.asked, r.URL.Path)
	if p.down {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		p.write(w, map[string]any{
			"issuer": providerIssuer, "authorization_endpoint": providerIssuer + "/auth", "token_endpoint": providerIssuer + "/token",
			"jwks_uri": providerIssuer + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"},
		})
	case "/keys":
		p.write(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &p.key.PublicKey, KeyID: "k", Algorithm: "ES256", Use: "sig"}}})
	case "/token":
		if err := r.ParseForm(); err != nil || r.Form.Get("code") != "good" || challengeOf(r.Form.Get("code_verifier")) != p.proof {
			w.WriteHeader(http.StatusBadRequest)
			p.write(w, map[string]any{"error": "invalid_grant"})
			break
		}
		p.write(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": p.token()})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
	return w.Result(), nil
}

func (p *provider) write(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		p.t.Error(err)
	}
}

func (p *provider) token() string {
	now := p.site.clock()
	claims := map[string]any{
		"iss": providerIssuer, "aud": "buzon", "sub": "1", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "nonce": p.nonce,
		"email": "Ana@acme.test", "email_verified": true,
	}
	maps.Copy(claims, p.claims)
	body, err := json.Marshal(claims)
	if err != nil {
		p.t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.signer, KeyID: "k"}}, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	signed, err := signer.Sign(body)
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

func withProvider(t testing.TB) (*site, *provider) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	p := &provider{t: t, key: key, signer: key, site: s}
	deps, opts := s.ServerDeps, s.ServerOptions
	deps.Transport = p
	opts.Upstream = &upstream.Config{Issuer: providerIssuer, ClientID: "buzon", Secret: secretIs("s"), Name: "Example", Allow: []string{"@acme.test", "Guest@globex.test"}}
	if s.Server, err = NewServer(deps, opts); err != nil {
		t.Fatal(err)
	}
	s.mux = s.Routes()
	return s, p
}

// depart sends the robot to the provider and returns what it was asked.
func (p *provider) depart(t testing.TB, b *robot, target string) url.Values {
	t.Helper()
	w := b.post(t, UpstreamPath, fields(t, b.get(t, target), UpstreamPath))
	q := answered(t, w, providerIssuer+"/auth?")
	p.nonce, p.proof = q.Get("nonce"), q.Get("code_challenge")
	return q
}

func home(state string, more ...string) string {
	q := pairs(more...)
	q.Set("state", state)
	if q.Get("code") == "" && q.Get("error") == "" {
		q.Set("code", "good")
	}
	return UpstreamReturnPath + "?" + q.Encode()
}

func TestUpstreamSignsIn(t *testing.T) {
	s, p := withProvider(t)
	b := s.robot()
	if w := b.get(t, request(testClient, testCallback)); !strings.Contains(w.Body.String(), "Sign in with <bdi>Example</bdi>") || len(p.asked) > 0 {
		t.Fatalf("the page lacks the button, or the provider was asked: %v", p.asked)
	}
	state := strings.Repeat("s", 2500) // two cookies
	q := p.depart(t, b, request(testClient, testCallback, "state", state))
	for name, want := range map[string]string{
		"response_type": "code", "client_id": "buzon", "redirect_uri": testOrigin + UpstreamReturnPath, "code_challenge_method": "S256", "scope": "openid email",
	} {
		if q.Get(name) != want {
			t.Errorf("%s = %q, want %q", name, q.Get(name), want)
		}
	}
	w := b.get(t, home(q.Get("state"), "iss", providerIssuer))
	if w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), AuthorizePath+"?") {
		t.Fatalf("%d %s\n%s", w.Code, title(w), s.log)
	}
	if got := b.approve(t, w.Header().Get("Location"), testCallback); got.Get("state") != state || got.Get("code") == "" {
		t.Errorf("answer %v", got)
	}
	for _, name := range tripNames {
		if b.cookies["__Host-"+name] != "" {
			t.Errorf("cookie %s is left", name)
		}
	}
	// The provider's metadata is kept, so its outage of a moment is nobody's.
	before := len(p.asked)
	p.depart(t, s.robot(), SignInPath)
	if len(p.asked) != before {
		t.Errorf("asked again: %v", p.asked[before:])
	}
	p.down = true
	s.pass(2 * time.Hour)
	p.depart(t, s.robot(), SignInPath)
}

func TestUpstreamRefuses(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		claims map[string]any
		more   []string
		spoil  func(*site, *provider, *robot)
	}{
		{name: "another state", more: []string{"state", "x"}},
		{name: "another issuer in the answer", more: []string{"iss", "https://evil.example"}},
		{name: "an error", more: []string{"error", "access_denied"}},
		{name: "another code", more: []string{"code", "bad"}},
		{name: "not verified", claims: map[string]any{"email_verified": false}},
		{name: "nothing said of verification", claims: map[string]any{"email_verified": nil}},
		{name: "verified by a number", claims: map[string]any{"email_verified": 1}},
		{name: "no address", claims: map[string]any{"email": ""}},
		{name: "two at signs", claims: map[string]any{"email": "x@evil.example@acme.test"}},
		{name: "not on the list", claims: map[string]any{"email": "beto@globex.test"}},
		{name: "a domain that ends like one on the list", claims: map[string]any{"email": "ana@evilacme.test"}},
		{name: "a subdomain", claims: map[string]any{"email": "ana@a.acme.test"}},
		{name: "on the list and nobody here", claims: map[string]any{"email": "stranger@acme.test"}},
		{name: "another audience", claims: map[string]any{"aud": "other"}},
		{name: "another issuer", claims: map[string]any{"iss": "https://evil.example"}},
		{name: "expired", claims: map[string]any{"exp": 1}},
		{name: "another nonce", claims: map[string]any{"nonce": "x"}},
		{name: "no nonce", claims: map[string]any{"nonce": nil}},
		{name: "another key", spoil: func(_ *site, p *provider, _ *robot) { p.signer = other }},
		{name: "too late", spoil: func(s *site, _ *provider, _ *robot) { s.pass(tripTime) }},
		{name: "a browser without the trip", spoil: func(_ *site, _ *provider, b *robot) { delete(b.cookies, "__Host-trip0") }},
		{name: "another browser", spoil: func(_ *site, _ *provider, b *robot) { b.cookies["__Host-browser"] = strings.Repeat("a", 43) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, p := withProvider(t)
			p.claims = c.claims
			b := s.robot()
			state := p.depart(t, b, request(testClient, testCallback)).Get("state")
			if c.spoil != nil {
				c.spoil(s, p, b)
			}
			target := home(state, c.more...)
			if len(c.more) > 0 && c.more[0] == "state" {
				target = home(c.more[1])
			}
			if w := b.get(t, target); w.Code != http.StatusForbidden || b.cookies["__Host-session"] != "" {
				t.Errorf("%d %s\n%s", w.Code, title(w), s.log)
			}
		})
	}
}

func TestUpstreamAnswersOnce(t *testing.T) {
	s, p := withProvider(t)
	b := s.robot()
	state := p.depart(t, b, SignInPath).Get("state")
	if w := b.get(t, home(state)); w.Code != http.StatusSeeOther || w.Header().Get("Location") != SignInPath {
		t.Fatalf("%d %s", w.Code, title(w))
	}
	delete(b.cookies, "__Host-session")
	if w := b.get(t, home(state)); w.Code != http.StatusForbidden || b.cookies["__Host-session"] != "" {
		t.Errorf("again: %d", w.Code)
	}
}

func TestUpstreamDown(t *testing.T) {
	s, p := withProvider(t)
	p.down = true
	b := s.robot()
	f := fields(t, b.get(t, SignInPath), UpstreamPath)
	if w := b.post(t, UpstreamPath, f); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "refused") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	asked := len(p.asked)
	for range 3 { // whoever presses again drives nothing
		if w := b.post(t, UpstreamPath, f); w.Code != http.StatusServiceUnavailable || len(p.asked) != asked {
			t.Errorf("%d, the provider was asked %d times more", w.Code, len(p.asked)-asked)
		}
	}
	s.pass(31 * time.Second)
	if b.post(t, UpstreamPath, f); len(p.asked) == asked {
		t.Error("it is never asked again")
	}
	if w := s.robot().post(t, UpstreamPath, f); w.Code != http.StatusForbidden {
		t.Errorf("without the browser's cookie: %d", w.Code)
	}
	b.signIn(t, ana)
	if w := b.get(t, request(testClient, testCallback)); w.Code != http.StatusOK {
		t.Errorf("a link still signs in: %d", w.Code)
	}
}

func TestUpstreamNeedsAWholeConfiguration(t *testing.T) {
	s := newSite(t)
	for _, c := range []upstream.Config{
		{}, {Issuer: providerIssuer, ClientID: "a", Secret: secretIs("b")}, {Issuer: providerIssuer, ClientID: "a", Allow: []string{"@a"}}, {ClientID: "a", Secret: secretIs("b"), Allow: []string{"@a"}},
	} {
		opts := s.ServerOptions
		opts.Upstream = &c
		if _, err := NewServer(s.ServerDeps, opts); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func secretIs(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}
