package inboxstore

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/buzon-mail/buzon/shared/inbox"
	"github.com/buzon-mail/buzon/shared/store"
)

func TestRowCacheGoesByTheBytes(t *testing.T) {
	decoded := 0
	c := newRowCache(func(text string) (*string, error) {
		decoded++
		if text == "bad" {
			return nil, errSummary
		}
		return &text, nil
	})
	of := func(data string) *string {
		t.Helper()
		item := store.Item{Format: format, Data: []byte(data)}
		v, err := c.of(&item)
		if err != nil || *v != data {
			t.Fatalf("%q became %v, %v", data, v, err)
		}
		copy(item.Data, "overwritten") // the bytes are the engine's again
		return v
	}
	if first := of("one row"); of("one row") != first || decoded != 1 {
		t.Errorf("%d decoded: the same bytes are the same row", decoded)
	}
	if of("one row") == of("one rpw") {
		t.Error("two rows are one")
	}
	for range 2 {
		if v, err := c.of(&store.Item{Format: format, Data: []byte("bad")}); !errors.Is(err, errSummary) || v != nil {
			t.Errorf("%v, %v: what could not be decoded was kept", v, err)
		}
	}
	if v, err := c.of(&store.Item{Format: format + 1, Data: []byte("one row")}); !errors.Is(err, store.ErrFormat) || v != nil {
		t.Errorf("%v, %v: a row of a newer program passes for one that was decoded before", v, err)
	}
}

func TestRowCacheIsBounded(t *testing.T) {
	c := newRowCache(func(text string) (*string, error) { return &text, nil })
	of := func(data string) *string {
		v, err := c.of(&store.Item{Format: format, Data: []byte(data)})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	asked, once := of("asked for all the time"), of("asked for once")
	for i := range 5000 {
		of(fmt.Sprintf("%s%d", strings.Repeat("x", 1000), i))
		if of("asked for all the time") != asked {
			t.Fatalf("forgotten after %d others, though it was asked for", i)
		}
	}
	if of("asked for once") == once {
		t.Error("a row that nobody asked for is still there")
	}
	size := 0
	for _, half := range []map[string]*string{c.young, c.old} {
		for text := range half {
			size += len(text) + perRow
		}
	}
	if size > 2*cacheRoom || size < cacheRoom/2 {
		t.Errorf("%d bytes are kept, want at most %d", size, 2*cacheRoom)
	}
	for i := range 5000 {
		of(fmt.Sprint(i))
		of("asked for all the time")
	}
	if n := len(c.young) + len(c.old); n > 2*cacheRoom/perRow {
		t.Errorf("%d rows of a few bytes are kept: each takes more than its bytes", n)
	}
	big := strings.Repeat("y", cacheRoom+1)
	if first := of(big); of(big) == first || of("asked for all the time") != asked {
		t.Error("a row larger than the cache took the place of all others")
	}
}

// Rows that are handed on as copies must hold nothing that a caller could change in all of them.
func TestCopiedRowsShareNothing(t *testing.T) {
	for _, row := range []reflect.Type{reflect.TypeFor[inbox.Inbox](), reflect.TypeFor[inbox.Workspace]()} {
		for _, f := range reflect.VisibleFields(row) {
			switch f.Type.Kind() {
			case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64:
			default:
				if f.Type != reflect.TypeFor[time.Time]() {
					t.Errorf("%s.%s is a %s", row, f.Name, f.Type)
				}
			}
		}
	}
}
