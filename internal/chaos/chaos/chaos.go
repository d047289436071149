// Package chaos is what the command of that name does: a service of several instances over one store in bad weather. It knows the
// rooms as the wiring does, since what it breaks lies between them.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options say how much there is of everything.
type Options struct {
	Seed    uint64
	Mails   int
	Calls   int
	Tenants int // at least 2
}

// Report counts what happened.
type Report struct {
	Seed                        uint64
	Accepted, Given, Twice      int // mails; senders that gave up; mails that were sent again though accepted
	Refusals, Kills             int64
	Refused, Lost, Again, Shown int64 // operations that were refused, whose answers were lost; messages that came twice; replies with mail
	Calls                       map[int]int
	Stored                      int // mails in inboxes
}

// String is one line.
func (r Report) String() string {
	var calls []string
	for _, status := range slices.Sorted(maps.Keys(r.Calls)) {
		calls = append(calls, fmt.Sprintf("%d x %d", r.Calls[status], status))
	}
	return fmt.Sprintf("%d mails accepted after %d refusals, %d given up, %d sent twice, %d in inboxes; calls %s, %d replies with mail; "+
		"%d kills, %d operations refused, %d answers lost, %d messages twice",
		r.Accepted, r.Refusals, r.Given, r.Twice, r.Stored, strings.Join(calls, ", "), r.Shown, r.Kills, r.Refused, r.Lost, r.Again)
}

// trouble collects what went wrong, up to a bound: one fault breaks many things.
type trouble struct {
	mu   sync.Mutex
	list []error // guarded by mu
	more int     // guarded by mu
}

func (t *trouble) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.list) >= 20 {
		t.more++
		return
	}
	t.list = append(t.list, fmt.Errorf(format, args...))
}

func (t *trouble) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.more > 0 {
		return errors.Join(append(t.list, fmt.Errorf("and %d more", t.more))...)
	}
	return errors.Join(t.list...)
}

// run is one run of it all.
type run struct {
	o       Options
	world   *world
	weather *weather
	fleet   *fleet
	wrong   trouble

	mu     sync.Mutex
	mails  map[string]*letter // by canary; guarded by mu
	seen   []known            // mails that callers have met; guarded by mu
	gone   map[string]bool    // ids that a caller had met and that were not found later; guarded by mu
	report Report             // guarded by mu

	refusals, shown atomic.Int64
}

// Run makes the world, lets everything loose, waits until it is quiet and looks at what is left. The report is filled in either way.
func Run(ctx context.Context, o Options) (Report, error) {
	if o.Tenants < 2 || o.Mails < 1 || o.Calls < 0 {
		return Report{Seed: o.Seed}, errors.New("chaos: at least two tenants and a mail are needed")
	}
	w, err := newWorld(ctx, o.Tenants)
	if err != nil {
		return Report{Seed: o.Seed}, fmt.Errorf("chaos: %w", err)
	}
	defer w.close()
	r := &run{
		o: o, world: w, weather: &weather{rng: dice(o.Seed, 0)}, mails: map[string]*letter{}, gone: map[string]bool{},
		report: Report{Seed: o.Seed, Calls: map[int]int{}},
	}
	if r.fleet, err = newFleet(w, r.weather, instances); err != nil {
		return r.report, fmt.Errorf("chaos: %w", err)
	}
	r.storm(ctx)
	r.weather.calm.Store(true)
	err = r.settle(ctx)
	err = errors.Join(err, r.fleet.stop())
	if err == nil {
		r.verify(ctx)
		err = r.wrong.err()
	}
	r.report.Refusals, r.report.Shown, r.report.Kills = r.refusals.Load(), r.shown.Load(), r.fleet.kills.Load()
	r.report.Refused, r.report.Lost, r.report.Again = r.weather.refused.Load(), r.weather.lost.Load(), r.weather.again.Load()
	return r.report, err
}

const (
	instances = 3
	senders   = 12
	callers   = 12
)

// dice are those of one goroutine, so that its part of the plan does not depend on the others.
func dice(seed, which uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, which)) } //nolint:gosec // a test's

// storm sends all mails and makes all calls while instances die.
func (r *run) storm(ctx context.Context) {
	var work, killer sync.WaitGroup
	over, end := context.WithCancel(ctx)
	killer.Go(func() { r.fleet.kill(over, dice(r.o.Seed, 1), &r.wrong) })
	for i := range senders {
		work.Go(func() {
			rng := dice(r.o.Seed, 100+uint64(i)) //nolint:gosec // small
			for n := i; n < r.o.Mails && ctx.Err() == nil; n += senders {
				r.send(ctx, rng, n)
			}
		})
	}
	for i := range callers {
		work.Go(func() {
			c := r.caller(dice(r.o.Seed, 200+uint64(i))) //nolint:gosec // small
			for n := i; n < r.o.Calls && ctx.Err() == nil; n += callers {
				c.call(ctx)
			}
		})
	}
	work.Wait()
	end()
	killer.Wait()
}

// settle waits until the outbox and the queue are empty.
func (r *run) settle(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := r.world.store.Pending(ctx, r.world.clock.now().Add(24*time.Hour), 1000)
		if err == nil && len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not settle: %d ids are in the outbox, such as %.3q: %w", len(left), left, errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}
