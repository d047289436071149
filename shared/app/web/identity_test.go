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
)

// people counts how often somebody is looked up.
type people struct {
	looked int
	gone   bool
}

func (p *people) Principal(context.Context, string) (inbox.Principal, error) {
	p.looked++
	if p.gone {
		return inbox.Principal{}, apperr.New(apperr.NotFound, "", "There is no such person.")
	}
	return inbox.Principal{Member: inbox.Member{Organization: "org_1", Role: inbox.RoleViewer}}, nil
}

func TestIdentityIsCachedByItsWholeHeader(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	set, err := oauth.NewKeySet(rand.Reader, now)
	if err != nil {
		t.Fatal(err)
	}
	keys := oauth.StaticKeys(set, clock)
	issuer, err := oauth.NewIssuer(keys, "https://a.test", "https://a.test/mcp", clock, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	mint := func(grant string) string {
		token, err := issuer.Mint(t.Context(), oauth.Claims{
			Subject: "user_1", ClientID: "c", Grant: grant, Organization: "org_1", Scope: "emails:read",
		}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	verifier, err := oauth.NewVerifier(keys, clock, oauth.VerifierOptions{Issuer: "https://a.test", Audience: "https://a.test/mcp"})
	if err != nil {
		t.Fatal(err)
	}
	vocabulary, err := inboxops.Vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	directory := &people{}
	id := newIdentity(verifier, directory, vocabulary, clock)
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
