package optool

import (
	"bytes"
	"context"
	"sync"

	"github.com/buzon-mail/buzon/shared/mcp"
)

// maxListBytes bounds the cache of filtered lists: callers choose their scopes, so they could choose many, and each list is a
// text of its own. It holds about forty of the largest; a service has as many as it has roles and sorts of consent.
const (
	maxListBytes = 1 << 20
	listRoom     = 128 // bytes of an entry beside its text
)

// mask is what decides a list.
type mask struct {
	standing
	shape shape
}

// lists caches filtered lists, each in one piece: to write it as its segments took twice as long.
type lists struct {
	lock sync.RWMutex
	made map[mask][][]byte // one piece, or none; guarded by lock; the values are never changed once they are in
	size int               // bytes of made; guarded by lock
}

func shapeOf(v mcp.Version) shape {
	switch v {
	case mcp.V20241105:
		return shapeBare
	case mcp.V20250326:
		return shapeAnnotated
	}
	return shapeFull
}

// ListTools returns the tools that the caller's scopes and role allow, in the order of the catalogue, in the shape of the
// revision. Everything fits one page, so any cursor is unknown.
func (t *Tools) ListTools(_ context.Context, r *mcp.ListRequest) (mcp.ListResult, error) {
	caller, err := callerOf(r.Caller)
	if err != nil {
		return mcp.ListResult{}, err
	}
	if r.Cursor != "" {
		return mcp.ListResult{}, mcp.ErrUnknown
	}
	m := mask{t.standing(caller, r.Header), shapeOf(r.Version)}
	t.lists.lock.RLock()
	items, ok := t.lists.made[m]
	t.lists.lock.RUnlock()
	if !ok {
		items = t.filter(m)
		t.lists.keep(m, items)
	}
	return mcp.ListResult{Items: items}, nil
}

// filter joins the segments of the list; no piece at all when it is empty.
func (t *Tools) filter(m mask) [][]byte {
	pieces := make([][]byte, 0, 2*len(t.tools))
	for i := range t.tools {
		own := &t.tools[i]
		if m.scopes.Has(own.scope) && own.allows(m.standing) {
			pieces = append(pieces, own.segment.Head, own.segment.Tails[m.shape])
		}
	}
	if len(pieces) == 0 {
		return nil
	}
	pieces[0] = pieces[0][1:] // the comma
	return [][]byte{bytes.Join(pieces, nil)}
}

func (l *lists) keep(m mask, items [][]byte) {
	size := listRoom
	for _, piece := range items {
		size += len(piece)
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.made == nil || l.size+size > maxListBytes {
		l.made, l.size = make(map[mask][][]byte), 0 // a new start costs less than keeping an order of use
	}
	if _, known := l.made[m]; !known { // two callers may have made it at once
		l.made[m] = items
		l.size += size
	}
}
