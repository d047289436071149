package inboxstore

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

// pointerRow leads from the hash of a secret to its key.
type pointerRow struct {
	Organization string `json:"organization"`
	ID           string `json:"id"`
}

// creatorRow names the keys of one creator that work.
type creatorRow struct {
	Keys []creatorKey `json:"keys"`
}

type creatorKey struct {
	ID      string    `json:"id"`
	Expires time.Time `json:"expires"`
}

type usedRow struct {
	At time.Time `json:"at"`
}

func apiKeyKey(org, id string) store.Key        { return key("api-keys/"+org, id) }
func apiKeyHashKey(hash string) store.Key       { return key("api-key-hash/"+hash, only) }
func apiKeyCreatorKey(creator string) store.Key { return key("api-keys-of/"+creator, only) }
func apiKeyUsedKey(org, id string) store.Key    { return key("api-key-used/"+org, id) }

func apiKeyNameKey(org, name string) store.Key {
	return key("api-key-names/"+org, inbox.ShortDigest(sha256.Sum256([]byte(strings.ToLower(name)))))
}

// keyGoes is when the row of a key goes: it is listed for a while after its end.
func keyGoes(k inbox.APIKey) time.Time {
	end := k.ExpiresAt
	if !k.RevokedAt.IsZero() && k.RevokedAt.Before(end) {
		end = k.RevokedAt
	}
	return end.Add(inbox.KeyMemory)
}

// APIKeys implements inbox.APIKeyStore: one page of the keys, and one of when they were used.
func (s *Store) APIKeys(ctx context.Context, r inbox.APIKeyRange) ([]inbox.APIKeyRow, string, error) {
	page, err := s.engine.Query(ctx, store.Query{Table: store.Core, Partition: "api-keys/" + r.Organization, After: r.After, Limit: r.Limit})
	if err != nil {
		return nil, "", failed("API keys", err)
	}
	keys, err := decodeAll[inbox.APIKey](page.Items)
	if err != nil || len(keys) == 0 {
		return nil, page.Next, wrapIf("API keys", err)
	}
	used, err := store.Fill(ctx, s.engine, store.Query{
		Table: store.Core, Partition: "api-key-used/" + r.Organization, From: keys[0].ID, To: keys[len(keys)-1].ID + "\x01",
		Limit: min(2*len(keys), store.MaxLimit),
	}, 2)
	if err != nil {
		return nil, "", failed("use of API keys", err)
	}
	last := map[string]time.Time{}
	for _, item := range used.Items {
		row, err := store.Decode[usedRow](item, format)
		if err != nil {
			return nil, "", failed("use of API keys", err)
		}
		last[item.Key.Sort] = row.At
	}
	rows := make([]inbox.APIKeyRow, 0, len(keys))
	for _, k := range keys {
		rows = append(rows, inbox.APIKeyRow{APIKey: k, LastUsed: last[k.ID]})
	}
	return rows, page.Next, nil
}

// APIKey implements inbox.APIKeyStore.
func (s *Store) APIKey(ctx context.Context, org, id string) (inbox.APIKey, error) {
	k, _, err := get[inbox.APIKey](ctx, s, apiKeyKey(org, id))
	if err != nil {
		return inbox.APIKey{}, missing("API key "+id, err, inbox.NoKey())
	}
	return k, nil
}

// APIKeyByHash finds the key that a secret opens, as it is now: two reads. Whether it opens it still, inbox.APIKey.Opens tells.
func (s *Store) APIKeyByHash(ctx context.Context, hash string) (inbox.APIKey, error) {
	row, _, err := get[pointerRow](ctx, s, apiKeyHashKey(hash))
	if err != nil {
		return inbox.APIKey{}, missing("API key by hash", err, inbox.NoKey())
	}
	return s.APIKey(ctx, row.Organization, row.ID)
}

// APIKeyNamed implements inbox.APIKeyStore.
func (s *Store) APIKeyNamed(ctx context.Context, org, name string) (inbox.APIKey, error) {
	k, _, err := s.named(ctx, org, name)
	if err == nil && k.Version == 0 {
		return inbox.APIKey{}, inbox.NoKey()
	}
	return k, err
}

