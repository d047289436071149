package web

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/app/authority"
	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/op"
)

// freshness bounds how long a change of role or membership takes to be seen by an instance that just looked.
const freshness = 30 * time.Second

// callers bounds the cache of verified callers.
const callers = 4096

// CommandLine is the client of tokens that the command line mints for a loopback service. They have no grant to revoke.
const CommandLine = authority.CommandLine

// Directory knows people and what they reach.
type Directory interface {
	// Principal is a person with the workspaces they reach; *apperr.Error not_found when there is none.
	Principal(ctx context.Context, user string) (inbox.Principal, error)
	// Organization finds one by id.
	Organization(ctx context.Context, id string) (inbox.Organization, error)
	// Workspaces lists those of an organization.
	Workspaces(ctx context.Context, org string) ([]inbox.Workspace, error)
}

// Grants knows what was revoked.
type Grants interface {
	// GrantActive is false for a grant, or service account, that is revoked, over or unknown.
	GrantActive(ctx context.Context, id string) (bool, error)
	// ServiceAccount finds one by id; *apperr.Error not_found when there is none.
	ServiceAccount(ctx context.Context, id string) (oauth.ServiceAccount, error)
}

// identity turns a bearer token into a caller: what the token says, narrowed to what the person may do now. The answer is
// kept under the header's fingerprint for at most freshness, so a warm call costs one of those and one look-up. Routes that must not act on
// an answer that was kept ask it anew (op.Caller.Again), which corrects what was kept as well.
type identity struct {
	verifier   *oauth.Verifier
	directory  Directory
	grants     Grants
	keys       Keys
	vocabulary *op.Vocabulary
	clock      func() time.Time

	mu   sync.RWMutex
	seen map[oauth.Fingerprint]known // guarded by mu
	used map[string]time.Time        // id of a key -> when its use was noted; guarded by mu
}

type known struct {
	caller *op.Caller
	until  time.Time
}

func newIdentity(v *oauth.Verifier, d Directory, g Grants, k Keys, vocabulary *op.Vocabulary, clock func() time.Time) *identity {
	return &identity{
		verifier: v, directory: d, grants: g, keys: k, vocabulary: vocabulary, clock: clock, seen: map[oauth.Fingerprint]known{},
		used: map[string]time.Time{},
	}
}

// Authenticate serves the REST surface. The cache is asked before the header is taken apart: what is in it came from the
// same header, whole, and was well formed.
func (i *identity) Authenticate(ctx context.Context, h http.Header) (*op.Caller, error) {
	now := i.clock()
	sum, hashed := i.fingerprint(h)
	if hashed {
		i.mu.RLock()
		k, ok := i.seen[sum]
		i.mu.RUnlock()
		if ok && now.Before(k.until) {
			return k.caller, nil
		}
	}
	token, err := oauth.Bearer(h)
	if err != nil {
		return nil, err
	}
	resolve, err := i.credential(ctx, token)
	if err != nil {
		return nil, err
	}
	var keep func(*op.Caller, time.Time)
	if hashed {
		keep = func(c *op.Caller, at time.Time) { i.remember(sum, c, at) }
	}
	return i.read(ctx, resolve, keep)
}

// resolver finds out what a credential allows at this moment.
type resolver func(ctx context.Context) (*op.Caller, error)

// credential tells an API key from an access token, which is verified here: its claims don't change.
func (i *identity) credential(ctx context.Context, token string) (resolver, error) {
	if strings.HasPrefix(token, inbox.KeyMarker) {
		if !wellFormed(token) {
			return nil, keyGone()
		}
		hash := inbox.KeyHash(token)
		return func(ctx context.Context) (*op.Caller, error) { return i.resolveKey(ctx, hash) }, nil
	}
	claims, err := i.verifier.Verify(ctx, token)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*op.Caller, error) { return i.resolve(ctx, claims) }, nil
}

// read finds out what a credential allows at this moment and keeps it, or that it allows nothing any more. keep is nil for what is
// not kept.
func (i *identity) read(ctx context.Context, resolve resolver, keep func(*op.Caller, time.Time)) (*op.Caller, error) {
	at := i.clock() // before the store is asked: the answer is as old as the question
	caller, err := resolve(ctx)
	if err == nil {
		caller.Again = func(ctx context.Context) (*op.Caller, error) { return i.read(ctx, resolve, keep) }
	}
	if keep != nil && (err == nil || apperr.Is(err, apperr.Unauthenticated)) { // an outage says nothing about the grant
		keep(caller, at)
	}
	return caller, err
}

