package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/buzon-mail/buzon/shared/store"
)

func queryCases() []testCase {
	return []testCase{
		{"an empty partition", func(s *suite) {
			page, err := s.Query(s.ctx(), s.all("p", 10))
			s.ok(err)
			if len(page.Items) != 0 || page.Next != "" {
				s.Fatalf("page = %d rows, Next %q", len(page.Items), page.Next)
			}
		}},
		{"every limit, both directions", everyLimit},
		{"ranges", ranges},
		{"After outside the range", afterOutside},
		{"After a row that is gone", func(s *suite) {
			s.fill("p", "a", "c", "e")
			q := s.all("p", 10)
			q.After = "b"
			s.equal(s.read(q), []string{"c", "e"})
			q.Descending, q.After = true, "d"
			s.equal(s.read(q), []string{"c", "a"})
		}},
		{"pages are stable while rows come and go", stablePages},
		{"a page of large rows ends by its bytes", largePages},
		{"prefix ranges", prefixRanges},
		{"each row instead of a page", eachRow},
		{"fill makes full pages", func(s *suite) {
			s.fill("p", numbered(12)...)
			page, err := store.Fill(s.ctx(), s.Engine, s.all("p", 5), 10)
			s.ok(err)
			s.equal(sorts(page.Items), numbered(5))
			q := s.all("p", 5)
			q.After = page.Next
			page, err = store.Fill(s.ctx(), s.Engine, q, 10)
			s.ok(err)
			s.equal(sorts(page.Items), numbered(12)[5:10])
		}},
	}
}

// eachRow: a query that hands its rows over gives the same ones, in the same order and pages, as one that returns them.
func eachRow(s *suite) {
	s.fill("p", numbered(9)...)
	s.fill("o", "other")
	for _, descending := range []bool{false, true} {
		for _, limit := range []int{1, 2, 4, 9, 10} {
			q := s.all("p", limit)
			q.Descending = descending
			want := s.items(q)
			s.equal(sorts(s.each(q)), sorts(want))
			for i, item := range s.each(q) {
				if item.Key != want[i].Key || item.Revision != want[i].Revision || !bytes.Equal(item.Data, want[i].Data) {
					s.Fatalf("row %d is %+v, want %+v", i, item, want[i])
				}
			}
		}
	}
	q, calls, stop := s.all("p", 5), 0, errors.New("enough")
	q.Each = func(*store.Item) error {
		if calls++; calls == 3 {
			return stop
		}
		return nil
	}
	if page, err := s.Query(s.ctx(), q); !errors.Is(err, stop) || calls != 3 || len(page.Items) != 0 {
		s.Fatalf("%d calls, %d rows, %v: the error of the third row ends the query", calls, len(page.Items), err)
	}
	n := 0
	q.Limit, q.Each = 7, func(*store.Item) error { n++; return nil }
	page, err := store.Fill(s.ctx(), s.Engine, q, 3)
	s.ok(err)
	if n != 7 || len(page.Items) != 0 || page.Next != "006" {
		s.Fatalf("filled %d, %d rows, Next %q", n, len(page.Items), page.Next)
	}
}

// each follows a query that hands its rows over to its end.
func (s *suite) each(q store.Query) (all []store.Item) {
	s.Helper()
	q.Each = func(item *store.Item) error {
		kept := *item
		kept.Data = slices.Clone(item.Data)
		all = append(all, kept)
		return nil
	}
	if returned := s.items(q); len(returned) > 0 {
		s.Fatalf("%d rows were handed over and returned", len(returned))
	}
	return all
}

func everyLimit(s *suite) {
	want := numbered(9)
	mixed := slices.Clone(want)
	slices.Reverse(mixed)
	s.fill("p", mixed...)
	s.fill("o", "other")
	for _, limit := range []int{1, 2, 3, 8, 9, 10, 1000} {
		q := s.all("p", limit)
		s.equal(s.read(q), want)
		q.Descending = true
		s.equal(s.read(q), reversed(want))
	}
}