// nameGuard is the row that guards a name, as it was read; Revision 0: none.
type nameGuard struct {
	Key      string // id
	Revision uint64
}

// named finds the key that works and has a name, a zero one when there is none, and the guard that was read to find it: whoever takes
// the name names its revision, so that nobody takes it from a key that was made meanwhile.
func (s *Store) named(ctx context.Context, org, name string) (inbox.APIKey, nameGuard, error) {
	row, revision, ok, err := find[idRow](ctx, s, apiKeyNameKey(org, name))
	if err != nil || !ok {
		return inbox.APIKey{}, nameGuard{}, wrapIf("API key by name", err)
	}
	guard := nameGuard{row.ID, revision}
	k, err := s.APIKey(ctx, org, row.ID)
	if isMissing(err) || err == nil && k.Ended(s.now()) {
		return inbox.APIKey{}, guard, nil
	}
	return k, guard, err
}

// APIKeysOf implements inbox.APIKeyStore.
func (s *Store) APIKeysOf(ctx context.Context, creator string) ([]string, error) {
	row, _, _, err := find[creatorRow](ctx, s, apiKeyCreatorKey(creator))
	if err != nil {
		return nil, failed("API keys of "+creator, err)
	}
	var ids []string
	for _, k := range row.Keys {
		ids = append(ids, k.ID)
	}
	return ids, nil
}

// UseAPIKey notes when a key was used. Approximate: callers don't note each use, and a failure costs nothing but the note.
func (s *Store) UseAPIKey(ctx context.Context, k inbox.APIKey, at time.Time) {
	var b batch
	b.expiring(apiKeyUsedKey(k.Organization, k.ID), 1, usedRow{at.UTC().Truncate(time.Millisecond)}, store.Condition{}, keyGoes(k))
	_ = s.commit(ctx, &b)
}

// CreateAPIKey implements inbox.APIKeyStore. Of two at once with one name one is made.
func (s *Store) CreateAPIKey(ctx context.Context, k inbox.APIKey, act inbox.Act, before func(inbox.APIKey) error) error {
	for range attempts {
		named, guard, err := s.named(ctx, k.Organization, k.Name)
		if err != nil {
			return err
		}
		if err := s.unused(ctx, act); err != nil {
			return err
		}
		if err := before(named); err != nil {
			return err
		}
		if named.Version > 0 {
			return inbox.ErrKeyName
		}
		b, err := s.newKeyOps(ctx, k, guard)
		if err != nil {
			return err
		}
		b.act(act, k.ID, nil, k)
		err = s.commit(ctx, b)
		if !errors.Is(err, store.ErrConflict) {
			return wrapIf("create API key "+k.ID, err)
		}
	}
	return inbox.Busy()
}

// newKeyOps stores a key. The guard of a name goes with its key's end; one that is still there is of a key that ended a moment ago, and
// is taken over at the revision that was read.
func (s *Store) newKeyOps(ctx context.Context, k inbox.APIKey, guard nameGuard) (*batch, error) {
	own, read, _, err := find[creatorRow](ctx, s, apiKeyCreatorKey(k.Creator))
	if err != nil {
		return nil, failed("API keys of "+k.Creator, err)
	}
	own.drop(guard.Key, s.now())
	if len(own.Keys) >= inbox.MaxKeys {
		return nil, inbox.ErrTooManyKeys
	}
	own.Keys = append(own.Keys, creatorKey{k.ID, k.ExpiresAt})
	cond := store.Absent()
	if guard.Revision > 0 {
		cond = store.RevisionIs(guard.Revision)
	}
	var b batch
	b.expiring(apiKeyNameKey(k.Organization, k.Name), guard.Revision+1, idRow{k.ID}, cond, k.ExpiresAt)
	b.expiring(apiKeyKey(k.Organization, k.ID), 1, k, store.Absent(), keyGoes(k))
	b.expiring(apiKeyHashKey(k.Hash), 1, pointerRow{k.Organization, k.ID}, store.Absent(), k.ExpiresAt)
	b.upsert(apiKeyCreatorKey(k.Creator), read, own)
	b.check(orgKey(k.Organization, "meta"), store.Exists())
	return &b, nil
}

