package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/oauth"
	"github.com/buzon-mail/buzon/shared/op"
)

const (
	testKey    = "bzk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	rotatedKey = "bzk_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA"
	childKey   = "bzk_CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCA"
)

// keyring is an identity over one admin of org_1 with a key, one that was rotated away from it, and a key that it made.
func keyring(t *testing.T, now *time.Time) (*identity, *people) {
	t.Helper()
	directory := &people{
		revoked: map[string]bool{}, keys: map[string]inbox.APIKey{},
		member: &inbox.Member{User: "user_1", Email: "ana@acme.test", Organization: "org_1", Role: inbox.RoleAdmin},
	}
	k := inbox.APIKey{
		ID: "key_1", Organization: "org_1", Creator: "user_1", Scopes: []string{"emails:write"}, Hash: inbox.KeyHash(testKey),
		Previous: inbox.KeyHash(rotatedKey), PreviousUntil: now.Add(time.Hour), ExpiresAt: now.Add(24 * time.Hour), CreatedAt: now.Add(-time.Hour),
	}
	directory.keys[k.Hash], directory.keys[k.Previous] = k, k
	child := k
	child.ID, child.Parent, child.Hash, child.Previous = "key_2", "key_1", inbox.KeyHash(childKey), ""
	directory.keys[child.Hash] = child
	id, _ := issuing(t, func() time.Time { return *now }, directory)
	return id, directory
}

func (p *people) edit(change func(*inbox.APIKey)) {
	for hash, k := range p.keys {
		change(&k)
		p.keys[hash] = k
	}
}

func bearing(secret string) http.Header {
	return http.Header{"Authorization": {"Bearer " + secret}}
}

func TestKeyIsItsMakerWithinItsLimits(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	id, directory := keyring(t, &now)
	c, err := id.Authenticate(t.Context(), bearing(testKey))
	if err != nil {
		t.Fatal(err)
	}
	if c.Key != "key_1" || c.Grant != "key_1" || c.Person || c.Subject != "user_1" || c.Email != "ana@acme.test" || c.Own != op.Admin ||
		len(c.Workspaces) != 2 || c.Confined() || c.Client != "" || !c.Expires.Equal(now.Add(24*time.Hour)) {
		t.Errorf("%+v", c)
	}
	for range 2 {
		if slug, name, err := c.Called(t.Context()); err != nil || slug != "acme" || name != "Acme" || directory.named != 1 {
			t.Errorf("organization %q %q, %v, read %d times", slug, name, err, directory.named)
		}
	}
	if names := id.vocabulary.Names(c.Scopes); !slices.Equal(names, []string{"emails:read", "emails:write"}) {
		t.Errorf("scopes %v", names)
	}
	if old, err := id.Authenticate(t.Context(), bearing(rotatedKey)); err != nil || !old.Expires.Equal(now.Add(time.Hour)) {
		t.Errorf("the secret before, within its overlap: %+v, %v", old, err)
	}
	directory.edit(func(k *inbox.APIKey) { k.Workspaces, k.Inboxes = []string{"ws_2"}, []string{"inbox_1"} })
	directory.member.Workspaces = map[string]inbox.Role{"ws_2": inbox.RoleViewer}
	again, err := c.Again(t.Context())
	if err != nil || again.Own != op.NoRole || again.Role != op.Viewer || len(again.Workspaces) != 1 || again.Workspaces[0].ID != "ws_2" ||
		!slices.Equal(again.Within, []string{"inbox_1"}) {
		t.Errorf("limited: %+v, %v", again, err)
	}
	if !c.Confined() == again.Confined() && c.Own != op.Admin {
		t.Error("a caller that was handed out changed")
	}
}

// TestKeysThatOpenNothing: every broken link is the same 401, at once for who looks anew and within half a minute for everybody.
func TestKeysThatOpenNothing(t *testing.T) {
	for name, c := range map[string]struct {
		secret string
		change func(p *people, now *time.Time)
	}{
		"revoked":                           {testKey, func(p *people, now *time.Time) { p.edit(func(k *inbox.APIKey) { k.RevokedAt = *now }) }},
		"expired":                           {testKey, func(_ *people, now *time.Time) { *now = now.Add(24 * time.Hour) }},
		"rotated away":                      {rotatedKey, func(_ *people, now *time.Time) { *now = now.Add(time.Hour) }},
		"dropped":                           {testKey, func(p *people, _ *time.Time) { clear(p.keys) }},
		"its maker is gone":                 {testKey, func(p *people, _ *time.Time) { p.gone = true }},
		"its maker is of another org":       {testKey, func(p *people, _ *time.Time) { p.member.Organization = "org_2" }},
		"its maker was removed and is back": {testKey, func(p *people, now *time.Time) { p.member.RestoredAt = now.Add(-time.Minute) }},
		"a child, and its parent is revoked": {childKey, func(p *people, now *time.Time) {
			k := p.keys[inbox.KeyHash(testKey)]
			k.RevokedAt = *now
			p.keys = map[string]inbox.APIKey{k.Hash: k, inbox.KeyHash(childKey): p.keys[inbox.KeyHash(childKey)]}
		}},
		"a child, and its parent is unknown": {childKey, func(p *people, _ *time.Time) {
			delete(p.keys, inbox.KeyHash(testKey))
			delete(p.keys, inbox.KeyHash(rotatedKey))
		}},
		"of a service account that is unknown": {testKey, func(p *people, _ *time.Time) { p.edit(func(k *inbox.APIKey) { k.Creator = "svc_2" }) }},
		"of a service account that is revoked": {testKey, func(p *people, _ *time.Time) {
			p.edit(func(k *inbox.APIKey) { k.Creator = "svc_1" })
			p.revoked["svc_1"] = true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
			id, directory := keyring(t, &now)
			first, err := id.Authenticate(t.Context(), bearing(c.secret))
			if err != nil {
				t.Fatal(err)
			}
			c.change(directory, &now)
			_, err = first.Again(t.Context())
			e := apperr.From(err)
			if e.Kind != apperr.Unauthenticated || e.Code != oauth.CodeInvalid || e.Public != apperr.From(keyGone()).Public {
				t.Errorf("looked at anew: %v", err)
			}
			if _, err := id.Authenticate(t.Context(), bearing(c.secret)); !apperr.Is(err, apperr.Unauthenticated) {
				t.Errorf("after that: %v", err)
			}
		})
	}
}

