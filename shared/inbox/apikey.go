package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// Bounds of API keys.
const (
	// MaxKeys is how many keys that work one creator has: their ids stand in one row.
	MaxKeys = 100
	// MaxKeyInboxes is how many inboxes a key can be confined to: a list over them reads a page of each.
	MaxKeyInboxes = 10
	// MaxKeyLife is how long a key works at most.
	MaxKeyLife = 366 * 24 * time.Hour
	// MaxKeyOverlap is how long a secret that was replaced goes on working at most.
	MaxKeyOverlap = 24 * time.Hour
	// KeyMemory is how long a key that ended stays in the list.
	KeyMemory = 90 * 24 * time.Hour

	maxKeyName = 64 // bytes
)

// KeyMarker begins every secret of an API key, so that a scanner of leaked secrets knows one.
const KeyMarker = "bzk_"

const (
	keyPrefix = "key"
	keyBytes  = 32
	shownKey  = len(KeyMarker) + 6 // characters of a secret that lists show
)

// APIKey acts as whoever made it, narrowed to what stands here. It is stored without its secret: 256 random bits need no slower
// hash than SHA-256.
type APIKey struct {
	ID            string    `json:"id"` // key_...
	Organization  string    `json:"organization"`
	Name          string    `json:"name"`   // natural key among those that work, letter case aside
	Prefix        string    `json:"prefix"` // start of the secret
	Scopes        []string  `json:"scopes"`
	Workspaces    []string  `json:"workspaces,omitempty"` // ids; none: all that its creator reaches
	Inboxes       []string  `json:"inboxes,omitempty"`    // ids, in the one workspace; none: all
	Creator       string    `json:"creator"`              // id of the person or service account that it acts as
	CreatorEmail  string    `json:"creator_email,omitempty"`
	Parent        string    `json:"parent,omitempty"` // id of the key that made it, which it does not outlive
	Hash          string    `json:"hash"`             // hex SHA-256 of the secret
	Previous      string    `json:"previous,omitempty"`
	PreviousUntil time.Time `json:"previous_until,omitzero"` // until then the secret before works too
	ExpiresAt     time.Time `json:"expires_at"`
	CreatedAt     time.Time `json:"created_at"`
	UpdatedAt     time.Time `json:"updated_at"`
	RevokedAt     time.Time `json:"revoked_at,omitzero"`
	Version       uint64    `json:"version"`
}

// KeyHash is what is stored of a secret, and what a key is found by: a look-up by hash tells nothing by its time.
func KeyHash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Ended reports whether a key works no more at a time.
func (k APIKey) Ended(now time.Time) bool { return !k.RevokedAt.IsZero() || !k.ExpiresAt.After(now) }

// Opens reports whether the secret with this hash opens the key at a time.
func (k APIKey) Opens(hash string, now time.Time) bool {
	return !k.Ended(now) && (hash == k.Hash || hash == k.Previous && hash != "" && k.PreviousUntil.After(now))
}

// APIKeyRow is a key in a list.
type APIKeyRow struct {
	APIKey
	LastUsed time.Time // approximate; zero: not yet
}

// APIKeyStore keeps API keys. Everything is found under its organization, so another one's id is a missing one.
type APIKeyStore interface {
	// APIKeys reads one page by id, behind r.After, those that ended lately too; next is empty at the end.
	APIKeys(ctx context.Context, r APIKeyRange) (rows []APIKeyRow, next string, err error)
	// APIKey finds one, ended or not; not_found when there is none.
	APIKey(ctx context.Context, organization, id string) (APIKey, error)
	// APIKeyNamed finds the one that works and has this name; not_found when there is none.
	APIKeyNamed(ctx context.Context, organization, name string) (APIKey, error)
	// APIKeysOf are the ids of those that work and that somebody made.
	APIKeysOf(ctx context.Context, creator string) ([]string, error)
	// CreateAPIKey stores a new key with what act brings: ErrKeyName, ErrTooManyKeys. before is called with what has the name now (a
	// zero key: nothing), once a yes was found unused; its error is returned as it is.
	CreateAPIKey(ctx context.Context, k APIKey, act Act, before func(named APIKey) error) error
	// UpdateAPIKey works like InboxStore.UpdateInbox: the secrets that open the key are those that it has afterwards.
	UpdateAPIKey(ctx context.Context, organization, id string, act Act, change func(*APIKey) error) (APIKey, error)
}

// APIKeyRange is one page of an organization's keys.
type APIKeyRange struct {
	Organization string
	After        string
	Limit        int
}

// What a store answers when a new key can't be.
var (
	// ErrKeyName: a key that works has this name.
	ErrKeyName = errors.New("inbox: name of a key taken")
	// ErrTooManyKeys: the creator has MaxKeys that work.
	ErrTooManyKeys = errors.New("inbox: too many keys")
)

// NoKey is the one answer for a key that is missing, another organization's, or not the caller's to see.
func NoKey() *apperr.Error {
	return apperr.New(apperr.NotFound, "", "There is no such API key.", "Call api_keys_list for the keys that you can see.")
}

func keyNameTaken() *apperr.Error {
	return apperr.New(apperr.Conflict, "name_taken", "An API key that works has this name.",
		"Choose another name, or call api_keys_rotate for a new secret of that key.")
}

// checkName holds for names that people give: one line of text.
func checkName(location, s string, most int) error {
	if s == "" || len(s) > most || strings.TrimSpace(s) != s || strings.ContainsFunc(s, unprintable) {
		return invalid(location, "a name without control characters, and without spaces around it")
	}
	return nil
}
