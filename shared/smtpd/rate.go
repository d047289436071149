package smtpd

import (
	"sync"
	"time"
)

// rateEntries bounds the memory of one rate: a flood from ever new addresses must not grow it.
const rateEntries = 8192

// rate is a token bucket per client, refilled at n a minute and holding n at most. A nil rate allows everything.
type rate struct {
	perMinute float64
	clock     func() time.Time

	mu      sync.Mutex
	buckets map[string]bucket // guarded by mu
}

type bucket struct {
	tokens float64
	at     time.Time
}

func newRate(perMinute int, clock func() time.Time) *rate {
	if perMinute <= 0 {
		return nil
	}
	return &rate{perMinute: float64(perMinute), clock: clock, buckets: map[string]bucket{}}
}

// take uses one token of the key; false: there is none.
func (r *rate) take(key string) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.at(key)
	ok := b.tokens >= 1
	if ok {
		b.tokens--
	}
	r.put(key, b)
	return ok
}

// spent tells whether the key has no token, and uses none.
func (r *rate) spent(key string) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at(key).tokens < 1
}

func (r *rate) at(key string) bucket {
	now := r.clock()
	b, ok := r.buckets[key]
	if !ok {
		return bucket{tokens: r.perMinute, at: now}
	}
	// A clock that went back refills nothing.
	b.tokens = min(r.perMinute, b.tokens+max(0, now.Sub(b.at).Minutes())*r.perMinute)
	b.at = now
	return b
}

// put stores a bucket. When there are too many it drops the full ones, which say nothing, and then any: memory stays
// bounded, and whoever owns that many addresses is held by MaxConnections.
func (r *rate) put(key string, b bucket) {
	if _, ok := r.buckets[key]; !ok && len(r.buckets) >= rateEntries {
		for k := range r.buckets {
			if r.at(k).tokens >= r.perMinute {
				delete(r.buckets, k)
			}
		}
		for k := range r.buckets {
			if len(r.buckets) < rateEntries/2 {
				break
			}
			delete(r.buckets, k)
		}
	}
	r.buckets[key] = b
}
