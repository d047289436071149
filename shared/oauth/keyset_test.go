package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/buzon-mail/buzon/shared/apperr"
)

func TestKeySetSurvivesStorage(t *testing.T) {
	w := newWorld(t)
	w.now = w.now.Add(publishedFor)
	rotated, err := w.keys.Rotate(seeded(5), w.now)
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]*KeySet{"fresh": w.keys, "rotated": rotated} {
		secret, err := set.Secret()
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseKeySet(secret)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := back.Secret()
		if err != nil || !bytes.Equal(secret, again) {
			t.Errorf("%s: stored and read back differ (%v)", name, err)
		}
	}
}

// TestRotation walks one key through its life: published, signing, verifying only, gone.
func TestRotation(t *testing.T) {
	w := newWorld(t)
	token := w.mint(t)
	old := w.keys.current.id
	if _, err := w.keys.Rotate(seeded(5), w.now.Add(publishedFor-time.Second)); !errors.Is(err, ErrRotateTooSoon) {
		t.Fatalf("rotation before the key was published: %v, want ErrRotateTooSoon", err)
	}
	w.now = w.now.Add(publishedFor)
	promoted := w.keys.next.id
	rotated, err := w.keys.Rotate(seeded(5), w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.keys = rotated
	if rotated.current.id != promoted || rotated.previous.id != old {
		t.Fatal("the published key does not sign, or the signing one was dropped")
	}
	if _, err := w.verifier.Verify(t.Context(), token); err != nil {
		t.Errorf("a token of the retired key: %v", err)
	}
	if c, err := w.verifier.Verify(t.Context(), w.mint(t)); err != nil || c == nil {
		t.Errorf("a token of the promoted key: %v", err)
	}
	if _, err := rotated.Rotate(seeded(6), w.now.Add(previousLifetime-time.Second)); !errors.Is(err, ErrRotateTooSoon) {
		t.Errorf("rotation that would drop a verifying key: %v, want ErrRotateTooSoon", err)
	}
	if _, err := rotated.Rotate(seeded(6), w.now.Add(previousLifetime)); err != nil {
		t.Errorf("rotation an hour later: %v", err)
	}
	if rotated.find(old, w.now.Add(previousLifetime-time.Second)) == nil || rotated.find(old, w.now.Add(previousLifetime)) != nil {
		t.Error("the retired key must verify for an hour, no longer")
	}
}

// TestOtherInstanceRotatedFirst: a token signed by the key that we only know as next.
func TestOtherInstanceRotatedFirst(t *testing.T) {
	w := newWorld(t)
	payload, _ := json.Marshal(w.goodMap())
	token := w.forgeRaw(t, w.keys.next.private, w.keys.next.id, atJWT(), payload)
	if _, err := w.verifier.Verify(t.Context(), token); err != nil {
		t.Error(err)
	}
}

func TestParseKeySetRefuses(t *testing.T) {
	w := newWorld(t)
	secret, err := w.keys.Secret()
	if err != nil {
		t.Fatal(err)
	}
	edit := func(change func(map[string]any)) string {
		var m map[string]any
		if err := json.Unmarshal(secret, &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		b, _ := json.Marshal(m)
		return string(b)
	}
	jwk := func(m map[string]any, name string) map[string]any {
		return m[name].(map[string]any)["jwk"].(map[string]any)
	}
	tests := map[string]string{
		"empty":         "",
		"not JSON":      "-----BEGIN EC PRIVATE KEY-----",
		"version 2":     edit(func(m map[string]any) { m["version"] = 2 }),
		"no version":    edit(func(m map[string]any) { delete(m, "version") }),
		"no current":    edit(func(m map[string]any) { delete(m, "current") }),
		"no next":       edit(func(m map[string]any) { m["next"] = nil }),
		"public key":    edit(func(m map[string]any) { delete(jwk(m, "current"), "d") }),
		"another id":    edit(func(m map[string]any) { jwk(m, "current")["kid"] = "x" }),
		"one key twice": edit(func(m map[string]any) { m["next"] = m["current"] }),
		"undated past": edit(func(m map[string]any) {
			m["previous"] = m["current"]
			m["current"] = m["next"]
			m["next"] = m["previous"]
		}),
		"symmetric": edit(func(m map[string]any) {
			m["current"].(map[string]any)["jwk"] = map[string]any{"kty": "oct", "k": "c2VjcmV0"}
		}),
		"over the limit": string(secret) + strings.Repeat(" ", maxKeySet),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			set, err := ParseKeySet([]byte(s))
			if !errors.Is(err, ErrKeySet) || set != nil && err == nil {
				t.Fatalf("error = %v, want ErrKeySet", err)
			}
		})
	}
	newer := edit(func(m map[string]any) { m["comment"] = "of a newer program" })
	if _, err := ParseKeySet([]byte(newer)); err != nil {
		t.Errorf("an unknown member must be ignored: %v", err)
	}
}

