package inbox

import (
	"context"
	"time"
)

// What a list reads at most when the keys don't serve its filters.
const (
	windowPages = 4
	windowPage  = 100
)

// Window says how far a list looked when its filters are not served by the keys.
type Window struct {
	Examined int       // rows looked at for this page
	Oldest   time.Time // of the last row looked at; zero when there was none or the order is not by time
	Complete bool      // nothing is left to look at behind this page
}

// lister reads a list in pages of rows. Filtered lists look at windowPages x windowPage rows at most, whatever they find,
// so that a filter that matches nothing costs no more than one that matches all.
type lister[T any] struct {
	read     func(ctx context.Context, after string, limit int) ([]T, string, error)
	key      func(*T) string
	match    func(*T) bool // nil: the keys serve the list
	size     func(*T) int  // of a row, where rows can be long: a page has maxPageSize of them at most; nil: they can't
	after    string
	limit    int
	examined int
	last     string // key of the last row looked at
}

// collect returns at most limit rows and the key to go on behind; an empty key is the end. It reads one row more than it
// returns: only so it knows whether anything follows.
func (l *lister[T]) collect(ctx context.Context) (rows []T, next string, err error) {
	// The first page of a window is no larger than that of a list without filters: most filters find their rows at once.
	after, size, filled := l.after, min(l.limit+1, windowPage), 0
	for range windowPages {
		page, more, err := l.read(ctx, after, size)
		if err != nil {
			return nil, "", err
		}
		examined, full := 0, false
		// Rows of the first page stay where they are: what is kept moves down over what is not, never over what is still to
		// be looked at, and never over the last row that was.
		if rows == nil {
			rows = page[:0]
		}
		for i := range page {
			row := &page[i]
			matches := l.match == nil || l.match(row)
			if full = matches && l.full(row, len(rows), filled); full {
				break
			}
			examined++
			if matches {
				rows = append(rows, *row)
				filled += l.sizeOf(row)
			}
		}
		if examined > 0 {
			l.examined, l.last = l.examined+examined, l.key(&page[examined-1])
		}
		if full {
			return rows, l.key(&rows[len(rows)-1]), nil
		}
		if more == "" {
			return rows, "", nil
		}
		after = more
		if size = windowPage; l.match == nil {
			size = l.limit + 1 - len(rows)
		}
	}
	return rows, after, nil
}

// full reports whether a page of so many rows and bytes has no room for one more.
func (l *lister[T]) full(row *T, rows, filled int) bool {
	return rows == l.limit || rows > 0 && filled+l.sizeOf(row) > maxPageSize
}

func (l *lister[T]) sizeOf(row *T) int {
	if l.size == nil {
		return 0
	}
	return l.size(row)
}
