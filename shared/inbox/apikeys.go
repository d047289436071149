package inbox

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

// APIKeys are the operations on API keys.
type APIKeys struct{ d Deps }

// Reach is what a caller could hand on: a key never gets more than whoever makes it has.
type Reach struct {
	Scopes     []string       // its own
	Workspaces []WorkspaceRow // that it reaches
	Whole      bool           // all of the organization that its person reaches, also later; false: these workspaces alone
	Expires    time.Time      // of the key that calls, which no other outlives; zero: no key
	Key        string         // id of the key that calls
}

// APIKeyPage is one page of keys.
type APIKeyPage struct {
	Rows   []APIKeyRow
	Next   string  // cursor
	Window *Window // nil when the keys serve the list
}

// everyKey reports whether the caller sees all keys of the organization, and not its own alone.
func (a Actor) everyKey() bool { return a.OrganizationRole.AtLeast(RoleAdmin) }

// List returns keys in the order in which they were made: the organization's for its admins, else the caller's own.
func (s *APIKeys) List(ctx context.Context, a Actor, p PageRequest) (APIKeyPage, error) {
	limit, err := p.limit()
	if err != nil {
		return APIKeyPage{}, err
	}
	c := newCursors(s.d.Cursors, a, "api_keys_list", a.everyKey())
	after, err := c.open(p.Cursor)
	if err != nil {
		return APIKeyPage{}, err
	}
	l := lister[APIKeyRow]{
		after: after, limit: limit,
		key: func(k *APIKeyRow) string { return k.ID },
		read: func(ctx context.Context, after string, n int) ([]APIKeyRow, string, error) {
			return s.d.Keys.APIKeys(ctx, APIKeyRange{a.Organization, after, n})
		},
	}
	if !a.everyKey() {
		l.match = func(k *APIKeyRow) bool { return k.Creator == a.Subject }
	}
	rows, next, err := l.collect(ctx)
	if err != nil {
		return APIKeyPage{}, fmt.Errorf("list API keys of %s: %w", a.Organization, err)
	}
	page := APIKeyPage{Rows: rows}
	if l.match != nil {
		page.Window = &Window{Examined: l.examined, Complete: next == ""}
	}
	page.Next, err = c.seal(next)
	return page, err
}

// one is a key that the caller may see.
func (s *APIKeys) one(ctx context.Context, a Actor, id string) (APIKey, error) {
	if !validID(keyPrefix, id) {
		return APIKey{}, NoKey()
	}
	k, err := s.d.Keys.APIKey(ctx, a.Organization, id)
	if err != nil {
		return APIKey{}, fmt.Errorf("API key %s: %w", id, err)
	}
	if k.Creator != a.Subject && !a.everyKey() {
		return APIKey{}, NoKey()
	}
	return k, nil
}

// newKeySecret draws a secret.
func (s *APIKeys) newKeySecret() (string, error) {
	var b [keyBytes]byte
	if _, err := io.ReadFull(s.d.Rand, b[:]); err != nil {
		return "", fmt.Errorf("random bytes of an API key: %w", err)
	}
	return KeyMarker + base64.RawURLEncoding.EncodeToString(b[:]), nil
}

// secretName is how the page of a secret calls a key.
func (k APIKey) secretName() string { return "API key " + k.Name }

// AskRevoke says what a person is asked before Revoke; nil when the key ended already.
func (s *APIKeys) AskRevoke(ctx context.Context, a Actor, id string) (*Question, error) {
	k, err := s.one(ctx, a, id)
	if err != nil || k.Ended(s.d.now()) {
		return nil, err
	}
	return &Question{
		Text: "Revoke API key {} ({}…) of {} for good", Values: []string{k.Name, k.Prefix, k.holder()},
		Targets: map[string]string{k.ID: Version(k.Version)},
	}, nil
}

// holder names who a key acts as.
func (k APIKey) holder() string {
	if k.CreatorEmail != "" {
		return k.CreatorEmail
	}
	return k.Creator
}

// Revoke ends a key: within 30 seconds nobody gets in with it. There is no way back. Repeating it answers the same.
func (s *APIKeys) Revoke(ctx context.Context, a Actor, id string) (APIKey, error) {
	k, err := s.one(ctx, a, id)
	if err != nil {
		return APIKey{}, err
	}
	return s.update(ctx, a, k.ID, func(k *APIKey) error {
		now := s.d.now()
		if err := a.confirm(k.ID, k.Version, !k.Ended(now)); err != nil {
			return err
		}
		if k.RevokedAt.IsZero() {
			k.revoke(now)
		}
		return nil
	})
}

func (k *APIKey) revoke(now time.Time) {
	k.RevokedAt, k.UpdatedAt, k.Version = now, now, k.Version+1
	k.Previous, k.PreviousUntil = "", time.Time{}
}

func (s *APIKeys) update(ctx context.Context, a Actor, id string, change func(*APIKey) error) (APIKey, error) {
	act, err := s.d.organizationAct(a)
	if err != nil {
		return APIKey{}, err
	}
	k, err := s.d.Keys.UpdateAPIKey(ctx, a.Organization, id, act, change)
	if err != nil {
		return APIKey{}, fmt.Errorf("change API key %s: %w", id, err)
	}
	return k, nil
}

