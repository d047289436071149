package optool

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// place is where an argument goes in the request.
type place uint8

const (
	inPath place = iota
	inQuery
	inHeader
	inBody
)

// kind is the JSON type of a parameter.
type kind uint8

const (
	kindString kind = iota
	kindInteger
	kindNumber
	kindBoolean
	kindAny // members of the body: the route judges them
)

func (k kind) String() string {
	return [...]string{"a string", "an integer", "a number", "true or false", "any value"}[k]
}

// field is one argument of a tool, as the tags of the input say.
type field struct {
	name    string // of the argument
	wire    string // in its place
	place   place
	kind    kind // of the value, or of the items of an array
	array   bool
	explode bool // an array is sent as repeated parameters
	source  reflect.StructField
}

// fieldsOf lists the arguments of an input in the order of its fields. body is the type of the body, nil when there is
// none; optional says that it may be absent.
func fieldsOf(input reflect.Type) (fields []field, body reflect.Type, optional bool, err error) {
	for i := range input.NumField() {
		f := input.Field(i)
		if f.Name == "Body" {
			body, optional = f.Type, f.Type.Kind() == reflect.Pointer && f.Tag.Get("required") != "true"
			if optional || body.Kind() == reflect.Pointer {
				body = body.Elem()
			}
			continue
		}
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			inner, innerBody, innerOptional, err := fieldsOf(f.Type)
			if err != nil {
				return nil, nil, false, err
			}
			fields = append(fields, inner...)
			if innerBody != nil {
				body, optional = innerBody, innerOptional
			}
			continue
		}
		p, ok, err := parameterOf(f)
		if err != nil {
			return nil, nil, false, err
		}
		if ok {
			fields = append(fields, p)
		}
	}
	if body == nil {
		return fields, nil, false, nil
	}
	members, err := membersOf(body)
	return append(fields, members...), body, optional, err
}

func parameterOf(f reflect.StructField) (p field, ok bool, err error) {
	p.source = f
	switch {
	case f.Tag.Get("hidden") == "true":
		return p, false, nil
	case f.Tag.Get("path") != "":
		p.wire, p.place = f.Tag.Get("path"), inPath
	case f.Tag.Get("query") != "":
		name, rest, _ := strings.Cut(f.Tag.Get("query"), ",")
		p.wire, p.place, p.explode = name, inQuery, strings.Contains(rest, "explode")
		if strings.Contains(rest, "deepObject") {
			return p, false, fmt.Errorf("optool: field %s: deepObject parameters have no argument", f.Name)
		}
	case f.Tag.Get("header") != "":
		p.wire, p.place = http.CanonicalHeaderKey(f.Tag.Get("header")), inHeader
	default:
		return p, false, nil
	}
	p.name = p.wire
	if p.place == inHeader {
		p.name = strings.ReplaceAll(strings.ToLower(p.wire), "-", "_")
	}
	t := f.Type
	if t.Kind() == reflect.Slice {
		p.array, t = true, t.Elem()
	}
	if w, ok := reflect.New(t).Interface().(huma.ParamWrapper); ok { // a parameter that knows whether it was there
		t = w.Receiver().Type()
	}
	if p.place != inQuery && p.array {
		return p, false, fmt.Errorf("optool: field %s: only query parameters can be arrays", f.Name)
	}
	p.kind = kindOf(t)
	return p, true, nil
}

func kindOf(t reflect.Type) kind {
	switch t.Kind() {
	case reflect.Bool:
		return kindBoolean
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return kindInteger
	case reflect.Float32, reflect.Float64:
		return kindNumber
	}
	return kindString
}

// membersOf lists the members of a body, which must be an object to lie flat beside the parameters.
func membersOf(body reflect.Type) ([]field, error) {
	if body.Kind() != reflect.Struct || body == reflect.TypeFor[time.Time]() {
		return nil, fmt.Errorf("optool: a body of type %s is not an object with known members", body)
	}
	var fields []field
	for _, f := range reflect.VisibleFields(body) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Tag.Get("hidden") == "true" || (f.Anonymous && name == "") {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields = append(fields, field{name: name, wire: name, place: inBody, kind: kindAny, source: f})
	}
	return fields, nil
}
