package store_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/buzon-mail/buzon/shared/store"
)

func TestSum(t *testing.T) {
	for _, c := range []struct {
		name              string
		value, delta, max int64
		want              int64
		ok                bool
	}{
		{"plain", 2, 3, 0, 5, true},
		{"to the bound", 2, 3, 5, 5, true},
		{"over the bound", 2, 3, 4, 2, false},
		{"down but still over", 10, -1, 5, 10, false},
		{"down under the bound", 10, -6, 5, 4, true},
		{"int64 upwards", math.MaxInt64, 1, 0, math.MaxInt64, false},
		{"int64 downwards", math.MinInt64, -1, 0, math.MinInt64, false},
		{"smallest delta", -1, math.MinInt64, 0, -1, false},
		{"smallest delta fits", 0, math.MinInt64, 0, math.MinInt64, true},
		{"ends meet", math.MinInt64, math.MaxInt64, 0, -1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := store.Sum(c.value, c.delta, c.max); got != c.want || ok != c.ok {
				t.Errorf("Sum = %d, %t, want %d, %t", got, ok, c.want, c.ok)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	type note struct {
		Text string `json:"text"`
	}
	key := store.Key{Table: store.Core, Partition: "p", Sort: "s"}
	item, err := store.Encode(key, 2, 7, note{"hi"})
	if err != nil || item.Key != key || item.Format != 2 || item.Revision != 7 {
		t.Fatalf("Encode = %v, %v", item, err)
	}
	for known := uint8(2); known < 4; known++ {
		if got, err := store.Decode[note](item, known); err != nil || got.Text != "hi" {
			t.Errorf("Decode, format 2 known to %d = %v, %v", known, got, err)
		}
	}
	if _, err := store.Decode[note](item, 1); !errors.Is(err, store.ErrFormat) {
		t.Errorf("newer row: %v, want ErrFormat", err)
	}
	item.Data = []byte(`{"text":"half`)
	if got, err := store.Decode[note](item, 2); err == nil || got.Text != "" {
		t.Errorf("damaged row = %v, %v, want an error", got, err)
	}
	if _, err := store.Encode(key, 1, 0, func() {}); err == nil {
		t.Error("a function was encoded")
	}
}

// Keys hold addresses and errors are logged.
func TestErrorsNameNoKeys(t *testing.T) {
	key := store.Key{Table: store.Core, Partition: "secret@acme.test\x00", Sort: "s"}
	if err := key.Validate(); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("err = %v", err)
	}
	if err := (&store.ConflictError{Index: 3}); !errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), "op 3") {
		t.Errorf("err = %v", err)
	}
}

// FuzzPrefix checks that the range of a prefix holds exactly the keys that start with it.
func FuzzPrefix(f *testing.F) {
	f.Add("a", "ab")
	f.Add("a\U0010FFFF", "b")
	f.Add("\uD7FF", "\uE000")
	f.Add("\U0010FFFF\U0010FFFF", "\U0010FFFF")
	f.Add("\x7f", "\u0080")
	f.Fuzz(func(t *testing.T, prefix, key string) {
		if !utf8.ValidString(prefix) || !utf8.ValidString(key) {
			return
		}
		from, to := store.Prefix(prefix)
		if !utf8.ValidString(to) {
			t.Fatalf("to = %q", to)
		}
		in := key >= from && (to == "" || key < to)
		if in != strings.HasPrefix(key, prefix) {
			t.Fatalf("prefix %q, key %q: in range [%q, %q) is %t", prefix, key, from, to, in)
		}
	})
}

// FuzzNormal checks Normal against a plain reading of what a query means.
func FuzzNormal(f *testing.F) {
	f.Add("b", "f", "d", "e", false)
	f.Add("b", "f", "a", "c", false)
	f.Add("b", "f", "z", "c", true)
	f.Add("", "", "", "x", true)
	f.Add("f", "b", "", "c", false)
	f.Fuzz(func(t *testing.T, from, to, after, key string, descending bool) {
		matches := func(q store.Query) bool {
			ahead := q.After == "" || key > q.After
			if q.Descending {
				ahead = q.After == "" || key < q.After
			}
			return key >= q.From && (q.To == "" || key < q.To) && ahead
		}
		q := store.Query{From: from, To: to, After: after, Descending: descending}
		n, some := q.Normal()
		if want := matches(q); (some && matches(n)) != want {
			t.Fatalf("%+v: key %q matches is %t; normal %+v, %t", q, key, want, n, some)
		}
		if some && n.After != "" && (n.After < from || to != "" && n.After >= to) {
			t.Fatalf("%+v: After %q is outside the range", q, n.After)
		}
	})
}
