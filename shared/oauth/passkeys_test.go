package oauth

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	virtual "github.com/descope/virtualwebauthn"
	"golang.org/x/net/html"
)

// authenticator is a person's phone.
type authenticator struct {
	virtual.Authenticator
	rp  virtual.RelyingParty
	key virtual.Credential
}

func newAuthenticator(person string) *authenticator {
	a := &authenticator{
		Authenticator: virtual.NewAuthenticatorWithOptions(virtual.AuthenticatorOptions{UserHandle: []byte(person), BackupEligible: true}),
		rp:            virtual.RelyingParty{ID: "mail.example.com", Name: "Buzón", Origin: testOrigin},
	}
	a.newKey()
	return a
}

// newKey draws until both coordinates have 32 bytes: the emulation drops leading zeros, which no real authenticator does.
func (a *authenticator) newKey() {
	for a.key = virtual.NewCredential(virtual.KeyTypeEC2); len(a.key.Key.AttestationData()) != 77; {
		a.key = virtual.NewCredential(virtual.KeyTypeEC2)
	}
}

// options reads what a page gives to the browser.
func options(t testing.TB, w *httptest.ResponseRecorder) string {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(w.Body.String()))
	for {
		switch z.Next() {
		case html.ErrorToken:
			t.Fatalf("no passkey form: %d %s", w.Code, title(w))
		case html.StartTagToken:
			for _, a := range z.Token().Attr {
				if a.Key == "data-options" {
					return a.Val
				}
			}
		}
	}
}

// create fills the form that adds a passkey.
func (a *authenticator) create(t testing.TB, w *httptest.ResponseRecorder) url.Values {
	t.Helper()
	o, err := virtual.ParseAttestationOptions(options(t, w))
	if err != nil {
		t.Fatal(err)
	}
	f := fields(t, w, PasskeyAddPath)
	f.Set("response", virtual.CreateAttestationResponse(a.rp, a.Authenticator, a.key, *o))
	return f
}

// get fills the form that signs in.
func (a *authenticator) get(t testing.TB, w *httptest.ResponseRecorder) url.Values {
	t.Helper()
	o, err := virtual.ParseAssertionOptions(options(t, w))
	if err != nil {
		t.Fatal(err)
	}
	a.key.Counter++
	f := fields(t, w, PasskeyPath)
	f.Set("response", virtual.CreateAssertionResponse(a.rp, a.Authenticator, a.key, *o))
	return f
}

// enrolled is a site on which ana has a passkey.
func enrolled(t testing.TB) (*site, *robot, *authenticator) {
	t.Helper()
	s := newSite(t)
	b, phone := s.robot(), newAuthenticator(ana)
	b.signIn(t, ana)
	if w := b.post(t, PasskeyAddPath, phone.create(t, b.get(t, SignInPath))); w.Code != http.StatusSeeOther {
		t.Fatalf("register: %d %s\n%s", w.Code, title(w), s.log)
	}
	return s, b, phone
}

func TestPasskeySignsIn(t *testing.T) {
	s, _, phone := enrolled(t)
	b := s.robot()
	for range 2 {
		w := b.post(t, PasskeyPath, phone.get(t, b.get(t, request(testClient, testCallback))))
		if w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), AuthorizePath+"?") {
			t.Fatalf("sign-in: %d %s\n%s", w.Code, title(w), s.log)
		}
		if q := b.approve(t, w.Header().Get("Location"), testCallback); q.Get("code") == "" {
			t.Errorf("answer %v", q)
		}
		b.post(t, SignOutPath, fields(t, b.get(t, SignInPath), SignOutPath))
	}
	if w := b.post(t, PasskeyPath, phone.get(t, b.get(t, SignInPath))); w.Header().Get("Location") != SignInPath || !strings.Contains(b.get(t, SignInPath).Body.String(), "ana@acme.test") {
		t.Errorf("without an authorization: %d", w.Code)
	}
}

func TestPasskeySignInRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		change func(*site, *robot, *authenticator) func(url.Values)
	}{
		{"another browser's challenge", 403, func(_ *site, b *robot, _ *authenticator) func(url.Values) {
			return func(url.Values) { b.cookies["__Host-browser"] = strings.Repeat("a", 43) }
		}},
		{"no cookie", 403, func(_ *site, b *robot, _ *authenticator) func(url.Values) {
			return func(url.Values) { delete(b.cookies, "__Host-browser") }
		}},
		{"forged state", 403, func(*site, *robot, *authenticator) func(url.Values) {
			return func(f url.Values) { f.Set("state", f.Get("request")) }
		}},
		{"too late", 403, func(s *site, _ *robot, _ *authenticator) func(url.Values) {
			return func(url.Values) { s.pass(sealedTime) }
		}},
		{"no answer", 400, func(*site, *robot, *authenticator) func(url.Values) {
			return func(f url.Values) { f.Del("response") }
		}},
		{"nonsense", 400, func(*site, *robot, *authenticator) func(url.Values) {
			return func(f url.Values) { f.Set("response", `{"id":"x","response":{}}`) }
		}},
		{"another site's answer", 400, func(_ *site, _ *robot, a *authenticator) func(url.Values) {
			a.rp.Origin = "https://evil.example"
			return func(url.Values) {}
		}},
		{"another host's passkey", 400, func(_ *site, _ *robot, a *authenticator) func(url.Values) {
			a.rp.ID = "evil.example"
			return func(url.Values) {}
		}},
		{"unknown passkey", 400, func(_ *site, _ *robot, a *authenticator) func(url.Values) {
			a.newKey()
			return func(url.Values) {}
		}},
		{"another key under a known id", 400, func(_ *site, _ *robot, a *authenticator) func(url.Values) {
			id := a.key.ID
			a.newKey()
			a.key.ID = id
			return func(url.Values) {}
		}},
		{"in another's name", 400, func(_ *site, _ *robot, a *authenticator) func(url.Values) {
			a.Options.UserHandle = []byte(beto)
			return func(url.Values) {}
		}},
		{"in nobody's name", 400, func(_ *site, _ *robot, a *authenticator) func(url.Values) {
			a.Options.UserHandle = []byte("user_nobody\x00/")
			return func(url.Values) {}
		}},
		{"without verification of the person", 400, func(_ *site, _ *robot, a *authenticator) func(url.Values) {
			a.Options.UserNotVerified = true
			return func(url.Values) {}
		}},
		{"the person is gone", 400, func(s *site, _ *robot, _ *authenticator) func(url.Values) {
			delete(s.people, ana)
			return func(url.Values) {}
		}},
		{"from another site's page", 403, func(_ *site, b *robot, _ *authenticator) func(url.Values) {
			b.header["Sec-Fetch-Site"] = "cross-site"
			return func(url.Values) {}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _, phone := enrolled(t)
			b := s.robot()
			change := c.change(s, b, phone)
			f := phone.get(t, b.get(t, SignInPath))
			change(f)
			if w := b.post(t, PasskeyPath, f); w.Code != c.status || b.cookies["__Host-session"] != "" {
				t.Errorf("%d %s\n%s", w.Code, title(w), s.log)
			}
		})
	}
}

func TestPasskeyAnswersOnce(t *testing.T) {
	s, _, phone := enrolled(t)
	b := s.robot()
	f := phone.get(t, b.get(t, SignInPath))
	if w := b.post(t, PasskeyPath, f); w.Code != http.StatusSeeOther {
		t.Fatalf("%d", w.Code)
	}
	delete(b.cookies, "__Host-session")
	if w := b.post(t, PasskeyPath, f); w.Code != http.StatusBadRequest || b.cookies["__Host-session"] != "" {
		t.Errorf("the same answer again: %d", w.Code)
	}
}

func TestPasskeyCounterGoesBack(t *testing.T) {
	s, _, phone := enrolled(t)
	b := s.robot()
	phone.key.Counter = 40
	if w := b.post(t, PasskeyPath, phone.get(t, b.get(t, SignInPath))); w.Code != http.StatusSeeOther {
		t.Fatalf("%d", w.Code)
	}
	copied := s.robot()
	phone.key.Counter = 10
	if w := copied.post(t, PasskeyPath, phone.get(t, copied.get(t, SignInPath))); w.Code != http.StatusBadRequest || copied.cookies["__Host-session"] != "" {
		t.Errorf("a copied passkey: %d", w.Code)
	}
}

