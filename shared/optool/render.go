package optool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/buzon-mail/buzon/shared/op"
)

const definitions = "#/$defs/"

// Render renders every tool of a catalogue for ParseSegments. It is meant for build time: the same catalogue gives the same
// bytes, and a declaration that can't be a tool is an error.
func Render(catalogue *op.Catalogue) ([]byte, error) {
	out := []byte(magic)
	for _, o := range catalogue.Operations() {
		s, err := renderTool(&o)
		if err != nil {
			return nil, fmt.Errorf("optool: render %s: %w", o.Name, err)
		}
		out = s.append(out)
	}
	return out, nil
}

func renderTool(o *op.Operation) (s *Segment, err error) {
	defer func() { // huma panics on a tag that it can't read
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	input, err := inputSchema(o)
	if err != nil {
		return nil, err
	}
	var head object
	head.text("name", o.Name)
	head.text("description", o.Description)
	head.raw("inputSchema", input)
	s = &Segment{Name: o.Name, Head: append([]byte{','}, head.open()...)}
	s.Tails[shapeBare] = []byte("}")
	s.Tails[shapeAnnotated] = tail(func(t *object) { t.raw("annotations", annotations(o, true)) })
	s.Tails[shapeFull] = tail(func(t *object) {
		t.text("title", o.Title)
		if output := outputSchema(o.Output); output != nil {
			t.raw("outputSchema", output)
		}
		t.raw("annotations", annotations(o, false))
	})
	return s, nil
}

// tail is the end of an object that has members already.
func tail(fill func(*object)) []byte {
	var o object
	fill(&o)
	return append([]byte{','}, append(o.open()[1:], '}')...)
}

// annotations are the hints of the tool. Revision 2025-03-26 has the title among them, later ones beside them.
func annotations(o *op.Operation, title bool) []byte {
	var a object
	if title {
		a.text("title", o.Title)
	}
	a.value("readOnlyHint", o.Effect == op.Read)
	a.value("destructiveHint", o.Effect == op.Destructive)
	a.value("idempotentHint", o.Idempotent || o.Effect == op.Read)
	a.value("openWorldHint", false)
	return a.close()
}

// inputSchema is the JSON Schema (2020-12) of the arguments: parameters and the members of the body side by side.
func inputSchema(o *op.Operation) ([]byte, error) {
	fields, body, optional, err := fieldsOf(o.Input)
	if err != nil {
		return nil, err
	}
	registry := huma.NewMapRegistry(definitions, huma.DefaultSchemaNamer)
	var bodySchema *huma.Schema
	if body != nil {
		bodySchema = registry.Schema(body, false, o.Name+"Body")
	}
	schemas := make([]*huma.Schema, len(fields))
	var required []string
	seen := map[string]bool{}
	for i, f := range fields {
		if seen[f.name] {
			return nil, fmt.Errorf("two arguments are called %s", f.name)
		}
		seen[f.name] = true
		if schemas[i] = parameterSchema(registry, &f, bodySchema); schemas[i] == nil {
			return nil, fmt.Errorf("argument %s has no schema", f.name)
		}
		if f.required(bodySchema, optional) {
			required = append(required, f.name)
		}
	}
	shared := thin(registry, schemas)
	var properties object
	for i, f := range fields {
		properties.value(f.name, schemas[i])
	}
	var out object
	out.raw("type", []byte(`"object"`))
	out.raw("properties", properties.close())
	if len(required) > 0 {
		out.value("required", required)
	}
	out.value("additionalProperties", false)
	if len(shared) > 0 {
		out.value("$defs", shared)
	}
	return out.close(), errors.Join(properties.err, out.err)
}

func parameterSchema(r huma.Registry, f *field, body *huma.Schema) *huma.Schema {
	var s *huma.Schema
	if f.place == inBody {
		s = body.Properties[f.name]
	} else {
		s = huma.SchemaFromField(r, f.source, "")
	}
	if s != nil {
		reword(s, f.source)
	}
	return s
}

func (f *field) required(body *huma.Schema, optional bool) bool {
	switch f.place {
	case inPath:
		return true
	case inBody:
		return !optional && slices.Contains(body.Required, f.name)
	}
	return f.source.Tag.Get("required") == "true"
}

// outputSchema is shallow: the members that every reply has. The whole schema is in the OpenAPI document; here it would only
// cost a model's context. Replies that are not objects have none: a structured result must be an object.
func outputSchema(output reflect.Type) []byte {
	body, ok := output.FieldByName("Body")
	if !ok || body.Type.Kind() != reflect.Struct {
		return nil
	}
	var required []string
	for _, f := range reflect.VisibleFields(body.Type) {
		name, flags, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || (f.Anonymous && name == "") || strings.Contains(flags, "omit") {
			continue
		}
		if name == "" {
			name = f.Name
		}
		required = append(required, name)
	}
	var out object
	out.raw("type", []byte(`"object"`))
	if len(required) > 0 {
		out.value("required", required)
	}
	return out.close()
}

// object writes a JSON object whose members keep their order.
type object struct {
	buf bytes.Buffer
	err error
}

func (o *object) raw(name string, value []byte) {
	if o.buf.Len() > 0 {
		o.buf.WriteByte(',')
	}
	key, err := marshal(name)
	if err != nil {
		o.err = err
	}
	o.buf.Write(key)
	o.buf.WriteByte(':')
	o.buf.Write(value)
}

func (o *object) value(name string, v any) {
	text, err := marshal(v)
	if err != nil {
		o.err = err
	}
	o.raw(name, text)
}

func (o *object) text(name, value string) { o.value(name, value) }

func (o *object) open() []byte { return append([]byte{'{'}, o.buf.Bytes()...) }

func (o *object) close() []byte { return append(o.open(), '}') }

func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
