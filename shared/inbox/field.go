package inbox

// Field is one member of a merge-patch (RFC 7396): absent leaves what is there, null resets it, a value sets it.
type Field[T any] struct {
	Present bool
	Null    bool
	Value   T
}

// Set is a Field with a value.
func Set[T any](v T) Field[T] { return Field[T]{Present: true, Value: v} }

// Null is a Field that resets.
func Null[T any]() Field[T] { return Field[T]{Present: true, Null: true} }

// or is the value that the field leads to: current when absent, zero when null.
func (f Field[T]) or(current T) T {
	switch {
	case !f.Present:
		return current
	case f.Null:
		var zero T
		return zero
	}
	return f.Value
}
