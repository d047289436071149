package oauth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/oauth/passkey"
	"github.com/buzon-mail/buzon/shared/oauth/upstream"
	"github.com/buzon-mail/buzon/shared/safehttp"
	"github.com/buzon-mail/buzon/shared/seal"
	"github.com/buzon-mail/buzon/shared/store"
)

// Where the endpoints stand. The well-known ones are at the root (RFC 8414 section 3: our issuer has no path) and, for
// clients that put the resource's path into the address, under the suffix too.
const (
	AuthorizePath      = "/authorize"
	TokenPath          = "/token"
	RevokePath         = "/revoke"
	RegisterPath       = "/register"
	SignInPath         = "/sign-in"
	SignOutPath        = "/sign-out"
	ConsentPath        = "/consent"
	DisconnectPath     = "/disconnect"
	PasskeyPath        = "/sign-in/passkey"
	PasskeyAddPath     = "/passkeys/add"
	PasskeyRemovePath  = "/passkeys/remove"
	PasskeyScriptPath  = "/passkey.js"
	UpstreamPath       = "/sign-in/upstream"
	UpstreamReturnPath = "/sign-in/upstream/return"
	KeysPath           = "/.well-known/jwks.json"
	ServerPath         = "/.well-known/oauth-authorization-server"
	OpenIDPath         = "/.well-known/openid-configuration"
)

const (
	accessLifetime = 15 * time.Minute
	codeLifetime   = time.Minute
	codeMemory     = 10 * time.Minute // how long a redeemed code is remembered, so that its reuse is seen
	pendingTime    = 10 * time.Minute // between the consent page and its answer
	sealedTime     = 30 * time.Minute // between the sign-in page and its answer: a person may have to ask for a link
)

// Person is somebody who can sign in.
type Person struct {
	ID               string
	Email            string
	Organization     string
	OrganizationName string
	Workspaces       []Workspace
	Scopes           []string // that are of use to any of the person's roles
	// Since is when the person came back, who had been removed: sessions, links and connections from before count no more.
	Since time.Time
}

// Workspace is one that a person reaches.
type Workspace struct {
	ID, Name string
	Role     map[string]string // in words of the organization, by language
}

// People is what the server needs of those it serves.
type People interface {
	// Person finds by id; *apperr.Error of kind not_found for who is gone.
	Person(ctx context.Context, id string) (Person, error)
	// PersonByEmail finds by address, of any case; the same error. Only who signs in upstream is looked up so.
	PersonByEmail(ctx context.Context, email string) (Person, error)
}

// Scope is one that can be granted.
type Scope struct {
	Name     string
	Text     map[string]string // what it allows, by language (en, es); en is always there
	Write    bool              // the person may take it out on the consent page
	Reserved bool              // granted only when a client names it, see ServerOptions.Scopes
}

// Fetcher gets documents from addresses that clients chose; *safehttp.Client is one.
type Fetcher interface {
	Do(ctx context.Context, r safehttp.Request) (*safehttp.Response, error)
}

// ServerDeps is what the authorization server stands on.
type ServerDeps struct {
	Store store.Engine
	// Seal seals what travels for minutes. Permanent seals what lives for months (client ids, refresh tokens) and is not
	// rotated: rotating it disconnects every client.
	Seal      *seal.Keyring
	Permanent *seal.Keyring
	Keys      *KeyRing
	People    People
	Journal   Journal // nil: events are logged only
	Fetcher   Fetcher
	Transport http.RoundTripper // to the provider; the standard one when nil
	Logger    *slog.Logger
	Clock     func() time.Time
	Random    io.Reader
}

// ServerOptions is how the server presents itself.
type ServerOptions struct {
	Issuer   string           // the public origin, byte-equal in metadata, tokens and iss parameters
	Resource string           // the canonical resource identifier, audience of all tokens
	Name     string           // of the service, for people
	Key      string           // of the service, in clients' configuration files
	Scopes   []Scope          // the whole vocabulary; a request without scope asks for those that are not reserved
	Upstream *upstream.Config // an OpenID provider where people may sign in too; nil: none
}

// Server is the authorization server: the endpoints, the pages and what they keep.
type Server struct {
	ServerDeps
	ServerOptions
	issuer   *Issuer
	verifier *Verifier
	insecure bool // plain http on loopback: cookies can't be Secure
	loopback bool // the issuer is on this computer
	origins  *http.CrossOriginProtection

	clientIDs  *seal.Sealer
	requests   *seal.Sealer
	ceremonies *seal.Sealer
	trips      *seal.Sealer
	secrets    *seal.Sealer
	upstream   *upstream.Provider  // nil: none
	passkeys   *passkey.Ceremonies // nil where the origin's host is an address
	refresh    []byte              // HMAC key of refresh tokens
	addresses  []byte              // HMAC key of source addresses
	documents  [2][]byte
	known      map[string]Scope
}

