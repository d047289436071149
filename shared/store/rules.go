package store

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// The bounds. DynamoDB's own are 400 KB an item and 100 items or 4 MB a transaction; ours leave room for attribute names,
// for counters and for what an engine adds.
const (
	MaxKeyPart          = 1024 // bytes of Partition or Sort
	MaxField            = 64   // bytes of a counter's name
	MaxItemSize         = 350 << 10
	MaxRowSize          = 400 << 10 // an item with its counters; Add refuses to grow a row beyond it
	MaxTransactionItems = 50
	MaxTransactionSize  = 3 << 20
	MaxLimit            = 1000
	MaxReads            = 4       // rows that a query may read for each row of its limit
	MaxPageSize         = 1 << 20 // bytes after which a query stops to read

	counterSize = 21 // bytes that DynamoDB charges at most for a number
	rowOverhead = 64 // bytes for the names and values of format, revision, expiry
)

// maxExpires is the end of the year 9999, the last that RFC 3339 can write.
const maxExpires = 253402300799

// Size is what the row counts against the bounds, in the manner of DynamoDB: names and values.
func (i Item) Size() int {
	n := rowOverhead + len(i.Key.Partition) + len(i.Key.Sort) + len(i.Data)
	for name := range i.Counters {
		n += len(name) + counterSize
	}
	return n
}

// Seconds is a time as rows keep it: seconds of the Unix epoch, 0 for never.
func Seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// FromSeconds is the inverse of Seconds, in UTC.
func FromSeconds(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0).UTC()
}

// Expired tells whether a row with this Expires is gone at now, both as Seconds has them.
func Expired(expires, now int64) bool { return expires != 0 && expires <= now }

// Validate checks the key's table and bytes.
func (k Key) Validate() error {
	if err := k.Table.validate(); err != nil {
		return err
	}
	if err := validText("partition", k.Partition, 1, MaxKeyPart); err != nil {
		return err
	}
	return validText("sort key", k.Sort, 1, MaxKeyPart)
}

func (t Table) validate() error {
	if t != Core && t != Ephemeral {
		return fmt.Errorf("%w: table %d", ErrInvalid, t)
	}
	return nil
}

// validText never prints the text: keys can hold addresses, and errors are logged.
func validText(what, s string, low, high int) error {
	if len(s) < low || len(s) > high {
		return fmt.Errorf("%w: %s of %d bytes, want %d to %d", ErrInvalid, what, len(s), low, high)
	}
	// DynamoDB's strings are UTF-8. NUL is left to engines as a separator that no key contains.
	if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		return fmt.Errorf("%w: %s is not UTF-8 without NUL", ErrInvalid, what)
	}
	return nil
}

// Validate checks a row that is about to be put.
func (i Item) Validate() error {
	if err := i.Key.Validate(); err != nil {
		return err
	}
	if i.Format == 0 {
		return fmt.Errorf("%w: format 0", ErrInvalid)
	}
	if len(i.Counters) > 0 {
		return fmt.Errorf("%w: counters are written by Add alone", ErrInvalid)
	}
	if err := validExpires(i.Expires); err != nil {
		return err
	}
	if n := i.Size(); n > MaxItemSize {
		return fmt.Errorf("%w: item of %d bytes, want at most %d", ErrTooLarge, n, MaxItemSize)
	}
	return nil
}

func validExpires(t time.Time) error {
	if s := t.Unix(); !t.IsZero() && (s <= 0 || s > maxExpires) {
		return fmt.Errorf("%w: expires at %d", ErrInvalid, s)
	}
	return nil
}

func (c Condition) validate() error {
	if c.kind > IsRevision {
		return fmt.Errorf("%w: condition %d", ErrInvalid, c.kind)
	}
	return nil
}

// ValidateOps checks a transaction: each op, one item once, count and size. Put and Delete are transactions of one, so
// engines check them here too.
func ValidateOps(ops []Op) error {
	if len(ops) == 0 || len(ops) > MaxTransactionItems {
		return fmt.Errorf("%w: transaction of %d items, want 1 to %d", ErrInvalid, len(ops), MaxTransactionItems)
	}
	size := 0
	for i, op := range ops {
		if err := op.validate(); err != nil {
			return fmt.Errorf("op %d: %w", i, err)
		}
		// DynamoDB refuses two actions on one item; quadratic over 50 is cheaper than a map.
		for j := range i {
			if ops[j].item.Key == op.item.Key {
				return fmt.Errorf("%w: ops %d and %d touch one item", ErrInvalid, j, i)
			}
		}
		size += op.item.Size()
	}
	if size > MaxTransactionSize {
		return fmt.Errorf("%w: transaction of %d bytes, want at most %d", ErrTooLarge, size, MaxTransactionSize)
	}
	return nil
}

func (o Op) validate() error {
	if err := o.cond.validate(); err != nil {
		return err
	}
	switch o.kind {
	case OpPut:
		return o.item.Validate()
	case OpDelete:
		return o.item.Key.Validate()
	case OpCheck:
		if o.cond.kind == Always {
			return fmt.Errorf("%w: check without a condition", ErrInvalid)
		}
		return o.item.Key.Validate()
	}
	return fmt.Errorf("%w: op of kind %d", ErrInvalid, o.kind)
}

// ValidateAdd checks the arguments of Add.
func ValidateAdd(key Key, field string, max int64, expires time.Time) error {
	if err := key.Validate(); err != nil {
		return err
	}
	if err := validText("counter name", field, 1, MaxField); err != nil {
		return err
	}
	if max < 0 {
		return fmt.Errorf("%w: max %d", ErrInvalid, max)
	}
	return validExpires(expires)
}

// Sum is the arithmetic of Add: the new value, and false where it would pass max (0: no bound) or leave int64.
func Sum(value, delta, max int64) (int64, bool) {
	if max == 0 {
		max = math.MaxInt64
	}
	if delta > 0 && value > math.MaxInt64-delta || delta < 0 && value < math.MinInt64-delta {
		return value, false
	}
	if value+delta > max {
		return value, false
	}
	return value + delta, true
}
