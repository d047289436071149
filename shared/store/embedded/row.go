package embedded

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/buzon-mail/buzon/shared/store"
)

//nolint:gochecknoglobals // constant table
var (
	coreBucket      = []byte("core")
	ephemeralBucket = []byte("ephemeral")
	expiryBucket    = []byte("expiry")
	metaBucket      = []byte("meta")
	layoutKey       = []byte("layout")
)

// keyRoom holds usual keys without an allocation.
const keyRoom = 192

func bucketOf(t store.Table) []byte {
	if t == store.Ephemeral {
		return ephemeralBucket
	}
	return coreBucket
}

// appendKey writes a row's key: the partition's length in two bytes, partition, sort key. The length keeps partitions "a" and
// "ab" apart whatever bytes follow; inside a partition the order is that of the sort keys.
func appendKey(b []byte, partition, sort string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(partition))) //nolint:gosec // at most store.MaxKeyPart
	b = append(b, partition...)
	return append(b, sort...)
}

// appendExpiry writes the key of an expiry-index entry: seconds, table, row key; so that the entries that are due come first.
func appendExpiry(b []byte, seconds int64, t store.Table, rowKey []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(seconds)) //nolint:gosec // validated as positive
	b = append(b, byte(t))
	return append(b, rowKey...)
}

// expiryHead is the length of an expiry key before the row key.
const expiryHead = 9

// row is a value as it lies in the file; data and counters point into the file's mapping and end with the transaction.
//
//	byte   layout of the value, 1
//	byte   Format
//	uint64 Revision, big endian
//	uint64 Expires in seconds, 0 for never
//	uvarint number of counters, then for each: uvarint length, name, varint value
//	the rest is Data
type row struct {
	format   uint8
	revision uint64
	expires  int64
	counters map[string]int64
	data     []byte
}

const (
	rowLayout = 1
	rowHead   = 18
)

func (r row) append(b []byte) []byte {
	b = append(b, rowLayout, r.format)
	b = binary.BigEndian.AppendUint64(b, r.revision)
	b = binary.BigEndian.AppendUint64(b, uint64(r.expires)) //nolint:gosec // validated as not negative
	b = binary.AppendUvarint(b, uint64(len(r.counters)))
	for _, name := range slices.Sorted(maps.Keys(r.counters)) {
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
		b = binary.AppendVarint(b, r.counters[name])
	}
	return append(b, r.data...)
}

// parseRow never trusts the file: a damaged one is an error and not a panic.
func parseRow(b []byte) (row, error) {
	if len(b) <= rowHead || b[0] != rowLayout {
		return row{}, damaged("head")
	}
	r := row{format: b[1], revision: binary.BigEndian.Uint64(b[2:]), expires: int64(binary.BigEndian.Uint64(b[10:]))} //nolint:gosec // what append wrote
	b = b[rowHead:]
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return row{}, damaged("counters")
	}
	b = b[n:]
	if count > 0 {
		r.counters = make(map[string]int64, count)
	}
	for range count {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return row{}, damaged("counter's name")
		}
		name := string(b[n : n+int(size)]) //nolint:gosec // at most len(b)
		b = b[n+int(size):]                //nolint:gosec // at most len(b)
		value, n := binary.Varint(b)
		if n <= 0 {
			return row{}, damaged("counter's value")
		}
		r.counters[name] = value
		b = b[n:]
	}
	r.data = b
	return r, nil
}

func damaged(what string) error { return fmt.Errorf("embedded: damaged row: %s", what) }

// item is the row as a caller gets it. Its data must have been copied out of the file's mapping.
func (r row) item(key store.Key) store.Item {
	return store.Item{
		Key: key, Format: r.format, Revision: r.revision, Expires: store.FromSeconds(r.expires),
		Counters: r.counters, Data: r.data,
	}
}

func (r row) size(key store.Key) int {
	return store.Item{Key: key, Data: r.data, Counters: r.counters}.Size()
}
