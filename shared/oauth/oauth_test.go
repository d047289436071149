package oauth

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

const (
	testOrigin   = "https://mail.example.com"
	testAudience = testOrigin + "/mcp"
)

// world is one issuer and one verifier on a clock that the test moves.
type world struct {
	now      time.Time
	keys     *KeySet
	ring     *KeyRing
	issuer   *Issuer
	verifier *Verifier
}

func (w *world) clock() time.Time { return w.now }

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	keys, err := NewKeySet(seeded(1), w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.keys = keys
	w.ring = NewKeyRing(func(context.Context) (*KeySet, error) { return w.keys, nil }, w.clock)
	if w.issuer, err = NewIssuer(w.ring, testOrigin, testAudience, w.clock, seeded(2)); err != nil {
		t.Fatal(err)
	}
	if w.verifier, err = NewVerifier(w.ring, w.clock, VerifierOptions{Issuer: testOrigin, Audience: testAudience}); err != nil {
		t.Fatal(err)
	}
	return w
}

func seeded(n byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{n}) }

func goodClaims() Claims {
	return Claims{
		Subject: "usr_1", ClientID: "https://client.example/id", Scope: "emails:read inboxes:read",
		Grant: "grt_1", Organization: "org_1", Workspace: "wsp_1",
	}
}

func (w *world) mint(t testing.TB) string {
	t.Helper()
	token, err := w.issuer.Mint(t.Context(), goodClaims(), 15*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// wantRefused checks kind, code and the private reason, and that the reason is not public.
func wantRefused(t *testing.T, err error, code, reason string) {
	t.Helper()
	e, ok := errors.AsType[*apperr.Error](err)
	if !ok || e.Kind != apperr.Unauthenticated || e.Code != code {
		t.Fatalf("error = %v, want unauthenticated/%s", err, code)
	}
	if e.Unwrap() == nil || !strings.Contains(e.Unwrap().Error(), reason) {
		t.Errorf("reason = %v, want %q", e.Unwrap(), reason)
	}
	want := "This request needs an access token."
	if code == CodeInvalid {
		want = "The access token is expired, revoked or not for this server."
	}
	if e.Public != want || len(e.Fixes) == 0 {
		t.Errorf("public = %q, fixes = %q: want the text that all refusals share", e.Public, e.Fixes)
	}
}
