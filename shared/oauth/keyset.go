package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// keySetVersion is the format of the secret. A program that reads a newer one must refuse it rather than guess.
	keySetVersion = 1
	// previousLifetime is how long a retired key still verifies. It outlives every access token that it signed.
	previousLifetime = time.Hour
	// publishedFor is how long a key is published before it may sign: twice the time after which every instance reloads,
	// so that no instance meets a token whose key it has not seen.
	publishedFor = 10 * time.Minute
	maxKeySet    = 16 << 10 // bytes of the secret
)

// key is one ES256 key pair. Its id is the RFC 7638 thumbprint, so an id can't name two keys.
type key struct {
	id      string
	private *ecdsa.PrivateKey
	created time.Time
	retired time.Time // zero unless it is the previous one
}

// KeySet is the signing keys at one moment: the current one signs, the next one is published before it signs, the previous
// one still verifies for an hour. It is immutable and never prints its keys; Secret gives the stored form.
type KeySet struct {
	previous *key // nil until the first rotation
	current  *key
	next     *key
}

// storedKey and storedKeySet are the JSON of the secret, version 1. Unknown members are ignored, so that an older program
// reads what a newer one added.
type storedKey struct {
	JWK     jose.JSONWebKey `json:"jwk"`
	Created time.Time       `json:"created_at"`
	Retired time.Time       `json:"retired_at,omitzero"`
}

type storedKeySet struct {
	Version  int        `json:"version"`
	Previous *storedKey `json:"previous,omitempty"`
	Current  *storedKey `json:"current"`
	Next     *storedKey `json:"next"`
}

// NewKeySet makes a set of two fresh keys. It also answers a leaked key: nothing that an older set signed verifies.
func NewKeySet(random io.Reader, now time.Time) (*KeySet, error) {
	current, err := newKey(random, now)
	if err != nil {
		return nil, err
	}
	next, err := newKey(random, now)
	if err != nil {
		return nil, err
	}
	return &KeySet{current: current, next: next}, nil
}

// Rotate returns the set in which the next key signs and the current one only verifies. ErrRotateTooSoon while the next
// key was published for less than 10 minutes, or while the key that would be dropped still verifies tokens.
func (s *KeySet) Rotate(random io.Reader, now time.Time) (*KeySet, error) {
	if wait := s.next.created.Add(publishedFor).Sub(now); wait > 0 {
		return nil, fmt.Errorf("%w: the next key is published for another %s", ErrRotateTooSoon, wait.Round(time.Second))
	}
	if s.previous != nil {
		if wait := s.previous.retired.Add(previousLifetime).Sub(now); wait > 0 {
			return nil, fmt.Errorf("%w: the previous key verifies for another %s", ErrRotateTooSoon, wait.Round(time.Second))
		}
	}
	next, err := newKey(random, now)
	if err != nil {
		return nil, err
	}
	retired := *s.current
	retired.retired = now
	return &KeySet{previous: &retired, current: s.next, next: next}, nil
}

// newKey draws the scalar from random itself: crypto/ecdsa.GenerateKey ignores its argument since Go 1.26, and tests need
// the same keys twice. Rejection sampling as FIPS 186-5 A.2.2; a miss has probability 2^-32.
func newKey(random io.Reader, now time.Time) (*key, error) {
	var scalar [32]byte
	for range 8 {
		if _, err := io.ReadFull(random, scalar[:]); err != nil {
			return nil, fmt.Errorf("oauth: read randomness: %w", err)
		}
		if private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar[:]); err == nil {
			return describe(private, now)
		}
	}
	return nil, errors.New("oauth: the source of randomness yields no key")
}

func describe(private *ecdsa.PrivateKey, created time.Time) (*key, error) {
	id, err := thumbprint(private)
	if err != nil {
		return nil, err
	}
	return &key{id: id, private: private, created: created.UTC()}, nil
}

