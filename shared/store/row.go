package store

import (
	"encoding/json"
	"fmt"
)

// Encode makes a row whose Data is v as JSON in this format version.
func Encode(key Key, format uint8, revision uint64, v any) (Item, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return Item{}, fmt.Errorf("encode a row of format %d: %w", format, err)
	}
	return Item{Key: key, Format: format, Revision: revision, Data: data}, nil
}

// Decode reads a row that Encode made. known is the newest format that the caller understands: a newer row is ErrFormat, so
// that a program rolled back says so and doesn't drop fields when it writes the row again. An older row is decoded into T as
// it stands; a caller whose formats differ in more than added fields looks at item.Format first.
func Decode[T any](item Item, known uint8) (T, error) {
	var v T
	if item.Format > known {
		return v, fmt.Errorf("%w: row has %d, this program knows %d", ErrFormat, item.Format, known)
	}
	if err := json.Unmarshal(item.Data, &v); err != nil {
		var zero T
		return zero, fmt.Errorf("decode a row of format %d: %w", item.Format, err)
	}
	return v, nil
}
