package rest

import (
	"errors"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/jsonwalk"
	"github.com/buzon-mail/buzon/shared/op"
)

// shape is what the strict walk knows of a value: which members an object may have. Types and bounds are huma's business.
// The walk closes what lies between huma and encoding/json: a name in another letter case or a second equal name passes
// the one and is stored by the other, unvalidated.
type shape struct {
	closed bool     // an object with the members of names only
	names  []string // in the order of the schema
	fields []*shape
	rest   *shape // of the members of an open object
	item   *shape // of the items of an array
}

type shaper struct {
	registry huma.Registry
	known    map[string]*shape
}

func newShaper(r huma.Registry) *shaper { return &shaper{registry: r, known: map[string]*shape{}} }

func (b *shaper) of(s *huma.Schema) *shape {
	if s == nil {
		return nil
	}
	if s.Ref != "" {
		if have, ok := b.known[s.Ref]; ok {
			return have
		}
		out := &shape{}
		b.known[s.Ref] = out
		b.fill(out, b.registry.SchemaFromRef(s.Ref))
		return out
	}
	out := &shape{}
	b.fill(out, s)
	return out
}

func (b *shaper) fill(out *shape, s *huma.Schema) {
	if s == nil {
		return
	}
	out.item = b.of(s.Items)
	switch more := s.AdditionalProperties.(type) {
	case bool:
		out.closed = !more
	case *huma.Schema:
		out.rest = b.of(more)
	}
	for name := range s.Properties {
		out.names = append(out.names, name)
	}
	slices.Sort(out.names)
	for _, name := range out.names {
		out.fields = append(out.fields, b.of(s.Properties[name]))
	}
}

// walker checks one body.
type walker struct {
	data  []byte
	path  []string
	fault *apperr.Error
}

// check walks the whole body.
func (s *shape) check(data []byte) error {
	w := walker{data: data}
	at := jsonwalk.Space(data, 0)
	end, err := w.value(at, 0, s)
	if err == nil && jsonwalk.Space(data, end) != len(data) {
		err = jsonwalk.ErrSyntax
	}
	if err != nil {
		return unreadable(err)
	}
	if w.fault != nil {
		return w.fault
	}
	return nil
}

func unreadable(err error) error {
	message := "expected JSON"
	switch {
	case errors.Is(err, jsonwalk.ErrDepth):
		message = "nested too deeply"
	case errors.Is(err, jsonwalk.ErrUTF8):
		message = "expected UTF-8"
	}
	return apperr.New(apperr.Invalid, "", "The body is not valid JSON.", "Send one JSON object.").At("body", message)
}

func (w *walker) value(at, depth int, s *shape) (int, error) {
	if at < len(w.data) {
		switch w.data[at] {
		case '{':
			return w.object(at, depth+1, s)
		case '[':
			return w.array(at, depth+1, s)
		}
	}
	return jsonwalk.Value(w.data, at, depth)
}

func (w *walker) array(at, depth int, s *shape) (int, error) {
	var item *shape
	if s != nil {
		item = s.item
	}
	begun := false
	for {
		next, done, err := jsonwalk.Step(w.data, at, depth, '[', begun)
		if err != nil || done {
			return next, err
		}
		begun = true
		if at, err = w.value(next, depth, item); err != nil {
			return at, err
		}
	}
}

func (w *walker) object(at, depth int, s *shape) (int, error) {
	var seen jsonwalk.Names
	begun := false
	for {
		next, done, err := jsonwalk.Step(w.data, at, depth, '{', begun)
		if err != nil || done {
			return next, err
		}
		begun = true
		end, err := jsonwalk.String(w.data, next)
		if err != nil {
			return end, err
		}
		name, field := w.member(w.data[next:end], s, &seen)
		at = jsonwalk.Space(w.data, end)
		if at >= len(w.data) || w.data[at] != ':' {
			return at, jsonwalk.ErrSyntax
		}
		w.path = append(w.path, name)
		if at, err = w.value(jsonwalk.Space(w.data, at+1), depth, field); err != nil {
			return at, err
		}
		w.path = w.path[:len(w.path)-1]
	}
}

// member judges one name and returns its text and the shape of its value.
func (w *walker) member(token []byte, s *shape, seen *jsonwalk.Names) (string, *shape) {
	name, index := s.find(token)
	if !seen.Add(name) {
		w.refuse(name, "this member is there twice", "Name each member once.")
		return name, nil
	}
	switch {
	case s == nil:
		return name, nil
	case index >= 0:
		return name, s.fields[index]
	case s.closed:
		w.refuse(name, "unknown member", "The members here are: "+strings.Join(s.names, ", ")+".")
	}
	return name, s.rest
}

// find looks a name up without copying it: known names are returned as the schema's own string.
func (s *shape) find(token []byte) (string, int) {
	inner := token[1 : len(token)-1]
	if s != nil {
		for i, name := range s.names {
			if string(inner) == name {
				return name, i
			}
		}
	}
	name := jsonwalk.Text(token)
	if s != nil && len(name) != len(inner) { // it had escapes
		return name, slices.Index(s.names, name)
	}
	return name, -1
}

func (w *walker) refuse(name, message, fix string) {
	if w.fault == nil {
		w.fault = apperr.New(apperr.Invalid, "", "The body is not valid.")
	}
	if len(w.fault.Details) >= maxDetails {
		return
	}
	location := "body"
	for _, p := range w.path {
		location += "." + op.Brief(p)
	}
	w.fault = w.fault.At(location+"."+op.Brief(name), message)
	if !slices.Contains(w.fault.Fixes, fix) && len(w.fault.Fixes) < maxDetails {
		w.fault.Fixes = append(w.fault.Fixes, fix)
	}
}
