package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/buzon-mail/buzon/shared/apperr"
	"github.com/buzon-mail/buzon/shared/op"
)

const securityScheme = "bearer"

// OpenAPI renders the document (OpenAPI 3.1) of a catalogue. It is meant for build time: the same catalogue and options
// give the same bytes. A declaration that huma can't read is an error here.
func OpenAPI(catalogue *op.Catalogue, options Options) (doc []byte, err error) {
	at := ""
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("rest: describe %s: %v", at, p)
		}
	}()
	d := newDescriber(catalogue, options)
	for _, o := range catalogue.Operations() {
		at = o.Name
		b, ok := o.Binding.(*binding)
		if !ok {
			return nil, fmt.Errorf("rest: %s was not made by Define", o.Name)
		}
		if err := checkInput(o.Input); err != nil {
			return nil, fmt.Errorf("rest: %s: %w", o.Name, err)
		}
		b.register(d, d.operation(&o))
	}
	raw, err := json.Marshal(d.document)
	if err != nil {
		return nil, fmt.Errorf("rest: render the document: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", " "); err != nil {
		return nil, fmt.Errorf("rest: render the document: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// checkInput refuses what this room does not serve: cookies are never read (they would open cross-site requests), forms and
// raw bodies have no tool.
func checkInput(t reflect.Type) error {
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Tag.Get("cookie") != "" || f.Tag.Get("form") != "" || f.Name == "RawBody":
			return fmt.Errorf("field %s: cookies, forms and raw bodies are not read", f.Name)
		case http.CanonicalHeaderKey(f.Tag.Get("header")) == WorkspaceHeader:
			return fmt.Errorf("field %s: the route resolves the workspace", f.Name)
		case f.Anonymous && !f.IsExported():
			return fmt.Errorf("field %s: huma does not see what an unexported embedded struct holds", f.Name)
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			if err := checkInput(f.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

// describer is the huma API that documents are made with. It serves nothing.
type describer struct {
	bound
	options Options
	problem *huma.Schema
}

// DocumentOperation puts the operation into the document.
func (d *describer) DocumentOperation(o *huma.Operation) { d.document.AddOperation(o) }

func newDescriber(c *op.Catalogue, options Options) *describer {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	d := &describer{options: options}
	d.problem = registry.Schema(reflect.TypeFor[Problem](), true, "Problem")
	d.document = &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info:    &huma.Info{Title: options.Title, Version: options.Version, Description: options.Description},
		Servers: []*huma.Server{{URL: options.PublicOrigin + options.BasePath}},
		Components: &huma.Components{
			Schemas: &servingRegistry{Registry: registry},
			SecuritySchemes: map[string]*huma.SecurityScheme{securityScheme: {
				Type: "http", Scheme: "bearer", Description: scopesText(c.Vocabulary),
			}},
		},
	}
	return d
}

// scopesText lists the scopes: OpenAPI 3.1 names them in an operation's security requirement, but only an oauth2 scheme
// could list them, and the authorization server's address is not known when the document is made.
func scopesText(v *op.Vocabulary) string {
	var s strings.Builder
	s.WriteString("An OAuth 2.0 access token or an API key. Scopes:")
	for _, scope := range v.All() {
		s.WriteString("\n- `" + scope.Name + "`: " + scope.Description)
	}
	return s.String()
}

func (d *describer) operation(o *op.Operation) huma.Operation {
	h := huma.Operation{
		OperationID: o.Name, Method: o.Method, Path: o.Path, Summary: o.Title, Description: o.Description,
		DefaultStatus: o.Status, Responses: map[string]*huma.Response{},
		Security: []map[string][]string{{securityScheme: {}}},
	}
	if o.Scope != "" {
		h.Security[0][securityScheme] = []string{o.Scope}
	}
	if noun, _, ok := strings.Cut(o.Path[1:], "/"); ok || noun != "" {
		h.Tags = []string{noun}
	}
	if !o.AnyTenant {
		h.Parameters = append(h.Parameters, &huma.Param{
			Name: WorkspaceHeader, In: "header", Schema: &huma.Schema{Type: "string"},
			Description: "The workspace to act in; needed when the token reaches several and has no default.",
		})
	}
	h.Responses[strconv.Itoa(o.Status)] = d.success(o)
	if o.Creates {
		created := *h.Responses[strconv.Itoa(o.Status)]
		created.Description = http.StatusText(http.StatusCreated)
		h.Responses[strconv.Itoa(http.StatusCreated)] = &created
	}
	for _, kind := range kindsOf(o) {
		d.respond(&h, kind)
	}
	return h
}

// success is the reply of an operation that did what it is for: the schema of Body, and the headers.
func (d *describer) success(o *op.Operation) *huma.Response {
	registry := d.document.Components.Schemas
	r := &huma.Response{Description: http.StatusText(o.Status), Headers: map[string]*huma.Param{}}
	hint := func(field string) string {
		if o.Output.Name() != "" {
			return o.Output.Name() + field
		}
		return o.Name + "Response"
	}
	for _, f := range reflect.VisibleFields(o.Output) {
		switch {
		case f.Name == "Body":
			r.Content = map[string]*huma.MediaType{"application/json": {Schema: huma.SchemaFromField(registry, f, hint(f.Name))}}
		case f.Tag.Get("header") != "":
			if reflect.PointerTo(f.Type).Implements(reflect.TypeFor[fmt.Stringer]()) {
				f.Type = reflect.TypeFor[string]() // it is sent as its text
			}
			r.Headers[f.Tag.Get("header")] = &huma.Header{Schema: huma.SchemaFromField(registry, f, hint(f.Name))}
		}
	}
	return r
}

// kindsOf lists what an operation can answer besides success.
func kindsOf(o *op.Operation) []apperr.Kind {
	// Whatever an operation takes, a query parameter that it does not is invalid.
	kinds := []apperr.Kind{apperr.Unauthenticated, apperr.RateLimited, apperr.Internal, apperr.Unavailable, apperr.Invalid}
	// Whoever reaches a workspace is a viewer there at least.
	if o.Scope != "" || o.Role > op.Viewer || o.AnyTenant || !o.Confines {
		kinds = append(kinds, apperr.Forbidden)
	}
	if !o.AnyTenant || len(parameters(o.Path)) > 0 {
		kinds = append(kinds, apperr.NotFound)
	}
	if o.Method != http.MethodGet { // a body is read, if only to be refused
		kinds = append(kinds, apperr.TooLarge)
	}
	if _, ok := o.Input.FieldByName("Body"); ok {
		kinds = append(kinds, apperr.UnsupportedMedia)
	}
	if TakesKey(o.Input) {
		kinds = append(kinds, apperr.Conflict)
	}
	kinds = append(kinds, o.Errors...)
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func (d *describer) respond(h *huma.Operation, kind apperr.Kind) {
	status := statuses[kind]
	r := &huma.Response{
		Description: http.StatusText(status),
		Content:     map[string]*huma.MediaType{problemType: {Schema: d.problem}},
	}
	switch kind {
	case apperr.Unauthenticated:
		r.Headers = map[string]*huma.Param{"WWW-Authenticate": {Schema: &huma.Schema{Type: "string"}}}
	case apperr.RateLimited:
		r.Headers = map[string]*huma.Param{"Retry-After": {Schema: &huma.Schema{Type: "integer"}}}
	}
	h.Responses[strconv.Itoa(status)] = r
}
