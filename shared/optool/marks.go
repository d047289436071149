package optool

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// marks is where values of one type have members called untrusted, worked out once from the type. With it the pointers of a
// reply come from the lengths of its lists; to read them out of the reply's text was a seventh of the cost of a list of mails.
//
// It holds only for types whose JSON their fields tell. For every other (a map, an interface, a type that writes itself, a
// field that may be left out) there are no marks, and the text is scanned.
type marks struct {
	of     reflect.Type
	fields []markedField // of a struct
	item   *marks        // of a slice, an array
	target *marks        // of a pointer
}

// markedField is a field in which there is something to point at.
type markedField struct {
	index     []int
	name      string
	untrusted bool   // it is called so, and what is in it is not looked into
	inner     *marks // else
}

// marksOf returns the marks of a type; nil for none. ok is false when the type does not tell.
func marksOf(t reflect.Type) (m *marks, ok bool) { return readMarks(t, nil) }

func readMarks(t reflect.Type, above []reflect.Type) (m *marks, ok bool) {
	for _, outer := range above {
		if outer == t {
			return nil, false // a type in itself
		}
	}
	if writesItself(t) {
		return nil, isScalar(t)
	}
	above = append(above, t)
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return nil, true
	case reflect.Pointer:
		inner, ok := readMarks(t.Elem(), above)
		if inner == nil || !ok {
			return nil, ok
		}
		return &marks{of: t, target: inner}, true
	case reflect.Slice, reflect.Array:
		inner, ok := readMarks(t.Elem(), above)
		if inner == nil || !ok {
			return nil, ok
		}
		return &marks{of: t, item: inner}, true
	case reflect.Struct:
		return structMarks(t, above)
	default:
		return nil, false
	}
}

// writesItself reports whether encoding/json leaves the type, or a pointer to it, to write itself.
func writesItself(t reflect.Type) bool {
	for _, marshaler := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Implements(marshaler) || t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(marshaler) {
			return true
		}
	}
	return false
}

// isScalar reports whether a type that writes itself declares that it writes a text, a number or a truth.
func isScalar(t reflect.Type) bool {
	if t == reflect.TypeFor[time.Time]() {
		return true
	}
	if t.Kind() == reflect.Pointer {
		return false
	}
	declared, ok := reflect.New(t).Interface().(huma.SchemaProvider)
	if !ok {
		return false
	}
	s := declared.Schema(huma.NewMapRegistry(definitions, huma.DefaultSchemaNamer))
	return s != nil && (s.Type == huma.TypeString || s.Type == huma.TypeInteger || s.Type == huma.TypeNumber || s.Type == huma.TypeBoolean)
}

func structMarks(t reflect.Type, above []reflect.Type) (*marks, bool) {
	m := &marks{of: t}
	seen := map[string]bool{}
	if !m.addFields(t, nil, above, seen) {
		return nil, false
	}
	if len(m.fields) == 0 {
		return nil, true
	}
	return m, true
}

// addFields follows encoding/json: an embedded struct without a name of its own is part of the outer one. Two fields of one
// name would be settled by rules that are not repeated here.
func (m *marks) addFields(t reflect.Type, index []int, above []reflect.Type, seen map[string]bool) bool {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(append([]int(nil), index...), i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" && options == "":
			continue
		case f.Anonymous:
			if name != "" || f.Type.Kind() != reflect.Struct || writesItself(f.Type) || !m.addFields(f.Type, at, above, seen) {
				return false
			}
			continue
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		if seen[name] || !plainName(name) {
			return false
		}
		seen[name] = true
		field := markedField{index: at, name: name, untrusted: name == untrustedName}
		if !field.untrusted {
			inner, ok := readMarks(f.Type, above)
			if !ok {
				return false
			}
			if inner == nil {
				continue
			}
			field.inner = inner
		}
		if options != "" {
			return false // it may be left out, and then nothing may point at it
		}
		m.fields = append(m.fields, field)
	}
	return true
}

// plainName reports whether a name is the same in a reference token of a pointer, and as encoding/json takes it from a tag.
func plainName(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return name != ""
}

// append writes what appendUntrusted finds in the text of v, which is of the marks' type.
func (m *marks) append(out []byte, key string, v reflect.Value) []byte {
	start := len(out)
	out = append(strconv.AppendQuote(out, key), ':', '[')
	p := pointers{out: out, first: len(out)}
	var path [128]byte
	p.walk(m, v, path[:0])
	switch {
	case len(p.out) == p.first:
		return p.out[:start]
	case len(p.out)-p.first > maxPointers:
		p.out = append(p.out[:p.first], `""`...)
	}
	return append(p.out, ']')
}

// pointers collects the pointers of one value.
type pointers struct {
	out   []byte
	first int
}

// walk goes through v, whose pointer is path.
func (p *pointers) walk(m *marks, v reflect.Value, path []byte) {
	if len(p.out)-p.first > maxPointers {
		return
	}
	switch {
	case m.target != nil:
		if !v.IsNil() {
			p.walk(m.target, v.Elem(), path)
		}
	case m.item != nil:
		for i := range v.Len() {
			p.walk(m.item, v.Index(i), strconv.AppendInt(append(path, '/'), int64(i), 10))
		}
	default:
		for i := range m.fields {
			f := &m.fields[i]
			at := append(append(path, '/'), f.name...)
			if !f.untrusted {
				p.walk(f.inner, v.FieldByIndex(f.index), at)
				continue
			}
			if len(p.out) > p.first {
				p.out = append(p.out, ',')
			}
			p.out = append(append(append(p.out, '"'), at...), '"')
		}
	}
}