// rotatable refuses whoever would get more with the key's new secret than the call could do by itself: the key of somebody else, of a
// greater reach, one that ended.
func (s *APIKeys) rotatable(a Actor, r Reach, k APIKey) error {
	switch {
	case k.Ended(s.d.now()):
		return apperr.New(apperr.Conflict, "ended", "This API key was revoked or has expired.", "Call api_keys_create for a new one.")
	case k.Creator != a.Subject:
		return apperr.New(apperr.Forbidden, "not_creator", "Only who made an API key can have a new secret of it: it acts as them.",
			"Ask them, or revoke it (api_keys_revoke) and make one of your own.")
	case !r.covers(k):
		return beyond("this key's scopes or workspaces")
	}
	return nil
}

// covers reports whether a key has no more than the reach. A confined caller never gets here.
func (r Reach) covers(k APIKey) bool {
	for _, scope := range k.Scopes {
		if !slices.Contains(r.Scopes, scope) {
			return false
		}
	}
	if len(k.Workspaces) == 0 {
		return r.Whole
	}
	for _, id := range k.Workspaces {
		if !slices.ContainsFunc(r.Workspaces, func(w WorkspaceRow) bool { return w.ID == id }) {
			return false
		}
	}
	return true
}

func beyond(what string) *apperr.Error {
	return apperr.New(apperr.Forbidden, "beyond_own", "An API key can't have more than whoever makes it: this call lacks "+what+".",
		"Ask for less, or call with an access token that has them (session_get says what this one has).")
}

func checkKeyOverlap(d time.Duration) error {
	if d < 0 || d > MaxKeyOverlap || d%time.Hour != 0 {
		return invalid("body.overlap_h", fmt.Sprintf("0 to %d", MaxKeyOverlap/time.Hour))
	}
	return nil
}

const rotateInstead = "POST /api/v1/api-keys/{id}/rotate"

// AskRotate says what a person is asked before Rotate.
func (s *APIKeys) AskRotate(ctx context.Context, a Actor, r Reach, id string, overlap time.Duration) (*Question, error) {
	k, err := s.forRotation(ctx, a, r, id, overlap)
	if err != nil {
		return nil, err
	}
	q := &Question{
		Text: "Make a new secret for API key {} ({}…); ", Values: []string{k.Name, k.Prefix}, Targets: map[string]string{k.ID: Version(k.Version)},
	}
	if overlap == 0 {
		q.Text += "the old one ends at once"
		return q, nil
	}
	q.Text += "the old one works too for {}"
	q.Values = append(q.Values, about(int64(overlap/time.Hour), "hour", "hours"))
	return q, nil
}

func (s *APIKeys) forRotation(ctx context.Context, a Actor, r Reach, id string, overlap time.Duration) (APIKey, error) {
	if err := checkKeyOverlap(overlap); err != nil {
		return APIKey{}, err
	}
	if err := a.mayReceive(rotateInstead); err != nil {
		return APIKey{}, err
	}
	k, err := s.one(ctx, a, id)
	if err != nil {
		return APIKey{}, err
	}
	return k, s.rotatable(a, r, k)
}

// Rotate makes a new secret; the one before works too for a while. Each call makes one.
func (s *APIKeys) Rotate(ctx context.Context, a Actor, r Reach, id string, overlap time.Duration) (APIKey, SecretReply, error) {
	k, err := s.forRotation(ctx, a, r, id, overlap)
	if err != nil {
		return APIKey{}, SecretReply{}, err
	}
	secret, err := s.newKeySecret()
	if err != nil {
		return APIKey{}, SecretReply{}, err
	}
	var reply SecretReply
	k, err = s.update(ctx, a, k.ID, func(k *APIKey) error {
		if err := a.confirm(k.ID, k.Version, true); err != nil {
			return err
		}
		if err := s.rotatable(a, r, *k); err != nil {
			return err
		}
		if reply == (SecretReply{}) { // once, however often the change starts again
			var err error
			if reply, err = s.d.hand(ctx, a, k.secretName(), secret); err != nil {
				return err
			}
		}
		now := s.d.now()
		k.Previous, k.PreviousUntil = "", time.Time{}
		if overlap > 0 {
			k.Previous, k.PreviousUntil = k.Hash, now.Add(overlap)
		}
		k.Hash, k.Prefix = KeyHash(secret), secret[:shownKey]
		k.UpdatedAt, k.Version = now, k.Version+1
		return nil
	})
	if err != nil {
		return APIKey{}, SecretReply{}, err
	}
	return k, reply, nil
}

// revokeAllOf ends every key that somebody made, in the name of whoever removes them.
func (d Deps) revokeAllOf(ctx context.Context, a Actor, creator string) error {
	ids, err := d.Keys.APIKeysOf(ctx, creator)
	if err != nil {
		return fmt.Errorf("API keys of %s: %w", creator, err)
	}
	a.Confirmed = nil // the yes is for the removal, which uses it up
	for _, id := range ids {
		_, err := (&APIKeys{d}).update(ctx, a, id, func(k *APIKey) error {
			if k.RevokedAt.IsZero() {
				k.revoke(d.now())
			}
			return nil
		})
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			return err
		}
	}
	return nil
}
