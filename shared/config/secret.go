package config

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a value that must not be seen: it prints as a fixed text everywhere, whatever prints it. Reveal is the only way
// to read it, so that every place that does is found by that word.
type Secret string

const redacted = "(redacted)"

// Reveal returns the value.
func (s Secret) Reveal() string { return string(s) }

// String hides the value from whatever asks for text.
func (s Secret) String() string { return redacted }

// Format hides the value from every verb of fmt: a wrong one, as %d, would print it beside the complaint.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// GoString hides the value from %#v.
func (s Secret) GoString() string { return redacted }

// LogValue hides the value from log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the value from encoding/json and other text encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
