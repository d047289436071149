package main

import (
	"runtime"
	"slices"
	"syscall"
	"time"
)

// round is how long one case runs before the next has its turn: long enough for a few collections, short enough that a
// neighbour's burst hits all cases alike.
const round = 40 * time.Millisecond

// result is the cost of one run of a case.
type result struct {
	us     float64   // median over the rounds
	rounds []float64 // us of each
	bytes  float64
	allocs float64
}

// over is how many times the cost of another case this one costs: the median over the rounds, in each of which the two were
// a fraction of a second apart.
func (r result) over(floor result) float64 {
	ratios := make([]float64, len(r.rounds))
	for i := range ratios {
		ratios[i] = r.rounds[i] / floor.rounds[i]
	}
	return median(ratios)
}

// measure runs all cases in turn, many times over, on one core, and takes each one's median: figures of one call can be
// compared with one another, and with nothing else. What counts is the time of the processor, collector included, not that
// of the clock: on a shared machine the clock measures the neighbours.
func measure(rounds int, cases []func()) []result {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	out := make([]result, len(cases))
	counts := make([]int, len(cases))
	for i, run := range cases {
		counts[i] = calibrate(run)
		out[i].bytes, out[i].allocs = allocated(run)
	}
	for range rounds {
		for i, run := range cases {
			start := processor()
			for range counts[i] {
				run()
			}
			out[i].rounds = append(out[i].rounds, float64(processor()-start)/float64(counts[i])/1e3)
		}
	}
	for i := range out {
		out[i].us = median(out[i].rounds)
	}
	return out
}

// processor is the time that this process has used of all processors.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // no such system call: nothing could be measured
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// calibrate finds how often a case fits in a round; it warms the case up on the way.
func calibrate(run func()) int {
	for n := 1; ; n *= 2 {
		start := processor()
		for range n {
			run()
		}
		if d := processor() - start; d > round/4 {
			return max(int(float64(n)*float64(round)/float64(d)), 1)
		}
	}
}

func allocated(run func()) (bytes, allocs float64) {
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
