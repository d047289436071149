package storetest

import (
	"slices"
	"strings"

	"github.com/buzon-mail/buzon/shared/store"
)

// awkward are key parts that a careless encoding confuses, escapes or reorders.
func awkward() []string {
	return []string{
		"a", "ab", "a#b", "a#", "#", "##", "a\x01b", "\x01", "a/b", "a|b", "a\tb", "a\nb", " ", "a ", "%00", "a%2fb", `a\b`, `"a"`,
		"\u00e9", "e\u0301", "\u65e5\u672c\u8a9e", "\U0001F4EC", "\uFFFD", "\uFFFF", "\U0010FFFF", "\u202e", "A", "0", "00", "~", "\x7f",
		strings.Repeat("\U0001F4EC", store.MaxKeyPart/8),
	}
}

func keyCases() []testCase {
	return []testCase{
		{"awkward sort keys keep apart and in byte order", func(s *suite) {
			want := awkward()
			s.fill("p", want...)
			for _, sort := range want {
				s.want(row(s.key("p", sort), 1, sort))
			}
			slices.Sort(want)
			s.equal(s.read(s.all("p", 5)), want)
			q := s.all("p", 5)
			q.Descending = true
			s.equal(s.read(q), reversed(want))
		}},
		{"awkward partitions never bleed", func(s *suite) {
			for _, p := range awkward() {
				s.put(row(s.key(p, "same"), 1, p), row(s.key(p, p), 2, p))
			}
			for _, p := range awkward() {
				want := []string{"same", p}
				slices.Sort(want)
				for _, descending := range []bool{false, true} {
					q := s.all(p, 1)
					q.Descending = descending
					if descending {
						slices.Reverse(want)
					}
					for _, item := range s.items(q) {
						if string(item.Data) != p || item.Key.Partition != s.own+p {
							s.Fatalf("partition %q holds a row of %q", p, item.Data)
						}
					}
					s.equal(s.read(q), want)
				}
			}
		}},
		{"the border of partition and sort key is exact", func(s *suite) {
			s.put(row(s.key("a", "bc"), 1, "a|bc"), row(s.key("ab", "c"), 2, "ab|c"))
			s.want(row(s.key("a", "bc"), 1, "a|bc"))
			s.want(row(s.key("ab", "c"), 2, "ab|c"))
			s.absent(s.key("abc", "c"))
			s.ok(s.Delete(s.ctx(), s.key("a", "bc"), store.Exists()))
			s.want(row(s.key("ab", "c"), 2, "ab|c"))
		}},
		{"case matters", func(s *suite) {
			s.fill("p", "a", "A")
			s.ok(s.Delete(s.ctx(), s.key("p", "A"), store.Exists()))
			s.equal(s.read(s.all("p", 10)), []string{"a"})
		}},
	}
}
