package storetest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/buzon-mail/buzon/shared/store"
)

const racers = 16

func raceCases() []testCase {
	return []testCase{
		{"one of many puts a nonce", func(s *suite) {
			s.oneWins(func(n, i int) error {
				return s.Put(s.ctx(), row(s.key("nonce", fmt.Sprint(n)), uint64(i), ""), store.Absent()) //nolint:gosec // small
			})
		}},
		{"one of many deletes a code", func(s *suite) {
			for n := range rounds {
				s.put(row(s.key("code", fmt.Sprint(n)), 1, ""))
			}
			s.oneWins(func(n, _ int) error { return s.Delete(s.ctx(), s.key("code", fmt.Sprint(n)), store.Exists()) })
		}},
		{"one of many takes an expired nonce", func(s *suite) {
			for n := range rounds {
				s.expired("nonce", fmt.Sprint(n))
			}
			s.oneWins(func(n, _ int) error {
				return s.Put(s.ctx(), row(s.key("nonce", fmt.Sprint(n)), 1, ""), store.Absent())
			})
		}},
		{"one of many acts with a nonce, and the losers leave nothing", actsWithNonce},
		{"one of many moves a row", func(s *suite) {
			for n := range rounds {
				s.put(row(s.key("from", fmt.Sprint(n)), 1, ""))
			}
			s.oneWins(func(n, i int) error {
				return s.Transact(s.ctx(),
					store.Delete(s.key("from", fmt.Sprint(n)), store.RevisionIs(1)),
					store.Put(row(s.key("to", fmt.Sprintf("%d.%d", n, i)), 1, ""), store.Absent()))
			})
			if got := s.read(s.all("to", 100)); len(got) != rounds {
				s.Fatalf("%d rows after %d moves: %q", len(got), rounds, got)
			}
		}},
		{"adds sum exactly", func(s *suite) {
			s.many(func(i int) error {
				for range rounds {
					if _, err := s.Add(s.ctx(), s.key("p", "a"), "n", int64(i), 0, time.Time{}); err != nil {
						return err
					}
				}
				return nil
			})
			s.counters(s.key("p", "a"), map[string]int64{"n": rounds * racers * (racers - 1) / 2})
		}},
		{"adds never pass max", addsUnderMax},
		{"increments by revision lose none", incrementsByRevision},
		{"readers never see half a transaction", halfTransactions},
	}
}

const rounds = 10

// many runs act on as many goroutines as there are racers, all let go at once.
func (s *suite) many(act func(i int) error) {
	s.Helper()
	var wg sync.WaitGroup
	gate := make(chan struct{})
	errs := make([]error, racers)
	for i := range racers {
		wg.Go(func() {
			<-gate
			errs[i] = act(i)
		})
	}
	close(gate)
	wg.Wait()
	s.ok(errors.Join(errs...))
}

// oneWins has every racer try act(n) in each round: exactly one may succeed, the others must meet a conflict.
func (s *suite) oneWins(act func(n, i int) error) {
	s.Helper()
	var won [rounds]atomic.Int32
	s.many(func(i int) error {
		for n := range rounds {
			switch err := act(n, i); {
			case err == nil:
				won[n].Add(1)
			case !errors.Is(err, store.ErrConflict):
				return err
			}
		}
		return nil
	})
	for n := range rounds {
		if got := won[n].Load(); got != 1 {
			s.Errorf("round %d: %d winners, want exactly 1", n, got)
		}
	}
}

func actsWithNonce(s *suite) {
	s.oneWins(func(n, i int) error {
		nonce := s.key("nonce", fmt.Sprint(n))
		nonce.Table = store.Ephemeral
		return s.Transact(s.ctx(),
			store.Put(row(s.key("act", fmt.Sprintf("%d.%d", n, i)), 1, ""), store.Absent()),
			store.Put(row(nonce, 1, ""), store.Absent()))
	})
	if got := s.read(s.all("act", 100)); len(got) != rounds {
		s.Fatalf("%d acts for %d nonces: %q", len(got), rounds, got)
	}
}

func addsUnderMax(s *suite) {
	const bound = racers * rounds / 3
	var granted atomic.Int64
	s.many(func(int) error {
		for range rounds {
			switch _, err := s.Add(s.ctx(), s.key("p", "a"), "n", 1, bound, s.clock.Now().Add(time.Hour)); {
			case err == nil:
				granted.Add(1)
			case !errors.Is(err, store.ErrLimit):
				return err
			}
		}
		return nil
	})
	if got := granted.Load(); got != bound {
		s.Fatalf("%d grants, want %d", got, bound)
	}
	s.counters(s.key("p", "a"), map[string]int64{"n": bound})
}

func incrementsByRevision(s *suite) {
	key := s.key("p", "a")
	s.put(row(key, 0, "0"))
	s.many(func(int) error {
		for range rounds {
			for {
				item, err := s.Get(s.ctx(), key)
				if err != nil {
					return err
				}
				n, err := strconv.Atoi(string(item.Data))
				if err != nil {
					return err
				}
				err = s.Put(s.ctx(), row(key, item.Revision+1, strconv.Itoa(n+1)), store.RevisionIs(item.Revision))
				if err == nil {
					break
				}
				if !errors.Is(err, store.ErrConflict) {
					return err
				}
			}
		}
		return nil
	})
	s.want(row(key, racers*rounds, strconv.Itoa(racers*rounds)))
}

// halfTransactions keeps two rows equal by transactions while a checker demands, in a transaction, that they are.
func halfTransactions(s *suite) {
	a, b := s.key("p", "a"), s.key("q", "b")
	s.put(row(a, 0, ""), row(b, 0, ""))
	s.many(func(i int) error {
		for range rounds {
			item, err := s.Get(s.ctx(), a)
			if err != nil {
				return err
			}
			n := item.Revision
			if i%2 == 0 {
				err = s.Transact(s.ctx(), store.Put(row(a, n+1, ""), store.RevisionIs(n)), store.Put(row(b, n+1, ""), store.RevisionIs(n)))
			} else {
				// If a still has n then b must too: a conflict may only ever name op 0.
				err = s.Transact(s.ctx(), store.Check(a, store.RevisionIs(n)), store.Check(b, store.RevisionIs(n)))
			}
			if c, ok := errors.AsType[*store.ConflictError](err); ok && c.Index != 0 {
				return fmt.Errorf("rows differ: %w", err)
			}
			if err != nil && !errors.Is(err, store.ErrConflict) {
				return err
			}
		}
		return nil
	})
}
