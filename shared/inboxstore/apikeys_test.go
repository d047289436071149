package inboxstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

func (w *world) newKey(id, name string, change func(*inbox.APIKey)) (inbox.APIKey, error) {
	k := inbox.APIKey{
		ID: "key_0000000000000000000000000" + id, Organization: orgA, Name: name, Creator: "user_1", Hash: inbox.KeyHash(id),
		ExpiresAt: w.clock.Add(time.Hour), CreatedAt: w.clock, Version: 1,
	}
	if change != nil {
		change(&k)
	}
	return k, w.CreateAPIKey(w.t.Context(), k, inbox.Act{}, func(inbox.APIKey) error { return nil })
}

func TestKeyEndsByItself(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	k, err := w.newKey("1", "Agent", nil)
	w.must(err)
	if _, err := w.newKey("2", "AGENT", nil); !errors.Is(err, inbox.ErrKeyName) {
		t.Errorf("the name twice: %v", err)
	}
	if _, err := w.newKey("2", "Agent", func(k *inbox.APIKey) { k.Organization = orgB }); err != nil {
		t.Errorf("the name in another organization: %v", err)
	}
	if _, err := w.newKey("3", "x", func(k *inbox.APIKey) { k.Organization = "org_00000000000000000000000009" }); err == nil {
		t.Error("a key of no organization")
	}
	w.UseAPIKey(ctx, k, w.clock)
	rows, _, err := w.APIKeys(ctx, inbox.APIKeyRange{Organization: orgA, Limit: 10})
	if err != nil || len(rows) != 1 || !rows[0].LastUsed.Equal(w.clock) {
		t.Errorf("%+v, %v", rows, err)
	}
	if ok, err := w.KeyActive(ctx, orgA, k.ID); !ok || err != nil {
		t.Errorf("active: %t, %v", ok, err)
	}
	if ok, _ := w.KeyActive(ctx, orgB, k.ID); ok {
		t.Error("active in another organization")
	}
	w.clock = w.clock.Add(time.Hour)
	if _, err := w.APIKeyByHash(ctx, k.Hash); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("found by its hash after its end: %v", err)
	}
	if ok, _ := w.KeyActive(ctx, orgA, k.ID); ok {
		t.Error("active after its end")
	}
	if _, err := w.newKey("4", "agent", nil); err != nil {
		t.Errorf("the name after its end: %v", err)
	}
	if ids, err := w.APIKeysOf(ctx, "user_1"); err != nil || len(ids) == 0 || ids[len(ids)-1] != "key_00000000000000000000000004" {
		t.Errorf("keys that work: %v, %v", ids, err)
	}
	w.clock = w.clock.Add(inbox.KeyMemory)
	if rows, _, err := w.APIKeys(ctx, inbox.APIKeyRange{Organization: orgA, Limit: 10}); err != nil || len(rows) != 1 {
		t.Errorf("listed for good: %+v, %v", rows, err)
	}
}

