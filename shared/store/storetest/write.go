package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/buzon-mail/buzon/shared/store"
)

func writeCases() []testCase {
	return []testCase{
		{"get of nothing is not found", func(s *suite) { s.absent(s.key("p", "a")) }},
		{"put is read back whole", putIsReadBack},
		{"put without condition replaces", func(s *suite) {
			s.put(row(s.key("p", "a"), 1, "one"), row(s.key("p", "a"), 7, "two"))
			s.want(row(s.key("p", "a"), 7, "two"))
		}},
		{"the tables are apart", func(s *suite) {
			core, eph := s.key("p", "a"), s.key("p", "a")
			eph.Table = store.Ephemeral
			s.put(row(core, 1, "core"))
			s.absent(eph)
			s.put(row(eph, 2, "eph"))
			s.want(row(core, 1, "core"))
			s.want(row(eph, 2, "eph"))
			s.ok(s.Delete(s.ctx(), core, store.Condition{}))
			s.want(row(eph, 2, "eph"))
		}},
		{"delete of nothing is fine", func(s *suite) {
			s.ok(s.Delete(s.ctx(), s.key("p", "a"), store.Condition{}))
		}},
		{"delete removes", func(s *suite) {
			s.fill("p", "a", "b")
			s.ok(s.Delete(s.ctx(), s.key("p", "a"), store.Condition{}))
			s.absent(s.key("p", "a"))
			s.want(row(s.key("p", "b"), 1, "b"))
		}},
		{"conditions of put", func(s *suite) {
			s.conditions(func(key store.Key, c store.Condition) error {
				return s.Put(s.ctx(), row(key, 9, "new"), c)
			})
		}},
		{"conditions of delete", func(s *suite) {
			s.conditions(func(key store.Key, c store.Condition) error { return s.Delete(s.ctx(), key, c) })
		}},
		{"conditions of check", func(s *suite) {
			s.conditions(func(key store.Key, c store.Condition) error {
				if c.Kind() == store.Always {
					return nil // a check without a condition is refused; see limits
				}
				return s.Transact(s.ctx(), store.Check(key, c))
			})
		}},
		{"a refused write changes nothing", refusedWrite},
		{"a done context changes nothing", doneContext},
		{"an expired deadline changes nothing", func(s *suite) {
			ctx, cancel := context.WithDeadline(s.ctx(), time.Unix(1, 0))
			defer cancel()
			s.is(s.Put(ctx, row(s.key("p", "a"), 1, ""), store.Condition{}), context.DeadlineExceeded)
			s.absent(s.key("p", "a"))
		}},
		{"data is never shared", dataNotShared},
		{"empty data", func(s *suite) {
			s.put(row(s.key("p", "a"), 1, ""))
			s.want(row(s.key("p", "a"), 1, ""))
		}},
		{"revisions use all 64 bits", func(s *suite) {
			s.put(row(s.key("p", "a"), 1<<64-1, "x"))
			s.want(row(s.key("p", "a"), 1<<64-1, "x"))
			s.conflict(s.Put(s.ctx(), row(s.key("p", "a"), 1, ""), store.RevisionIs(1<<64-2)), 0)
			s.ok(s.Put(s.ctx(), row(s.key("p", "a"), 0, "y"), store.RevisionIs(1<<64-1)))
			s.want(row(s.key("p", "a"), 0, "y"))
		}},
		{"a put drops counters", func(s *suite) {
			key := s.key("p", "a")
			_, err := s.Add(s.ctx(), key, "n", 4, 0, time.Time{})
			s.ok(err)
			s.put(row(key, 1, "whole"))
			got, err := s.Get(s.ctx(), key)
			s.ok(err)
			if len(got.Counters) != 0 {
				s.Fatalf("counters = %v after a put, want none", got.Counters)
			}
		}},
	}
}

func putIsReadBack(s *suite) {
	data := make([]byte, 256)
	for i := range data {
		data[i] = byte(i)
	}
	item := store.Item{
		Key: s.key("p", "a"), Format: 255, Revision: 42, Data: data,
		Expires: s.clock.Now().Add(time.Hour),
	}
	s.put(item)
	s.want(item)
	got, err := s.Get(s.ctx(), item.Key)
	s.ok(err)
	// Whole seconds, cut down, in UTC: both engines return the same value.
	if want := item.Expires.Truncate(time.Second); got.Expires != want {
		s.Fatalf("expires = %v, want %v", got.Expires, want)
	}
	page, err := s.Query(s.ctx(), s.all("p", 1))
	s.ok(err)
	if len(page.Items) != 1 || string(page.Items[0].Data) != string(data) || page.Items[0].Format != 255 ||
		page.Items[0].Revision != 42 || page.Items[0].Key != item.Key || page.Items[0].Expires != got.Expires {
		s.Fatalf("query returned %d rows, first %s", len(page.Items), describe(page.Items[0]))
	}
}