// fingerprint is that of the Authorization header: the cache never holds a token, and a look-up tells nothing by its time. ok is
// false when there is not exactly one header of a plausible size.
func (i *identity) fingerprint(h http.Header) (sum oauth.Fingerprint, ok bool) {
	values := h["Authorization"]
	if len(values) != 1 {
		return sum, false
	}
	return i.verifier.Fingerprint(values[0])
}

// remember keeps a caller, in the place of an older answer, or forgets it when there is none any more. It drops what has
// expired, and everything if that is not enough: with a full cache of live callers a verification more often is better than
// memory without bound.
func (i *identity) remember(sum oauth.Fingerprint, c *op.Caller, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if c == nil {
		delete(i.seen, sum)
		return
	}
	if len(i.seen) >= callers {
		for key, old := range i.seen {
			if !now.Before(old.until) {
				delete(i.seen, key)
			}
		}
		if len(i.seen) >= callers {
			clear(i.seen)
		}
	}
	until := now.Add(freshness)
	if c.Expires.Before(until) {
		until = c.Expires
	}
	i.seen[sum] = known{c, until}
}

// resolve reads what the person may do now. A person who is gone, or of another organization than the token says, has no
// token: the two look the same as a forged one.
func (i *identity) resolve(ctx context.Context, claims *oauth.Claims) (*op.Caller, error) {
	p, err := i.principal(ctx, claims)
	if apperr.Is(err, apperr.NotFound) || err == nil && p.Member.Organization != claims.Organization {
		return nil, gone()
	}
	if err == nil && claims.IssuedAt < p.Member.RestoredAt.Unix() {
		return nil, gone() // of a membership that ended
	}
	if err != nil {
		return nil, err
	}
	c := &op.Caller{
		Subject: claims.Subject, Person: !isService(claims), Grant: claims.Grant, Client: claims.ClientID,
		Organization: claims.Organization, Scopes: i.vocabulary.Parse(claims.Scope), Role: inboxops.RoleOf(p.Member.Role),
		Email: p.Member.Email, Expires: claims.ExpiresAt(),
	}
	if !claims.Only {
		c.Own = c.Role
	}
	c.Called = i.called(c.Organization)
	for _, access := range p.Workspaces {
		w := op.Workspace{
			ID: access.Workspace.ID, Slug: access.Workspace.Slug, Name: access.Workspace.Name, Role: inboxops.RoleOf(access.Role),
		}
		if w.Role == op.NoRole || claims.Only && w.ID != claims.Workspace {
			continue
		}
		c.Role = max(c.Role, w.Role)
		c.Workspaces = append(c.Workspaces, w)
		if w.ID == claims.Workspace {
			c.Default = w.ID
		}
	}
	return c, nil
}

// called tells how an organization is called, and reads it once for each caller: few ask.
func (i *identity) called(org string) func(context.Context) (string, string, error) {
	var mu sync.Mutex
	var known inbox.Organization // guarded by mu
	return func(ctx context.Context) (string, string, error) {
		mu.Lock()
		defer mu.Unlock()
		if known.ID == "" {
			found, err := i.directory.Organization(ctx, org)
			if err != nil {
				return "", "", err
			}
			known = found
		}
		return known.Slug, known.Name, nil
	}
}

// principal is who the token speaks for, as long as its grant counts.
func (i *identity) principal(ctx context.Context, claims *oauth.Claims) (inbox.Principal, error) {
	if claims.ClientID != CommandLine {
		active, err := i.grants.GrantActive(ctx, claims.Grant)
		if err != nil {
			return inbox.Principal{}, err
		}
		if !active {
			return inbox.Principal{}, gone()
		}
	}
	if !isService(claims) {
		return i.directory.Principal(ctx, claims.Subject)
	}
	return i.account(ctx, claims.Subject)
}

func (i *identity) account(ctx context.Context, id string) (inbox.Principal, error) {
	a, err := i.grants.ServiceAccount(ctx, id)
	if err != nil {
		return inbox.Principal{}, err
	}
	return account(ctx, i.directory, a)
}

func isService(c *oauth.Claims) bool { return c.Subject == c.ClientID }

// forMCP is the same identity as the protocol's room asks for it.
type forMCP struct{ *identity }

// Authenticate serves the MCP endpoint.
func (f forMCP) Authenticate(ctx context.Context, h http.Header) (mcp.Caller, error) {
	c, err := f.identity.Authenticate(ctx, h)
	if err != nil {
		return nil, err
	}
	return c, nil
}
