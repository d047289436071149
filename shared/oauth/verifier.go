package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// VerifierOptions says which tokens are ours.
type VerifierOptions struct {
	Issuer   string // exact iss
	Audience string // exact aud: the resource identifier, <origin>/mcp
	// Development allows the published development key and its issuer. Only emulation sets it: anybody can sign with that key.
	Development bool
}

// Verifier checks access tokens without reading a store. What a token says is trusted until it expires; what must be
// fresher (revocation, role, membership) is checked by whoever turns claims into a caller.
type Verifier struct {
	keys         *KeyRing
	opts         VerifierOptions
	clock        func() time.Time
	cache        *cache
	fingerprints *fingerprints
	published    []string // ids of the development keys
}

// NewVerifier refuses a configuration that would accept nothing, or the development issuer where it must not.
func NewVerifier(keys *KeyRing, clock func() time.Time, o VerifierOptions) (*Verifier, error) {
	if o.Issuer == "" || o.Audience == "" {
		return nil, errors.New("oauth: a verifier needs an issuer and an audience")
	}
	if (o.Issuer == DevelopmentIssuer) != o.Development {
		return nil, ErrDevelopment
	}
	published, err := DevelopmentKeys()
	if err != nil {
		return nil, err
	}
	return &Verifier{
		keys: keys, opts: o, clock: clock, cache: newCache(cacheEntries), fingerprints: newFingerprints(),
		published: []string{published.current.id, published.next.id},
	}, nil
}

// Verify returns the claims of a good token. An *apperr.Error of kind unauthenticated, code invalid_token, whose public text
// is the same for every fault; of kind unavailable when the keys can't be read; ErrDevelopment when the published key stands
// among real ones. While a token is cached the same *Claims is returned: read only.
func (v *Verifier) Verify(ctx context.Context, token string) (*Claims, error) {
	if len(token) > MaxTokenBytes {
		return nil, invalid("over the size limit")
	}
	keys, generation, err := v.keys.keys(ctx)
	if err != nil {
		return nil, err
	}
	now := v.clock()
	sum, _ := v.fingerprints.of(token) // not too long
	if c := v.cache.get(sum, generation, now.Unix()); c != nil {
		return c, nil
	}
	if !v.opts.Development && keys.holds(v.published) {
		return nil, ErrDevelopment
	}
	c, err := v.check(keys, token, now)
	if err != nil {
		return nil, err
	}
	v.cache.put(sum, generation, c)
	return c, nil
}

// check is the whole verification of RFC 9068 section 4, signature before claims: an unverified claim decides nothing.
func (v *Verifier) check(keys *KeySet, token string, now time.Time) (*Claims, error) {
	// The list of algorithms is ours, never the token's: "none", or HS256 keyed with the public key, is refused here.
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return nil, invalid("not a compact ES256 JWS")
	}
	// Base64 has several spellings of the same bytes. Only one passes, so that a token has one fingerprint.
	if canonical, err := signed.CompactSerialize(); err != nil || canonical != token {
		return nil, invalid("not in canonical form")
	}
	header := signed.Signatures[0].Protected
	if reason := refuseHeader(header); reason != "" {
		return nil, invalid(reason)
	}
	k := keys.find(header.KeyID, now)
	if k == nil {
		return nil, invalid("unknown kid")
	}
	payload, err := signed.Verify(&k.private.PublicKey)
	if err != nil {
		return nil, invalid("signature does not verify")
	}
	c := &Claims{}
	if err := json.Unmarshal(payload, c); err != nil {
		return nil, invalid("claims have other types")
	}
	if reason := v.refuseClaims(c, now); reason != "" {
		return nil, invalid(reason)
	}
	return c, nil
}

// refuseHeader lets alg, typ and kid pass and nothing else: crit names extensions that we do not have (RFC 7515 section
// 4.1.11, MUST), and a key inside the token (jwk, jku, x5c) would let its bearer choose who signs.
func refuseHeader(h jose.Header) string {
	typ, _ := h.ExtraHeaders[jose.HeaderType].(string)
	switch {
	case typ != tokenType && typ != "application/"+tokenType:
		return "typ is not at+jwt"
	case len(h.ExtraHeaders) != 1, h.JSONWebKey != nil, h.Nonce != "":
		return "header members beyond alg, typ and kid"
	}
	return ""
}

func (v *Verifier) refuseClaims(c *Claims, now time.Time) string {
	latest := now.Add(leeway).Unix()
	switch {
	case c.Issuer != v.opts.Issuer:
		return "another issuer"
	case c.Audience != v.opts.Audience:
		return "another audience"
	case c.Expires <= now.Unix():
		return "expired"
	case c.NotBefore > latest:
		return "not yet valid"
	case c.IssuedAt > latest:
		return "issued in the future"
	case c.Expires-c.IssuedAt > int64(MaxLifetime/time.Second):
		return "lives too long"
	}
	return c.incomplete()
}
