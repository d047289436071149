package store

import (
	"errors"
	"fmt"
)

// What engines return, wrapped with the step. Drivers' own errors never leave an engine.
var (
	// ErrNotFound is a row that is absent or whose time has come.
	ErrNotFound = errors.New("store: not found")
	// ErrConflict is a condition that did not hold; it arrives as a *ConflictError.
	ErrConflict = errors.New("store: conflict")
	// ErrLimit is a counter that would exceed its bound.
	ErrLimit = errors.New("store: over the limit")
	// ErrInvalid is a request that breaks a rule of this package: the caller's mistake, never worth a retry.
	ErrInvalid = errors.New("store: invalid")
	// ErrTooLarge is a row or transaction over its size; it is an ErrInvalid too.
	ErrTooLarge = fmt.Errorf("%w: too large", ErrInvalid)
	// ErrUnavailable is an engine that can't serve now: closed, disk full, throttled, unreachable.
	ErrUnavailable = errors.New("store: unavailable")
	// ErrFormat is a row that a newer version of the program wrote.
	ErrFormat = errors.New("store: written in a newer format")
)

// ConflictError says which op's condition did not hold.
type ConflictError struct {
	Index int // of the first such op of a transaction; 0 for Put and Delete
}

// Error names the position and not the key: keys can hold addresses, and this text is logged.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("store: condition of op %d failed", e.Index)
}

// Unwrap makes every ConflictError an ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }
