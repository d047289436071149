package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/buzon-mail/buzon/shared/store"
)

func limitCases() []testCase {
	return []testCase{
		{"bad keys are refused everywhere", badKeys},
		{"keys at their bounds", func(s *suite) {
			long := strings.Repeat("k", store.MaxKeyPart)
			key := store.Key{Table: store.Core, Partition: s.own + long[len(s.own):], Sort: long}
			s.put(row(key, 1, "x"))
			s.want(row(key, 1, "x"))
			s.equal(s.read(store.Query{Table: store.Core, Partition: key.Partition, From: long, Limit: 1}), []string{long})
		}},
		{"format 0", func(s *suite) {
			item := row(s.key("p", "a"), 1, "")
			item.Format = 0
			s.refused(item, store.ErrInvalid)
		}},
		{"counters in a put", func(s *suite) {
			item := row(s.key("p", "a"), 1, "")
			item.Counters = map[string]int64{"n": 1}
			s.refused(item, store.ErrInvalid)
		}},
		{"expiry outside the calendar", func(s *suite) {
			for _, at := range []time.Time{time.Unix(0, 0), time.Unix(-5, 0), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
				item := row(s.key("p", "a"), 1, "")
				item.Expires = at
				s.refused(item, store.ErrInvalid)
			}
		}},
		{"an item at the bound, and one byte over", itemSize},
		{"a transaction of no items", func(s *suite) { s.is(s.Transact(s.ctx()), store.ErrInvalid) }},
		{"a transaction of 51 items", func(s *suite) {
			var ops []store.Op
			for i := range store.MaxTransactionItems + 1 {
				ops = append(ops, store.Put(row(s.key("p", fmt.Sprint(i)), 1, ""), store.Condition{}))
			}
			s.is(s.Transact(s.ctx(), ops...), store.ErrInvalid)
			s.equal(s.read(s.all("p", 100)), nil)
		}},
		{"a transaction at 3 MB, and over", transactionSize},
		{"one item twice", oneItemTwice},
		{"ops that say nothing", func(s *suite) {
			s.fill("p", "a")
			s.is(s.Transact(s.ctx(), store.Op{}), store.ErrInvalid)
			s.is(s.Transact(s.ctx(), store.Delete(s.key("p", "a"), store.Exists()), store.Op{}), store.ErrInvalid)
			s.is(s.Transact(s.ctx(), store.Check(s.key("p", "a"), store.Condition{})), store.ErrInvalid)
			s.want(row(s.key("p", "a"), 1, "a"))
		}},
		{"an invalid op beside good ones changes nothing", func(s *suite) {
			bad := row(s.key("p", "b"), 1, "")
			bad.Format = 0
			s.is(s.Transact(s.ctx(), store.Put(row(s.key("p", "a"), 1, ""), store.Absent()), store.Put(bad, store.Absent())), store.ErrInvalid)
			s.absent(s.key("p", "a"))
		}},
		{"query limits", func(s *suite) {
			s.fill("p", "a")
			for _, n := range []int{-1, 0, store.MaxLimit + 1, 1 << 40} {
				_, err := s.Query(s.ctx(), s.all("p", n))
				s.is(err, store.ErrInvalid)
			}
			s.equal(s.read(s.all("p", store.MaxLimit)), []string{"a"})
		}},
		{"bad bounds of a range", func(s *suite) {
			for _, bad := range []string{"\xff", "a\x00", strings.Repeat("x", store.MaxKeyPart+1)} {
				for _, set := range []func(*store.Query){
					func(q *store.Query) { q.From = bad }, func(q *store.Query) { q.To = bad }, func(q *store.Query) { q.After = bad },
				} {
					q := s.all("p", 1)
					set(&q)
					_, err := s.Query(s.ctx(), q)
					s.is(err, store.ErrInvalid)
				}
			}
		}},
		{"bad arguments of add", badAdds},
	}
}

func (s *suite) refused(item store.Item, target error) {
	s.Helper()
	s.is(s.Put(s.ctx(), item, store.Condition{}), target)
	s.is(s.Transact(s.ctx(), store.Put(item, store.Condition{})), target)
	s.absent(item.Key)
}

