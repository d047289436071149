package web

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/store"
	"github.com/buzon-mail/buzon/shared/store/embedded"
)

// away is an engine whose counters are out of reach.
type away struct{ store.Engine }

func (away) Add(context.Context, store.Key, string, int64, int64, time.Time) (int64, error) {
	return 0, errors.Join(store.ErrUnavailable, errors.New("throttled"))
}

// TestLimitsOfInstances: several instances share one counter of what goes out and never let out more than it says, to the act; where it
// can't be asked calls go on and nothing goes out.
func TestLimitsOfInstances(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 30, 0, time.UTC)
	clock := func() time.Time { return now }
	engine, err := embedded.Open(filepath.Join(t.TempDir(), "db"), embedded.Options{Clock: clock, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	o := Options{PerMinute: 100, OutwardMinute: 5, SharedLimits: true}
	out := 0
	for range 3 {
		_, gate, err := limits(engine, o, clock)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			l, err := gate.Take(t.Context(), "grant")
			if err != nil {
				t.Fatal(err)
			}
			if l.Allowed {
				out++
			}
		}
	}
	if out != 5 {
		t.Errorf("%d acts, want exactly 5", out)
	}
	all, gate, err := limits(away{engine}, o, clock)
	if err != nil {
		t.Fatal(err)
	}
	if l := all.Take(t.Context(), "grant"); !l.Allowed {
		t.Error("calls stopped with their counter")
	}
	if l, err := gate.Take(t.Context(), "grant"); err == nil || l.Allowed {
		t.Errorf("an uncounted act: %+v, %v", l, err)
	}
}
