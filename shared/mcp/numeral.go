package mcp

import (
	"strconv"
	"sync/atomic"
)

// numerals keeps the values of headers that hold numbers. The lengths of a server's replies, its limits and what remains of them come
// again and again, and each would be two allocations. A number has one slot, from which another may push it; nothing in it is ever changed.
type numerals [numeralSlots]atomic.Pointer[numeral]

const numeralSlots = 1024 // some more than the requests of a minute; a power of two

type numeral struct {
	n     int64
	value [1]string
}

// of is the value of a header, full like the shared ones above it.
func (c *numerals) of(n int64) []string {
	slot := &c[uint64(n)%numeralSlots] //nolint:gosec // any slot will do
	kept := slot.Load()
	if kept == nil || kept.n != n {
		kept = &numeral{n, [1]string{strconv.FormatInt(n, 10)}}
		slot.Store(kept)
	}
	return kept.value[:]
}