// TestRevokedKeyLeavesNoWayIn: none of its secrets is found, and what it started stops.
func TestRevokedKeyLeavesNoWayIn(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	k, err := w.newKey("1", "a", nil)
	w.must(err)
	child, err := w.newKey("2", "b", func(c *inbox.APIKey) { c.Parent = k.ID })
	w.must(err)
	turned, err := w.UpdateAPIKey(ctx, orgA, k.ID, inbox.Act{}, func(k *inbox.APIKey) error {
		k.Previous, k.PreviousUntil, k.Hash, k.Version = k.Hash, w.clock.Add(time.Minute), inbox.KeyHash("new"), k.Version+1
		return nil
	})
	w.must(err)
	for _, hash := range []string{turned.Hash, turned.Previous} {
		if got, err := w.APIKeyByHash(ctx, hash); err != nil || !got.Opens(hash, w.clock) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if _, err := w.UpdateAPIKey(ctx, orgB, k.ID, inbox.Act{}, func(*inbox.APIKey) error { return nil }); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("another organization changes it: %v", err)
	}
	_, err = w.UpdateAPIKey(ctx, orgA, k.ID, inbox.Act{}, func(k *inbox.APIKey) error {
		k.RevokedAt, k.Version = w.clock, k.Version+1
		return nil
	})
	w.must(err)
	for _, hash := range []string{turned.Hash, turned.Previous} {
		if _, err := w.APIKeyByHash(ctx, hash); !apperr.Is(err, apperr.NotFound) {
			t.Errorf("a secret of a revoked key: %v", err)
		}
	}
	for _, id := range []string{k.ID, child.ID} {
		if ok, err := w.KeyActive(ctx, orgA, id); ok || err != nil {
			t.Errorf("%s: %t, %v", id, ok, err)
		}
	}
	if ids, _ := w.APIKeysOf(ctx, "user_1"); len(ids) != 1 || ids[0] != child.ID {
		t.Errorf("keys that work: %v", ids)
	}
}

// TestOwnerBehindManyMembers: the other owner is found behind more members than a page has.
func TestOwnerBehindManyMembers(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	member := func(i int, role inbox.Role) inbox.Member {
		m := inbox.Member{User: fmt.Sprintf("user_%026d", i), Email: fmt.Sprintf("p%d@acme.test", i), Organization: orgA, Role: role}
		w.must(w.CreateMember(ctx, m))
		return m
	}
	first := member(1, inbox.RoleOwner)
	for i := 2; i < 230; i++ {
		member(i, inbox.RoleViewer)
	}
	demote := func(m inbox.Member) error {
		_, err := w.UpdateMember(ctx, orgA, m.User, inbox.Act{}, func(m *inbox.Member) error {
			m.Role, m.Version = inbox.RoleViewer, m.Version+1
			return nil
		})
		return err
	}
	if err := demote(first); !errors.Is(err, inbox.ErrLastOwner) {
		t.Fatalf("the last owner: %v", err)
	}
	last := member(230, inbox.RoleOwner)
	w.must(demote(first))
	if err := demote(last); !errors.Is(err, inbox.ErrLastOwner) {
		t.Errorf("then the other: %v", err)
	}
}

// TestMembersFromBeforeVersions: rows that were written by older programs are members like any other.
func TestMembersFromBeforeVersions(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	m := inbox.Member{User: "user_00000000000000000000000001", Email: "a@acme.test", Organization: orgA, Role: inbox.RoleViewer}
	w.must(w.CreateMember(ctx, m))
	got, err := w.MemberByEmail(ctx, orgA, m.Email)
	if err != nil || got.Version != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := w.MemberByEmail(ctx, orgB, m.Email); !errors.Is(err, inbox.ErrMemberElsewhere) {
		t.Errorf("from another organization: %v", err)
	}
	got, err = w.UpdateMember(ctx, orgA, m.User, inbox.Act{}, func(m *inbox.Member) error {
		m.DeletedAt, m.Version = w.clock, m.Version+1
		return nil
	})
	if err != nil || got.Version != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	w.must(w.CreateMember(ctx, inbox.Member{User: "user_00000000000000000000000002", Email: m.Email, Organization: orgB, Role: inbox.RoleViewer})) // the address is free
	if err := w.CreateMember(ctx, m); err == nil {
		t.Error("a removed member is made anew by a seed")
	}
	_, err = w.UpdateMember(ctx, orgA, m.User, inbox.Act{}, func(m *inbox.Member) error {
		m.DeletedAt, m.Version = time.Time{}, m.Version+1
		return nil
	})
	if !errors.Is(err, inbox.ErrMemberElsewhere) {
		t.Errorf("taken meanwhile, and back: %v", err)
	}
	if _, err := w.engine.Get(ctx, store.Key{Table: store.Core, Partition: "org/" + orgA, Sort: "member/" + m.User}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("half of it was written: %v", err)
	}
}