func badKeys(s *suite) {
	long := strings.Repeat("k", store.MaxKeyPart+1)
	for name, key := range map[string]store.Key{
		"no table":             {Partition: "p", Sort: "s"},
		"unknown table":        {Table: store.Ephemeral + 1, Partition: "p", Sort: "s"},
		"no partition":         {Table: store.Core, Sort: "s"},
		"no sort":              {Table: store.Core, Partition: "p"},
		"partition too long":   {Table: store.Core, Partition: long, Sort: "s"},
		"sort too long":        {Table: store.Core, Partition: "p", Sort: long},
		"partition not UTF-8":  {Table: store.Core, Partition: "p\xff", Sort: "s"},
		"sort not UTF-8":       {Table: store.Core, Partition: "p", Sort: "\xc3\x28"},
		"NUL in the partition": {Table: store.Core, Partition: "p\x00", Sort: "s"},
		"NUL in the sort":      {Table: store.Core, Partition: "p", Sort: "\x00"},
	} {
		_, get := s.Get(s.ctx(), key)
		_, add := s.Add(s.ctx(), key, "n", 1, 0, time.Time{})
		for act, err := range map[string]error{
			"get": get, "add": add,
			"put":    s.Put(s.ctx(), row(key, 1, ""), store.Condition{}),
			"delete": s.Delete(s.ctx(), key, store.Condition{}),
			"check":  s.Transact(s.ctx(), store.Check(key, store.Absent())),
		} {
			if !errors.Is(err, store.ErrInvalid) {
				s.Errorf("%s with %s: %v, want ErrInvalid", act, name, err)
			}
		}
		if key.Sort == "s" {
			if _, err := s.Query(s.ctx(), store.Query{Table: key.Table, Partition: key.Partition, Limit: 1}); !errors.Is(err, store.ErrInvalid) {
				s.Errorf("query with %s: %v, want ErrInvalid", name, err)
			}
		}
	}
}

// sized returns a row of exactly n bytes as the bounds count them.
func (s *suite) sized(sort string, n int) store.Item {
	item := row(s.key("p", sort), 1, "")
	item.Data = []byte(strings.Repeat(sort[:1], n-item.Size()))
	return item
}

func itemSize(s *suite) {
	full := s.sized("a", store.MaxItemSize)
	s.put(full)
	s.want(full)
	s.refused(s.sized("b", store.MaxItemSize+1), store.ErrTooLarge)
	s.is(store.ErrTooLarge, store.ErrInvalid)
	s.is(s.Put(s.ctx(), s.sized("a", store.MaxItemSize+1), store.Condition{}), store.ErrTooLarge)
	s.want(full)
}

func transactionSize(s *suite) {
	var ops []store.Op
	left := store.MaxTransactionSize
	for i := 0; left > 0; i++ {
		n := min(left, 320<<10)
		ops = append(ops, store.Put(s.sized(string(rune('a'+i)), n), store.Absent()))
		left -= n
	}
	over := append(append([]store.Op{}, ops...), store.Delete(s.key("p", "z"), store.Condition{}))
	s.is(s.Transact(s.ctx(), over...), store.ErrTooLarge)
	s.equal(s.read(s.all("p", 100)), nil)
	s.ok(s.Transact(s.ctx(), ops...))
	for _, op := range ops {
		s.want(op.Item())
	}
}

func oneItemTwice(s *suite) {
	s.fill("p", "a")
	eph := s.key("p", "a")
	eph.Table = store.Ephemeral
	a := s.key("p", "a")
	for name, ops := range map[string][]store.Op{
		"two puts":         {store.Put(row(a, 2, ""), store.Condition{}), store.Put(row(a, 3, ""), store.Condition{})},
		"check and put":    {store.Check(a, store.Exists()), store.Put(row(a, 2, ""), store.Condition{})},
		"put and delete":   {store.Put(row(a, 2, ""), store.Condition{}), store.Delete(a, store.Condition{})},
		"with one between": {store.Delete(a, store.Condition{}), store.Put(row(s.key("p", "b"), 1, ""), store.Condition{}), store.Check(a, store.Exists())},
	} {
		if err := s.Transact(s.ctx(), ops...); !errors.Is(err, store.ErrInvalid) {
			s.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	s.want(row(a, 1, "a"))
	// The same key in the other table is another item.
	s.ok(s.Transact(s.ctx(), store.Put(row(a, 2, "x"), store.Condition{}), store.Put(row(eph, 2, "x"), store.Condition{})))
}

func badAdds(s *suite) {
	key := s.key("p", "a")
	for name, act := range map[string]func() (int64, error){
		"no field": func() (int64, error) { return s.Add(s.ctx(), key, "", 1, 0, time.Time{}) },
		"long field": func() (int64, error) {
			return s.Add(s.ctx(), key, strings.Repeat("f", store.MaxField+1), 1, 0, time.Time{})
		},
		"field not UTF-8": func() (int64, error) { return s.Add(s.ctx(), key, "\xff", 1, 0, time.Time{}) },
		"negative max":    func() (int64, error) { return s.Add(s.ctx(), key, "n", -1, -1, time.Time{}) },
		"expiry in 1969":  func() (int64, error) { return s.Add(s.ctx(), key, "n", 1, 0, time.Unix(-1, 0)) },
	} {
		if _, err := act(); !errors.Is(err, store.ErrInvalid) {
			s.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	s.absent(key)
}
