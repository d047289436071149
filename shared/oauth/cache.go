package oauth

import "sync"

// cacheEntries bounds the memory: about 2 MB when full.
const cacheEntries = 4096

// cache remembers verified tokens by their fingerprints until they expire. Only tokens that verified enter, so strangers can't
// fill it. The oldest entry makes room for a new one, and a key set that was read anew empties it.
type cache struct {
	mu         sync.RWMutex // guards all below
	generation uint64       // of the key set that verified the entries
	entries    map[Fingerprint]*Claims
	order      []Fingerprint // a ring in order of insertion
	next       int           // where the ring is written when it is full
	limit      int
}

func newCache(limit int) *cache {
	return &cache{entries: make(map[Fingerprint]*Claims), limit: limit}
}

// get returns nil for what is unknown, expired, or verified by another key set. now is seconds since 1970.
func (c *cache) get(sum Fingerprint, generation uint64, now int64) *Claims {
	c.mu.RLock()
	defer c.mu.RUnlock()
	claims := c.entries[sum]
	if claims == nil || c.generation != generation || claims.Expires <= now {
		return nil
	}
	return claims
}

func (c *cache) put(sum Fingerprint, generation uint64, claims *Claims) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation < c.generation {
		return // verified by a set that was replaced meanwhile
	}
	if generation > c.generation {
		c.generation = generation
		clear(c.entries)
		c.order, c.next = c.order[:0], 0
	}
	if _, known := c.entries[sum]; known {
		c.entries[sum] = claims
		return
	}
	if len(c.order) < c.limit {
		c.order = append(c.order, sum)
	} else {
		delete(c.entries, c.order[c.next])
		c.order[c.next] = sum
		c.next = (c.next + 1) % c.limit
	}
	c.entries[sum] = claims
}
