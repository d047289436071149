// Package storetest is the definition of storage: what a store.Engine must do, as a suite that every engine runs from its own
// test and none may skip a case of. It asks only what DynamoDB and bbolt can both promise, and it never uses a partition twice,
// so that an engine may hand out the same tables each time.
package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/store"
)

// New makes an engine that tells the time by clock and is closed by t.Cleanup.
type New func(t *testing.T, clock func() time.Time) store.Engine

// Run runs the whole contract.
func Run(t *testing.T, newEngine New) {
	t.Helper()
	groups := []struct {
		name  string
		cases []testCase
	}{
		{"write", writeCases()},
		{"transact", transactCases()},
		{"limits", limitCases()},
		{"query", queryCases()},
		{"keys", keyCases()},
		{"expiry", expiryCases()},
		{"add", addCases()},
		{"race", raceCases()},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					clock := &clock{now: start()}
					c.run(&suite{T: t, Engine: newEngine(t, clock.Now), clock: clock, own: rand.Text()})
				})
			}
		})
	}
}

type testCase struct {
	name string
	run  func(*suite)
}

// start lies in the future, so that a database that deletes by the real time leaves the rows to the suite's clock, and
// inside a second, so that rounding shows.
func start() time.Time { return time.Date(2100, 1, 2, 3, 4, 5, 600_000_000, time.UTC) }

// clock stands until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// suite is what a case works with.
type suite struct {
	*testing.T
	store.Engine
	clock *clock
	own   string // makes partitions of this case no one else's
}

func (s *suite) ctx() context.Context { return s.T.Context() }

// key names a row of partition p of this case.
func (s *suite) key(p, sort string) store.Key {
	return store.Key{Table: store.Core, Partition: s.own + p, Sort: sort}
}

func row(key store.Key, revision uint64, data string) store.Item {
	return store.Item{Key: key, Format: 1, Revision: revision, Data: []byte(data)}
}

func (s *suite) put(items ...store.Item) {
	s.Helper()
	for _, item := range items {
		if err := s.Engine.Put(s.ctx(), item, store.Condition{}); err != nil {
			s.Fatalf("put %s: %v", item.Key.Sort, err)
		}
	}
}

// fill puts rows with these sort keys into partition p, data equal to the sort key.
func (s *suite) fill(p string, sorts ...string) {
	s.Helper()
	for _, sort := range sorts {
		s.put(row(s.key(p, sort), 1, sort))
	}
}

// want checks that the row is there as given, apart from counters.
func (s *suite) want(item store.Item) {
	s.Helper()
	got, err := s.Get(s.ctx(), item.Key)
	if err != nil {
		s.Fatalf("get %s: %v", item.Key.Sort, err)
	}
	if got.Key != item.Key || got.Format != item.Format || got.Revision != item.Revision || string(got.Data) != string(item.Data) {
		s.Fatalf("got %s", describe(got))
	}
	if store.Seconds(got.Expires) != store.Seconds(item.Expires) {
		s.Fatalf("expires = %v, want %v", got.Expires, item.Expires)
	}
}

func describe(i store.Item) string {
	return fmt.Sprintf("{%v format %d revision %d data %.40q counters %v}", i.Key, i.Format, i.Revision, i.Data, i.Counters)
}

func (s *suite) absent(key store.Key) {
	s.Helper()
	if got, err := s.Get(s.ctx(), key); !errors.Is(err, store.ErrNotFound) {
		s.Fatalf("get %q = %s, %v, want ErrNotFound", key.Sort, describe(got), err)
	}
}

func (s *suite) is(err, target error) {
	s.Helper()
	if !errors.Is(err, target) {
		s.Fatalf("err = %v, want %v", err, target)
	}
}

func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("err = %v", err)
	}
}

// conflict checks that err names op index.
func (s *suite) conflict(err error, index int) {
	s.Helper()
	c, ok := errors.AsType[*store.ConflictError](err)
	if !ok || !errors.Is(err, store.ErrConflict) {
		s.Fatalf("err = %v, want a ConflictError", err)
	}
	if c.Index != index {
		s.Fatalf("conflict names op %d, want %d", c.Index, index)
	}
}

// read follows a query to its end and returns the sort keys in the order they came. It insists that every page keeps to its
// limit and that the query ends.
func (s *suite) read(q store.Query) []string {
	s.Helper()
	return sorts(s.items(q))
}

func (s *suite) items(q store.Query) []store.Item {
	s.Helper()
	var all []store.Item
	seen := map[string]bool{q.After: true}
	for range 10_000 {
		page, err := s.Query(s.ctx(), q)
		if err != nil {
			s.Fatalf("query: %v", err)
		}
		if len(page.Items) > q.Limit {
			s.Fatalf("page of %d rows, limit %d", len(page.Items), q.Limit)
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all
		}
		if seen[page.Next] {
			s.Fatalf("Next %q came twice: the query would never end", page.Next)
		}
		seen[page.Next] = true
		q.After = page.Next
	}
	s.Fatal("the query does not end")
	return nil
}

func sorts(items []store.Item) []string {
	out := make([]string, 0, len(items))
	for _, i := range items {
		out = append(out, i.Key.Sort)
	}
	return out
}

func (s *suite) equal(got, want []string) {
	s.Helper()
	if !slices.Equal(got, want) {
		s.Fatalf("got %q\nwant %q", got, want)
	}
}

// all is the query for a whole partition of this case.
func (s *suite) all(p string, limit int) store.Query {
	return store.Query{Table: store.Core, Partition: s.own + p, Limit: limit}
}

// numbered returns sort keys 000 to n-1.
func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%03d", i)
	}
	return out
}

func reversed(in []string) []string {
	out := slices.Clone(in)
	slices.Reverse(out)
	return out
}

// ended is a context that is already done.
func (s *suite) ended() context.Context {
	ctx, cancel := context.WithCancel(s.ctx())
	cancel()
	return ctx
}
