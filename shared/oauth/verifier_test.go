package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Clauses: I23 S21
func TestVerifyReturnsWhatWasMinted(t *testing.T) {
	w := newWorld(t)
	c, err := w.verifier.Verify(t.Context(), w.mint(t))
	if err != nil {
		t.Fatal(err)
	}
	want := goodClaims()
	want.Issuer, want.Audience, want.ID = testOrigin, testAudience, c.ID
	want.IssuedAt, want.Expires = w.now.Unix(), w.now.Add(15*time.Minute).Unix()
	if *c != want {
		t.Errorf("claims = %+v, want %+v", *c, want)
	}
	if len(c.ID) != 22 || !c.ExpiresAt().Equal(w.now.Add(15*time.Minute)) {
		t.Errorf("jti %q, exp %s", c.ID, c.ExpiresAt())
	}
}

// forge signs any header members and claims with the current key, as an issuer gone wrong would.
func (w *world) forge(t testing.TB, header map[jose.HeaderKey]any, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return w.forgeRaw(t, w.keys.current.private, w.keys.current.id, header, payload)
}

func (w *world) forgeRaw(t testing.TB, private *ecdsa.PrivateKey, kid string, header map[jose.HeaderKey]any, payload []byte) string {
	t.Helper()
	opts := &jose.SignerOptions{ExtraHeaders: header}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: private, KeyID: kid}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (w *world) goodMap() map[string]any {
	return map[string]any{
		"iss": testOrigin, "aud": testAudience, "sub": "usr_1", "client_id": "c", "scope": "emails:read",
		"exp": w.now.Add(time.Minute).Unix(), "iat": w.now.Unix(), "jti": "j", "gid": "g", "org": "o",
	}
}

func atJWT() map[jose.HeaderKey]any { return map[jose.HeaderKey]any{"typ": "at+jwt"} }

