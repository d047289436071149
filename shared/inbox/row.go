package inbox

import "sync/atomic"

// Row is a Summary as lists read it. Requests may share one, so nobody changes it; what is made of a row for whoever lists it
// is kept with the row, and goes when it goes.
type Row struct {
	Summary
	hidden atomic.Pointer[Row]
	view   atomic.Pointer[any]
	viewed atomic.Bool
}

// shown is the row as a caller sees it.
func (r *Row) shown(a Actor) *Row {
	if a.ReadCodes {
		return r
	}
	if have := r.hidden.Load(); have != nil {
		return have
	}
	r.hidden.CompareAndSwap(nil, &Row{Summary: r.masked()})
	return r.hidden.Load()
}

// View is what Keep was given; nil before that. again: it was asked for before, so that it is worth being kept.
func (r *Row) View() (view any, again bool) {
	if kept := r.view.Load(); kept != nil {
		return *kept, true
	}
	return nil, r.viewed.Swap(true)
}

// Keep keeps what a caller is shown of the row. It is for one room, the one that writes the replies.
func (r *Row) Keep(view any) { r.view.Store(&view) }
