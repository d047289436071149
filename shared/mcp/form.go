package mcp

import (
	"errors"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Form is the flat form that a user is asked to fill in: the restricted schema of MCP 2026-07-28, elicitation, "Requested Schema".
type Form []Field

// FieldType is what a field holds.
type FieldType uint8

// The types of a field. A choice holds one of its options, choices any number of them.
const (
	TextField FieldType = iota
	NumberField
	IntegerField
	BooleanField
	ChoiceField
	ChoicesField
)

// Field is one field of a form.
type Field struct {
	Name        string
	Title       string
	Description string
	Type        FieldType
	Required    bool
	MinLength   int      // TextField, in runes
	MaxLength   int      // TextField; 0: none
	Format      string   // TextField: email, uri, date, date-time or empty
	Min, Max    *float64 // NumberField and IntegerField
	Options     []Option // ChoiceField and ChoicesField
	MinItems    int      // ChoicesField
	MaxItems    int      // ChoicesField; 0: none
	Default     *Value   // what the client may fill in beforehand; nil: nothing
}

// Option is one of the values to choose from. Either all options of a field have titles or none has.
type Option struct{ Value, Title string }

// Value is what a field was filled with: of the four, the one that the field's type says.
type Value struct {
	Text    string   // TextField and ChoiceField
	Number  float64  // NumberField and IntegerField
	Bool    bool     // BooleanField
	Choices []string // ChoicesField
}

// Check finds what is wrong with the form itself. AskForm does it too, but a server that knows its forms can do it when it starts.
func (f Form) Check() error {
	for i, field := range f {
		if field.Name == "" || slices.ContainsFunc(f[:i], func(o Field) bool { return o.Name == field.Name }) {
			return fmt.Errorf("mcp: field %d of a form has no name of its own", i)
		}
		if err := field.check(); err != nil {
			return fmt.Errorf("mcp: field %q of a form: %w", field.Name, err)
		}
	}
	return nil
}

func (f Field) check() error {
	choice := f.Type == ChoiceField || f.Type == ChoicesField
	switch {
	case f.Type > ChoicesField:
		return errors.New("no such type")
	case choice != (len(f.Options) > 0):
		return errors.New("a choice has options and nothing else has")
	case f.MinLength < 0 || f.MaxLength < 0 || f.MaxLength > 0 && f.MaxLength < f.MinLength:
		return errors.New("the lengths contradict each other")
	case f.MinItems < 0 || f.MaxItems < 0 || f.MaxItems > 0 && f.MaxItems < f.MinItems || f.MinItems > len(f.Options) && f.Type == ChoicesField:
		return errors.New("the numbers of items contradict each other")
	case f.Min != nil && !finite(*f.Min), f.Max != nil && !finite(*f.Max), f.Min != nil && f.Max != nil && *f.Max < *f.Min:
		return errors.New("the bounds contradict each other")
	case !slices.Contains([]string{"", "email", "uri", "date", "date-time"}, f.Format):
		return errors.New("no such format")
	case f.Format != "" && f.Type != TextField:
		return errors.New("only text has a format")
	}
	for i, o := range f.Options {
		if (o.Title == "") != (f.Options[0].Title == "") || slices.ContainsFunc(f.Options[:i], func(p Option) bool { return p.Value == o.Value }) {
			return errors.New("options need values of their own, and titles all or none")
		}
	}
	if f.Default != nil && !f.holds(*f.Default) {
		return errors.New("the default is not a value of the field")
	}
	return nil
}

// read takes a value out of JSON that the scan accepted.
func (f Field) read(raw []byte) (v Value, ok bool) {
	switch f.Type {
	case TextField, ChoiceField:
		if !isText(raw) {
			return v, false
		}
		v.Text = string(unquote(raw))
	case NumberField, IntegerField:
		n, err := strconv.ParseFloat(string(raw), 64)
		if !isNumber(raw) || err != nil {
			return v, false
		}
		v.Number = n
	case BooleanField:
		v.Bool = string(raw) == "true"
		if !v.Bool && string(raw) != "false" {
			return v, false
		}
	case ChoicesField:
		if len(raw) == 0 || raw[0] != '[' {
			return v, false
		}
		ok = true
		v.Choices = []string{}
		eachElement(raw, func(e []byte) {
			ok = ok && isText(e)
			v.Choices = append(v.Choices, string(unquote(e)))
		})
		if !ok {
			return v, false
		}
	}
	return v, f.holds(v)
}

// holds reports whether v is within what the form asks for.
func (f Field) holds(v Value) bool {
	switch f.Type {
	case TextField:
		n := utf8.RuneCountInString(v.Text)
		return n >= f.MinLength && (f.MaxLength == 0 || n <= f.MaxLength) && hasFormat(f.Format, v.Text)
	case NumberField, IntegerField:
		if f.Type == IntegerField && v.Number != math.Trunc(v.Number) {
			return false
		}
		return finite(v.Number) && (f.Min == nil || v.Number >= *f.Min) && (f.Max == nil || v.Number <= *f.Max)
	case ChoiceField:
		return f.offers(v.Text)
	case ChoicesField:
		for i, c := range v.Choices {
			if !f.offers(c) || slices.Contains(v.Choices[:i], c) {
				return false
			}
		}
		return len(v.Choices) >= f.MinItems && (f.MaxItems == 0 || len(v.Choices) <= f.MaxItems)
	}
	return true
}

func (f Field) offers(value string) bool {
	return slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == value })
}

