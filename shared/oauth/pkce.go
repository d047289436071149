package oauth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// methodS256 is the only transformation: plain proves nothing to whoever read the authorization request (MCP, security
// considerations, authorization code protection).
const methodS256 = "S256"

const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

// validChallenge is the form of an S256 code challenge (RFC 7636 section 4.2): base64url of 32 bytes.
func validChallenge(s string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(raw) == sha256.Size && encode(raw) == s // the decoder skips line breaks
}

// validVerifier is the form of a code verifier (RFC 7636 section 4.1): 43 to 128 unreserved characters.
func validVerifier(s string) bool {
	return len(s) >= 43 && len(s) <= 128 && strings.Trim(s, unreserved) == ""
}

// provesChallenge compares in constant time (RFC 7636 section 4.6).
func provesChallenge(verifier, challenge string) bool {
	sum := sha256.Sum256([]byte(verifier))
	derived := base64.RawURLEncoding.EncodeToString(sum[:])
	return validVerifier(verifier) && subtle.ConstantTimeCompare([]byte(derived), []byte(challenge)) == 1
}