func TestKeyIsCachedForHalfAMinute(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	id, directory := keyring(t, &now)
	enter := func() error {
		_, err := id.Authenticate(t.Context(), bearing(testKey))
		return err
	}
	if err := enter(); err != nil || directory.looked != 1 {
		t.Fatal(err)
	}
	directory.edit(func(k *inbox.APIKey) { k.RevokedAt = now })
	now = now.Add(freshness - time.Second)
	if err := enter(); err != nil || directory.looked != 1 {
		t.Errorf("within: %v, %d look-ups", err, directory.looked)
	}
	now = now.Add(time.Second)
	if err := enter(); !apperr.Is(err, apperr.Unauthenticated) {
		t.Errorf("after: %v", err)
	}
}

// TestStrangersKeysCostNoRead: only what looks like a secret of ours is looked for.
func TestStrangersKeysCostNoRead(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	id, directory := keyring(t, &now)
	read := 0
	id.keys = countedKeys{directory, &read}
	for name, secret := range map[string]string{
		"nothing": "bzk_", "short": testKey[:46], "long": testKey + "A", "padded": testKey + "=", "another letter case": "BZK_" + testKey[4:],
		"standard alphabet": testKey[:46] + "+", "last bits set": testKey[:46] + "B", "a line end": testKey[:46] + "\n", "huge": "bzk_" + strings.Repeat("A", 4000),
	} {
		if c, err := id.Authenticate(t.Context(), bearing(secret)); !apperr.Is(err, apperr.Unauthenticated) || read != 0 {
			t.Errorf("%s: %+v, %v, %d reads", name, c, err, read)
		}
	}
	if _, err := id.Authenticate(t.Context(), bearing(testKey[:46]+"E")); !apperr.Is(err, apperr.Unauthenticated) || read != 1 {
		t.Errorf("unknown: %v, %d reads", err, read)
	}
	if len(id.seen) != 0 || len(directory.noted) != 0 {
		t.Error("a refusal left something behind")
	}
}

func TestUseOfAKeyIsNotedToTheHour(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	id, directory := keyring(t, &now)
	for range 130 { // minutes
		if _, err := id.Authenticate(t.Context(), bearing(testKey)); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
	}
	if len(directory.noted) != 3 {
		t.Errorf("noted %v", directory.noted)
	}
}

func TestKeyOfAServiceAccount(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	id, directory := keyring(t, &now)
	directory.edit(func(k *inbox.APIKey) { k.Creator, k.Workspaces = "svc_1", []string{"ws_2"} })
	c, err := id.Authenticate(t.Context(), bearing(testKey))
	if err != nil || c.Subject != "svc_1" || c.Role != op.Operator || c.Person || len(c.Workspaces) != 1 || c.Workspaces[0].ID != "ws_2" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestTokensOfAnEndedMembership: who was removed and is back gets in with nothing from before.
func TestTokensOfAnEndedMembership(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	directory := &people{revoked: map[string]bool{}, member: &inbox.Member{User: "user_1", Organization: "org_1", Role: inbox.RoleViewer}}
	id, sign := issuing(t, func() time.Time { return now }, directory)
	claims := oauth.Claims{Subject: "user_1", ClientID: "c", Grant: "grant_1", Organization: "org_1"}
	old := sign(claims)
	now = now.Add(time.Minute)
	directory.member.RestoredAt = now
	if _, err := id.Authenticate(t.Context(), bearing(old)); !apperr.Is(err, apperr.Unauthenticated) {
		t.Errorf("a token from before: %v", err)
	}
	if _, err := id.Authenticate(t.Context(), bearing(sign(claims))); err != nil {
		t.Errorf("one from after: %v", err)
	}
}

// countedKeys counts look-ups by hash.
type countedKeys struct {
	*people
	n *int
}

func (c countedKeys) APIKeyByHash(ctx context.Context, hash string) (inbox.APIKey, error) {
	*c.n++
	return c.people.APIKeyByHash(ctx, hash)
}
