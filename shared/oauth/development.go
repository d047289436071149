package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"
)

// The identity of emulation. The function and the command that fills tokens into events are different processes with
// nothing in common but this source, so issuer, audience and key are constants, and anybody can sign with the key: it
// verifies only where VerifierOptions.Development is set, which configuration refuses on real Lambda. The host is under
// .invalid (RFC 2606), so no such issuer can exist.
const (
	DevelopmentOrigin   = "https://emulator.buzon.invalid"
	DevelopmentIssuer   = DevelopmentOrigin
	DevelopmentAudience = DevelopmentOrigin + resourcePath
)

// DevelopmentKeys is the published key set of emulation.
func DevelopmentKeys() (*KeySet, error) {
	current, err := developmentKey("current")
	if err != nil {
		return nil, err
	}
	next, err := developmentKey("next")
	if err != nil {
		return nil, err
	}
	return &KeySet{current: current, next: next}, nil
}

func developmentKey(name string) (*key, error) {
	scalar := sha256.Sum256([]byte("buzon emulator key, public on purpose: " + name))
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar[:])
	if err != nil {
		return nil, fmt.Errorf("oauth: development key: %w", err)
	}
	return describe(private, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
}

// holds reports whether one of the ids stands in the set, at any place.
func (s *KeySet) holds(ids []string) bool {
	for _, k := range []*key{s.previous, s.current, s.next} {
		if k != nil && slices.Contains(ids, k.id) {
			return true
		}
	}
	return false
}
