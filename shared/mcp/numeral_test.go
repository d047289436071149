package mcp

import (
	"math"
	"strconv"
	"sync"
	"testing"
)

// TestNumerals: numbers that share a slot push one another out, at any moment, and a value is always its own number's, with no room behind it.
func TestNumerals(t *testing.T) {
	var c numerals
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 2000 {
				for _, n := range []int64{int64(i), int64(i % 3 * numeralSlots), int64(g), math.MaxInt64 - int64(i), -1} {
					if v := c.of(n); len(v) != 1 || cap(v) != 1 || v[0] != strconv.FormatInt(n, 10) {
						t.Errorf("%d: %q", n, v)
					}
				}
			}
		})
	}
	all.Wait()
	if n := testing.AllocsPerRun(100, func() { c.of(42666) }); n != 0 {
		t.Errorf("%v allocations for a number that is there", n)
	}
}
