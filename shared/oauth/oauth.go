// Package oauth is OAuth 2.1 as the Model Context Protocol profiles it (revision 2026-07-28, authorization), both sides. The
// resource's: it verifies access tokens (RFC 9068), tells a client without one where to go (RFC 6750, RFC 9728), and keeps
// the versioned set of signing keys (RFC 7517). The authorization server's: metadata (RFC 8414), client registration (RFC
// 7591, client id documents), authorization code with PKCE (RFC 6749, 7636, 8252, 8707, 9207), refresh, client credentials,
// revocation (RFC 7009), sign-in and consent. It knows tokens, clients and people's ids: not what a scope opens, nothing of
// MCP messages, nothing of mail. Deliberate departures from a MUST or SHOULD are in DEVIATIONS.md.
package oauth

import (
	"errors"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// MaxTokenBytes bounds an access token before anything looks into it, so that a caller without one can't make us hash or
// decode megabytes. Ours are about 650 bytes.
const MaxTokenBytes = 4096

// MaxLifetime is the longest exp - iat that is minted or accepted. Access tokens live 15 minutes; those of demonstrations
// and of the emulator a day.
const MaxLifetime = 24 * time.Hour

// leeway is how far ahead another instance's clock may be when it stamps iat or nbf. exp has none: the issuer is ours, and
// a token is dead at the second that it names (RFC 9068 section 4 allows a leeway, it asks for none).
const leeway = 5 * time.Second

// Claims is what an access token says (RFC 9068 section 2.2, plus the grant, organization and workspace). Verified claims
// are shared between requests: read only.
type Claims struct {
	Issuer       string `json:"iss"`
	Audience     string `json:"aud"` // one string: a token for two resources could be replayed by one at the other
	Subject      string `json:"sub"`
	ClientID     string `json:"client_id"`
	Scope        string `json:"scope"` // space-separated, RFC 6749 section 3.3
	Expires      int64  `json:"exp"`   // seconds since 1970
	IssuedAt     int64  `json:"iat"`
	NotBefore    int64  `json:"nbf,omitempty"`
	ID           string `json:"jti"`
	Grant        string `json:"gid"`
	Organization string `json:"org"`
	Workspace    string `json:"ws,omitempty"`  // of requests that name none; empty: they must
	Only         bool   `json:"wso,omitempty"` // Workspace is the only one that the token opens
}

// ExpiresAt is exp as a time.
func (c *Claims) ExpiresAt() time.Time { return time.Unix(c.Expires, 0) }

// Problems of configuration and keys. None of them is shown to a caller.
var (
	ErrKeySet           = errors.New("oauth: not a usable key set")
	ErrRotateTooSoon    = errors.New("oauth: too soon to rotate")
	ErrDevelopment      = errors.New("oauth: the development issuer and its published key are for emulation only")
	ErrInvalidOrigin    = errors.New("oauth: not an origin")
	ErrIncompleteClaims = errors.New("oauth: claims are incomplete")
)

// Codes of unauthenticated errors. The second is the RFC 6750 code too.
const (
	CodeMissing = "missing_token"
	CodeInvalid = "invalid_token"
)

// missing is a request without a token, or with a scheme other than Bearer, which RFC 6750 section 3.1 treats alike.
func missing(reason string) error {
	return apperr.New(apperr.Unauthenticated, CodeMissing, "This request needs an access token.",
		"Send the header Authorization: Bearer <access token>.").Because(errors.New(reason))
}

// invalid has one public text for every cause: which check failed helps only a forger. The reason is for logs and tests.
func invalid(reason string) error {
	return apperr.New(apperr.Unauthenticated, CodeInvalid, "The access token is expired, revoked or not for this server.",
		"Get a new access token from the authorization server and send the request again.").Because(errors.New(reason))
}
