package inboxstore

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/buzon-mail/buzon/shared/store"
)

// Bounds of one half of a rowCache, in bytes. A row counts as it is stored and for what it becomes, however short it is: the
// summary of a mail and its JSON, written twice. Where callers differ in what they may see, it is there once for each of the two.
const (
	cacheRoom = 2 << 20
	perRow    = 2 << 10
)

// rowCache keeps what rows were decoded to, by their very bytes: the row itself is read anew each time, so what is found here is
// never out of date, and equal bytes tell one tenant nothing of another. Agents look at the same lists over and over, and to
// decode and to show rows was two thirds of a list's cost.
//
// The values are shared, so nobody changes one. When the younger half is full it becomes the older one, whose rows are forgotten
// unless they were asked for meanwhile.
type rowCache[T any] struct {
	decode func(text string) (*T, error)

	mu         sync.Mutex
	young, old map[string]*T
	size       int // of young
}

func newRowCache[T any](decode func(text string) (*T, error)) *rowCache[T] {
	return &rowCache[T]{decode: decode, young: map[string]*T{}}
}

// decodeJSON decodes a row that is JSON. Its type must hold nothing that could be changed through a copy: no lists, no pointers.
func decodeJSON[T any](text string) (*T, error) {
	v := new(T)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return nil, fmt.Errorf("decode a row: %w", err)
	}
	return v, nil
}

// of decodes a row, or finds what it was decoded to.
func (c *rowCache[T]) of(item *store.Item) (*T, error) {
	if item.Format > format {
		return nil, fmt.Errorf("%w: row has %d", store.ErrFormat, item.Format)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.young[string(item.Data)]; ok { // no copy is made to look something up
		return v, nil
	}
	text := string(item.Data)
	v, ok := c.old[text]
	if !ok {
		var err error
		if v, err = c.decode(text); err != nil {
			return nil, err
		}
	}
	c.keep(text, v)
	return v, nil
}

func (c *rowCache[T]) keep(text string, v *T) {
	cost := len(text) + perRow
	if cost > cacheRoom {
		return
	}
	if c.size+cost > cacheRoom {
		c.old, c.young, c.size = c.young, map[string]*T{}, 0
	}
	c.young[text] = v
	c.size += cost
}