func thumbprint(private *ecdsa.PrivateKey) (string, error) {
	sum, err := (&jose.JSONWebKey{Key: &private.PublicKey}).Thumbprint(crypto.SHA256)
	if err != nil {
		return "", fmt.Errorf("oauth: thumbprint: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(sum), nil
}

// ParseKeySet reads the stored form. Every fault is ErrKeySet; the error never carries the secret's bytes.
func ParseKeySet(secret []byte) (*KeySet, error) {
	if len(secret) > maxKeySet {
		return nil, fmt.Errorf("%w: over %d bytes", ErrKeySet, maxKeySet)
	}
	var stored storedKeySet
	if err := json.Unmarshal(secret, &stored); err != nil {
		return nil, fmt.Errorf("%w: not the expected JSON", ErrKeySet)
	}
	if stored.Version != keySetVersion {
		return nil, fmt.Errorf("%w: version %d, this program reads %d", ErrKeySet, stored.Version, keySetVersion)
	}
	if stored.Current == nil || stored.Next == nil {
		return nil, fmt.Errorf("%w: current or next is missing", ErrKeySet)
	}
	set := &KeySet{}
	var err error
	if set.current, err = stored.Current.load("current"); err != nil {
		return nil, err
	}
	if set.next, err = stored.Next.load("next"); err != nil {
		return nil, err
	}
	if stored.Previous != nil {
		if set.previous, err = stored.Previous.load("previous"); err != nil {
			return nil, err
		}
	}
	return set, set.check()
}

func (s *storedKey) load(name string) (*key, error) {
	private, ok := s.JWK.Key.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%w: %s is not a private P-256 key", ErrKeySet, name)
	}
	k, err := describe(private, s.Created)
	if err != nil {
		return nil, err
	}
	if s.JWK.KeyID != k.id {
		return nil, fmt.Errorf("%w: the id of %s is not its thumbprint", ErrKeySet, name)
	}
	k.retired = s.Retired
	return k, nil
}

func (s *KeySet) check() error {
	switch {
	case s.current.id == s.next.id, s.previous != nil && (s.previous.id == s.current.id || s.previous.id == s.next.id):
		return fmt.Errorf("%w: one key stands twice", ErrKeySet)
	case s.previous != nil && s.previous.retired.IsZero():
		return fmt.Errorf("%w: previous has no retired_at", ErrKeySet)
	}
	return nil
}

// Secret is the stored form, to be kept where secrets are kept.
func (s *KeySet) Secret() ([]byte, error) {
	stored := storedKeySet{Version: keySetVersion, Previous: s.previous.store(), Current: s.current.store(), Next: s.next.store()}
	secret, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("oauth: render key set: %w", err)
	}
	return secret, nil
}

func (k *key) store() *storedKey {
	if k == nil {
		return nil
	}
	return &storedKey{JWK: k.jwk(k.private), Created: k.created, Retired: k.retired}
}

func (k *key) jwk(material any) jose.JSONWebKey {
	return jose.JSONWebKey{Key: material, KeyID: k.id, Algorithm: string(jose.ES256), Use: "sig"}
}

// verifying lists the keys that verify at a time.
func (s *KeySet) verifying(now time.Time) []*key {
	keys := []*key{s.current, s.next}
	if s.previous != nil && now.Before(s.previous.retired.Add(previousLifetime)) {
		keys = append(keys, s.previous)
	}
	return keys
}

// find is the verifying key of an id; nil when there is none.
func (s *KeySet) find(id string, now time.Time) *key {
	for _, k := range s.verifying(now) {
		if k.id == id {
			return k
		}
	}
	return nil
}

// JWKS renders the public keys that verify at a time (RFC 7517 section 5).
func (s *KeySet) JWKS(now time.Time) ([]byte, error) {
	var set jose.JSONWebKeySet
	for _, k := range s.verifying(now) {
		set.Keys = append(set.Keys, k.jwk(&k.private.PublicKey))
	}
	body, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("oauth: render JWKS: %w", err)
	}
	return body, nil
}

const redacted = "oauth.KeySet(redacted)"

// String hides the keys.
func (s *KeySet) String() string { return redacted }

// GoString hides the keys from %#v.
func (s *KeySet) GoString() string { return redacted }

// LogValue hides the keys from log/slog.
func (s *KeySet) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON hides the keys from a struct that is rendered with the set in it; the stored form is Secret's.
func (s *KeySet) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }
