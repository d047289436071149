package awsclient

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

const (
	// MaxAttempts is how often a request is made while AWS is not able to serve it.
	MaxAttempts = 3
	// MaxConflicts is how often a request is made again because others are at work on the same thing.
	MaxConflicts = 6

	firstBackoff = 50 * time.Millisecond
	maxBackoff   = time.Second
)

// Retries decides what is tried again. One is shared by all calls of a client: it holds the quota that keeps a client from
// tripling the load on a service that is down. The adaptive mode is off, since it holds back calls that have no fault.
type Retries struct {
	*retry.Standard
}

// NewRetries makes the retry policy of one client.
func (c Config) NewRetries() *Retries {
	wait := c.Backoff
	if wait == nil {
		wait = backoff
	}
	return &Retries{retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = MaxAttempts
		o.Backoff = retry.BackoffDelayerFunc(func(n int, err error) (time.Duration, error) {
			return wait(n, throttled(err)), nil
		})
	})}
}

func backoff(n int, throttled bool) time.Duration {
	d := min(firstBackoff<<min(n-1, 8), maxBackoff)
	if throttled {
		d *= 4
	}
	var jitter [8]byte
	_, _ = rand.Read(jitter[:])                                             // never fails
	return time.Duration(binary.LittleEndian.Uint64(jitter[:]) % uint64(d)) //nolint:gosec // d is positive and small
}

// Call is the retry policy of one call: it remembers whether an attempt failed in a way that leaves its outcome unknown.
type Call struct {
	*Retries
	// Once is for what must not happen twice: it is made again only after a failure that surely changed nothing.
	Once bool
	// Conflict tells the failures that mean "someone else is at work on it", which are tried up to MaxConflicts times.
	Conflict func(error) bool

	unsure            bool
	outages, conflict int
}

var _ aws.RetryerV2 = (*Call)(nil)

// Unsure reports that an attempt may have been carried out although it failed. A conflict that a later attempt meets may then
// be with that attempt, so it says nothing about others.
func (c *Call) Unsure() bool { return c.unsure }

// MaxAttempts implements aws.Retryer: the bounds are kept by IsErrorRetryable.
func (c *Call) MaxAttempts() int { return MaxAttempts + MaxConflicts }

// IsErrorRetryable implements aws.Retryer. It is asked once for each attempt that failed.
func (c *Call) IsErrorRetryable(err error) bool {
	if c.Conflict != nil && c.Conflict(err) {
		c.conflict++
		return c.conflict < MaxConflicts
	}
	if !Refused(err) {
		c.unsure = true
		if c.Once {
			return false
		}
	}
	c.outages++
	return c.outages < MaxAttempts && c.Retries.IsErrorRetryable(err)
}

// Wait waits as before attempt n+1, or until the context is done: for what is tried again by the caller and not by the client,
// as the parts of a batch that failed.
func (r *Retries) Wait(ctx context.Context, n int) error {
	delay, err := r.RetryDelay(n, nil)
	if err != nil {
		return fmt.Errorf("aws: wait: %w", err)
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
