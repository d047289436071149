package jsonlog

import "sync/atomic"

// names keeps what stands in a line before the value of a field, by the field's name. The same dozen names are in every line; to hold
// each against the list and to look through it for what needs an escape was a third of a line's cost. What is here is never
// changed, so a slot is read without a lock. Names that are not on the list are never here.
type names struct {
	slots [slots]atomic.Pointer[written]
}

const (
	slots = 256 // three times the list's length; a power of two
	tries = 4   // slots that one name may be in
)

// written is a name as it stands in a line: a comma, quotes and a colon around it.
type written struct{ name, text string }

// find is nil for a name that is not allowed or needs an escape.
func (n *names) find(name string, allowed func(string) bool) *written {
	if name == "" {
		return nil
	}
	at := uint(len(name)) + 7*uint(name[0]) + 13*uint(name[len(name)-1]) //nolint:gosec // no text is that long
	var free *atomic.Pointer[written]
	for i := range uint(tries) {
		slot := &n.slots[(at+i)%slots]
		w := slot.Load()
		if w == nil {
			free = slot
			break
		}
		if w.name == name {
			return w
		}
	}
	quoted, ok := appendText(nil, name)
	if !ok || allowed != nil && !allowed(name) {
		return nil
	}
	w := &written{name, "," + string(quoted) + ":"}
	if free != nil {
		free.CompareAndSwap(nil, w)
	}
	return w
}
