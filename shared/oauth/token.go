package oauth

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// tokenReply is RFC 6749 section 5.1. scope is always there: what was granted may be less than what was asked.
type tokenReply struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int64  `json:"expires_in"`
	Refresh string `json:"refresh_token,omitempty"`
	Scope   string `json:"scope"`
}

func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	if anyOrigin(w, r, "POST, OPTIONS") || !onlyPost(w, r) {
		return
	}
	reply, err := s.token(r)
	if err != nil {
		s.refuseWith(w, r, "token", s.counted(r, err))
		return
	}
	answerJSON(w, http.StatusOK, reply)
}

// counted counts errors of one source, and only those: a good client behind the same address is never refused for them. Over
// the limit the answer says so and nothing else.
func (s *Server) counted(r *http.Request, err error) error {
	if asWire(err).status == http.StatusServiceUnavailable {
		return err // our fault
	}
	if over := s.count(r, limitToken); over != nil {
		return over
	}
	return err
}

func (s *Server) token(r *http.Request) (*tokenReply, error) {
	f, err := wireForm(r)
	if err != nil {
		return nil, err
	}
	c, err := credentialsOf(r, f)
	if err != nil {
		return nil, err
	}
	switch f["grant_type"] {
	case grantCode, grantRefresh:
		return s.forPerson(r.Context(), f, c)
	case grantClient:
		return s.forService(r.Context(), f, c)
	case "":
		return nil, refuse(codeInvalidRequest, "no grant_type")
	}
	return nil, refuse(codeUnsupportedGrantType, "unknown grant_type")
}

// wireForm reads a posted form for an endpoint that answers in JSON.
func wireForm(r *http.Request) (form, error) {
	f, err := postedForm(r)
	if err == nil {
		return f, nil
	}
	e := refuse(codeInvalidRequest, "form")
	e.cause = err
	if errors.Is(err, errFormTooLarge) {
		e.status = http.StatusRequestEntityTooLarge
	}
	return nil, e
}

// credentials is how a client named itself.
type credentials struct{ id, secret string }

// credentialsOf reads them from the header or the form (RFC 6749 section 2.3.1). Both at once are refused (section 2.3, MUST
// NOT). Without an id nothing is looked up: a code alone must not be enough to learn anything.
func credentialsOf(r *http.Request, f form) (credentials, error) {
	c := credentials{id: f["client_id"], secret: f["client_secret"]}
	headers := r.Header["Authorization"]
	if len(headers) > 0 {
		id, secret, ok := basic(headers)
		if !ok {
			return c, refuse(codeInvalidClient, "malformed Authorization header")
		}
		if c.secret != "" || c.id != "" && c.id != id {
			return c, refuse(codeInvalidRequest, "two ways of authentication")
		}
		c = credentials{id, secret}
	}
	if c.id == "" {
		return c, refuse(codeInvalidClient, "no client_id")
	}
	return c, nil
}

// basic reads HTTP Basic, whose two parts are form-encoded (RFC 6749 section 2.3.1).
func basic(headers []string) (id, secret string, ok bool) {
	if len(headers) != 1 {
		return "", "", false
	}
	scheme, text, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Basic") {
		return "", "", false
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimLeft(text, " "))
	if err != nil {
		return "", "", false
	}
	rawID, rawSecret, ok := strings.Cut(string(raw), ":")
	if !ok {
		return "", "", false
	}
	if id, err = url.QueryUnescape(rawID); err != nil {
		return "", "", false
	}
	if secret, err = url.QueryUnescape(rawSecret); err != nil {
		return "", "", false
	}
	return id, secret, id != ""
}

// forPerson serves clients that act for somebody. They are public: a secret that none of them has is a mistake or a guess.
func (s *Server) forPerson(ctx context.Context, f form, c credentials) (*tokenReply, error) {
	if strings.HasPrefix(c.id, servicePrefix+"_") {
		return nil, refuse(codeUnauthorizedClient, "a service account has no codes")
	}
	if c.secret != "" {
		return nil, refuse(codeInvalidClient, "a secret of a public client")
	}
	if !s.knows(c.id) {
		return nil, refuse(codeInvalidClient, "unknown client")
	}
	var g *storedGrant
	var err error
	if f["grant_type"] == grantCode {
		g, err = s.redeem(ctx, f, c.id)
	} else {
		if f["refresh_token"] == "" {
			return nil, refuse(codeInvalidRequest, "no refresh_token")
		}
		g, err = s.rotate(ctx, f, c.id)
	}
	if err != nil {
		return nil, err
	}
	return s.reply(ctx, f, g)
}

// knows tells whether a client id can be one. A document is not fetched here: the code or token says for whom it is.
func (s *Server) knows(id string) bool {
	if isDocumentID(id) {
		return s.documentID(id)
	}
	_, ok := s.registeredClient(id)
	return ok
}

// reply mints the access token of a grant. The scope parameter of a refresh narrows this token and not the grant.
func (s *Server) reply(ctx context.Context, f form, g *storedGrant) (*tokenReply, error) {
	scopes := g.Scopes
	if f["grant_type"] == grantRefresh {
		scopes, _ = narrowed(f["scope"], g.Scopes) // checked before the rotation
	}
	out := &tokenReply{Type: "Bearer", Scope: strings.Join(scopes, " "), Refresh: s.refreshToken(g)}
	return out, s.mint(ctx, out, Claims{
		Subject: g.Person, ClientID: g.Client, Scope: out.Scope, Grant: g.ID, Organization: g.Organization,
		Workspace: g.Workspace, Only: g.Only,
	})
}

func (s *Server) mint(ctx context.Context, out *tokenReply, c Claims) error {
	token, err := s.issuer.Mint(ctx, c, accessLifetime)
	if err != nil {
		return later("mint", err)
	}
	out.Access, out.Expires = token, int64(accessLifetime/time.Second)
	return nil
}

// forService is the client credentials grant (RFC 6749 section 4.4). There is no refresh token (section 4.4.3, SHOULD NOT):
// the secret is one.
func (s *Server) forService(ctx context.Context, f form, c credentials) (*tokenReply, error) {
	if !strings.HasPrefix(c.id, servicePrefix+"_") && c.secret == "" && s.knows(c.id) {
		return nil, refuse(codeUnauthorizedClient, "a public client has no credentials")
	}
	a, err := s.authenticate(ctx, c.id, c.secret)
	if err != nil {
		return nil, err
	}
	if f["resource"] != "" && !namesResource(f["resource"], s.Resource) {
		return nil, refuse(codeInvalidTarget, "another resource")
	}
	scopes, ok := overlap(f["scope"], a.Scopes)
	if !ok {
		return nil, refuse(codeInvalidScope, "no scope of the account")
	}
	out := &tokenReply{Type: "Bearer", Scope: strings.Join(scopes, " ")}
	return out, s.mint(ctx, out, Claims{
		Subject: a.ID, ClientID: a.ID, Scope: out.Scope, Grant: a.ID, Organization: a.Organization,
		Workspace: a.Workspace, Only: a.Workspace != "",
	})
}
