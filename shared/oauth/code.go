package oauth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/buzon-mail/buzon/shared/store"
)

const (
	codeFormat = 1
	// codeGrace: a client that repeats a redemption whose answer it lost, or sends it twice at once, proves itself with the
	// verifier and is told no; nobody stole anything, so what the first one got stays.
	codeGrace = 10 * time.Second
)

// codeRow is an authorization code (RFC 6749 section 4.1.2), stored under its hash. Once used it is kept, to see it reused.
type codeRow struct {
	Grant     Grant     `json:"grant"` // what redeeming makes
	Redirect  string    `json:"redirect"`
	Challenge string    `json:"challenge"`
	Issued    time.Time `json:"issued"`
	Used      time.Time `json:"used,omitzero"`
}

func codeKey(code string) store.Key {
	return store.Key{Table: store.Ephemeral, Partition: "oauth/code/" + fingerprint(code), Sort: "code"}
}

func (c codeRow) put(key store.Key, revision uint64, cond store.Condition) (store.Op, error) {
	item, err := store.Encode(key, codeFormat, revision, c)
	if err != nil {
		return store.Op{}, err //nolint:wrapcheck // the store names the step
	}
	item.Expires = c.Issued.Add(codeMemory)
	return store.Put(item, cond), nil
}

// redeem turns a code into a grant, once. Everything that could be a mistake of the client is checked before the code is
// touched, so a mistake costs nothing.
func (s *Server) redeem(ctx context.Context, f form, clientID string) (*storedGrant, error) {
	if f["code"] == "" || f["code_verifier"] == "" {
		return nil, refuse(codeInvalidRequest, "code or code_verifier is missing")
	}
	if f["resource"] != "" && !namesResource(f["resource"], s.Resource) {
		return nil, refuse(codeInvalidTarget, "another resource")
	}
	key := codeKey(f["code"])
	item, err := s.Store.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, refuse(codeInvalidGrant, "unknown code")
	}
	if err != nil {
		return nil, later("read code", err)
	}
	c, err := store.Decode[codeRow](item, codeFormat)
	if err != nil {
		return nil, later("read code", err)
	}
	if c.Grant.Client != clientID {
		return nil, refuse(codeInvalidGrant, "code of another client") // and no effect: the code may have been overheard
	}
	if !c.Used.IsZero() {
		return nil, s.reused(ctx, c, f["code_verifier"])
	}
	switch {
	case !s.Clock().Before(c.Issued.Add(codeLifetime)):
		return nil, refuse(codeInvalidGrant, "code expired")
	case f["redirect_uri"] != "" && f["redirect_uri"] != c.Redirect: // byte by byte: nothing is matched here
		return nil, refuse(codeInvalidGrant, "another redirect URI")
	case !provesChallenge(f["code_verifier"], c.Challenge):
		return nil, refuse(codeInvalidGrant, "verifier does not match")
	}
	return s.consume(ctx, key, item.Revision, c)
}

// consume writes the grant and marks the code in one transaction: of many at once exactly one gets through.
func (s *Server) consume(ctx context.Context, key store.Key, revision uint64, c codeRow) (*storedGrant, error) {
	secret, err := s.random256()
	if err != nil {
		return nil, later("draw a secret", err)
	}
	now := s.Clock().UTC()
	g := &storedGrant{Grant: c.Grant, Secret: secret, Generation: 1}
	g.Created, g.Used, c.Used = now, now, now
	mark, err := c.put(key, revision+1, store.RevisionIs(revision))
	if err != nil {
		return nil, later("render code", err)
	}
	made, err := g.put(1, store.Absent())
	if err != nil {
		return nil, later("render grant", err)
	}
	index := store.Item{Key: personGrantKey(g.Person, g.ID), Format: grantFormat, Revision: 1, Expires: g.Created.Add(grantLife)}
	err = s.commit(ctx, g.event("grant.created"), mark, made, store.Put(index, store.Condition{}))
	if errors.Is(err, store.ErrConflict) {
		return nil, refuse(codeInvalidGrant, "code redeemed at the same moment")
	}
	if err != nil {
		return nil, later("redeem code", err)
	}
	return g, nil
}

// reused answers a code that was redeemed before: somebody else has it, so what it made is revoked (RFC 6749 section 4.1.2,
// SHOULD), but for the client itself repeating its request.
func (s *Server) reused(ctx context.Context, c codeRow, verifier string) error {
	if s.Clock().Sub(c.Used) < codeGrace && provesChallenge(verifier, c.Challenge) {
		return refuse(codeInvalidGrant, "code redeemed a moment ago by the same client")
	}
	if err := s.revokeGrant(ctx, c.Grant.ID, Event{By: ByServer, Reason: "code reused"}); err != nil {
		return later("revoke the grant of a reused code", err)
	}
	return refuse(codeInvalidGrant, fmt.Sprintf("code reused, grant %s revoked", c.Grant.ID))
}