// TestClaims is RFC 9068 section 4 and RFC 7519 section 4.1 one claim at a time.
//
// Clauses: I24 I28 I39 S03 S22 9068-2
func TestClaims(t *testing.T) {
	w := newWorld(t)
	now := w.now.Unix()
	tests := []struct {
		name   string
		claim  string
		value  any // nil removes the claim
		reason string
	}{
		{"another issuer", "iss", "https://evil.example", "another issuer"},
		{"issuer with a slash", "iss", testOrigin + "/", "another issuer"},
		{"no issuer", "iss", nil, "another issuer"},
		{"another audience", "aud", "https://mail.example.com/other", "another audience"},
		{"origin as audience", "aud", testOrigin, "another audience"},
		{"audience prefix", "aud", testAudience + "/x", "another audience"},
		{"audience as array", "aud", []string{testAudience}, "other types"},
		{"audience as array of two", "aud", []string{testAudience, "https://evil.example"}, "other types"},
		{"no audience", "aud", nil, "another audience"},
		{"expired a second ago", "exp", now - 1, "expired"},
		{"expires now", "exp", now, "expired"},
		{"no expiry", "exp", nil, "expired"},
		{"expiry as text", "exp", "9999999999", "other types"},
		{"fractional expiry", "exp", float64(now) + 60.5, "other types"},
		{"lives a week", "exp", now + 7*86400, "lives too long"},
		{"expiry beyond int64", "exp", json.Number("1e30"), "other types"},
		{"not before, beyond the leeway", "nbf", now + 6, "not yet valid"},
		{"issued in the future", "iat", now + 6, "issued in the future"},
		{"no iat", "iat", nil, "lives too long"},
		{"negative iat overflows the lifetime", "iat", -1 << 63, "no iat"},
		{"no subject", "sub", nil, "no sub"},
		{"empty subject", "sub", "", "no sub"},
		{"no client", "client_id", nil, "no client_id"},
		{"no token id", "jti", nil, "no jti"},
		{"no grant", "gid", nil, "no gid"},
		{"no organization", "org", nil, "no org"},
		{"scope as array", "scope", []string{"emails:read"}, "other types"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			claims := w.goodMap()
			if claims[tt.claim] = tt.value; tt.value == nil {
				delete(claims, tt.claim)
			}
			_, err := w.verifier.Verify(t.Context(), w.forge(t, atJWT(), claims))
			wantRefused(t, err, CodeInvalid, tt.reason)
		})
	}
	for name, change := range map[string]map[string]any{
		"as it is":              {},
		"nbf within the leeway": {"nbf": now + 5},
		"iat within the leeway": {"iat": now + 5},
		"no scope":              {"scope": ""},
		"unknown claim":         {"amr": []string{"hwk"}},
	} {
		t.Run("accepts "+name, func(t *testing.T) {
			claims := w.goodMap()
			maps.Copy(claims, change)
			if _, err := w.verifier.Verify(t.Context(), w.forge(t, atJWT(), claims)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHeader(t *testing.T) {
	w := newWorld(t)
	other, err := NewKeySet(seeded(9), w.now)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		header map[jose.HeaderKey]any
		reason string
	}{
		{"no typ", nil, "typ"},
		{"typ JWT", map[jose.HeaderKey]any{"typ": "JWT"}, "typ"},
		{"typ of another token", map[jose.HeaderKey]any{"typ": "id_token+jwt"}, "typ"},
		{"typ as number", map[jose.HeaderKey]any{"typ": 1}, "typ"},
		{"crit", map[jose.HeaderKey]any{"typ": "at+jwt", "crit": []string{"exp"}, "exp": 1}, "beyond"},
		{"crit that is empty", map[jose.HeaderKey]any{"typ": "at+jwt", "crit": []string{}}, "beyond"},
		{"jku", map[jose.HeaderKey]any{"typ": "at+jwt", "jku": "https://evil.example/keys"}, "beyond"},
		{"nonce", map[jose.HeaderKey]any{"typ": "at+jwt", "nonce": "n"}, "beyond"},
		{"embedded key", map[jose.HeaderKey]any{"typ": "at+jwt", "jwk": other.current.jwk(&other.current.private.PublicKey)}, "beyond"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.verifier.Verify(t.Context(), w.forge(t, tt.header, w.goodMap()))
			wantRefused(t, err, CodeInvalid, tt.reason)
		})
	}
	payload, _ := json.Marshal(w.goodMap())
	t.Run("known kid, another key", func(t *testing.T) {
		_, err := w.verifier.Verify(t.Context(), w.forgeRaw(t, other.current.private, w.keys.current.id, atJWT(), payload))
		wantRefused(t, err, CodeInvalid, "signature")
	})
	t.Run("unknown kid", func(t *testing.T) {
		_, err := w.verifier.Verify(t.Context(), w.forgeRaw(t, other.current.private, other.current.id, atJWT(), payload))
		wantRefused(t, err, CodeInvalid, "unknown kid")
	})
	t.Run("no kid", func(t *testing.T) {
		_, err := w.verifier.Verify(t.Context(), w.forgeRaw(t, w.keys.current.private, "", atJWT(), payload))
		wantRefused(t, err, CodeInvalid, "unknown kid")
	})
	t.Run("the long typ of RFC 9068 section 4", func(t *testing.T) {
		token := w.forge(t, map[jose.HeaderKey]any{"typ": "application/at+jwt"}, w.goodMap())
		if _, err := w.verifier.Verify(t.Context(), token); err != nil {
			t.Error(err)
		}
	})
}

// TestShape is what arrives instead of a token.
func TestShape(t *testing.T) {
	w := newWorld(t)
	good := w.mint(t)
	parts := strings.Split(good, ".")
	b64 := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	hmac := w.hmacWithPublicKey(t)
	tests := []struct{ name, token, reason string }{
		{"empty", "", "compact"},
		{"opaque", "bzk_0123456789", "compact"},
		{"two parts", parts[0] + "." + parts[1], "compact"},
		{"four parts", good + ".x", "compact"},
		{"five parts, as JWE", "a.b.c.d.e", "compact"},
		{"alg none", b64(`{"alg":"none","typ":"at+jwt"}`) + "." + parts[1] + ".", "compact"},
		{"alg None in another case", b64(`{"alg":"nOnE","typ":"at+jwt"}`) + "." + parts[1] + ".", "compact"},
		{"HS256 keyed with the public key", hmac, "compact"},
		{"alg as list", b64(`{"alg":["ES256"],"typ":"at+jwt"}`) + "." + parts[1] + "." + parts[2], "compact"},
		{"JSON serialization", `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, "compact"},
		{"no signature", parts[0] + "." + parts[1] + ".", ""},
		{"signature of zeros", parts[0] + "." + parts[1] + "." + strings.Repeat("A", 86), "signature"},
		{"short signature", parts[0] + "." + parts[1] + "." + parts[2][:40], ""},
		{"another payload", parts[0] + "." + b64(`{"sub":"usr_2"}`) + "." + parts[2], "signature"},
		{"header not JSON", b64("{") + "." + parts[1] + "." + parts[2], "compact"},
		{"line break inside", parts[0] + ".\n" + parts[1] + "." + parts[2], "canonical"},
		{"padding", good + "=", ""},
		{"over the size", strings.Repeat("a", MaxTokenBytes+1), "size"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.verifier.Verify(t.Context(), tt.token)
			wantRefused(t, err, CodeInvalid, tt.reason)
		})
	}
}

// TestOneSpelling: the last character of a base64 part carries unused bits, so several tokens have the same bytes.
func TestOneSpelling(t *testing.T) {
	w := newWorld(t)
	good := w.mint(t)
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, good[len(good)-1])
	_, err := w.verifier.Verify(t.Context(), good[:len(good)-1]+string(alphabet[last^1]))
	wantRefused(t, err, CodeInvalid, "canonical")
}

func (w *world) hmacWithPublicKey(t *testing.T) string {
	t.Helper()
	public, err := w.keys.current.private.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: public, KeyID: w.keys.current.id}},
		(&jose.SignerOptions{}).WithType("at+jwt"))
	if err != nil {
		t.Fatal(err)
	}
	payload, _ := json.Marshal(w.goodMap())
	signed, err := s.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, _ := signed.CompactSerialize()
	return token
}

func TestCachedTokenExpires(t *testing.T) {
	w := newWorld(t)
	token := w.mint(t)
	first, err := w.verifier.Verify(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(4 * time.Minute)
	if again, err := w.verifier.Verify(t.Context(), token); err != nil || again != first {
		t.Fatalf("again = %p, %v, want the cached %p", again, err, first)
	}
	w.now = w.now.Add(11 * time.Minute) // exactly exp
	_, err = w.verifier.Verify(t.Context(), token)
	wantRefused(t, err, CodeInvalid, "expired")
}

// TestLeakedKeyIsForgotten: after the set was replaced no cached token survives the reload.
func TestLeakedKeyIsForgotten(t *testing.T) {
	w := newWorld(t)
	token := w.mint(t)
	if _, err := w.verifier.Verify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	fresh, err := NewKeySet(seeded(7), w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.keys = fresh
	w.now = w.now.Add(reloadAfter)
	_, err = w.verifier.Verify(t.Context(), token)
	wantRefused(t, err, CodeInvalid, "unknown kid")
}

func TestCacheIsBounded(t *testing.T) {
	c := newCache(3)
	sum := func(n byte) Fingerprint { return Fingerprint{n} }
	for n := range byte(5) {
		c.put(sum(n), 1, &Claims{Expires: 100})
	}
	c.put(sum(4), 1, &Claims{Expires: 100}) // again: takes no second place
	for n := range byte(5) {
		if got, want := c.get(sum(n), 1, 0) != nil, n >= 2; got != want {
			t.Errorf("entry %d kept = %t, want %t", n, got, want)
		}
	}
	if len(c.entries) != 3 || len(c.order) != 3 {
		t.Errorf("%d entries, %d in order, want 3", len(c.entries), len(c.order))
	}
	c.put(sum(9), 0, &Claims{Expires: 100})
	if c.get(sum(9), 0, 0) != nil || c.get(sum(4), 1, 0) == nil {
		t.Error("a late put of an older key set changed the cache")
	}
	c.put(sum(9), 2, &Claims{Expires: 100})
	if c.get(sum(4), 1, 0) != nil || c.get(sum(4), 2, 0) != nil || len(c.entries) != 1 {
		t.Error("a newer key set did not empty the cache")
	}
}

func TestVerifyConcurrently(t *testing.T) {
	w := newWorld(t)
	tokens := make([]string, 8)
	for i := range tokens {
		tokens[i] = w.mint(t)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				if _, err := w.verifier.Verify(t.Context(), tokens[(i+j)%len(tokens)]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestDevelopment: the published key opens emulation and nothing else.
func TestDevelopment(t *testing.T) {
	w := newWorld(t)
	published, err := DevelopmentKeys()
	if err != nil {
		t.Fatal(err)
	}
	ring := StaticKeys(published, w.clock)
	issuer, err := NewIssuer(ring, DevelopmentIssuer, DevelopmentAudience, w.clock, seeded(3))
	if err != nil {
		t.Fatal(err)
	}
	token, err := issuer.Mint(t.Context(), goodClaims(), 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	emulated := VerifierOptions{Issuer: DevelopmentIssuer, Audience: DevelopmentAudience, Development: true}
	again, err := DevelopmentKeys() // as another process has them
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewVerifier(StaticKeys(again, w.clock), w.clock, emulated)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("emulation refuses its own token: %v", err)
	}
	_, err = w.verifier.Verify(t.Context(), token)
	wantRefused(t, err, CodeInvalid, "unknown kid")

	for name, o := range map[string]VerifierOptions{
		"development issuer without the flag": {Issuer: DevelopmentIssuer, Audience: DevelopmentAudience},
		"flag with a real issuer":             {Issuer: testOrigin, Audience: testAudience, Development: true},
	} {
		if _, err := NewVerifier(ring, w.clock, o); !errors.Is(err, ErrDevelopment) {
			t.Errorf("%s: %v, want ErrDevelopment", name, err)
		}
	}
	real, err := NewVerifier(ring, w.clock, VerifierOptions{Issuer: testOrigin, Audience: testAudience})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := real.Verify(t.Context(), w.mint(t)); !errors.Is(err, ErrDevelopment) {
		t.Errorf("the published key among real ones: %v, want ErrDevelopment", err)
	}
}

func TestMintRefuses(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*Claims){
		"no sub": func(c *Claims) { c.Subject = "" }, "no client_id": func(c *Claims) { c.ClientID = "" },
		"no gid": func(c *Claims) { c.Grant = "" }, "no org": func(c *Claims) { c.Organization = "" },
	} {
		c := goodClaims()
		change(&c)
		if _, err := w.issuer.Mint(t.Context(), c, time.Minute); !errors.Is(err, ErrIncompleteClaims) {
			t.Errorf("%s: %v, want ErrIncompleteClaims", name, err)
		}
	}
	for _, ttl := range []time.Duration{-1, 0, time.Millisecond, MaxLifetime + 1} {
		if _, err := w.issuer.Mint(t.Context(), goodClaims(), ttl); !errors.Is(err, ErrIncompleteClaims) {
			t.Errorf("lifetime %s: %v, want ErrIncompleteClaims", ttl, err)
		}
	}
	if _, err := NewIssuer(w.ring, "", testAudience, w.clock, seeded(1)); err == nil {
		t.Error("an issuer without a name was made")
	}
}

func FuzzVerify(f *testing.F) {
	w := newWorld(f)
	good := w.mint(f)
	parts := strings.Split(good, ".")
	f.Add(good)
	f.Add(parts[0] + "." + parts[1] + ".")
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add("..")
	f.Add(w.forge(f, atJWT(), map[string]any{"aud": 1}))
	f.Fuzz(func(t *testing.T, token string) {
		c, err := w.verifier.Verify(t.Context(), token)
		// Another fuzz process signs the same bytes to another signature, so a good token is known by what is signed.
		if err == nil && !strings.HasPrefix(token, parts[0]+"."+parts[1]+".") || (c == nil) == (err == nil) {
			t.Fatalf("Verify(%q) = %v, %v: only what was minted is good", token, c, err)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	w := newWorld(b)
	token := w.mint(b)
	b.Run("cached", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.verifier.Verify(b.Context(), token); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("uncached", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.verifier.check(w.keys, token, w.now); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unknown kid", func(b *testing.B) {
		other := w.forgeRaw(b, mustKey(b), "nobody", atJWT(), []byte(`{}`))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.verifier.Verify(b.Context(), other); err == nil {
				b.Fatal("accepted")
			}
		}
	})
}

func mustKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), []byte(fmt.Sprintf("%032d", 7)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}
