package web

import (
	"context"
	"time"

	"github.com/buzon-mail/buzon/shared/mcp"
	"github.com/buzon-mail/buzon/shared/ratelimit"
	"github.com/buzon-mail/buzon/shared/rest"
	"github.com/buzon-mail/buzon/shared/store"
)

// limits makes the two limits of a grant: of all its requests, and of the operations that let something out. One process counts
// in memory, which costs nothing; instances share counters in the store, from which requests take tokens in batches and
// operations that let something out one by one.
func limits(engine store.Engine, o Options, clock func() time.Time) (mcp.Limiter, rest.Gate, error) {
	if !o.SharedLimits {
		all, err := ratelimit.New(ratelimit.Options{PerMinute: o.PerMinute, Now: clock})
		if err != nil {
			return nil, nil, err
		}
		outward, err := ratelimit.New(ratelimit.Options{PerMinute: o.OutwardMinute, Now: clock})
		return all, sure{outward}, err
	}
	all, err := ratelimit.NewShared(ratelimit.SharedOptions{Counter: engine, Name: "calls", PerMinute: o.PerMinute, Now: clock})
	if err != nil {
		return nil, nil, err
	}
	outward, err := ratelimit.NewExact(ratelimit.SharedOptions{Counter: engine, Name: "outward", PerMinute: o.OutwardMinute, Now: clock})
	return all, counted{outward}, err
}

// restLimiter is the limiter as the REST room asks for it: the same counters on both surfaces.
type restLimiter struct{ mcp.Limiter }

// Take counts one call.
func (l restLimiter) Take(ctx context.Context, key string) rest.Limit {
	return rest.Limit(l.Limiter.Take(ctx, key))
}

// sure is the gate of one process, which always can tell.
type sure struct{ limiter *ratelimit.Limiter }

// Take counts one operation.
func (s sure) Take(ctx context.Context, key string) (rest.Limit, error) {
	return rest.Limit(s.limiter.Take(ctx, key)), nil
}

// counted is the gate of several instances.
type counted struct{ limiter *ratelimit.Exact }

// Take counts one operation.
func (c counted) Take(ctx context.Context, key string) (rest.Limit, error) {
	l, err := c.limiter.Take(ctx, key)
	return rest.Limit(l), err
}
