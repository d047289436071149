package storetest

import (
	"fmt"

	"github.com/buzon-mail/buzon/shared/store"
)

func transactCases() []testCase {
	return []testCase{
		{"all ops happen", func(s *suite) {
			s.fill("p", "gone", "there")
			eph := s.key("q", "e")
			eph.Table = store.Ephemeral
			s.ok(s.Transact(s.ctx(),
				store.Put(row(s.key("p", "new"), 1, "n"), store.Absent()),
				store.Delete(s.key("p", "gone"), store.RevisionIs(1)),
				store.Check(s.key("p", "there"), store.Exists()),
				store.Put(row(eph, 5, "e"), store.Condition{}),
			))
			s.equal(s.read(s.all("p", 10)), []string{"new", "there"})
			s.want(row(eph, 5, "e"))
		}},
		{"one refusal undoes all, wherever it stands", refusalAnywhere},
		{"the first refusal is named", func(s *suite) {
			s.fill("p", "b", "c")
			err := s.Transact(s.ctx(),
				store.Put(row(s.key("p", "a"), 1, ""), store.Absent()),
				store.Put(row(s.key("p", "b"), 1, ""), store.Absent()),
				store.Delete(s.key("p", "x"), store.Exists()),
				store.Check(s.key("p", "c"), store.RevisionIs(9)),
			)
			s.conflict(err, 1)
			s.absent(s.key("p", "a"))
		}},
		{"a check alone", func(s *suite) {
			s.fill("p", "a")
			s.ok(s.Transact(s.ctx(), store.Check(s.key("p", "a"), store.Exists())))
			s.conflict(s.Transact(s.ctx(), store.Check(s.key("p", "a"), store.Absent())), 0)
			s.want(row(s.key("p", "a"), 1, "a"))
		}},
		{"a refusal in one table undoes the other", func(s *suite) {
			eph := s.key("p", "nonce")
			eph.Table = store.Ephemeral
			s.put(row(eph, 1, "used"))
			s.conflict(s.Transact(s.ctx(),
				store.Put(row(s.key("p", "act"), 1, ""), store.Condition{}),
				store.Put(row(eph, 1, ""), store.Absent()),
			), 1)
			s.absent(s.key("p", "act"))
			s.want(row(eph, 1, "used"))
		}},
		{"fifty items", func(s *suite) {
			ops := make([]store.Op, 0, store.MaxTransactionItems)
			for i := range store.MaxTransactionItems {
				ops = append(ops, store.Put(row(s.key("p", fmt.Sprintf("%03d", i)), 1, ""), store.Absent()))
			}
			s.ok(s.Transact(s.ctx(), ops...))
			s.equal(s.read(s.all("p", 100)), numbered(store.MaxTransactionItems))
			s.conflict(s.Transact(s.ctx(), ops...), 0)
		}},
		{"a row moves between partitions", func(s *suite) {
			s.put(row(s.key("from", "a"), 1, "x"))
			s.ok(s.Transact(s.ctx(),
				store.Delete(s.key("from", "a"), store.RevisionIs(1)),
				store.Put(row(s.key("to", "a"), 2, "x"), store.Absent()),
			))
			s.absent(s.key("from", "a"))
			s.want(row(s.key("to", "a"), 2, "x"))
		}},
	}
}

func refusalAnywhere(s *suite) {
	s.put(row(s.key("p", "taken"), 1, "old"), row(s.key("p", "old"), 1, "old"))
	good := []store.Op{
		store.Put(row(s.key("p", "n1"), 1, ""), store.Absent()),
		store.Delete(s.key("p", "old"), store.Exists()),
		store.Check(s.key("p", "none"), store.Absent()),
		store.Put(row(s.key("p", "n2"), 1, ""), store.Condition{}),
	}
	for name, bad := range map[string]store.Op{
		"put":    store.Put(row(s.key("p", "taken"), 2, "new"), store.Absent()),
		"delete": store.Delete(s.key("p", "taken"), store.RevisionIs(2)),
		"check":  store.Check(s.key("p", "taken"), store.Absent()),
	} {
		for at := range len(good) + 1 {
			ops := append([]store.Op{}, good[:at]...)
			ops = append(append(ops, bad), good[at:]...)
			s.conflict(s.Transact(s.ctx(), ops...), at)
			if got := s.read(s.all("p", 10)); len(got) != 2 {
				s.Fatalf("bad %s at %d left %q", name, at, got)
			}
			s.want(row(s.key("p", "taken"), 1, "old"))
			s.want(row(s.key("p", "old"), 1, "old"))
		}
	}
}
