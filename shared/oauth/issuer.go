package oauth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// tokenType is the typ of an access token (RFC 9068 section 2.1), so that no other JWT of the same key passes for one.
const tokenType = "at+jwt"

// Issuer mints access tokens for one audience.
type Issuer struct {
	keys     *KeyRing
	issuer   string
	audience string
	clock    func() time.Time
	random   io.Reader
}

// NewIssuer takes the issuer identifier, the audience of all its tokens and the source of their ids.
func NewIssuer(keys *KeyRing, issuer, audience string, clock func() time.Time, random io.Reader) (*Issuer, error) {
	if issuer == "" || audience == "" {
		return nil, fmt.Errorf("%w: an issuer and an audience", ErrIncompleteClaims)
	}
	return &Issuer{keys: keys, issuer: issuer, audience: audience, clock: clock, random: random}, nil
}

// Mint signs claims with the current key. iss, aud, iat and exp are set here; an empty jti is drawn. The caller gives sub,
// client_id, scope, gid, org and, where there is a default, ws.
func (i *Issuer) Mint(ctx context.Context, c Claims, ttl time.Duration) (string, error) {
	if ttl < time.Second || ttl > MaxLifetime {
		return "", fmt.Errorf("%w: lifetime %s", ErrIncompleteClaims, ttl)
	}
	keys, err := i.keys.Keys(ctx)
	if err != nil {
		return "", err
	}
	now := i.clock()
	c.Issuer, c.Audience = i.issuer, i.audience
	c.IssuedAt, c.Expires = now.Unix(), now.Add(ttl).Unix()
	if c.ID == "" {
		if c.ID, err = i.newID(); err != nil {
			return "", err
		}
	}
	if reason := c.incomplete(); reason != "" {
		return "", fmt.Errorf("%w: %s", ErrIncompleteClaims, reason)
	}
	return sign(keys.current, c)
}

func (i *Issuer) newID() (string, error) {
	var id [16]byte
	if _, err := io.ReadFull(i.random, id[:]); err != nil {
		return "", fmt.Errorf("oauth: draw a token id: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(id[:]), nil
}

func sign(k *key, c Claims) (string, error) {
	payload, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("oauth: render claims: %w", err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: k.jwk(k.private)},
		(&jose.SignerOptions{}).WithType(tokenType))
	if err != nil {
		return "", fmt.Errorf("oauth: signer of key %s: %w", k.id, err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("oauth: sign with key %s: %w", k.id, err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		return "", fmt.Errorf("oauth: serialize token: %w", err)
	}
	return token, nil
}

// incomplete names the first claim that is missing; empty when none is. RFC 9068 section 2.2 requires all but gid and org,
// which are ours: without them no request could be counted or placed.
func (c *Claims) incomplete() string {
	switch {
	case c.Subject == "":
		return "no sub"
	case c.ClientID == "":
		return "no client_id"
	case c.ID == "":
		return "no jti"
	case c.Grant == "":
		return "no gid"
	case c.Organization == "":
		return "no org"
	case c.IssuedAt <= 0:
		return "no iat"
	case c.Expires <= 0:
		return "no exp"
	}
	return ""
}
