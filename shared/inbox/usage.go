package inbox

import (
	"context"
	"fmt"
	"time"
)

// MonthFormat is how a month of usage is named.
const MonthFormat = "2006-01"

// UsageCounts is what a workspace used in a month; approximate.
type UsageCounts struct {
	Processed, Failed, Quarantined int64 // mails that were read, by how that ended
}

// Received is all mail that was read, exact duplicates left out.
func (c UsageCounts) Received() int64 { return c.Processed + c.Failed + c.Quarantined }

// RateState is what a grant has left of its allowance.
type RateState struct {
	PerMinute int
	Remaining int
	Reset     time.Duration // until all of it is back
}

// Usage is what a workspace used, and what may be used.
type Usage struct {
	Month  string
	Counts UsageCounts
	Rate   *RateState // nil: calls are not limited
	Waits  int        // that may wait for mail at once, of all grants
	Bytes  int64      // of one mail
}

// Usages are the operations on usage.
type Usages struct{ d Deps }

// Get returns the usage of a month, "2006-01"; empty is the present one.
func (s *Usages) Get(ctx context.Context, a Actor, month string) (Usage, error) {
	now := s.d.now()
	if month == "" {
		month = now.Format(MonthFormat)
	}
	at, err := time.Parse(MonthFormat, month)
	if err != nil || at.Year() < 2000 || at.After(now) {
		return Usage{}, invalid("query.period", "YYYY-MM, the present month or an earlier one")
	}
	u := Usage{Month: month, Waits: s.d.MaxWaits}
	if u.Counts, err = s.d.Usage.Usage(ctx, a.Workspace, month); err != nil {
		return Usage{}, fmt.Errorf("usage of %s: %w", a.Workspace, err)
	}
	w, err := s.d.settings(ctx, a)
	if err != nil {
		return Usage{}, err
	}
	u.Bytes = w.EmailBytes()
	if s.d.Rates != nil {
		if state, limited := s.d.Rates.Rate(ctx, a.grant()); limited {
			u.Rate = &state
		}
	}
	return u, nil
}