// conditions drives act against an absent row, a row of revision 3 and an expired row of revision 3.
func (s *suite) conditions(act func(store.Key, store.Condition) error) {
	s.Helper()
	states := []string{"absent", "live", "expired"}
	for _, c := range []struct {
		name  string
		cond  store.Condition
		holds map[string]bool
	}{
		{"none", store.Condition{}, map[string]bool{"absent": true, "live": true, "expired": true}},
		{"absent", store.Absent(), map[string]bool{"absent": true, "expired": true}},
		{"exists", store.Exists(), map[string]bool{"live": true}},
		{"same revision", store.RevisionIs(3), map[string]bool{"live": true}},
		{"older revision", store.RevisionIs(2), nil},
		{"newer revision", store.RevisionIs(4), nil},
		{"revision zero", store.RevisionIs(0), nil},
	} {
		for _, state := range states {
			key := s.key(c.name, state)
			item := row(key, 3, "old")
			if state == "expired" {
				item.Expires = s.clock.Now()
			}
			if state != "absent" {
				s.put(item)
			}
			err := act(key, c.cond)
			if c.holds[state] && err != nil {
				s.Errorf("condition %s on an %s row: %v, want it to hold", c.name, state, err)
			}
			if conflict, _ := errors.AsType[*store.ConflictError](err); !c.holds[state] && (conflict == nil || conflict.Index != 0) {
				s.Errorf("condition %s on an %s row: %v, want a conflict at 0", c.name, state, err)
			}
		}
	}
}

func refusedWrite(s *suite) {
	s.put(row(s.key("p", "a"), 3, "old"))
	s.conflict(s.Put(s.ctx(), row(s.key("p", "a"), 4, "new"), store.Absent()), 0)
	s.conflict(s.Put(s.ctx(), row(s.key("p", "a"), 4, "new"), store.RevisionIs(2)), 0)
	s.conflict(s.Put(s.ctx(), row(s.key("p", "b"), 4, "new"), store.Exists()), 0)
	s.conflict(s.Delete(s.ctx(), s.key("p", "a"), store.RevisionIs(2)), 0)
	s.conflict(s.Delete(s.ctx(), s.key("p", "a"), store.Absent()), 0)
	s.conflict(s.Delete(s.ctx(), s.key("p", "b"), store.Exists()), 0)
	s.want(row(s.key("p", "a"), 3, "old"))
	s.absent(s.key("p", "b"))
	s.equal(s.read(s.all("p", 10)), []string{"a"})
}

func doneContext(s *suite) {
	s.fill("p", "a")
	ctx := s.ended()
	_, err := s.Get(ctx, s.key("p", "a"))
	s.is(err, context.Canceled)
	_, err = s.Query(ctx, s.all("p", 1))
	s.is(err, context.Canceled)
	s.is(s.Put(ctx, row(s.key("p", "b"), 1, ""), store.Condition{}), context.Canceled)
	s.is(s.Delete(ctx, s.key("p", "a"), store.Condition{}), context.Canceled)
	s.is(s.Transact(ctx, store.Put(row(s.key("p", "c"), 1, ""), store.Absent()), store.Delete(s.key("p", "a"), store.Exists())), context.Canceled)
	_, err = s.Add(ctx, s.key("p", "d"), "n", 1, 0, time.Time{})
	s.is(err, context.Canceled)
	s.equal(s.read(s.all("p", 10)), []string{"a"})
}

func dataNotShared(s *suite) {
	key := s.key("p", "a")
	data := []byte("hello")
	s.ok(s.Put(s.ctx(), store.Item{Key: key, Format: 1, Data: data}, store.Condition{}))
	copy(data, "xxxxx")
	s.want(store.Item{Key: key, Format: 1, Data: []byte("hello")})

	got, err := s.Get(s.ctx(), key)
	s.ok(err)
	copy(got.Data, "yyyyy")
	page, err := s.Query(s.ctx(), s.all("p", 1))
	s.ok(err)
	copy(page.Items[0].Data, "zzzzz")
	s.want(store.Item{Key: key, Format: 1, Data: []byte("hello")})

	// Rows that were read stay what they were when the row changes or goes.
	kept, err := s.Get(s.ctx(), key)
	s.ok(err)
	for range 20 {
		s.put(row(key, 1, "other"))
	}
	s.ok(s.Delete(s.ctx(), key, store.Condition{}))
	if string(kept.Data) != "hello" {
		s.Fatalf("data changed under its reader: %q", kept.Data)
	}
	// An append to one row's data can't reach another's.
	s.fill("q", "a", "b")
	page, err = s.Query(s.ctx(), s.all("q", 2))
	s.ok(err)
	_ = append(page.Items[0].Data, "overflow"...)
	if string(page.Items[1].Data) != "b" {
		s.Fatalf("rows of a page share memory: %q", page.Items[1].Data)
	}
}
