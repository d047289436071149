package storetest

import (
	"slices"
	"time"

	"github.com/buzon-mail/buzon/shared/store"
)

func expiryCases() []testCase {
	return []testCase{
		{"gone at the exact second", exactSecond},
		{"both tables", func(s *suite) {
			for _, table := range []store.Table{store.Core, store.Ephemeral} {
				key := s.key("p", "a")
				key.Table = table
				item := row(key, 1, "x")
				item.Expires = s.clock.Now().Add(10 * time.Second)
				s.put(item)
				s.want(item)
				s.clock.set(item.Expires)
				s.absent(key)
			}
		}},
		{"put already expired", func(s *suite) {
			item := row(s.key("p", "a"), 1, "x")
			item.Expires = s.clock.Now().Add(-time.Hour)
			s.put(item)
			s.absent(item.Key)
			s.equal(s.read(s.all("p", 10)), nil)
		}},
		{"put anew revives", func(s *suite) {
			s.expired("p", "a")
			s.ok(s.Put(s.ctx(), row(s.key("p", "a"), 8, "new"), store.Absent()))
			s.want(row(s.key("p", "a"), 8, "new"))
			s.clock.set(s.clock.Now().Add(24 * time.Hour))
			s.want(row(s.key("p", "a"), 8, "new"))
		}},
		{"expiry can be moved and removed", func(s *suite) {
			item := row(s.key("p", "a"), 1, "x")
			item.Expires = s.clock.Now().Add(10 * time.Second)
			s.put(item)
			item.Expires = s.clock.Now().Add(20 * time.Second)
			s.put(item)
			s.clock.set(s.clock.Now().Add(15 * time.Second))
			s.want(item)
			item.Expires = time.Time{}
			s.put(item)
			s.clock.set(s.clock.Now().Add(time.Hour))
			s.want(item)
		}},
		{"a transaction sees expired as absent", func(s *suite) {
			s.expired("p", "a", "b", "c")
			s.conflict(s.Transact(s.ctx(), store.Check(s.key("p", "a"), store.Absent()), store.Delete(s.key("p", "b"), store.Exists())), 1)
			s.ok(s.Transact(s.ctx(),
				store.Check(s.key("p", "a"), store.Absent()),
				store.Put(row(s.key("p", "b"), 1, "new"), store.Absent()),
				store.Delete(s.key("p", "c"), store.Absent()),
			))
			s.equal(s.read(s.all("p", 10)), []string{"b"})
		}},
		{"expired rows amid live ones", amidLive},
		{"a query reads at most four times its limit", boundedReads},
		{"nothing but expired rows ends", func(s *suite) {
			s.expired("p", numbered(30)...)
			for _, limit := range []int{1, 2, 7, 100} {
				for _, descending := range []bool{false, true} {
					q := s.all("p", limit)
					q.Descending = descending
					s.equal(s.read(q), nil)
				}
			}
		}},
	}
}

// expired puts rows whose time has come.
func (s *suite) expired(p string, sorts ...string) {
	s.Helper()
	for _, sort := range sorts {
		item := row(s.key(p, sort), 1, sort)
		item.Expires = s.clock.Now()
		s.put(item)
	}
}

func exactSecond(s *suite) {
	item := row(s.key("p", "a"), 1, "x")
	item.Expires = s.clock.Now().Add(30 * time.Second).Truncate(time.Second).Add(700 * time.Millisecond)
	s.put(item)
	second := item.Expires.Truncate(time.Second) // fractions are cut down
	s.clock.set(second.Add(-time.Nanosecond))
	s.want(item)
	s.conflict(s.Put(s.ctx(), item, store.Absent()), 0)
	s.equal(s.read(s.all("p", 1)), []string{"a"})

	s.clock.set(second)
	s.absent(item.Key)
	s.equal(s.read(s.all("p", 1)), nil)
	s.conflict(s.Delete(s.ctx(), item.Key, store.Exists()), 0)
	s.conflict(s.Put(s.ctx(), item, store.RevisionIs(1)), 0)
	s.ok(s.Transact(s.ctx(), store.Check(item.Key, store.Absent())))

	// A clock that goes back shows the row again: nothing was decided by a read.
	s.clock.set(second.Add(-time.Second))
	s.want(item)
}

func amidLive(s *suite) {
	var live []string
	for i, sort := range numbered(60) {
		if i%10 < 3 || i >= 40 && i < 55 {
			s.expired("p", sort)
		} else {
			s.fill("p", sort)
			live = append(live, sort)
		}
	}
	for _, limit := range []int{1, 2, 3, 5, 60} {
		q := s.all("p", limit)
		s.equal(s.read(q), live)
		q.Descending = true
		s.equal(s.read(q), reversed(live))
		q.From, q.To = "005", "058"
		s.equal(s.read(q), reversed(slices.DeleteFunc(slices.Clone(live), func(sort string) bool { return sort < "005" || sort >= "058" })))
	}
}

func boundedReads(s *suite) {
	s.expired("p", numbered(20)...)
	s.fill("p", "live")
	const limit = 4
	for _, descending := range []bool{false, true} {
		q := s.all("p", limit)
		q.Descending = descending
		if descending {
			q.To = "live" // the live row lies at the other end then
			s.fill("p", "#live")
		}
		page, err := s.Query(s.ctx(), q)
		s.ok(err)
		if len(page.Items) != 0 || page.Next == "" {
			s.Fatalf("descending %t: page of %q, Next %q: it read more than %d rows", descending, sorts(page.Items), page.Next, store.MaxReads*limit)
		}
		if got := s.read(q); len(got) != 1 {
			s.Fatalf("descending %t: got %q, want the live row", descending, got)
		}
	}
}
