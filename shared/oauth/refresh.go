package oauth

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/store"
)

// Refresh tokens rotate (MCP, token theft, MUST for public clients). A token is grant.generation.mac: the MAC, under a key of
// the server that no row holds, over the family's secret and the generation. So a successor is a function of the row and not
// a random value that only one of two instances knows: whoever repeats a refresh gets the same answer.

const (
	refreshPrefix = "bzr_"
	// refreshGrace is how long the token before the current one is answered with the current one: a client whose answer was
	// lost, or that refreshes from two places at once, is not a thief.
	refreshGrace = 30 * time.Second
)

// refreshToken writes the current token of a grant.
func (s *Server) refreshToken(g *storedGrant) string {
	generation := strconv.FormatInt(g.Generation, 10)
	return refreshPrefix + g.ID + "." + generation + "." + encode(s.refreshMAC(g, generation))
}

func (s *Server) refreshMAC(g *storedGrant, generation string) []byte {
	return mac(s.refresh, g.ID, g.Secret, generation)
}

// parseRefresh reads the form of a token; only its MAC makes it one.
func parseRefresh(token string) (grant string, generation int64, sum []byte, ok bool) {
	rest, ok := strings.CutPrefix(token, refreshPrefix)
	parts := strings.Split(rest, ".")
	if !ok || len(token) > 160 || len(parts) != 3 {
		return "", 0, nil, false
	}
	generation, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || generation < 1 || strconv.FormatInt(generation, 10) != parts[1] {
		return "", 0, nil, false
	}
	// The decoder skips line breaks: one token has one spelling.
	sum, err = base64.RawURLEncoding.Strict().DecodeString(parts[2])
	return parts[0], generation, sum, err == nil && encode(sum) == parts[2]
}

// verifyRefresh finds the grant of a token that we made, current or not.
func (s *Server) verifyRefresh(ctx context.Context, token string) (g *storedGrant, revision uint64, generation int64, err error) {
	id, generation, sum, ok := parseRefresh(token)
	if !ok {
		return nil, 0, 0, errNoGrant
	}
	if g, revision, err = s.grant(ctx, id); err != nil {
		return nil, 0, 0, err
	}
	// Before anything is concluded from the generation: a forged old one must not end somebody's grant.
	if !hmac.Equal(sum, s.refreshMAC(g, strconv.FormatInt(generation, 10))) {
		return nil, 0, 0, errNoGrant
	}
	return g, revision, generation, nil
}

// rotate answers a refresh token with its successor. Two at once, on two instances even, end with the same one: the loser of
// the write reads again and finds itself within the grace.
func (s *Server) rotate(ctx context.Context, f form, clientID string) (*storedGrant, error) {
	for range grantAttempts {
		g, revision, generation, err := s.verifyRefresh(ctx, f["refresh_token"])
		if errors.Is(err, errNoGrant) {
			return nil, refuse(codeInvalidGrant, "unknown refresh token")
		}
		if err != nil {
			return nil, later("read grant", err)
		}
		if err := s.checkRefresh(ctx, f, g, clientID); err != nil {
			return nil, err
		}
		now := s.Clock().UTC()
		if generation == g.Generation-1 && now.Sub(g.Used) <= refreshGrace {
			return g, nil
		}
		if generation != g.Generation {
			if err := s.revokeGrant(ctx, g.ID, Event{By: ByServer, Reason: "refresh token reused"}); err != nil {
				return nil, later("revoke the grant of a reused token", err)
			}
			return nil, refuse(codeInvalidGrant, "refresh token reused, grant revoked")
		}
		g.Generation, g.Used = g.Generation+1, now
		op, err := g.put(revision+1, store.RevisionIs(revision))
		if err != nil {
			return nil, later("render grant", err)
		}
		err = s.Store.Transact(ctx, op)
		if err == nil {
			return g, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return nil, later("rotate", err)
		}
	}
	return nil, later("rotate", store.ErrConflict)
}

// checkRefresh looks at everything that refuses a refresh without an effect.
func (s *Server) checkRefresh(ctx context.Context, f form, g *storedGrant, clientID string) error {
	switch {
	case g.Client != clientID:
		return refuse(codeInvalidGrant, "refresh token of another client")
	case !g.Revoked.IsZero():
		return refuse(codeInvalidGrant, "grant revoked")
	case f["resource"] != "" && !namesResource(f["resource"], s.Resource):
		return refuse(codeInvalidTarget, "another resource")
	}
	if _, ok := narrowed(f["scope"], g.Scopes); !ok {
		return refuse(codeInvalidScope, "scope beyond the grant")
	}
	p, err := s.People.Person(ctx, g.Person)
	if apperr.Is(err, apperr.NotFound) || err == nil && (p.Organization != g.Organization || g.Created.Before(p.Since)) {
		s.audit(ctx, Event{Name: "grant.orphaned", Grant: g.ID})
		return refuse(codeInvalidGrant, "the person is gone")
	}
	if err != nil {
		return later("read person", err)
	}
	return nil
}
