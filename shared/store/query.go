package store

import (
	"context"
	"fmt"
	"unicode/utf8"
)

// Validate checks the query's names and limit.
func (q Query) Validate() error {
	if err := q.Table.validate(); err != nil {
		return err
	}
	if err := validText("partition", q.Partition, 1, MaxKeyPart); err != nil {
		return err
	}
	for _, s := range []string{q.From, q.To, q.After} {
		if err := validText("bound of a range", s, 0, MaxKeyPart); err != nil {
			return err
		}
	}
	if q.Limit < 1 || q.Limit > MaxLimit {
		return fmt.Errorf("%w: limit %d, want 1 to %d", ErrInvalid, q.Limit, MaxLimit)
	}
	return nil
}

// Normal drops an After that lies before the range, and tells false where nothing can match. DynamoDB answers both with an
// error (a start key outside the range; BETWEEN with its bounds swapped), and callers build ranges from outside text.
func (q Query) Normal() (Query, bool) {
	if q.To != "" && q.From >= q.To {
		return q, false
	}
	if q.After == "" {
		return q, true
	}
	below, beyond := q.After < q.From, q.To != "" && q.After >= q.To
	if q.Descending {
		// Nothing is left under the first key of the range.
		if q.After <= q.From {
			return q, false
		}
		below = beyond
	} else if beyond {
		return q, false
	}
	if below {
		q.After = ""
	}
	return q, true
}

// Ready is what every engine does first with a query: nothing for a context that is done, Validate, Normal.
func (q Query) Ready(ctx context.Context) (_ Query, some bool, err error) {
	if err := ctx.Err(); err != nil {
		return q, false, err
	}
	if err := q.Validate(); err != nil {
		return q, false, err
	}
	q, some = q.Normal()
	return q, some, nil
}

// Prefix returns the range, From and To, of the sort keys that start with prefix. (A caller's prefix+"\xff" is not UTF-8
// and refused.)
func Prefix(prefix string) (from, to string) {
	for rest := prefix; rest != ""; {
		r, size := utf8.DecodeLastRuneInString(rest)
		rest = rest[:len(rest)-size]
		switch {
		case r == utf8.MaxRune: // has no successor: carry
		case r == 0xD7FF: // the surrogates that follow are not characters
			return prefix, rest + "\uE000"
		default:
			return prefix, rest + string(r+1)
		}
	}
	return prefix, ""
}

// Fill reads pages until it has q.Limit rows, the end, or has read `pages` pages: for callers who owe their own caller a
// full page, at a bounded cost.
func Fill(ctx context.Context, e Engine, q Query, pages int) (Page, error) {
	var out Page
	want, found := q.Limit, 0
	if each := q.Each; each != nil {
		q.Each = func(item *Item) error { found++; return each(item) }
	}
	for range max(pages, 1) {
		q.Limit = want - found
		page, err := e.Query(ctx, q)
		if err != nil {
			return Page{}, err
		}
		out.Next, found = page.Next, found+len(page.Items)
		if out.Items == nil {
			out.Items = page.Items
		} else {
			out.Items = append(out.Items, page.Items...)
		}
		if page.Next == "" || found >= want {
			break
		}
		q.After = page.Next
	}
	return out, nil
}
