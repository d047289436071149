package rest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/buzon-mail/buzon/shared/jsonwalk"
	"github.com/buzon-mail/buzon/shared/op"
)

// bound is one operation registered with huma for serving: an API of its own, an adapter that captures the handler, and
// a registry of its own. It renders nothing: no formats, no content negotiation, no documents.
type bound struct {
	document  *huma.OpenAPI
	operation huma.Operation
	handler   func(huma.Context)
	input     reflect.Type
	reply     *replyPlan
	params    []parameter // of the query
	shape     *shape      // of the body; nil where there is none
	optional  bool        // the body may be absent
}

// parameter is one query parameter as the wire has it.
type parameter struct {
	name    string
	explode bool // may be repeated
}

var (
	_ huma.API     = (*bound)(nil)
	_ huma.Adapter = (*bound)(nil)
)

func newBound(o *op.Operation) *bound {
	b := &bound{input: o.Input, reply: newReplyPlan(o.Output, o.Status)}
	b.document = &huma.OpenAPI{Components: &huma.Components{Schemas: &servingRegistry{
		Registry: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
	}}}
	return b
}

// ready reads what the checks of query and body need from what huma made of the tags.
func (b *bound) ready() {
	for _, p := range b.operation.Parameters {
		if p.In == "query" {
			b.params = append(b.params, parameter{p.Name, p.Explode != nil && *p.Explode})
		}
	}
	if body := b.operation.RequestBody; body != nil {
		b.optional = !body.Required
		if media := body.Content["application/json"]; media != nil && media.Schema != nil {
			b.shape = newShaper(b.document.Components.Schemas).of(media.Schema)
		}
	}
}

// Handle captures what huma would hang on a mux.
func (b *bound) Handle(o *huma.Operation, handler func(huma.Context)) {
	b.operation, b.handler = *o, handler
}

// ServeHTTP is part of huma's adapter and never called.
func (b *bound) ServeHTTP(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }

// DocumentOperation keeps huma from building a path item.
func (b *bound) DocumentOperation(*huma.Operation) {}

// Adapter is the capturing adapter.
func (b *bound) Adapter() huma.Adapter { return b }

// OpenAPI holds the registry.
func (b *bound) OpenAPI() *huma.OpenAPI { return b.document }

// Negotiate always answers JSON: Accept refuses nothing.
func (b *bound) Negotiate(string) (string, error) { return "application/json", nil }

// Transform changes nothing.
func (b *bound) Transform(_ huma.Context, _ string, v any) (any, error) { return v, nil }

// Marshal is reached only with huma's own refusals: handlers leave their results in the call.
func (b *bound) Marshal(w io.Writer, _ string, v any) error {
	if refused, ok := v.(*huma.ErrorModel); ok {
		if c, ok := w.(*call); ok {
			c.refused = refused
		}
	}
	return nil
}

// Unmarshal decodes a body that the strict walk has already accepted.
func (b *bound) Unmarshal(_ string, data []byte, v any) (err error) {
	if loose, ok := v.(*any); ok { // huma validates this one and drops it
		*loose, err = jsonwalk.Decode(data)
	} else {
		err = json.Unmarshal(data, v)
	}
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		// encoding/json names Go's types; the caller gets JSON's words.
		return errors.New("the member " + mismatch.Field + " has a value that can't be used here")
	}
	if err != nil {
		return errors.New("the body can't be read")
	}
	return nil
}

// UseMiddleware is part of huma's API and never called.
func (b *bound) UseMiddleware(...func(huma.Context, func(huma.Context))) {}

// Middlewares are none.
func (b *bound) Middlewares() huma.Middlewares { return nil }

// servingRegistry spares serving the schema of huma's error type, which is never sent.
type servingRegistry struct{ huma.Registry }

// Schema is huma's, but for the error type.
func (r *servingRegistry) Schema(t reflect.Type, allowRef bool, hint string) *huma.Schema {
	if t == reflect.TypeFor[huma.ErrorModel]() {
		return &huma.Schema{}
	}
	return r.Registry.Schema(t, allowRef, hint)
}

// MarshalJSON writes the schemas by their names, as huma's own registry does; an embedded one would be a member of that name.
func (r *servingRegistry) MarshalJSON() ([]byte, error) {
	return json.Marshal(r.Map()) //nolint:wrapcheck // the document is the caller's step
}

// clean takes what a message may say to a caller: some of huma's formats append the text of a Go error, and write the bound of an integer
// with an exponent, rounded for the eye.
func clean(message string) string {
	if at := strings.LastIndexByte(message, ' '); strings.HasPrefix(message, "expected number ") && strings.Contains(message[at:], "e+") {
		if bound, err := strconv.ParseFloat(message[at+1:], 64); err == nil {
			return message[:at+1] + strconv.FormatFloat(bound, 'f', -1, 64)
		}
	}
	if strings.HasPrefix(message, "required ") && strings.HasSuffix(message, " parameter is missing") {
		return "this is required" // the location says where it belongs, in the caller's own terms
	}
	for _, prefix := range [...]string{"expected string to be ", "invalid value"} {
		if strings.HasPrefix(message, prefix) {
			message, _, _ = strings.Cut(message, ": ")
		}
	}
	return message
}