// NewServer renders what never changes.
func NewServer(d ServerDeps, o ServerOptions) (*Server, error) {
	if d.Store == nil || d.Seal == nil || d.Permanent == nil || d.Keys == nil || d.People == nil || d.Fetcher == nil ||
		d.Logger == nil || d.Clock == nil || d.Random == nil {
		return nil, errors.New("oauth: a dependency of the server is missing")
	}
	s := &Server{
		ServerDeps: d, ServerOptions: o, insecure: strings.HasPrefix(o.Issuer, "http://"), loopback: LoopbackIssuer(o.Issuer),
		clientIDs: d.Permanent.Purpose("oauth/client"), requests: d.Seal.Purpose("oauth/request"),
		ceremonies: d.Seal.Purpose("oauth/passkey"), trips: d.Seal.Purpose("oauth/trip"),
		secrets: d.Seal.Purpose("oauth/secret"),
		refresh: d.Permanent.Derive("oauth/refresh", sha256.Size), addresses: d.Seal.Derive("oauth/address", sha256.Size),
		known: make(map[string]Scope, len(o.Scopes)), origins: http.NewCrossOriginProtection(),
	}
	// The Host header is not asked: behind a door it may be another name than the public one.
	if err := s.origins.AddTrustedOrigin(o.Issuer); err != nil {
		return nil, fmt.Errorf("oauth: issuer: %w", err)
	}
	for _, scope := range o.Scopes {
		if scope.Text["en"] == "" {
			return nil, fmt.Errorf("oauth: scope %s has no text", scope.Name)
		}
		s.known[scope.Name] = scope
	}
	var err error
	if s.issuer, err = NewIssuer(d.Keys, o.Issuer, o.Resource, d.Clock, d.Random); err != nil {
		return nil, err
	}
	if s.passkeys, _, err = passkey.New(o.Name, o.Issuer); err != nil {
		return nil, fmt.Errorf("oauth: %w", err)
	}
	if o.Upstream != nil {
		if s.upstream, err = upstream.New(*o.Upstream, o.Issuer+UpstreamReturnPath, d.Clock, d.Transport); err != nil {
			return nil, fmt.Errorf("oauth: %w", err)
		}
	}
	verify := VerifierOptions{Issuer: o.Issuer, Audience: o.Resource, Development: o.Issuer == DevelopmentIssuer}
	if s.verifier, err = NewVerifier(d.Keys, d.Clock, verify); err != nil {
		return nil, err
	}
	return s, s.renderMetadata()
}

// Routes is every path that the server serves, with its handler.
func (s *Server) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{
		"/":               http.HandlerFunc(s.serveStart),
		KeysPath:          http.HandlerFunc(s.serveKeys),
		RegisterPath:      http.HandlerFunc(s.serveRegister),
		AuthorizePath:     http.HandlerFunc(s.serveAuthorize),
		TokenPath:         http.HandlerFunc(s.serveToken),
		RevokePath:        http.HandlerFunc(s.serveRevoke),
		SignInPath:        http.HandlerFunc(s.serveSignIn),
		SignOutPath:       s.posted(s.signOut),
		ConsentPath:       s.posted(s.consent),
		DisconnectPath:    s.posted(s.disconnect),
		PasskeyPath:       s.posted(s.signInByPasskey),
		PasskeyAddPath:    s.posted(s.addPasskey),
		PasskeyRemovePath: s.posted(s.removePasskey),
		PasskeyScriptPath: http.HandlerFunc(s.servePasskeyScript),
		SecretPath:        http.HandlerFunc(s.serveSecret),
	}
	if s.upstream != nil {
		routes[UpstreamPath] = s.posted(s.signInUpstream)
		routes[UpstreamReturnPath] = http.HandlerFunc(s.serveUpstream)
	}
	for _, path := range []string{ServerPath, ServerPath + resourcePath} {
		routes[path] = document(s.documents[0])
	}
	for _, path := range []string{OpenIDPath, OpenIDPath + resourcePath, resourcePath + OpenIDPath} {
		routes[path] = document(s.documents[1])
	}
	return routes
}

// random256 draws a secret of 256 bits as base64url.
func (s *Server) random256() (string, error) { return draw256(s.Random) }

func draw256(random io.Reader) (string, error) {
	var b [32]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("oauth: read randomness: %w", err)
	}
	return encode(b[:]), nil
}

// newID makes an id of 128 random bits in the form that the service's ids have: Crockford's alphabet, 26 characters.
func (s *Server) newID(prefix string) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(s.Random, b[:]); err != nil {
		return "", fmt.Errorf("oauth: read randomness: %w", err)
	}
	return prefix + "_" + crockford(b), nil
}

// fingerprint is how a secret of ours is stored: its SHA-256. Secrets have 256 random bits, so nothing slower is needed.
func fingerprint(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return encode(sum[:])
}

func mac(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
		_, _ = h.Write([]byte{0}) // no part holds NUL, so no two lists of parts look alike
	}
	return h.Sum(nil)
}
