package optool

import (
	"context"
	"sync"

	"github.com/buzon-mail/buzon/shared/mcp"
)

// maxLists bounds the cache of filtered lists: callers choose their scopes, so they could choose many.
const maxLists = 256

// mask is what decides a list.
type mask struct {
	standing
	shape shape
}

// lists caches filtered lists.
type lists struct {
	lock sync.RWMutex
	made map[mask][][]byte // guarded by lock; the values are never changed once they are in
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

func (t *Tools) filter(m mask) [][]byte {
	items := make([][]byte, 0, 2*len(t.tools))
	for i := range t.tools {
		own := &t.tools[i]
		if !m.scopes.Has(own.scope) || !own.allows(m.standing) {
			continue
		}
		head := own.segment.Head
		if len(items) == 0 {
			head = head[1:] // the comma
		}
		items = append(items, head, own.segment.Tails[m.shape])
	}
	return items
}

func (l *lists) keep(m mask, items [][]byte) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.made == nil || len(l.made) >= maxLists {
		l.made = make(map[mask][][]byte) // a new start costs less than keeping an order of use
	}
	l.made[m] = items
}
