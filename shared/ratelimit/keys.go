package ratelimit

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	shardCount     = 16 // locks; a power of two
	defaultMaxKeys = 1 << 14
)

// table keeps a T for each key that is in use, and forgets the others: memory is bounded however many keys there are.
type table[T any] struct {
	seed   maphash.Seed
	shards [shardCount]shard[T]
}

// shard is a part of the keys with its own lock.
type shard[T any] struct {
	mu     sync.Mutex
	keys   map[string]*entry[T] // guarded by mu, like everything below
	max    int
	newest *entry[T] // list by last use
	oldest *entry[T]
}

// entry is one key and what is kept of it.
type entry[T any] struct {
	value        T
	key          string
	newer, older *entry[T]
	used         time.Duration // last use
}

func (t *table[T]) init(maxKeys int) {
	if maxKeys == 0 {
		maxKeys = defaultMaxKeys
	}
	t.seed = maphash.MakeSeed()
	for i := range t.shards {
		t.shards[i].keys = map[string]*entry[T]{}
		t.shards[i].max = (maxKeys + shardCount - 1) / shardCount
	}
}

func (t *table[T]) shard(key string) *shard[T] {
	return &t.shards[maphash.String(t.seed, key)%shardCount]
}

// len is how many keys are kept.
func (t *table[T]) len() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += len(s.keys)
		s.mu.Unlock()
	}
	return n
}

// use finds the entry of a key, or makes it, and puts it in front. The shard is locked.
func (s *shard[T]) use(key string) *entry[T] {
	e := s.keys[key]
	switch {
	case e == nil:
		e = s.add(key)
	case e == s.newest:
		return e
	default:
		s.detach(e)
	}
	s.push(e)
	return e
}

// expire forgets at most two keys that were not used for a whole window: each call cleans more than it can add.
func (s *shard[T]) expire(now time.Duration) {
	for range 2 {
		if s.oldest == nil || s.oldest.used+window+time.Second > now {
			return
		}
		s.remove(s.oldest)
	}
}

// add makes room first. When every key is in use the one that was used longest ago is forgotten: whoever wants to be
// forgotten early needs MaxKeys other grants that are busy in the same minute, each with an allowance of its own, and
// a bound on memory matters more.
func (s *shard[T]) add(key string) *entry[T] {
	if len(s.keys) >= s.max {
		s.remove(s.oldest)
	}
	e := &entry[T]{key: key}
	s.keys[key] = e
	return e
}

func (s *shard[T]) remove(e *entry[T]) {
	s.detach(e)
	delete(s.keys, e.key)
}

func (s *shard[T]) push(e *entry[T]) {
	e.older, e.newer = s.newest, nil
	if s.newest != nil {
		s.newest.newer = e
	} else {
		s.oldest = e
	}
	s.newest = e
}

func (s *shard[T]) detach(e *entry[T]) {
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		s.newest = e.older
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		s.oldest = e.newer
	}
	e.newer, e.older = nil, nil
}
