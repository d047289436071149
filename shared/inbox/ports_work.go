package inbox

import (
	"context"
	"time"
)

// ThreadStore keeps what lists tell of threads. Everything is found under its workspace, so another tenant's id is a missing one.
type ThreadStore interface {
	// Threads reads one page, the newest activity first, behind r.After; next is empty at the end. A page may be short.
	Threads(ctx context.Context, r ThreadRange) (rows []Thread, next string, err error)
	// Thread reads one; not_found when there is none, or no mail of it is left.
	Thread(ctx context.Context, workspace, id string) (Thread, error)
}

// ThreadRange is one page of a workspace's threads, or of those of one inbox.
type ThreadRange struct {
	Workspace string
	Inbox     string // id; empty: all
	From      string // position, inclusive; empty is open
	After     string // position
	Limit     int
}

// WorkStore keeps who works on which mail. What waits for work is unhandled processed mail of an inbox.
type WorkStore interface {
	// Work reads one page of what waits and is held by nobody at r.At, that which waits longest first, behind r.After; next is
	// empty at the end. A page may be short.
	Work(ctx context.Context, r WorkRange) (rows []WorkRow, next string, err error)
	// Lease gives one of these to whoever asks, until l.Until: ErrTaken when others were faster, or it is changed or gone. Of any
	// number that ask for the same row exactly one gets it.
	Lease(ctx context.Context, row WorkRow, l Lease, act Act) error
	// UpdateLeased works like EmailStore.UpdateEmail and, in the same transaction, does with the lease on the mail what use says:
	// ErrLeaseLost when it is not that lease, or it has ended. Nothing is changed then. Only a change of the mail moves its version.
	UpdateLeased(ctx context.Context, workspace, id string, use LeaseUse, act Act, change func(*Email) error) (Email, error)
}

// WorkRange is one page of an inbox's work.
type WorkRange struct {
	Workspace, Inbox string
	At               time.Time
	After            string // the Key of a row
	Limit            int
}

// WorkRow is one mail that waits.
type WorkRow struct {
	Summary
	Workspace string
	Key       string // its place, which moves when it is leased
	Revision  uint64 // of the row that was read
}

// WaitStore counts, across all instances, who waits for mail.
type WaitStore interface {
	// BeginWait takes one of s.PerGrant places of the grant and one of those of s.All that the organization can have (see Reach):
	// ErrNoPlace when either has none left. A place that is not given back is free again at s.Until.
	BeginWait(ctx context.Context, s WaitSlot) (WaitPlace, error)
	// EndWait gives it back. Repeating it is fine.
	EndWait(ctx context.Context, p WaitPlace) error
}

// WaitSlot asks for a place.
type WaitSlot struct {
	Organization  string
	Grant         string
	PerGrant, All int
	Until         time.Time
	Ticket        uint64 // random: whose place it is
}

// Reach is how many of all places one organization can have: whoever makes many keys leaves a fifth to others.
func (s WaitSlot) Reach() int { return s.All - s.All/5 }

// WaitPlace is what was taken.
type WaitPlace struct {
	Grant      string
	Own, Among int // numbers of the places
	Ticket     uint64
}

// UsageStore counts what a workspace uses.
type UsageStore interface {
	// Usage reads the counters of a month, "2006-01"; one without any has zeros.
	Usage(ctx context.Context, workspace, month string) (UsageCounts, error)
}

// Rates tells how much of its allowance a grant has left.
type Rates interface {
	// Rate is the state of a grant without counting a call; false when calls are not limited.
	Rate(ctx context.Context, grant string) (RateState, bool)
}
