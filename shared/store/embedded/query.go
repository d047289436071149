package embedded

import (
	"bytes"
	"context"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/buzon-mail/buzon/shared/store"
)

// Query implements store.Engine.
func (e *Engine) Query(ctx context.Context, q store.Query) (store.Page, error) {
	q, some, err := q.Ready(ctx)
	if !some || err != nil {
		return store.Page{}, err
	}
	tx, err := e.db.Begin(false)
	if err != nil {
		return store.Page{}, unavailable("read", err)
	}
	defer tx.Rollback() //nolint:errcheck // ends a read; it can't fail
	s := newScan(tx.Bucket(bucketOf(q.Table)).Cursor(), q)
	return s.page(q, e.clock().Unix())
}

// scan walks the rows of one partition and range in the query's direction.
type scan struct {
	cursor     *bolt.Cursor
	prefix     []byte // of every key of the partition
	low, high  []byte // keys: inclusive, exclusive
	descending bool
	key, value []byte // of the current row; a nil key is the end
	item       store.Item
}

func newScan(c *bolt.Cursor, q store.Query) *scan {
	s := &scan{cursor: c, descending: q.Descending}
	head := 2 + len(q.Partition)
	room := make([]byte, 0, 3*head+len(q.From)+len(q.To)+1+len(q.After)) // of all three keys
	s.low = appendKey(room, q.Partition, q.From)
	s.prefix = s.low[:head]
	s.high = appendKey(room[len(s.low):len(s.low)], q.Partition, q.To)
	if q.To == "" {
		s.high = append(s.high, 0xff) // no sort key starts with 0xff: it is not UTF-8
	}
	var after []byte
	if q.After != "" {
		after = appendKey(room[len(s.low)+len(s.high):len(s.low)+len(s.high)], q.Partition, q.After)
	}
	switch {
	case !q.Descending && q.After == "":
		s.key, s.value = c.Seek(s.low)
	case !q.Descending:
		if s.key, s.value = c.Seek(after); bytes.Equal(s.key, after) {
			s.key, s.value = c.Next()
		}
	case q.After == "":
		s.before(s.high)
	default:
		s.before(after)
	}
	s.clip()
	return s
}

// before moves to the last key under bound.
func (s *scan) before(bound []byte) {
	if k, _ := s.cursor.Seek(bound); k == nil {
		s.key, s.value = s.cursor.Last()
		return
	}
	s.key, s.value = s.cursor.Prev()
}

func (s *scan) next() {
	if s.descending {
		s.key, s.value = s.cursor.Prev()
	} else {
		s.key, s.value = s.cursor.Next()
	}
	s.clip()
}

// clip ends the scan outside the range, which lies within the partition.
func (s *scan) clip() {
	if s.key != nil && (bytes.Compare(s.key, s.low) < 0 || bytes.Compare(s.key, s.high) >= 0) {
		s.key = nil
	}
}

// pageRoom is how many rows of a page need no second allocation. Most pages of a large limit are short.
const pageRoom = 8

// page reads until the limit, the bound on reads or on bytes, or the end.
func (s *scan) page(q store.Query, now int64) (store.Page, error) {
	var page store.Page
	var kept keeper
	size, found := 0, 0
	for reads := 0; s.key != nil; s.next() {
		if found == q.Limit || reads == store.MaxReads*q.Limit || size >= store.MaxPageSize {
			return page, nil // Next is the row before this one
		}
		r, err := parseRow(s.value)
		if err != nil {
			return store.Page{}, err
		}
		reads++
		size += len(s.key) + len(s.value)
		sort := kept.sort(s.key[len(s.prefix):], q.Limit)
		if !store.Expired(r.expires, now) {
			found++
			if q.Each == nil {
				r.data = kept.data(r.data, q.Limit)
			}
			s.item = r.item(store.Key{Table: q.Table, Partition: q.Partition, Sort: sort})
			if err := take(&page, &q, &s.item); err != nil {
				return store.Page{}, err
			}
		}
		page.Next = sort
	}
	page.Next = ""
	return page, nil
}

// take gives a row to whom the query says, or keeps it.
func take(page *store.Page, q *store.Query, item *store.Item) error {
	if q.Each != nil {
		return q.Each(item) //nolint:wrapcheck // the caller's own
	}
	if page.Items == nil {
		page.Items = make([]store.Item, 0, min(q.Limit, pageRoom))
	}
	page.Items = append(page.Items, *item)
	return nil
}

// keeper copies the rows of a page out of the file's mapping, many into one piece of memory: an allocation for each key and
// each row was a tenth of the cost of a list. The rows of a page live and die together.
type keeper struct {
	sorts strings.Builder
	rows  []byte
}

// pieceRow bounds, in bytes, the rows and keys that share a piece: with larger ones an allocation costs little beside the copy, and
// the next may be of another size altogether.
const pieceRow = 1 << 10

// room guesses what a page takes whose rows are like the first. Much too much would cost more than it saves.
func room(size, limit int) int {
	if size > pieceRow {
		return size
	}
	return size * min(limit, pageRoom)
}

func (k *keeper) sort(text []byte, limit int) string {
	if k.sorts.Cap() == 0 {
		k.sorts.Grow(room(len(text), limit))
	}
	from := k.sorts.Len()
	k.sorts.Write(text) // when it grows, the strings that were handed out keep the old piece
	return k.sorts.String()[from:]
}

func (k *keeper) data(row []byte, limit int) []byte {
	if cap(k.rows)-len(k.rows) < len(row) {
		k.rows = make([]byte, 0, room(len(row), limit))
	}
	from := len(k.rows)
	k.rows = append(k.rows, row...)
	return k.rows[from:len(k.rows):len(k.rows)]
}