func ranges(s *suite) {
	s.fill("p", "b", "d", "f", "h")
	for _, c := range []struct {
		name     string
		from, to string
		after    [2]string // ascending, descending
		want     string    // ascending
		rest     [2]string // what follows after
	}{
		{"open", "", "", [2]string{"d", "f"}, "bdfh", [2]string{"fh", "db"}},
		{"from is inclusive", "d", "", [2]string{"d", "f"}, "dfh", [2]string{"fh", "d"}},
		{"to is exclusive", "", "f", [2]string{"b", "d"}, "bd", [2]string{"d", "b"}},
		{"both", "d", "h", [2]string{"d", "f"}, "df", [2]string{"f", "d"}},
		{"bounds between rows", "c", "g", [2]string{"d", "f"}, "df", [2]string{"f", "d"}},
		{"one row", "d", "e", [2]string{"d", "d"}, "d", [2]string{"", ""}},
		{"between two rows", "c", "d", [2]string{"c", "c"}, "", [2]string{"", ""}},
		{"equal bounds", "d", "d", [2]string{"d", "d"}, "", [2]string{"", ""}},
		{"swapped bounds", "h", "b", [2]string{"d", "d"}, "", [2]string{"", ""}},
		{"before all", "", "a", [2]string{"", ""}, "", [2]string{"", ""}},
		{"behind all", "i", "", [2]string{"", ""}, "", [2]string{"", ""}},
	} {
		for i, descending := range []bool{false, true} {
			want, rest := strings.Split(c.want, ""), strings.Split(c.rest[i], "")
			if c.want == "" {
				want = nil
			}
			if c.rest[i] == "" {
				rest = nil
			}
			if descending {
				slices.Reverse(want)
			}
			for _, limit := range []int{1, 2, 10} {
				q := s.all("p", limit)
				q.From, q.To, q.Descending = c.from, c.to, descending
				if got := s.read(q); !slices.Equal(got, want) {
					s.Errorf("%s, descending %t, limit %d: got %q, want %q", c.name, descending, limit, got, want)
				}
				if q.After = c.after[i]; q.After == "" {
					continue
				}
				if got := s.read(q); !slices.Equal(got, rest) {
					s.Errorf("%s, descending %t, limit %d, after %q: got %q, want %q", c.name, descending, limit, q.After, got, rest)
				}
			}
		}
	}
}

func afterOutside(s *suite) {
	s.fill("p", "b", "d", "f", "h")
	for _, c := range []struct {
		after      string
		descending bool
		want       []string
	}{
		{"a", false, []string{"d", "f"}},
		{"b", false, []string{"d", "f"}},
		{"g", false, nil},
		{"z", false, nil},
		{"z", true, []string{"f", "d"}},
		{"g", true, []string{"f", "d"}},
		{"d", true, nil},
		{"a", true, nil},
	} {
		q := s.all("p", 10)
		q.From, q.To, q.After, q.Descending = "d", "g", c.after, c.descending
		if got := s.read(q); !slices.Equal(got, c.want) {
			s.Errorf("after %q, descending %t: got %q, want %q", c.after, c.descending, got, c.want)
		}
	}
}

// stablePages adds and deletes rows between pages: a row that is there throughout comes exactly once, and rows behind the
// reader don't come.
func stablePages(s *suite) {
	for _, descending := range []bool{false, true} {
		p := fmt.Sprint(descending)
		fixed := numbered(20)
		s.fill(p, fixed...)
		q := s.all(p, 3)
		q.Descending = descending
		var got []string
		for n := 0; ; n++ {
			page, err := s.Query(s.ctx(), q)
			s.ok(err)
			got = append(got, sorts(page.Items)...)
			if page.Next == "" {
				break
			}
			if n > 100 {
				s.Fatal("the query does not end")
			}
			q.After = page.Next
			behind := page.Next + "-" // right beside the reader: ascending it lies ahead, descending behind
			s.fill(p, behind, fmt.Sprintf("%03d+", n))
			s.ok(s.Delete(s.ctx(), s.key(p, page.Next), store.Condition{})) // the very row the cursor names
			if n == 2 {
				s.ok(s.Delete(s.ctx(), s.key(p, "010"), store.Condition{})) // ahead in both directions
			}
		}
		var kept []string
		for _, sort := range got {
			if slices.Contains(fixed, sort) {
				kept = append(kept, sort)
			}
		}
		want := slices.DeleteFunc(slices.Clone(fixed), func(sort string) bool { return sort == "010" })
		if descending {
			slices.Reverse(want)
		}
		s.equal(kept, want)
		ordered := slices.Clone(got)
		slices.Sort(ordered)
		if descending {
			slices.Reverse(ordered)
		}
		s.equal(got, slices.Compact(ordered))
	}
}

func largePages(s *suite) {
	for _, sort := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		s.put(s.sized(sort, 300<<10))
	}
	page, err := s.Query(s.ctx(), s.all("p", 8))
	s.ok(err)
	if n := len(page.Items); n == 0 || n > 4 || page.Next == "" {
		s.Fatalf("page of %d rows of 300 KB, Next %q: want 1 to 4 and more to come", n, page.Next)
	}
	s.equal(s.read(s.all("p", 8)), []string{"a", "b", "c", "d", "e", "f", "g", "h"})
}

func prefixRanges(s *suite) {
	s.fill("p", "a", "ab", "ab#1", "ab#2", "ab\x7f", "abz", "ab\U0010FFFF", "ac", "b", "\uD7FF1", "\uE0001")
	for prefix, want := range map[string][]string{
		"ab":           {"ab", "ab#1", "ab#2", "abz", "ab\x7f", "ab\U0010FFFF"},
		"ab#":          {"ab#1", "ab#2"},
		"ab\U0010FFFF": {"ab\U0010FFFF"},
		"\uD7FF":       {"\uD7FF1"},
		"zz":           nil,
	} {
		q := s.all("p", 2)
		q.From, q.To = store.Prefix(prefix)
		s.equal(s.read(q), want)
		q.Descending = true
		s.equal(s.read(q), reversed(want))
	}
}
