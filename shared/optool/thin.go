package optool

import (
	"iter"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// TagWords is the struct tag with what a tool says of an argument instead of its doc: doc is for developers, who read one operation
// at a time in the OpenAPI document; a tool's words are in a model's context all the time, every tool's. Empty says nothing, for what
// the name, the type and the values tell already. Words behind "-", or none, leave out default, bounds and the members of an object
// too, for what hardly anybody sets and what the words say.
const TagWords = "tool"

// reword gives an argument the words of its tag, and takes null from a list that only is a slice: where null says something else than
// none its type is another.
func reword(s *huma.Schema, f reflect.StructField) {
	if f.Type.Kind() == reflect.Slice {
		s.Nullable = false
	}
	words, ok := f.Tag.Lookup(TagWords)
	if !ok {
		return
	}
	words, short := strings.CutPrefix(words, "-")
	if short {
		s.Default, s.Minimum, s.Maximum, s.MinItems, s.MaxItems = nil, nil, nil, nil, nil
	}
	if short && s.Ref != "" {
		s.Ref, s.Type = "", huma.TypeObject
	}
	s.Description = strings.TrimSpace(words)
}

// thin takes out of schemas what a model has no use for, and returns the definitions that they still refer to. The route checks
// everything that is taken out, and its refusal names it.
func thin(r huma.Registry, schemas []*huma.Schema) map[string]*huma.Schema {
	t := thinner{registry: r, uses: map[string]int{}, shared: map[string]*huma.Schema{}}
	for _, s := range schemas {
		t.visit(s)
	}
	for _, s := range schemas {
		t.fold(s)
	}
	return t.shared
}

type thinner struct {
	registry huma.Registry
	uses     map[string]int          // how often a definition is referred to
	shared   map[string]*huma.Schema // those that more than one place refers to, themselves among them
}

// visit thins a schema and what it refers to, once each, and counts.
func (t *thinner) visit(s *huma.Schema) {
	if s.Ref == "" {
		bare(s)
		for part := range parts(s) {
			t.visit(part)
		}
		return
	}
	t.uses[s.Ref]++
	if t.uses[s.Ref] > 1 {
		return
	}
	def := t.registry.SchemaFromRef(s.Ref)
	for _, f := range reflect.VisibleFields(t.registry.TypeFromRef(s.Ref)) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if member := def.Properties[name]; member != nil {
			reword(member, f)
		}
	}
	t.visit(def)
}

// fold puts a definition where the only reference to it stands: what a definition of its own costs buys nothing then.
func (t *thinner) fold(s *huma.Schema) {
	if ref := s.Ref; ref != "" {
		def := t.registry.SchemaFromRef(ref)
		if t.uses[ref] > 1 {
			name := strings.TrimPrefix(ref, definitions)
			if _, done := t.shared[name]; !done {
				t.shared[name] = def
				t.fold(def)
			}
			return
		}
		words := s.Description
		*s = *def
		s.Description = words
	}
	for part := range parts(s) {
		t.fold(part)
	}
}

// parts are the schemas within one.
func parts(s *huma.Schema) iter.Seq[*huma.Schema] {
	return func(yield func(*huma.Schema) bool) {
		if s.Items != nil && !yield(s.Items) {
			return
		}
		for _, p := range s.Properties {
			if !yield(p) {
				return
			}
		}
		if more, ok := s.AdditionalProperties.(*huma.Schema); ok {
			yield(more)
		}
	}
}

// manyItems is a length of lists that reasonable use does not come near.
const manyItems = 10

// bare takes out the width of numbers, the bounds that nobody reaches by reasonable use, and defaults that are nothing
// or stand beside a maximum: who wants another value needs to know how far it may go.
func bare(s *huma.Schema) {
	s.MinLength, s.MaxLength = nil, nil
	if s.Minimum != nil && *s.Minimum >= 0 && *s.Minimum <= 1 {
		s.Minimum = nil
	}
	if s.Default != nil && (s.Maximum != nil || reflect.ValueOf(s.Default).IsZero()) {
		s.Default = nil
	}
	switch s.Type {
	case huma.TypeInteger, huma.TypeNumber:
		s.Format = ""
	case huma.TypeArray:
		s.MinItems = nil
		if s.MaxItems != nil && (*s.MaxItems > manyItems || s.Items != nil && len(s.Items.Enum) > 0) {
			s.MaxItems = nil // an enumeration has no more to name
		}
	}
}