func TestPasskeyRegistrationRefuses(t *testing.T) {
	s, b, phone := enrolled(t)
	if w := b.post(t, PasskeyAddPath, phone.create(t, b.get(t, SignInPath))); w.Code == http.StatusSeeOther {
		t.Error("one passkey was registered twice")
	}
	second := newAuthenticator(ana)
	f := second.create(t, b.get(t, SignInPath))
	other := s.robot()
	other.signIn(t, beto)
	own := fields(t, other.get(t, SignInPath), PasskeyAddPath)
	own.Set("state", f.Get("state"))
	own.Set("response", f.Get("response"))
	if w := other.post(t, PasskeyAddPath, own); w.Code != http.StatusForbidden {
		t.Errorf("another session's ceremony: %d", w.Code)
	}
	if w := s.robot().post(t, PasskeyAddPath, f); w.Code != http.StatusForbidden {
		t.Errorf("a stranger: %d", w.Code)
	}
	evil := newAuthenticator(ana)
	evil.rp.Origin = "https://evil.example"
	if w := b.post(t, PasskeyAddPath, evil.create(t, b.get(t, SignInPath))); w.Code != http.StatusBadRequest {
		t.Errorf("another origin: %d", w.Code)
	}
	if w := b.post(t, PasskeyAddPath, f); w.Code != http.StatusSeeOther {
		t.Errorf("a second passkey: %d", w.Code)
	}
	if w := b.post(t, PasskeyAddPath, f); w.Code == http.StatusSeeOther {
		t.Error("one answer registered twice")
	}
	for range maxPasskeys - 2 {
		if w := b.post(t, PasskeyAddPath, newAuthenticator(ana).create(t, b.get(t, SignInPath))); w.Code != http.StatusSeeOther {
			t.Fatalf("%d", w.Code)
		}
	}
	if w := b.post(t, PasskeyAddPath, newAuthenticator(ana).create(t, b.get(t, SignInPath))); w.Code != http.StatusBadRequest {
		t.Errorf("more than %d: %d", maxPasskeys, w.Code)
	}
}

func TestRemovedPasskey(t *testing.T) {
	s, b, phone := enrolled(t)
	f := fields(t, b.get(t, SignInPath), PasskeyRemovePath)
	other := s.robot()
	other.signIn(t, beto)
	theirs := fields(t, other.get(t, SignInPath), SignOutPath)
	theirs.Set("passkey", f.Get("passkey"))
	other.post(t, PasskeyRemovePath, theirs)
	c := s.robot()
	if w := c.post(t, PasskeyPath, phone.get(t, c.get(t, SignInPath))); w.Code != http.StatusSeeOther {
		t.Errorf("another person removed it: %d", w.Code)
	}
	if w := b.post(t, PasskeyRemovePath, f); w.Code != http.StatusSeeOther {
		t.Errorf("remove: %d", w.Code)
	}
	d := s.robot()
	if w := d.post(t, PasskeyPath, phone.get(t, d.get(t, SignInPath))); w.Code != http.StatusBadRequest {
		t.Errorf("a removed passkey: %d", w.Code)
	}
}

func TestPasskeyPages(t *testing.T) {
	s := newSite(t)
	w := s.robot().get(t, SignInPath)
	if policy := w.Header().Get("Content-Security-Policy"); !strings.HasSuffix(policy, "; script-src "+testOrigin+PasskeyScriptPath) {
		t.Errorf("policy %q", policy)
	}
	script := s.robot().get(t, PasskeyScriptPath)
	if script.Code != http.StatusOK || !strings.HasPrefix(script.Header().Get("Content-Type"), "text/javascript") || !strings.Contains(script.Body.String(), "navigator.credentials") {
		t.Errorf("script: %d %v", script.Code, script.Header())
	}
	for _, want := range []string{`"userVerification":"required"`, `"rpId":"mail.example.com"`} {
		if got := options(t, w); !strings.Contains(got, want) {
			t.Errorf("sign-in options lack %s: %s", want, got)
		}
	}
	b := s.robot()
	b.signIn(t, ana)
	for _, want := range []string{`"residentKey":"required"`, `"userVerification":"required"`} {
		if got := options(t, b.get(t, SignInPath)); !strings.Contains(got, want) {
			t.Errorf("registration options lack %s: %s", want, got)
		}
	}
	// An address has no passkeys, and then no script runs.
	local := newSiteAt(t, "http://127.0.0.1:8080")
	w = local.robot().get(t, SignInPath)
	if strings.Contains(w.Body.String(), "data-passkey") || strings.Contains(w.Header().Get("Content-Security-Policy"), "script-src") {
		t.Error("passkeys are offered at an address")
	}
	if w := local.robot().post(t, PasskeyPath, pairs("state", "x", "request", "y")); w.Code != http.StatusForbidden {
		t.Errorf("passkey sign-in at an address: %d", w.Code)
	}
}