func TestKeySetNeverPrints(t *testing.T) {
	w := newWorld(t)
	secret, err := w.keys.Secret()
	if err != nil {
		t.Fatal(err)
	}
	var stored struct {
		Current struct {
			JWK struct{ D string }
		}
	}
	if err := json.Unmarshal(secret, &stored); err != nil || stored.Current.JWK.D == "" {
		t.Fatalf("no private part in the stored form: %v", err)
	}
	raw, err := w.keys.current.private.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	scalar := new(big.Int).SetBytes(raw).String()
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "keys", w.keys)
	asJSON, _ := json.Marshal(struct{ K *KeySet }{w.keys})
	for _, out := range []string{
		fmt.Sprint(w.keys), fmt.Sprintf("%+v", w.keys), fmt.Sprintf("%#v", w.keys), fmt.Sprintf("%q", w.keys), log.String(), string(asJSON),
	} {
		if strings.Contains(out, stored.Current.JWK.D) || strings.Contains(out, scalar) || !strings.Contains(out, "redacted") {
			t.Errorf("printed %q", out)
		}
	}
}

func TestJWKSIsPublic(t *testing.T) {
	w := newWorld(t)
	w.now = w.now.Add(publishedFor)
	rotated, err := w.keys.Rotate(seeded(5), w.now)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		at   time.Time
		want int
	}{{"three while the retired one verifies", w.now, 3}, {"two after", w.now.Add(previousLifetime), 2}} {
		body, err := rotated.JWKS(tt.at)
		if err != nil {
			t.Fatal(err)
		}
		var set jose.JSONWebKeySet
		if err := json.Unmarshal(body, &set); err != nil || len(set.Keys) != tt.want {
			t.Fatalf("%s: %d keys, %v", tt.name, len(set.Keys), err)
		}
		for _, k := range set.Keys {
			if !k.IsPublic() || k.KeyID == "" || k.Algorithm != "ES256" || k.Use != "sig" {
				t.Errorf("%s: key %+v", tt.name, k)
			}
		}
	}
}

func TestNewKeySetNeedsRandomness(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"none": bytes.NewReader(nil), "half": bytes.NewReader(make([]byte, 31)), "only zeros": bytes.NewReader(make([]byte, 4096)),
	} {
		if _, err := NewKeySet(r, time.Now()); err == nil {
			t.Errorf("%s: a key set was made", name)
		}
	}
}

// ringWorld counts loads and fails on demand.
type ringWorld struct {
	now   time.Time
	loads int
	fail  error
}

func (w *ringWorld) ring(t *testing.T) *KeyRing {
	t.Helper()
	return NewKeyRing(func(context.Context) (*KeySet, error) {
		w.loads++
		if w.fail != nil {
			return nil, w.fail
		}
		return DevelopmentKeys()
	}, func() time.Time { return w.now })
}

func (w *ringWorld) want(t *testing.T, r *KeyRing, loads int, ok bool) {
	t.Helper()
	set, err := r.Keys(t.Context())
	if (err == nil) != ok || (set != nil) != ok || w.loads != loads {
		t.Fatalf("Keys = %v, %v after %d loads, want ok %t after %d", set, err, w.loads, ok, loads)
	}
	if err != nil && (!apperr.Is(err, apperr.Unavailable) || !errors.Is(err, w.fail)) {
		t.Fatalf("error = %v, want unavailable with its cause", err)
	}
}

func TestKeyRingReloads(t *testing.T) {
	w := &ringWorld{now: time.Unix(1e9, 0)}
	r := w.ring(t)
	w.want(t, r, 1, true)
	w.now = w.now.Add(reloadAfter - time.Second)
	w.want(t, r, 1, true)
	w.now = w.now.Add(time.Second)
	w.want(t, r, 2, true)
	w.fail = errors.New("secret store is down")
	w.now = w.now.Add(reloadAfter)
	w.want(t, r, 3, true) // the old set serves on
	w.want(t, r, 3, true) // and is not asked for again at once
	w.now = w.now.Add(reloadRetry)
	w.want(t, r, 4, true)
	w.now = w.now.Add(staleLimit)
	w.want(t, r, 5, false)
	w.fail = nil
	w.want(t, r, 6, true)
}

func TestKeyRingWithoutKeys(t *testing.T) {
	w := &ringWorld{now: time.Unix(1e9, 0), fail: errors.New("secret store is down")}
	r := w.ring(t)
	w.want(t, r, 1, false)
	w.want(t, r, 2, false)
}

func TestKeyRingCallerWentAway(t *testing.T) {
	w := &ringWorld{now: time.Unix(1e9, 0)}
	r := w.ring(t)
	w.want(t, r, 1, true)
	w.now = w.now.Add(reloadAfter)
	w.fail = context.Canceled
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Keys(gone); err != nil {
		t.Fatal(err)
	}
	w.fail = nil
	w.want(t, r, 3, true) // the next caller reloads without waiting
}
