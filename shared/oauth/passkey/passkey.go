// Package passkey runs the two ceremonies of WebAuthn (Level 3) for discoverable credentials with user verification: a signed-in
// person registers a passkey, and a passkey says who signs in. It wraps go-webauthn, keeps nothing, and knows no HTTP and no
// store: what a ceremony must remember travels as bytes that the caller protects and uses once.
package passkey

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
)

// ErrRefused is an answer of an authenticator that does not verify. Why is for logs.
var ErrRefused = errors.New("passkey: refused")

// Holder is a person with the passkeys that they registered.
type Holder struct {
	ID   string // at most 64 bytes; the passkey holds it, so it names nobody
	Name string // what authenticators show, an e-mail address
	Keys []Key
}

// Key is a passkey as it is stored.
type Key struct {
	ID     string `json:"id"`     // hash of the credential's id, which may be a kilobyte
	Record []byte `json:"record"` // public key, flags, counter
}

// Ceremonies belongs to one origin: a passkey of one host is void at another.
type Ceremonies struct{ web *webauthn.WebAuthn }

// New makes the ceremonies of an origin. ok is false for an origin whose host is an address: those have no passkeys.
func New(service, origin string) (c *Ceremonies, ok bool, err error) {
	u, err := url.Parse(origin)
	if err != nil {
		return nil, false, fmt.Errorf("passkey: origin: %w", err)
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil || u.Hostname() == "" {
		return nil, false, nil
	}
	web, err := webauthn.New(&webauthn.Config{
		RPID: u.Hostname(), RPDisplayName: service, RPOrigins: []string{origin},
		AttestationPreference: protocol.PreferNoAttestation, // which brand of authenticator it is decides nothing here
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired,
		},
	})
	if err != nil {
		return nil, false, fmt.Errorf("passkey: %w", err)
	}
	return &Ceremonies{web}, true, nil
}

// Register begins the registration of one more passkey: options for the browser, state for Registered.
func (c *Ceremonies) Register(h Holder) (options, state []byte, err error) {
	u, err := load(h)
	if err != nil {
		return nil, nil, err
	}
	creation, session, err := c.web.BeginRegistration(u, webauthn.WithExclusions(webauthn.Credentials(u.credentials).CredentialDescriptors()))
	if err != nil {
		return nil, nil, fmt.Errorf("passkey: begin registration: %w", err)
	}
	return both(creation, session)
}

// Registered ends it: ErrRefused unless response answers the state.
func (c *Ceremonies) Registered(h Holder, state, response []byte) (Key, error) {
	u, err := load(h)
	if err != nil {
		return Key{}, err
	}
	var session webauthn.SessionData
	if err := json.Unmarshal(state, &session); err != nil {
		return Key{}, fmt.Errorf("passkey: state: %w", err)
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(response)
	if err != nil {
		return Key{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	credential, err := c.web.CreateCredential(u, session, parsed)
	if err != nil {
		return Key{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return keep(credential)
}

// SignIn begins a sign-in of nobody in particular: the browser offers the passkeys that it has for this host.
func (c *Ceremonies) SignIn() (options, state []byte, err error) {
	assertion, session, err := c.web.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, nil, fmt.Errorf("passkey: begin sign-in: %w", err)
	}
	return both(assertion, session)
}

// SignedIn ends it: who signed in, and the passkey as it is now to be stored. find returns the holder of an id; its error
// comes back as it is. ErrRefused for an answer that does not verify, a passkey that is unknown, or one whose counter went
// back: somebody may have copied it.
func (c *Ceremonies) SignedIn(state, response []byte, find func(id string) (Holder, error)) (person string, k Key, err error) {
	var session webauthn.SessionData
	if err := json.Unmarshal(state, &session); err != nil {
		return "", Key{}, fmt.Errorf("passkey: state: %w", err)
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return "", Key{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	var failed error
	holder, credential, err := c.web.ValidatePasskeyLogin(func(_, handle []byte) (webauthn.User, error) {
		h, err := find(string(handle))
		if err != nil {
			failed = err
			return nil, err
		}
		return load(h)
	}, session, parsed)
	switch {
	case failed != nil:
		return "", Key{}, failed
	case err != nil:
		return "", Key{}, fmt.Errorf("%w: %w", ErrRefused, err)
	case credential.Authenticator.CloneWarning:
		return "", Key{}, fmt.Errorf("%w: the counter went back", ErrRefused)
	}
	k, err = keep(credential)
	return string(holder.WebAuthnID()), k, err
}

// Challenge names the ceremony that a state belongs to, so that its use can be noted.
func Challenge(state []byte) string {
	var session struct {
		Challenge string `json:"challenge"`
	}
	_ = json.Unmarshal(state, &session) // an empty name is refused by whoever notes it
	return session.Challenge
}

func both(options, state any) (a, b []byte, err error) {
	if a, err = json.Marshal(options); err != nil {
		return nil, nil, fmt.Errorf("passkey: render options: %w", err)
	}
	if b, err = json.Marshal(state); err != nil {
		return nil, nil, fmt.Errorf("passkey: render state: %w", err)
	}
	return a, b, nil
}

// keep renders a credential without its attestation, which is large and of no use here.
func keep(c *webauthn.Credential) (Key, error) {
	stored := *c
	stored.Attestation = webauthn.CredentialAttestation{}
	record, err := json.Marshal(stored)
	if err != nil {
		return Key{}, fmt.Errorf("passkey: render credential: %w", err)
	}
	sum := sha256.Sum256(c.ID)
	return Key{ID: base64.RawURLEncoding.EncodeToString(sum[:]), Record: record}, nil
}

// user is a Holder as go-webauthn asks for it.
type user struct {
	Holder
	credentials []webauthn.Credential
}

func load(h Holder) (*user, error) {
	u := &user{Holder: h}
	for _, k := range h.Keys {
		var c webauthn.Credential
		if err := json.Unmarshal(k.Record, &c); err != nil {
			return nil, fmt.Errorf("passkey: read credential: %w", err)
		}
		u.credentials = append(u.credentials, c)
	}
	return u, nil
}

// WebAuthnID is the user handle.
func (u *user) WebAuthnID() []byte { return []byte(u.ID) }

// WebAuthnName is shown by authenticators.
func (u *user) WebAuthnName() string { return u.Name }

// WebAuthnDisplayName is shown by authenticators.
func (u *user) WebAuthnDisplayName() string { return u.Name }

// WebAuthnCredentials is what the person registered.
func (u *user) WebAuthnCredentials() []webauthn.Credential { return u.credentials }