// drop takes a key and those that have expired out of a creator's row.
func (r *creatorRow) drop(id string, now time.Time) {
	r.Keys = slices.DeleteFunc(r.Keys, func(k creatorKey) bool { return k.ID == id || !k.Expires.After(now) })
}

// UpdateAPIKey implements inbox.APIKeyStore.
func (s *Store) UpdateAPIKey(ctx context.Context, org, id string, act inbox.Act, change func(*inbox.APIKey) error) (inbox.APIKey, error) {
	for range attempts {
		old, revision, err := get[inbox.APIKey](ctx, s, apiKeyKey(org, id))
		if err != nil {
			return inbox.APIKey{}, missing("API key "+id, err, inbox.NoKey())
		}
		if err := s.unused(ctx, act); err != nil {
			return inbox.APIKey{}, err
		}
		next := old
		if err := change(&next); err != nil {
			return inbox.APIKey{}, err
		}
		if next.Version == old.Version {
			return old, nil
		}
		b, err := s.keyOps(ctx, old, next, revision)
		if err != nil {
			return inbox.APIKey{}, err
		}
		b.act(act, id, old, next)
		err = s.commit(ctx, b)
		if err == nil {
			return next, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return inbox.APIKey{}, failed("update API key "+id, err)
		}
	}
	return inbox.APIKey{}, inbox.Busy()
}

// keyOps writes a key with the rows that its secrets are found by: those that open it no more go in the same transaction.
func (s *Store) keyOps(ctx context.Context, old, next inbox.APIKey, revision uint64) (*batch, error) {
	var b batch
	b.expiring(apiKeyKey(next.Organization, next.ID), revision+1, next, store.RevisionIs(revision), keyGoes(next))
	after := map[string]time.Time{}
	if next.RevokedAt.IsZero() {
		after[next.Hash] = next.ExpiresAt
		if next.Previous != "" {
			after[next.Previous] = next.PreviousUntil
		}
	}
	for hash, until := range after {
		b.expiring(apiKeyHashKey(hash), 1, pointerRow{next.Organization, next.ID}, store.Condition{}, until)
	}
	for _, hash := range []string{old.Hash, old.Previous} {
		if _, kept := after[hash]; hash != "" && !kept {
			b.drop(apiKeyHashKey(hash), store.Condition{})
		}
	}
	if next.RevokedAt.IsZero() || !old.RevokedAt.IsZero() {
		return &b, nil
	}
	guard, read, ok, err := find[idRow](ctx, s, apiKeyNameKey(next.Organization, next.Name))
	if err != nil {
		return nil, failed("name of an API key", err)
	}
	if ok && guard.ID == next.ID {
		b.drop(apiKeyNameKey(next.Organization, next.Name), store.RevisionIs(read))
	}
	own, read, ok, err := find[creatorRow](ctx, s, apiKeyCreatorKey(next.Creator))
	if err != nil {
		return nil, failed("API keys of "+next.Creator, err)
	}
	if ok {
		own.drop(next.ID, s.now())
		b.replace(apiKeyCreatorKey(next.Creator), read, own)
	}
	return &b, nil
}

// KeyActive implements authority.Keys: whether what a key started may go on. The key works, what made it works, and whoever it acts as
// did not leave since.
func (s *Store) KeyActive(ctx context.Context, org, id string) (bool, error) {
	k, err := s.APIKey(ctx, org, id)
	if err == nil && k.Parent != "" && !k.Ended(s.now()) {
		var parent inbox.APIKey
		if parent, err = s.APIKey(ctx, org, k.Parent); err == nil && parent.Ended(s.now()) {
			return false, nil
		}
	}
	if isMissing(err) {
		return false, nil
	}
	if err != nil || k.Ended(s.now()) {
		return false, err
	}
	m, _, _, err := find[inbox.Member](ctx, s, memberKey(k.Creator)) // none for a service account
	if err != nil {
		return false, failed("maker of API key "+id, err)
	}
	return m.DeletedAt.IsZero() && !k.CreatedAt.Before(m.RestoredAt), nil
}
