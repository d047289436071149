package web

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/inboxops"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/op"
)

// people counts how often somebody is looked up.
type people struct {
	looked  int
	named   int
	gone    bool
	member  *inbox.Member           // instead of a viewer
	keys    map[string]inbox.APIKey // by hash
	noted   []time.Time
	down    bool
	revoked map[string]bool
}

func (p *people) Principal(context.Context, string) (inbox.Principal, error) {
	p.looked++
	if p.down {
		return inbox.Principal{}, apperr.New(apperr.Unavailable, "", "Later.")
	}
	if p.gone {
		return inbox.Principal{}, apperr.New(apperr.NotFound, "", "There is no such person.")
	}
	if p.member != nil {
		out := inbox.Principal{Member: *p.member}
		for _, id := range []string{"ws_1", "ws_2"} {
			if r := p.member.RoleIn(id); r != "" {
				out.Workspaces = append(out.Workspaces, inbox.Access{Workspace: inbox.Workspace{ID: id}, Role: r})
			}
		}
		return out, nil
	}
	return inbox.Principal{Member: inbox.Member{Organization: "org_1", Role: inbox.RoleViewer}}, nil
}

func (p *people) APIKeyByHash(_ context.Context, hash string) (inbox.APIKey, error) {
	k, ok := p.keys[hash]
	if !ok {
		return inbox.APIKey{}, inbox.NoKey()
	}
	return k, nil
}

func (p *people) APIKey(_ context.Context, org, id string) (inbox.APIKey, error) {
	for _, k := range p.keys {
		if k.ID == id && k.Organization == org {
			return k, nil
		}
	}
	return inbox.APIKey{}, inbox.NoKey()
}

func (p *people) UseAPIKey(_ context.Context, _ inbox.APIKey, at time.Time) {
	p.noted = append(p.noted, at)
}

func (p *people) Organization(_ context.Context, id string) (inbox.Organization, error) {
	p.named++
	return inbox.Organization{ID: id, Slug: "acme", Name: "Acme"}, nil
}

func (p *people) Workspaces(context.Context, string) ([]inbox.Workspace, error) {
	return []inbox.Workspace{{ID: "ws_1", Slug: "a"}, {ID: "ws_2", Slug: "b"}}, nil
}

func (p *people) GrantActive(_ context.Context, id string) (bool, error) { return !p.revoked[id], nil }

func (p *people) ServiceAccount(_ context.Context, id string) (oauth.ServiceAccount, error) {
	if id != "svc_1" {
		return oauth.ServiceAccount{}, apperr.New(apperr.NotFound, "", "There is no such service account.")
	}
	return oauth.ServiceAccount{ID: id, Organization: "org_1", Role: "operator", Workspace: "ws_2"}, nil
}

