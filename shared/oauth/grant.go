package oauth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/oauth/standing"
	"github.com/buzon-mail/buzon/shared/store"
)

const (
	grantPrefix   = standing.GrantPrefix
	grantFormat   = 1
	grantIdle     = 30 * 24 * time.Hour  // without a refresh it ends
	grantLife     = 180 * 24 * time.Hour // and then it ends in any case: the person is asked again
	grantAttempts = 8                    // of a write that others race
)

// Grant is what a person approved for one installation of a client. Another installation of the same client is another
// grant, so approving there ends nothing here.
type Grant struct {
	ID           string    `json:"id"`
	Person       string    `json:"person"`
	Organization string    `json:"organization"`
	Client       string    `json:"client"`
	ClientName   string    `json:"client_name,omitempty"`
	ClientHost   string    `json:"client_host,omitempty"` // verified
	Scopes       []string  `json:"scopes"`
	Workspace    string    `json:"workspace,omitempty"` // default of requests that name none
	Only         bool      `json:"only,omitempty"`      // and no other
	Created      time.Time `json:"created"`
	Revoked      time.Time `json:"revoked,omitzero"`
	Used         time.Time `json:"used"` // when it was last refreshed
}

// storedGrant is the row: the grant and its one family of refresh tokens, so that a rotation and a revocation are writes of
// the same row and one of them loses.
type storedGrant struct {
	Grant
	Secret     string `json:"secret"`     // of the family; a token is a MAC over it, so the row alone makes none
	Generation int64  `json:"generation"` // of the refresh token that is current
}

func grantKey(id string) store.Key {
	return standing.GrantKey(id)
}

func personGrantKey(person, id string) store.Key {
	return store.Key{Table: store.Core, Partition: "oauth/person/" + person, Sort: "grant/" + id}
}

// expires is when the row goes: with it go its refresh tokens. The last access token dies before that.
func (g *storedGrant) expires() time.Time {
	idle, end := g.Used.Add(grantIdle), g.Created.Add(grantLife)
	if end.Before(idle) {
		return end
	}
	return idle
}

func (g *storedGrant) put(revision uint64, cond store.Condition) (store.Op, error) {
	item, err := store.Encode(grantKey(g.ID), grantFormat, revision, g)
	if err != nil {
		return store.Op{}, err //nolint:wrapcheck // the store names the step
	}
	item.Expires = g.expires()
	return store.Put(item, cond), nil
}

// grant reads a row; errNoGrant for one that is absent or over.
func (s *Server) grant(ctx context.Context, id string) (*storedGrant, uint64, error) {
	if !strings.HasPrefix(id, grantPrefix+"_") || len(id) > 64 {
		return nil, 0, errNoGrant
	}
	item, err := s.Store.Get(ctx, grantKey(id))
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrInvalid) {
		return nil, 0, errNoGrant
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read grant: %w", err)
	}
	g, err := store.Decode[storedGrant](item, grantFormat)
	if err != nil {
		return nil, 0, err //nolint:wrapcheck // the store names the step
	}
	return &g, item.Revision, nil
}

var errNoGrant = errors.New("oauth: no such grant")

// GrantActive tells whether tokens of a grant still count: false when it is revoked, over or unknown. It reads the store;
// callers may keep the answer for 30 seconds. It takes the id of a service account too.
func (s *Server) GrantActive(ctx context.Context, id string) (bool, error) {
	if strings.HasPrefix(id, servicePrefix+"_") {
		a, err := s.service(ctx, id)
		if errors.Is(err, errNoGrant) {
			return false, nil
		}
		return err == nil && a.Revoked.IsZero(), err
	}
	g, _, err := s.grant(ctx, id)
	if errors.Is(err, errNoGrant) {
		return false, nil
	}
	return err == nil && g.Revoked.IsZero(), err
}

// Grants lists what a person approved and did not revoke, at most 100, by id.
func (s *Server) Grants(ctx context.Context, person string) ([]Grant, error) {
	from, to := store.Prefix("grant/")
	page, err := s.Store.Query(ctx, store.Query{
		Table: store.Core, Partition: "oauth/person/" + person, From: from, To: to, Limit: 100,
	})
	if err != nil {
		return nil, fmt.Errorf("list grants: %w", err)
	}
	var grants []Grant
	for _, item := range page.Items {
		g, _, err := s.grant(ctx, strings.TrimPrefix(item.Key.Sort, "grant/"))
		if errors.Is(err, errNoGrant) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if g.Revoked.IsZero() {
			grants = append(grants, g.Grant)
		}
	}
	return grants, nil
}

// RevokeGrant ends a grant: its refresh tokens at once, its access tokens within 30 seconds. Repeating it is fine, and so is
// a grant that is gone.
func (s *Server) RevokeGrant(ctx context.Context, id, why string) error {
	return s.revokeGrant(ctx, id, Event{By: ByServer, Reason: why})
}

// revokeGrant is RevokeGrant where it is known who wanted it: by brings Person or By, else it was the client, for its person; and
// the reason.
func (s *Server) revokeGrant(ctx context.Context, id string, by Event) error {
	for range grantAttempts {
		g, revision, err := s.grant(ctx, id)
		if errors.Is(err, errNoGrant) || err == nil && !g.Revoked.IsZero() {
			return nil
		}
		if err != nil {
			return err
		}
		g.Revoked = s.Clock().UTC()
		op, err := g.put(revision+1, store.RevisionIs(revision))
		if err != nil {
			return err
		}
		e := g.event("grant.revoked")
		e.Reason = by.Reason
		if by.Person != "" || by.By != "" {
			e.Person, e.Email, e.By = by.Person, by.Email, by.By
		}
		err = s.commit(ctx, e, op, store.Delete(personGrantKey(g.Person, id), store.Condition{}))
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("revoke grant: %w", err)
		}
	}
	return fmt.Errorf("revoke grant: %w", store.ErrConflict)
}
