package oauth

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/buzon-mail/buzon/shared/apperr"
)

const (
	// reloadAfter is the age at which a key set is read again. Never sooner because of an unknown kid: a caller who invents
	// ids would drive the secret store.
	reloadAfter = 5 * time.Minute
	// reloadRetry spaces the attempts while loading fails and an older set still serves.
	reloadRetry = 10 * time.Second
	// staleLimit is how long a set serves while it can't be read again. Past it a revoked key would live on an outage.
	staleLimit = time.Hour
)

// KeyRing holds the key set of this process and reads it again when it is older than five minutes.
type KeyRing struct {
	load  func(context.Context) (*KeySet, error)
	clock func() time.Time

	mu         sync.Mutex // guards all below; held while loading, so that a burst loads once
	set        *KeySet
	loaded     time.Time
	attempted  time.Time
	generation uint64 // counts loads; what was derived from an older set is dropped
}

// NewKeyRing takes what reads the key set, from a file or a secret store.
func NewKeyRing(load func(context.Context) (*KeySet, error), clock func() time.Time) *KeyRing {
	return &KeyRing{load: load, clock: clock}
}

// StaticKeys is a ring of one set that is never read again.
func StaticKeys(set *KeySet, clock func() time.Time) *KeyRing {
	return NewKeyRing(func(context.Context) (*KeySet, error) { return set, nil }, clock)
}

// Keys is the set to use now. An *apperr.Error of kind unavailable when there is none, or none fresh enough.
func (r *KeyRing) Keys(ctx context.Context) (*KeySet, error) {
	set, _, err := r.keys(ctx)
	return set, err
}

func (r *KeyRing) keys(ctx context.Context) (*KeySet, uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock()
	if r.set != nil && (now.Sub(r.loaded) < reloadAfter || now.Sub(r.attempted) < reloadRetry) {
		return r.set, r.generation, nil
	}
	set, err := r.load(ctx)
	if err == nil {
		r.keep(set, now)
		return r.set, r.generation, nil
	}
	if r.set == nil || now.Sub(r.loaded) > staleLimit {
		return nil, 0, unavailable(err)
	}
	// A caller that went away says nothing about the secret store: the next one tries again at once.
	if ctx.Err() == nil {
		r.attempted = now
	}
	return r.set, r.generation, nil
}

func (r *KeyRing) keep(set *KeySet, now time.Time) {
	if set != r.set {
		r.generation++
	}
	r.set, r.loaded, r.attempted = set, now, now
}

func unavailable(cause error) error {
	e := apperr.New(apperr.Unavailable, "", "Access tokens can't be checked at the moment.", "Send the request again in a few seconds.")
	e.RetryAfter = reloadRetry
	return e.Because(fmt.Errorf("load signing keys: %w", cause))
}
