package oauth

import (
	"errors"
	"net/http"
	"strings"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// serveRevoke ends the grant that a token belongs to (RFC 7009): with a refresh token its access tokens go too (section 2.1,
// SHOULD), and with an access token the refresh tokens (MAY): a client that signs out means all of it. An unknown token is
// answered 200 (section 2.2): it is as revoked as it can be.
func (s *Server) serveRevoke(w http.ResponseWriter, r *http.Request) {
	if anyOrigin(w, r, "POST, OPTIONS") || !onlyPost(w, r) {
		return
	}
	if err := s.revoke(r); err != nil {
		s.refuseWith(w, r, "revoke", s.counted(r, err))
		return
	}
	answerJSON(w, http.StatusOK, struct{}{})
}

func (s *Server) revoke(r *http.Request) error {
	f, err := wireForm(r)
	if err != nil {
		return err
	}
	c, err := credentialsOf(r, f)
	if err != nil {
		return err
	}
	if f["token"] == "" {
		return refuse(codeInvalidRequest, "no token")
	}
	if err := s.proven(r, c); err != nil {
		return err
	}
	grant, owner, err := s.ownerOf(r, f["token"])
	if err != nil || grant == "" {
		return err
	}
	if owner != c.id {
		return refuse(codeInvalidGrant, "token of another client")
	}
	// A service account's token ends by itself; only the command line ends the account.
	if strings.HasPrefix(grant, servicePrefix+"_") {
		return nil
	}
	if err := s.revokeGrant(r.Context(), grant, Event{Reason: "revoked by the client"}); err != nil {
		return later("revoke", err)
	}
	return nil
}

// proven checks the client first (RFC 7009 section 2.1). A public client has only its id, and needs the token besides.
func (s *Server) proven(r *http.Request, c credentials) error {
	if strings.HasPrefix(c.id, servicePrefix+"_") {
		_, err := s.authenticate(r.Context(), c.id, c.secret)
		return err
	}
	if c.secret != "" || !s.knows(c.id) {
		return refuse(codeInvalidClient, "unknown client, or a secret of a public one")
	}
	return nil
}

// ownerOf finds grant and client of a token of either kind; the hint (RFC 7009 section 2.1) is not needed to tell them apart.
// Empty for a token that is nobody's.
func (s *Server) ownerOf(r *http.Request, token string) (grant, owner string, err error) {
	if strings.HasPrefix(token, refreshPrefix) {
		g, _, _, err := s.verifyRefresh(r.Context(), token)
		if errors.Is(err, errNoGrant) {
			return "", "", nil
		}
		if err != nil {
			return "", "", later("read grant", err)
		}
		return g.ID, g.Client, nil
	}
	claims, err := s.verifier.Verify(r.Context(), token)
	if apperr.Is(err, apperr.Unauthenticated) {
		return "", "", nil
	}
	if err != nil {
		return "", "", later("verify", err)
	}
	return claims.Grant, claims.ClientID, nil
}
