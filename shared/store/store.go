// Package store is the one small interface to durable rows, the rules that every engine obeys, and what engines share:
// validation, conditions, expiry, paging. Rows live in partitions ordered by sort key; what needs another order is an index
// row that its writer puts in the same transaction. Engines are DynamoDB (two tables) and one bbolt file, and both pass
// store/storetest unchanged, so nothing here may promise what either can't do. The package knows no engine, no transport
// and nothing of what the rows mean. It depends on the standard library only.
package store

import (
	"context"
	"time"
)

// Table is one of the two tables. The zero value is refused, so that a forgotten table is an error and not a row in the
// wrong place.
type Table uint8

// The tables. Both honour Expires; they differ in what they cost to keep.
const (
	// Core is backed up and streamed.
	Core Table = iota + 1
	// Ephemeral is for churn (nonces, codes, counters, idempotency): kept out of backups and streams.
	Ephemeral
)

// String is the table's name.
func (t Table) String() string {
	switch t {
	case Core:
		return "core"
	case Ephemeral:
		return "ephemeral"
	}
	return "unknown"
}

// Key names one row. Partition and Sort are 1 to 1,024 bytes of UTF-8 without NUL. Sort keys order by their bytes, which
// for UTF-8 is the order of code points, in every engine.
type Key struct {
	Table           Table
	Partition, Sort string
}

// Item is one row.
type Item struct {
	Key Key
	// Format is the version of what Data holds, at least 1: old rows outlive the code that wrote them.
	Format uint8
	// Revision is chosen by the writer, who moves it on each change; RevisionIs compares it.
	Revision uint64
	// Data is opaque to engines. Engines keep no reference to what they are given, and what they return is the caller's.
	Data []byte
	// Counters are written by Add alone. A put replaces the whole row, so one that carries counters is refused and one that
	// meets them drops them: keep counters in rows of their own.
	Counters map[string]int64
	// Expires is when the row stops to exist for every read and condition, whatever the sweeper did; zero is never. It counts
	// in whole seconds, cut down: a row is gone once clock and Expires show the same second. A row that guards against replay
	// must outlive what it guards by a second.
	Expires time.Time
}

// Query reads one partition in the order of its sort keys.
type Query struct {
	Table     Table
	Partition string
	From      string // inclusive; "" is open
	To        string // exclusive; "" is open
	// Descending starts at the end of the range.
	Descending bool
	// Limit is the most rows a page holds, 1 to 1,000.
	Limit int
	// After continues behind this sort key, in the direction of the query. The row need not exist (any more).
	After string
	// Each, when set, gets the rows of the page one by one, in their order, in the place of Page.Items, which stays empty: an
	// engine that has them in memory need not copy them first. The item, Data included, holds until Each returns; its key's texts
	// hold for good. An error of Each ends the query, which returns it as it is. Each must not call the engine.
	Each func(*Item) error
}

// Page is one answer to a query.
type Page struct {
	Items []Item
	// Next is the After of the next page; "" is the end. Whoever reads on must look at Next alone: a page may be short, or
	// empty, and not be the last (rows had expired, or the bytes read reached 1 MB), and the last may be empty.
	Next string
}

// Engine keeps rows. Every method refuses what breaks a rule with ErrInvalid or ErrTooLarge before it touches anything. A
// context that is already done changes nothing and its error is returned. ErrUnavailable, or a context that ends during the
// call, can leave a write's outcome unknown: write so that doing it again is harmless. Reads are strongly consistent.
type Engine interface {
	// Get returns ErrNotFound for a row that is absent or expired. (GetItem, ConsistentRead.)
	Get(ctx context.Context, key Key) (Item, error)

	// Put replaces the whole row when cond holds, else *ConflictError. (PutItem.)
	Put(ctx context.Context, item Item, cond Condition) error

	// Delete removes the row when cond holds, else *ConflictError. Without a condition an absent row is fine. (DeleteItem.)
	Delete(ctx context.Context, key Key, cond Condition) error

	// Query reads at most four times Limit rows, expired ones included, or until it has read 1 MB, and returns what lives. A
	// partition or range that holds nothing is an empty page, not an error. (Query: BETWEEN is inclusive, so an engine asks
	// for From..To and drops To itself; a filter may not name a key.)
	Query(ctx context.Context, q Query) (Page, error)

	// Transact does all of ops or none: up to 50 items and 3 MB, one item once, tables mixable. *ConflictError names the
	// first op, in order, whose condition failed. (TransactWriteItems and its cancellation reasons.)
	Transact(ctx context.Context, ops ...Op) error

	// Add adds delta to a counter of the row and returns the sum. A row that is absent or expired starts anew: only then
	// does expires set the row's Expires. If the sum would be over max (0: no bound but int64's own) nothing changes and the
	// counter's present value comes with ErrLimit. It keeps the row's Data. (UpdateItem ADD; the condition `field <= max -
	// delta` is what makes it safe; a row found expired is replaced under a condition on what was read.)
	Add(ctx context.Context, key Key, field string, delta, max int64, expires time.Time) (int64, error)
}
