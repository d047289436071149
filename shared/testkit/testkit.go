// Package testkit is what tests share: a clock that stands still, Lambda's Runtime API in miniature, front doors that turn
// HTTP into events, MCP requests of both eras. Tests only: nothing that ships imports it.
package testkit

import (
	"sync"
	"time"
)

// Clock is a clock that moves only when told. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock starts a clock at a time.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now is the time on the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock on.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
