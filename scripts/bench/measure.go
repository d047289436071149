package main

import (
	"runtime"
	"slices"
	"time"
)

// round is how long one case runs before the next has its turn: long enough for a few collections, short enough that a
// neighbour's burst hits all cases alike.
const round = 40 * time.Millisecond

// result is the cost of one run of a case.
type result struct {
	us     float64 // median over the rounds
	bytes  float64
	allocs float64
}

// measure runs all cases in turn, many times over, on one core, and takes each one's median: figures of one call can be
// compared with one another, and with nothing else.
func measure(rounds int, cases []func()) []result {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	out := make([]result, len(cases))
	counts := make([]int, len(cases))
	for i, run := range cases {
		counts[i] = calibrate(run)
		out[i].bytes, out[i].allocs = memory(run)
	}
	times := make([][]float64, len(cases))
	for range rounds {
		for i, run := range cases {
			start := time.Now()
			for range counts[i] {
				run()
			}
			times[i] = append(times[i], float64(time.Since(start))/float64(counts[i])/1e3)
		}
	}
	for i := range out {
		out[i].us = median(times[i])
	}
	return out
}

// calibrate finds how often a case fits in a round; it warms the case up on the way.
func calibrate(run func()) int {
	for n := 1; ; n *= 2 {
		start := time.Now()
		for range n {
			run()
		}
		if d := time.Since(start); d > round/4 {
			return max(int(float64(n)*float64(round)/float64(d)), 1)
		}
	}
}

func memory(run func()) (bytes, allocs float64) {
	const times = 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		run()
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / times, float64(after.Mallocs-before.Mallocs) / times
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
