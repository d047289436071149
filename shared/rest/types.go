package rest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Patch is a member of a merge-patch body (RFC 7396), which tells three things apart: absent leaves what is there, null
// resets it, a value sets it. Tag it omitempty, so that it is optional.
type Patch[T any] struct {
	Present bool
	Null    bool
	Value   T
}

// UnmarshalJSON is called for null too.
func (p *Patch[T]) UnmarshalJSON(data []byte) error {
	*p = Patch[T]{Present: true, Null: string(data) == "null"}
	if p.Null {
		return nil
	}
	return json.Unmarshal(data, &p.Value) //nolint:wrapcheck // encoding/json adds the place
}

// Schema is that of the value, or null.
func (p Patch[T]) Schema(r huma.Registry) *huma.Schema {
	s := huma.SchemaFromType(r, reflect.TypeFor[T]())
	s.Nullable = true
	return s
}

// Optional is a query parameter whose absence differs from its zero value.
type Optional[T any] struct {
	Value T
	Set   bool
}

// Schema is that of the value.
func (o Optional[T]) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[T]())
}

// Receiver is where huma puts the value.
func (o *Optional[T]) Receiver() reflect.Value { return reflect.ValueOf(o).Elem().Field(0) }

// OnParamSet is called by huma with every request.
func (o *Optional[T]) OnParamSet(set bool, _ any) { o.Set = set }

// Pointer is nil when the parameter is absent.
func (o Optional[T]) Pointer() *T {
	if !o.Set {
		return nil
	}
	return &o.Value
}

var (
	_ huma.SchemaProvider = Patch[int]{}
	_ huma.ParamWrapper   = (*Optional[int])(nil)
	_ huma.ParamReactor   = (*Optional[int])(nil)
)

// Time is a time in a reply: RFC 3339 in UTC with milliseconds, null when zero.
type Time struct{ time.Time }

//nolint:gochecknoglobals // constant; encoding/json only reads it
var null = []byte("null")

// MarshalJSON writes it.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return null, nil
	}
	return t.AppendJSON(nil)
}

func yearError(year int) error { return fmt.Errorf("rest: year %d can't be written", year) }

// Schema is a date-time or null.
func (t Time) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Nullable: true}
}
