package web

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/op"
)

// noteEvery is how exact the time of a key's last use is: an instance notes it once in so long.
const noteEvery = time.Hour

// Keys knows API keys.
type Keys interface {
	// APIKeyByHash finds the key that a secret opens or opened; *apperr.Error not_found when there is none.
	APIKeyByHash(ctx context.Context, hash string) (inbox.APIKey, error)
	// APIKey finds one by id; the same error.
	APIKey(ctx context.Context, org, id string) (inbox.APIKey, error)
	// UseAPIKey notes when a key was used.
	UseAPIKey(ctx context.Context, k inbox.APIKey, at time.Time)
}

// keyGone is the one answer to a key that opens nothing, whatever the cause: unknown, revoked, expired, its maker gone.
func keyGone() error {
	return apperr.New(apperr.Unauthenticated, oauth.CodeInvalid, "The API key is not valid, or not any more.",
		"Ask an admin of the organization for a new API key.")
}

// wellFormed holds for what a secret of ours looks like. Nothing else costs a read of the store.
func wellFormed(token string) bool {
	secret, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(token, inbox.KeyMarker))
	return err == nil && len(secret) == 32 && len(token) == len(inbox.KeyMarker)+43
}

// resolveKey reads what an API key allows now: no more than its maker may do at this moment, within the key's own limits.
func (i *identity) resolveKey(ctx context.Context, hash string) (*op.Caller, error) {
	k, p, err := i.keyAndMaker(ctx, hash)
	if apperr.Is(err, apperr.NotFound) {
		return nil, keyGone()
	}
	if err != nil {
		return nil, err
	}
	c := &op.Caller{
		Subject: k.Creator, Email: p.Member.Email, Key: k.ID, KeyName: k.Name, Grant: k.ID, Organization: k.Organization,
		Scopes: i.vocabulary.Parse(strings.Join(k.Scopes, " ")), Expires: k.ExpiresAt,
	}
	if hash != k.Hash {
		c.Expires = k.PreviousUntil
	}
	if len(k.Inboxes) > 0 {
		c.Within = slices.Clone(k.Inboxes)
	}
	if len(k.Workspaces) == 0 {
		c.Role = inboxops.RoleOf(p.Member.Role)
		c.Own = c.Role
	}
	for _, access := range p.Workspaces {
		w := op.Workspace{
			ID: access.Workspace.ID, Slug: access.Workspace.Slug, Name: access.Workspace.Name, Role: inboxops.RoleOf(access.Role),
		}
		if w.Role == op.NoRole || len(k.Workspaces) > 0 && !slices.Contains(k.Workspaces, w.ID) {
			continue
		}
		c.Role = max(c.Role, w.Role)
		c.Workspaces = append(c.Workspaces, w)
	}
	c.Called = i.called(c.Organization)
	i.note(ctx, k)
	return c, nil
}

// keyAndMaker finds a key that opens, and who it acts as; not_found when any link of the chain is broken.
func (i *identity) keyAndMaker(ctx context.Context, hash string) (inbox.APIKey, inbox.Principal, error) {
	now := i.clock()
	broken := func(err error) (inbox.APIKey, inbox.Principal, error) { return inbox.APIKey{}, inbox.Principal{}, err }
	k, err := i.keys.APIKeyByHash(ctx, hash)
	if err != nil {
		return broken(err)
	}
	if !k.Opens(hash, now) {
		return broken(inbox.NoKey())
	}
	if k.Parent != "" {
		parent, err := i.keys.APIKey(ctx, k.Organization, k.Parent)
		if err != nil {
			return broken(err)
		}
		if parent.Ended(now) {
			return broken(inbox.NoKey())
		}
	}
	p, err := i.maker(ctx, k.Creator)
	if err != nil {
		return broken(err)
	}
	// A member who was removed and came back did not bring the keys back.
	if p.Member.Organization != k.Organization || k.CreatedAt.Before(p.Member.RestoredAt) {
		return broken(inbox.NoKey())
	}
	return k, p, nil
}

// maker is who a key acts as: a person, or a service account.
func (i *identity) maker(ctx context.Context, id string) (inbox.Principal, error) {
	if !strings.HasPrefix(id, "svc_") {
		return i.directory.Principal(ctx, id)
	}
	active, err := i.grants.GrantActive(ctx, id)
	if err != nil {
		return inbox.Principal{}, err
	}
	if !active {
		return inbox.Principal{}, inbox.NoKey()
	}
	return i.account(ctx, id)
}

// note keeps when a key was used, to the hour.
func (i *identity) note(ctx context.Context, k inbox.APIKey) {
	now := i.clock()
	i.mu.Lock()
	last, known := i.used[k.ID]
	due := !known || now.Sub(last) >= noteEvery
	if due {
		if len(i.used) >= callers {
			clear(i.used)
		}
		i.used[k.ID] = now
	}
	i.mu.Unlock()
	if due {
		i.keys.UseAPIKey(ctx, k, now)
	}
}