// issuing is an identity over these people, with what mints tokens for it.
func issuing(t *testing.T, clock func() time.Time, directory *people) (*identity, func(oauth.Claims) string) {
	t.Helper()
	set, err := oauth.NewKeySet(rand.Reader, clock())
	if err != nil {
		t.Fatal(err)
	}
	keys := oauth.StaticKeys(set, clock)
	issuer, err := oauth.NewIssuer(keys, "https://a.test", "https://a.test/mcp", clock, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := oauth.NewVerifier(keys, clock, oauth.VerifierOptions{Issuer: "https://a.test", Audience: "https://a.test/mcp"})
	if err != nil {
		t.Fatal(err)
	}
	vocabulary, err := inboxops.Vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	return newIdentity(verifier, directory, directory, directory, vocabulary, clock), func(c oauth.Claims) string {
		token, err := issuer.Mint(t.Context(), c, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
}

func TestIdentityIsCachedByItsWholeHeader(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	directory := &people{}
	id, sign := issuing(t, clock, directory)
	mint := func(grant string) string {
		return sign(oauth.Claims{Subject: "user_1", ClientID: "c", Grant: grant, Organization: "org_1", Scope: "emails:read"})
	}
	good, other := mint("grant_1"), mint("grant_2")
	pass := func(name, header, grant string, looked int) {
		t.Helper()
		c, err := id.Authenticate(t.Context(), http.Header{"Authorization": {header}})
		if err != nil || c.Grant != grant || directory.looked != looked {
			t.Fatalf("%s: %+v, %v, %d look-ups; want %s, %d", name, c, err, directory.looked, grant, looked)
		}
	}
	pass("first", "Bearer "+good, "grant_1", 1)
	pass("again", "Bearer "+good, "grant_1", 1)
	pass("another token", "Bearer "+other, "grant_2", 2)
	pass("the scheme in another letter case", "bearer "+good, "grant_1", 3)

	for name, headers := range map[string][]string{
		"none": nil, "empty": {""}, "two of them": {"Bearer " + good, "Bearer " + good}, "another scheme": {"Basic " + good}, "no scheme": {good},
		"cut": {"Bearer " + good[:len(good)-1]}, "longer": {"Bearer " + good + "A"}, "a tail": {"Bearer " + good + " x"}, "two tokens": {"Bearer " + good + "," + other},
		"huge": {"Bearer " + strings.Repeat("a", 1<<20)},
	} {
		if c, err := id.Authenticate(t.Context(), http.Header{"Authorization": headers}); !apperr.Is(err, apperr.Unauthenticated) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	if directory.looked != 3 || len(id.seen) != 3 {
		t.Errorf("%d look-ups, %d remembered: refusals touched the cache", directory.looked, len(id.seen))
	}
	directory.gone = true
	pass("gone, not yet seen", "Bearer "+good, "grant_1", 3)
	now = now.Add(freshness)
	if c, err := id.Authenticate(t.Context(), http.Header{"Authorization": {"Bearer " + good}}); !apperr.Is(err, apperr.Unauthenticated) {
		t.Errorf("gone: %+v, %v", c, err)
	}
}

// TestGrantsCount: a revoked grant opens nothing half a minute later, for whatever token of it; one token of the command line
// has no grant to ask for.
func TestGrantsCount(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	directory := &people{revoked: map[string]bool{}}
	id, sign := issuing(t, func() time.Time { return now }, directory)
	token := sign(oauth.Claims{Subject: "user_1", ClientID: "c", Grant: "grant_1", Organization: "org_1"})
	line := sign(oauth.Claims{Subject: "user_1", ClientID: CommandLine, Grant: "grant_1", Organization: "org_1"})
	enter := func(token string) error {
		_, err := id.Authenticate(t.Context(), http.Header{"Authorization": {"Bearer " + token}})
		return err
	}
	if err := enter(token); err != nil {
		t.Fatal(err)
	}
	directory.revoked["grant_1"] = true
	fresh := sign(oauth.Claims{Subject: "user_1", ClientID: "c", Grant: "grant_1", Organization: "org_1", Scope: "emails:read"})
	if err := enter(fresh); !apperr.Is(err, apperr.Unauthenticated) {
		t.Errorf("a token that was not seen: %v", err)
	}
	now = now.Add(freshness)
	if err := enter(token); !apperr.Is(err, apperr.Unauthenticated) {
		t.Errorf("after 30 seconds: %v", err)
	}
	if err := enter(line); err != nil {
		t.Errorf("the command line: %v", err)
	}
}

func TestServiceAccountIsNoPerson(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	id, sign := issuing(t, func() time.Time { return now }, &people{})
	c, err := id.Authenticate(t.Context(), http.Header{"Authorization": {"Bearer " + sign(oauth.Claims{
		Subject: "svc_1", ClientID: "svc_1", Grant: "svc_1", Organization: "org_1", Workspace: "ws_2", Only: true, Scope: "emails:write",
	})}})
	if err != nil || c.Person || c.Role != op.Operator || len(c.Workspaces) != 1 || c.Default != "ws_2" {
		t.Errorf("%+v, %v", c, err)
	}
	for name, claims := range map[string]oauth.Claims{
		"unknown":              {Subject: "svc_2", ClientID: "svc_2", Grant: "svc_2", Organization: "org_1"},
		"another organization": {Subject: "svc_1", ClientID: "svc_1", Grant: "svc_1", Organization: "org_2"},
	} {
		if c, err := id.Authenticate(t.Context(), http.Header{"Authorization": {"Bearer " + sign(claims)}}); !apperr.Is(err, apperr.Unauthenticated) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

// TestAgainCorrectsWhatIsKept: a look at the present costs the store, and nobody else is served with the past after it.
func TestAgainCorrectsWhatIsKept(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	directory := &people{revoked: map[string]bool{}}
	id, sign := issuing(t, func() time.Time { return now }, directory)
	header := http.Header{"Authorization": {"Bearer " + sign(oauth.Claims{Subject: "user_1", ClientID: "c", Grant: "grant_1", Organization: "org_1"})}}
	enter := func() (*op.Caller, error) { return id.Authenticate(t.Context(), header) }
	first, err := enter()
	if err != nil {
		t.Fatal(err)
	}
	again, err := first.Again(t.Context())
	if err != nil || again == first || again.Again == nil || directory.looked != 2 {
		t.Fatalf("%+v, %v, %d look-ups", again, err, directory.looked)
	}
	if kept, err := enter(); err != nil || kept != again || directory.looked != 2 {
		t.Errorf("the newer answer is not the one that is kept: %v", err)
	}
	directory.down = true
	if _, err := again.Again(t.Context()); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("an outage: %v", err)
	}
	if _, err := enter(); err != nil {
		t.Errorf("an outage ended the session: %v", err)
	}
	directory.down = false
	directory.revoked["grant_1"] = true
	if _, err := enter(); err != nil {
		t.Errorf("a read within half a minute: %v", err)
	}
	if _, err := again.Again(t.Context()); !apperr.Is(err, apperr.Unauthenticated) {
		t.Errorf("revoked: %v", err)
	}
	if _, err := enter(); !apperr.Is(err, apperr.Unauthenticated) {
		t.Errorf("a read after it was seen: %v", err)
	}
}