func hasFormat(format, s string) bool {
	switch format {
	case "email":
		a, err := mail.ParseAddress(s)
		return err == nil && a.Address == s
	case "uri":
		u, err := url.Parse(s)
		return err == nil && u.Scheme != ""
	case "date":
		_, err := time.Parse(time.DateOnly, s)
		return err == nil
	case "date-time":
		_, err := time.Parse(time.RFC3339, s)
		return err == nil
	}
	return true
}

func finite(n float64) bool { return !math.IsNaN(n) && !math.IsInf(n, 0) }

// append renders the requestedSchema of a form that Check passed.
func (f Form) append(dst []byte) []byte {
	dst = append(dst, `{"type":"object","properties":{`...)
	required := []string(nil)
	for i, field := range f {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = field.append(append(appendQuoted(dst, field.Name), ':'))
		if field.Required {
			required = append(required, field.Name)
		}
	}
	dst = append(dst, '}')
	if len(required) > 0 {
		dst = appendTexts(append(dst, `,"required":`...), required)
	}
	return append(dst, '}')
}

//nolint:gochecknoglobals // constant table
var fieldTypes = [...]string{"string", "number", "integer", "boolean", "string", "array"}

func (f Field) append(dst []byte) []byte {
	dst = appendQuoted(append(dst, `{"type":`...), fieldTypes[f.Type])
	dst = appendText(dst, "title", f.Title)
	dst = appendText(dst, "description", f.Description)
	count := func(name string, n int) {
		if n > 0 {
			dst = strconv.AppendInt(append(append(append(dst, `,"`...), name...), `":`...), int64(n), 10)
		}
	}
	bound := func(name string, n *float64) {
		if n != nil {
			dst = appendNumber(append(append(append(dst, `,"`...), name...), `":`...), *n)
		}
	}
	count("minLength", f.MinLength)
	count("maxLength", f.MaxLength)
	dst = appendText(dst, "format", f.Format)
	bound("minimum", f.Min)
	bound("maximum", f.Max)
	switch f.Type {
	case ChoiceField:
		dst = f.appendOptions(append(dst, ','), `"oneOf":`)
	case ChoicesField:
		count("minItems", f.MinItems)
		count("maxItems", f.MaxItems)
		dst = append(dst, `,"items":{`...)
		if f.Options[0].Title == "" {
			dst = append(dst, `"type":"string",`...)
		}
		dst = append(f.appendOptions(dst, `"anyOf":`), '}')
	}
	if f.Default != nil {
		dst = f.appendValue(append(dst, `,"default":`...), *f.Default)
	}
	return append(dst, '}')
}

// appendOptions renders plain values as enum, and titled ones as constants under titled.
func (f Field) appendOptions(dst []byte, titled string) []byte {
	if f.Options[0].Title == "" {
		values := make([]string, len(f.Options))
		for i, o := range f.Options {
			values[i] = o.Value
		}
		return appendTexts(append(dst, `"enum":`...), values)
	}
	dst = append(append(dst, titled...), '[')
	for i, o := range f.Options {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQuoted(append(dst, `{"const":`...), o.Value)
		dst = append(appendQuoted(append(dst, `,"title":`...), o.Title), '}')
	}
	return append(dst, ']')
}

func (f Field) appendValue(dst []byte, v Value) []byte {
	switch f.Type {
	case NumberField, IntegerField:
		return appendNumber(dst, v.Number)
	case BooleanField:
		return strconv.AppendBool(dst, v.Bool)
	case ChoicesField:
		return appendTexts(dst, v.Choices)
	}
	return appendQuoted(dst, v.Text)
}
