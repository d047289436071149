package storetest

import (
	"maps"
	"math"
	"time"

	"github.com/buzon-mail/buzon/shared/store"
)

func addCases() []testCase {
	return []testCase{
		{"starts at zero, sums, goes below zero", func(s *suite) {
			key := s.key("p", "a")
			s.add(key, "n", 5, 0, 5)
			s.add(key, "n", 0, 0, 5)
			s.add(key, "n", -7, 0, -2)
			s.counters(key, map[string]int64{"n": -2})
		}},
		{"fields are apart, odd names too", func(s *suite) {
			key := s.key("p", "a")
			want := map[string]int64{}
			for i, f := range []string{"n", "N", "d", "f", "r", "x", "pk", "sk", "ttl", "#a", ":b", "a.b", "size", "\u00f1", " "} {
				s.add(key, f, int64(i+1), 0, int64(i+1))
				want[f] = int64(i + 1)
			}
			s.counters(key, want)
		}},
		{"a counter row has a format and is a row like any", func(s *suite) {
			key := s.key("p", "a")
			s.add(key, "n", 1, 0, 1)
			got, err := s.Get(s.ctx(), key)
			s.ok(err)
			if got.Format != 1 || got.Revision != 0 || len(got.Data) != 0 || !got.Expires.IsZero() {
				s.Fatalf("got %s", describe(got))
			}
			page, err := s.Query(s.ctx(), s.all("p", 1))
			s.ok(err)
			if len(page.Items) != 1 || page.Items[0].Counters["n"] != 1 {
				s.Fatalf("query = %v", page.Items)
			}
			s.conflict(s.Put(s.ctx(), row(key, 1, ""), store.Absent()), 0)
			s.ok(s.Delete(s.ctx(), key, store.RevisionIs(0)))
			s.add(key, "n", 3, 0, 3)
		}},
		{"keeps the row's data", func(s *suite) {
			item := row(s.key("p", "a"), 6, "data")
			item.Format = 3
			item.Expires = s.clock.Now().Add(time.Hour)
			s.put(item)
			s.add(item.Key, "n", 2, 0, 2)
			s.want(item)
			s.counters(item.Key, map[string]int64{"n": 2})
		}},
		{"max is reached and not passed", maxReached},
		{"int64 is never left", func(s *suite) {
			key := s.key("p", "a")
			s.add(key, "n", math.MaxInt64, 0, math.MaxInt64)
			s.limited(key, "n", 1, 0, math.MaxInt64)
			s.limited(key, "n", math.MaxInt64, math.MaxInt64, math.MaxInt64)
			s.add(key, "m", math.MinInt64, 0, math.MinInt64)
			s.limited(key, "m", -1, 0, math.MinInt64)
			s.limited(key, "m", -1, 10, math.MinInt64)
			s.add(key, "m", math.MaxInt64, 10, -1)
		}},
		{"expires is set at the start alone", expiresAtStart},
		{"an expired row starts at zero", expiredRestarts},
		{"an expired row with data starts anew", func(s *suite) {
			item := row(s.key("p", "a"), 6, "old")
			item.Format = 2
			item.Expires = s.clock.Now().Add(time.Second)
			s.put(item)
			s.clock.set(item.Expires)
			s.add(item.Key, "n", 1, 5, 1)
			s.want(store.Item{Key: item.Key, Format: 1})
		}},
		{"a live row without expiry gets none", func(s *suite) {
			s.put(row(s.key("p", "a"), 1, "x"))
			_, err := s.Add(s.ctx(), s.key("p", "a"), "n", 1, 0, s.clock.Now().Add(time.Second))
			s.ok(err)
			s.clock.set(s.clock.Now().Add(time.Hour))
			s.want(row(s.key("p", "a"), 1, "x"))
		}},
	}
}

func (s *suite) add(key store.Key, field string, delta, max, want int64) {
	s.Helper()
	got, err := s.Add(s.ctx(), key, field, delta, max, time.Time{})
	if err != nil || got != want {
		s.Fatalf("add %d to %q (max %d) = %d, %v, want %d", delta, field, max, got, err, want)
	}
}

// limited checks that the addition is refused and that the present value comes with the refusal.
func (s *suite) limited(key store.Key, field string, delta, max, present int64) {
	s.Helper()
	got, err := s.Add(s.ctx(), key, field, delta, max, time.Time{})
	s.is(err, store.ErrLimit)
	if got != present {
		s.Fatalf("refused add %d to %q returned %d, want the present %d", delta, field, got, present)
	}
}

func (s *suite) counters(key store.Key, want map[string]int64) {
	s.Helper()
	got, err := s.Get(s.ctx(), key)
	s.ok(err)
	if !maps.Equal(got.Counters, want) {
		s.Fatalf("counters = %v, want %v", got.Counters, want)
	}
}

func maxReached(s *suite) {
	key := s.key("p", "a")
	s.limited(key, "n", 11, 10, 0)
	s.absent(key) // a refusal creates nothing
	s.add(key, "n", 10, 10, 10)
	s.limited(key, "n", 1, 10, 10)
	s.counters(key, map[string]int64{"n": 10})
	s.limited(key, "other", 11, 10, 0)
	s.counters(key, map[string]int64{"n": 10})
	// The bound is on the result, whatever the direction and whatever bound came before.
	s.limited(key, "n", -1, 5, 10)
	s.limited(key, "n", 0, 9, 10)
	s.add(key, "n", -5, 5, 5)
	s.add(key, "n", 95, 100, 100)
	s.add(key, "n", -300, 1, -200)
}

func expiresAtStart(s *suite) {
	key := s.key("p", "a")
	first := s.clock.Now().Add(10 * time.Second)
	_, err := s.Add(s.ctx(), key, "n", 1, 0, first)
	s.ok(err)
	_, err = s.Add(s.ctx(), key, "n", 1, 0, s.clock.Now().Add(time.Hour))
	s.ok(err)
	_, err = s.Add(s.ctx(), key, "m", 1, 0, time.Time{})
	s.ok(err)
	got, err := s.Get(s.ctx(), key)
	s.ok(err)
	if want := first.Truncate(time.Second); got.Expires != want {
		s.Fatalf("expires = %v, want %v", got.Expires, want)
	}
}

func expiredRestarts(s *suite) {
	key := s.key("p", "a")
	window := s.clock.Now().Add(10 * time.Second).Truncate(time.Second)
	for _, f := range []string{"n", "m"} {
		_, err := s.Add(s.ctx(), key, f, 9, 10, window)
		s.ok(err)
	}
	s.limited(key, "n", 2, 10, 9)
	s.clock.set(window.Add(-time.Nanosecond))
	s.limited(key, "n", 2, 10, 9)
	s.clock.set(window)
	s.limited(key, "n", 11, 10, 0) // over the bound from zero: still refused, still absent
	s.absent(key)
	next := window.Add(10 * time.Second)
	got, err := s.Add(s.ctx(), key, "n", 2, 10, next)
	s.ok(err)
	if got != 2 {
		s.Fatalf("n = %d, want 2: the row had expired", got)
	}
	s.counters(key, map[string]int64{"n": 2}) // the other counter went with the row
	row, err := s.Get(s.ctx(), key)
	s.ok(err)
	if row.Expires != next {
		s.Fatalf("expires = %v, want %v", row.Expires, next)
	}
}
