package inbox

import (
	"slices"
	"strings"
	"time"
)

// Bounds of a mark.
const (
	// settleFor is how long after its receipt a mail may take to show up in the list of its inbox.
	settleFor = 30 * time.Second
	// readingFor is how long a mail that is being read is waited for; one that takes longer is passed over.
	readingFor = 2 * time.Minute
	// maxMarkSeen bounds the mail that a mark names, so that it fits a cursor. In a flood that is faster, the oldest are let go.
	maxMarkSeen = 30
)

// mark is how far a wait has looked. Mail is listed by the time of its receipt but becomes readable in any order, so a place alone
// would pass over what was received before and read after. The floor stops below what can still change, and what was seen above it
// is named.
type mark struct {
	floor string   // position: everything up to it was seen
	seen  []string // ids of what was seen behind it, oldest first
}

// parseMark reads what String wrote; without a text it is a mark that has seen nothing since a time.
func parseMark(text string, since time.Time) mark {
	if text == "" {
		return mark{floor: Position(since, "")}
	}
	parts := strings.Split(text, " ")
	return mark{floor: parts[0], seen: parts[1:]}
}

// String is the text of a mark in a cursor. Of ids the prefix is left out.
func (m mark) String() string { return strings.Join(append([]string{m.floor}, m.seen...), " ") }

// pass shows the finished mail among rows, which are in order and lie behind the floor, to fn until it returns false, and returns
// the mark behind what was shown.
func (m mark) pass(rows []*Row, now time.Time, fn func(*Row) bool) mark {
	next := mark{floor: m.floor}
	raise := true // nothing below can change any more
	add := func(row *Row, place string) {
		if raise {
			next.floor = place
			return
		}
		next.seen = append(next.seen, shortID(row.ID))
	}
	more := true
	for _, row := range rows {
		place, known := Position(row.ReceivedAt, row.ID), slices.Contains(m.seen, shortID(row.ID))
		age := now.Sub(row.ReceivedAt)
		raise = raise && age > settleFor
		switch {
		case known:
			add(row, place)
		case !more:
			raise = false
		case !final(row.Status) && age < readingFor:
			raise = false
		default:
			more = fn(row)
			add(row, place)
		}
	}
	return next.bounded(rows)
}

// bounded lets the oldest go: the floor rises to the last of them.
func (m mark) bounded(rows []*Row) mark {
	over := len(m.seen) - maxMarkSeen
	if over <= 0 {
		return m
	}
	for _, row := range rows {
		if shortID(row.ID) == m.seen[over-1] {
			m.floor = Position(row.ReceivedAt, row.ID)
		}
	}
	m.seen = m.seen[over:]
	return m
}

func shortID(id string) string { return id[strings.IndexByte(id, '_')+1:] }

func final(s Status) bool {
	return s == StatusProcessed || s == StatusFailed || s == StatusQuarantined
}
